"""Which label to ask next: one question per row, -1 where no answer could change anything.

margin rule    argmin_i |best score with i in - best with i out|          Mensink et al., section 5
uncertainty    the same with every label scored by itself: the label closest to the selection threshold
most probable  argmax_i -log P(i is out) / cost_i: a "no" takes most doubt off that something was missed, see
               ``cstar/subset_none.py``, and a "yes" finds a label
information    argmax_i H(y_i) / cost_i: as the margin rule where all cost the same
random         any label that is still open
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Bools, Bytes, Floats, Ints
from slatewise.core.checks import real_numbers
from slatewise.cstar.inference.any_size import label_entropy
from slatewise.labeling.rows import LabelRows


@dataclass(frozen=True, eq=False)
class Situation:
    """All a policy may look at."""

    rows: LabelRows
    known: Bytes
    margins: Floats
    """In minus out, given ``known``."""
    askable: Bools
    """Labels not asked before and not decided by the answers."""

    def take(self, numbers: Ints) -> Situation:
        """Return that of some of the rows."""
        return Situation(self.rows.take(numbers), self.known[numbers], self.margins[numbers], self.askable[numbers])


class QuestionPolicy(Protocol):
    """Chooses questions."""

    def ask(self, situation: Situation, rng: np.random.Generator) -> Ints:
        """Return one label per row, -1 where none is askable."""
        ...


@dataclass(frozen=True)
class MarginRule:
    """Ask where the model cares least whether the label is in or out.

    Examples
    --------
    >>> from slatewise.labeling.rows import GivenScores
    >>> rows = LabelRows.of(GivenScores(4), [[3.0, 2.0, 1.5, 0.0]], k=2)
    >>> known = np.full((1, 4), -1, dtype=np.int8)
    >>> MarginRule().ask(Situation(rows, known, rows.margins(known), known < 0), np.random.default_rng(0))
    array([1])
    """

    def ask(self, situation: Situation, rng: np.random.Generator) -> Ints:
        """Smallest distance between in and out."""
        return _smallest(np.abs(situation.margins), situation.askable)


@dataclass(frozen=True)
class Uncertainty:
    """Ask for the label closest to the threshold by its own score: the margin rule of a model without pairs."""

    def ask(self, situation: Situation, rng: np.random.Generator) -> Ints:
        """Smallest distance to the threshold."""
        return _smallest(np.abs(situation.rows.without_pairs().margins(situation.known)), situation.askable)


@dataclass(frozen=True, eq=False)
class MostProbable:
    """Ask for the most probable label: the way to find all, and to stop soon; see :class:`StoppingRule`.

    Parameters
    ----------
    costs
        What a question for each label costs, > 0; then it is the doubt that a "no" takes off per cost. Default: all
        the same. For models that say how likely labels are.

    Examples
    --------
    >>> from slatewise.labeling.rows import GivenLogOdds
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
        """Most doubt per cost."""
        gain = situation.margins  # in the order of the doubt, also where that is lost in rounding
        if self.costs is not None:
            gain = doubt(gain) / costs_of(self.costs, gain.shape[1])
        return _smallest(-gain, situation.askable)


@dataclass(frozen=True, eq=False)
class MostInformation:
    """Ask where the answer says most for its cost: the entropy of the label per cost.

    Parameters
    ----------
    costs
        What a question for each label costs, > 0. Default: all the same, which asks what the margin rule asks. For
        models that say how likely labels are.
    """

    costs: ArrayLike | None = None

    def ask(self, situation: Situation, rng: np.random.Generator) -> Ints:
        """Largest entropy per cost."""
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
    """Return what a question for each of so many labels costs: 1 where nobody says."""
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
