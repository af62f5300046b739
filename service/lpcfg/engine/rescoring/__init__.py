"""The rescoring layer: a log-linear model over the derivations of a pruned chart."""
