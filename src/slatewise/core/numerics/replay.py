"""A log of the calls of an oracle and their results, from which a fit is replayed: the checkpoint of any learner.

A learner is a function of what its oracle returns. Given the same results it makes the same calls and ends at the same
bits, whatever it remembers in between, and so does a validation that runs many fits one after the other. The state of
all of them is the log so far, each result with a digest of its call. If a call differs from the logged one (after
another release of a solver), the rest of the log is dropped and computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats

Oracle: TypeAlias = Callable[[Floats], tuple[float, Floats]]
"""What a learner calls: a value and a vector at given parameters."""
Arrays: TypeAlias = Mapping[str, NDArray[Any]]
_SHARE = 16  # up to one result in 16 may be lost: writing all results after each would take quadratic time


class OracleLog:
    """The calls of a fit in their order, with their results; those of an earlier run first."""

    def __init__(self, earlier: Arrays | None, write: Callable[[Arrays], None]) -> None:
        self._write = write
        self._calls: list[int] = []
        self._results: list[Floats] = []
        if earlier is not None:
            self._calls = earlier["calls"].tolist()
            self._results = np.split(earlier["results"], np.cumsum(earlier["sizes"])[:-1])
        self._next, self._written = 0, len(self._calls)

    @property
    def replaying(self) -> bool:
        """Whether the next result is in the log."""
        return self._next < len(self._calls)

    def call(self, oracle: Oracle, w: Floats) -> tuple[float, Floats]:
        """Return the result of the same call in an earlier run, or call the oracle."""
        digest = int.from_bytes(blake2b(w.tobytes(), digest_size=8).digest(), "little", signed=True)
        if self.replaying and self._calls[self._next] != digest:
            del self._calls[self._next :], self._results[self._next :]
            self._written = self._next
        if not self.replaying:
            value, vector = oracle(w)
            self._calls.append(digest)
            self._results.append(np.append(vector, value))
            if (len(self._calls) - self._written) * _SHARE > self._written:
                self._write(self._arrays())
                self._written = len(self._calls)
        result = self._results[self._next]
        self._next += 1
        return float(result[-1]), result[:-1].copy()

    def _arrays(self) -> Arrays:
        return {
            "calls": np.array(self._calls, dtype=np.int64),
            "sizes": np.array([len(result) for result in self._results], dtype=np.int64),
            "results": np.concatenate(self._results),
        }


_current: ContextVar[OracleLog | None] = ContextVar("oracle log", default=None)


@contextmanager
def replay_context(log: OracleLog | None) -> Generator[None]:
    """Send the calls of every :func:`replayed` oracle through this log; None: call it each time."""
    token = _current.set(log)
    try:
        yield
    finally:
        _current.reset(token)


def replayed(oracle: Oracle) -> Oracle:
    """Return an oracle with the same results, which inside a :func:`replay_context` are kept in its log."""
    log = _current.get()
    return oracle if log is None else partial(log.call, oracle)
