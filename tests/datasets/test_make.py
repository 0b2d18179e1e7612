"""Generators: the best rankings they claim, against brute force; the same seed, the same data."""

from dataclasses import fields
from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from slatewise import datasets
from slatewise.datasets import (
    make_interacting_lists,
    make_label_scenes,
    make_queries,
    make_sessions,
    make_silhouettes,
)

MAKERS = [make_interacting_lists, make_label_scenes, make_queries, make_sessions, make_silhouettes]


@pytest.mark.parametrize("make", MAKERS)
def test_a_seed_fixes_everything(make):
    first, again, other = make(random_state=3), make(random_state=np.random.default_rng(3)), make(random_state=4)
    differs = False
    for field in fields(first):
        values = [getattr(made, field.name) for made in (first, again, other)]
        if isinstance(values[0], np.ndarray):
            np.testing.assert_array_equal(values[0], values[1])
            differs = differs or not np.array_equal(values[0], values[2])
    if make is make_sessions:
        np.testing.assert_array_equal(first.sessions.items, again.sessions.items)
        differs = not np.array_equal(first.sessions.items, other.sessions.items)
    assert differs


def test_every_maker_is_public():
    assert {make.__name__ for make in MAKERS} == {name for name in datasets.__all__ if name.startswith("make_")}


# Interacting lists


def f_of(s, pair, core, items):
    """The formula, term by term."""
    total = sum(s[i] for i in items)
    for i, j in combinations(items, 2):
        if i in core:
            total += pair[core.index(i), j]
        elif j in core:
            total += pair[core.index(j), i]
    return total


@pytest.mark.parametrize(("n_items", "k", "n_core"), [(7, 3, 2), (6, 1, 3), (6, 6, 2), (7, 4, 0), (5, 2, 5), (8, 5, 4)])
def test_no_selection_beats_the_best(n_items, k, n_core):
    made = make_interacting_lists(12, n_items, k, n_core=n_core, random_state=n_items + k)
    core = made.core.tolist()
    for s, best, best_score in zip(made.s, made.best, made.best_score, strict=True):
        scores = {items: f_of(s, made.pair, core, items) for items in combinations(range(n_items), k)}
        assert best_score == pytest.approx(max(scores.values()), abs=1e-10)
        assert max(scores, key=scores.__getitem__) == tuple(best)
    np.testing.assert_allclose(made.score(made.best), made.best_score)


def test_no_random_change_improves_a_long_list():
    made = make_interacting_lists(50, 200, 10, n_core=6, random_state=0)
    rng = np.random.default_rng(1)
    for _ in range(200):
        changed = made.best.copy()
        for row in changed:
            swaps = rng.integers(1, 4)
            outside = rng.choice(np.setdiff1d(np.arange(200), row), swaps, replace=False)
            row[rng.choice(10, swaps, replace=False)] = outside
        assert (made.score(changed) <= made.best_score + 1e-9).all()


def test_interactions_decide():
    made = make_interacting_lists(300, random_state=0)
    independent = np.sort(np.argsort(-made.s, axis=1)[:, : made.k], axis=1)
    assert (independent != made.best).any(axis=1).mean() > 0.9
    without = make_interacting_lists(300, strength=0.0, random_state=0)
    np.testing.assert_array_equal(np.sort(np.argsort(-without.s, axis=1)[:, : without.k], axis=1), without.best)
    np.testing.assert_array_equal(made.Y.sum(axis=1), made.k)


# Label scenes


def test_marginals_are_sums_over_all_tag_sets():
    made = make_label_scenes(4, 6, 3, n_features=2, n_groups=1, group_size=3, random_state=0)
    tag_sets = np.array(list(product([0, 1], repeat=6)))
    for row in range(4):
        joint = made.joint(tag_sets, np.repeat(made.X[row : row + 1], len(tag_sets), axis=0))
        assert joint.sum() == pytest.approx(1)
        np.testing.assert_allclose(joint @ tag_sets, made.marginals()[row], atol=1e-12)
        assert joint[tag_sets[:, :3].sum(axis=1) != 1].sum() == 0
        expected_hits = {order: np.cumsum(joint @ tag_sets[:, list(order)]) for order in permutations(range(6), 6)}
        best = expected_hits[tuple(made.best_ranking()[row])]
        assert all((hits <= best + 1e-12).all() for hits in expected_hits.values())


