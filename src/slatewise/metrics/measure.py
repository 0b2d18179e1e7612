"""What every measure is: conventions, fixed when it is made, and one value per list."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Bools, Floats, Ints
from slatewise.metrics._hits import NEVER, TIES, Hits, make_hits
from slatewise.metrics._input import Scored, read_lists
from slatewise.metrics._standings import Engine, standings
from slatewise.metrics.conventions import EMPTY, LABELS, Array, Empty, LabelName, Labels, ScoreType, Ties, check_choice


@dataclass(frozen=True, kw_only=True)
class Measure(ABC):
    """A measure of ranked lists; see the leaves for formulas.

    Parameters
    ----------
    ties : {"average", "input", "id", "worst", "best"}
        Who comes first among equal scores (:data:`slatewise.metrics.conventions.Ties`).
    empty : {0, 1, "skip"}
        What a list without a relevant item counts.
    labels : {"any", "non-negative", "whole", "binary", "two-valued"} or Labels
        Which relevance is accepted; anything else is an error.
    score_type : {"float64", "float32"}
        The precision in which scores are compared.
    """

    ties: Ties = "average"
    empty: Empty = 0
    labels: LabelName | Labels = "any"
    score_type: ScoreType = "float64"

    tie_rules: ClassVar[tuple[str, ...]] = ("average", "input", "id", "worst", "best")
    smaller_is_better: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_choice("ties", self.ties, self.tie_rules)
        check_choice("empty", self.empty, EMPTY)
        if not isinstance(self.labels, Labels):
            check_choice("labels", self.labels, LABELS)
        check_choice("score_type", self.score_type, ("float64", "float32"))

    @property
    @abstractmethod
    def name(self) -> str:
        """Short name such as ``"ndcg@10"``."""

    @abstractmethod
    def of_hits(self, hits: Hits) -> Floats:
        """One value per list."""

    def per_list(
        self,
        relevance: ArrayLike,
        scores: ArrayLike,
        qid: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        engine: Engine = "auto",
    ) -> Floats:
        """Measure every list.

        Parameters
        ----------
        relevance, scores : array-like
            2-D (n_lists, n_items), or 1-D with one ``qid`` per row, or with ``group`` (neither: one list).
        qid : array-like, optional
            The list each row belongs to: any order, any dtype.
        ids : array-like, optional
            Document ids; only ``ties="id"`` looks at them.
        group : array-like, optional
            Instead of ``qid``: how many rows each list has, one list's rows after the other's.
        engine : {"auto", "numpy", "compiled"}
            Never changes a value. ``"auto"`` is NumPy until a call with ``"compiled"`` has loaded the kernel.

        Returns
        -------
        values : ndarray of shape (n_lists,)
            In the order in which lists first appear; NaN where ``empty="skip"`` leaves a list out.
        """
        return list_values([self], read_lists(relevance, scores, qid, ids, group), engine)[0]

    def of_lists(self, relevance: Floats, scores: Floats, offsets: Ints) -> Floats:
        """Measure lists that were checked and gathered before: list l owns the rows ``offsets[l]:offsets[l + 1]``."""
        return list_values([self], Scored(scores, relevance, offsets), "auto")[0]

    def __call__(
        self,
        relevance: ArrayLike,
        scores: ArrayLike,
        qid: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        engine: Engine = "auto",
    ) -> float:
        """Return the mean over lists; parameters as in :meth:`per_list`."""
        return mean(self.per_list(relevance, scores, qid, ids, group=group, engine=engine))

    def with_empty(self, values: Floats, empty: Bools) -> Floats:
        """Put in what the empty lists count."""
        return np.where(empty, EMPTY[self.empty], values)


def ratio(numerator: Floats, denominator: Array) -> Floats:
    """Divide, with 0 where nothing divides."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def need_retrieved(measure: str, hits: Hits) -> None:
    """Raise if a relevant item has no rank."""
    if np.any(hits.first == NEVER):
        raise ValueError(f"run: {measure} is not defined, because a relevant item was not retrieved and has no rank")


def list_values(measures: Sequence[Measure], scored: Scored, engine: Engine) -> list[Floats]:
    """Measure every list by several measures; scores are compared once, each tie rule applied once."""
    types: set[ScoreType] = {measure.score_type for measure in measures}
    standing = {kind: standings(scored, kind, engine) for kind in types}
    rules = {(measure.score_type, measure.ties) for measure in measures}
    hits = {(kind, ties): make_hits(standing[kind], scored, TIES[ties]) for kind, ties in rules}
    values: list[Floats] = []
    for measure in measures:
        labels = measure.labels if isinstance(measure.labels, Labels) else LABELS[measure.labels]
        labels.check(scored.relevance)
        if scored.unretrieved is not None:
            labels.check(scored.unretrieved.relevance)
        values.append(measure.of_hits(hits[measure.score_type, measure.ties]))
    return values


def mean(values: Floats) -> float:
    """Average over the lists that count; NaN where none does."""
    counted = values[~np.isnan(values)]
    return float(np.mean(counted)) if len(counted) else float("nan")
