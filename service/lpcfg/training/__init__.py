"""Training: from treebanks to published models."""
