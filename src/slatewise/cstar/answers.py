"""Predictors of a fitted c-star, by sets of k labels or by sets of any size, and explanations.

Both return how much each label belongs in (margins) and which labels to list. Sets of any size need no number of
labels: a given one only cuts lists, and no number of positive answers is too large.

An explanation splits the score of a label in the selection into its unary score and what each selected core label
added:

    share of label i  =  s_i + sum over selected core labels c != i of G_ci

A pair of two core labels shows in the share of both, though it counts once in the score of the selection.

The number of labels of a row is estimated by a ridge regression on the row's sorted label scores:

    count(x) = b . sort(s(x)) + b_0 ,    rounded and clipped to 1 .. N

Sorted scores say how many labels stand out; which ones does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core import rules
from slatewise.core.arrays import Bools, Bytes, Floats, Ints
from slatewise.core.running.executor import Executor
from slatewise.cstar.inference.any_size import SubsetRows, subset_log_odds, subset_odds
from slatewise.cstar.inference.best_set import best_first, margins
from slatewise.cstar.inference.decisions import expected_count_sets, f1_sets, hamming_sets, most_probable_sets
from slatewise.cstar.inference.fixed_size import log_odds, most_probable, star_log_odds
from slatewise.cstar.inference.model import Selection, StarLists, StarPair, check_known_fits, checked_counts
from slatewise.cstar.likelihood.fit import KnownCountTerms


class ScoredRows(NamedTuple):
    """Scored rows: label scores, pair terms, and what the caller knows of each row."""

    scores: Floats
    pair: StarPair
    k: ArrayLike | None = None
    """Not checked yet."""
    known: Bytes | None = None


class LabelLists(NamedTuple):
    """The listed labels of all rows, row after row, best first."""

    items: Ints
    scores: Floats
    counts: Ints


class Predictor(Protocol):
    """Makes margins and lists of scored rows."""

    def margins(self, rows: ScoredRows, executor: Executor) -> Floats:
        """Return how much each label belongs in, (n, N)."""
        ...

    def top_k(self, rows: ScoredRows, executor: Executor) -> LabelLists:
        """Return the labels to list, ``k_`` if k is not given."""
        ...

    def top_k_known_count(self, rows: ScoredRows, counts: Ints, executor: Executor) -> Ints:
        """Return the labels to list for rows whose number of labels is known, row after row."""
        ...


@dataclass(frozen=True, eq=False)
class FixedSizePredictor:
    """Predicts by the best sets of exactly k labels."""

    size: int
    """The default k."""

    def margins(self, rows: ScoredRows, executor: Executor) -> Floats:
        """In minus out, among sets of k labels."""
        return margins(self._lists(rows), executor)

    def top_k(self, rows: ScoredRows, executor: Executor) -> LabelLists:
        """The labels of the best set."""
        lists = self._lists(rows)
        best = best_first(lists, executor=executor)
        return LabelLists(*Selection.of(best.items, best.loss, lists.k), lists.k)

    def chosen(self, rows: ScoredRows, executor: Executor) -> Bools:
        """The labels of the best set, (n, N)."""
        return _flags(self.top_k(rows, executor), rows.scores.shape)

    def top_k_known_count(self, rows: ScoredRows, counts: Ints, executor: Executor) -> Ints:
        """The labels of the best set."""
        return self.top_k(rows._replace(k=counts), executor).items

    def _lists(self, rows: ScoredRows) -> StarLists:
        counts = checked_counts(self.size if rows.k is None else rows.k, rows.scores.shape)
        check_known_fits(rows.known, counts)
        return StarLists(rows.scores, rows.pair, counts, rows.known)


DECISIONS: Mapping[str, Callable[[SubsetRows, Executor], Bools]] = {
    "f1": lambda rows, executor: f1_sets(rows, executor).chosen,
    "subset": lambda rows, executor: most_probable_sets(rows, executor).chosen,
    "hamming": hamming_sets,
    "count": expected_count_sets,
}
_DECISION = rules.one_of(*DECISIONS)


@dataclass(frozen=True, eq=False)
class AnySizePredictor:
    """Predicts by sets of any size."""

    size: int
    """The default number of labels to list."""
    one_class: bool
    """Whether exactly one label applies to every row: one class per row."""
    known_count_terms: Floats | None = None
    """Rows of :class:`slatewise.cstar.likelihood.fit.KnownCountTerms`; None: the terms of sets of any size."""

    def margins(self, rows: ScoredRows, executor: Executor) -> Floats:
        """Log-odds given the known labels, and given k if that is known."""
        known = rows.known
        if rows.k is None and not self.one_class:
            return subset_odds(SubsetRows(rows.scores, rows.pair, known), executor).log_odds
        counts = checked_counts(1 if rows.k is None else rows.k, rows.scores.shape)
        if rows.k is None and known is not None:  # known labels may contradict one class: then as many as they allow
            counts = np.clip(counts, (known == 1).sum(axis=1), (known != 0).sum(axis=1))
        check_known_fits(known, counts)
        return log_odds(self._lists(rows, counts, known), executor)

    def top_k(self, rows: ScoredRows, executor: Executor) -> LabelLists:
        """The most probable labels, at most k, without those known not to apply."""
        margins, known = self.margins(rows._replace(k=None), executor), rows.known
        counts = checked_counts(self.size if rows.k is None else rows.k, margins.shape)
        if known is not None:
            counts = np.minimum(counts, (known != 0).sum(axis=1))
        order = np.lexsort((-rows.scores, -margins), axis=1)
        return LabelLists(*Selection.of(order, np.take_along_axis(margins, order, axis=1), counts), counts)

    def chosen(self, rows: ScoredRows, decision: str | None, executor: Executor) -> Bools:
        """The best set for a measure, F1 by default, (n, N); with k, the k most probable labels of sets of k."""
        if rows.k is None and not self.one_class:
            _DECISION.check("decision", "f1" if decision is None else decision)
            return DECISIONS[decision or "f1"](SubsetRows(rows.scores, rows.pair, rows.known), executor)
        if decision is not None:
            found = "one class per row" if self.one_class else "both"
            raise ValueError(f"decision: expected None if the number of labels is known, found {found}")
        counts = checked_counts(1 if rows.k is None else rows.k, rows.scores.shape)
        return _flags(LabelLists(*most_probable(self._lists(rows, counts), executor), counts), rows.scores.shape)

    def top_k_known_count(self, rows: ScoredRows, counts: Ints, executor: Executor) -> Ints:
        """The most probable labels, given their number."""
        return most_probable(self._lists(rows, counts), executor).items

    def _lists(self, rows: ScoredRows, counts: Ints, known: Bytes | None = None) -> StarLists:
        if self.known_count_terms is None:
            return StarLists(rows.scores, rows.pair, counts, known)
        terms = KnownCountTerms.of(self.known_count_terms)
        return StarLists(terms.scores(rows.scores), terms.star_pair(rows.pair.arrays.core), counts, known)


def top_k_unknown_count(predictor: Predictor, rows: ScoredRows, counts: Ints, executor: Executor) -> Ints:
    """Return the first labels of each row by margins that do not use their number, row after row."""
    order = np.lexsort((-rows.scores, -predictor.margins(rows, executor)), axis=1)
    return Selection.of(order, rows.scores, counts).items


def set_log_odds(
    s: ArrayLike, pair: ArrayLike, core: ArrayLike, k: ArrayLike | None = None, known: ArrayLike | None = None
) -> Floats:
    """Return the log-odds of labels among sets of any size, or of k labels if k is given; for labeling.

    Examples
    --------
    >>> set_log_odds([0.0, 0.0, 0.0], pair=[[0.0, 0.0, 1.0]], core=[0]).round(2)
    array([[0.62, 0.  , 0.62]])
    """
    return subset_log_odds(s, pair, core, known) if k is None else star_log_odds(s, pair, core, k, known)


def known_count_log_odds(
    terms: KnownCountTerms,
    s: ArrayLike,
    pair: ArrayLike,
    core: ArrayLike,
    k: ArrayLike | None = None,
    known: ArrayLike | None = None,
) -> Floats:
    """Return the same for a model with terms of its own for a known k, which do not apply without its core."""
    if k is None or len(np.atleast_1d(core)) != len(terms.pair):
        return set_log_odds(s, pair, core, k, known)
    return star_log_odds(terms.scores(np.atleast_2d(np.asarray(s, dtype=np.float64))), terms.pair, core, k, known)


def _flags(lists: LabelLists, shape: tuple[int, ...]) -> Bools:
    flags = np.zeros(shape, dtype=np.bool_)
    flags[np.repeat(np.arange(len(flags)), lists.counts), lists.items] = True
    return flags


# --- why --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Explanation:
    """For row n and its r-th best label: which label, its unary score, and the part of every core label."""

    labels: NDArray[Any]
    """(n, k) selected labels, best first: their names if they have any."""
    own: Floats
    """(n, k) score of the label by itself."""
    own_rank: Ints
    """(n, k) rank of the label by its own score alone, from 1: larger than k if pairs brought it in."""
    core: NDArray[Any]
    """(C,) core labels, named as in ``labels``."""
    pairs: Floats
    """(n, k, C) what core label ``core[c]`` added, 0 if it is not selected."""


def explain_selection(scores: Floats, pair: Floats, core: Ints, selected: Ints) -> Explanation:
    """Split the score of a selection into its parts.

    Examples
    --------
    >>> why = explain_selection(np.array([[0.0, 1.0, 0.5]]), np.array([[0.0, 0.0, 2.0]]), np.array([0]),
    ...                         np.array([[2, 0]]))
    >>> why.pairs[0, 0], why.own_rank[0]
    (array([2.]), array([2, 3]))
    """
    chosen = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(chosen, selected, True, axis=1)
    pairs = pair.T[selected] * chosen[:, None, core]
    order = np.argsort(-scores, axis=1, kind="stable")
    ranks = np.argsort(order, axis=1, kind="stable") + 1
    return Explanation(
        selected,
        np.take_along_axis(scores, selected, axis=1),
        np.take_along_axis(ranks, selected, axis=1),
        core,
        pairs,
    )


# --- how many labels --------------------------------------------------------------------------------------------------

_RIDGES = 10.0 ** np.arange(-4, 7)


def fit_label_count(scores: Floats, counts: Floats, weight: Floats) -> Floats:
    """Return the coefficients, intercept last, for scores (n, N) and the numbers of relevant labels.

    The ridge is the one with the smallest leave-one-out error (generalized cross-validation); the largest leaves the
    mean number.
    """
    features = _sorted_features(scores)[:, :-1]
    total = float(weight.sum())
    center, middle = weight @ features / total, float(weight @ counts) / total
    root = np.sqrt(weight)
    left, singular, right = np.linalg.svd(root[:, None] * (features - center), full_matrices=False)
    aim = root * (counts - middle)
    target = left.T @ aim
    scale = float((singular**2).mean()) or 1.0
    best, best_error = np.zeros(features.shape[1]), np.inf
    for ridge in _RIDGES * scale:
        shrink = singular**2 / (singular**2 + ridge)
        error = float(((aim - left @ (shrink * target)) ** 2).sum()) / (total - shrink.sum()) ** 2
        if error < best_error and total > shrink.sum():
            best = right.T @ (shrink / np.maximum(singular, 1e-300) * target)
            best_error = error
    return np.append(best, middle - center @ best)


def predict_label_count(scores: Floats, coef: Floats) -> Ints:
    """Return one number per row.

    Examples
    --------
    >>> scores = np.array([[3.0, 2.0, -1.0], [1.0, -2.0, -3.0]] * 10)
    >>> coef = fit_label_count(scores, np.array([2.0, 1.0] * 10), np.ones(20))
    >>> predict_label_count(scores[:2], coef)
    array([2, 1])
    """
    return np.clip(np.rint(_sorted_features(scores) @ coef), 1, scores.shape[1]).astype(np.int64)


def mean_count(known: NDArray[np.int8], weight: Floats) -> int:
    """Return the rounded mean number of relevant labels, at least 1; unknown labels are -1.

    Examples
    --------
    >>> mean_count(np.array([[1, 1, 0], [1, -1, -1]], dtype=np.int8), np.ones(2))
    2
    """
    if (known >= 0).all():
        mean = np.average(known.sum(axis=1), weights=weight)
    else:  # of each label its share of the rows where it is known
        mean = (weight @ (known > 0) / np.maximum(weight @ (known >= 0), 1e-300)).sum()
    return int(np.clip(np.rint(mean), 1, known.shape[1]))


def _sorted_features(scores: Floats) -> Floats:
    return np.column_stack([np.sort(scores, axis=1)[:, ::-1], np.ones(len(scores))])
