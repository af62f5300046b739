"""Dependency trees: read, learned, parsed, and given probabilities."""
