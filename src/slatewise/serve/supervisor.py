"""Start a service: bind the socket, make the folders, run one worker here, or several and keep them going."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from slatewise.serve.crew import Crew
from slatewise.serve.folder import own_folder
from slatewise.serve.measures import SHARED_FOLDER
from slatewise.serve.settings import Settings
from slatewise.web.logs import write_logs
from slatewise.web.server import bind

_log = logging.getLogger("slatewise.serve")
_SOON, _MOST_DEATHS = 10.0, 5
"""So many workers that die within so many seconds of their start are a fault that no restart mends."""


def serve(settings: Settings, workers: int = 1, said: Callable[[str], None] = lambda address: None) -> int:
    """Serve models until a signal comes; return the exit code.

    Parameters
    ----------
    settings
        What to serve, and where; port 0 is one that is free.
    workers
        How many processes; they share the socket and the pages of the models.
    said
        Called with the address when all models answer, of all workers; not necessarily in this thread.
    """
    listening = bind(settings.host, settings.port)
    settings = replace(settings, port=listening.getsockname()[1]).check()
    write_logs()
    with own_folder() as (folder, lock):
        names = [file.name for file in settings.files()]
        _log.info("starting", extra={"fields": {"address": settings.address, "models": names}})
        spool, figures, warm = (folder / name for name in ("models", "figures", "warm"))
        for one in (spool, figures, warm):
            one.mkdir()
        settings = replace(settings, spool=str(spool), workers=workers, warm=str(warm))
        if workers > 1:
            return Supervisor(settings, listening, figures, lock, partial(said, settings.address)).run()
        from slatewise.serve.worker import run_worker

        run_worker(settings, listening, ready=partial(said, settings.address))
        return 0


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
    """The number of an open file that workers hold as long as they need the folder."""
    ready: Callable[[], None] = lambda: None
    """Called once, when all models of all workers answer."""
    workers: list[_Worker] = field(default_factory=list[_Worker])
    stopping: bool = False
    deaths: int = 0

    def run(self) -> int:
        """Run until a signal comes, or workers die faster than they can be replaced."""
        for one in (signal.SIGTERM, signal.SIGINT):
            signal.signal(one, self._stop)
        self.workers = [self._started(place, "now") for place in range(self.settings.workers)]
        crew = Crew(Path(self.settings.warm), self.settings.workers, 0)
        while not self.stopping:
            time.sleep(0.1)
            self._replace_dead()
            if not crew.complete and not crew.missing:
                self.ready()
        self.listening.close()  # workers close theirs when they have taken what waits
        for worker in self.workers:
            worker.process.terminate()
        until = time.monotonic() + self.settings.limits.seconds + 10
        for worker in self.workers:
            try:
                worker.process.wait(max(until - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                worker.process.kill()
        return 1 if self.deaths > _MOST_DEATHS else 0

    def _stop(self, *_: Any) -> None:
        self.stopping = True

    def _started(self, place: int, when: str) -> _Worker:
        number = self.listening.fileno()
        words = self.settings.written(), str(number), str(place), when
        command = [sys.executable, "-m", "slatewise.serve.worker", *words]
        environment = {**os.environ, SHARED_FOLDER: str(self.figures)}
        process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[number, self.lock], env=environment)
        _log.info("worker", extra={"fields": {"worker": process.pid}})
        return _Worker(process, time.monotonic())

    def _replace_dead(self) -> None:
        for place, worker in enumerate(self.workers):
            code = worker.process.poll()
            if code is None or self.stopping:
                continue
            lived = time.monotonic() - worker.began
            self.deaths = self.deaths + 1 if lived < _SOON else 0
            _log.error(
                "worker died", extra={"fields": {"worker": worker.process.pid, "code": code, "lived": round(lived, 1)}}
            )
            if self.deaths > _MOST_DEATHS:
                self.stopping = True
                return
            forget: Any = import_module("prometheus_client.multiprocess").mark_process_dead  # which has no types
            forget(worker.process.pid, str(self.figures))
            self.workers[place] = self._started(place, "wait")
