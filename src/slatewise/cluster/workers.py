"""The driver's side: who holds which blocks, and one round of asking all of them.

A run of blocks is put into Ray's object store once, where a worker finds it, also after it was restarted. A round sends
the parameters and receives a few sums from each worker: those of the whole subtrees of its run.
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
"""How often a round is repeated with a worker that died in it."""
_TRAVELS = 1 << 16
"""Bytes of parameters that are sent to each worker by themselves: faster than a place where all of them look."""
_AHEAD = 2
"""How many blocks each worker is told of ahead, so that it need not wait for the next."""
_UNITS = 8
"""Into so many equal parts a worker's share is cut, each a whole subtree: sums that travel, against an even share."""


def shares(n_blocks: int, n_workers: int) -> list[tuple[int, int]]:
    """Deal blocks out in runs of about the same length that begin and end with whole subtrees; none is empty.

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
        """How many there are."""
        return len(self.actors)

    def require_open(self) -> None:
        """Raise ClusterError where the cluster was closed."""
        if self.closed.is_set():
            raise ClusterError("workers: expected those of an open cluster, found one that was closed")

    def place_blocks(self, blocks: Sequence[Block], shared: Shared) -> PlacedBlocks[Shared, Block]:
        """Put every worker's run of blocks, and what all share, where the workers find them."""
        import ray

        common = ray.put(shared)
        runs = [
            _Run(actor, (first, ray.put(blocks[first:last]), common))
            for actor, (first, last) in zip(self.actors, shares(len(blocks), len(self.actors)), strict=False)
        ]
        return _HeldThere(runs)

    def gather(
        self, function: Callable[[Parameters, Block], Result], parameters: Parameters, blocks: Sequence[Block]
    ) -> list[Result]:
        """Return ``function(parameters, block)`` of every block, in their order."""
        found = dict(self.each(function, parameters, blocks))
        return [found[number] for number in range(len(blocks))]

    def each(
        self, function: Callable[[Parameters, Block], Result], parameters: Parameters, blocks: Sequence[Block]
    ) -> Iterator[tuple[int, Result]]:
        """Yield the number of a block and what the function returns of it, as they are done by whoever is free."""
        import ray

        sent, left, asked = ray.put(parameters), iter(enumerate(blocks)), dict[Any, tuple[int, Any]]()

        def ask(actor: Any) -> None:
            for number, block in islice(left, 1):
                asked[actor.call.remote(function, sent, block)] = (number, actor)

        try:
            for actor in self.actors * _AHEAD:
                ask(actor)
            while asked:
                done, _ = ray.wait([*asked], num_returns=1)
                number, actor = asked.pop(done[0])
                ask(actor)
                yield number, answers(done)[0]
        finally:
            _called_off([*asked])


class _Run(NamedTuple):
    """Who holds a run, and where it is found."""

    actor: Any
    refs: tuple[int, Any, Any]


class _HeldThere(Generic[Shared, Block]):
    """Blocks that workers hold, until nobody asks for them any more."""

    def __init__(self, runs: Sequence[_Run]) -> None:
        self._runs, self._key, self._loaded = runs, uuid4().hex, False
        finalize(self, _forget, runs, self._key).atexit = False

    def sum(self, what: BlockSum[Shared, Parameters, Any, Block, Result], parameters: Parameters) -> Result:
        """Ask all workers, and add up what they return in the order of the blocks."""
        sent, tree = _sent(parameters), Tree(what.add)
        found: list[Answer | None] = [None] * len(self._runs)
        if self._loaded:
            found = answers([run.actor.sum.remote(self._key, what, sent) for run in self._runs])
        missing = [at for at, answer in enumerate(found) if answer is None]  # all at first, and who was restarted
        asked = [self._runs[at].actor.sum.remote(self._key, what, sent, self._runs[at].refs) for at in missing]
        for at, answer in zip(missing, answers(asked), strict=True):
            found[at] = answer
        self._loaded = True
        for answer in cast("list[Answer]", found):
            for message, category in answer.warned:
                warnings.warn(message, category, stacklevel=2)
            for subtree in answer.subtrees:
                tree.push(subtree)
        return tree.total()


def _sent(parameters: Any) -> Any:
    """Put parameters where all workers read them, unless they are so few that they travel with the question."""
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


def answers(asked: Sequence[Any]) -> list[Any]:
    """Wait for all workers; what one of them raised is raised here."""
    import ray

    try:
        return ray.get([*asked])
    except ray.exceptions.RayError as error:
        _called_off(asked)
        _told(error)


def _called_off(asked: Sequence[Any]) -> None:
    """Wait until nobody works on these any more, as nobody will look: Ray would print what is raised by then."""
    engine: Any = import_module("ray")
    if engine.is_initialized():
        for one in asked:
            engine.cancel(one)  # does not begin, where it has not yet
        for one in asked:
            with suppress(engine.exceptions.RayError):
                engine.get(one)


def _told(error: Exception) -> NoReturn:
    """Raise what a worker raised, or say what became of the worker."""
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
