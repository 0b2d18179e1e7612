"""New versions of the model from the answers so far: trained in a process of their own, saved, put in use, measured.

A model learns from items with an answer to a question or to a list: labels without an answer stay unknown, labels that
people volunteered count as unknown, and labels that ``done`` closed are a no (see ADR 21 and 23). Items of the
calibration set are left out, so that all versions are measured on items that none has seen. Labels without any
answers are left to the session, which takes them to be rare.

A version is a file ``beach.models/model-0001.safetensors`` beside ``beach.db`` that appears whole, then a row of the
project that names it, then one that puts it in use; no file is replaced. If a training fails or is killed, the version
before stays in use.

``python -m slatewise.labeling.retraining PROJECT`` trains one version and ends; its last line on stderr is the result.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.errors import ProjectError, printable
from slatewise.core.rules import short_repr
from slatewise.core.running.executor import thread_count
from slatewise.labeling.calibration_set import CalibrationSet, Quality, measure
from slatewise.labeling.item_data import ItemData
from slatewise.labeling.plan import Plan
from slatewise.labeling.scored_items import ScoredItems, frequency_log_odds
from slatewise.labeling.store.known_labels import KnownLabels
from slatewise.labeling.store.leases import TrainerLock
from slatewise.labeling.store.project import Project
from slatewise.labeling.store.records import ModelVersion
from slatewise.persistence.saving import load

if TYPE_CHECKING:
    from slatewise.cstar.ranker import CStarRanker

_SETTING = "quality"
_LOG = "training.log"
_MOST_MEASURED = 10
"""Versions that are measured again, on the items of today, when there is a new one; older ones keep their figures."""
State: TypeAlias = Literal["idle", "training", "trained", "failed"]


class Trained(NamedTuple):
    """A new version."""

    version: int
    n_items: int
    """The number of items that it learned from."""
    n_known: int
    """The number of their known labels."""


class TrainerStatus(NamedTuple):
    """What a trainer is doing."""

    state: State
    message: str
    """What happened last, for people."""


def retrain(project: Project) -> Trained:
    """Train a new version here and now, put it in use and measure it; everybody else goes on meanwhile.

    Parameters
    ----------
    project
        A project; if neither features nor log-odds are attached (:class:`slatewise.labeling.ItemData`) the model
        learns which labels come together, and sees no item as another.
    """
    from slatewise.cstar.ranker import CStarRanker

    lock = TrainerLock(project.path)
    try:
        data = ItemData.seen(project)
        plan, names, last_act = Plan.of(project), project.labels.names(), project.last_act()
        calibration_set = CalibrationSet.of(project, plan)
        known = project.votes().known((len(calibration_set.draw), len(names)))
        taught = known.answered & ~calibration_set.members[:, None]
        rows, columns = np.flatnonzero(taught.any(axis=1)), np.flatnonzero(taught.any(axis=0))
        if len(columns) < 2:
            raise ProjectError(f"{project.path}: expected answers for at least 2 labels, found {len(columns)}")
        X = cast("Any", data.X)[rows] if data.kind == "features" else cast("Any", data.X)[np.ix_(rows, columns)]
        kept = np.where(taught, known.values, -1)[np.ix_(rows, columns)]
        model = CStarRanker(None if data.kind == "features" else "precomputed", random_state=plan.seed)
        with warnings.catch_warnings():
            if data.kind == "nothing":  # that all labels are equally likely is meant
                warnings.filterwarnings("ignore", "X: expected log-odds", UserWarning)
            model.fit(X, kept, label_names=[names[label] for label in columns])
        n_known = int((kept >= 0).sum())
        note = f"{len(rows)} items, {n_known} labels known"
        version = keep_model(project, model, note=note, last_act=last_act)
        measure_versions(project, data, known, calibration_set)
    finally:
        lock.release()
    return Trained(version, len(rows), n_known)


def measure_versions(project: Project, data: ItemData, known: KnownLabels, calibration_set: CalibrationSet) -> None:
    """Measure the last versions on the complete items of the calibration set, and keep the figures in the project."""
    plan, rows = Plan.of(project), np.flatnonzero(known.complete & calibration_set.members)
    if not len(rows):
        return
    figures = {quality.version: quality for quality in qualities(project)}
    truth, others = known.values[rows] == 1, frequency_log_odds(known.values)
    some = ItemData(cast("NDArray[np.float64]", data.X[rows]), data.kind)
    for version in [version for version in project.models.all() if version.path][-_MOST_MEASURED:]:
        try:
            model = read_model(project, version)
            scored = ScoredItems.by_model(model, some, label_columns(project, model), others)
        except (ProjectError, ValueError, OSError) as error:
            warnings.warn(f"model {version.number} is not measured: {error}", stacklevel=2)
            continue
        figures[version.number] = measure(scored.rows, truth, plan, version.number)
    project.settings.set(_SETTING, [quality.as_json() for _, quality in sorted(figures.items())])


def qualities(project: Project) -> list[Quality]:
    """Return what the versions of a project's model are worth on the calibration set, the oldest first."""
    kept: object = project.settings.get(_SETTING, [])
    try:
        return [Quality.from_json(one) for one in cast("list[dict[str, Any]]", kept)]
    except (TypeError, KeyError, AttributeError, ValueError):
        expected = "figures of versions of the model"
        raise ProjectError(f"{project.path}: expected {expected} in its settings, found {short_repr(kept)}") from None


