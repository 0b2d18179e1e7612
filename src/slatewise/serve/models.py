"""The models of a service: loaded, warmed up, and swapped when their files change.

A request is checked and answered by one version: it holds the door it came through. So while a model is swapped, those
who came before are answered by the old version, those after by the new one, and none by both. A file that is damaged,
of another class, or that fails its own example is refused, and the old version stays.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from slatewise.core.errors import printable
from slatewise.core.rules import shown
from slatewise.model.saving import load
from slatewise.serve.door import Door, Doors
from slatewise.serve.kinds import doors_of
from slatewise.serve.limits import Limits
from slatewise.serve.spool import Spool

_log = logging.getLogger("slatewise.serve")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TOGETHER = 6
"""Queries of a warm start beside a single one: more than go through the quantized index, which is other code."""
_LONGEST_WAIT = 60.0


@dataclass(frozen=True)
class ModelFile:
    """What a model is called, and where its file is."""

    name: str
    path: Path

    @classmethod
    def parse(cls, text: str) -> ModelFile:
        """Read ``path`` or ``name=path``; without a name the file has one.

        Examples
        --------
        >>> ModelFile.parse("models/songs.safetensors").name, ModelFile.parse("best=songs.safetensors").name
        ('songs', 'best')
        """
        name, equals, path = text.partition("=")
        if not equals or "/" in name:
            name, path = Path(text).name.removesuffix(".safetensors"), text
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"model: expected a name of letters, digits, '.', '_' and '-', found {shown(name)}")
        return cls(name, Path(path))


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
        n_threads: int | None = None,
        told: Callable[[Version | None, str, str], None] = lambda version, name, result: None,
    ) -> None:
        self.files = [_Watched(file) for file in files]
        names = [watched.file.name for watched in self.files]
        twice = next((name for name in names if names.count(name) > 1), None)
        if not names or twice is not None:
            found = "none" if twice is None else f"{twice!r} twice: name one by NAME=PATH"
            raise ValueError(f"model: expected one or more, each with a name of its own, found {found}")
        self._spool, self._limits, self._n_threads, self._told = spool, limits, n_threads, told
        self._current: dict[str, Version] = {}

    @property
    def ready(self) -> bool:
        """Whether every model has a version."""
        return len(self._current) == len(self.files)

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
        for watched in self.files:
            try:
                identity = _identity(watched.file.path)
            except OSError as error:
                if watched.refused is None:
                    self._refuse(watched, f"{watched.file.path}: {error.strerror}")
                continue
            if identity == watched.seen and (watched.refused is None or time.monotonic() < watched.again):
                continue
            fresh = identity != watched.seen
            watched.seen = identity
            try:
                self._take(watched)
            except (ValueError, OSError, MemoryError) as error:
                watched.wait = 1.0 if fresh else min(2 * watched.wait, _LONGEST_WAIT)
                watched.again = time.monotonic() + watched.wait
                self._refuse(watched, printable(str(error), 400))

    async def watch(self, seconds: float, pool: ThreadPoolExecutor) -> None:
        """Look again and again."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await asyncio.get_running_loop().run_in_executor(pool, self.look)
            except Exception:
                _log.exception("looking for new model files failed")

    def _take(self, watched: _Watched) -> None:
        name = watched.file.name
        path, version = self._spool.copy(name, watched.file.path)
        before = self._current.get(name)
        if before is not None and before.version == version:  # touched, or written again as it was
            watched.refused = None
            return
        try:
            fresh = self._made(name, path, version)
            if before is not None and before.estimator != fresh.estimator:
                raise ValueError(f"{watched.file.path}: expected a {before.estimator}, found a {fresh.estimator}")
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        self._current[name] = fresh
        watched.refused, watched.wait = None, 1.0
        self._spool.keep_only(name, version)
        self._told(before, name, "taken")
        _log.info("model", extra={"fields": {"model": name, "version": version, "estimator": fresh.estimator}})

    def _made(self, name: str, path: Path, version: str) -> Version:
        estimator = load(path, mmap=True)
        names = cast("dict[str, Any]", vars(estimator)).get("feature_names_in_")
        doors = doors_of(estimator, self._limits, self._n_threads)
        examples = {door.name: warm(door) for door in doors.values()}
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

    def _refuse(self, watched: _Watched, reason: str) -> None:
        if reason != watched.refused:
            _log.error("model refused", extra={"fields": {"model": watched.file.name, "reason": reason}})
            self._told(self._current.get(watched.file.name), watched.file.name, "refused")
        watched.refused = reason


def warm(door: Door) -> list[Any]:
    """Ask the example alone and with others, so that all kernels are compiled; return the answer to it alone."""
    asked = door.check(door.example)
    if asked.key is not None:
        door.respond([asked] * _TOGETHER)
    return door.respond([asked])[0]


def _identity(path: Path) -> Identity:
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
