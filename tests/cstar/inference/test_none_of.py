"""How likely it is that no label of some is in, against enumeration of every subset."""

import numpy as np
import pytest
from scipy.special import logsumexp
from tests.cstar.inference.test_any_size import instances
from tests.cstar.inference.test_best_set_exact import KINDS

from slatewise import inference


@pytest.mark.parametrize("kind", KINDS)
def test_none_of_some_labels(kind):
    """320 rows a kind."""
    rng = np.random.default_rng(3)
    for s, pair, core, known, sets, scores in instances(kind, 5, 8):
        among = rng.random(s.shape) < rng.random((len(s), 1))
        none = np.where(among @ sets.T == 0, scores, -np.inf)
        with np.errstate(divide="ignore"):
            expected = np.exp(logsumexp(none, axis=1) - logsumexp(scores, axis=1))
        found = inference.subset_none(s, pair, core, among, known)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-15)
        assert (found[~among.any(axis=1)] == 1.0).all()


def test_a_no_takes_its_own_doubt_off_and_no_more():
    for s, pair, core, known, _, _ in instances(KINDS[0], 6, 8):
        open_labels = known < 0
        doubt = -np.log(inference.subset_none(s, pair, core, open_labels, known))
        out = 1.0 - inference.subset_marginals(s, pair, core, known)
        for label in range(s.shape[1]):
            rows = np.flatnonzero(open_labels[:, label])
            answers, left = known[rows].copy(), open_labels[rows].copy()
            answers[:, label], left[:, label] = 0, False
            after = -np.log(inference.subset_none(s[rows], pair, core, left, answers))
            np.testing.assert_allclose(doubt[rows] - after, -np.log(out[rows, label]), rtol=1e-9, atol=1e-9)


def test_no_doubt_is_too_large_or_too_small():
    s, pair = [[700.0, -700.0, 0.0], [-700.0, -700.0, -700.0]], [[0.0, 300.0, -300.0]]
    found = inference.subset_none(s, pair, core=[0], among=np.ones((2, 3), dtype=bool))
    assert found[0] < 1e-300
    assert found[1] == 1.0


def test_the_same_bits_with_one_and_two_threads():
    rng = np.random.default_rng(0)
    s, pair = rng.normal(size=(700, 9)), rng.normal(size=(2, 9))
    pair[:, :2] = 0.0
    one, two = (inference.subset_none(s, pair, [0, 1], s < 0, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("among", [[[True]], [[1, 0]], [[[True, False]]]])
def test_labels_in_question_are_flags_in_the_shape_of_the_scores(among):
    with pytest.raises(ValueError, match=r"among: expected True and False in the shape of s, \(1, 2\)"):
        inference.subset_none([[0.0, 1.0]], np.zeros((0, 2)), [], among)