class Trainer:
    """Trains new versions in another process; may be used from any thread.

    Parameters
    ----------
    project
        The project.

    Examples
    --------
    A page calls :meth:`poll` every second or so, and :meth:`start` when somebody presses the button.
    """

    def __init__(self, project: Project) -> None:
        self._project, self._lock = project, RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._status = TrainerStatus("idle", "")
        self._tried = 0

    @property
    def status(self) -> TrainerStatus:
        """What the trainer is doing, and what happened last."""
        with self._lock:
            self._collect()
            return self._status

    def start(self) -> bool:
        """Begin to train, unless that is under way; return whether it began."""
        with self._lock:
            self._collect()
            if self._process is not None:
                return False
            self._tried = self._project.last_act()
            command = [sys.executable, "-m", "slatewise.labeling.retraining", str(self._project.path.resolve())]
            with open(self._log(), "wb") as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    # One core at least is left to those who answer.
                    env=os.environ | {"SLATEWISE_THREADS": str(max(thread_count() - 1, 1))},
                )
            self._status = TrainerStatus("training", "A new version is being trained.")
            return True

    def poll(self) -> TrainerStatus:
        """Begin to train if that is due: after the number of acts in the plan of the project."""
        with self._lock:
            every = Plan.of(self._project).retrain_every
            seen = max((version.last_act for version in self._project.models.all()), default=0)
            n_new = self._project.last_act() - max(seen, self._tried)
            if every and self.status.state != "training" and n_new >= every:
                self.start()
            return self._status

    def wait(self, seconds: float | None = None) -> TrainerStatus:
        """Wait until the training ends, or for at most ``seconds``; return the status."""
        process = self._process
        if process is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
        return self.status

    def stop(self) -> None:
        """End the training that is under way; the version before stays in use."""
        with self._lock:
            if self._process is not None:
                self._process.terminate()
                self._process.wait()
            self._collect()

    def _collect(self) -> None:
        """Note how the process ended, if it did."""
        code = None if self._process is None else self._process.poll()
        if code is None:
            return
        self._process = None
        lines = self._log().read_text(errors="replace").strip().splitlines()
        last = lines[-1] if lines else ""
        if code == 0:
            self._status = TrainerStatus("trained", last)
            return
        reason = f"it was ended by {signal.Signals(-code).name}" if code < 0 else last or f"exit {code}"
        message = f"No new version: {reason}. The version before stays in use."
        self._status = TrainerStatus("failed", message)
        self._project.audit.add("training failed", None, reason=reason)

    def _log(self) -> Path:
        return models_folder(self._project) / _LOG


def models_folder(project: Project) -> Path:
    """Return the folder of a project's models, which is made if there is none."""
    folder = project.path.with_name(f"{project.path.stem}.models")
    folder.mkdir(exist_ok=True)
    return folder


def keep_model(project: Project, model: CStarRanker, *, note: str = "", last_act: int = 0) -> int:
    """Save a model as a new version of the project's and put it in use; return its number.

    Parameters
    ----------
    project
        The project.
    model
        A fitted :class:`slatewise.CStarRanker`, of sets of any size, of labels of the project.
    note
        What to remember of it.
    last_act
        The last act that it learned from; 0: it learned from none of the project's answers, so that all of them can
        measure it.
    """
    label_columns(project, model)
    folder, versions = models_folder(project), project.models.all()
    next_number = max((version.number for version in versions), default=0) + 1
    while (path := folder / f"model-{next_number:04d}.safetensors").exists():  # saved, but its writer was killed
        next_number += 1
    model.save(path)
    number = project.models.add(path.relative_to(project.path.parent).as_posix(), note=note, last_act=last_act)
    project.models.use(number)
    return number


def read_model(project: Project, version: ModelVersion) -> CStarRanker:
    """Read the model of a version; ProjectError if there is no file of it."""
    from slatewise.cstar.ranker import CStarRanker

    if not version.path:
        raise ProjectError(f"model {version.number}: expected a version with a file, found one that came without")
    model = load(project.path.parent / version.path)
    if not isinstance(model, CStarRanker):
        raise ProjectError(f"model {version.number}: expected a CStarRanker, found a {type(model).__name__}")
    return model


def label_columns(project: Project, model: CStarRanker) -> NDArray[np.int64]:
    """Return the numbers of the project's labels that the columns of a model are, by name if it has names."""
    names = model.label_names_
    if names.dtype.kind == "U":
        return np.array([project.labels.number(str(name)) for name in names], dtype=np.int64)
    if len(names) != len(project.labels):
        raise ValueError(
            f"model: expected names of labels, or as many as the project has, {len(project.labels)}, found "
            f"{len(names)} numbered from {short_repr(names[:1].tolist())}"
        )
    return np.arange(len(names))


_NICE = 10
"""People's requests come first."""


def main(path: str) -> int:
    """Train; return the exit code."""
    if os.name == "posix":
        os.nice(_NICE)
    try:
        with Project.open(path) as project:
            trained = retrain(project)
    except Exception as error:  # what a person sees is one line
        print(printable(f"{type(error).__name__}: {error}".replace("\n", " ")), file=sys.stderr)
        return 1
    found = f"Version {trained.version}, from {trained.n_items} items of which {trained.n_known} labels are known."
    print(found, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
