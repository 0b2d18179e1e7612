"""The low-pass filter against its formula with NumPy's singular value decomposition."""

import numpy as np
import pytest

from slatewise.collaborative.low_pass import normalized, right_singular_vectors
from slatewise.collaborative.parts import fit_part
from slatewise.collaborative.settings import LowPass
from slatewise.core.running.executor import Executor


def by_formula(histories, n_components, weight):
    dense = histories.toarray().astype(np.float64)
    by_user, by_item = (np.maximum(dense.sum(axis=axis), 1.0) for axis in (1, 0))
    scaled = dense / np.sqrt(by_user)[:, None] / np.sqrt(by_item)
    vectors = np.linalg.svd(scaled)[2][:n_components].T
    smooth = (vectors @ vectors.T) * np.sqrt(by_item) / np.sqrt(by_item)[:, None]
    return dense @ (scaled.T @ scaled + weight * smooth)


@pytest.mark.parametrize("shape", [(50, 20), (20, 50)])
def test_scores_are_those_of_the_formula(make_matrix, shape):
    histories = make_matrix(*shape)
    part = fit_part(LowPass(n_components=5, smooth_weight=0.3), histories, 0, Executor(1))
    # Randomized iteration finds the subspace; a narrow gap behind it leaves an error far below a rank.
    np.testing.assert_allclose(part.scores(histories), by_formula(histories, 5, 0.3), rtol=0, atol=2e-3)


def test_all_vectors_are_exact(make_matrix):
    histories = make_matrix(30, 12)
    part = fit_part(LowPass(n_components=64, smooth_weight=1.0), histories, 0, Executor(1))
    np.testing.assert_allclose(part.scores(histories), by_formula(histories, 12, 1.0), rtol=0, atol=1e-4)


def test_the_same_seed_has_the_same_vectors(make_matrix):
    scaled, _ = normalized(make_matrix(40, 30))
    one, two = (right_singular_vectors(scaled, 8, np.random.default_rng(3)) for _ in range(2))
    assert one.tobytes() == two.tobytes()
