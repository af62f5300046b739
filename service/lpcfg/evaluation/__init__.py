"""Evaluation: a parser compared with gold trees."""
