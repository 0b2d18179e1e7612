"""What the sessions of one project share: the items as the current model sees them, and whose turn each is.

A new version of the model is read, and the items are scored with it, in a thread of its own; until that is done
everybody goes on with the version before.
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
from slatewise.labeling.calibration_set import HonestShare, calibrated_rule, draws, least_items
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
"""Items that others changed which are counted again while somebody waits; more of them, as after an import, are loaded
beside the work."""
COLD = "There is no model yet: labels that were found most often are asked first."


class _Key(NamedTuple):
    """What a bench depends on: where it changes, all is loaded again."""

    version: int | None
    n_items: int
    labels: tuple[str, ...]
    plan: Plan
    calibration: int
    """Counts up as there are twice as many items to calibrate on."""


@dataclass(frozen=True, eq=False)
class Bench:
    """All that a session looks at."""

    plan: Plan
    names: list[str]
    honest: HonestShare
    said: KnownLabels
    scored: ScoredItems
    order: ItemOrder
    notes: tuple[str, ...]
    last_act: int
    """What was said to here is in ``said``, whoever said it, but for items that people have open."""

    @property
    def names_number(self) -> int:
        """Another number where the names of the labels are others."""
        return zlib.crc32("\n".join(self.names).encode())

    @property
    def n_honest(self) -> int:
        """Items of the honest share of which every label was answered."""
        return int((self.said.complete & self.honest.inside).sum())


class Workbench:
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
        self._bench = self._first(key)
        self._key = key._replace(calibration=_calibration(self._bench))

    @property
    def bench(self) -> Bench:
        """What there is at the moment; it is replaced, never changed, but for what was said."""
        return self._bench

    def session(self, annotator: str) -> Session:
        """Return a session of a person."""
        from slatewise.labeling.session import Session

        return Session(self.project, annotator, workbench=self)

    def item_data(self) -> ItemData | None:
        """Return what the model sees of the items: what was given, or what is attached to the project."""
        return ItemData.attached(self.project) if self._data is None else self._data

    def notes(self) -> tuple[str, ...]:
        """Return what everybody should know."""
        failed = () if self._failed is None else (self._failed,)
        return (*self._bench.notes, *failed)

    def opened(self, item: int) -> None:
        """Note that a person begins with an item: what is said of it is counted when the person leaves it."""
        with self._lock:
            self._open.add(item)

    def left(self, item: int) -> None:
        """Note that a person leaves an item."""
        with self._lock:
            self._open.discard(item)

    def choose(self, annotator: int, by: By | None = None, without: int | None = None) -> Iterator[int]:
        """Iterate over the items that a person may take, the best first."""
        self._look_again()
        bench = self._bench
        free = self.project.leases.free(annotator, bench.plan.overlap)
        free = free[(free < len(bench.said.values)) & (free != without)]
        inside = bench.honest.inside[free]
        by_model = bench.order.sorted(free[~inside], by or bench.plan.order)
        if bench.plan.overlap == 1:  # nothing is left to ask where everything is known, in whatever order
            by_model = by_model[np.argsort(bench.said.complete[by_model], kind="stable")]
        parts = (bench.honest.in_turn(free), by_model)
        for part in parts if bench.honest.is_due(free) else parts[::-1]:
            yield from part.tolist()

    def refresh(self, *, wait: bool = False) -> None:
        """Begin to load what changed in the project: another version of the model, other labels or items, another plan.

        Parameters
        ----------
        wait
            Whether to return only when that is done.
        """
        key = self._current_key(_calibration(self._bench))
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

    def _first(self, key: _Key) -> Bench:
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
            bench, failed = self._load(key), None
        except Exception as error:  # whatever it is, people go on with what there was
            bench, failed = self._bench, f"A new version cannot be read, so the one before stays: {error}"
        with self._lock:
            self._bench, self._failed = bench, failed
            self._key = key._replace(calibration=_calibration(bench))
            self._thread = None

    def _load(self, key: _Key, *, with_model: bool = True) -> Bench:
        plan, project, notes = key.plan, self.project, ()
        honest = HonestShare(draws((item.id for item in project.items.all()), plan.seed), plan.share)
        last_act = project.last_act()  # before what was said is read, so that nothing is missed
        said = project.votes().known((key.n_items, len(key.labels)))
        current = project.models.current()
        cold = ScoredItems.by_frequency(said)
        scored = (self._scored(said, current) if with_model else None) or cold
        if scored.basis == "frequency":
            notes = (COLD,)
        else:
            trained_here = current is not None and current.number == scored.version and current.last_act > 0
            items = _measuring_items(said, honest, plan, trained_here)
            rule = calibrated_rule(scored.rows.take(items), said.values[items].clip(0), plan)
            scored = replace(scored, rule=rule)
            if not rule.n_rows or rule.needed >= 1.0:
                notes = (_not_calibrated(rule, len(items), plan),)
        order = ItemOrder(scored, said, plan.overlap == 1)
        order.prepare(plan.order)
        return Bench(plan, list(key.labels), honest, said, scored, order, notes, last_act)

    def _scored(self, said: KnownLabels, current: ModelVersion | None) -> ScoredItems | None:
        data = self.item_data()
        number = None if current is None else current.number
        if self._given is not None and current == self._given_until:
            model, number = self._given, None
        else:
            model = None if current is None else read_model(self.project, current)
        if model is not None:
            data, others = data or ItemData.seen(self.project), frequency_log_odds(said.values)
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

    # --- what was said meanwhile -------------------------------------------------------------------------------------

    def _look_again(self) -> None:
        """Take in what was said of items since the last time, here or by another process."""
        with self._lock:
            bench = self._bench
            acts = self.project.acts_after(bench.last_act)
            if self._thread is not None and len(acts) > _MOST_IN_PASSING:
                return
            items = (self._late | set(acts)) - self._open
            self._late = (self._late | set(acts)) & self._open
            self._bench = replace(bench, last_act=max(acts.values(), default=bench.last_act))
            items = [item for item in items if item < len(bench.said.values)]
            if not items:
                return
            for item in items:
                bench.said.update(item, self.project.votes(item))
            bench.order.changed(items)
            if bench.scored.basis == "frequency":
                self._bench = replace(self._bench, scored=ScoredItems.by_frequency(bench.said))

    def _is_far_behind(self) -> bool:
        """Whether so much was said elsewhere that it is loaded; not again and again where loading fails."""
        return self._failed is None and len(self.project.acts_after(self._bench.last_act)) > _MOST_IN_PASSING


def _measuring_items(said: KnownLabels, honest: HonestShare, plan: Plan, trained_here: bool) -> Ints:
    """Return the items to calibrate on: of the honest share; or all complete ones, if the model saw none of them."""
    of_share = np.flatnonzero(said.complete & honest.inside)
    if trained_here or len(of_share) >= least_items(plan.confidence):
        return of_share
    return np.flatnonzero(said.complete)


def _calibration(bench: Bench) -> int:
    return (bench.n_honest // least_items(bench.plan.confidence)).bit_length()


def _not_calibrated(rule: StoppingRule, n_items: int, plan: Plan) -> str:
    if rule.n_rows:
        return f"So few of {rule.n_rows} items can end early that nothing can be promised: all labels are asked for."
    return (
        f"When to stop is what the model believes, not calibrated: this takes {least_items(plan.confidence)} items "
        f"with an answer for every label, labelled without the model, and there are {n_items}."
    )
