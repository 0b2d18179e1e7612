"""The arrays of a search on disk: written whole or not at all, and continued on the same data and settings only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from slatewise._version import __version__
from slatewise.model_file import ModelCard, ModelState, read_model, write_model


class SearchCheckpoint:
    """A file that a fit continues from; without a path it does nothing."""

    def __init__(self, path: str | os.PathLike[str] | None, kind: str, belongs_to: str) -> None:
        self._path = None if path is None else Path(path)
        self._kind, self._belongs_to = kind, belongs_to

    def write(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the file by these arrays."""
        if self._path is not None:
            card = ModelCard(f"slatewise {__version__}", 0, 0, self._belongs_to)
            write_model(self._path, ModelState(self._kind, {}, {}, dict(arrays), card))

    def start(self) -> dict[str, NDArray[Any]] | None:
        """Return the arrays on disk; None where there is no file."""
        if self._path is None or not self._path.exists():
            return None
        saved = read_model(self._path)
        if saved.estimator != self._kind or saved.card.data_sha256 != self._belongs_to:
            raise ValueError(
                f"checkpoint: expected the state of this data and these settings, found another one in {self._path}; "
                "remove the file or name another"
            )
        return saved.arrays

    def remove(self) -> None:
        """Forget the state: the fit is done."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
