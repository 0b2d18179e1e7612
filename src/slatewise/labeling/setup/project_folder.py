"""A project as a folder: ``project.db``, what belongs beside it, and copied items; it appears whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from slatewise.core.errors import ProjectError
from slatewise.core.running.progress import track
from slatewise.labeling.exchange.formats import import_answers
from slatewise.labeling.item_data import ItemData
from slatewise.labeling.plan import Plan
from slatewise.labeling.setup.item_files import FoundItems
from slatewise.labeling.setup.item_matrices import ItemMatrix, as_log_odds
from slatewise.labeling.store.project import PROJECT_FILE, Project
from slatewise.labeling.store.records import Item

_ITEMS = "items"


@dataclass(frozen=True)
class NewProject:
    """What a folder was made from."""

    path: Path
    n_items: int
    n_labels: int
    notes: tuple[str, ...]
    """What was understood, and could be meant otherwise."""


def project_file(path: str | os.PathLike[str]) -> Path:
    """Return the file of a project that is meant by its folder, or by the file."""
    place = Path(path)
    if place.is_dir():
        file = place / PROJECT_FILE
        if not file.is_file():
            raise ProjectError(f"{place}: expected a folder that `slatewise label init` made, found no {PROJECT_FILE}")
        return file
    if not place.exists():
        raise ProjectError(f"{place}: expected a labeling project, found nothing: `slatewise label init` makes one")
    return place


def make_project_folder(
    path: str | os.PathLike[str],
    found: FoundItems,
    labels: Sequence[str],
    *,
    features: ItemMatrix | None = None,
    scores: ItemMatrix | None = None,
    plan: Plan | None = None,
    copy: bool = False,
    answers: str | os.PathLike[str] | None = None,
) -> NewProject:
    """Make the folder of a new project, all of it or nothing.

    Parameters
    ----------
    path
        The folder, which is not there yet, or empty.
    found
        The items; see :func:`slatewise.labeling.setup.item_files.read_items`.
    labels
        Their names.
    features, scores
        What a model sees of the items; at most one of them.
    plan
        How to label. Default: as :class:`Plan` comes.
    copy
        Whether to copy the files of items into the folder. Default: they stay where they are, and must.
    answers
        A file whose answers are taken in, see :func:`slatewise.labeling.import_answers`.
    """
    if features is not None and scores is not None:
        raise ValueError("--scores: expected features or scores, found both")
    target, notes = Path(path), list[str]()
    with whole_folder(target) as folder:
        items = _copied(found.items, folder / _ITEMS) if copy else found.items
        with Project.create(folder / PROJECT_FILE, labels, items) as project:
            if plan is not None:
                plan.keep(project)
            if features is not None:
                _attach(project, _rows_found(features, found), False, notes)
            if scores is not None:
                _attach(project, _rows_found(scores, found), True, notes)
            if answers is not None:
                taken = import_answers(project, answers)
                if taken.answers:
                    notes.append(
                        f"{taken.answers} statements of {taken.people} people about {taken.items} items are in it"
                    )
    return NewProject(target / PROJECT_FILE, len(items), len(labels), tuple(notes))


def _attach(project: Project, matrix: ItemMatrix, is_scores: bool, notes: list[str]) -> None:
    if not is_scores:
        ItemData.of(project, matrix.X, ids=matrix.ids).attach(project)
        return
    X = matrix.X if isinstance(matrix.X, np.ndarray) else matrix.X.toarray()
    values, were_chances = as_log_odds(np.asarray(X, dtype=np.float64))
    if were_chances:
        notes.append("scores: all from 0 to 1, so they are taken to be probabilities")
    ItemData.of(project, values, "log-odds", matrix.ids, matrix.columns).attach(project)


def _rows_found(matrix: ItemMatrix, found: FoundItems) -> ItemMatrix:
    """Leave out rows of items that cannot be read, where rows are in the order of the items."""
    if matrix.ids is not None or matrix.X.shape[0] != found.n_found:
        return matrix
    return replace(matrix, X=matrix.X[np.array(found.rows)])


def _copied(items: Sequence[Item], folder: Path) -> list[Item]:
    folder.mkdir()
    copied: list[Item] = []
    for item in track(items, "copy"):
        if item.folder is None:
            copied.append(item)
            continue
        target = folder / item.content
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(item.path, target)
        copied.append(replace(item, folder=folder))
    return copied


@contextmanager
def whole_folder(target: Path) -> Generator[Path]:
    """Yield a new folder beside a target, which it becomes when the block ends well; else nothing is left."""
    check_new_folder(target)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    temporary.mkdir()
    try:
        yield temporary
        _flush(temporary)
        os.rename(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def check_new_folder(target: Path) -> None:
    """Raise OSError if no new folder can be made."""
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise FileExistsError(
            errno.EEXIST, "expected nothing there yet, found something: choose another name", str(target)
        )
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"expected a folder to make it in, found no {target.parent}", str(target))


def _flush(folder: Path) -> None:
    """Write all that is in a folder to the disk."""
    if os.name != "posix":
        return
    for place, _, names in os.walk(folder):
        for path in (place, *(os.path.join(place, name) for name in names)):
            file = os.open(path, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)
