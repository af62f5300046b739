"""What the theorems say of a known L-PCFG, as numbers: exact moments and sample complexity."""
