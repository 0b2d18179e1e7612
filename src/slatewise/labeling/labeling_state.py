"""What the sessions of one project share: the items as the current model scores them, and their order.

A :class:`ProjectSnapshot` is all that a session looks at. A new version of the model is read, and the items are scored
with it, in a thread of its own; until that is done everybody goes on with the snapshot before. New answers are applied
to the snapshot when the next item is chosen.
"""

from __future__ import annotations

import hashlib
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import RLock, Thread
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Ints
from slatewise.core.errors import ProjectError
from slatewise.labeling.calibration_set import CalibrationSet, calibrated_rule, least_items
from slatewise.labeling.item_data import ItemData
from slatewise.labeling.item_order import ItemOrder
from slatewise.labeling.plan import By, Plan
from slatewise.labeling.questions.stopping import StoppingRule
from slatewise.labeling.retraining import label_columns, read_model
from slatewise.labeling.scored_items import ScoredItems, frequency_log_odds
from slatewise.labeling.store.known_labels import KnownLabels
from slatewise.labeling.store.project import Project
from slatewise.labeling.store.records import ModelVersion

if TYPE_CHECKING:
    from slatewise.core.checks import Sparse
    from slatewise.cstar.ranker import CStarRanker
    from slatewise.labeling.session import Session

_MOST_IN_PASSING = 256
"""The number of changed items that are counted again while somebody waits; more, as after an import, are loaded in the
thread."""
COLD = "There is no model yet: questions about the labels that were found most often come first."


class _Key(NamedTuple):
    """What a snapshot depends on: if it changes, all is loaded again."""

    version: int | None
    n_items: int
    labels: tuple[str, ...]
    plan: Plan
    calibration: int
    """Counts up as there are twice as many items to calibrate on."""


@dataclass(frozen=True, eq=False)
class ProjectSnapshot:
    """The plan, labels, answers, scores and order that a session works with, all of one moment."""

    plan: Plan
    names: list[str]
    calibration_set: CalibrationSet
    known: KnownLabels
    scored: ScoredItems
    order: ItemOrder
    notes: tuple[str, ...]
    last_act: int
    """Answers up to this act are in ``known``, except those about items that people have open."""

    @property
    def names_number(self) -> int:
        """A number that changes with the names of the labels."""
        return zlib.crc32("\n".join(self.names).encode())

    @property
    def n_calibration(self) -> int:
        """The number of complete items in the calibration set."""
        return int((self.known.complete & self.calibration_set.members).sum())


