"""What a question is worth, in nats: how uncertain labels are, and how much of that bears on the others.

H(y_i)       learnt by asking label i: so much less is unknown of the whole set
I(y_i; z)    of it, what it says about the setting z of the core: given z the others do not depend on label i, so for a
             label that is not in the core this is all it says about all other labels together
H(y)         unknown of the whole row: H(z) + sum over the others of H(y_i | z)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.kernels.subset_layout import SubsetPair
from slatewise.cstar.subsets import SubsetRows, core_settings, subset_odds

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_LEAST = -1000.0  # the chance of a setting with a smaller logarithm is 0


class SubsetInformation(NamedTuple):
    """Entropies in nats; 0 where the answer is known."""

    label: Floats
    """(n, N) of each label: H(y_i)."""
    shared: Floats
    """(n, N) what a label says about the core: I(y_i; z); all it has, for a core label."""
    row: Floats
    """(n,) of the whole set: H(y)."""


def label_entropy(log_odds: Floats) -> Floats:
    """Return the entropy of labels with such log-odds, for one question the cheapest guide.

    Examples
    --------
    >>> label_entropy(np.array([0.0, 3.0, -40.0, np.inf])).round(3)
    array([0.693, 0.191, 0.   , 0.   ])
    """
    distance = np.where(np.isinf(log_odds), 1e300, np.abs(log_odds))
    small = np.exp(-distance)
    return np.log1p(small) + distance * small / (1.0 + small)


def row_information(rows: SubsetRows, executor: Executor = ONE_THREAD) -> SubsetInformation:
    """Return the entropies of rows that were checked."""
    star, rest = SubsetPair.of(rows.pair.arrays), rows.pair.arrays.rest
    given_core, whole = np.zeros(rows.s.shape), np.empty(len(rows.s))

    def fill(cut: slice) -> None:
        from slatewise.cstar.kernels.subset_information import entropies_given_core

        found = core_settings(star, rows.cut(cut))
        entropy = np.empty(found.terms.v.shape)
        entropies_given_core(star, found.terms, found.chance, entropy)
        given_core[cut, rest] = entropy
        of_core = -(found.chance * np.maximum(found.log_chance, _LEAST)).sum(axis=1)
        whole[cut] = of_core + entropy.sum(axis=1)

    executor.fill_blocks(fill, rows.blocks())
    label = label_entropy(subset_odds(rows, executor).log_odds)
    return SubsetInformation(label, np.maximum(label - given_core, 0.0), whole)


def subset_information(
    s: ArrayLike, pair: ArrayLike, core: ArrayLike, known: ArrayLike | None = None, n_jobs: int | None = None
) -> SubsetInformation:
    """Return how uncertain labels and rows are, and what each label says about the core, in nats.

    The parameters are those of :func:`slatewise.inference.subset_marginals`. Asking a label takes its entropy off that
    of the row, whatever the answer is on average; the part it shares with the core is what the answer says about other
    labels.

    Examples
    --------
    Labels 1 and 2 are as uncertain, but label 1 goes with label 0.

    >>> found = subset_information([-1.5, -1.5, 0.0], pair=[[0.0, 3.0, 0.0]], core=[0])
    >>> found.label.round(2), found.shared.round(2), found.row.round(2)
    (array([[0.69, 0.69, 0.69]]), array([[0.69, 0.22, 0.  ]]), array([1.86]))
    """
    return row_information(SubsetRows.of(s, pair, core, known), Executor.of(n_jobs))
