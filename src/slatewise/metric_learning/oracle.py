"""The most violated ranking of a list in metric learning to rank (McFee and Lanckriet).

    <W, psi(y)> = (1/PN) sum over relevant i, irrelevant j of y_ij (s_i - s_j),    y_ij = 1 where i is before j, else -1
    hinge = max over rankings y of  Delta(y) + <W, psi(y)> - <W, psi(y*)>,         y*: all relevant items first

Inside each side the best ranking keeps score order, so a ranking is a vector m_1 <= .. <= m_P, m_i = irrelevant items
before the i-th best relevant one, and y* is m = 0. Each loss has an exact oracle, over blocks of lists:

- *auc*, Delta = sum_i m_i / PN: every pair decides alone (``kernels/interleave_auc.py``);
- *precision* at k, and *knn*, the error of a vote among the first k: a scan over how many of them are relevant
  (``kernels/interleave_precision.py``);
- *mrr*, Delta = 1 - 1 / (rank of the first relevant item): a concave walk (``kernels/interleave_mrr.py``);
- *ndcg* at k: dynamic programming over the first k positions (``kernels/interleave_ndcg.py``);
- *map*, Delta = 1 - average precision: divide and conquer (``kernels/interleave_map.py``).

*graded_ndcg* takes grades instead of 0 and 1: psi then sums over all Z pairs of unlike grades, divided by Z, and the
oracle walks the grid of counts (``kernels/interleave_graded.py``). With two grades it is *ndcg*, except that
k may exceed the number of relevant items, as it may in the measure.

*ordered_pairs* is the auc of grades: every pair of items of different grade is to be in the order of the grades,

    hinge = (1 / pairs) sum over pairs with grade_i > grade_j of  max(0, 1 - 2 (s_i - s_j))

what a ranking SVM minimizes, its pairs weighed so that each list counts as one. Each pair decides alone, so what
attains the hinge need not be a ranking (``kernels/ordered_pairs.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.checks import numbers, real, require_in_range
from slatewise.metrics.conventions import check_cutoff

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Scores: TypeAlias = NDArray[np.floating[Any]]
Grades: TypeAlias = NDArray[np.signedinteger[Any]]
Kernel: TypeAlias = Callable[[Scores, Grades, Ints, int, Floats, Floats], None]

ORACLES = ("auc", "precision", "knn", "mrr", "ndcg", "map")
"""The losses of relevance 0 or 1."""
_RANKED = (*ORACLES, "graded_ndcg")
"""The losses whose maximum is a ranking."""
NEED_K = ("precision", "knn")
"""Those that mean nothing without k."""
MOST_STATES = 1 << 25
"""A grid of counts is not walked beyond this many states (9 bytes each)."""


@cache
def _kernels() -> Mapping[str, Kernel]:
    """Return the oracles' kernels by name; on first use, because importing one imports Numba."""
    from slatewise.metric_learning.kernels.interleave_auc import auc_block
    from slatewise.metric_learning.kernels.interleave_graded import graded_ndcg_block
    from slatewise.metric_learning.kernels.interleave_map import map_block
    from slatewise.metric_learning.kernels.interleave_mrr import mrr_block
    from slatewise.metric_learning.kernels.interleave_ndcg import ndcg_block
    from slatewise.metric_learning.kernels.interleave_precision import knn_block, precision_block
    from slatewise.metric_learning.kernels.ordered_pairs import ordered_pairs_block

    def ordered_pairs(scores: Any, grades: Any, offsets: Ints, k: int, losses: Floats, weights: Floats) -> None:
        ordered_pairs_block(scores, grades, offsets, losses, weights)

    return {
        "auc": auc_block,
        "precision": precision_block,
        "knn": knn_block,
        "mrr": mrr_block,
        "ndcg": ndcg_block,
        "map": map_block,
        "graded_ndcg": graded_ndcg_block,
        "ordered_pairs": ordered_pairs,
    }


@dataclass(frozen=True)
class Oracle:
    """The exact oracle of one loss, for callers that checked their input once and call often.

    Parameters
    ----------
    name : {"auc", "precision", "knn", "mrr", "ndcg", "map", "graded_ndcg", "ordered_pairs"}
    k : int, optional
        Ranks that count in "precision", "knn", "ndcg" and "graded_ndcg"; the others ignore it. None with
        "ndcg": as many as there are relevant items, the most it ever counts; with "graded_ndcg": all.
    """

    name: str
    k: int | None = None

    def __post_init__(self) -> None:
        if self.name not in (*_RANKED, "ordered_pairs"):
            raise ValueError(f"loss: expected one of {', '.join(_RANKED)}, found {self.name!r}")
        if self.k is None and self.name in NEED_K:
            raise ValueError(f"k: expected a whole number >= 1 with loss {self.name!r}, found None")
        check_cutoff(self.k)

    def most_violated_block(
        self, scores: Scores, relevance: Grades, offsets: Ints, losses: Floats, weights: Floats
    ) -> None:
        """Fill the loss of the most violated ranking of each list, and its weights: hinge = loss - weights . scores.

        Parameters
        ----------
        scores : (n_rows,) float64 or float32, C-contiguous
            List after list; larger is better. Queries against one catalog are lists of equal length.
        relevance : (n_rows,) int8
            1 relevant, 0 irrelevant, -1 left out. "graded_ndcg": grades from 0, and see :func:`require_few_states`.
            "ordered_pairs": grades from 0, as int64.
        offsets : (n_lists + 1,) int64
            Where each list begins, and where the last one ends.
        losses : (n_lists,) float64
            Filled with Delta; 0 for a list without two items of different relevance.
        weights : (n_rows,) float64
            Filled with what each score weighs in <W, psi(y*) - psi(y)>. Those of a list add up to 0.
        """
        # One signature to compile: beside the weights a float64 copy of a block is small.
        _kernels()[self.name](
            np.asarray(scores, dtype=np.float64),
            relevance,
            offsets,
            int(self.k or np.iinfo(np.int64).max),
            losses,
            weights,
        )


