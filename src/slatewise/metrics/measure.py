"""The base class of measures: conventions, fixed when a measure is made, and one value per list."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Bools, Floats, Ints
from slatewise.metrics.conventions import (
    EMPTY,
    LABELS,
    Array,
    Empty,
    LabelName,
    Labels,
    ScoreType,
    Ties,
    check_choice,
    check_cutoff,
    check_threshold,
)
from slatewise.metrics.hits import NEVER, Hits, make_hits
from slatewise.metrics.lists import Scored, read_lists
from slatewise.metrics.standings import Engine, standings

_SHARED_TEXTS = {
    "k": "k : int, optional\n    Ranks that count; None: the whole list.\n",
    "threshold": "threshold : float\n    The smallest relevance that counts as relevant.\n",
}
Choices: TypeAlias = Mapping[str, Iterable[object]]
"""Allowed values by parameter."""


@dataclass(frozen=True, kw_only=True)
class Measure(ABC):
    """A measure of ranked lists; the subclasses have the formulas.

    Parameters
    ----------
    ties : {"average", "input", "id", "worst", "best"}
        Which of several items with equal scores comes first (:data:`slatewise.metrics.conventions.Ties`).
    empty : {0, 1, "skip"}
        The value of a list without a relevant item.
    labels : {"any", "non-negative", "whole", "binary", "two-valued"} or Labels
        Which relevance is accepted; anything else is an error.
    score_type : {"float64", "float32"}
        The precision in which scores are compared.
    """

    ties: Ties = "average"
    empty: Empty = 0
    labels: LabelName | Labels = "any"
    score_type: ScoreType = "float64"

    title: ClassVar[str]
    """The name without a cut-off."""
    tie_rules: ClassVar[tuple[str, ...]] = ("average", "input", "id", "worst", "best")
    choices: ClassVar[Choices] = {}
    """What further parameters may be."""
    smaller_is_better: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Write the shared parameters that the subclass has into its docstring."""
        super().__init_subclass__()
        if cls.__doc__ is not None:  # python -OO
            shared = "".join(text for name, text in _SHARED_TEXTS.items() if name in cls.__annotations__)
            before, examples_title, examples = inspect.cleandoc(cls.__doc__).partition("Examples\n--------\n")
            summary, title, own = before.partition("Parameters\n----------\n")
            title = title or ("Parameters\n----------\n" if shared else "")
            parameters = f"{summary}{title}{shared}{own}".rstrip()
            cls.__doc__ = f"{parameters}\n\n{examples_title}{examples}\n"

    def __post_init__(self) -> None:
        check_choice("ties", self.ties, self.tie_rules)
        check_choice("empty", self.empty, EMPTY)
        if not isinstance(self.labels, Labels):
            check_choice("labels", self.labels, LABELS)
        check_choice("score_type", self.score_type, ("float64", "float32"))
        check_cutoff(self._cutoff)
        check_threshold(getattr(self, "threshold", 1.0))
        for argument, allowed in self.choices.items():
            check_choice(argument, getattr(self, argument), allowed)

    @property
    def name(self) -> str:
        """Short name such as ``"ndcg@10"``."""
        return self.title if self._cutoff is None else f"{self.title}@{self._cutoff}"

    @property
    def _cutoff(self) -> int | None:
        return getattr(self, "k", None)

    @abstractmethod
    def of_hits(self, hits: Hits) -> Floats:
        """Return one value per list."""

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
        """Replace the values of empty lists by what they count."""
        return np.where(empty, EMPTY[self.empty], values)

    def share(self, numerator: Floats, denominator: Ints) -> Floats:
        """Divide list by list; a list with nothing to divide by is empty."""
        return self.with_empty(ratio(numerator, denominator), denominator == 0)


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
    rules: set[tuple[ScoreType, Ties]] = {(measure.score_type, measure.ties) for measure in measures}
    hits = {(kind, ties): make_hits(standing[kind], scored, ties) for kind, ties in rules}
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
