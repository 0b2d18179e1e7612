"""Sums over all subsets of the labels, and decisions by them, against enumeration of every subset."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import logsumexp
from tests.cstar.inference.test_best_set_exact import KINDS, set_scores, small_model

from slatewise import inference
from slatewise.core.running.executor import Executor
from slatewise.cstar.inference.any_size import (
    SubsetRows,
    core_settings,
    row_information,
    subset_odds,
    subset_scores,
    subset_sums,
)
from slatewise.cstar.inference.decisions import expected_count_sets, f1_sets, hamming_sets, most_probable_sets
from slatewise.cstar.kernels.subset_layout import SubsetPair
from slatewise.cstar.kernels.subset_sizes import counts_of_row, sizes_of_row

ROWS = 40


def every_set(n_labels):
    """(2^N, N) 0/1."""
    return ((np.arange(1 << n_labels)[:, None] >> np.arange(n_labels)) & 1).astype(float)


def small_rows(rng, n_labels, kind, scale=1.0):
    """Scores, and in half of the rows some labels that are known."""
    s = rng.normal(size=(ROWS, n_labels))
    s = np.round(s) if kind == "whole" else s
    is_known = rng.random(s.shape) < np.where(np.arange(ROWS) % 2, rng.random(ROWS), 0.0)[:, None]
    return scale * s, np.where(is_known, rng.integers(0, 2, s.shape), -1).astype(np.int8)


def instances(kind, seed, largest):
    """Rows of every number of labels up to ``largest``, with log-probabilities (rows, sets) up to log Z of all sets."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    for n_labels in range(1, largest + 1):
        pair, core = small_model(rng, n_labels, rng.integers(min(n_labels, 6) + 1), kind)
        s, known = small_rows(rng, n_labels, kind)
        sets = every_set(n_labels)
        yield s, pair, core, known, sets, possible(s, pair, core, known, sets)


def possible(s, pair, core, known, sets):
    """f of every row and set, -inf where a set does not agree with what is known."""
    broken = (known == 1) @ (1 - sets).T + (known == 0) @ sets.T
    return np.where(broken == 0, set_scores(s, pair, core, sets), -np.inf)


def chance_of(scores):
    return np.exp(scores - logsumexp(scores, axis=1, keepdims=True))


def entropy(table):
    """Of each distribution in the last axis."""
    return -(table * np.log(np.where(table > 0, table, 1.0))).sum(axis=-1)


@pytest.mark.parametrize("kind", KINDS)
def test_sums_over_all_subsets(kind):
    """400 rows a kind: 2,000, and in half of them given what is known."""
    for s, pair, core, known, sets, scores in instances(kind, 0, 10):
        rows, weight = SubsetRows.of(s, pair, core, known), np.linspace(0.5, 2.0, len(s))
        chance = chance_of(scores)
        found, odds = subset_sums(rows, weight), subset_odds(rows)
        for log_z in (found.log_z, odds.log_z, inference.subset_log_partition(s, pair, core, known, 1)):
            np.testing.assert_allclose(log_z, logsumexp(scores, axis=1), rtol=1e-12, atol=1e-12)
        inside, outside = chance @ sets, chance @ (1 - sets)
        np.testing.assert_allclose(found.item, inside, rtol=1e-11, atol=1e-15)
        np.testing.assert_allclose(inference.subset_marginals(s, pair, core, known), inside, rtol=1e-11, atol=1e-15)
        for row, c in enumerate(core):
            together = weight @ chance @ (sets * sets[:, [c]])
            together[core[: row + 1]] = 0.0  # their pairs stand in the rows above
            np.testing.assert_allclose(found.joint[row], together, rtol=1e-11, atol=1e-14)
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(odds.log_odds, np.log(inside / outside), atol=1e-11)
        np.testing.assert_array_equal(np.isinf(odds.log_odds), known >= 0)


