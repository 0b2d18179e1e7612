"""Rows with open labels: what a c-star model infers of them, given the answers so far.

    margin_i = max f(t) with label i in  -  max f(t) with it out ,      |t| = k, answers forced      (Mensink et al. 5)

or the log-odds of label i given the answers, of models of likelihoods.

The label scores do not depend on the answers, so they are computed once for a whole session of questions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.cstar.answers import set_log_odds
from slatewise.cstar.inference.any_size import SubsetRows
from slatewise.cstar.inference.best_set import star_margins


class LabelRanker(Protocol):
    """What labeling needs of a fitted ranker; :class:`slatewise.CStarRanker` has it."""

    @property
    def core_(self) -> Ints:
        """(C,) core labels."""
        ...

    @property
    def pair_(self) -> Floats:
        """(C, N) pair terms of the core labels."""
        ...

    def label_scores(self, X: ArrayLike) -> Floats:
        """Return what each label scores by itself, (n, N)."""
        ...

    @property
    def label_margins(self) -> Callable[..., Floats]:
        """How margins are computed of (scores, pair, core, k, known)."""
        ...

    @property
    def needs_count(self) -> bool:
        """Whether margins need the number of labels k; else it may be None, for unknown."""
        ...


@dataclass(frozen=True)
class GivenScores:
    """A ranker of precomputed scores: X is the (n, n_labels) matrix of scores, and there are no pair terms.

    Examples
    --------
    >>> rows = LabelRows.of(GivenScores(3), [[2.0, 1.0, 0.0]], k=[1])
    >>> rows.margins(np.full((1, 3), -1, dtype=np.int8))
    array([[ 1., -1., -2.]])
    """

    n_labels: int

    @property
    def core_(self) -> Ints:
        """No core labels."""
        return np.empty(0, dtype=np.int64)

    @property
    def pair_(self) -> Floats:
        """No pair terms."""
        return np.empty((0, self.n_labels))

    def label_scores(self, X: ArrayLike) -> Floats:
        """Return the scores as they are."""
        return np.asarray(X, dtype=np.float64)

    @property
    def label_margins(self) -> Callable[..., Floats]:
        """By the best sets."""
        return star_margins

    @property
    def needs_count(self) -> bool:
        """The threshold is between the k-th score and the next."""
        return True


@dataclass(frozen=True)
class GivenLogOdds(GivenScores):
    """A ranker of precomputed log-odds: the threshold is 0, and the number of labels is not needed.

    Examples
    --------
    >>> rows = LabelRows.of(GivenLogOdds(3), [[2.0, 1.0, -1.0]], k=None)
    >>> rows.margins(np.array([[-1, 1, -1]]))
    array([[ 2., inf, -1.]])
    """

    @property
    def label_margins(self) -> Callable[..., Floats]:
        """The log-odds themselves, unless k is given."""
        return set_log_odds

    @property
    def needs_count(self) -> bool:
        """No."""
        return False


@dataclass(frozen=True, eq=False)
class LabelRows:
    """Rows with label scores, the pair terms they share, and the number of labels of each row if it is known."""

    scores: Floats
    pair: Floats
    core: Ints
    k: Ints | None
    margins_of: Callable[..., Floats] = star_margins
    """What turns them, with what is known, into margins."""

    @classmethod
    def of(cls, ranker: LabelRanker, X: ArrayLike, k: ArrayLike | None) -> LabelRows:
        """Score the labels of rows X, of which ``k`` are relevant (a number, or one per row; None: unknown)."""
        scores = ranker.label_scores(X)
        if k is None and ranker.needs_count:
            raise ValueError("k: expected the number of labels of each row, which this ranker needs, found None")
        counts = None if k is None else np.broadcast_to(np.asarray(k, dtype=np.int64), len(scores)).copy()
        return cls(scores, ranker.pair_, ranker.core_, counts, ranker.label_margins)

    def margins(self, known: ArrayLike) -> Floats:
        """Return in minus out, (n, N); +inf and -inf if a label is decided."""
        return self.margins_of(self.scores, self.pair, self.core, self.k, known)

    def without_pairs(self) -> LabelRows:
        """Return the same rows, their labels scored by themselves only."""
        return replace(self, pair=self.pair[:0], core=self.core[:0])

    def take(self, numbers: Ints) -> LabelRows:
        """Return some of the rows."""
        return replace(self, scores=self.scores[numbers], k=None if self.k is None else self.k[numbers])

    def sets(self, known: ArrayLike) -> SubsetRows:
        """Return the rows for sums over sets of any size; an error if the model is of sets of k labels."""
        if self.k is not None:
            raise ValueError(
                "k: expected None, for probabilities of sets of any size (CStarRanker, GivenLogOdds), found rows with "
                "a known number of labels"
            )
        return SubsetRows.of(self.scores, self.pair, self.core, known)


def consistent(answers: Bytes, scores: Floats, k: Ints | None) -> Bytes:
    """Return the answers without those that contradict a number of exactly k labels; all of them if k is unknown.

    More yes than k: the k with the highest own scores stay. More no than N - k: the N - k with the lowest stay. The
    others count as unknown. Answers that fit are all kept.

    Examples
    --------
    >>> two_yes = np.array([[1, 1, -1]], dtype=np.int8)
    >>> consistent(two_yes, np.array([[0.1, 0.7, 0.2]]), k=np.array([1]))
    array([[-1,  1, -1]], dtype=int8)
    """
    if k is None:
        return answers
    n_labels = answers.shape[1]
    too_many_yes = ranks(np.where(answers == 1, -scores, np.inf)) >= k[:, None]
    too_many_no = ranks(np.where(answers == 0, scores, np.inf)) >= (n_labels - k)[:, None]
    dropped = ((answers == 1) & too_many_yes) | ((answers == 0) & too_many_no)
    return np.where(dropped, -1, answers).astype(np.int8)


def ranks(values: Floats) -> Ints:
    """Return the rank of every value in its row, ascending from 0; equal values in the order of the labels."""
    return np.argsort(np.argsort(values, axis=1, kind="stable"), axis=1, kind="stable")
