"""Why a label is in the selection: its own score, and what each selected core label added or took.

    share of label i  =  s_i + sum over selected core labels c != i of G_ci

A pair of two core labels shows in the share of both, though it counts once in the score of the selection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Explanation:
    """For row n and its r-th best label: which label, its own score, and the part of every core label."""

    labels: NDArray[Any]
    """(n, k) selected labels, best first: their names where they have some."""
    own: Floats
    """(n, k) score of the label by itself."""
    own_rank: Ints
    """(n, k) rank of the label by its own score alone, from 1: larger than k where pairs brought it in."""
    core: NDArray[Any]
    """(C,) core labels, called as in ``labels``."""
    pairs: Floats
    """(n, k, C) what core label ``core[c]`` gave, 0 where it is not selected."""


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
