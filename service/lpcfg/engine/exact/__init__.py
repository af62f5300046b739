"""The exact engine: full charts, exact arithmetic, readable code. It checks the pruned engine."""
