"""Grammars: the notation and its tables, words, tags, and grammars that are given."""
