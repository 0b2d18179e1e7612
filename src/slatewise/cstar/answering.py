"""How a fitted c-star answers: by the best or most probable sets of k labels, or by sets of any size.

Both say how much each label belongs in (``margins``) and which labels to list. Sets of any size need no number of
labels: one that is given only cuts lists, and no answer is one too many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core import rules
from slatewise.core.executor import Executor
from slatewise.cstar.checks import Floats, Ints, Known, checked_counts, checked_known
from slatewise.cstar.lists import Selection, StarLists
from slatewise.cstar.pair import StarPair
from slatewise.cstar.subset_decisions import expected_count_sets, f1_sets, hamming_sets, most_probable_sets
from slatewise.cstar.subsets import SubsetRows, checked_answers, subset_log_odds, subset_odds
from slatewise.cstar.sums import log_odds, most_probable, star_log_odds
from slatewise.cstar.told_terms import ToldTerms

Bools: TypeAlias = NDArray[np.bool_]


class Asked(NamedTuple):
    """Rows as the model scores them, and what the caller says of them; not checked yet."""

    scores: Floats
    pair: StarPair
    k: ArrayLike | None = None
    known: ArrayLike | None = None


class Listed(NamedTuple):
    """Labels of all rows, row after row, best first."""

    items: Ints
    scores: Floats
    counts: Ints


class Answering(Protocol):
    """A way to answer."""

    def margins(self, asked: Asked, executor: Executor) -> Floats:
        """Return how much each label belongs in, (n, N)."""
        ...

    def listed(self, asked: Asked, executor: Executor) -> Listed:
        """Return the labels to list, ``k_`` where k is not given."""
        ...

    def decided(self, asked: Asked, decision: str | None, executor: Executor) -> Bools:
        """Return the labels to answer with, (n, N)."""
        ...

    def told(self, asked: Asked, counts: Ints, executor: Executor) -> Ints:
        """Return the labels to list where the number of labels of each row is told, row after row."""
        ...


@dataclass(frozen=True, eq=False)
class SetsOfSize:
    """Answers by sets of exactly k labels."""

    size: int
    """The k of rows that nothing is said of."""
    margins_of: Callable[[StarLists, Executor], Floats]
    best: Callable[[StarLists, Executor], Selection]

    def margins(self, asked: Asked, executor: Executor) -> Floats:
        """In minus out, among sets of k labels."""
        return self.margins_of(self._lists(asked), executor)

    def listed(self, asked: Asked, executor: Executor) -> Listed:
        """The labels of the best set."""
        lists = self._lists(asked)
        return Listed(*self.best(lists, executor), lists.k)

    def decided(self, asked: Asked, decision: str | None, executor: Executor) -> Bools:
        """The labels of the best set."""
        if decision is not None:
            found = f"found {rules.shown(decision)}"
            raise ValueError(f"decision: expected None unless surrogate is 'likelihood', {found}")
        return _flags(self.listed(asked, executor), asked.scores.shape)

    def told(self, asked: Asked, counts: Ints, executor: Executor) -> Ints:
        """The labels of the best set."""
        return self.listed(asked._replace(k=counts), executor).items

    def _lists(self, asked: Asked) -> StarLists:
        counts = checked_counts(self.size if asked.k is None else asked.k, asked.scores.shape)
        return StarLists(asked.scores, asked.pair, counts, checked_known(asked.known, counts, asked.scores.shape))


DECISIONS: Mapping[str, Callable[[SubsetRows, Executor], Bools]] = {
    "f1": lambda rows, executor: f1_sets(rows, executor).chosen,
    "subset": lambda rows, executor: most_probable_sets(rows, executor).chosen,
    "hamming": hamming_sets,
    "count": expected_count_sets,
}
_DECISION = rules.one_of(*DECISIONS)


@dataclass(frozen=True, eq=False)
class SetsOfAnySize:
    """Answers by sets of any size."""

    size: int
    """How many labels to list where nobody says."""
    one: bool
    """Whether exactly one label is right in every row: one class per row."""
    terms: ToldTerms | None = None
    """Of sets whose size is told; None: the same as of any size."""

    def margins(self, asked: Asked, executor: Executor) -> Floats:
        """Log-odds given what is known, and given k where that is told."""
        known = _answers(asked)
        if asked.k is None and not self.one:
            return subset_odds(SubsetRows(asked.scores, asked.pair, known), executor).log_odds
        counts = checked_counts(1 if asked.k is None else asked.k, asked.scores.shape)
        if asked.k is None and known is not None:  # several classes at once, or none: then not one class, but as many
            counts = np.clip(counts, (known == 1).sum(axis=1), (known != 0).sum(axis=1))
        return log_odds(self._lists(asked, counts, checked_known(known, counts, asked.scores.shape)), executor)

    def listed(self, asked: Asked, executor: Executor) -> Listed:
        """The most probable labels, k at most; what is known to be out is not listed."""
        margins, known = self.margins(asked._replace(k=None), executor), _answers(asked)
        counts = checked_counts(self.size if asked.k is None else asked.k, margins.shape)
        if known is not None:
            counts = np.minimum(counts, (known != 0).sum(axis=1))
        order = _order(margins, asked.scores)
        return Listed(*Selection.of(order, np.take_along_axis(margins, order, axis=1), counts), counts)

    def decided(self, asked: Asked, decision: str | None, executor: Executor) -> Bools:
        """The best set for a measure, F1 as it comes; with k, the k most probable labels of sets of k."""
        if asked.k is None and not self.one:
            _DECISION.check("decision", "f1" if decision is None else decision)
            return DECISIONS[decision or "f1"](SubsetRows(asked.scores, asked.pair, _answers(asked)), executor)
        if decision is not None:
            found = "one class per row" if self.one else "both"
            raise ValueError(f"decision: expected None where the number of labels is told, found {found}")
        counts = checked_counts(1 if asked.k is None else asked.k, asked.scores.shape)
        return _flags(Listed(*most_probable(self._lists(asked, counts), executor), counts), asked.scores.shape)

    def told(self, asked: Asked, counts: Ints, executor: Executor) -> Ints:
        """The most probable labels, given their number."""
        return most_probable(self._lists(asked, counts), executor).items

    def _lists(self, asked: Asked, counts: Ints, known: Known | None = None) -> StarLists:
        if self.terms is None:
            return StarLists(asked.scores, asked.pair, counts, known)
        pair = self.terms.star_pair(asked.pair.arrays.core)
        return StarLists(self.terms.scores(asked.scores), pair, counts, known)


def not_told(answering: Answering, asked: Asked, counts: Ints, executor: Executor) -> Ints:
    """Return the first labels by margins that do not know the number of labels of each row, row after row."""
    order = _order(answering.margins(asked, executor), asked.scores)
    return Selection.of(order, asked.scores, counts).items


def set_log_odds(
    s: ArrayLike, pair: ArrayLike, core: ArrayLike, k: ArrayLike | None = None, known: ArrayLike | None = None
) -> Floats:
    """Return the log-odds of labels of sets of any size, or of k labels where that is told; for labeling.

    Examples
    --------
    >>> set_log_odds([0.0, 0.0, 0.0], pair=[[0.0, 0.0, 1.0]], core=[0]).round(2)
    array([[0.62, 0.  , 0.62]])
    """
    return subset_log_odds(s, pair, core, known) if k is None else star_log_odds(s, pair, core, k, known)


def told_log_odds(
    terms: ToldTerms,
    s: ArrayLike,
    pair: ArrayLike,
    core: ArrayLike,
    k: ArrayLike | None = None,
    known: ArrayLike | None = None,
) -> Floats:
    """Return the same with the terms of a model that has others where k is told; labels without their core have not."""
    if k is None or len(np.atleast_1d(core)) != len(terms.pair):
        return set_log_odds(s, pair, core, k, known)
    return star_log_odds(terms.scores(np.atleast_2d(np.asarray(s, dtype=np.float64))), terms.pair, core, k, known)


def _answers(asked: Asked) -> Known | None:
    return None if asked.known is None else checked_answers(asked.known, asked.scores.shape)


def _order(margins: Floats, scores: Floats) -> Ints:
    """Return the labels of each row, largest margin first; equal ones by their own scores."""
    return np.lexsort((-scores, -margins), axis=1)


def _flags(listed: Listed, shape: tuple[int, ...]) -> Bools:
    flags = np.zeros(shape, dtype=np.bool_)
    flags[np.repeat(np.arange(len(flags)), listed.counts), listed.items] = True
    return flags