@pytest.mark.parametrize("kind", KINDS)
def test_decisions(kind):
    """400 rows a kind: 2,000."""
    for s, pair, core, known, sets, scores in instances(kind, 1, 10):
        rows, chance = SubsetRows.of(s, pair, core, known), chance_of(scores)
        best = most_probable_sets(rows)
        np.testing.assert_allclose(best.score, scores.max(axis=1), rtol=1e-13, atol=1e-13)
        own = possible(s, pair, core, known, best.chosen.astype(float))
        np.testing.assert_allclose(np.diagonal(own), scores.max(axis=1), rtol=1e-13, atol=1e-13)
        np.testing.assert_array_equal(
            subset_scores(s, rows.pair, best.chosen.astype(float)).round(9), best.score.round(9)
        )
        sizes = sets.sum(axis=1)
        with np.errstate(invalid="ignore"):
            f1 = 2.0 * (sets @ sets.T) / (sizes[:, None] + sizes)  # of a predicted set and a true one
        f1[0, 0] = 1.0
        expected, found = chance @ f1.T, f1_sets(rows)
        np.testing.assert_allclose(found.score, expected.max(axis=1), atol=1e-11)
        place = found.chosen @ (1 << np.arange(s.shape[1]))
        np.testing.assert_allclose(expected[np.arange(len(s)), place], expected.max(axis=1), atol=1e-11)
        wrong = chance @ (sets @ (1 - sets).T + (1 - sets) @ sets.T)
        chosen = hamming_sets(rows) @ (1 << np.arange(s.shape[1]))
        np.testing.assert_allclose(wrong[np.arange(len(s)), chosen], wrong.min(axis=1), atol=1e-11)
        for decided in (best.chosen, found.chosen, hamming_sets(rows)):
            assert ((known < 0) | (known == decided)).all()
        count = expected_count_sets(rows)
        assert (np.abs(count.sum(axis=1) - chance @ sizes) <= 0.5 + 1e-9).all()
        marginal = chance @ sets
        least, most = np.where(count, marginal, 1.0).min(axis=1), np.where(count, 0.0, marginal).max(axis=1)
        assert (least >= most - 1e-12).all()


