"""Parsing: from a model and sentences to analyses."""
