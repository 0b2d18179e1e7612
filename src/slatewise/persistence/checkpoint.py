"""The state of a fit on disk: written whole or not at all, and only ever continued on the same data and settings.

A checkpoint is of one version of slatewise: it holds the inside of a learner, whose bits a later version need not
reach.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path as FilePath
from traceback import walk_stack
from typing import Any, Self, TypeAlias

from numpy.typing import NDArray

from slatewise._version import __version__
from slatewise.core.declarations import resolved
from slatewise.core.errors import ModelFileError
from slatewise.core.numerics.replay import OracleLog, replay_context
from slatewise.core.numerics.result import Round
from slatewise.core.rules import CHECKPOINT
from slatewise.persistence.file import Json, ModelCard, ModelState, read_model, write_model
from slatewise.persistence.saving import as_json

Callbacks: TypeAlias = Sequence[Callable[[Any], None]] | None
"""``callbacks`` of ``fit``."""
Path: TypeAlias = str | os.PathLike[str] | None
"""``checkpoint`` of ``fit``."""
_OF_ONE_RUN = ("max_iter", "n_jobs")
"""Parameters that may be others when a fit goes on."""
_LIBRARY = f"slatewise {__version__}"
_CHECKPOINT = " checkpoint"
_ADVICE = "a checkpoint is of one version of slatewise: remove the file or name another"


@dataclass(frozen=True)
class Checkpoint:
    """A file that a fit goes on from; without a path it does nothing."""

    path: FilePath | None
    kind: str
    """Whose state it is: no model file says the same."""
    belongs_to: str
    """Hash of the data and of all settings that the state depends on."""

    @classmethod
    def of(cls, estimator: Any, data_sha256: str, path: Path = None, as_used: Mapping[str, Any] | None = None) -> Self:
        """Return the checkpoint of a fit at ``path``, and what it may be continued with.

        ``as_used`` are parameters in the form in which the fit uses them, where that is not the form they are given in.
        """
        kind = type(estimator).__name__ + _CHECKPOINT
        if path is None:
            return cls(None, kind, "")
        CHECKPOINT.check("checkpoint", path)
        if _inside_a_search():
            raise ValueError(
                "checkpoint: expected None inside a search or a cross-validation, where many fits would share one "
                f"file, found {os.fspath(path)!r}"
            )
        # A shorthand is the object that it stands for.
        params = {name: resolved(estimator, name) for name in estimator.get_params(deep=False)}
        seed = {"random_state": estimator.seed_} if "random_state" in params else {}
        return cls(FilePath(path), kind, _hashed(data_sha256, {**params, **seed, **(as_used or {})}))

    def write(self, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Json] | None = None) -> None:
        """Replace the file by these arrays and plain values."""
        if self.path is not None:
            card = ModelCard(_LIBRARY, 0, 0, self.belongs_to)
            write_model(self.path, ModelState(self.kind, {}, dict(values or {}), dict(arrays), card))

    def read(self) -> ModelState | None:
        """Return what is on disk; None where there is no file."""
        if self.path is None or not self.path.exists():
            return None
        try:
            saved = read_model(self.path)
        except ModelFileError as error:
            raise ModelFileError(f"checkpoint: {error}; {_ADVICE}") from None
        if not saved.estimator.endswith(_CHECKPOINT):
            raise ValueError(f"checkpoint: expected one, found a {saved.estimator} in {self.path}; name another file")
        if saved.card.library != _LIBRARY:
            raise ValueError(
                f"checkpoint: expected the state of a fit by {_LIBRARY}, found one by {saved.card.library} in "
                f"{self.path}; {_ADVICE}"
            )
        if (saved.estimator, saved.card.data_sha256) != (self.kind, self.belongs_to):
            raise ValueError(
                f"checkpoint: expected the state of this data and these settings, found another one in {self.path}; "
                "remove the file or name another"
            )
        return saved

    def start(self) -> dict[str, NDArray[Any]] | None:
        """Return the arrays on disk; None where there is no file."""
        saved = self.read()
        return None if saved is None else saved.arrays

    def remove(self) -> None:
        """Forget the state: the fit is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _hashed(data_sha256: str, params: Mapping[str, object]) -> str:
    """Hash the data and the settings, however these are written: 1 and 1.0, lists and arrays are the same."""
    kept = {name: _one_form(as_json(value, name)) for name, value in params.items() if name not in _OF_ONE_RUN}
    return sha256(f"{data_sha256}{json.dumps(kept, sort_keys=True)}".encode()).hexdigest()


def _one_form(value: Json) -> Json:
    if isinstance(value, list):
        return [_one_form(part) for part in value]
    if isinstance(value, dict):
        return {name: _one_form(part) for name, part in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _inside_a_search() -> bool:
    """Return whether a search of scikit-learn called fit, by the call stack: fit has no other way to know."""
    return any(frame.f_code.co_name == "_fit_and_score" for frame, _ in walk_stack(None))


@contextmanager
def resumed(
    estimator: Any,
    data_sha256: str,
    callbacks: Callbacks = None,
    checkpoint: Path = None,
    as_used: Mapping[str, Any] | None = None,
) -> Generator[Callable[[Round], None]]:
    """Keep the oracle calls of learners in here in the checkpoint; yield what tells the callbacks of a round.

    After a kill callbacks get only new rounds, and again those that are not yet in the file. ``as_used`` is that of
    :meth:`Checkpoint.of`.
    """
    state = Checkpoint.of(estimator, data_sha256, checkpoint, as_used)
    log = None if state.path is None else OracleLog(state.start(), state.write)
    with estimator._watched(callbacks) as tell, replay_context(log):
        yield lambda found: None if log is not None and log.replaying else tell(found)
    state.remove()
