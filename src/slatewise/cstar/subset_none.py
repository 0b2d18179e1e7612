"""How likely is it that none of some labels is in: that nothing was missed, if these are left out.

P(none of A | answers) = Z(answers, every label of A out) / Z(answers) ,

all sets in 2^C terms twice, exactly. Told that one label i of A is out, it grows to P(none of A) / P(i is out): a "no"
takes ``-log P(i is out)`` off the doubt ``-log P(none of A)``, whatever the other labels are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from slatewise.core.arrays import Bools, Floats
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.subsets import SubsetRows, log_partition

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def none_chance(rows: SubsetRows, among: Bools, log_z: Floats, executor: Executor = ONE_THREAD) -> Floats:
    """Return the probability of rows that were checked and whose log Z is there; no label of ``among`` is known."""
    without = np.where(among, 0, -1 if rows.known is None else rows.known).astype(np.int8)
    rest = log_partition(SubsetRows(rows.s, rows.pair, without), executor)
    return np.where(among.any(axis=1), np.exp(np.minimum(rest - log_z, 0.0)), 1.0)


def subset_none(
    s: ArrayLike,
    pair: ArrayLike,
    core: ArrayLike,
    among: ArrayLike,
    known: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Floats:
    """Return, for each row, the probability that no label of ``among`` is in, among sets of any size.

    The other parameters are those of :func:`slatewise.inference.subset_marginals`.

    Parameters
    ----------
    among : array_like like s
        True for the labels in question. One that is known to be in leaves 0, one that is known to be out says nothing.

    Examples
    --------
    Labels 0 and 1 go together, so that neither is there more often than if they were independent.

    >>> subset_none([0.0, 0.0], pair=[[0.0, 2.0]], core=[0], among=[True, True]).round(3)
    array([0.096])
    >>> subset_none([0.0, 0.0], pair=[[0.0, 2.0]], core=[0], among=[False, True], known=[0, -1]).round(3)
    array([0.5])
    """
    rows, executor = SubsetRows.of(s, pair, core, known), Executor.of(n_jobs)
    asked = np.atleast_2d(np.asarray(among))
    if asked.shape != rows.s.shape or asked.dtype != np.bool_:
        raise ValueError(
            f"among: expected True and False in the shape of s, {rows.s.shape}, found {asked.dtype} {asked.shape}"
        )
    seen = asked if rows.known is None else asked & (rows.known < 0)
    chance = none_chance(rows, seen, log_partition(rows, executor), executor)
    return chance if rows.known is None else np.where((asked & (rows.known == 1)).any(axis=1), 0.0, chance)
