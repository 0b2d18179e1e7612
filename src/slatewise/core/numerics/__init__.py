"""Solvers and their results, in reading order.

result       parameters with a certificate, and the warnings of a learner
bundle       cutting planes for risks that are linear between kinks
lbfgs        L-BFGS for smooth risks with a ridge
strengths    the choice of a strength by folds
replay       the log of an oracle, from which a fit is replayed
assignment   rankings that maximize a linear score
row_kernels  kernels between rows, and their features
"""
