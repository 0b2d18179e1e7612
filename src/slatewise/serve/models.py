"""The models of a service: loaded, warmed up, and swapped when their files change.

A request is checked and answered by one version of a model: it keeps the endpoint that it was checked by. During a
swap, earlier requests are answered by the old version and later ones by the new. A file that is damaged, of another
class, or that fails its own example is refused, and the old version stays.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import tempfile
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
from slatewise.serve.batching import collect_warnings
from slatewise.serve.endpoints import endpoints_for
from slatewise.serve.endpoints.base import Endpoint, Endpoints, Request
from slatewise.serve.settings import Limits, ModelFile, check_names, identity, open_plain
from slatewise.web.codec import RequestError

_log = logging.getLogger("slatewise.serve")
_BATCH = 6
"""Queries of a warm-up batch: more than the quantized index takes, which is other code."""
_MAX_WAIT = 60.0
_PART = 1 << 20
_VERSION_LETTERS = 12


@dataclass(frozen=True, eq=False)
class Version:
    """One version of a model, ready to answer."""

    name: str
    version: str
    estimator: str
    endpoints: Endpoints
    about: dict[str, Any]
    examples: dict[str, list[Any]]
    """The answers to the examples of the endpoints."""


class Ended(BaseException):
    """The service ends while a model is loaded, which is not an error of the model."""


@dataclass(eq=False)
class _Watched:
    """A file, its identity when it was last read, and why it was refused then."""

    file: ModelFile
    seen: tuple[int, ...] | None = None
    refused: str | None = None
    again: float = 0.0
    wait: float = 1.0


class ModelCache:
    """A folder with copies of model files, named by their content and shared by all workers.

    Arrays of a model are mapped from its file. Copying a new model over the file, instead of renaming one into its
    place, would change or cut the arrays of a running service, so a model is copied first. Workers that copy the same
    bytes end up with one file, and the system keeps its pages in memory once.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def copy(self, name: str, source: Path) -> tuple[Path, str]:
        """Copy a file as it is now; return the path and the version: the start of its sha256."""
        digest = hashlib.sha256()
        number, temporary = tempfile.mkstemp(suffix=".part", dir=self.folder)
        try:
            with open(number, "wb") as out, open(source, "rb", opener=open_plain) as file:
                while part := file.read(_PART):
                    digest.update(part)
                    out.write(part)
            version = digest.hexdigest()[:_VERSION_LETTERS]
            target = self.folder / f"{name}@{version}.safetensors"
            with suppress(FileExistsError):  # another worker has copied the same bytes
                os.link(temporary, target)
        finally:
            os.unlink(temporary)
        return target, version

    def copies(self, name: str) -> list[tuple[Path, str]]:
        """Return the copies of a model, the newest first, and their versions."""
        found: list[tuple[float, Path]] = []
        for path in self.folder.glob("*@*.safetensors"):
            if path.name.rpartition("@")[0] == name:
                with suppress(OSError):  # another worker has removed it
                    found.append((path.stat().st_mtime, path))
        return [(path, path.stem.rpartition("@")[2]) for _, path in sorted(found, reverse=True)]

    def keep_only(self, name: str, version: str) -> None:
        """Remove other copies of a model; workers that have one mapped keep it until they swap."""
        for path, other in self.copies(name):
            if other != version:
                path.unlink(missing_ok=True)


