"""Trees: read, write, normalize, binarize and draw them."""
