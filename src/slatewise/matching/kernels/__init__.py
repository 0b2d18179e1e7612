"""Compiled functions of this package: serial, ``nogil``, on contiguous arrays; they trust their input.

assignment_duals, sinkhorn   scaling of the weights before a sum
permanent_threes, permanent_subsets, permanent_rows, permanent_glynn   exact sums, by shape
permanent_tied, tied_counts   exact sums over rankings with tied positions
bethe               the lower bound
matching_sampler, swap_chain   random matchings: exact, and by a Markov chain
slate_assignment    best rankings of few items
"""
