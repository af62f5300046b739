"""Evaluation: compare a parser with gold trees."""
