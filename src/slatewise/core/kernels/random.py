"""Random numbers inside compiled functions: the state is one word that the caller seeds and keeps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slatewise.core.running.kernel import kernel


@kernel
def uniform(random: NDArray[np.uint64]) -> float:
    """Return a random number from 0 to 1 (xorshift, Marsaglia 2003)."""
    word = random[0]
    word ^= word << np.uint64(13)
    word ^= word >> np.uint64(7)
    word ^= word << np.uint64(17)
    random[0] = word
    return float(word >> np.uint64(11)) / 9007199254740992.0
