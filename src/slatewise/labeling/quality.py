"""What a model is worth on items that people labelled without it, and how sure it must be to stop.

An item counts once it is complete, see :mod:`slatewise.labeling.said`. A label that nobody knew counts as not there,
as in :mod:`slatewise.labeling.stopping`, where what nobody knew is not missed.

How many stopped rows have a miss is measured on rows that the threshold was not chosen on: on each half of the items
with the threshold of the other half.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from slatewise.core.arrays import Bools, Bytes, Floats
from slatewise.labeling.plan import QUESTIONS, Plan
from slatewise.labeling.rows import LabelRows, places
from slatewise.labeling.scored_items import GivenStar
from slatewise.labeling.stopping import StoppingRule
from slatewise.labeling.stopping_calibration import calibrate_stopping
from slatewise.labeling.stopping_simulation import simulate_stopping

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Quality:
    """What one version of the model is worth; NaN where there are too few items to say."""

    version: int | None
    n_items: int
    break_even: float
    """Break-even precision before any question: of as many labels as there are in an item."""
    stopped: float
    """Share of the items that the calibrated rule would stop before all labels are asked."""
    missed: float
    """Of these, the share with a label that was missed."""
    questions: float
    """Mean number of questions until then."""

    def as_json(self) -> dict[str, Any]:
        """Return it with None for NaN, as the settings of a project keep it."""
        return {name: None if value != value else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Quality:
        """Read what :meth:`as_json` returned."""
        values: dict[str, Any] = {name: np.nan if value is None else value for name, value in kept.items()}
        return cls(**(values | {"version": kept["version"]}))


def least_items(confidence: float) -> int:
    """Return how many complete items a rule of this confidence needs."""
    return int(np.ceil(confidence / (1.0 - confidence) - _ROUNDING))


def calibrated_rule(rows: LabelRows, truth: Bytes, plan: Plan) -> StoppingRule:
    """Return the rule that keeps the plan's promise on such rows; not calibrated where there are too few."""
    if len(truth) < least_items(plan.confidence):
        return StoppingRule(plan.confidence)
    return calibrate_stopping(GivenStar.of(rows), rows.scores, truth, plan.confidence, QUESTIONS[plan.policy])


def measure(rows: LabelRows, truth: Bytes, plan: Plan, version: int | None) -> Quality:
    """Measure a model on rows whose labels are all known, 0/1."""
    counts = truth.sum(axis=1)
    if not counts.any():
        return Quality(version, len(truth), np.nan, np.nan, np.nan, np.nan)
    margins = rows.margins(np.full(truth.shape, -1, dtype=np.int8))
    hits = ((places(-margins) < counts[:, None]) & (truth == 1)).sum(axis=1)[counts > 0]
    precision = float((hits / counts[counts > 0]).mean())
    ends = _stopping(rows, truth, plan)
    if ends is None:
        return Quality(version, len(truth), precision, np.nan, np.nan, np.nan)
    stopped, missed, questions = ends
    share = float(missed[stopped].mean()) if stopped.any() else np.nan
    return Quality(version, len(truth), precision, float(stopped.mean()), share, float(questions.mean()))


def _stopping(rows: LabelRows, truth: Bytes, plan: Plan) -> tuple[Bools, Bools, Floats] | None:
    """Return of every row whether it stopped, with a miss, and after how many questions; None with too few rows."""
    if len(truth) // 2 < least_items(plan.confidence):
        return None
    stopped, missed = np.empty(len(truth), dtype=np.bool_), np.empty(len(truth), dtype=np.bool_)
    questions = np.empty(len(truth))
    halves = np.arange(len(truth)) % 2
    for half in (0, 1):
        here, there = np.flatnonzero(halves == half), np.flatnonzero(halves != half)
        rule = calibrated_rule(rows.take(there), truth[there], plan)
        played = simulate_stopping(
            GivenStar.of(rows), rows.scores[here], truth[here], rule, QUESTIONS[plan.policy], random_state=plan.seed
        )
        stopped[here], missed[here], questions[here] = played.stopped, played.missed > 0, played.questions
    return stopped, missed, questions
