"""How much people agree: Cohen's kappa of two, Krippendorff's alpha of any number, and what they disagree about.

kappa = (p_o - p_e) / (1 - p_e)      observed share of agreement, and expected of two who answer independently
alpha = 1 - D_o / D_e                observed and expected share of pairs that disagree, of nominal values

    D_o = 1/n sum over units u with m_u >= 2 values of sum over c != k of n_uc n_uk / (m_u - 1)
    D_e = 1/(n (n - 1)) sum over c != k of n_c n_k

A unit is a label of an item. Both are 1 if all agree, 0 if the agreement is what chance gives, and NaN if
they are undefined: no common answers, or all answers are the same.

J. Cohen (1960), A coefficient of agreement for nominal scales. K. Krippendorff (2011), Computing Krippendorff's
alpha-reliability.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import real
from slatewise.labeling.store.project import Project


class PairAgreement(NamedTuple):
    """How much two people agree."""

    annotators: tuple[int, int]
    n_common: int
    """The number of labels of items with a yes or no of both."""
    same: float
    """Share of these with the same answer."""
    kappa: float


class Dispute(NamedTuple):
    """A label of an item that people disagree about, and no reviewer has settled."""

    item: int
    label: int
    yes: tuple[int, ...]
    """The numbers of the annotators with a yes."""
    no: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Agreement:
    """How much the people of a project agree; "don't know" and answers of reviewers do not count."""

    n_units: int
    """The number of labels of items with a yes or no of several people."""
    alpha: float
    alpha_by_label: Floats
    """(labels,)."""
    pairs: tuple[PairAgreement, ...]
    disputes: tuple[Dispute, ...]
    """What a reviewer may look at, item after item."""

    @classmethod
    def of(cls, project: Project) -> Agreement:
        """Count who agrees with whom in a project."""
        votes, n_labels = project.votes(), len(project.labels)
        settled = np.unique((votes.item * n_labels + votes.label)[votes.are("reviewed")])
        used = ~votes.are("reviewed") & (votes.value >= 0)
        cells, cell = np.unique((votes.item * n_labels + votes.label)[used], return_inverse=True)
        several = (np.bincount(cell, minlength=len(cells)) > 1)[cell]  # the others say nothing about agreement
        cell, who, given = cell[several], votes.annotator[used][several], votes.value[used][several]
        counts = np.zeros((len(cells), 2))
        np.add.at(counts, (cell, given), 1.0)
        by_label = [_alpha(counts[cells % n_labels == label]) for label in range(n_labels)]
        split = np.flatnonzero((counts > 0.0).all(axis=1) & ~np.isin(cells, settled))
        order = np.argsort(cell, kind="stable")
        first, last = (np.searchsorted(cell[order], split, side=side) for side in ("left", "right"))
        disputes: list[Dispute] = []
        for place, start, end in zip(split, first, last, strict=True):
            here = order[start:end]
            yes, no = (tuple(sorted(who[here][given[here] == value].tolist())) for value in (1, 0))
            disputes.append(Dispute(*divmod(int(cells[place]), n_labels), yes, no))
        units = int((counts.sum(axis=1) > 1.0).sum())
        return cls(units, _alpha(counts), np.array(by_label), _pairs(cell, who, given), tuple(disputes))


def cohen_kappa(one: ArrayLike, other: ArrayLike) -> float:
    """Return the kappa of two people: whole numbers of the same shape, -1 if there is no answer.

    Examples
    --------
    >>> cohen_kappa([1, 1, 0, 0, -1], [1, 0, 0, 0, 1])
    0.5
    """
    first, second = _values("one", one).ravel(), _values("other", other).ravel()
    if first.shape != second.shape:
        raise ValueError(f"other: expected as many answers as in one, {len(first)}, found {len(second)}")
    both = (first >= 0) & (second >= 0)
    first, second, n = first[both], second[both], int(both.sum())
    if not n:
        return np.nan
    used = np.unique(first)
    expected = sum(float((first == value).mean() * (second == value).mean()) for value in used)
    return (float((first == second).mean()) - expected) / (1.0 - expected) if expected < 1.0 else np.nan


def krippendorff_alpha(answers: ArrayLike) -> float:
    """Return the alpha of nominal values (people, units), whole numbers, -1 if there is no answer.

    Examples
    --------
    >>> round(krippendorff_alpha([[1, 1, 0, 0, -1], [1, 0, 0, 0, 1]]), 3)
    0.533
    """
    values = _values("answers", answers)
    if values.ndim != 2:
        raise ValueError(f"answers: expected a row per person and a column per unit, found shape {values.shape}")
    counts = np.zeros((values.shape[1], len(np.unique(values))))
    for column, value in enumerate(np.unique(values[values >= 0])):
        counts[:, column] = (values == value).sum(axis=0)
    return _alpha(counts)


def _pairs(cell: Ints, who: Ints, given: Ints) -> tuple[PairAgreement, ...]:
    own = {number: (cell[who == number], given[who == number]) for number in np.unique(who).tolist()}
    found: list[PairAgreement] = []
    for one, other in combinations(own, 2):
        (cells, values), (other_cells, other_values) = own[one], own[other]
        common, at, there = np.intersect1d(cells, other_cells, assume_unique=True, return_indices=True)
        if len(common):
            first, second = values[at], other_values[there]
            same = float((first == second).mean())
            found.append(PairAgreement((one, other), len(common), same, cohen_kappa(first, second)))
    return tuple(found)


def _alpha(counts: Floats) -> float:
    """Return alpha of (units, values) how often each value was given."""
    counts = counts[counts.sum(axis=1) > 1.0]
    of_unit, of_value, n = counts.sum(axis=1), counts.sum(axis=0), float(counts.sum())
    expected = n**2 - float(of_value @ of_value)
    if not expected > 0.0:
        return np.nan
    observed = float(((of_unit**2 - (counts**2).sum(axis=1)) / (of_unit - 1.0)).sum())
    return 1.0 - (n - 1.0) * observed / expected


def _values(name: str, values: ArrayLike) -> Ints:
    array = real(name, values)
    if array.dtype.kind not in "iu" or (array.size and array.min() < -1):
        raise ValueError(f"{name}: expected whole numbers >= 0, and -1 if there is no answer, found {array.dtype}")
    return array.astype(np.int64)