def sizes_of(star, settings, row):
    """How likely sizes are, and with each label, the core last."""
    kind, n_core = settings.terms.kind[row], star.outer.shape[1]
    counts = counts_of_row(star, settings.terms, row, settings.chance[row])
    return sizes_of_row(kind, n_core, *counts, np.arange(len(kind)))


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_with_each_label(kind):
    """The kernel may hold more sizes than there are."""
    for s, pair, core, known, sets, scores in instances(kind, 2, 10):
        rows, chance = SubsetRows.of(s, pair, core, known), chance_of(scores)
        star = SubsetPair.of(rows.pair.arrays)
        found, place = core_settings(star, rows), np.concatenate([rows.pair.arrays.rest, rows.pair.arrays.core])
        has_size = sets.sum(axis=1)[:, None] == np.arange(s.shape[1] + 8)
        total = inference.subset_sizes(s, pair, core, known)
        np.testing.assert_allclose(total, (chance @ has_size)[:, : total.shape[1]], atol=1e-13)
        for row in range(len(s)):
            size, joint = sizes_of(star, found, row)
            np.testing.assert_allclose(size, (chance[row] @ has_size)[: len(size)], atol=1e-12)
            together = (chance[row][:, None] * has_size).T @ sets
            np.testing.assert_allclose(joint[:, : s.shape[1]], together[: len(size), place], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_information(kind):
    for s, pair, core, known, sets, scores in instances(kind, 3, 10):
        chance = chance_of(scores)
        found = row_information(SubsetRows.of(s, pair, core, known))
        np.testing.assert_allclose(found.row, entropy(chance), atol=1e-11)
        marginal = chance @ sets
        np.testing.assert_allclose(found.label, entropy(np.stack([marginal, 1 - marginal], axis=-1)), atol=1e-11)
        setting = sets[:, core] @ (1 << np.arange(len(core)))
        in_setting = (setting[:, None] == np.arange(1 << len(core))).astype(float)
        both = np.stack([chance @ (sets[:, [i]] * in_setting) for i in range(s.shape[1])], axis=1)
        apart = np.stack([chance @ ((1 - sets[:, [i]]) * in_setting) for i in range(s.shape[1])], axis=1)
        with_core = entropy(np.concatenate([both, apart], axis=-1))
        shared = found.label + entropy(chance @ in_setting)[:, None] - with_core
        np.testing.assert_allclose(found.shared, shared, atol=1e-11)


def test_the_gradient_with_missing_labels_is_that_of_finite_differences():
    rng = np.random.default_rng(4)
    core, n_labels = np.array([5, 0, 3]), 7
    s, known = rng.normal(size=(4, n_labels)), rng.integers(-1, 2, (4, n_labels)).astype(np.int8)
    known[0] = -1
    weight = rng.random(4)
    flags = np.ones((3, n_labels), dtype=bool)
    for row in range(3):
        flags[row, core[: row + 1]] = False  # a pair of core labels stands once

    def log_z(params):
        scores, G = params[: s.size].reshape(s.shape), np.where(flags, params[s.size :].reshape(3, n_labels), 0.0)
        G[:, core] += G[:, core].T
        return weight @ inference.subset_log_partition(scores, G, core, known, 1)

    point = np.concatenate([s.ravel(), (rng.normal(size=(3, n_labels)) * flags).ravel()])
    G = point[s.size :].reshape(3, n_labels).copy()
    G[:, core] += G[:, core].T
    found = subset_sums(SubsetRows.of(s, G, core, known), weight)
    gradient = np.concatenate([(weight[:, None] * found.item).ravel(), found.joint.ravel()])
    np.testing.assert_allclose(gradient, approx_fprime(point, log_z, 1e-6), atol=1e-6)


@pytest.mark.parametrize("scale", [40.0, 300.0, 700.0, 3000.0, 1e5])
def test_extreme_scores(scale):
    """Marginals vanish; log-odds stay finite and right, also of labels that the core turns from sure to impossible."""
    rng = np.random.default_rng(int(scale))
    for n_labels in np.tile(np.arange(1, 8), 2):
        pair, core = small_model(rng, n_labels, rng.integers(min(n_labels, 4) + 1), "real")
        pair *= rng.choice([1.0, scale], pair.shape)
        pair[:, core] = np.triu(pair[:, core], 1) + np.triu(pair[:, core], 1).T
        s, known = small_rows(rng, n_labels, "real")
        s *= rng.choice([1.0, scale], s.shape)
        sets = every_set(n_labels)
        scores = possible(s, pair, core, known, sets)
        found, rows = subset_odds(SubsetRows.of(s, pair, core, known)), SubsetRows.of(s, pair, core, known)
        np.testing.assert_allclose(found.log_z, logsumexp(scores, axis=1), rtol=1e-12, atol=1e-10)
        with np.errstate(divide="ignore"):
            inside = logsumexp(np.where(sets.T > 0, scores[:, None, :], -np.inf), axis=2)
            outside = logsumexp(np.where(sets.T == 0, scores[:, None, :], -np.inf), axis=2)
        np.testing.assert_allclose(found.log_odds, inside - outside, rtol=1e-10, atol=1e-9)
        assert np.isfinite(found.log_odds[known < 0]).all()
        chance = chance_of(scores)
        np.testing.assert_allclose(subset_sums(rows, np.ones(len(s))).item, chance @ sets, atol=1e-9)
        np.testing.assert_allclose(most_probable_sets(rows).score, scores.max(axis=1), rtol=1e-13, atol=1e-9)
        np.testing.assert_allclose(row_information(rows).row, entropy(chance), atol=1e-8)
        assert np.isfinite(f1_sets(rows).score).all()


def test_huge_scores_do_not_swallow_the_others():
    """Beside a label with 1e20 the others are as without it, whether it is in the core or not."""
    pair = np.array([[0.0, 1.0, -2.0, 0.5]])
    for sure in (1, 2, 3):
        for sign in (-1, 1):
            s = np.array([0.3, -0.2, 0.1, 0.4])
            s[sure] = sign * 1e20
            known = np.full(4, -1)
            known[sure] = sign > 0
            with_known = inference.subset_log_odds(s, pair, [0], known)[0]
            without = inference.subset_log_odds(s, pair, [0])[0]
            others = np.arange(4) != sure
            np.testing.assert_allclose(without[others], with_known[others], rtol=1e-12)
            assert without[sure] == sign * 1e20
    s[0] = 1e20
    np.testing.assert_allclose(
        inference.subset_log_odds(s, pair, [0])[0, 1:], inference.subset_log_odds(s, pair, [0], [1, -1, -1, -1])[0, 1:]
    )


def test_many_labels_against_plain_sums():
    """Enough labels that products of (1 + x) have to be taken apart, and sizes cut off."""
    rng = np.random.default_rng(5)
    n_labels, core = 600, np.array([17, 3, 401])
    s, pair = rng.normal(-2.0, 4.0, (2, n_labels)), rng.normal(size=(3, n_labels))
    pair[:, core] = np.triu(pair[:, core], 1) + np.triu(pair[:, core], 1).T
    settings, rest = every_set(3), np.setdiff1d(np.arange(n_labels), core)
    among = 0.5 * np.einsum("za,ab,zb->z", settings, pair[:, core], settings)
    u = s[:, None, rest] + settings @ pair[:, rest]
    weights = s[:, core] @ settings.T + among + np.logaddexp(0.0, u).sum(axis=2)
    log_z = logsumexp(weights, axis=1)
    rows = SubsetRows.of(s, pair, core)
    found = subset_sums(rows, np.ones(2))
    np.testing.assert_allclose(found.log_z, log_z, rtol=1e-14)
    chance, inside = np.exp(weights - log_z[:, None]), 1.0 / (1.0 + np.exp(-u))
    np.testing.assert_allclose(found.item[:, rest], np.einsum("nz,nzi->ni", chance, inside), rtol=1e-12)
    np.testing.assert_allclose(
        found.joint[:, rest], np.einsum("nz,zc,nzi->ci", chance, settings, inside), rtol=1e-12, atol=1e-15
    )
    size = np.zeros((2, n_labels + 1))
    for row, setting in np.ndindex(chance.shape):
        number = np.ones(1)
        for q in inside[row, setting]:
            number = np.convolve(number, [1 - q, q])
        first = int(settings[setting].sum())
        size[row, first : first + len(number)] += chance[row, setting] * number
    sizes = inference.subset_sizes(s, pair, core)
    np.testing.assert_allclose(sizes, size[:, : sizes.shape[1]], atol=1e-13)
    assert size[:, sizes.shape[1] :].sum() < 1e-12
    assert sizes.shape[1] < n_labels / 2
    star = SubsetPair.of(rows.pair.arrays)
    settings = core_settings(star, rows)
    for row in range(2):
        total, joint = sizes_of(star, settings, row)
        np.testing.assert_allclose(joint.sum(axis=0)[:n_labels], found.item[row, np.append(rest, core)], atol=1e-11)
        np.testing.assert_allclose(joint.sum(axis=1), np.arange(len(total)) * total, atol=1e-9)


@pytest.mark.parametrize(("low", "spread"), [(-6.0, 2.0), (-5.0, 0.1), (-8.0, 0.0), (-2.0, 1.0)])
def test_sets_for_f1_among_many_labels(low, spread):
    """Found among the likeliest few, and proven, or among more: the same as among all."""
    rng = np.random.default_rng(9)
    pair, core = small_model(rng, 700, 3, "real")
    s, known = rng.normal(low, spread, (4, 700)), np.full((4, 700), -1, dtype=np.int8)
    known[1, 3:9], known[2, 100:103] = 0, 1
    rows = SubsetRows.of(s, pair, core, known)
    star = SubsetPair.of(rows.pair.arrays)
    found, settings = f1_sets(rows), core_settings(star, rows)
    place = np.concatenate([rows.pair.arrays.rest, rows.pair.arrays.core])
    for row in range(4):
        size, joint = sizes_of(star, settings, row)
        r, n = np.arange(1, 701)[:, None], np.arange(1, len(size))
        ranked = -np.sort(-(2.0 / (r + n) @ joint[1:, :700]), axis=1)
        expected = np.cumsum(ranked, axis=1).diagonal()
        assert found.score[row] == pytest.approx(max(size[0], expected.max()), abs=1e-12)
        chosen = found.chosen[row][place]
        if chosen.any():
            own = 2.0 / (chosen.sum() + n) @ joint[1:, :700] @ chosen
            assert own == pytest.approx(found.score[row], abs=1e-12)


def test_twelve_core_labels():
    rng = np.random.default_rng(8)
    pair, core = small_model(rng, 13, 12, "real")
    s, known = rng.normal(-1.0, 1.0, (2, 13)), np.full((2, 13), -1)
    known[1, [2, 5, 7]] = 1, 0, 1
    scores, sets = possible(s, pair, core, known, every_set(13)), every_set(13)
    np.testing.assert_allclose(inference.subset_marginals(s, pair, core, known), chance_of(scores) @ sets, rtol=1e-11)
    np.testing.assert_allclose(inference.best_subset(s, pair, core, known).score, scores.max(axis=1))
    np.testing.assert_allclose(inference.subset_sizes(s, pair, core, known).sum(axis=1), 1.0, rtol=0, atol=1e-12)


def test_the_same_bits_with_one_and_two_threads():
    rng = np.random.default_rng(6)
    pair, core = small_model(rng, 30, 5, "real")
    s, known = rng.normal(size=(150, 30)), rng.integers(-1, 2, (150, 30))
    rows = SubsetRows.of(s, pair, core, known)
    one, two = ([*subset_sums(rows, np.ones(150), Executor(n)), *f1_sets(rows, Executor(n))] for n in (1, 2))
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one, two, strict=True))
    for name in ("subset_log_odds", "subset_sizes"):
        first, second = (getattr(inference, name)(s, pair, core, known, n) for n in (1, 2))
        assert first.tobytes() == second.tobytes()


