"""Which row to label next: what is gained by a visit that lasts until the row may stop.

file order     as they come
least sure     most entropy of the whole set, H(y)
most gain      labels put right per cost:  sum_i min(p_i, 1 - p_i)  /  what it costs until the row may stop

Without a visit a row gets the likelier answer for each label, and expects as many wrong ones as the sum says; after it,
none. If labels were independent the probability that nothing was missed would be the product of 1 - p over labels not
asked, whatever the answers: the questions until it is large enough are counted by that, the best ones first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Bools, Floats
from slatewise.core.executor import Executor
from slatewise.cstar.inference.any_size import chances, row_information
from slatewise.labeling.policies import Situation, costs_of, doubt
from slatewise.labeling.stopping import StoppingRule


class RowPolicy(Protocol):
    """Says which rows come first."""

    def worth(self, situation: Situation) -> Floats:
        """Return one number per row: the largest comes first, of equal ones the first in the file."""
        ...


@dataclass(frozen=True)
class FileOrder:
    """Row after row."""

    def worth(self, situation: Situation) -> Floats:
        """All the same."""
        return np.zeros(len(situation.known))


@dataclass(frozen=True)
class LeastSure:
    """The row of whose labels the model knows least, given the answers."""

    def worth(self, situation: Situation) -> Floats:
        """Return the entropy of the set of labels, in nats."""
        return row_information(situation.rows.sets(situation.known), Executor.of(None)).row


@dataclass(frozen=True, eq=False)
class MostGain:
    """The row where a visit puts most labels right for what it costs.

    Parameters
    ----------
    rule
        When the visit ends; what it proposes is not asked.
    costs
        What a question for each label costs, > 0. Default: all the same.

    Examples
    --------
    The first row is sure but for one label. In the second much more is open, but it takes three questions.

    >>> from slatewise.labeling.rows import GivenLogOdds, LabelRows
    >>> rows = LabelRows.of(GivenLogOdds(3), [[0.0, -9.0, -9.0], [1.0, -1.0, -1.0]], k=None)
    >>> known = np.full((2, 3), -1, dtype=np.int8)
    >>> MostGain().worth(Situation(rows, known, rows.margins(known), known < 0)).round(3)
    array([0.5  , 0.269])
    """

    rule: StoppingRule = field(default_factory=StoppingRule)
    costs: ArrayLike | None = None

    def worth(self, situation: Situation) -> Floats:
        """Return how many labels are expected to be put right, per cost."""
        situation.rows.sets(situation.known)  # others have no probabilities
        chance = chances(situation.margins)
        wrong = np.where(situation.askable, np.minimum(chance, 1.0 - chance), 0.0).sum(axis=1)
        costs = costs_of(self.costs, chance.shape[1])
        return wrong / cost_to_stop(situation.margins, situation.askable, self.rule.needed, costs)


def cost_to_stop(log_odds: Floats, askable: Bools, needed: float, costs: Floats) -> Floats:
    """Return what questions cost until a row may stop, if labels were independent; of one question at least.

    Examples
    --------
    Three labels of probability 0.5, 0.1 and 0.01: to be sure of nothing else at 0.95, two questions.

    >>> odds = np.log([[0.5 / 0.5, 0.1 / 0.9, 0.01 / 0.99]])
    >>> cost_to_stop(odds, np.ones((1, 3), dtype=np.bool_), 0.95, np.ones(3))
    array([2.])
    """
    doubts = np.where(askable, doubt(log_odds), 0.0)
    order = np.argsort(-doubts / costs, axis=1, kind="stable")
    left = np.take_along_axis(doubts, order, axis=1)[:, ::-1].cumsum(axis=1)[:, ::-1]  # if nothing is asked from here
    with np.errstate(divide="ignore"):
        asked = (left >= -np.log(needed)) & np.take_along_axis(askable, order, axis=1)
    asked[:, 0] = True
    return (asked * costs[order]).sum(axis=1)
