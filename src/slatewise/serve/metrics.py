"""The figures of a service for Prometheus; with several workers, any of them reports those of all."""

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
_ERRORS_BEFORE_MODELS = {
    401: "token", 403: "page", 404: "path", 405: "method", 408: "body", 413: "body", 421: "host", 429: "token",
    500: "failed",
}  # fmt: skip
"""Kinds of errors of requests that reached no model, by the status of the answer."""
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable with the folder where several workers count; the supervisor sets it before they start."""
_FILES, _FILE_BYTES = ("counter", "histogram", "gauge_livemax", "gauge_livesum"), 1 << 20


class Metrics:
    """The figures of a service."""

    def __init__(self) -> None:
        if SHARED_FOLDER in os.environ and sys.platform == "linux":
            # Allocate the files of this worker now: they are mapped, and a full disk would kill it later (SIGBUS).
            for kind in _FILES:
                with open(Path(os.environ[SHARED_FOLDER]) / f"{kind}_{os.getpid()}.db", "ab") as file:
                    os.posix_fallocate(file.fileno(), 0, _FILE_BYTES)
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

    def count_error(self, status: int) -> None:
        """Count an answer of the guard or to an unknown path; 503 (not ready) is not an error."""
        if status >= 400 and status != 503:
            self.errors.labels(_ERRORS_BEFORE_MODELS.get(status, "request")).inc()

    def show_version(self, before: Version | None, now: Version) -> None:
        """Show the version of a model that answers from now on."""
        if before is not None:
            own = before.name, before.estimator, before.version
            self.version.labels(*own).set(0)
            if SHARED_FOLDER not in os.environ:  # the files of several workers cannot remove a figure
                self.version.remove(*own)
        self.version.labels(now.name, now.estimator, now.version).set(1)

    def text(self) -> bytes:
        """Return all figures in the format of Prometheus."""
        if SHARED_FOLDER not in os.environ:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)
