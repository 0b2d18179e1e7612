"""What no model means but a caller may send: huge, tiny, complex and empty input. Refused by name, or right."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from slatewise import inference, losses, metrics

RNG = np.random.default_rng(0)


def star(n_items, n_core):
    G = np.triu(RNG.normal(size=(n_items, n_items)), 1)
    core = RNG.permutation(n_items)[:n_core]
    return (G + G.T)[core], core


def square(n):
    return RNG.normal(size=(n, n))


PAIR, CORE = star(8, 2)
LISTS = {"s": RNG.normal(size=(2, 8)), "pair": PAIR}
SLATES = {"s": RNG.normal(size=(2, 6)), "factors": RNG.normal(size=(6, 2)), "weights": np.array([1.0, 0.5, 0.2])}
LINEAR = {"s": RNG.normal(size=5), "c": np.arange(5.0)[::-1], "a": np.array([1.0, 1, 0, 0, 0]), "b": np.arange(5.0) % 2}
QUADRATIC = {"s": RNG.normal(size=5), "c": np.arange(5.0), "F": square(5), "D": np.triu(np.ones((5, 5)), 1)}
RELEVANCE, SCORES = np.array([[1.0, 0, 1, 0, 1], [0, 0, 1, 0, 1]]), RNG.normal(size=(2, 5))
CALLS = {
    "greedy_slates": (inference.greedy_slates, SLATES),
    "beam_slates": (inference.beam_slates, SLATES | {"listed": RNG.normal(size=(6, 2))}),
    "iterated_slates": (inference.iterated_slates, SLATES | {"listed": RNG.normal(size=(6, 2))}),
    "tied_log_sum": (
        lambda **given: inference.tied_log_sum(class_sizes=[1, 2, 3], **given),
        {"scores": RNG.normal(size=6), "class_values": np.array([2.0, 1, 0])},
    ),
    "with_unmatched": (inference.with_unmatched, {"log_weights": square(3), "unmatched": RNG.normal(size=3)}),
    "tied_permanent": (
        lambda **given: inference.tied_permanent(row_classes=[0, 0, 1], column_classes=[0, 1, 0], **given),
        {"log_weights": square(3)},
    ),
    "star_log_odds": (lambda **given: inference.star_log_odds(core=CORE, k=3, **given), LISTS),
    "star_max_marginals": (lambda **given: inference.star_max_marginals(core=CORE, k=3, **given), LISTS),
    "star_permutation": (
        lambda **given: inference.star_permutation(core=CORE, **given),
        {"s": RNG.normal(size=8), "c": np.arange(8.0), "pair": PAIR, "linear": square(8)},
    ),
    "precision loss": (losses.PrecisionLoss().augmented, {"scores": SCORES, "relevance": RELEVANCE}),
    "placement": (losses.PrecisionLoss().of_placement, {"placement": RELEVANCE, "relevance": RELEVANCE}),
    "bootstrap": (metrics.paired_bootstrap, {"a": RNG.random(6), "b": RNG.random(6)}),
    "randomisation": (metrics.randomisation_test, {"a": RNG.random(6), "b": RNG.random(6)}),
}
for name in ("auto", "subsets", "glynn", "candidates", "bethe"):
    weights = {"log_weights": square(7 if name == "glynn" else 4)}
    CALLS[f"permanent {name}"] = (lambda name=name, **given: inference.permanent(method=name, **given), weights)
CALLS["permanent rows"] = (inference.permanent, {"log_weights": RNG.normal(size=(2, 3, 5))})
for name in ("tables", "huber-law", "chain"):
    sample = lambda name=name, **given: inference.sample_matchings(n=3, random_state=0, method=name, **given)  # noqa: E731
    CALLS[f"samples {name}"] = (sample, {"log_weights": square(4)})
for name in ("auto", "counts", "assignment"):
    CALLS[f"linear {name}"] = (lambda name=name, **given: inference.linear_loss_ranking(method=name, **given), LINEAR)
for name in ("subsets", "enumeration", "faq"):
    CALLS[f"quadratic {name}"] = (
        lambda name=name, **given: inference.quadratic_ranking(method=name, **given),
        QUADRATIC,
    )
for name in ("log_partition", "log_odds", "marginals", "sizes", "information"):
    CALLS[f"subset_{name}"] = (
        lambda name=name, **given: getattr(inference, f"subset_{name}")(core=CORE, **given),
        LISTS,
    )
CALLS["best_subset"] = (lambda **given: inference.best_subset(core=CORE, **given), LISTS)
CALLS["f1_subset"] = (lambda **given: inference.f1_subset(core=CORE, **given), LISTS)
for name in ("enumerate", "branch"):
    CALLS[f"star {name}"] = (
        lambda name=name, **given: inference.star_top_k(core=CORE, k=3, method=name, **given),
        LISTS,
    )
for name in ("auc", "precision", "knn", "mrr", "ndcg", "map", "graded_ndcg"):
    violated = lambda name=name, **given: inference.most_violated(name, k=2, **given)  # noqa: E731
    CALLS[f"violated {name}"] = (violated, {"scores": SCORES[0], "relevance": RELEVANCE[0]})
for loss in (losses.DCGLoss(), losses.DCGLoss(gain="linear", normalised=False), losses.PrecisionLoss()):
    CALLS[f"{loss}"] = (loss.vectors, {"relevance": RELEVANCE[0]})
for measure in (metrics.NDCG(k=3), metrics.NDCG(gain="linear"), metrics.AP(), metrics.RR(), metrics.Precision(k=2)):
    CALLS[f"{measure}"] = (measure, {"relevance": RELEVANCE, "scores": SCORES})

HUGE = {
    "huge": lambda array: np.resize([1e300, -1e300, 1e200, -1e200, 1e154, 0.0, 1.0], array.shape),
    "all huge": lambda array: np.full(array.shape, 1e300),
    "the largest": lambda array: np.resize(np.finfo(np.float64).max * np.array([1.0, -1.0]), array.shape),
    "times 1e160": lambda array: array * 1e160,
    "at the bound": lambda array: array * (9e49 / np.abs(array).max()),
    "times 1e17": lambda array: array * 1e17,
    "far apart": lambda array: np.where(np.arange(array.size).reshape(array.shape) % 3 == 0, array, array * 1e40),
    "one outlier": lambda array: np.where(np.arange(array.size).reshape(array.shape) == 1, -1e40, array),
    "tiny": lambda array: array * 1e-310,
    "-inf": lambda array: np.where(np.arange(array.size).reshape(array.shape) % 4 == 0, -np.inf, array),
    "whole": lambda array: np.full(array.shape, 2**62),
    "flags": lambda array: array > 0,
    "empty": lambda array: array[:0],
    "one": lambda array: array[tuple(slice(0, 1) for _ in array.shape)],
    "ragged": lambda _: [[1.0], [1.0, 2.0]],
    "texts": lambda array: array.astype(np.str_),
    "nothing": lambda _: None,
}


def not_numbers(found):
    if isinstance(found, float | np.floating):
        return math.isnan(found)
    if isinstance(found, np.ndarray):
        return found.dtype.kind == "f" and bool(np.isnan(found).any())
    if dataclasses.is_dataclass(found):
        return any(not_numbers(getattr(found, field.name)) for field in dataclasses.fields(found))
    return isinstance(found, list | tuple) and any(map(not_numbers, found))


@pytest.mark.parametrize("name", CALLS)
def test_extreme_numbers_are_refused_by_name_or_give_numbers(name):
    function, given = CALLS[name]
    for argument, (kind, change) in itertools.product([*given, None], HUGE.items()):
        changed = {key: change(value) if argument in (key, None) else value for key, value in given.items()}
        refused, found = "", None
        try:
            found = function(**changed)
        except (ValueError, TypeError) as error:
            refused = str(error)
        named = ("k", "method", "class_sizes", "row_classes", "core", *given)
        assert not refused or refused.startswith(tuple(f"{key}{end}" for key in named for end in ":[")), (kind, refused)
        assert name == "samples chain" or not not_numbers(found), (kind, argument, found)  # a chain has no log Z


@pytest.mark.parametrize("name", CALLS)
def test_complex_numbers_are_refused_by_name(name):
    function, given = CALLS[name]
    for argument in given:
        for part in (0j, 1j):
            with pytest.raises(ValueError, match=f"^{argument}: expected .*, found dtype complex128"):
                function(**(given | {argument: given[argument] + part}))


def log_sum(values):
    """The logarithm of a sum of exponentials of exact numbers: their largest, and what the others add."""
    largest = max(values)
    return largest, [math.exp(float(value - largest)) for value in values]


def exact_matchings(w):
    """log Z and marginals from all matchings, sums taken exactly."""
    n_rows, n_columns = w.shape
    matchings = list(itertools.permutations(range(n_columns), n_rows))
    largest, shares = log_sum([sum((Fraction(w[i, j]) for i, j in enumerate(y)), Fraction(0)) for y in matchings])
    marginals = np.zeros(w.shape)
    for y, share in zip(matchings, shares, strict=True):
        marginals[np.arange(n_rows), y] += share / sum(shares)
    return float(largest) + math.log(sum(shares)), marginals


WHOLE = [0.0, 1.0, 2.0, 3.0]
"""Added to multiples of a power of two they stay exact, so even sums of huge numbers differ by what they should."""


@pytest.mark.parametrize("size", [2.0**30, 2.0**45, 2.0**50, 2.0**300, 2.0**900])
@pytest.mark.parametrize("case", ["3x3 subsets", "4x4 subsets", "3x4 rows", "4x4 candidates"])
def test_permanents_of_huge_weights_are_right(case, size):
    shape, method = tuple(int(n) for n in case[:3].split("x")), case[4:]
    rng = np.random.default_rng(3)
    for _ in range(5):
        w = rng.choice([-1.0, 0.0, 1.0], shape) * size + (rng.choice(WHOLE, shape) if size <= 2.0**50 else 0.0)
        log_z, marginals = exact_matchings(w)
        found = inference.permanent(w, method)
        assert found.log_z == pytest.approx(log_z, rel=1e-12, abs=1e-9)
        np.testing.assert_allclose(found.marginals, marginals, atol=1e-9)


@pytest.mark.parametrize("size", [2.0**30, 2.0**45, 2.0**100, 2.0**160])
def test_tied_sums_of_huge_scores_are_right(size):
    rng = np.random.default_rng(4)
    for _ in range(10):
        values = rng.permutation([4.0, 2.0, 1.0])
        sizes = [1, 2, 2]
        s = np.where(rng.random(5) < 0.4, rng.choice([-1.0, 1.0], 5) * size, rng.normal(size=5))
        classes = np.repeat(np.arange(3), sizes)
        rankings = list(itertools.permutations(range(5)))
        scores, weights = [Fraction(x) for x in s], [Fraction(values[r]) for r in classes]
        largest, shares = log_sum(
            [sum((scores[i] * c for i, c in zip(y, weights, strict=True)), Fraction(0)) for y in rankings]
        )
        marginals = np.zeros((5, 3))
        for y, share in zip(rankings, shares, strict=True):
            marginals[y, classes] += share / sum(shares)
        found = inference.tied_log_sum(s, sizes, values)
        assert found.log_z == pytest.approx(float(largest) + math.log(sum(shares)), rel=1e-12, abs=1e-9)
        np.testing.assert_allclose(found.marginals, marginals, atol=1e-9)


@pytest.mark.parametrize("size", [1e2, 1e4, 1e20, 1e45])
def test_log_odds_of_scores_far_apart_are_right(size):
    rng = np.random.default_rng(5)
    for _ in range(10):
        n_items, k = 6, int(rng.integers(1, 6))
        pair, core = star(n_items, 2)
        s = rng.normal(size=n_items) * np.where(rng.random(n_items) < 0.5, size, 1.0)
        G = np.zeros((n_items, n_items))
        G[core], G[:, core] = pair, pair.T
        lists = list(itertools.combinations(range(n_items), k))
        pairs = [sum((Fraction(G[i, j]) for i, j in itertools.combinations(items, 2)), Fraction(0)) for items in lists]
        totals = [sum((Fraction(s[i]) for i in items), Fraction(0)) for items in lists]
        _, shares = log_sum([a + b for a, b in zip(totals, pairs, strict=True)])
        chance = np.zeros(n_items)
        for items, share in zip(lists, shares, strict=True):
            chance[list(items)] += share / sum(shares)
        found = inference.star_log_odds(s, pair, core, k)[0]
        np.testing.assert_allclose(1 / (1 + np.exp(-found)), chance, atol=1e-9)


def test_sums_that_overflow_inside_are_refused_by_their_bound():
    weights = np.array([1e160, -1e160, 1e160])
    for call in (
        lambda: inference.linear_loss_ranking(weights, weights, [1, 0, 0], [1, 0, 1], "counts"),
        lambda: inference.quadratic_ranking(weights, weights, np.eye(3), np.eye(3)),
    ):
        with pytest.raises(ValueError, match=r"s: expected at most 1e\+50 in size, found 1e\+160 at 0"):
            call()
    with pytest.raises(ValueError, match=r"relevance: expected gains from 0 to 1e\+300, found inf"):
        losses.DCGLoss().vectors([2000.0, 1.0])
