"""What a benchmark returns, and how a time is taken."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TypeVar

Input = TypeVar("Input")


@dataclass(frozen=True)
class Row:
    """One line of a benchmark: a figure of ours, the peer's beside it, and the bar the ratio has to clear."""

    what: str
    ours: float
    peer: str | None = None
    theirs: float | None = None
    unit: str = "s"
    bar: str = ""
    """What the issue or the docs promise, in words, e.g. ``"ratio >= 5"``; empty where nothing is promised."""

    @property
    def ratio(self) -> float | None:
        """How many times the peer's figure is ours: for seconds, larger is better for us."""
        return None if self.theirs is None else self.theirs / self.ours


@dataclass(frozen=True)
class Table:
    """A benchmark's rows, the peers that were not installed, and remarks a reader needs."""

    name: str
    rows: list[Row]
    left_out: list[str] = field(default_factory=list[str])
    remarks: list[str] = field(default_factory=list[str])


def installed(module: str) -> bool:
    """Say whether a peer can be imported, without importing it."""
    return find_spec(module) is not None


def best_seconds(function: Callable[[Input], object], inputs: Iterable[Input]) -> float:
    """Return the shortest time over *fresh* inputs: repeating one instance flatters caches and branch predictors."""
    best = float("inf")
    for value in inputs:
        start = time.perf_counter()
        function(value)
        best = min(best, time.perf_counter() - start)
    return best
