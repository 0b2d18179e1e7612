"""Scales of features: learnt from the training rows alone, whatever these are."""

import numpy as np
import pytest
from scipy.stats import skew

from slatewise_papers.mlr.data import Scaling, common, power, standard, unscaled


@pytest.fixture
def X() -> np.ndarray:
    """Two features of different units, the second skewed, and a constant one."""
    rng = np.random.default_rng(2)
    return np.column_stack([5 + 3 * rng.normal(size=60), 0.01 * rng.lognormal(size=60), np.full(60, 7.0)])


def test_standard_brings_every_spread_to_one(X: np.ndarray) -> None:
    scaled = standard(X)(X)
    assert scaled.mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert scaled.std(axis=0) == pytest.approx([1, 1, 0])


def test_common_keeps_the_ratios_of_spreads(X: np.ndarray) -> None:
    scaled = common(X)(X)
    assert scaled.mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert scaled.var(axis=0).mean() == pytest.approx(1)
    assert scaled[:, 0].std() / scaled[:, 1].std() == pytest.approx(X[:, 0].std() / X[:, 1].std())


def test_power_takes_the_skew_away(X: np.ndarray) -> None:
    scaled = power(X)(X)
    assert skew(X[:, 1]) > 2
    assert abs(skew(scaled[:, 1])) < 0.5
    assert scaled.std(axis=0) == pytest.approx([1, 1, 0])


@pytest.mark.parametrize("scaling", [standard, common, power])
def test_a_constant_whose_mean_is_rounded_becomes_zero(scaling: Scaling) -> None:
    constant = np.full((60, 1), 0.1)
    assert constant.std() > 0
    learned = scaling(constant)
    assert (learned(constant) == 0).all()
    assert abs(learned(np.array([[0.2]]))).max() <= 0.1


@pytest.mark.parametrize("scaling", [standard, common, power, unscaled])
def test_rows_are_mapped_one_by_one_and_stay_finite(X: np.ndarray, scaling: Scaling) -> None:
    learned = scaling(X[:40])
    far = np.array([[-1e6, 1e6, 0.0]])
    together = learned(np.vstack([X[40:], far]))
    np.testing.assert_allclose(together[:20], learned(X[40:]))
    assert np.isfinite(together).all()
    assert np.isfinite(scaling(X[:, 2:])(X[:, 2:])).all()