class LabelingState:
    """What the sessions of one project share; may be used from any thread.

    Parameters
    ----------
    project
        The project.
    model
        A fitted :class:`slatewise.CStarRanker` of sets of any size, whose labels are the project's by name or number.
        Default: the version in use, if there is one. It is taken until another version is put in use.
    features, scores
        One row per item: features, or log-odds of all labels. Default: what is attached to the project, see
        :class:`slatewise.labeling.ItemData`.
    """

    def __init__(
        self,
        project: Project,
        model: CStarRanker | None = None,
        features: ArrayLike | Sparse | None = None,
        scores: ArrayLike | None = None,
    ) -> None:
        if features is not None and scores is not None:
            raise ValueError("scores: expected features or scores, found both")
        self.project = project
        self._data: ItemData | None = None
        if features is not None:
            self._data = ItemData.of(project, features)
        elif scores is not None:
            self._data = ItemData.of(project, scores, "log-odds")
        self._given, self._given_until = model, project.models.current()
        self._lock = RLock()
        self._thread: Thread | None = None
        self._open: set[int] = set()
        self._late: set[int] = set()
        self._failed: str | None = None
        key = self._current_key(0)
        self._snapshot = self._first(key)
        self._key = key._replace(calibration=_calibration(self._snapshot))

    @property
    def snapshot(self) -> ProjectSnapshot:
        """The current snapshot; only its answers and order change, everything else is replaced with the snapshot."""
        return self._snapshot

    def session(self, annotator: str) -> Session:
        """Return a session of a person."""
        from slatewise.labeling.session import Session

        return Session(self.project, annotator, state=self)

    def item_data(self) -> ItemData | None:
        """Return what the model sees of the items: what was given, or what is attached to the project."""
        return ItemData.attached(self.project) if self._data is None else self._data

    def notes(self) -> tuple[str, ...]:
        """Return what everybody should know."""
        failed = () if self._failed is None else (self._failed,)
        return (*self._snapshot.notes, *failed)

    def opened(self, item: int) -> None:
        """Note that a person begins with an item: answers to it are counted when the person leaves it."""
        with self._lock:
            self._open.add(item)

    def left(self, item: int) -> None:
        """Note that a person leaves an item."""
        with self._lock:
            self._open.discard(item)

    def choose(self, annotator: int, by: By | None = None, without: int | None = None) -> Iterator[int]:
        """Iterate over the items that a person may take, the best first."""
        self._apply_new_answers()
        snapshot = self._snapshot
        free = self.project.leases.free(annotator, snapshot.plan.overlap)
        free = free[(free < len(snapshot.known.values)) & (free != without)]
        members = snapshot.calibration_set.members[free]
        by_model = snapshot.order.sorted(free[~members], by or snapshot.plan.order)
        if snapshot.plan.overlap == 1:  # complete items have no questions left
            by_model = by_model[np.argsort(snapshot.known.complete[by_model], kind="stable")]
        parts = (snapshot.calibration_set.in_turn(free), by_model)
        for part in parts if snapshot.calibration_set.is_due(free) else parts[::-1]:
            yield from part.tolist()

    def refresh(self, *, wait: bool = False) -> None:
        """Begin to load what changed in the project: another version of the model, other labels or items, another plan.

        Parameters
        ----------
        wait
            Whether to return only when that is done.
        """
        key = self._current_key(_calibration(self._snapshot))
        with self._lock:
            if self._thread is None and (key != self._key or self._is_far_behind()):
                self._key = key
                self._thread = Thread(target=self._load_again, args=(key,), daemon=True)
                self._thread.start()
            thread = self._thread
        if wait and thread is not None:
            thread.join()
            self.refresh(wait=True)  # what changed meanwhile

    def close(self) -> None:
        """Wait for what is being loaded, so that the project can be closed."""
        thread = self._thread
        if thread is not None:
            thread.join()

    # --- loading -----------------------------------------------------------------------------------------------------

    def _current_key(self, calibration: int) -> _Key:
        current = self.project.models.current()
        version = None if current is None else current.number
        labels = tuple(self.project.labels.names())
        return _Key(version, len(self.project.items), labels, Plan.of(self.project), calibration)

    def _first(self, key: _Key) -> ProjectSnapshot:
        try:
            return self._load(key)
        except (ProjectError, ValueError, OSError) as error:
            if self._given is not None:
                raise
            self._failed = f"The model in use cannot be read: {error}"
            warnings.warn(self._failed, stacklevel=3)
            return self._load(key, with_model=False)

    def _load_again(self, key: _Key) -> None:
        try:
            snapshot, failed = self._load(key), None
        except Exception as error:  # whatever it is, people go on with what there was
            snapshot, failed = self._snapshot, f"A new version cannot be read, so the one before stays: {error}"
        with self._lock:
            self._snapshot, self._failed = snapshot, failed
            self._key = key._replace(calibration=_calibration(snapshot))
            self._thread = None

    def _load(self, key: _Key, *, with_model: bool = True) -> ProjectSnapshot:
        plan, project, notes = key.plan, self.project, ()
        calibration_set = CalibrationSet.of(project, plan)
        last_act = project.last_act()  # before the answers are read, so that none is missed
        known = project.votes().known((key.n_items, len(key.labels)))
        current = project.models.current()
        cold = ScoredItems.by_frequency(known)
        scored = (self._scored(known, current) if with_model else None) or cold
        if scored.basis == "frequency":
            notes = (COLD,)
        else:
            trained_here = current is not None and current.number == scored.version and current.last_act > 0
            items = _measuring_items(known, calibration_set, plan, trained_here)
            rule = calibrated_rule(scored.rows.take(items), known.values[items] == 1, plan)
            scored = replace(scored, rule=rule)
            if not rule.n_rows or rule.needed >= 1.0:
                notes = (_not_calibrated(rule, len(items), plan),)
        order = ItemOrder(scored, known, plan.overlap == 1)
        order.prepare(plan.order)
        return ProjectSnapshot(plan, list(key.labels), calibration_set, known, scored, order, notes, last_act)

    def _scored(self, known: KnownLabels, current: ModelVersion | None) -> ScoredItems | None:
        data = self.item_data()
        number = None if current is None else current.number
        if self._given is not None and current == self._given_until:
            model, number = self._given, None
        else:
            model = None if current is None else read_model(self.project, current)
        if model is not None:
            data, others = data or ItemData.seen(self.project), frequency_log_odds(known.values)
            scored = ScoredItems.by_model(model, data, label_columns(self.project, model), others)
            return replace(scored, version=self._registered(scored) if number is None else number)
        if data is not None and data.kind == "log-odds":
            assert isinstance(data.X, np.ndarray)
            return ScoredItems.by_scores(data.X.astype(np.float64))
        return None

    def _registered(self, scored: ScoredItems) -> int:
        """Return the version of a model that was given and is in no file: the same for one that says the same."""
        digest = hashlib.sha256()
        for array in (scored.rows.scores, scored.rows.pair, scored.rows.core):
            digest.update(np.ascontiguousarray(array).tobytes())
        note = f"given, kept in no file: {digest.hexdigest()[:16]}"
        same = [version.number for version in self.project.models.all() if version.note == note]
        return same[0] if same else self.project.models.add("", note=note)

    # --- new answers -------------------------------------------------------------------------------------------------

    def _apply_new_answers(self) -> None:
        """Count the answers since the last time, of this process or another."""
        with self._lock:
            snapshot = self._snapshot
            acts = self.project.acts_after(snapshot.last_act)
            if self._thread is not None and len(acts) > _MOST_IN_PASSING:
                return
            items = (self._late | set(acts)) - self._open
            self._late = (self._late | set(acts)) & self._open
            self._snapshot = replace(snapshot, last_act=max(acts.values(), default=snapshot.last_act))
            items = [item for item in items if item < len(snapshot.known.values)]
            if not items:
                return
            for item in items:
                snapshot.known.update(item, self.project.votes(item))
            snapshot.order.changed(items)
            if snapshot.scored.basis == "frequency":
                self._snapshot = replace(self._snapshot, scored=ScoredItems.by_frequency(snapshot.known))

    def _is_far_behind(self) -> bool:
        """Return whether there are more new answers than are counted in passing; False after loading failed."""
        return self._failed is None and len(self.project.acts_after(self._snapshot.last_act)) > _MOST_IN_PASSING


def _measuring_items(known: KnownLabels, calibration_set: CalibrationSet, plan: Plan, trained_here: bool) -> Ints:
    """Return the items to calibrate on: of the calibration set, or all complete ones if the model saw none of them."""
    members = np.flatnonzero(known.complete & calibration_set.members)
    if trained_here or len(members) >= least_items(plan.confidence):
        return members
    return np.flatnonzero(known.complete)


def _calibration(snapshot: ProjectSnapshot) -> int:
    return (snapshot.n_calibration // least_items(snapshot.plan.confidence)).bit_length()


def _not_calibrated(rule: StoppingRule, n_items: int, plan: Plan) -> str:
    if rule.n_rows:
        return f"Early stopping is off: too few of {rule.n_rows} calibration items could stop early."
    return (
        f"When to stop is not calibrated: this takes {least_items(plan.confidence)} items with an answer for every "
        f"label, labeled without the model, and there are {n_items}."
    )
