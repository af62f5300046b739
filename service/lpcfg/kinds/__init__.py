"""The kinds of models: one folder each."""
