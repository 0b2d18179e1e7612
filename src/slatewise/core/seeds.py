"""What ``random_state`` may be, and the one seed that a fit takes from it."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None
"""A seed, or where to draw one; None is the seed 0."""
_MOST = 2**32  # the seeds that RandomState takes itself


def is_source(random_state: object) -> bool:
    """Tell what seeds are drawn from, and what a file cannot hold, from seeds and None."""
    return isinstance(random_state, np.random.RandomState | np.random.Generator)


def seed_from(random_state: Any) -> int:
    """Return the seed that is given, 0 for None, or one below 2 ** 32 drawn from a RandomState or Generator.

    Examples
    --------
    >>> seed_from(7), seed_from(None)
    (7, 0)
    >>> rng = np.random.default_rng(1)
    >>> seed_from(rng) == seed_from(np.random.default_rng(1)), seed_from(rng) == seed_from(np.random.default_rng(1))
    (True, False)
    """
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(_MOST))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_MOST, dtype=np.int64))
    return 0 if random_state is None else int(random_state)