def test_small_ends():
    """All known, no core, core only, one label, no rows, none."""
    pair = np.array([[0.0, 2.0], [2.0, 0.0]])
    assert inference.subset_log_partition([1.0, 3.0], pair, [0, 1], [1, 1]).tolist() == [6.0]
    assert inference.subset_log_odds([1.0, 3.0], pair, [0, 1], [1, 0]).tolist() == [[np.inf, -np.inf]]
    assert inference.subset_sizes([1.0, 3.0], pair, [0, 1], [1, 0]).tolist() == [[0.0, 1.0]]
    found = inference.f1_subset([1.0, 3.0], pair, [0, 1], [1, 0])
    assert found.chosen.tolist() == [[True, False]]
    assert found.score.tolist() == [1.0]
    assert inference.f1_subset([-50.0], np.empty((0, 1)), []).chosen.tolist() == [[False]]
    np.testing.assert_allclose(inference.subset_marginals([0.0], np.empty((0, 1)), []), 0.5)
    assert inference.subset_marginals(np.empty((0, 2)), pair, [0, 1]).shape == (0, 2)
    assert inference.best_subset(np.empty((1, 0)), np.empty((0, 0)), []).score.tolist() == [0.0]
    information = inference.subset_information([1.0, 3.0], pair, [0, 1], [1, 0])
    assert [part.tolist() for part in information] == [[[0.0, 0.0]], [[0.0, 0.0]], [0.0]]


def test_what_is_refused():
    pair = np.zeros((1, 3))
    with pytest.raises(ValueError, match="pair: expected 2 columns, as many as s has, found 3"):
        inference.subset_marginals([0.0, 0.0], pair, [0])
    with pytest.raises(ValueError, match=r"known: expected the shape of s, \(1, 3\), found \(1, 2\)"):
        inference.best_subset([0.0, 0.0, 0.0], pair, [0], [1, 0])
    with pytest.raises(ValueError, match="known: expected -1, 0 or 1, found 2 at row 0, item 1"):
        inference.f1_subset([0.0, 0.0, 0.0], pair, [0], [1, 2, -1])
    with pytest.raises(ValueError, match="core: expected at most 12 items to sum over all settings, found 13"):
        inference.subset_sizes(np.zeros(20), np.zeros((13, 20)), np.arange(13))