class Models:
    """All models by name; ``ready`` when each has a version.

    ``on_change`` is called with the version before, the name, and "taken" or "refused".
    """

    def __init__(
        self,
        files: Iterable[ModelFile],
        cache: ModelCache,
        limits: Limits,
        n_jobs: int | None = None,
        on_change: Callable[[Version | None, str, str], None] = lambda version, name, result: None,
    ) -> None:
        self.files = [_Watched(file) for file in check_names(files)]
        self._cache, self._limits, self._n_jobs, self._on_change = cache, limits, n_jobs, on_change
        self._current: dict[str, Version] = {}
        self._ended = threading.Event()

    @property
    def missing(self) -> int:
        """The number of models without a version."""
        return len(self.files) - len(self._current)

    @property
    def ready(self) -> bool:
        """Whether every model has a version."""
        return self.missing == 0

    @property
    def names(self) -> list[str]:
        """The names of all models, ready or not."""
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
        """Load the files that changed since the last look; called in one thread at a time."""
        with suppress(Ended):
            for watched in self.files:
                self._look_at(watched)
                if watched.refused is not None and watched.file.name not in self._current:
                    self._take_copy(watched.file.name)

    def end(self) -> None:
        """Stop loading models: compiling all code of one takes up to a minute."""
        self._ended.set()

    async def watch(self, seconds: float, pool: ThreadPoolExecutor) -> None:
        """Look for changed files every few seconds."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await asyncio.get_running_loop().run_in_executor(pool, self.look)
            except Exception:
                _log.exception("looking for new model files failed")

    def _look_at(self, watched: _Watched) -> None:
        """Take a file or refuse it; errors of one file do not affect the others."""
        try:
            seen = identity(watched.file.path)
        except OSError as error:
            if watched.refused is None:
                self._refuse(watched, error)
            return
        if seen == watched.seen and (watched.refused is None or time.monotonic() < watched.again):
            return
        fresh = seen != watched.seen
        watched.seen = seen
        try:
            self._take(watched)
        except Exception as error:
            watched.wait = 1.0 if fresh else min(2 * watched.wait, _MAX_WAIT)
            watched.again = time.monotonic() + watched.wait
            self._refuse(watched, error)

    def _take(self, watched: _Watched) -> None:
        name = watched.file.name
        path, version = self._cache.copy(name, watched.file.path)
        before = self._current.get(name)
        if before is not None and before.version == version:  # the content is the same
            watched.refused = None
            return
        try:
            try:
                fresh = self._load(name, path, version)
            except ValueError as error:  # the error names the copy
                raise ValueError(str(error).replace(str(path), str(watched.file.path))) from error
            if before is not None and before.estimator != fresh.estimator:
                raise ValueError(f"expected a {before.estimator}, found a {fresh.estimator}")
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        watched.refused, watched.wait = None, 1.0
        self._swap(before, fresh)
        self._cache.keep_only(name, version)

    def _take_copy(self, name: str) -> None:
        """Take the copy that other workers use while the file is bad or missing, as a new worker does."""
        for path, version in self._cache.copies(name):
            try:
                self._swap(None, self._load(name, path, version))
            except Exception as error:  # also for a bad copy that another worker is about to refuse
                _log.warning("copy refused", extra={"fields": {"model": name, "reason": printable(str(error), 400)}})
            else:
                return

    def _swap(self, before: Version | None, fresh: Version) -> None:
        self._current[fresh.name] = fresh
        self._on_change(before, fresh.name, "taken")
        about = {"model": fresh.name, "version": fresh.version, "estimator": fresh.estimator}
        _log.info("model", extra={"fields": about})

    def _load(self, name: str, path: Path, version: str) -> Version:
        estimator = load(path, mmap=True)
        names = cast("dict[str, Any]", vars(estimator)).get("feature_names_in_")
        endpoints = endpoints_for(estimator, self._limits, self._n_jobs)
        examples = {endpoint.name: warm_up(endpoint, self._ended) for endpoint in endpoints.values()}
        card = estimator.model_card_
        about = {
            "name": name,
            "version": version,
            "estimator": type(estimator).__name__,
            "routes": list(endpoints),
            "n_features": int(estimator.n_features_in_),
            "feature_names": None if names is None else names.tolist(),
            "queries": endpoints["rank"].form,
            **endpoints["rank"].about,
            "trained_on": {"lists": card.n_lists, "rows": card.n_rows, "data_sha256": card.data_sha256},
            "library": card.library,
        }
        return Version(name, version, type(estimator).__name__, endpoints, about, examples)

    def _refuse(self, watched: _Watched, error: Exception) -> None:
        """Keep the old version; the reason names the original file, not the copy."""
        path, expected = printable(str(watched.file.path)), isinstance(error, (ValueError, OSError, MemoryError))
        what = str(error) if expected else f"{type(error).__name__}: {error}"
        if isinstance(error, OSError):
            what = error.strerror or what  # without the name of the file, which may be the copy
        what = printable(what.removeprefix(f"{path}: "), 400) or type(error).__name__
        reason = f"{path}: {what}"
        if reason != watched.refused:
            about = {"model": watched.file.name, "reason": reason}
            _log.error("model refused", extra={"fields": about}, exc_info=None if expected else error)
            self._on_change(self._current.get(watched.file.name), watched.file.name, "refused")
        watched.refused = reason


def warm_up(endpoint: Endpoint, ended: threading.Event) -> list[Any]:
    """Answer the example and all other kinds of requests, so that all code is compiled; return the example's answer."""
    with collect_warnings():  # drops the warnings
        for request in endpoint.warmup_requests:
            if ended.is_set():
                raise Ended
            with suppress(RequestError, ValueError):  # this model does not take the filter
                _answer(endpoint, request)
        return _answer(endpoint, endpoint.example)


def _answer(endpoint: Endpoint, request: Request) -> list[Any]:
    """Answer a request in a batch and alone; return its own answer."""
    checked = endpoint.check(request)
    if checked.key is not None:
        endpoint.respond([checked] * _BATCH)
    return endpoint.respond([checked])[0]
