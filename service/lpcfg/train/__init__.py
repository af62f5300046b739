"""Learning: from treebanks to published models."""
