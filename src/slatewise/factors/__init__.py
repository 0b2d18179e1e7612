"""Latent factors: tables of vectors, WARP training in stages, search for the learning rate, scoring.

tables, pairs, bags, queries    the rows that learn, and the vectors of queries made from them
engine, blocked, sampled, gpu_engine    one epoch over the pairs
stages, search, checkpoint    all epochs of all stages, and the search for learning rates
cascade, among, explanation    ranking by stages
"""
