"""The two tests against enumeration, scipy and known distributions."""

from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from slatewise.metrics import paired_bootstrap, randomisation_test


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8))
def test_exact_p_value_is_the_share_of_sign_patterns(pairs):
    a, b = np.array(pairs).T
    difference = (a - b).tolist()
    patterns = product((1, -1), repeat=len(a))
    sums = [abs(sum(s * d for s, d in zip(signs, difference, strict=True))) for signs in patterns]
    expected = np.mean([total >= abs(sum(difference)) for total in sums])
    # Tenths are not exact in binary: ties between patterns must still be seen.
    found = randomisation_test(a / 10, b / 10)
    assert found.exact
    assert found.p_value == expected


def test_drawn_p_value_is_scipys():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.15, 1, size=60), rng.normal(size=60)
    found = randomisation_test(a, b, n=20_000, random_state=1)
    peer = scipy.stats.permutation_test(
        (a - b,), lambda x: np.mean(x), permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(2)
    )
    assert not found.exact
    assert found.difference == pytest.approx(peer.statistic)
    assert found.p_value == pytest.approx(peer.pvalue, abs=0.015)


def test_swapping_the_systems_changes_the_sign_only():
    rng = np.random.default_rng(3)
    a, b = rng.random(40), rng.random(40)
    forth, back = randomisation_test(a, b, random_state=5), randomisation_test(b, a, random_state=5)
    assert forth.p_value == back.p_value
    assert forth.difference == -back.difference


def test_bootstrap_interval_is_scipys():
    rng = np.random.default_rng(4)
    a, b = rng.random(80), rng.random(80)
    found = paired_bootstrap(a, b, n=20_000, confidence=0.9, random_state=6)
    peer = scipy.stats.bootstrap(
        (a - b,), np.mean, n_resamples=20_000, confidence_level=0.9, method="percentile", rng=np.random.default_rng(7)
    ).confidence_interval
    assert found.difference == np.mean(a - b)
    assert (found.low, found.high) == pytest.approx((peer.low, peer.high), abs=0.003)


def test_same_seed_same_result_and_skipped_lists_do_not_count():
    rng = np.random.default_rng(8)
    a, b = rng.random(30), rng.random(30)
    padded = np.insert(a, 3, np.nan), np.insert(b, 3, np.nan)
    assert paired_bootstrap(a, b, random_state=1) == paired_bootstrap(*padded, random_state=1)
    assert randomisation_test(a, b, random_state=1) == randomisation_test(*padded, random_state=1)


@pytest.mark.parametrize("test", [paired_bootstrap, randomisation_test])
@pytest.mark.parametrize(
    ("a", "b", "n", "message"),
    [
        ([1, 2], [1], 10, r"b: expected one value per list, .* shapes \(2,\) and \(1,\)"),
        ([[1]], [[1]], 10, "b: expected one value per list"),
        ([1, np.nan], [1, 2], 10, r"b\[1\]: expected the same lists to be skipped"),
        ([np.nan], [np.nan], 10, "a: expected at least one list"),
        ([np.inf], [1], 10, "a: expected finite numbers, found inf"),
        ([1, 2], [1, 2], 0, "n: expected a whole number >= 1, found 0"),
    ],
)
def test_bad_values(test, a, b, n, message):
    with pytest.raises(ValueError, match=message):
        test(a, b, n)


def test_bad_confidence():
    with pytest.raises(ValueError, match="confidence: expected a number between 0 and 1, found 95"):
        paired_bootstrap([1], [2], confidence=95)
