"""Treebanks as arrays: nodes, heads, features and held-out trees."""
