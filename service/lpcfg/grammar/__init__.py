"""Grammars: the notation and its tables, the lexicon, the tagger, and grammars given by hand."""
