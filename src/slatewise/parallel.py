"""Threads over blocks, one BLAS thread inside, results in block order.

Two rules give the same bits at any number of threads: BLAS and LAPACK run on one thread inside fit, because
OpenBLAS sums in another order with two; and block boundaries depend on the data only, with partial results added in
block order.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache, reduce
from importlib import import_module
from typing import TypeVar

from threadpoolctl import ThreadpoolController

from slatewise.rules import THREADS

Block = TypeVar("Block")
Result = TypeVar("Result")


def thread_count(n_threads: int | None = None) -> int:
    """Resolve a number of threads: the argument, else ``SLATEWISE_THREADS``, else, as with -1, all cores."""
    THREADS.check("n_threads", n_threads)
    if n_threads is None:
        text = os.environ.get("SLATEWISE_THREADS", "")
        if not text:
            return _cores()
        if not text.isascii() or not text.isdigit():
            raise ValueError(f"SLATEWISE_THREADS: expected a whole number of threads >= 1, found {text!r}")
        n_threads = int(text)
        if n_threads < 1:
            raise ValueError(f"SLATEWISE_THREADS: expected a whole number of threads >= 1, found {n_threads}")
    return _cores() if n_threads == -1 else int(n_threads)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _controller() -> ThreadpoolController:
    # The controller sees the libraries loaded so far, so load both BLAS users before it looks.
    import_module("numpy.linalg")
    import_module("scipy.linalg")

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which BLAS and LAPACK use one thread (9 us: the controller is made once and reused)."""
    return _controller().limit(limits=1, user_api="blas")


def map_blocks(
    function: Callable[[Block], Result], blocks: Iterable[Block], n_threads: int | None = None
) -> Iterator[Result]:
    """Yield ``function(block)`` in block order; at most two blocks a thread are in flight, so memory stays bounded.

    Examples
    --------
    >>> list(map_blocks(sum, [(1, 2), (3, 4)], n_threads=2))
    [3, 7]
    """
    threads = thread_count(n_threads)
    if threads == 1:
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


def sum_blocks(
    function: Callable[[Block], Result],
    blocks: Iterable[Block],
    add: Callable[[Result, Result], Result],
    n_threads: int | None = None,
) -> Result:
    """Add up ``function(block)`` in block order, so the bits do not depend on the number of threads."""
    return reduce(add, map_blocks(function, blocks, n_threads))
