"""Numbers that the theorems give for a known L-PCFG: exact moments and sample complexity."""
