"""Exact inference for c-star models, in reading order.

model         scores, pair terms and known items as the kernels read them, checked once
best_set      the best k items of a list, and max-marginals
fixed_size    sums over all sets of k items: probabilities given the number of labels
any_size      sums over all sets: probabilities, log Z, information
decisions     which set to answer with, for each measure
permutation   the best ranking when positions matter

Each module holds the public function of :mod:`slatewise.inference`, and one for callers that checked their arrays once.
"""
