"""When to stop: the model is sure that no label was missed.

A row that stops shows the labels that were answered with yes and, if so wished, those that the model proposes: not
asked, but at least so probable. A relevant label that was neither asked nor is shown is *missed*; one that nobody knew
is not. Of the hidden labels H, neither asked nor shown,

    chance = P(none of H is relevant | answers)                                          ``cstar/subset_none.py``

exactly, and the row stops where it exceeds a threshold. By itself that is the confidence that was asked for, as good as
the model; :func:`slatewise.labeling.calibrate_stopping` chooses it so that a promise is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Bools, Floats
from slatewise.core.running.executor import Executor
from slatewise.cstar.inference.any_size import chances, none_chance, subset_odds
from slatewise.labeling.questions.rows import LabelRanker, LabelRows


class Outlook(NamedTuple):
    """What the model says of rows, given the answers."""

    log_odds: Floats
    """(n, N) of every label."""
    shown: Bools
    """(n, N) labels answered with yes, or proposed."""
    hidden: Bools
    """(n, N) labels neither asked nor shown: those that a row would miss."""
    chance: Floats
    """(n,) that none of these is relevant."""
    stop: Bools
    """(n,) whether that is enough; always where nothing is hidden."""


@dataclass(frozen=True)
class StoppingRule:
    """Stop asking about a row once the model is sure that no label was missed.

    Parameters
    ----------
    confidence
        How sure: of the rows that are stopped, at most a share of ``1 - confidence`` may have a missed label.
    propose
        Labels not asked that are at least so probable are shown, and not missed; nor are they asked, so some that are
        shown are wrong. 0.5: what is more likely than not. Default: only what was answered with yes is shown.
    threshold
        A row stops where the probability that nothing was missed is larger. Default: the confidence itself, which
        promises nothing but what the model believes; :func:`calibrate_stopping` finds the one that keeps the promise.
    n_rows
        How many rows it was calibrated on; 0: it is not calibrated.

    Examples
    --------
    Label 0 said yes. Of the others the model believes that they are out, so it is sure enough.

    >>> from slatewise.labeling.questions.rows import GivenLogOdds
    >>> rows = LabelRows.of(GivenLogOdds(3), [[2.0, -4.0, -5.0]], k=None)
    >>> rule = StoppingRule(0.95)
    >>> rule.look(rows, [[-1, -1, -1]]).chance.round(3), rule.look(rows, [[1, -1, -1]]).chance.round(3)
    (array([0.116]), array([0.975]))
    >>> rule.stop(rows, [[1, -1, -1]])
    array([ True])
    """

    confidence: float = 0.95
    propose: float | None = None
    threshold: float | None = None
    n_rows: int = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence < 1.0:
            raise ValueError(f"confidence: expected a probability between 0 and 1, found {self.confidence!r}")
        if self.propose is not None and not 0.0 < self.propose < 1.0:
            raise ValueError(f"propose: expected None or a probability between 0 and 1, found {self.propose!r}")
        if self.threshold is not None and not 0.0 <= self.threshold <= 1.0:
            raise ValueError(f"threshold: expected None or a probability from 0 to 1, found {self.threshold!r}")

    @property
    def needed(self) -> float:
        """The chance that must be exceeded."""
        return self.confidence if self.threshold is None else self.threshold

    def look(self, rows: LabelRows, known: ArrayLike, asked: ArrayLike | None = None) -> Outlook:
        """Return what is shown, what is hidden, and how likely nothing is missed.

        Parameters
        ----------
        rows
            Rows of a model of sets of any size: ``LabelRows.of(ranker, X, None)``.
        known
            (n, N): 1 yes, 0 no, -1 unknown.
        asked
            (n, N) True for labels that were asked, answered or not. Default: those that are known.
        """
        sets, executor = rows.sets(known), Executor.of(None)
        answers = sets.answers
        was_asked = (answers >= 0) | (False if asked is None else _checked_asked(asked, answers.shape))
        log_z, log_odds = subset_odds(sets, executor)
        proposed = np.zeros(answers.shape, dtype=np.bool_)
        if self.propose is not None:
            proposed = ~was_asked & (chances(log_odds) >= self.propose)
        hidden = ~was_asked & ~proposed
        chance = none_chance(sets, hidden, log_z, executor)
        stop = (chance > self.needed) | ~hidden.any(axis=1)
        return Outlook(log_odds, (answers == 1) | proposed, hidden, chance, stop)

    def stop(self, rows: LabelRows, known: ArrayLike, asked: ArrayLike | None = None) -> Bools:
        """Return which rows may stop; the parameters are those of :meth:`look`."""
        return self.look(rows, known, asked).stop


def rows_of_sets(ranker: LabelRanker, X: ArrayLike) -> LabelRows:
    """Return rows of a model that says how likely sets of labels are."""
    if ranker.needs_count:
        raise ValueError(
            "ranker: expected one with probabilities of sets of any size (CStarRanker, GivenLogOdds), found "
            f"{type(ranker).__name__}, which needs the number of labels"
        )
    return LabelRows.of(ranker, X, None)


def _checked_asked(asked: ArrayLike, shape: tuple[int, ...]) -> Bools:
    mask = np.atleast_2d(np.asarray(asked))
    if mask.shape != shape or mask.dtype != np.bool_:
        raise ValueError(f"asked: expected True and False in shape {shape}, found {mask.dtype} in {mask.shape}")
    return mask
