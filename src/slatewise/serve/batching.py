"""Requests that can be answered together are answered in one batch, and no request waits for others.

While a thread is free, a request is answered at once. While all are busy, requests queue up, and the next free thread
takes the oldest together with all that have its key, up to ``limits.batch`` queries. So batching adds no waiting time,
and batches grow with the load. A full queue refuses requests (429).

A batch that fails is halved until the wrong request is alone, and a batch with warnings of the library is answered
request by request: errors and warnings reach only the request that caused them.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from slatewise.serve.endpoints.base import CheckedRequest, Endpoint
from slatewise.serve.settings import Limits
from slatewise.web.codec import RequestError

Outcome: TypeAlias = "bytes | Exception"
Write: TypeAlias = "Callable[[list[Any], tuple[str, ...]], bytes]"
"""Makes the body of an answer from its parts and warnings; called in the thread that computed them."""
_MEMORY = 0.9
"""The weight of earlier requests in the mean time of a request."""
_COUNTED = ("queries:", "exclude:", "candidates:", "items:")
"""Starts of warnings of unknown ids: endpoints count these for each request, the library for a whole batch."""
_log = logging.getLogger("slatewise.serve")
_local = threading.local()


class QueueFull(RequestError):
    """No room for another waiting request."""

    def __init__(self, seconds: int) -> None:
        message = f"expected room for one more request, found none: try again in {seconds} s"
        super().__init__("queue", message, 429, retry_after=seconds)


@dataclass(frozen=True, eq=False)
class Waiting:
    """A request in the queue."""

    endpoint: Endpoint
    checked: CheckedRequest
    write: Write
    future: asyncio.Future[bytes]


@dataclass(eq=False)
class Batcher:
    """The queue of one model."""

    pool: ThreadPoolExecutor
    limits: Limits
    on_batch: Callable[[str, int], None] = lambda name, n_queries: None
    """Called with the endpoint and the number of queries of every batch."""
    waiting: deque[Waiting] = field(default_factory=deque[Waiting])
    running: int = 0
    seconds: float = 0.0
    """Mean time of a request in a thread."""

    async def answer(self, endpoint: Endpoint, checked: CheckedRequest, write: Write) -> bytes:
        """Return the body of the answer; a cancelled request (``asyncio.timeout``) leaves the queue."""
        if len(self.waiting) >= self.limits.waiting:
            raise QueueFull(max(1, math.ceil(self.seconds * len(self.waiting))))
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.waiting.append(Waiting(endpoint, checked, write, future))
        self._start()
        return await future

    def _start(self) -> None:
        """Give the oldest waiting requests to free threads."""
        while self.running < self.limits.at_once:
            batch = self._next_batch()
            if not batch:
                return
            self.running += 1
            self.on_batch(batch[0].endpoint.name, sum(one.checked.size for one in batch))
            work = asyncio.get_running_loop().run_in_executor(self.pool, _answers, batch)
            work.add_done_callback(partial(self._finish, batch, time.monotonic()))

    def _next_batch(self) -> list[Waiting]:
        """Take the oldest request and those that can be answered with it, without cancelled ones."""
        while self.waiting and self.waiting[0].future.done():
            self.waiting.popleft()
        if not self.waiting:
            return []
        first = self.waiting.popleft()
        if first.checked.key is None or not self.waiting:
            return [first]
        batch, room, rest = [first], self.limits.batch - first.checked.size, deque[Waiting]()
        for one in self.waiting:
            if one.future.done():
                continue
            same = one.endpoint is first.endpoint and one.checked.key == first.checked.key
            if same and one.checked.size <= room:
                batch.append(one)
                room -= one.checked.size
            else:
                rest.append(one)
        self.waiting = rest
        return batch

    def _finish(self, batch: list[Waiting], began: float, done: asyncio.Future[list[Outcome]]) -> None:
        self.running -= 1
        each = (time.monotonic() - began) / len(batch)
        self.seconds = each if not self.seconds else _MEMORY * self.seconds + (1 - _MEMORY) * each
        outcomes = [RuntimeError("stopped")] * len(batch) if done.cancelled() else done.result()
        for one, outcome in zip(batch, outcomes, strict=True):
            if one.future.done():  # cancelled
                continue
            if isinstance(outcome, bytes):
                one.future.set_result(outcome)
            else:
                one.future.set_exception(outcome)
        self._start()


def _answers(batch: Sequence[Waiting]) -> list[Outcome]:
    """Answer a batch, in a thread; errors and warnings go to the request that caused them."""
    try:
        with collect_warnings() as found:
            parts = batch[0].endpoint.respond([one.checked for one in batch])
        if found and len(batch) > 1:  # the library does not say which request it warns of
            return [_answers([one])[0] for one in batch]
        return [_body(one, own, tuple(found)) for one, own in zip(batch, parts, strict=True)]
    except Exception as error:
        if len(batch) == 1:
            return [error]
    half = len(batch) // 2
    return _answers(batch[:half]) + _answers(batch[half:])


def _body(one: Waiting, parts: list[Any], found: tuple[str, ...]) -> Outcome:
    try:
        return one.write(parts, one.checked.warnings + found)
    except Exception as error:
        return error


def install_warning_hook() -> None:
    """Send all warnings of the process to ``collect_warnings`` of the thread that caused them, else to the log.

    ``warnings.catch_warnings`` changes the whole process and does not work with threads.
    """
    warnings.simplefilter("always")
    warnings.simplefilter("ignore", ResourceWarning)  # of files that the end of the process closes
    warnings.showwarning = _keep_warning


def _keep_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    text = " ".join(str(message).split())
    found: list[str] | None = getattr(_local, "warnings", None)
    if found is None:
        _log.warning("warning", extra={"fields": {"text": text}})
    elif not text.startswith(_COUNTED) and text not in found:
        found.append(text)


@contextmanager
def collect_warnings() -> Generator[list[str]]:
    """Yield a list to which the warnings of this thread are added."""
    found: list[str] = []
    _local.warnings = found
    try:
        yield found
    finally:
        _local.warnings = None
