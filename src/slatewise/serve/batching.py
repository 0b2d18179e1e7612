"""Questions that can be answered together are, and nobody waits for company.

While a thread is free, a request is answered at once. While all are busy, requests queue up, and the next free thread
takes the oldest together with all that have its key, up to ``limits.batch`` queries. So a batch never waits: the bound
on the time that batching adds is 0, and batches grow with the load. A queue that is full refuses (429).

A batch that fails is halved until the request that is wrong is alone, and one that the library warns of is answered
request by request: others never hear of it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from slatewise.serve.door import Asked, Door
from slatewise.serve.hearing import listening
from slatewise.serve.limits import Limits

Written: TypeAlias = "bytes | Exception"
_MEMORY = 0.9
"""How much of the mean time of a request is that of the ones before."""


class QueueFull(Exception):
    """No room to wait; come back after so many seconds."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"expected room for one more request, found none: try again in {seconds} s")
        self.seconds = seconds


@dataclass(frozen=True, eq=False)
class Waiting:
    """A request in the queue."""

    door: Door
    asked: Asked
    write: Callable[[list[Any], tuple[str, ...]], bytes]
    """Makes the body of the answer from its parts and warnings; called in the thread that computed them."""
    future: asyncio.Future[bytes]
    since: float


@dataclass(eq=False)
class Batcher:
    """The queue of one model."""

    pool: ThreadPoolExecutor
    limits: Limits
    told: Callable[[str, int, int], None] = lambda door, n_requests, n_queries: None
    """Hears of every batch."""
    waiting: deque[Waiting] = field(default_factory=deque[Waiting])
    running: int = 0
    seconds: float = 0.0
    """Mean time of a request in a thread."""

    async def answer(self, door: Door, asked: Asked, write: Callable[[list[Any], tuple[str, ...]], bytes]) -> bytes:
        """Return the body of the answer; who stops waiting (``asyncio.timeout``) leaves the queue."""
        if len(self.waiting) >= self.limits.waiting:
            raise QueueFull(max(1, math.ceil(self.seconds * len(self.waiting))))
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.waiting.append(Waiting(door, asked, write, future, time.monotonic()))
        self._start()
        return await future

    def _start(self) -> None:
        """Give free threads what waits."""
        while self.running < self.limits.at_once:
            batch = self._next_batch()
            if not batch:
                return
            self.running += 1
            self.told(batch[0].door.name, len(batch), sum(one.asked.size for one in batch))
            work = asyncio.get_running_loop().run_in_executor(self.pool, _answers, batch)
            work.add_done_callback(partial(self._ended, batch, time.monotonic()))

    def _next_batch(self) -> list[Waiting]:
        """Take the oldest request and those that can be answered with it; who gave up is left out."""
        while self.waiting and self.waiting[0].future.done():
            self.waiting.popleft()
        if not self.waiting:
            return []
        first = self.waiting.popleft()
        if first.asked.key is None or not self.waiting:
            return [first]
        batch, room, rest = [first], self.limits.batch - first.asked.size, deque[Waiting]()
        for one in self.waiting:
            if one.future.done():
                continue
            same = one.door is first.door and one.asked.key == first.asked.key
            if same and one.asked.size <= room:
                batch.append(one)
                room -= one.asked.size
            else:
                rest.append(one)
        self.waiting = rest
        return batch

    def _ended(self, batch: list[Waiting], began: float, done: asyncio.Future[list[Written]]) -> None:
        self.running -= 1
        each = (time.monotonic() - began) / len(batch)
        self.seconds = each if not self.seconds else _MEMORY * self.seconds + (1 - _MEMORY) * each
        written = [RuntimeError("stopped")] * len(batch) if done.cancelled() else done.result()
        for one, outcome in zip(batch, written, strict=True):
            if one.future.done():  # who asked gave up
                continue
            if isinstance(outcome, bytes):
                one.future.set_result(outcome)
            else:
                one.future.set_exception(outcome)
        self._start()


def _answers(batch: Sequence[Waiting]) -> list[Written]:
    """Answer a batch, in a thread; what is wrong with a request, or warned of, is in its own answer only."""
    try:
        with listening() as heard:
            parts = batch[0].door.respond([one.asked for one in batch])
        if heard and len(batch) > 1:  # of whom it is said, only asking each alone tells
            return [_answers([one])[0] for one in batch]
        return [_written(one, own, tuple(heard)) for one, own in zip(batch, parts, strict=True)]
    except Exception as error:
        if len(batch) == 1:
            return [error]
    half = len(batch) // 2
    return _answers(batch[:half]) + _answers(batch[half:])


def _written(one: Waiting, parts: list[Any], heard: tuple[str, ...]) -> Written:
    try:
        return one.write(parts, one.asked.warnings + heard)
    except Exception as error:
        return error
