"""Simulated labeling on generated scenes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slatewise import CStarMarginRanker, CStarRanker, datasets
from slatewise.labeling import (
    POLICIES,
    GivenScores,
    MarginRule,
    Noisy,
    RandomQuestion,
    Truthful,
    Unsure,
    calibrate,
    compare_policies,
    simulate,
)

SCENES = datasets.make_label_scenes(900, n_labels=12, random_state=3)
TRAIN, TEST = slice(0, 400), slice(400, None)


@pytest.fixture(scope="module")
def ranker() -> CStarRanker:
    return CStarMarginRanker(core=3, C=10.0, random_state=0).fit(SCENES.X[TRAIN], SCENES.Y[TRAIN])


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_all_labels_asked_of_a_truthful_person_gives_the_truth(ranker: CStarRanker, policy: MarginRule) -> None:
    result = simulate(ranker, SCENES.X[TEST], SCENES.Y[TEST], policy, Truthful(), (0, 12), random_state=0)
    assert np.nanmin(result.per_list[:, 1]) == 1.0


def test_without_questions_it_is_the_rankers_score(ranker: CStarRanker) -> None:
    result = simulate(ranker, SCENES.X[TEST], SCENES.Y[TEST], questions=(0,))
    assert result.mean()[0] == pytest.approx(ranker.score(SCENES.X[TEST], SCENES.Y[TEST]))
    assert result.labels.shape == (500, 0)


def test_questions_follow_next_question(ranker: CStarRanker) -> None:
    X, Y = SCENES.X[TEST][:50], SCENES.Y[TEST][:50]
    result = simulate(ranker, X, Y, questions=(0, 2))
    known = np.full(Y.shape, -1)
    k = Y.sum(axis=1)
    for count in range(2):
        labels = result.labels[:, count]
        finite = labels >= 0
        assert np.array_equal(ranker.next_question(X, known, k)[finite], labels[finite])
        known[finite, labels[finite]] = Y[finite, labels[finite]]


def test_no_label_is_asked_twice_even_if_nobody_knows(ranker: CStarRanker) -> None:
    result = simulate(ranker, SCENES.X[TEST], SCENES.Y[TEST], RandomQuestion(), Unsure(1.0), (0, 5, 12), random_state=0)
    for labels in result.labels:
        assert len(set(labels[labels >= 0])) == (labels >= 0).sum()
    assert np.array_equal(result.per_list[:, 0], result.per_list[:, 2], equal_nan=True)


def test_the_margin_rule_beats_random_questions(ranker: CStarRanker) -> None:
    compared = compare_policies(ranker, SCENES.X[TEST], SCENES.Y[TEST], questions=(0, 1, 3), random_state=0)
    means = compared.table()
    assert means["margin rule"][0] == means["random"][0]
    assert means["margin rule"][3] > means["random"][3]
    svg = compared.plot()
    assert svg.startswith("<svg")
    assert "margin rule" in svg


def test_noise_costs_precision(ranker: CStarRanker) -> None:
    X, Y = SCENES.X[TEST], SCENES.Y[TEST]
    clean = simulate(ranker, X, Y, questions=(4,)).mean()[4]
    noisy = simulate(ranker, X, Y, annotator=Noisy(0.3), questions=(4,), random_state=0).mean()[4]
    assert noisy < clean


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.floats(0, 1), st.floats(0, 1))
def test_any_annotator_is_survived(seed: int, flip: float, rate: float) -> None:
    rng = np.random.default_rng(seed)
    n_labels = int(rng.integers(2, 7))
    Y = (rng.random((6, n_labels)) < rng.random()).astype(int)  # rows with no and with all labels too
    result = simulate(
        GivenScores(n_labels),
        rng.normal(size=Y.shape),
        Y,
        [MarginRule(), RandomQuestion()][seed % 2],
        Noisy(flip, Unsure(rate)),
        tuple(range(n_labels + 2)),
        random_state=seed,
    )
    empty = Y.sum(axis=1) == 0
    assert np.isnan(result.per_list[empty]).all()
    values = result.per_list[~empty]
    assert ((values >= 0) & (values <= 1)).all()


def test_the_same_seed_plays_the_same_game(ranker: CStarRanker) -> None:
    X, Y = SCENES.X[TEST], SCENES.Y[TEST]
    one, two = (simulate(ranker, X, Y, RandomQuestion(), Noisy(0.2), (5,), random_state=7) for _ in range(2))
    assert np.array_equal(one.labels, two.labels)
    assert np.array_equal(one.per_list, two.per_list, equal_nan=True)


@pytest.mark.parametrize("questions", [(), (1, 1), (5, 1), (-1, 0)])
def test_numbers_of_questions_must_grow(questions: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="questions: expected growing numbers"):
        simulate(GivenScores(2), [[0.0, 1.0]], [[0, 1]], questions=questions)


def test_confidence_is_calibrated_on_new_rows() -> None:
    scenes = datasets.make_label_scenes(4000, n_labels=12, random_state=5)
    ranker = CStarMarginRanker(core=3, C=10.0, random_state=0).fit(scenes.X[:500], scenes.Y[:500])
    validation, test = slice(500, 2000), slice(2000, None)
    sure = calibrate(ranker, scenes.X[validation], scenes.Y[validation], k=4).of(ranker, scenes.X[test], k=4)
    truth = scenes.Y[test]
    edges = np.linspace(0, 1, 6)
    for low, high in pairwise(edges):
        inside = (sure >= low) & (sure < high)
        if inside.sum() > 300:
            assert truth[inside].mean() == pytest.approx(sure[inside].mean(), abs=0.05)
    assert sure[truth == 1].mean() > sure[truth == 0].mean() + 0.2


def test_confidence_knows_what_is_known() -> None:
    scores = np.random.default_rng(0).normal(size=(50, 4))
    Y = (scores > 0).astype(int)
    Y[:, 0] = 1
    Y[:, 1] = 0
    ranker = GivenScores(4)
    known = np.full((50, 4), -1)
    known[:, 2], known[:, 3] = 1, 0
    sure = calibrate(ranker, scores, Y).of(ranker, scores, k=2, known=known)
    assert (sure[:, 2] == 1.0).all()
    assert (sure[:, 3] == 0.0).all()
    assert ((sure >= 0) & (sure <= 1)).all()


def test_confidence_needs_an_open_label() -> None:
    with pytest.raises(ValueError, match="expected a row with some but not all labels relevant"):
        calibrate(GivenScores(2), [[0.0, 1.0]], [[1, 1]])
