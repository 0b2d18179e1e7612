"""The models of a service: loaded, warmed up, and swapped when their files change.

A request is checked and answered by one version: it holds the door it came through. So while a model is swapped, those
who came before are answered by the old version, those after by the new one, and none by both. A file that is damaged,
of another class, or that fails its own example is refused, and the old version stays.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from slatewise.core.errors import printable
from slatewise.persistence.saving import load
from slatewise.serve.door import Door, Doors, Request
from slatewise.serve.hearing import listening
from slatewise.serve.kinds import doors_of
from slatewise.serve.limits import Limits
from slatewise.serve.model_file import ModelFile, check_names
from slatewise.serve.spool import Spool
from slatewise.web.codec import RequestError

_log = logging.getLogger("slatewise.serve")
_TOGETHER = 6
"""Queries of a warm start beside a single one: more than go through the quantized index, which is other code."""
_LONGEST_WAIT = 60.0


@dataclass(frozen=True, eq=False)
class Version:
    """One version of a model, ready to answer."""

    name: str
    version: str
    estimator: str
    doors: Doors
    about: dict[str, Any]
    examples: dict[str, list[Any]]
    """The answers to the examples of the doors."""


class Ended(BaseException):
    """The service ends while a model is made: no fault of the model."""


Identity = tuple[int, int, int, int]


@dataclass(eq=False)
class _Watched:
    """A file, how it looked when it was last read, and why it was refused then."""

    file: ModelFile
    seen: Identity | None = None
    refused: str | None = None
    again: float = 0.0
    wait: float = 1.0


class Models:
    """All models by name; ``ready`` when each has a version."""

    def __init__(
        self,
        files: Iterable[ModelFile],
        spool: Spool,
        limits: Limits,
        n_jobs: int | None = None,
        told: Callable[[Version | None, str, str], None] = lambda version, name, result: None,
    ) -> None:
        self.files = [_Watched(file) for file in check_names(files)]
        self._spool, self._limits, self._n_jobs, self._told = spool, limits, n_jobs, told
        self._current: dict[str, Version] = {}
        self._ended = threading.Event()

    @property
    def missing(self) -> int:
        """How many models have no version yet."""
        return len(self.files) - len(self._current)

    @property
    def ready(self) -> bool:
        """Whether every model has a version."""
        return self.missing == 0

    @property
    def names(self) -> list[str]:
        """All of them, ready or not."""
        return [watched.file.name for watched in self.files]

    def get(self, name: str) -> Version | None:
        """Return the version that answers now."""
        return self._current.get(name)

    def about(self, name: str) -> dict[str, Any]:
        """Describe a model."""
        watched = next(one for one in self.files if one.file.name == name)
        version = self._current.get(name)
        if version is None:
            return {"name": name, "ready": False, "refused": watched.refused}
        return {**version.about, "ready": True, "refused": watched.refused}

    def look(self) -> None:
        """Read the files that changed since the last look; called in a thread, and by one at a time."""
        with suppress(Ended):
            for watched in self.files:
                self._look_at(watched)
                if watched.refused is not None and watched.file.name not in self._current:
                    self._take_kept(watched.file.name)

    def end(self) -> None:
        """Leave off making models: who compiles all of one takes up to a minute."""
        self._ended.set()

    async def watch(self, seconds: float, pool: ThreadPoolExecutor) -> None:
        """Look again and again."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await asyncio.get_running_loop().run_in_executor(pool, self.look)
            except Exception:
                _log.exception("looking for new model files failed")

    def _look_at(self, watched: _Watched) -> None:
        """Take a file, or refuse it; whatever is wrong with one, the others are looked at too."""
        try:
            identity = _identity(watched.file.path)
        except OSError as error:
            if watched.refused is None:
                self._refuse(watched, error)
            return
        if identity == watched.seen and (watched.refused is None or time.monotonic() < watched.again):
            return
        fresh = identity != watched.seen
        watched.seen = identity
        try:
            self._take(watched)
        except Exception as error:
            watched.wait = 1.0 if fresh else min(2 * watched.wait, _LONGEST_WAIT)
            watched.again = time.monotonic() + watched.wait
            self._refuse(watched, error)

    def _take(self, watched: _Watched) -> None:
        name = watched.file.name
        path, version = self._spool.copy(name, watched.file.path)
        before = self._current.get(name)
        if before is not None and before.version == version:  # touched, or written again as it was
            watched.refused = None
            return
        try:
            try:
                fresh = self._made(name, path, version)
            except ValueError as error:  # which names the copy
                raise ValueError(str(error).replace(str(path), str(watched.file.path))) from error
            if before is not None and before.estimator != fresh.estimator:
                raise ValueError(f"expected a {before.estimator}, found a {fresh.estimator}")
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        watched.refused, watched.wait = None, 1.0
        self._swap(before, fresh)
        self._spool.keep_only(name, version)

    def _take_kept(self, name: str) -> None:
        """Take the copy that other workers answer with, where the file is bad or gone: one that starts does as they."""
        for path, version in self._spool.kept(name):
            try:
                self._swap(None, self._made(name, path, version))
            except Exception as error:  # also a bad one that another worker is about to refuse
                _log.warning("copy refused", extra={"fields": {"model": name, "reason": printable(str(error), 400)}})
            else:
                return

    def _swap(self, before: Version | None, fresh: Version) -> None:
        self._current[fresh.name] = fresh
        self._told(before, fresh.name, "taken")
        about = {"model": fresh.name, "version": fresh.version, "estimator": fresh.estimator}
        _log.info("model", extra={"fields": about})

    def _made(self, name: str, path: Path, version: str) -> Version:
        estimator = load(path, mmap=True)
        names = cast("dict[str, Any]", vars(estimator)).get("feature_names_in_")
        doors = doors_of(estimator, self._limits, self._n_jobs)
        examples = {door.name: warm(door, self._ended) for door in doors.values()}
        card = estimator.model_card_
        about = {
            "name": name,
            "version": version,
            "estimator": type(estimator).__name__,
            "routes": list(doors),
            "n_features": int(estimator.n_features_in_),
            "feature_names": None if names is None else names.tolist(),
            "queries": doors["rank"].form,
            **doors["rank"].about,
            "trained_on": {"lists": card.n_lists, "rows": card.n_rows, "data_sha256": card.data_sha256},
            "library": card.library,
        }
        return Version(name, version, type(estimator).__name__, doors, about, examples)

    def _refuse(self, watched: _Watched, error: Exception) -> None:
        """Keep the old version; the reason names the file that was given, whatever has been wrong with it."""
        path, foreseen = printable(str(watched.file.path)), isinstance(error, (ValueError, OSError, MemoryError))
        what = str(error) if foreseen else f"{type(error).__name__}: {error}"
        if isinstance(error, OSError):
            what = error.strerror or what  # without the name of the file, which may be the copy
        what = printable(what.removeprefix(f"{path}: "), 400) or type(error).__name__
        reason = f"{path}: {what}"
        if reason != watched.refused:
            about = {"model": watched.file.name, "reason": reason}
            _log.error("model refused", extra={"fields": about}, exc_info=None if foreseen else error)
            self._told(self._current.get(watched.file.name), watched.file.name, "refused")
        watched.refused = reason


def warm(door: Door, ended: threading.Event) -> list[Any]:
    """Ask the example and all other ways, alone and several, so that all is compiled; return the example's answer."""
    with listening():  # what it warns of is nobody's
        for request in door.others:
            if ended.is_set():
                raise Ended
            with suppress(RequestError, ValueError):  # this model does not take the switch
                _answered(door, request)
        return _answered(door, door.example)


def _answered(door: Door, request: Request) -> list[Any]:
    asked = door.check(request)
    if asked.key is not None:
        door.respond([asked] * _TOGETHER)
    return door.respond([asked])[0]


def _identity(path: Path) -> Identity:
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
