"""Solvers and what they return: cutting planes, L-BFGS, assignment, kernels between rows."""
