"""Items that people label without the model: what the model is worth on them, and how sure it must be to stop.

Which items is drawn from their ids: a hash of seed and id gives a number between 0 and 1 per item, and items below the
plan's share are in the set. A larger share keeps the items of a smaller one, and items that are added later change
nothing. They are handed out in the order of these numbers, whatever the model thinks of them: otherwise the items that
are labeled first would be those that it finds hard.

An item counts once it is complete, see :class:`slatewise.labeling.store.known_labels.KnownLabels`. A label that nobody
knew counts as not relevant, as in :mod:`slatewise.labeling.questions.stopping`, where it is not missed.

How many stopped rows have a missed label is measured on rows that the threshold was not chosen on: on each half of the
items with the threshold of the other half.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from slatewise.core.arrays import Bools, Bytes, Floats, Ints
from slatewise.labeling.plan import QUESTIONS, Plan
from slatewise.labeling.questions.rows import LabelRows, places
from slatewise.labeling.questions.stopping import StoppingRule
from slatewise.labeling.questions.stopping_simulation import calibrate_stopping, simulate_stopping
from slatewise.labeling.scored_items import GivenStar

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


def draws(ids: Iterable[str], seed: int) -> Floats:
    """Return a number in [0, 1) per id.

    Examples
    --------
    >>> draws(["a.jpg", "b.jpg"], seed=0).round(3)
    array([0.526, 0.621])
    """
    digests = (hashlib.blake2b(f"{seed} {one}".encode(), digest_size=8).digest() for one in ids)
    return np.array([int.from_bytes(digest, "big") >> 11 for digest in digests], dtype=np.float64) / 2.0**53


@dataclass(frozen=True, eq=False)
class HonestShare:
    """Who is in, and whose turn it is."""

    draw: Floats
    """(items,)."""
    share: float

    @property
    def inside(self) -> Bools:
        """(items,)."""
        return self.draw < self.share

    def is_due(self, free: Ints) -> bool:
        """Whether the next item of a person should be one of these, if the ``free`` items are those left."""
        inside = self.inside
        left = int(inside[free].sum())
        if not left or left == len(free):
            return left > 0
        taken = len(inside) - len(free)
        return int(inside.sum()) - left + 1 <= self.share * (taken + 1)

    def in_turn(self, free: Ints) -> Ints:
        """Return those of the free items, in the order in which they are given out."""
        of_share = free[self.inside[free]]
        return of_share[np.argsort(self.draw[of_share], kind="stable")]