@dataclass(frozen=True, eq=False)
class MostViolated:
    """The ranking that attains the hinge of one list."""

    order: Ints
    """``order[r]`` is the item at rank r; items left out are not in it."""
    loss: float
    """Its Delta."""
    violation: float
    """The hinge: its Delta, plus what it scores above a ranking with all relevant items first."""


def most_violated(loss: str, scores: ArrayLike, relevance: ArrayLike, k: int | None = None) -> MostViolated:
    """Return the ranking of one list that maximizes loss plus score.

    Parameters
    ----------
    loss : {"auc", "precision", "knn", "mrr", "ndcg", "map", "graded_ndcg"}
    scores : (n,)
        Larger is better; at most 1e50 in size.
    relevance : (n,)
        1 relevant, 0 irrelevant, -1 left out; "graded_ndcg" takes grades 0, 1, .. 127. A list without two items of
        different relevance has no violation.
    k : int, optional
        Ranks that count in "precision", "knn", "ndcg" and "graded_ndcg".

    Examples
    --------
    The relevant item 0 leads item 1 by less than the margin 1/2, item 2 by more.

    >>> result = most_violated("auc", [1.0, 0.75, -1.0], [1, 0, 0])
    >>> result.order, result.loss, result.violation
    (array([1, 0, 2]), 0.5, 0.25)
    """
    if loss not in _RANKED:
        raise ValueError(f"loss: expected one of {', '.join(_RANKED)}, found {loss!r}")
    oracle = Oracle(loss, k)
    values = numbers("scores", scores, 1)
    require_in_range("scores", values)
    graded = loss == "graded_ndcg"
    grades, offsets = _checked_relevance(relevance, len(values), graded), np.array([0, len(values)])
    if graded:
        require_few_states(grades, offsets, k)
    losses, weights = np.empty(1), np.empty(len(values))
    oracle.most_violated_block(values, grades, offsets, losses, weights)
    return MostViolated(_order(values, grades, weights), float(losses[0]), float(losses[0] - weights @ values))


def require_few_states(relevance: Bytes, offsets: Ints, k: int | None) -> None:
    """Refuse lists whose grid of counts, prod over grades of (min(items of the grade, k) + 1), is too large to walk."""
    for number, (low, high) in enumerate(pairwise(offsets.tolist())):
        grades = relevance[low:high]
        sizes: list[int] = np.bincount(grades[grades >= 0]).tolist()
        states = math.prod((size if k is None else min(size, k)) + 1 for size in sizes)
        if states > MOST_STATES:
            raise ValueError(
                f"k: expected one that leaves at most {MOST_STATES} counts of items by grade, "
                f"found {k} with {states} in list {number}"
            )


def _checked_relevance(relevance: ArrayLike, n: int, graded: bool) -> Bytes:
    values = real("relevance", relevance)
    if values.shape != (n,):
        raise ValueError(f"relevance: expected {n} numbers, as many as scores, found shape {values.shape}")
    largest = np.iinfo(np.int8).max if graded else 1
    wrong = np.flatnonzero(~np.isin(values, np.arange(-1, largest + 1)))
    if len(wrong):
        expected = f"whole numbers from 0 to {largest} or -1" if graded else "1, 0 or -1"
        raise ValueError(f"relevance: expected {expected}, found {values[wrong[0]]} at item {wrong[0]}")
    return np.ascontiguousarray(values, dtype=np.int8)


def _order(scores: Scores, relevance: Bytes, weights: Floats) -> Ints:
    """Return the ranking of the weights: Z/2 of one is the items of other grades before it, less the higher ones."""
    counts = np.bincount(relevance[relevance >= 0])
    n = int(counts.sum())
    moved = np.rint(weights * (n * n - np.sum(counts * counts)) / 4).astype(np.int64)
    order = np.empty(n, dtype=np.int64)
    higher = 0
    for grade in range(len(counts) - 1, -1, -1):
        items = np.flatnonzero(relevance == grade)
        items = items[np.lexsort((-scores[items], moved[items]))]
        order[moved[items] + higher + np.arange(len(items))] = items
        higher += len(items)
    return order
