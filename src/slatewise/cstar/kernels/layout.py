"""How what the kernels of c-star models share lies in memory.

Apart from the kernels, so that a model can do without Numba.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints

Sets: TypeAlias = NDArray[np.integer]


class Pair(NamedTuple):
    """The pair terms shared by all lists: the items of the core and the others, and G between and inside them."""

    core: Ints
    rest: Ints
    inner: Floats
    """(C, C) symmetric, diagonal 0."""
    outer: Floats
    """(C, R)."""
    full: Floats
    """(C, N): row a holds G[core[a], :]."""


class CoreSettings(NamedTuple):
    """All settings of the core, those with few items first."""

    bits: Floats
    """(C, S) 1 where a core item is in."""
    n_in: Ints
    """(S,) how many are."""
    inner: Floats
    """(S,) their pair terms among each other."""
    factor: Floats
    """(R, S) exp of the pair terms of each other item with them, divided by exp(shift)."""
    shift: Floats
    """(S,)."""


class DualTerms(NamedTuple):
    """What does not change while the dual of a hinge is solved."""

    phi: Floats
    """(n, d), or (n * N, d) where the items of a list have features of their own."""
    shared: bool
    square_norms: Floats
    """Of each row of ``phi``."""
    offset: Floats
    """(n, N) fixed part of the scores, or empty."""
    k: Ints
    core_of: Ints
    """(N,) the core row of an item, -1 for the others."""
    c: Floats
    """(n,) weight of each list's hinge."""
    rho: float
    """Weight of the regularizer of G."""


class CornerCache(NamedTuple):
    """The corners of every list, and their weights."""

    corners: Sets
    """(n, capacity, largest k)."""
    loss: Floats
    alpha: Floats
    n_used: Ints
    """(n,)."""
