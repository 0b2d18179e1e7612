"""Generated classes for the benchmarks of metric learning."""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Floats, Ints


def classes_in_noise(n_rows: int, n_features: int, n_classes: int = 10, seed: int = 0) -> tuple[Floats, Ints]:
    """Make classes that differ in a tenth of the features and overlap in all of them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    centers = np.zeros((n_classes, n_features))
    centers[:, : max(n_features // 10, 1)] = rng.normal(size=(n_classes, max(n_features // 10, 1)))
    return centers[y] + rng.normal(size=(n_rows, n_features)), y
