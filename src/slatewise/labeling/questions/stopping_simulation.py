"""Simulate questions until a rule stops, and find the threshold that keeps a promised confidence.

:func:`simulate_stopping` counts questions, labels that were missed, and labels shown that are wrong.

:func:`calibrate_stopping` simulates the questions of rows whose labels are known. For each row it notes the largest
chance that nothing is missed, over the steps at which it may stop and something is missed:

    m = max over steps that miss something, and whose chance is larger than at all steps before, of chance .

Stopping above t misses something only if m > t: the questions do not depend on t. The threshold is the smallest m that
keeps

    (rows with m > t) + 1  <=  (1 - confidence) ((rows that t stops while something is hidden) + 1) .

So of n + 1 rows drawn alike, the new one has a missed label with probability at most 1 - confidence, whatever the model
is worth: with all rows on the right that is split conformal prediction (Vovk et al. 2005), a bound of stopping as a
whole, not of each step. Rows with a question for every label miss nothing, and must not make up for those that are
stopped. With an assurance, instead ``P(Binomial(stopped rows, 1 - confidence) <= rows with m > t)`` is at most
1 - assurance: the confidence is kept for that share of the draws of the rows to calibrate on (Vovk 2012).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from slatewise.core.arrays import Bools, Bytes, Floats, Ints
from slatewise.core.checks import whole_number
from slatewise.data.labels import check_labels
from slatewise.labeling.questions.policies import MostProbable, QuestionPolicy, Situation, costs_of
from slatewise.labeling.questions.rows import LabelRanker, LabelRows
from slatewise.labeling.questions.simulation import Annotator, SimulationState, Truthful
from slatewise.labeling.questions.stopping import StoppingRule, rows_of_sets


@dataclass(frozen=True, eq=False)
class StoppingResult:
    """What became of each row."""

    labels: Ints
    """(n, most questions) the label of each question, -1 after the last."""
    known: Bytes
    """(n, N) the answers: 1 yes, 0 no, -1 unknown."""
    shown: Bools
    """(n, N) labels answered with yes, or proposed."""
    stopped: Bools
    """(n,) whether the rule stopped the row while a label was hidden: neither answered nor shown."""
    missed: Ints
    """(n,) the number of relevant labels that are hidden."""
    wrong: Ints
    """(n,) the number of labels shown that are not relevant."""
    chance: Floats
    """(n,) that nothing was missed, as the model says."""

    @property
    def questions(self) -> Ints:
        """(n,) the number of questions."""
        return (self.labels >= 0).sum(axis=1)

    @property
    def not_known(self) -> Ints:
        """(n,) the number of answers "don't know"."""
        return self.questions - (self.known >= 0).sum(axis=1)

    def cost(self, costs: ArrayLike | None = None) -> Floats:
        """Return what the questions of each row cost; ``costs`` has one number > 0 per label."""
        each = np.append(costs_of(costs, self.known.shape[1]), 0.0)
        return each[self.labels].sum(axis=1)

    def summary(self) -> dict[str, float]:
        """Return shares and means over rows.

        ``missed``: of the rows that the rule stopped, the share with a missed label. ``before half``: of all rows, the
        share that it stopped before a question for half of the labels.
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
    """Ask questions about each row until ``rule`` stops it; the number of relevant labels is unknown.

    Parameters
    ----------
    ranker : LabelRanker
        A fitted :class:`slatewise.CStarRanker`, or ``GivenLogOdds``.
    X, Y
        Rows and their true labels, 0/1.
    rule : StoppingRule, optional
        Default: :class:`StoppingRule` with its defaults, not calibrated; see :func:`calibrate_stopping`.
    policy : QuestionPolicy, optional
        Default: :class:`MostProbable`. A rule holds its promise for the policy it was calibrated with.
    annotator : Annotator, optional
        Default: always right. A label with a "don't know" does not count as missed.
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
    truth = check_labels(Y, len(np.asarray(X)))[0] > 0
    return simulate_rows(
        rows_of_sets(ranker, X), truth, rule or StoppingRule(), policy or MostProbable(), annotator, most, random_state
    )


def simulate_rows(
    rows: LabelRows,
    truth: Bools,
    rule: StoppingRule,
    policy: QuestionPolicy,
    annotator: Annotator | None = None,
    most: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> StoppingResult:
    """Return the result of :func:`simulate_stopping` for rows that are scored already."""
    limit = truth.shape[1] if most is None else min(whole_number("most", most, 0), truth.shape[1])
    state = SimulationState.of(truth, policy, annotator or Truthful(), random_state)
    labels = np.full((len(truth), limit), -1, dtype=np.int64)
    shown, hidden = np.zeros(truth.shape, dtype=np.bool_), np.zeros(truth.shape, dtype=np.bool_)
    stopped, chance = np.zeros(len(truth), dtype=np.bool_), np.zeros(len(truth))
    busy = np.arange(len(truth))
    for count in range(limit + 1):
        at, known = rows.take(busy), state.answers[busy]
        seen = rule.look(at, known, state.answered[busy])
        shown[busy], hidden[busy], chance[busy] = seen.shown, seen.hidden, seen.chance
        stopped[busy] = seen.stop & seen.hidden.any(axis=1)
        going = np.flatnonzero(~seen.stop)
        if count == limit or not len(going):
            break
        busy = busy[going]
        labels[busy, count] = state.ask(busy, Situation(at, known, seen.log_odds, seen.hidden).take(going))
        busy = busy[labels[busy, count] >= 0]
    missed, wrong = (hidden & truth).sum(axis=1), (shown & ~truth).sum(axis=1)
    return StoppingResult(labels, state.answers, shown, stopped, missed, wrong, chance)


_ROUNDING = 1e-9  # (1 - confidence) (n + 1) may miss a whole number by this much


def calibrate_stopping(
    ranker: LabelRanker,
    X: ArrayLike,
    Y: Any,
    confidence: float = 0.95,
    policy: QuestionPolicy | None = None,
    propose: float | None = None,
    annotator: Annotator | None = None,
    random_state: int | np.random.Generator | None = None,
    assurance: float | None = None,
) -> StoppingRule:
    """Find the threshold at which at most a share of ``1 - confidence`` of the rows that it stops has a missed label.

    Parameters
    ----------
    ranker
        A fitted :class:`slatewise.CStarRanker`, or
        :class:`slatewise.labeling.GivenLogOdds`.
    X, Y
        Rows that the ranker was not trained on, drawn as those to come, and all their labels, 0/1.
    confidence
        As in :class:`StoppingRule`; at least ``confidence / (1 - confidence)`` rows are needed, 19 for 0.95.
    policy
        The questions, here and later. Default: :class:`MostProbable`.
    propose
        As in :class:`StoppingRule`.
    annotator
        The answers. Default: always right.
    random_state
        For policies and annotators that draw.
    assurance
        By default the confidence holds on average over draws of the calibration rows: with a few hundred of them, a
        share of 5% may become 4% or 6%. With 0.9 it holds for 9 of 10 draws, which takes more questions and at least
        45 rows for 0.95.

    Examples
    --------
    >>> from slatewise import CStarRanker, datasets
    >>> scenes = datasets.make_label_scenes(600, random_state=0)
    >>> ranker = CStarRanker(core=3).fit(scenes.X[:300], scenes.Y[:300])
    >>> rule = calibrate_stopping(ranker, scenes.X[300:], scenes.Y[300:], confidence=0.9)
    >>> rule.n_rows, 0 < rule.threshold < 1
    (300, True)
    """
    rows, truth = rows_of_sets(ranker, X), check_labels(Y, len(np.asarray(X)))[0] > 0
    policy = policy or MostProbable()
    return calibrate_rows(rows, truth, confidence, policy, propose, annotator, random_state, assurance)


def calibrate_rows(
    rows: LabelRows,
    truth: Bools,
    confidence: float,
    policy: QuestionPolicy,
    propose: float | None = None,
    annotator: Annotator | None = None,
    random_state: int | np.random.Generator | None = None,
    assurance: float | None = None,
) -> StoppingRule:
    """Return the rule of :func:`calibrate_stopping` for rows that are scored already."""
    rule, promise = StoppingRule(confidence, propose), _Promise(confidence, assurance)
    promise.require_rows(len(truth))
    state = SimulationState.of(truth, policy, annotator or Truthful(), random_state)
    steps = _Steps.of(rows, rule, state)
    steps.until_nothing_is_missed()
    return StoppingRule(confidence, propose, _threshold(steps, promise), len(truth))


@dataclass(frozen=True)
class _Promise:
    """What is kept, and how surely."""

    confidence: float
    assurance: float | None

    def __post_init__(self) -> None:
        if self.assurance is not None and not 0.0 < self.assurance < 1.0:
            raise ValueError(f"assurance: expected None or a probability between 0 and 1, found {self.assurance!r}")

    def kept(self, missed: int, of: int) -> bool:
        """Return whether ``missed`` rows of ``of`` are few enough."""
        share = 1.0 - self.confidence
        if self.assurance is None:
            return missed + 1 <= share * (of + 1) + _ROUNDING
        return bool(bdtr(missed, of, share) <= 1.0 - self.assurance)

    def require_rows(self, n_rows: int) -> None:
        """Refuse so few rows that the promise could not be kept if none missed anything."""
        if self.kept(0, n_rows):
            return
        least, surely = self.confidence / (1.0 - self.confidence), ""
        if self.assurance is not None:
            least = np.log(1.0 - self.assurance) / np.log(self.confidence)
            surely = f" and an assurance of {self.assurance}"
        least = int(np.ceil(least - _ROUNDING))
        raise ValueError(
            f"X: expected at least {least} rows for a confidence of {self.confidence}{surely}, found {n_rows}"
        )


@dataclass(frozen=True, eq=False)
class _Steps:
    """Rows, and the chances at which each would have stopped so far."""

    rows: LabelRows
    rule: StoppingRule
    state: SimulationState
    missing: Floats
    """(n,) the largest chance at which a threshold would stop the row and something is missed; 0 if none would."""
    highest: Floats
    """(n,) the largest chance while something was hidden: below, a threshold stops the row."""
    finished: Bools
    """(n,) nothing is left to ask."""

    @classmethod
    def of(cls, rows: LabelRows, rule: StoppingRule, state: SimulationState) -> _Steps:
        """Start without answers."""
        n_rows = len(state.truth)
        return cls(rows, rule, state, np.zeros(n_rows), np.zeros(n_rows), np.zeros(n_rows, dtype=np.bool_))

    def until_nothing_is_missed(self) -> None:
        """Ask for all that is relevant: after that a row misses nothing any more."""
        while len(busy := np.flatnonzero(~self.finished & (self.state.truth & ~self.state.answered).any(axis=1))):
            self._step(busy)

    def until_stopped(self, threshold: float) -> None:
        """Ask on until a threshold stops the rows."""
        while len(busy := np.flatnonzero(~self.finished & (self.highest <= threshold))):
            self._step(busy)

    def _step(self, busy: Ints) -> None:
        at, known = self.rows.take(busy), self.state.answers[busy]
        seen = self.rule.look(at, known, self.state.answered[busy])
        stops = seen.hidden.any(axis=1) & (seen.chance > self.highest[busy])  # else a row has stopped before, or never
        missed = (seen.hidden & self.state.truth[busy]).any(axis=1)
        self.missing[busy[stops & missed]] = seen.chance[stops & missed]
        self.highest[busy[stops]] = seen.chance[stops]
        labels = self.state.ask(busy, Situation(at, known, seen.log_odds, seen.hidden))
        self.finished[busy] = labels < 0


def _threshold(steps: _Steps, promise: _Promise) -> float:
    """Return the smallest threshold that keeps the promise, of all rows and of those that it stops."""
    n_rows = len(steps.missing)
    for threshold in np.unique(np.append(steps.missing, 0.0)).tolist():
        missed = int((steps.missing > threshold).sum())
        if promise.kept(missed, n_rows):
            steps.until_stopped(threshold)
            if promise.kept(missed, int((steps.highest > threshold).sum())):
                return threshold
    warnings.warn(
        f"too few of {n_rows} rows can be stopped early to keep a confidence of {promise.confidence}: no row will be "
        "stopped; calibrate on more rows",
        stacklevel=3,
    )
    return 1.0
