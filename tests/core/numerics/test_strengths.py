import warnings

import numpy as np
import pytest

from slatewise.core.numerics.result import ConvergenceWarning
from slatewise.core.numerics.strengths import fell_behind, iterate_path, random_folds, rough_fits, search_path


def test_every_fold_starts_where_its_fit_before_ended():
    calls = []

    def fit(fold, strength, start):
        calls.append((fold, strength, start))
        return (fold, strength)

    path = search_path([0.1, 1.0], 2, fit, lambda fold, found: fold + found[1])
    assert calls == [(0, 0.1, None), (1, 0.1, None), (0, 1.0, (0, 0.1)), (1, 1.0, (1, 0.1))]
    assert [step.loss for step in path] == pytest.approx([1.2, 3.0])
    assert path[1].found == [(0, 1.0), (1, 1.0)]


def test_given_starts_are_used():
    path = search_path(
        [2.0], 2, lambda fold, strength, start: start + strength, lambda fold, found: found, None, [1, 5]
    )
    assert path[0].found == [3.0, 7.0]


@pytest.mark.parametrize(
    ("losses", "is_behind"), [([3, 2], False), ([2, 3], False), ([2, 3, 4], True), ([2, 3, 2], False)]
)
def test_a_path_falls_behind_after_two_losses_above_its_best(losses, is_behind):
    assert fell_behind(losses) == is_behind


def test_folds_hold_out_each_row_once():
    folds = random_folds(11, 3, seed=4)
    assert np.array_equal(np.sort(np.concatenate([held_out for _, held_out in folds])), np.arange(11))
    assert all(len(np.intersect1d(inner, held_out)) == 0 for inner, held_out in folds)
    assert len(random_folds(2, 3, seed=0)) == 2


def test_only_warnings_of_convergence_are_hidden():
    with rough_fits():
        warnings.warn("not yet", ConvergenceWarning, stacklevel=1)
    with pytest.warns(UserWarning, match="other"), rough_fits():
        warnings.warn("other", UserWarning, stacklevel=1)


def test_a_path_by_steps_is_the_same_and_keeps_no_step():
    def fit(fold, strength, start):
        return np.full(3, strength)

    def loss(fold, found):
        return abs(float(found[0]) - 2.0)

    whole = search_path([1.0, 2.0, 3.0, 4.0, 5.0], 2, fit, loss, fell_behind)
    kept = [(step.strength, step.loss) for step in iterate_path([1.0, 2.0, 3.0, 4.0, 5.0], 2, fit, loss, fell_behind)]
    assert kept == [(step.strength, step.loss) for step in whole] == [(1.0, 2.0), (2.0, 0.0), (3.0, 2.0), (4.0, 4.0)]
