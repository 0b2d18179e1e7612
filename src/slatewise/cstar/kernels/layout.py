"""How the pair terms of a c-star model lie in memory: apart from the kernels, so that a model can do without Numba."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


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
