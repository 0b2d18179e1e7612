"""Numba free functions on contiguous arrays: no checks, no objects, no printing.

Serial and ``nogil``: threads run over blocks (:mod:`slatewise.parallel`), so a kernel never starts any. The function
beside a kernel validates, allocates the outputs and documents; a kernel trusts its input.

Importing a kernel imports Numba, so what an estimator loads imports its kernels where it first calls them.
"""
