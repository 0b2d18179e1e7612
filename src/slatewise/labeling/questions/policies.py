"""Which label to ask next in a row, and which row to label next.

A question policy returns one label per row, -1 if no answer could change anything:

margin rule    argmin_i |best score with i in - best with i out|          Mensink et al., section 5
uncertainty    the same with every label scored by itself: the label closest to the selection threshold
most probable  argmax_i -log P(i is out) / cost_i: a "no" removes most doubt about missed labels, see
               ``cstar/inference/any_size.py``, and a "yes" finds a label
information    argmax_i H(y_i) / cost_i: as the margin rule if all cost the same
random         any label that is still open

A row policy returns what each row is worth, if it is labeled until it may stop:

file order     the order of the rows
least sure     entropy of the whole set, H(y)
most gain      labels put right per cost:  sum_i min(p_i, 1 - p_i)  /  cost until the row may stop

An unlabeled row gets the likelier answer for each label and expects as many errors as the sum says; a labeled row has
none. If labels were independent, the probability that nothing was missed would be the product of 1 - p over the open
labels, whatever the answers: the questions until it is large enough are counted by that, the best ones first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Bools, Bytes, Floats, Ints
from slatewise.core.checks import real_numbers
from slatewise.core.running.executor import Executor
from slatewise.cstar.inference.any_size import chances, label_entropy, row_information
from slatewise.labeling.questions.rows import LabelRows
from slatewise.labeling.questions.stopping import StoppingRule


@dataclass(frozen=True, eq=False)
class Situation:
    """The input of a policy: rows and what is known of them."""

    rows: LabelRows
    known: Bytes
    margins: Floats
    """In minus out, given ``known``."""
    askable: Bools
    """Labels without an answer that the answers do not decide."""

    def take(self, numbers: Ints) -> Situation:
        """Return that of some of the rows."""
        return Situation(self.rows.take(numbers), self.known[numbers], self.margins[numbers], self.askable[numbers])


class QuestionPolicy(Protocol):
    """Chooses questions."""

    def ask(self, situation: Situation, rng: np.random.Generator) -> Ints:
        """Return one label per row, -1 if none is askable."""
        ...


@dataclass(frozen=True)
class MarginRule:
    """Ask for the label whose margin is closest to 0: selecting it or not makes the least difference to the model.

    Examples
    --------
    >>> from slatewise.labeling.questions.rows import GivenScores
    >>> rows = LabelRows.of(GivenScores(4), [[3.0, 2.0, 1.5, 0.0]], k=2)
    >>> known = np.full((1, 4), -1, dtype=np.int8)
    >>> MarginRule().ask(Situation(rows, known, rows.margins(known), known < 0), np.random.default_rng(0))
    array([1])
    """

    def ask(self, situation: Situation, rng: np.random.Generator) -> Ints:
        """Return the label with the smallest margin in size."""
        return _smallest(np.abs(situation.margins), situation.askable)


@dataclass(frozen=True)
class Uncertainty:
    """Ask for the label whose unary score is closest to the threshold: the margin rule without pair terms."""

    def ask(self, situation: Situation, rng: np.random.Generator) -> Ints:
        """Return the label closest to the threshold."""
        return _smallest(np.abs(situation.rows.without_pairs().margins(situation.known)), situation.askable)


@dataclass(frozen=True, eq=False)
class MostProbable:
    """Ask for the most probable label: the way to find all, and to stop soon; see :class:`StoppingRule`.

    Parameters
    ----------
    costs
        The cost of a question for each label, > 0: the doubt that a "no" removes is divided by it. Default: all the
        same. For models with probabilities.

    Examples
    --------
    >>> from slatewise.labeling.questions.rows import GivenLogOdds
    >>> rows = LabelRows.of(GivenLogOdds(3), [[2.0, 0.5, -1.0]], k=None)
    >>> known = np.full((1, 3), -1, dtype=np.int8)
    >>> situation = Situation(rows, known, rows.margins(known), known < 0)
    >>> MostProbable().ask(situation, np.random.default_rng(0))
    array([0])
    >>> MostProbable(costs=[5.0, 1.0, 1.0]).ask(situation, np.random.default_rng(0))
    array([1])
    """

    costs: ArrayLike | None = None

    def ask(self, situation: Situation, rng: np.random.Generator) -> Ints:
        """Return the label with the most doubt per cost."""
        gain = situation.margins  # in the order of the doubt, also where that is lost in rounding
        if self.costs is not None:
            gain = doubt(gain) / costs_of(self.costs, gain.shape[1])
        return _smallest(-gain, situation.askable)


@dataclass(frozen=True, eq=False)
class MostInformation:
    """Ask for the label whose answer is most informative: the largest entropy per cost.

    Parameters
    ----------
    costs
        The cost of a question for each label, > 0. Default: all the same, which asks what the margin rule asks. For
        models with probabilities.
    """

    costs: ArrayLike | None = None

    def ask(self, situation: Situation, rng: np.random.Generator) -> Ints:
        """Return the label with the largest entropy per cost."""
        n_labels = situation.margins.shape[1]
        return _smallest(-label_entropy(situation.margins) / costs_of(self.costs, n_labels), situation.askable)


@dataclass(frozen=True)
class RandomQuestion:
    """Ask for any open label."""

    def ask(self, situation: Situation, rng: np.random.Generator) -> Ints:
        """Draw evenly."""
        return _smallest(rng.random(situation.askable.shape), situation.askable)


def doubt(log_odds: Floats) -> Floats:
    """Return minus the logarithm of the probability that each label is out.

    Examples
    --------
    >>> doubt(np.array([-5.0, 0.0, 5.0])).round(3)
    array([0.007, 0.693, 5.007])
    """
    return np.logaddexp(0.0, log_odds)


def costs_of(costs: ArrayLike | None, n_labels: int) -> Floats:
    """Return the cost of a question for each label; default: 1."""
    if costs is None:
        return np.ones(n_labels)
    found = real_numbers("costs", costs)
    if found.shape != (n_labels,):
        raise ValueError(f"costs: expected one number per label, shape {(n_labels,)}, found {found.shape}")
    if not np.all(np.isfinite(found) & (found > 0.0)):
        raise ValueError(f"costs: expected finite numbers > 0, found {found[~(np.isfinite(found) & (found > 0.0))][0]}")
    return found


def _smallest(values: Floats, askable: Bools) -> Ints:
    question = np.argmin(np.where(askable, values, np.inf), axis=1).astype(np.int64)
    return np.where(askable.any(axis=1), question, -1)


class RowPolicy(Protocol):
    """Orders rows."""

    def worth(self, situation: Situation) -> Floats:
        """Return one number per row: larger ones come first, and equal ones in the order of the file."""
        ...


@dataclass(frozen=True)
class FileOrder:
    """Rows in the order of the file."""

    def worth(self, situation: Situation) -> Floats:
        """Return 0 for every row."""
        return np.zeros(len(situation.known))


@dataclass(frozen=True)
class LeastSure:
    """Prefer rows whose labels are most uncertain, given the answers."""

    def worth(self, situation: Situation) -> Floats:
        """Return the entropy of the set of labels, in nats."""
        return row_information(situation.rows.sets(situation.known), Executor.of(None)).row


@dataclass(frozen=True, eq=False)
class MostGain:
    """Prefer rows where questions are expected to correct the most labels for their cost.

    Parameters
    ----------
    rule
        When a row may stop; there are no questions about labels that it proposes.
    costs
        The cost of a question for each label, > 0. Default: all the same.

    Examples
    --------
    In the first row one label is open. In the second there is more to gain, but it takes three questions.

    >>> from slatewise.labeling.questions.rows import GivenLogOdds, LabelRows
    >>> rows = LabelRows.of(GivenLogOdds(3), [[0.0, -9.0, -9.0], [1.0, -1.0, -1.0]], k=None)
    >>> known = np.full((2, 3), -1, dtype=np.int8)
    >>> MostGain().worth(Situation(rows, known, rows.margins(known), known < 0)).round(3)
    array([0.5  , 0.269])
    """

    rule: StoppingRule = field(default_factory=StoppingRule)
    costs: ArrayLike | None = None

    def worth(self, situation: Situation) -> Floats:
        """Return the number of labels that are expected to be corrected, per cost."""
        situation.rows.sets(situation.known)  # others have no probabilities
        chance = chances(situation.margins)
        wrong = np.where(situation.askable, np.minimum(chance, 1.0 - chance), 0.0).sum(axis=1)
        costs = costs_of(self.costs, chance.shape[1])
        return wrong / cost_to_stop(situation.margins, situation.askable, self.rule.needed, costs)


def cost_to_stop(log_odds: Floats, askable: Bools, needed: float, costs: Floats) -> Floats:
    """Return the cost of the questions until a row may stop, if labels were independent; at least one question.

    Examples
    --------
    Three labels of probability 0.5, 0.1 and 0.01: to be sure of nothing else at 0.95, two questions.

    >>> odds = np.log([[0.5 / 0.5, 0.1 / 0.9, 0.01 / 0.99]])
    >>> cost_to_stop(odds, np.ones((1, 3), dtype=np.bool_), 0.95, np.ones(3))
    array([2.])
    """
    doubts = np.where(askable, doubt(log_odds), 0.0)
    order = np.argsort(-doubts / costs, axis=1, kind="stable")
    left = np.take_along_axis(doubts, order, axis=1)[:, ::-1].cumsum(axis=1)[:, ::-1]  # if no more questions follow
    with np.errstate(divide="ignore"):
        is_needed = (left >= -np.log(needed)) & np.take_along_axis(askable, order, axis=1)
    is_needed[:, 0] = True
    return (is_needed * costs[order]).sum(axis=1)
