"""Which set to answer with if the number of labels is unknown: each measure has its own best set.

subset       the most probable set: right as a whole most often
hamming      every label that is more probable than not: fewest wrong labels expected
f1           the set with the largest expected F1, by the general F-measure maximizer (Dembczynski et al. 2011)
count        the most probable labels, as many as are expected

F1 of a set with itself is 1, also where both are empty; then a set of no labels expects P(|y| = 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from slatewise.core.arrays import Bools, Floats
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.inference.any_size import SubsetRows, chances, core_settings, subset_odds
from slatewise.cstar.kernels.subset_layout import KNOWN_IN, WILD, SubsetPair, SubsetTerms

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class BestSubsets(NamedTuple):
    """One set per row."""

    chosen: Bools
    """(n, N)."""
    score: Floats
    """(n,) f of the set, or what it is expected to measure."""


def most_probable_sets(rows: SubsetRows, executor: Executor = ONE_THREAD) -> BestSubsets:
    """Return the set with the largest f of each row; a label that adds 0 stays out."""
    pair = rows.pair.arrays
    star, chosen, score = SubsetPair.of(pair), np.empty(rows.s.shape, dtype=np.bool_), np.empty(len(rows.s))

    def fill(cut: slice) -> None:
        from slatewise.cstar.kernels.subset_sizes import best_settings

        block = rows.cut(cut)
        any_kind = np.full((len(block.s), len(pair.rest)), WILD, dtype=np.int8)
        terms, score[cut] = SubsetTerms.of_kinds(block.s, any_kind, block.answers, pair, star)
        setting = np.empty(len(terms.v), dtype=np.int64)
        best_settings(star, terms, setting, score[cut])
        value = terms.v.copy()
        for c, label in enumerate(pair.core):
            chosen[cut, label] = (setting >> c) & 1
            value += chosen[cut, label][:, None] * star.outer[:, c]
        chosen[cut, pair.rest] = np.where(terms.kind < KNOWN_IN, value > 0.0, terms.kind == KNOWN_IN)

    executor.fill_blocks(fill, rows.blocks())
    return BestSubsets(chosen, score)


def f1_sets(rows: SubsetRows, executor: Executor = ONE_THREAD) -> BestSubsets:
    """Return the set with the largest expected F1 of each row, and what it expects."""
    pair = rows.pair.arrays
    star, chosen, expected = SubsetPair.of(pair), np.empty(rows.s.shape, dtype=np.bool_), np.empty(len(rows.s))

    def fill(cut: slice) -> None:
        from slatewise.cstar.kernels.subset_sizes import decide_for_f1

        found = core_settings(star, rows.cut(cut))
        sets, sizes = np.empty(rows.s[cut].shape, dtype=np.int8), np.empty((len(rows.s[cut]), rows.pair.n_items + 1))
        decide_for_f1(star, found.terms, found.chance, sizes, sets, expected[cut])
        chosen[cut, np.concatenate([pair.rest, pair.core])] = sets

    executor.fill_blocks(fill, rows.blocks())
    return BestSubsets(chosen, expected)


def hamming_sets(rows: SubsetRows, executor: Executor = ONE_THREAD) -> Bools:
    """Return the labels of each row that are more probable than not."""
    return subset_odds(rows, executor).log_odds > 0.0


def expected_count_sets(rows: SubsetRows, executor: Executor = ONE_THREAD) -> Bools:
    """Return the most probable labels of each row, their expected number rounded; ties by number.

    Examples
    --------
    >>> expected_count_sets(SubsetRows.of([[0.5, -0.4, -0.6, -9.0]], pair=np.zeros((0, 4)), core=[]))
    array([[ True, False, False, False]])
    """
    log_odds = subset_odds(rows, executor).log_odds
    count = np.rint(chances(log_odds).sum(axis=1)).astype(np.int64)
    rank = np.argsort(np.argsort(-log_odds, axis=1, kind="stable"), axis=1, kind="stable")
    return rank < count[:, None]


def size_chances(rows: SubsetRows, executor: Executor = ONE_THREAD) -> Floats:
    """Return P(|y| = 0), P(|y| = 1), ... of each row, cut where less than 1e-12 is left of every row."""
    star, sizes = SubsetPair.of(rows.pair.arrays), np.zeros((len(rows.s), rows.pair.n_items + 1))

    def fill(cut: slice) -> None:
        from slatewise.cstar.kernels.subset_sizes import decide_for_f1

        found = core_settings(star, rows.cut(cut))
        no_sets = np.empty((0, rows.pair.n_items), dtype=np.int8)
        decide_for_f1(star, found.terms, found.chance, sizes[cut], no_sets, np.empty(0))

    executor.fill_blocks(fill, rows.blocks())
    most = np.flatnonzero(sizes.any(axis=0))
    return sizes[:, : int(most[-1]) + 1 if len(most) else 1].copy()


def best_subset(
    s: ArrayLike, pair: ArrayLike, core: ArrayLike, known: ArrayLike | None = None, n_jobs: int | None = None
) -> BestSubsets:
    """Return the most probable set of each row, of any size, and its score f.

    The parameters are those of :func:`slatewise.inference.subset_marginals`; the set agrees with what is known.

    Examples
    --------
    Label 1 is worth having with label 0 only.

    >>> found = best_subset([1.0, -1.0, -1.0], pair=[[0.0, 2.0, 0.5]], core=[0])
    >>> found.chosen, found.score
    (array([[ True,  True, False]]), array([2.]))
    """
    return most_probable_sets(SubsetRows.of(s, pair, core, known), Executor.of(n_jobs))


def f1_subset(
    s: ArrayLike, pair: ArrayLike, core: ArrayLike, known: ArrayLike | None = None, n_jobs: int | None = None
) -> BestSubsets:
    """Return the set of each row with the largest expected F1, and what it expects.

    The parameters are those of :func:`slatewise.inference.subset_marginals`. No label on both sides counts as an F1
    of 1.

    Examples
    --------
    Where much is possible and nothing sure, F1 asks for more labels than the most probable set holds.

    >>> found = f1_subset([-0.5, -0.5, -0.5, -4.0], pair=[[0.0, 1.0, 1.0, 0.0]], core=[0])
    >>> found.chosen, found.score.round(3)
    (array([[ True,  True,  True, False]]), array([0.649]))
    """
    return f1_sets(SubsetRows.of(s, pair, core, known), Executor.of(n_jobs))


def subset_sizes(
    s: ArrayLike, pair: ArrayLike, core: ArrayLike, known: ArrayLike | None = None, n_jobs: int | None = None
) -> Floats:
    """Return, for each row, how likely 0, 1, 2, ... labels are in, cut where less than 1e-12 is left.

    The parameters are those of :func:`slatewise.inference.subset_marginals`.

    Examples
    --------
    >>> subset_sizes([0.0, 0.0, 0.0], pair=np.zeros((0, 3)), core=[]).round(3)
    array([[0.125, 0.375, 0.375, 0.125]])
    """
    return size_chances(SubsetRows.of(s, pair, core, known), Executor.of(n_jobs))
