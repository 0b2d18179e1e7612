"""Latent factors over whole catalogues, and stages of learned structure (Weston, Blitzer 2012)."""
