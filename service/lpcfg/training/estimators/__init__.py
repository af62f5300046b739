"""Estimators: from a treebank's arrays to the tables C, c∞ and c¹."""
