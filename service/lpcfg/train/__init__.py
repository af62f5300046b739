"""Learning: treebanks to features, moments, tables and published models."""
