"""The state of a fit on disk: written whole or not at all, and only ever continued on the same data and settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from slatewise._version import __version__
from slatewise.core.oracle_log import OracleLog, keeping
from slatewise.core.results import Round
from slatewise.model.file import ModelCard, ModelState, read_model, write_model
from slatewise.model.saving import as_json
from slatewise.model.sklearn import BaseEstimator

_OF_ONE_RUN = ("callbacks", "checkpoint", "max_iter", "n_threads")
"""Parameters that may be others when a fit goes on."""


class Checkpoint:
    """The file an estimator's ``checkpoint`` names; without one it does nothing."""

    def __init__(self, estimator: BaseEstimator, data_sha256: str) -> None:
        params = estimator.get_params(deep=False)
        path = params.get("checkpoint")
        self.path = None if path is None else Path(path)
        self._kind = f"{type(estimator).__name__} checkpoint"
        self._belongs_to = "" if path is None else f"{__version__} {data_sha256} {_settings(params)}"

    def write(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the file by these arrays."""
        if self.path is not None:
            card = ModelCard(f"slatewise {__version__}", 0, 0, self._belongs_to)
            write_model(self.path, ModelState(self._kind, {}, {}, dict(arrays), card))

    def start(self) -> dict[str, NDArray[Any]] | None:
        """Return the arrays on disk; None where there is no file."""
        if self.path is None or not self.path.exists():
            return None
        saved = read_model(self.path)
        if saved.estimator != self._kind or saved.card.data_sha256 != self._belongs_to:
            raise ValueError(
                f"checkpoint: expected the state of this data and these settings, found another one in {self.path}; "
                "remove the file or name another"
            )
        return saved.arrays

    def remove(self) -> None:
        """Forget the state: the fit is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _settings(params: Mapping[str, Any]) -> str:
    kept = {name: as_json(value, name) for name, value in params.items() if name not in _OF_ONE_RUN}
    return json.dumps(kept, sort_keys=True)


@contextmanager
def resumed(estimator: BaseEstimator, data_sha256: str) -> Generator[Callable[[Round], None]]:
    """Keep the oracle calls of learners in here in the checkpoint; yield what tells the callbacks of a round.

    After a kill only new rounds are told, and those that the file had not seen yet once more.
    """
    checkpoint = Checkpoint(estimator, data_sha256)
    log = None if checkpoint.path is None else OracleLog(checkpoint.start(), checkpoint.write)
    callbacks = estimator.get_params(deep=False).get("callbacks") or ()

    def tell(found: Round) -> None:
        if log is None or not log.replaying:
            for callback in callbacks:
                callback(found)

    with keeping(log):
        yield tell
    checkpoint.remove()
