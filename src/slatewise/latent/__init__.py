"""Latent structured ranking of pairs (Weston, Blitzer 2012), and a reranker for any scorer."""
