"""Questions and answers on instances small enough to enumerate."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slatewise.labeling import (
    GivenScores,
    LabelRows,
    MarginRule,
    Noisy,
    RandomQuestion,
    Situation,
    Truthful,
    Uncertainty,
    Unsure,
    consistent,
)

N = 6


def random_rows(seed: int, n_rows: int = 5) -> tuple[LabelRows, np.ndarray]:
    rng = np.random.default_rng(seed)
    core = rng.choice(N, 2, replace=False)
    pair = rng.normal(size=(2, N))
    pair[:, core] = 0.0
    pair[0, core[1]] = pair[1, core[0]] = rng.normal()
    rows = LabelRows(rng.normal(size=(n_rows, N)), pair, core.astype(np.int64), rng.integers(1, N, n_rows))
    truth = np.zeros((n_rows, N), dtype=np.int8)
    for row, k in zip(truth, rows.k, strict=True):
        row[rng.choice(N, k, replace=False)] = 1
    known = np.where(rng.random((n_rows, N)) < 0.3, truth, -1).astype(np.int8)
    return rows, known


def best_by_enumeration(rows: LabelRows, row: int, known: np.ndarray) -> float:
    """The best score among all sets of k labels that agree with the answers."""
    best = -np.inf
    for chosen in combinations(range(N), int(rows.k[row])):
        flags = np.isin(np.arange(N), chosen)
        if ((known == 1) & ~flags).any() or ((known == 0) & flags).any():
            continue
        value = rows.scores[row, flags].sum()
        for place, c in enumerate(rows.core):
            for other in np.flatnonzero(flags):
                if flags[c] and other != c and not (other in rows.core and other < c):
                    value += rows.pair[place, other]
        best = max(best, value)
    return best


@pytest.mark.parametrize("seed", range(10))
def test_margin_rule_is_the_smallest_difference_of_forced_inferences(seed: int) -> None:
    rows, known = random_rows(seed)
    margins = rows.margins(known)
    askable = (known < 0) & np.isfinite(margins)
    chosen = MarginRule().ask(Situation(rows, known, margins, askable), np.random.default_rng(0))
    for row in range(len(known)):
        distances = {}
        for label in np.flatnonzero(known[row] < 0):
            values = []
            for answer in (1, 0):
                forced = known[row].copy()
                forced[label] = answer
                values.append(best_by_enumeration(rows, row, forced))
            if np.isfinite(values).all():
                distances[label] = abs(values[0] - values[1])
        if not distances:
            assert chosen[row] == -1
        else:
            assert distances[chosen[row]] == pytest.approx(min(distances.values()))


def test_uncertainty_looks_at_own_scores_and_the_margin_rule_at_pairs() -> None:
    scores = np.array([[3.0, 2.0, 1.9, 0.0]])
    pair = np.array([[0.0, 5.0, -5.0, 4.9]])
    rows = LabelRows(scores, pair, np.array([0]), np.array([2]))
    known = np.full((1, 4), -1, dtype=np.int8)
    # {0, 1} scores 10.0, {0, 3} 7.9, {1, 2} 3.9; by own scores label 2 is 0.1 below the threshold and label 3 two.
    situation = Situation(rows, known, rows.margins(known), np.array([[True, False, True, True]]))
    rng = np.random.default_rng(0)
    assert Uncertainty().ask(situation, rng).tolist() == [2]
    assert MarginRule().ask(situation, rng).tolist() == [3]


def test_random_questions_are_even_and_open() -> None:
    rows = LabelRows.of(GivenScores(4), np.zeros((4000, 4)), k=2)
    known = np.full((4000, 4), -1, dtype=np.int8)
    known[:, 3] = 1
    chosen = RandomQuestion().ask(Situation(rows, known, rows.margins(known), known < 0), np.random.default_rng(0))
    counts = np.bincount(chosen, minlength=4)
    assert counts[3] == 0
    assert np.abs(counts[:3] / 4000 - 1 / 3).max() < 0.03


@pytest.mark.parametrize("policy", [MarginRule(), Uncertainty(), RandomQuestion()])
def test_nothing_open_is_minus_one(policy: MarginRule) -> None:
    rows = LabelRows.of(GivenScores(3), [[1.0, 2.0, 3.0]], k=1)
    known = np.array([[0, 0, 1]], dtype=np.int8)
    chosen = policy.ask(Situation(rows, known, rows.margins(known), known < 0), np.random.default_rng(0))
    assert chosen.tolist() == [-1]


def test_annotators_err_and_pass_as_often_as_they_say() -> None:
    truth = np.arange(20_000) % 2 == 0
    rng = np.random.default_rng(0)
    assert (Truthful().answer(truth, rng) == truth).all()
    assert np.mean(Noisy(0.2).answer(truth, rng) != truth) == pytest.approx(0.2, abs=0.02)
    both = Noisy(0.5, Unsure(0.3)).answer(truth, rng)
    assert np.mean(both == -1) == pytest.approx(0.3, abs=0.02)
    known = both >= 0
    assert np.mean(both[known] != truth[known]) == pytest.approx(0.5, abs=0.02)


def test_a_probability_beyond_one_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"flip: expected a probability from 0 to 1, found 1\.5"):
        Noisy(1.5)
    with pytest.raises(ValueError, match="rate"):
        Unsure(-0.1)


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_consistent_answers_fit_k_and_keep_all_they_can(seed: int, n_labels: int) -> None:
    rng = np.random.default_rng(seed)
    answers = rng.integers(-1, 2, size=(4, n_labels)).astype(np.int8)
    scores = rng.normal(size=answers.shape)
    k = rng.integers(0, n_labels + 1, size=4)
    kept = consistent(answers, scores, k)
    assert ((kept == answers) | (kept == -1)).all()
    assert np.array_equal((kept == 1).sum(axis=1), np.minimum((answers == 1).sum(axis=1), k))
    assert np.array_equal((kept == 0).sum(axis=1), np.minimum((answers == 0).sum(axis=1), n_labels - k))
    for row in range(4):
        dropped_yes = (answers[row] == 1) & (kept[row] == -1)
        if dropped_yes.any() and (kept[row] == 1).any():
            assert scores[row, dropped_yes].max() <= scores[row, kept[row] == 1].min()
