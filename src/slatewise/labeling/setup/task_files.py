"""Tasks of Label Studio to begin a project with: their items, the labels they mention, and what was predicted.

A label that the last prediction of a task chose is as likely as its score, one that it did not choose is not likely,
and of a task without a prediction every label is as likely as it was chosen in the others. Nothing is taken to be
certain: a prediction is where questions begin, not an answer.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slatewise.core.errors import DataWarning
from slatewise.core.rules import short_repr
from slatewise.labeling.exchange.label_studio import read_tasks
from slatewise.labeling.setup.item_files import FoundItems
from slatewise.labeling.setup.item_matrices import ItemMatrix

_NOT_LIKELY = 0.05


@dataclass(frozen=True, eq=False)
class FoundTasks:
    """What a project begins with."""

    items: FoundItems
    labels: list[str]
    scores: ItemMatrix | None
    """Probabilities of the labels; None where nothing was predicted."""


def is_task_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file of items is one of tasks, by its ending."""
    endings = [ending.lower() for ending in Path(path).suffixes if ending not in (".gz", ".xz")]
    return Path(path).is_file() and endings[-1:] == [".json"]


def read_task_items(path: str | os.PathLike[str], labels: Sequence[str] | None = None) -> FoundTasks:
    r"""Read tasks; pictures and sounds lie beside the file.

    Parameters
    ----------
    path
        The file, as Label Studio exports it as JSON.
    labels
        The labels of the project. Default: those that annotations and predictions mention, in alphabetical order.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> chosen = '{"score": 0.8, "result": [{"type": "choices", "value": {"choices": ["sea"]}}]}'
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "tasks.json")
    ...     _ = file.write_text(f'[{{"id": 7, "data": {{"text": "Waves."}}, "predictions": [{chosen}]}}]')
    ...     tasks = read_task_items(file, ["sea", "sky"])
    >>> tasks.items.items[0].id, tasks.scores.X.tolist()
    ('7', [[0.8, 0.05]])
    """
    source = Path(path)
    tasks = read_tasks(source, source.resolve().parent)
    if not tasks.items:
        raise ValueError(f"{source}: expected at least one task, found none")
    names = tasks.labels if labels is None else list(labels)
    if len(names) < 2:
        expected = "at least 2 labels in annotations and predictions, or --labels"
        raise ValueError(f"{source}: expected {expected}, found {len(names)}")
    strange = [name for name in tasks.labels if name not in names]
    if strange:
        what = f"{len(strange)} labels that are not among --labels, such as {short_repr(strange[0])}"
        warnings.warn(f"{source}: predictions of {what}, are left out", DataWarning, stacklevel=2)
    places = {name: place for place, name in enumerate(tasks.labels)}
    nothing = np.full(len(tasks.items), np.nan)
    columns = [tasks.scores[:, places[name]] if name in places else nothing for name in names]
    found = FoundItems(tuple(tasks.items), tuple(range(len(tasks.items))), len(tasks.items))
    return FoundTasks(found, names, _probabilities(source, np.column_stack(columns), names))


def _probabilities(source: Path, chosen: NDArray[np.float64], names: list[str]) -> ItemMatrix | None:
    """Return how likely all labels are, by the scores of those that were chosen."""
    is_chosen = ~np.isnan(chosen)
    if not is_chosen.any():
        return None
    wrong = chosen[is_chosen & ~((chosen >= 0.0) & (chosen <= 1.0))]
    if len(wrong):
        raise ValueError(f"{source}: expected scores of predictions from 0 to 1, found {wrong[0]:g}: give --scores")
    predicted = is_chosen.any(axis=1)
    chances = np.where(is_chosen, chosen, _NOT_LIKELY)
    chances[~predicted] = is_chosen[predicted].mean(axis=0)
    return ItemMatrix(chances.clip(_NOT_LIKELY, 1.0 - _NOT_LIKELY), None, names)
