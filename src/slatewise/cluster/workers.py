"""The driver's side: which worker holds which blocks, and one round of sums over all workers.

A run of blocks is put into Ray's object store once, where a worker finds it, even after a restart. A round sends the
parameters and receives a few sums from each worker: those of the whole subtrees of its run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice, pairwise
from threading import Event
from typing import Any, Generic, NamedTuple, NoReturn, cast
from uuid import uuid4
from weakref import finalize

from slatewise.cluster.worker import Answer
from slatewise.core.errors import ClusterError
from slatewise.core.running.block_sums import Block, BlockSum, Parameters, PlacedBlocks, Result, Shared, Tree

RETRIES = 3
"""How often a round is repeated with a worker that died."""
_TRAVELS = 1 << 16
"""Parameters of at most this number of bytes are sent to each worker: faster than through the object store."""
_AHEAD = 2
"""The number of blocks that each worker has in its queue, so that it does not wait for the next."""
_UNITS = 8
"""The number of parts of a worker's share, each a whole subtree: more parts mean more even shares and more sums to
send."""


def shares(n_blocks: int, n_workers: int) -> list[tuple[int, int]]:
    """Split blocks into runs of about the same length that begin and end with whole subtrees; none is empty.

    Examples
    --------
    >>> shares(100, 3)
    [(0, 32), (32, 68), (68, 100)]
    >>> shares(2, 3)
    [(0, 1), (1, 2)]
    """
    unit = 1 << max(n_blocks // (_UNITS * n_workers), 1).bit_length() - 1
    n_units = -(-n_blocks // unit)
    ends = [min(unit * round(n_units * worker / n_workers), n_blocks) for worker in range(n_workers + 1)]
    return [(first, last) for first, last in pairwise(ends) if first < last]


@dataclass(frozen=True, eq=False)
class Workers:
    """The workers of an open cluster."""

    actors: tuple[Any, ...]
    closed: Event = field(default_factory=Event, repr=False)
    """Set when the cluster is closed."""

    @property
    def n_workers(self) -> int:
        """The number of workers."""
        return len(self.actors)

    def require_open(self) -> None:
        """Raise ClusterError if the cluster was closed."""
        if self.closed.is_set():
            raise ClusterError("workers: expected those of an open cluster, found one that was closed")

    def place_blocks(self, blocks: Sequence[Block], shared: Shared) -> PlacedBlocks[Shared, Block]:
        """Put every worker's run of blocks, and the shared data, into the object store."""
        import ray

        common = ray.put(shared)
        runs = [
            _Run(actor, (first, ray.put(blocks[first:last]), common))
            for actor, (first, last) in zip(self.actors, shares(len(blocks), len(self.actors)), strict=False)
        ]
        return _BlocksOnWorkers(runs)

    def gather(
        self, function: Callable[[Parameters, Block], Result], parameters: Parameters, blocks: Sequence[Block]
    ) -> list[Result]:
        """Return ``function(parameters, block)`` of every block, in their order."""
        found = dict(self.each(function, parameters, blocks))
        return [found[number] for number in range(len(blocks))]

    def each(
        self, function: Callable[[Parameters, Block], Result], parameters: Parameters, blocks: Sequence[Block]
    ) -> Iterator[tuple[int, Result]]:
        """Yield the number and the result of each block when a free worker has finished it."""
        import ray

        sent, left, running = ray.put(parameters), iter(enumerate(blocks)), dict[Any, tuple[int, Any]]()

        def start_next(actor: Any) -> None:
            for number, block in islice(left, 1):
                running[actor.call.remote(function, sent, block)] = (number, actor)

        try:
            for actor in self.actors * _AHEAD:
                start_next(actor)
            while running:
                done, _ = ray.wait([*running], num_returns=1)
                number, actor = running.pop(done[0])
                start_next(actor)
                yield number, answers(done)[0]
        finally:
            _cancel([*running])


class _Run(NamedTuple):
    """The worker of a run, and references to it in the object store."""

    actor: Any
    refs: tuple[int, Any, Any]


class _BlocksOnWorkers(Generic[Shared, Block]):
    """Blocks that workers hold until this object is deleted."""

    def __init__(self, runs: Sequence[_Run]) -> None:
        self._runs, self._key, self._loaded = runs, uuid4().hex, False
        finalize(self, _forget, runs, self._key).atexit = False

    def sum(self, what: BlockSum[Shared, Parameters, Any, Block, Result], parameters: Parameters) -> Result:
        """Add up the sums of all workers in the order of the blocks."""
        sent, tree = _sent(parameters), Tree(what.add)
        found: list[Answer | None] = [None] * len(self._runs)
        if self._loaded:
            found = answers([run.actor.sum.remote(self._key, what, sent) for run in self._runs])
        missing = [
            at for at, answer in enumerate(found) if answer is None
        ]  # all at first, and later those of restarted workers
        calls = [self._runs[at].actor.sum.remote(self._key, what, sent, self._runs[at].refs) for at in missing]
        for at, answer in zip(missing, answers(calls), strict=True):
            found[at] = answer
        self._loaded = True
        for answer in cast("list[Answer]", found):
            for message, category in answer.warned:
                warnings.warn(message, category, stacklevel=2)
            for subtree in answer.subtrees:
                tree.push(subtree)
        return tree.total()


def _sent(parameters: Any) -> Any:
    """Put parameters into the object store, unless they are small enough to travel with the request."""
    import ray

    return parameters if _n_bytes(parameters) <= _TRAVELS else ray.put(parameters)


def _n_bytes(parameters: Any) -> int:
    if isinstance(parameters, tuple):
        return sum(map(_n_bytes, cast("tuple[Any, ...]", parameters)))
    return int(getattr(parameters, "nbytes", 0))


def _forget(runs: Sequence[_Run], key: str) -> None:
    import ray

    if ray.is_initialized():
        for run in runs:
            run.actor.forget.remote(key)


def answers(calls: Sequence[Any]) -> list[Any]:
    """Wait for the results of all calls; an exception of a worker is raised here."""
    import ray

    try:
        return ray.get([*calls])
    except ray.exceptions.RayError as error:
        _cancel(calls)
        _raise(error)


def _cancel(calls: Sequence[Any]) -> None:
    """Cancel calls and wait until they have ended: Ray would print exceptions that nobody fetches."""
    engine: Any = import_module("ray")
    if engine.is_initialized():
        for one in calls:
            engine.cancel(one)
        for one in calls:
            with suppress(engine.exceptions.RayError):
                engine.get(one)


def _raise(error: Exception) -> NoReturn:
    """Raise the exception of a worker, or ClusterError if the worker died."""
    from ray import exceptions

    if isinstance(error, exceptions.RayTaskError):
        cause = error.cause
        if isinstance(cause, MemoryError):
            raise ClusterError(f"cluster: a worker ran out of memory: {_ADVICE}") from error
        raise cause from None
    if isinstance(error, exceptions.OutOfMemoryError) or "low on memory" in str(error):
        raise ClusterError(f"cluster: a worker was killed because its machine ran out of memory: {_ADVICE}") from error
    if isinstance(error, exceptions.RayActorError):
        raise ClusterError(
            f"cluster: expected every worker to answer, found one that died in each of {RETRIES + 1} attempts at a "
            f"round: {_first_line(error)}"
        ) from error
    raise ClusterError(f"cluster: expected every worker to answer, found {_first_line(error)}") from error


_ADVICE = "use more machines, or fewer workers on each"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
