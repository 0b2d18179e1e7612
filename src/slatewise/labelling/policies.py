"""Which label to ask next: one question per row, -1 where no answer could change anything.

margin rule    argmin_i |best score with i in - best with i out|          Mensink et al., section 5
uncertainty    the same with every label scored by itself: the label closest to the selection threshold
random         any label that is still open
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from slatewise.labelling.rows import Bools, Floats, Ints, Known, LabelRows


@dataclass(frozen=True, eq=False)
class Situation:
    """All a policy may look at."""

    rows: LabelRows
    known: Known
    margins: Floats
    """In minus out, given ``known``."""
    askable: Bools
    """Labels not asked before and not decided by the answers."""


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
    >>> from slatewise.labelling.rows import GivenScores
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


@dataclass(frozen=True)
class RandomQuestion:
    """Ask for any open label."""

    def ask(self, situation: Situation, rng: np.random.Generator) -> Ints:
        """Draw evenly."""
        return _smallest(rng.random(situation.askable.shape), situation.askable)


def _smallest(values: Floats, askable: Bools) -> Ints:
    question = np.argmin(np.where(askable, values, np.inf), axis=1).astype(np.int64)
    return np.where(askable.any(axis=1), question, -1)
