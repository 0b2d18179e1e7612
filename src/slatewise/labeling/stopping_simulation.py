"""Play questions until a rule says stop, and count: questions, labels missed, labels shown that are wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Bools, Bytes, Floats, Ints
from slatewise.core.checks import whole_number
from slatewise.data.labels import check_labels
from slatewise.labeling.annotators import Annotator, Truthful
from slatewise.labeling.game import Game
from slatewise.labeling.policies import MostProbable, QuestionPolicy, Situation, costs_of
from slatewise.labeling.rows import LabelRanker
from slatewise.labeling.stopping import StoppingRule, rows_of_sets


@dataclass(frozen=True, eq=False)
class StoppingResult:
    """What became of each row."""

    asked: Ints
    """(n, most questions) the labels in the order asked, -1 after the last."""
    known: Bytes
    """(n, N) the answers: 1 yes, 0 no, -1 not asked, or nobody knew."""
    shown: Bools
    """(n, N) labels answered with yes, or proposed."""
    stopped: Bools
    """(n,) whether the rule stopped the row while a label was neither asked nor shown."""
    missed: Ints
    """(n,) relevant labels that were neither asked nor are shown."""
    wrong: Ints
    """(n,) labels shown that are not relevant."""
    chance: Floats
    """(n,) that nothing was missed, as the model says."""

    @property
    def questions(self) -> Ints:
        """(n,) how many were asked."""
        return (self.asked >= 0).sum(axis=1)

    @property
    def not_known(self) -> Ints:
        """(n,) how many of them nobody could answer."""
        return self.questions - (self.known >= 0).sum(axis=1)

    def cost(self, costs: ArrayLike | None = None) -> Floats:
        """Return what the questions of each row cost; ``costs`` has one number > 0 per label."""
        each = np.append(costs_of(costs, self.known.shape[1]), 0.0)
        return each[self.asked].sum(axis=1)

    def summary(self) -> dict[str, float]:
        """Return shares and means over rows.

        ``missed``: of the rows that the rule stopped, the share with a missed label. ``before half``: of all rows, the
        share that it stopped before half of the labels were asked.
        """
        early = self.stopped & (2 * self.questions < self.known.shape[1])
        return {
            "stopped": float(self.stopped.mean()),
            "missed": float((self.missed[self.stopped] > 0).mean()) if self.stopped.any() else 0.0,
            "before half": float(early.mean()),
            "median questions": float(np.median(self.questions)),
            "mean questions": float(self.questions.mean()),
            "wrong labels shown": float(self.wrong.mean()),
            "not known": float(self.not_known.mean()),
        }


def simulate_stopping(
    ranker: LabelRanker,
    X: ArrayLike,
    Y: Any,
    rule: StoppingRule | None = None,
    policy: QuestionPolicy | None = None,
    annotator: Annotator | None = None,
    most: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> StoppingResult:
    """Ask about each row until ``rule`` stops it; nobody is told how many labels are right.

    Parameters
    ----------
    ranker : LabelRanker
        A fitted :class:`slatewise.CStarRanker`, or ``GivenLogOdds``.
    X, Y
        Rows and their true labels, 0/1.
    rule : StoppingRule, optional
        Default: :class:`StoppingRule` as it comes, not calibrated; see :func:`calibrate_stopping`.
    policy : QuestionPolicy, optional
        Default: :class:`MostProbable`. A rule holds its promise for the policy it was calibrated with.
    annotator : Annotator, optional
        Default: always right. A label that nobody knew is not asked again, and not missed.
    most : int, optional
        Most questions per row. Default: no limit.
    random_state : int or Generator, optional
        For policies and annotators that draw.

    Examples
    --------
    >>> from slatewise.labeling import GivenLogOdds
    >>> result = simulate_stopping(GivenLogOdds(3), [[3.0, -4.0, -5.0], [0.0, 0.0, 0.0]], [[1, 0, 0], [0, 1, 1]])
    >>> result.questions, result.stopped, result.missed
    (array([1, 3]), array([ True, False]), array([0, 0]))
    """
    rule = rule or StoppingRule()
    rows, truth = rows_of_sets(ranker, X), check_labels(Y, len(np.asarray(X)))[0] > 0
    limit = truth.shape[1] if most is None else min(whole_number("most", most, 0), truth.shape[1])
    game = Game.of(truth, policy or MostProbable(), annotator or Truthful(), random_state)
    asked = np.full((len(truth), limit), -1, dtype=np.int64)
    shown, hidden = np.zeros(truth.shape, dtype=np.bool_), np.zeros(truth.shape, dtype=np.bool_)
    stopped, chance = np.zeros(len(truth), dtype=np.bool_), np.zeros(len(truth))
    busy = np.arange(len(truth))
    for count in range(limit + 1):
        at, known = rows.take(busy), game.answers[busy]
        seen = rule.look(at, known, game.was_asked[busy])
        shown[busy], hidden[busy], chance[busy] = seen.shown, seen.hidden, seen.chance
        stopped[busy] = seen.stop & seen.hidden.any(axis=1)
        going = np.flatnonzero(~seen.stop)
        if count == limit or not len(going):
            break
        busy = busy[going]
        labels = game.ask(busy, Situation(at, known, seen.log_odds, seen.hidden).take(going))
        asked[busy, count] = labels
        busy = busy[labels >= 0]
    missed, wrong = (hidden & truth).sum(axis=1), (shown & ~truth).sum(axis=1)
    return StoppingResult(asked, game.answers, shown, stopped, missed, wrong, chance)
