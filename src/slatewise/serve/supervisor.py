"""Start a service: bind the socket, make the folders, run one worker here, or several and replace those that die."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from slatewise.serve.metrics import SHARED_FOLDER
from slatewise.serve.settings import Settings
from slatewise.web.logs import write_logs
from slatewise.web.server import bind

_log = logging.getLogger("slatewise.serve")
_EARLY_SECONDS, _MAX_DEATHS = 10.0, 5
"""The service stops after this number of deaths in a row, each within these seconds of the worker's start."""
_PREFIX, _LOCK = "slatewise-serve-", "lock"


def serve(settings: Settings, workers: int = 1, on_ready: Callable[[str], None] = lambda address: None) -> int:
    """Serve models until a signal comes; return the exit code.

    Parameters
    ----------
    settings
        Models, address and limits; port 0 is any free port.
    workers
        The number of processes; they share the socket and the pages of the models.
    on_ready
        Called with the address, maybe in another thread, when all models of all workers answer.
    """
    listening = bind(settings.host, settings.port)
    settings = replace(settings, port=listening.getsockname()[1]).check()
    write_logs()
    with own_folder() as (folder, lock):
        names = [file.name for file in settings.files()]
        _log.info("starting", extra={"fields": {"address": settings.address, "models": names}})
        cache, figures, ready = (folder / name for name in ("models", "figures", "ready"))
        for one in (cache, figures, ready):
            one.mkdir()
        settings = replace(settings, cache_folder=str(cache), workers=workers, ready_folder=str(ready))
        if workers > 1:
            return Supervisor(settings, listening, figures, lock, partial(on_ready, settings.address)).run()
        from slatewise.serve.worker import run_worker

        run_worker(settings, listening, on_ready=partial(on_ready, settings.address))
        return 0


@contextmanager
def own_folder() -> Generator[tuple[Path, int]]:
    """Yield a new folder and the descriptor of its lock, which workers hold too.

    The lock ends with the last process of the service, even if it is killed. Folders of ended services are removed
    first, so that a service that is killed again and again does not fill the disk with copies of models.
    """
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError):  # in use, or just removed by another service
            if os.lstat(path.parent).st_uid == os.getuid():
                with open(path, encoding="utf-8") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path.parent)
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        folder = Path(name)
        with open(folder / "new", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.rename(folder / "new", folder / _LOCK)  # other services see the lock only when it is held
            yield folder, lock.fileno()


@dataclass(eq=False)
class WorkerReadiness:
    """A folder where every worker leaves a file, named by its number, when it can answer.

    Workers share one socket, so the service is ready only when all workers have warmed up. The file outlives its
    worker: a replacement accepts no requests before it can answer.
    """

    folder: Path
    n_workers: int
    number: int
    complete: bool = False

    def mark_ready(self) -> None:
        """Record that this worker can answer."""
        (self.folder / str(self.number)).touch()

    @property
    def missing(self) -> int:
        """The number of workers that are not ready yet."""
        if self.complete:
            return 0
        missing = self.n_workers - sum(1 for _ in self.folder.iterdir())
        self.complete = missing == 0
        return missing


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    began: float


@dataclass(eq=False)
class Supervisor:
    """Several workers on one socket; one that dies is replaced."""

    settings: Settings
    listening: socket.socket
    figures: Path
    lock: int
    """Descriptor of the lock of the folder, which workers inherit."""
    on_ready: Callable[[], None] = lambda: None
    workers: list[_Worker] = field(default_factory=list[_Worker])
    stopping: bool = False
    deaths: int = 0

    def run(self) -> int:
        """Run until a signal comes, or workers die faster than they can be replaced."""
        for one in (signal.SIGTERM, signal.SIGINT):
            signal.signal(one, self._stop)
        self.workers = [self._start(number, "now") for number in range(self.settings.workers)]
        readiness = WorkerReadiness(Path(self.settings.ready_folder), self.settings.workers, 0)
        while not self.stopping:
            time.sleep(0.1)
            self._replace_dead()
            if not readiness.complete and not readiness.missing:
                self.on_ready()
        self.listening.close()  # workers close theirs after accepting the connections that wait
        for worker in self.workers:
            worker.process.terminate()
        until = time.monotonic() + self.settings.limits.seconds + 10
        for worker in self.workers:
            try:
                worker.process.wait(max(until - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                worker.process.kill()
        return 1 if self.deaths > _MAX_DEATHS else 0

    def _stop(self, *_: Any) -> None:
        self.stopping = True

    def _start(self, number: int, when: str) -> _Worker:
        listener = self.listening.fileno()
        words = self.settings.to_json(), str(listener), str(number), when
        command = [sys.executable, "-m", "slatewise.serve.worker", *words]
        environment = {**os.environ, SHARED_FOLDER: str(self.figures)}
        process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[listener, self.lock], env=environment)
        _log.info("worker", extra={"fields": {"worker": process.pid}})
        return _Worker(process, time.monotonic())

    def _replace_dead(self) -> None:
        for number, worker in enumerate(self.workers):
            code = worker.process.poll()
            if code is None or self.stopping:
                continue
            lived = time.monotonic() - worker.began
            self.deaths = self.deaths + 1 if lived < _EARLY_SECONDS else 0
            fields = {"worker": worker.process.pid, "code": code, "lived": round(lived, 1)}
            _log.error("worker died", extra={"fields": fields})
            if self.deaths > _MAX_DEATHS:
                self.stopping = True
                return
            forget: Any = import_module("prometheus_client.multiprocess").mark_process_dead  # which has no types
            forget(worker.process.pid, str(self.figures))
            self.workers[number] = self._start(number, "wait")
