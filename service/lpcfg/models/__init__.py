"""Models: what a parser needs, and how it is stored."""
