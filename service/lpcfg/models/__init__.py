"""Models: the data a parser needs, and the store that holds it."""
