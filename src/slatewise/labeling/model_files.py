"""Versions of the model as files: ``beach.models/model-0001.safetensors`` beside ``beach.db``; none is replaced."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from slatewise.core.errors import ProjectError
from slatewise.core.rules import short_repr
from slatewise.labeling.store.project import Project
from slatewise.labeling.store.records import ModelVersion
from slatewise.persistence.saving import load

if TYPE_CHECKING:
    from slatewise.cstar.ranker import CStarRanker


def models_folder(project: Project) -> Path:
    """Return the folder of a project's models, which is made where there is none."""
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
        The last act that it learnt from; 0: it learnt from nothing of the project, so that all that is known there can
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
    """Read the model of a version; ProjectError where there is no file of it."""
    from slatewise.cstar.ranker import CStarRanker

    if not version.path:
        raise ProjectError(f"model {version.number}: expected a version with a file, found one that came without")
    model = load(project.path.parent / version.path)
    if not isinstance(model, CStarRanker):
        raise ProjectError(f"model {version.number}: expected a CStarRanker, found a {type(model).__name__}")
    return model


def label_columns(project: Project, model: CStarRanker) -> NDArray[np.int64]:
    """Return the numbers of the project's labels that the columns of a model are, by name where it has names."""
    names = model.label_names_
    if names.dtype.kind == "U":
        return np.array([project.labels.number(str(name)) for name in names], dtype=np.int64)
    if len(names) != len(project.labels):
        raise ValueError(
            f"model: expected names of labels, or as many as the project has, {len(project.labels)}, found "
            f"{len(names)} numbered from {short_repr(names[:1].tolist())}"
        )
    return np.arange(len(names))
