"""Threads over blocks with results in block order; or the workers of a cluster, which hold the blocks.

Two rules give the same bits at any number of threads: BLAS and LAPACK run on one thread inside fit, because
OpenBLAS sums in another order with two; and block boundaries depend on the data only, with partial results added in
one order: that of the blocks, or of a tree over them (:mod:`slatewise.core.running.block_sums`), which workers share.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Generic

from slatewise.core.arrays import read_lazy
from slatewise.core.rules import JOBS
from slatewise.core.running.block_sums import (
    Block,
    BlockSum,
    Cluster,
    Parameters,
    PlacedBlocks,
    Result,
    Shared,
    Subtree,
    Tree,
    require_of_module,
)


def thread_count(n_jobs: int | None = None) -> int:
    """Resolve ``n_jobs``, the number of threads.

    None: ``SLATEWISE_THREADS``, else 1 inside a worker of joblib, where the others use the other cores, else all cores
    of this process. A negative number counts back from all cores: -1 is all, -2 all but one.
    """
    JOBS.check("n_jobs", n_jobs)
    if n_jobs is not None:
        return int(n_jobs) if n_jobs > 0 else max(1, _cores() + 1 + int(n_jobs))
    text = os.environ.get("SLATEWISE_THREADS", "")
    if not text:
        parallel: Any = sys.modules.get("joblib.parallel")  # without joblib this is not one of its workers
        in_joblib = parallel is not None and parallel.get_active_backend()[0].nesting_level > 0
        return 1 if in_joblib and _ray_cpu_limit() is None else _cores()
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError(f"SLATEWISE_THREADS: expected a whole number of threads >= 1, found {text!r}")
    return int(text)


def _cores() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _ray_cpu_limit() or cores)


def _ray_cpu_limit() -> int | None:
    """Return the number of CPUs of a task or an actor of Ray, at least 1; None in any other process."""
    ray: Any = sys.modules.get("ray")  # without Ray this is not one of its workers
    if ray is None or not ray.is_initialized():
        return None
    try:
        given: dict[str, float] = ray.get_runtime_context().get_assigned_resources()
    except (AssertionError, AttributeError):  # this process is a driver, here or through the client
        return None
    return max(1, int(given.get("CPU", 0)))


_cluster: ContextVar[Cluster | None] = ContextVar("cluster", default=None)


@contextmanager
def on_cluster(cluster: Cluster) -> Generator[None]:
    """Place the blocks of every executor that :meth:`Executor.of` makes in this context on these workers."""
    token = _cluster.set(cluster)
    try:
        yield
    finally:
        _cluster.reset(token)


def refuse_on_cluster(what: str, instead: str) -> None:
    """Raise ValueError inside a cluster context: ``what`` trains on one machine."""
    if _cluster.get() is not None:
        raise ValueError(f"cluster: expected {instead}, found {what}, which trains on one machine")


@dataclass(frozen=True)
class Executor:
    """Runs work over blocks on threads of this process; made once per fit, by :meth:`of`.

    With a cluster, :meth:`place_blocks` gives the blocks to its workers, which add them up.
    """

    n_threads: int
    cluster: Cluster | None = None

    @classmethod
    def of(cls, n_jobs: int | None) -> Executor:
        """Resolve ``n_jobs``, see :func:`thread_count`, and use the cluster of the context."""
        return cls(thread_count(n_jobs), _cluster.get())

    @property
    def local(self) -> Executor:
        """The threads without the cluster, for small work."""
        return Executor(self.n_threads)

    def inside(self, n_blocks: int) -> Executor:
        """Return the executor of the work inside each of ``n_blocks`` blocks: all threads if there is one block."""
        return self.local if n_blocks == 1 else ONE_THREAD

    def place_blocks(self, blocks: Sequence[Block], shared: Shared) -> PlacedBlocks[Shared, Block]:
        """Place blocks where they are added up, round after round.

        Examples
        --------
        >>> from operator import add
        >>> Executor(2).place_blocks([3, 4, 5], shared=10).sum(BlockSum(begin=add, part=pow, add=add), -8)
        56
        """
        if self.cluster is not None:
            return self.cluster.place_blocks(blocks, shared)
        return _LocalBlocks(self, read_lazy(blocks), read_lazy(shared))

    def subtrees(
        self,
        what: BlockSum[Shared, Parameters, Any, Block, Result],
        shared: Shared,
        parameters: Parameters,
        blocks: Sequence[Block],
        first: int = 0,
    ) -> Tree[Result]:
        """Add up, in this process, a run of blocks that begins with block ``first`` of all."""
        point, tree = what.begin(shared, parameters), Tree(what.add)
        for number, part in enumerate(self.map_blocks(what.part, point, blocks), start=first):
            tree.push(Subtree(0, number, part))
        return tree

    def map_blocks(
        self,
        function: Callable[[Parameters, Block], Result],
        parameters: Parameters,
        blocks: Iterable[Block],
    ) -> Iterator[Result]:
        """Yield ``function(parameters, block)`` in block order.

        ``function`` belongs to a module, so that another process can import it by name; everything it needs beside the
        block is in ``parameters``. At most two blocks per thread are in flight, so memory stays bounded.

        Examples
        --------
        >>> list(Executor(2).map_blocks(pow, 2, [3, 4]))
        [8, 16]
        """
        require_of_module(function)
        return self._in_order(partial(function, parameters), blocks)

    def gather(
        self, function: Callable[[Parameters, Block], Result], parameters: Parameters, blocks: Sequence[Block]
    ) -> list[Result]:
        """Return the results of :meth:`map_blocks` for blocks that only name their data, which cluster workers read."""
        if self.cluster is None:
            return list(self.map_blocks(function, parameters, blocks))
        require_of_module(function)
        return self.cluster.gather(function, parameters, blocks)

    def sum_blocks(
        self,
        function: Callable[[Parameters, Block], Result],
        parameters: Parameters,
        blocks: Iterable[Block],
        add: Callable[[Result, Result], Result],
    ) -> Result:
        """Add up :meth:`map_blocks` in block order, so that the bits do not depend on the number of threads."""
        return reduce(add, self.map_blocks(function, parameters, blocks))

    def fill_blocks(self, fill: Callable[[Block], None], blocks: Iterable[Block]) -> None:
        """Call ``fill(block)``, which writes that block's part of arrays that all threads share."""
        for _ in self._in_order(fill, blocks):
            pass

    def _in_order(self, function: Callable[[Block], Result], blocks: Iterable[Block]) -> Iterator[Result]:
        threads = min(self.n_threads, len(blocks)) if isinstance(blocks, Sized) else self.n_threads
        if threads <= 1:
            yield from map(function, blocks)
            return
        pending: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            try:
                for block in blocks:
                    pending.append(pool.submit(function, block))
                    if len(pending) >= 2 * threads:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                for future in pending:
                    future.cancel()


@dataclass(frozen=True, eq=False)
class _LocalBlocks(Generic[Shared, Block]):
    """Blocks in this process."""

    executor: Executor
    blocks: Sequence[Block]
    shared: Shared

    def sum(self, what: BlockSum[Shared, Parameters, Any, Block, Result], parameters: Parameters) -> Result:
        """Add up all blocks at some parameters."""
        return self.executor.subtrees(what, self.shared, parameters, self.blocks).total()


ONE_THREAD = Executor(1)
