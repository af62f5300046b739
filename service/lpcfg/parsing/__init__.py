"""Parsing: a model and sentences in, analyses out."""
