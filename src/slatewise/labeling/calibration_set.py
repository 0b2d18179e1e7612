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
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from slatewise.core.arrays import Bools, Floats, Ints
from slatewise.labeling.plan import QUESTIONS, Plan
from slatewise.labeling.questions.rows import LabelRows
from slatewise.labeling.questions.simulation import break_even
from slatewise.labeling.questions.stopping import StoppingRule
from slatewise.labeling.questions.stopping_simulation import calibrate_rows, simulate_rows
from slatewise.labeling.store.project import Project

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class CalibrationSet:
    """Which items are labeled without the model, and in which order they are handed out.

    Examples
    --------
    >>> CalibrationSet.of_ids(["a.jpg", "b.jpg"], seed=0, share=0.6).draw.round(3)
    array([0.526, 0.621])
    """

    draw: Floats
    """(items,) a number in [0, 1) per item."""
    share: float

    @classmethod
    def of(cls, project: Project, plan: Plan) -> CalibrationSet:
        """Return the calibration set of a project."""
        return cls.of_ids([item.id for item in project.items.all()], plan.seed, plan.share)

    @classmethod
    def of_ids(cls, ids: list[str], seed: int, share: float) -> CalibrationSet:
        """Draw a number per id."""
        digests = (hashlib.blake2b(f"{seed} {one}".encode(), digest_size=8).digest() for one in ids)
        draw = np.array([int.from_bytes(digest, "big") >> 11 for digest in digests], dtype=np.float64) / 2.0**53
        return cls(draw, share)

    @property
    def members(self) -> Bools:
        """(items,)."""
        return self.draw < self.share

    def is_due(self, free: Ints) -> bool:
        """Return whether the next item of a person should be a member, if the ``free`` items are left."""
        members = self.members
        left = int(members[free].sum())
        if not left or left == len(free):
            return left > 0
        taken = len(members) - len(free)
        return int(members.sum()) - left + 1 <= self.share * (taken + 1)

    def in_turn(self, free: Ints) -> Ints:
        """Return the members among the free items, in the order in which they are handed out."""
        members = free[self.members[free]]
        return members[np.argsort(self.draw[members], kind="stable")]


@dataclass(frozen=True)
class Quality:
    """What one version of the model is worth; NaN if there are too few items to measure it."""

    version: int | None
    n_items: int
    break_even: float = np.nan
    """Break-even precision before any question: the precision of the first k labels, of items with k labels."""
    stopped: float = np.nan
    """The share of items that the calibrated rule would stop before a question for every label."""
    missed: float = np.nan
    """Of these, the share with a label that was missed."""
    questions: float = np.nan
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


def calibrated_rule(rows: LabelRows, truth: Bools, plan: Plan) -> StoppingRule:
    """Return the rule that keeps the plan's confidence on such rows; not calibrated if there are too few."""
    if len(truth) < least_items(plan.confidence):
        return StoppingRule(plan.confidence)
    return calibrate_rows(rows, truth, plan.confidence, QUESTIONS[plan.policy])


def measure(rows: LabelRows, truth: Bools, plan: Plan, version: int | None) -> Quality:
    """Measure a model on rows whose labels are all known."""
    n_rows, counts = len(truth), truth.sum(axis=1)
    if not counts.any():
        return Quality(version, n_rows)
    margins = rows.margins(np.full(truth.shape, -1, dtype=np.int8))
    precision = float(break_even(truth, margins, counts)[counts > 0].mean())
    if n_rows // 2 < least_items(plan.confidence):
        return Quality(version, n_rows, precision)
    stopped, missed, questions = np.empty(n_rows, np.bool_), np.empty(n_rows, np.bool_), np.empty(n_rows)
    for half in (0, 1):
        here, there = np.arange(half, n_rows, 2), np.arange(1 - half, n_rows, 2)
        rule = calibrated_rule(rows.take(there), truth[there], plan)
        found = simulate_rows(rows.take(here), truth[here], rule, QUESTIONS[plan.policy], random_state=plan.seed)
        stopped[here], missed[here], questions[here] = found.stopped, found.missed > 0, found.questions
    share = float(missed[stopped].mean()) if stopped.any() else np.nan
    return Quality(version, n_rows, precision, float(stopped.mean()), share, float(questions.mean()))
