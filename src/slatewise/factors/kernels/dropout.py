"""Which numbers of a vector are left out for a step (Srivastava and others 2014), by a seed each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Singles
from slatewise.core.kernels.random import uniform
from slatewise.core.running.kernel import kernel


@kernel
def kept_shares(random: NDArray[np.uint64], dropout: float, out: Singles) -> None:
    """Fill row r by its own random state: 0 with probability ``dropout``, else what keeps the mean of a product."""
    kept = np.float32(1.0 / (1.0 - dropout))
    for row in range(len(out)):
        for f in range(out.shape[1]):
            out[row, f] = kept if uniform(random[row : row + 1]) >= dropout else np.float32(0.0)
