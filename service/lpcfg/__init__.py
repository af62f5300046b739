"""Constituency parsing with latent-variable PCFGs learned by the spectral method."""
