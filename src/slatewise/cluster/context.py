"""``with slatewise.cluster.ray(...)``: reach a Ray cluster, or start one here, and give it the sums of fits inside."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import Any
from urllib.parse import urlsplit

from slatewise.cluster.worker import About, Worker, about
from slatewise.cluster.workers import RETRIES, Workers
from slatewise.core.checks import whole_number
from slatewise.core.errors import ClusterError
from slatewise.core.running.executor import on_cluster, thread_count

_SECONDS = 180.0
"""Seconds within which all workers must have started."""
_REACHED = 5.0
"""Seconds within which an address must answer."""


@contextmanager
def ray(address: str | None = None, workers: int | None = None) -> Generator[Workers]:
    """Open a cluster: all fits inside sum their objective over its workers, with the bits they have on one thread.

    Parameters
    ----------
    address
        None: workers on this machine, or those of ``ray.init`` where it was called before. "auto": the cluster that
        this machine is a node of (``ray start``). ``"ray://host:port"``: a cluster elsewhere.
    workers
        The number of processes, of one CPU each; default: one for each free CPU.

    Yields
    ------
    Workers
        With their number, ``n_workers``.

    Notes
    -----
    Learners that take part: :class:`~slatewise.CStarRanker`, :class:`~slatewise.CStarMarginRanker` with
    ``solver="bundle"``, :class:`~slatewise.MetricRanker`, :class:`~slatewise.MarginRanker`,
    :class:`~slatewise.MatchingRanker` and :class:`~slatewise.GraphMatcher`; others warn that they do not. Callbacks
    and checkpoints stay in this process. A worker that is killed is restarted by Ray, loads its data again, and the
    round is repeated.

    Examples
    --------
    ::

        with slatewise.cluster.ray(workers=4):
            ranker = slatewise.MarginRanker("map").fit(X, y, qid=qid)
    """
    if workers is not None:
        workers = whole_number("workers", workers, 1)
    engine, ours = _engine(), False
    if not engine.is_initialized():
        _connect(engine, address, workers)
        ours = True
    elif address is not None:
        raise ClusterError(f"address: expected None where Ray was started before, found {address!r}")
    actors: list[Any] = []
    closed = Event()
    try:
        actors += _started(engine, workers)
        with on_cluster(opened := Workers(tuple(actors), closed)):
            yield opened
    finally:
        closed.set()
        if ours:
            engine.shutdown()
        elif engine.is_initialized():
            for actor in actors:
                actor.__ray_terminate__.remote()  # after its earlier tasks


def _engine() -> Any:
    try:
        import ray as engine
    except ImportError as error:
        raise ImportError("a cluster needs Ray: pip install 'slatewise[ray]'") from error
    return engine


def _connect(engine: Any, address: str | None, workers: int | None) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report the start of a cluster to its makers
    quiet: dict[str, Any] = {"logging_level": "error", "log_to_driver": False}
    if address is None:
        n_workers = thread_count(None) if workers is None else workers
        engine.init("local", num_cpus=n_workers, include_dashboard=False, **quiet)
        return
    if address != "auto":
        _require_reachable(address)
    try:
        engine.init(address, **quiet)
    except Exception as error:  # each release of Ray raises other exceptions
        engine.shutdown()  # its remains would block another attempt
        found = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ClusterError(
            f"address: expected a running Ray cluster at {address!r} that takes our token, found none: {found}"
        ) from error


def _require_reachable(address: str) -> None:
    """Raise ClusterError if nothing answers at an address: Ray itself would try for a minute."""
    where = urlsplit(address if "://" in address else f"//{address}")
    try:
        port = where.port or (10001 if where.scheme == "ray" else 6379)
        with socket.create_connection((where.hostname or "", port), timeout=_REACHED):
            return
    except (OSError, ValueError) as error:
        raise ClusterError(f"address: expected a running Ray cluster at {address!r}, found none: {error}") from error


def _started(engine: Any, workers: int | None) -> Sequence[Any]:
    """Start workers, and check that their versions are those of this process."""
    free = int(engine.available_resources().get("CPU", 0))
    n_workers = max(free, 1) if workers is None else workers
    if n_workers > free:
        raise ClusterError(f"workers: expected at most the {free} free CPUs of the cluster, found {n_workers}")
    make = engine.remote(num_cpus=1, max_restarts=-1, max_task_retries=RETRIES, scheduling_strategy="SPREAD")(Worker)
    actors = [make.remote() for _ in range(n_workers)]
    calls = [actor.about.remote() for actor in actors]
    there, missing = engine.wait(calls, num_returns=len(calls), timeout=_SECONDS)
    if missing:
        raise ClusterError(
            f"workers: expected {n_workers} within {_SECONDS:g} seconds, found {len(there)}: is the cluster busy?"
        )
    try:
        found: list[About] = engine.get(calls)
    except engine.exceptions.RayError as error:
        raise ClusterError(
            "workers: expected slatewise on every machine of the cluster, found an error where a worker began: "
            + str(error).strip().splitlines()[-1]
        ) from error
    _require_alike(found)
    return actors


def _require_alike(workers: Sequence[About]) -> None:
    """Raise ClusterError if versions differ, and warn if processors do, because the bits may differ then."""
    here = about()
    for there in workers:
        for name, version in here.versions.items():
            if there.versions.get(name) != version:
                raise ClusterError(
                    f"workers: expected {name} {version} on every machine, as here, found "
                    f"{there.versions.get(name)} on {there.node}"
                )
    cpus = sorted({one.cpu for one in workers})
    if len(cpus) > 1:
        warnings.warn(
            f"workers run on processors of {len(cpus)} kinds ({', '.join(cpus)}): fits may differ in their last bits",
            UserWarning,
            stacklevel=5,
        )
