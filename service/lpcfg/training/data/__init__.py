"""Treebanks as arrays: nodes, heads, features and folds."""
