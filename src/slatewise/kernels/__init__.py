"""Numba free functions on contiguous arrays: no checks, no objects, no printing.

Serial and ``nogil``: threads run over blocks (:mod:`slatewise.parallel`), so a kernel never starts any. The function
beside a kernel validates, allocates the outputs and documents; a kernel trusts its input.
"""

from slatewise.kernels._kernel import kernel, loose_sums

__all__ = ["kernel", "loose_sums"]
