"""Treebanks as arrays: nodes, heads, features, folds."""
