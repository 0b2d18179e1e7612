"""When to stop: the model is sure that no label was missed.

A row that stops shows the labels with a yes and, optionally, labels that the model proposes: without an answer, but at
least as probable as a limit. A relevant label that is neither answered nor shown is *missed*; one that nobody knew is
not. With H the hidden labels, those neither answered nor shown,

    chance = P(none of H is relevant | answers)                                          ``cstar/inference/any_size.py``

exactly, and the row stops if it exceeds a threshold. By default that is the required confidence itself, which is as
reliable as the model; :func:`slatewise.labeling.calibrate_stopping` chooses a threshold that keeps the confidence.
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
    """What is shown of rows and what is hidden, given the answers, and which rows may stop."""

    log_odds: Floats
    """(n, N) of every label."""
    shown: Bools
    """(n, N) labels with a yes, or proposed."""
    hidden: Bools
    """(n, N) labels neither answered nor shown: those that a row would miss."""
    chance: Floats
    """(n,) that none of these is relevant."""
    stop: Bools
    """(n,) whether that is enough; always if nothing is hidden."""


@dataclass(frozen=True)
class StoppingRule:
    """Stop asking about a row once the model is sure that no label was missed.

    Parameters
    ----------
    confidence
        At most a share ``1 - confidence`` of the stopped rows may have a missed label.
    propose
        Labels without an answer that are at least this probable are shown without a question, so some of them are
        wrong. 0.5: what is more likely than not. Default: only labels with a yes are shown.
    threshold
        A row stops if the probability that nothing was missed is larger. Default: the confidence itself, which is what
        the model believes; :func:`calibrate_stopping` finds the threshold that keeps the confidence.
    n_rows
        The number of rows it was calibrated on; 0: it is not calibrated.

    Examples
    --------
    Label 0 has a yes. The model believes that the others are out, so it is sure enough.

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

    def look(self, rows: LabelRows, known: ArrayLike, answered: ArrayLike | None = None) -> Outlook:
        """Return the labels that are shown and hidden in each row, and the probability that none is missed.

        Parameters
        ----------
        rows
            Rows of a model of sets of any size: ``LabelRows.of(ranker, X, None)``.
        known
            (n, N): 1 yes, 0 no, -1 unknown.
        answered
            (n, N) True for labels with an answer, "don't know" included. Default: those that are known.
        """
        sets, executor = rows.sets(known), Executor.of(None)
        answers = sets.answers
        is_answered = answers >= 0
        if answered is not None:
            mask = np.atleast_2d(np.asarray(answered))
            if mask.shape != answers.shape or mask.dtype != np.bool_:
                raise ValueError(
                    f"answered: expected True and False in shape {answers.shape}, found {mask.dtype} in {mask.shape}"
                )
            is_answered |= mask
        log_z, log_odds = subset_odds(sets, executor)
        proposed = np.zeros(answers.shape, dtype=np.bool_)
        if self.propose is not None:
            proposed = ~is_answered & (chances(log_odds) >= self.propose)
        hidden = ~is_answered & ~proposed
        chance = none_chance(sets, hidden, log_z, executor)
        stop = (chance > self.needed) | ~hidden.any(axis=1)
        return Outlook(log_odds, (answers == 1) | proposed, hidden, chance, stop)

    def stop(self, rows: LabelRows, known: ArrayLike, answered: ArrayLike | None = None) -> Bools:
        """Return which rows may stop; the parameters are those of :meth:`look`."""
        return self.look(rows, known, answered).stop


def rows_of_sets(ranker: LabelRanker, X: ArrayLike) -> LabelRows:
    """Return rows of a model that says how likely sets of labels are."""
    if ranker.needs_count:
        raise ValueError(
            "ranker: expected one with probabilities of sets of any size (CStarRanker, GivenLogOdds), found "
            f"{type(ranker).__name__}, which needs the number of labels"
        )
    return LabelRows.of(ranker, X, None)
