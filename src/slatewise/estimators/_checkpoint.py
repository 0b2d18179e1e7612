"""A learner's state on disk: written whole or not at all, and only ever continued on the same data and settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

from slatewise._version import __version__
from slatewise.learners.bcfw import DualState
from slatewise.learners.star_training import Start
from slatewise.model_file import ModelCard, ModelState, read_model, write_model

_KIND = "bcfw checkpoint"


class Checkpoint:
    """A file that a fit continues from; without a path it does nothing."""

    def __init__(self, path: str | os.PathLike[str] | None, belongs_to: str) -> None:
        self._path = None if path is None else Path(path)
        self._belongs_to = belongs_to

    def write(self, state: DualState, epoch: int) -> None:
        """Replace the file by the state after ``epoch``."""
        if self._path is not None:
            card = ModelCard(f"slatewise {__version__}", 0, 0, self._belongs_to)
            write_model(self._path, ModelState(_KIND, {}, {"epoch": epoch}, state.arrays(), card))

    def start(self) -> Start | None:
        """Return the state on disk; None where there is no file."""
        if self._path is None or not self._path.exists():
            return None
        saved = read_model(self._path)
        if saved.estimator != _KIND or saved.card.data_sha256 != self._belongs_to:
            raise ValueError(
                f"checkpoint: expected the state of this data and these settings, found another one in {self._path}; "
                "remove the file or name another"
            )
        return Start(DualState(**saved.arrays), cast("int", saved.values["epoch"]))

    def remove(self) -> None:
        """Forget the state: the fit is done."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
