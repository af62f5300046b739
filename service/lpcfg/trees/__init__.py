"""Trees: read, written, normalized, binarized and drawn."""
