"""The names of the objectives that the best tree can maximise; `engine.pruned.decode` has them."""

OBJECTIVES = ("max-rule", "max-marginal", "max-product", "max-spans")