def test_the_posterior_is_bayes_rule():
    made = make_label_scenes(5, 4, 3, n_features=2, n_groups=0, noise=0.7, random_state=1)
    for x, posterior in zip(made.X, made.posterior(), strict=True):
        density = [p * np.exp(-((x - m) @ (x - m)) / (2 * 0.49)) for p, m in zip(made.prior, made.means, strict=True)]
        np.testing.assert_allclose(posterior, np.array(density) / sum(density))


def test_tags_follow_the_law_they_state():
    made = make_label_scenes(60_000, 9, 3, n_groups=2, group_size=3, random_state=2)
    for group in made.groups:
        assert (made.Y[:, group].sum(axis=1) == 1).all()
    for scene in range(3):
        inside = made.scene == scene
        np.testing.assert_allclose(made.Y[inside].mean(axis=0), made.tag_given_scene[scene], atol=0.02)
    np.testing.assert_allclose(np.bincount(made.scene) / 60_000, made.prior, atol=0.01)
    np.testing.assert_allclose(made.marginals().mean(axis=0), made.Y.mean(axis=0), atol=0.01)


def test_tags_of_a_scene_come_together():
    made = make_label_scenes(20_000, random_state=0)
    correlation = np.corrcoef(made.Y.T)
    off_diagonal = correlation[~np.eye(len(correlation), dtype=bool)]
    assert off_diagonal.max() > 0.3
    assert off_diagonal.min() < -0.3


# Queries


def test_without_noise_the_best_ranking_is_sorted_by_grade():
    made = make_queries(60, random_state=0)
    order = made.best_ranking()
    assert sorted(order.tolist()) == list(range(len(made.y)))
    assert (np.diff(made.qid[order]) >= 0).all()
    same = np.diff(made.qid[order]) == 0
    assert (np.diff(made.y[order])[same] <= 0).all()


def test_with_noise_no_scorer_at_hand_does_better():
    made = make_queries(400, noise=0.5, random_state=0)
    gain, rng = 2.0**made.y - 1, np.random.default_rng(0)
    start = np.searchsorted(made.qid, made.qid)

    def dcg(scores):
        order = np.lexsort((-scores, made.qid))
        return (gain[order] / np.log2(np.arange(len(order)) - start[order] + 2)).sum()

    best = dcg(made.scores)
    assert best < dcg(made.y.astype(float))
    for scale in (0.1, 0.5, 2.0):
        assert dcg(made.scores + scale * rng.normal(size=len(made.scores))) < best
    linear = np.linalg.lstsq(made.X, made.scores, rcond=None)[0]
    assert dcg(made.X @ linear) < best


def test_queries_have_the_shape_asked_for():
    made = make_queries(30, 4, shortest=2, longest=6, n_products=0, random_state=0)
    lengths = np.bincount(made.qid)
    assert (len(lengths), lengths.min(), lengths.max()) == (30, 2, 6)
    assert made.X.shape == (len(made.y), 4)
    assert 0 <= made.X.min() <= made.X.max() <= 1
    assert set(made.y.tolist()) <= {0, 1, 2, 3, 4}


# Sessions


@pytest.mark.parametrize(("n_items", "n_clusters"), [(12, 3), (7, 2), (5, 5), (6, 1), (1, 1)])
def test_the_likeliest_next_items_are_the_likeliest(n_items, n_clusters):
    made = make_sessions(5, n_items, n_clusters=n_clusters, random_state=0)
    every = np.arange(n_items)
    table = made.probability(every[:, None], every[None, :])
    np.testing.assert_allclose(table.sum(axis=1), 1)
    for k in range(1, n_items + 1):
        best = made.best_next(every, k)
        assert all(len(set(row.tolist())) == k for row in best)
        np.testing.assert_allclose(np.take_along_axis(table, best, axis=1), -np.sort(-table, axis=1)[:, :k])


