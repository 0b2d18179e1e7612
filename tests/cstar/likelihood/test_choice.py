"""Core and strength by held-out sets: structure is found where there is some, and only there."""

import numpy as np
import pytest

from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.core_labels import greedy_core
from slatewise.cstar.likelihood.choice import STRENGTHS, CoreChoice
from slatewise.cstar.likelihood.fit import Settings
from slatewise.cstar.likelihood.objective import AdjustedScores, AnySizeLikelihood

SETTINGS = Settings(C=1.0, rho=1.0, tol=1e-3, max_iter=200, random_state=0)


def rows(n=300, n_labels=7, together=1.5, seed=0, hidden=0.0, n_jobs=1):
    """Log-odds of independent labels; in the rows the labels after the first few follow label 0 or label 1."""
    rng = np.random.default_rng(seed)
    given = rng.normal(-0.5, 1.0, (n, n_labels))
    Y = (rng.random((n, n_labels)) < 1 / (1 + np.exp(-given))).astype(np.int8)
    for label in range(2, n_labels):
        moved = given[:, label] + together * (2.0 * Y[:, label % 2] - 1.0)
        Y[:, label] = rng.random(n) < 1 / (1 + np.exp(-moved))
    Y[rng.random(Y.shape) < hidden] = -1
    model = AdjustedScores(given, np.zeros(0, dtype=np.int64))
    return AnySizeLikelihood(model, Y, np.ones(n), Executor(n_jobs))


def test_structure_is_found():
    found = CoreChoice.of(rows(), SETTINGS).core_and_strength()
    assert {0, 1} <= set(found.core.tolist())
    assert found.C in STRENGTHS


def test_nothing_is_added_where_scores_say_all():
    found = CoreChoice.of(rows(together=0.0, n=600), SETTINGS).core_and_strength()
    assert len(found.core) == 0


def test_perfect_scores_are_left_alone():
    some = rows(together=0.0)
    perfect = AnySizeLikelihood(
        AdjustedScores(45.0 * (2.0 * some.known - 1.0), some.model.core), some.known, some.weight, ONE_THREAD
    )
    assert CoreChoice.of(perfect, SETTINGS).core_and_strength().C == 0.0


def test_a_larger_core_goes_on_from_a_smaller_one():
    choice = CoreChoice.of(rows(n_labels=9), SETTINGS)
    for five in (choice._informative(5), choice._residual_core(np.zeros(0, dtype=np.int64), 5)):
        eight = choice._extended(five, 8)
        np.testing.assert_array_equal(eight[:5], five)
        assert len(set(eight.tolist())) == 8
    np.testing.assert_array_equal(choice._informative(5), greedy_core(choice.rows.known.astype(float), 5))


def test_the_unexplained_come_first_where_scores_explain_much():
    # Labels 2, 3 and 4 come together, which their scores say; 5 and 6 too, which theirs do not.
    rng = np.random.default_rng(0)
    Y = (rng.random((600, 7)) < 0.4).astype(np.int8)
    Y[:, 3] = Y[:, 4] = Y[:, 2]
    Y[:, 6] = np.where(rng.random(600) < 0.85, Y[:, 5], Y[:, 6])
    given = np.where(np.arange(7) < 5, 4.0 * (2.0 * Y - 1.0), -0.4) + rng.normal(0.0, 0.5, Y.shape)
    some = AnySizeLikelihood(AdjustedScores(given, np.zeros(0, dtype=np.int64)), Y, np.ones(600))
    choice = CoreChoice.of(some, SETTINGS)
    assert choice._informative(1)[0] in (2, 3, 4)
    assert choice._residual_core(np.zeros(0, dtype=np.int64), 1)[0] in (5, 6)
    assert choice.core(1).core[0] in (5, 6)


def test_what_is_not_known_does_not_hide_the_structure():
    found = CoreChoice.of(rows(hidden=0.3), SETTINGS).core_and_strength((0.3,))
    assert {0, 1} <= set(found.core.tolist())
    assert found.C == 0.3


def test_too_few_rows_to_hold_some_out():
    choice = CoreChoice.of(rows(n=5), SETTINGS)
    assert choice.core_and_strength().C == 0.0
    assert choice.strength(np.array([1])).C == 0.0
    assert len(choice.core(3).core) == 3


@pytest.mark.parametrize("limit", [6000, 150])
def test_threads_change_nothing_and_rows_are_drawn(monkeypatch, limit):
    monkeypatch.setattr("slatewise.cstar.likelihood.choice._MOST_ROWS", limit)
    one, two = (CoreChoice.of(rows(n_jobs=threads), SETTINGS).core_and_strength() for threads in (1, 2))
    assert (one.core.tolist(), one.C, one.loss) == (two.core.tolist(), two.C, two.loss)
    assert {0, 1} <= set(one.core.tolist())
