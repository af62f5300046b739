"""Inference: the exact recursion, and the pruned one that serves."""
