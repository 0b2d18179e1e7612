"""How a fitted c-star answers: by the best or most probable sets of k labels, or by sets of any size.

Both return how much each label belongs in (margins) and which labels to list. Sets of any size need no number of
labels: a given one only cuts lists, and no number of positive answers is too large.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core import rules
from slatewise.core.arrays import Bools, Bytes, Floats, Ints
from slatewise.core.running.executor import Executor
from slatewise.cstar.checks import checked_counts, checked_known
from slatewise.cstar.inference import best_set, margins
from slatewise.cstar.known_count import KnownCountTerms
from slatewise.cstar.lists import Selection, StarLists
from slatewise.cstar.pair import StarPair
from slatewise.cstar.subset_decisions import expected_count_sets, f1_sets, hamming_sets, most_probable_sets
from slatewise.cstar.subsets import SubsetRows, checked_answers, subset_log_odds, subset_odds
from slatewise.cstar.sums import log_odds, most_probable, star_log_odds


class ScoredRows(NamedTuple):
    """Rows as the model scores them, and what the caller knows of them, not checked yet."""

    scores: Floats
    pair: StarPair
    k: ArrayLike | None = None
    known: ArrayLike | None = None


class LabelLists(NamedTuple):
    """The listed labels of all rows, row after row, best first."""

    items: Ints
    scores: Floats
    counts: Ints


class Predictor(Protocol):
    """A way to answer."""

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
    """Answers by the best sets of exactly k labels."""

    size: int
    """The default k."""

    def margins(self, rows: ScoredRows, executor: Executor) -> Floats:
        """In minus out, among sets of k labels."""
        return margins(self._lists(rows), executor)

    def top_k(self, rows: ScoredRows, executor: Executor) -> LabelLists:
        """The labels of the best set."""
        lists = self._lists(rows)
        return LabelLists(*best_set(lists, executor), lists.k)

    def chosen(self, rows: ScoredRows, executor: Executor) -> Bools:
        """The labels of the best set, (n, N)."""
        return _flags(self.top_k(rows, executor), rows.scores.shape)

    def top_k_known_count(self, rows: ScoredRows, counts: Ints, executor: Executor) -> Ints:
        """The labels of the best set."""
        return self.top_k(rows._replace(k=counts), executor).items

    def _lists(self, rows: ScoredRows) -> StarLists:
        counts = checked_counts(self.size if rows.k is None else rows.k, rows.scores.shape)
        return StarLists(rows.scores, rows.pair, counts, checked_known(rows.known, counts, rows.scores.shape))


DECISIONS: Mapping[str, Callable[[SubsetRows, Executor], Bools]] = {
    "f1": lambda rows, executor: f1_sets(rows, executor).chosen,
    "subset": lambda rows, executor: most_probable_sets(rows, executor).chosen,
    "hamming": hamming_sets,
    "count": expected_count_sets,
}
_DECISION = rules.one_of(*DECISIONS)


@dataclass(frozen=True, eq=False)
class AnySizePredictor:
    """Answers by sets of any size."""

    size: int
    """The default number of labels to list."""
    one_class: bool
    """Whether exactly one label applies to every row: one class per row."""
    known_count_terms: Floats | None = None
    """Rows of :class:`slatewise.cstar.known_count.KnownCountTerms`; None: the terms of sets of any size."""

    def margins(self, rows: ScoredRows, executor: Executor) -> Floats:
        """Log-odds given the known labels, and given k if that is known."""
        known = _checked(rows)
        if rows.k is None and not self.one_class:
            return subset_odds(SubsetRows(rows.scores, rows.pair, known), executor).log_odds
        counts = checked_counts(1 if rows.k is None else rows.k, rows.scores.shape)
        if rows.k is None and known is not None:  # known labels may contradict one class: then as many as they allow
            counts = np.clip(counts, (known == 1).sum(axis=1), (known != 0).sum(axis=1))
        return log_odds(self._lists(rows, counts, checked_known(known, counts, rows.scores.shape)), executor)

    def top_k(self, rows: ScoredRows, executor: Executor) -> LabelLists:
        """The most probable labels, at most k, without those known not to apply."""
        margins, known = self.margins(rows._replace(k=None), executor), _checked(rows)
        counts = checked_counts(self.size if rows.k is None else rows.k, margins.shape)
        if known is not None:
            counts = np.minimum(counts, (known != 0).sum(axis=1))
        order = _order(margins, rows.scores)
        return LabelLists(*Selection.of(order, np.take_along_axis(margins, order, axis=1), counts), counts)

    def chosen(self, rows: ScoredRows, decision: str | None, executor: Executor) -> Bools:
        """The best set for a measure, F1 by default, (n, N); with k, the k most probable labels of sets of k."""
        if rows.k is None and not self.one_class:
            _DECISION.check("decision", "f1" if decision is None else decision)
            return DECISIONS[decision or "f1"](SubsetRows(rows.scores, rows.pair, _checked(rows)), executor)
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
    """Return the first labels by margins that do not use the number of labels of each row, row after row."""
    order = _order(predictor.margins(rows, executor), rows.scores)
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


def _checked(rows: ScoredRows) -> Bytes | None:
    return None if rows.known is None else checked_answers(rows.known, rows.scores.shape)


def _order(margins: Floats, scores: Floats) -> Ints:
    """Return the labels of each row, largest margin first; ties by label scores."""
    return np.lexsort((-scores, -margins), axis=1)


def _flags(lists: LabelLists, shape: tuple[int, ...]) -> Bools:
    flags = np.zeros(shape, dtype=np.bool_)
    flags[np.repeat(np.arange(len(flags)), lists.counts), lists.items] = True
    return flags
