"""The readable engine: full charts, exact arithmetic, the twin of the pruned one."""
