"""What Prometheus is told."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

if TYPE_CHECKING:
    from slatewise.serve.models import Version

SECONDS = (0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
QUERIES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_AT_THE_DOOR = {
    401: "token", 403: "page", 404: "path", 405: "method", 408: "body", 413: "body", 421: "host", 429: "token",
    500: "failed",
}  # fmt: skip
"""What is wrong with requests that no model has seen, by the status of the answer."""
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Where several workers count together; the supervisor sets it before they start."""
_FILES, _ROOM = ("counter", "histogram", "gauge_livemax", "gauge_livesum"), 1 << 20


class Measures:
    """The figures of a service; of several workers whoever is asked tells those of all."""

    def __init__(self) -> None:
        if SHARED_FOLDER in os.environ:
            _take_room(Path(os.environ[SHARED_FOLDER]))
        self.registry = CollectorRegistry()
        of: Any = {"registry": self.registry, "namespace": "slatewise"}
        self.seconds = Histogram(
            "request_seconds", "Time from a request to its answer.", ["model", "route"], buckets=SECONDS, **of
        )
        self.batch = Histogram(
            "batch_queries", "Queries that were answered together.", ["model", "route"], buckets=QUERIES, **of
        )
        self.answers = Counter("answers", "Answers by status.", ["model", "route", "status"], **of)
        self.errors = Counter("errors", "Refusals and failures by kind.", ["kind"], **of)
        self.swaps = Counter("swaps", "Model files that were taken or refused.", ["model", "result"], **of)
        self.version = Gauge(
            "model_info", "1 for the version that answers.", ["model", "estimator", "version"],
            multiprocess_mode="livemax", **of,
        )  # fmt: skip
        self.waiting = Gauge("waiting_requests", "In the queue.", ["model"], multiprocess_mode="livesum", **of)

    def refused_at_the_door(self, status: int) -> None:
        """Count an answer of the guard, or to a path that is not there; that a service is not ready is no error."""
        if status >= 400 and status != 503:
            self.errors.labels(_AT_THE_DOOR.get(status, "request")).inc()

    def answers_now(self, before: Version | None, now: Version) -> None:
        """Say which version of a model answers."""
        if before is not None:
            own = before.name, before.estimator, before.version
            self.version.labels(*own).set(0)
            if SHARED_FOLDER not in os.environ:  # files of several workers forget nothing
                self.version.remove(*own)
        self.version.labels(now.name, now.estimator, now.version).set(1)

    def text(self) -> bytes:
        """Return all of them in Prometheus' form."""
        if SHARED_FOLDER not in os.environ:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)


def _take_room(folder: Path) -> None:
    """Take the room of a worker's files now: they are mapped, and a disk that is full would kill it later (SIGBUS)."""
    if sys.platform != "linux":
        return
    for kind in _FILES:
        with open(folder / f"{kind}_{os.getpid()}.db", "ab") as file:
            os.posix_fallocate(file.fileno(), 0, _ROOM)