def test_sessions_follow_the_law_they_state():
    made = make_sessions(60_000, 8, n_clusters=3, random_state=0)
    pairs = made.sessions.pairs()
    counts = np.zeros((8, 8))
    np.add.at(counts, (pairs.queries, pairs.items), 1)
    every = np.arange(8)
    seen = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(seen, made.probability(every[:, None], every[None, :]), atol=0.02)
    first = np.bincount(made.sessions.items[made.sessions.offsets[:-1]], minlength=8) / 60_000
    np.testing.assert_allclose(first, made.popularity.probability(every, 8), atol=0.01)
    lengths = np.diff(made.sessions.offsets)
    assert (lengths.min(), lengths.max()) == (2, 50)
    assert lengths.mean() == pytest.approx(6, abs=0.1)


def test_many_items_cost_no_memory_of_their_own():
    made = make_sessions(10, 10_000_000, n_clusters=1000, random_state=0)
    assert made.sessions.items.max() < 10_000_000
    assert made.best_next(made.sessions.items, 5).shape == (len(made.sessions.items), 5)


def test_no_sessions_is_an_empty_record():
    assert len(make_sessions(0, random_state=0).sessions) == 0


# Silhouettes


def test_undoing_the_shear_finds_the_matches():
    made = make_silhouettes(15, 25, random_state=0)
    undone = made.target @ np.linalg.inv(made.shear).transpose(0, 2, 1)
    for source, target, match in zip(made.source, undone, made.matches, strict=True):
        cost = ((source[:, None] - target[None]) ** 2).sum(axis=2)
        rows, found = linear_sum_assignment(cost)
        np.testing.assert_array_equal(found, match)
        assert cost[rows, match].max() < 1e-20
    assert (np.linalg.det(made.shear) == 1).all()


def test_outlines_turn_once_around_and_are_smooth():
    made = make_silhouettes(10, 200, random_state=0)
    angle = np.unwrap(np.arctan2(made.source[:, :, 1], made.source[:, :, 0]), axis=1)
    assert (np.diff(angle, axis=1) > 0).all()
    steps = np.linalg.norm(np.diff(made.source, axis=1, append=made.source[:, :1]), axis=2)
    assert steps.max() < 0.5 * np.linalg.norm(made.source, axis=2).max()


def test_noise_moves_the_target_only():
    clean, noisy = (make_silhouettes(5, 10, noise=noise, random_state=0) for noise in (0.0, 0.1))
    np.testing.assert_array_equal(clean.source, noisy.source)
    assert 0.05 < (clean.target - noisy.target).std() < 0.15


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_interacting_lists(n_items=3, k=4), "k: expected a number from 1 to n_items = 3, found 4"),
        (lambda: make_interacting_lists(n_core=13), "n_core: expected a number from 0 to 12, found 13"),
        (lambda: make_label_scenes(n_labels=5), "n_groups: expected n_groups \\* group_size <= n_labels = 5, found 6"),
        (lambda: make_label_scenes(noise=0), "noise > 0"),
        (lambda: make_queries(shortest=3, longest=2), "shortest: expected 1 <= shortest <= longest"),
        (lambda: make_queries(n_queries=0), "n_queries"),
        (lambda: make_queries(noise=-1), "noise: expected"),
        (lambda: make_sessions(n_items=3), "n_clusters: expected a number from 1 to n_items = 3, found 10"),
        (lambda: make_sessions(follow=0.8), "follow, stay: expected"),
        (lambda: make_sessions(mean_length=1), "mean_length: expected a number from 2"),
        (lambda: make_sessions(exponent=1.0), "exponent: expected a number > 1"),
        (lambda: make_sessions(random_state=0).best_next([0], 0), "k: expected a number from 1 to 200, found 0"),
        (lambda: make_silhouettes(n_points=2), "n_points: expected at least 3"),
        (lambda: make_silhouettes(noise=-1), "noise: expected"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
