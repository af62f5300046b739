"""Text: read files, and find sentences and tokens."""
