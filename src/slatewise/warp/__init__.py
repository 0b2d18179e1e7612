"""Latent rankers at catalogue scale, trained on violators (WARP): engines, top-k over the catalogue, stages.

A score is an inner product ``x_q . z_d`` of a query's vector and an item's row, at every stage, so one engine and one
top-k serve all of them. This stands beside the grid of scores, surrogates and learners, on purpose: the loss of a pair
is read off the ranks of its violators, and is the value of no convex objective.
"""
