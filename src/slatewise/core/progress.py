"""Long loops say how far they are, and whoever wants to see it listens.

    for fold in track(folds, "fold"):
        ...

Nothing is printed here: with nobody listening a tracked loop is the loop itself. The command line listens where a
person looks on.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")


class Listener(Protocol):
    """Shows loops, the innermost last."""

    def begin(self, what: str, total: int | None) -> int:
        """Show a loop that starts; return its number."""
        ...

    def advance(self, loop: int) -> None:
        """One round of the loop is done."""
        ...

    def end(self, loop: int) -> None:
        """Take the loop away."""
        ...

    def tell(self, text: str) -> None:
        """Show what the work is at."""
        ...


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_all: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Generator[None]:
    """Have the loops of this thread tell the listener."""
    token = _listener.set(listener)
    _all.append(listener)
    try:
        yield
    finally:
        _all.remove(listener)
        _listener.reset(token)


def anybody_listening() -> Listener | None:
    """Return who listens to this thread, else to another: the threads of a pool work for whoever waits for them."""
    return _listener.get() or (_all[-1] if _all else None)


def set_progress(on: bool) -> None:
    """Switch bars and other notes on progress on or off, for this process.

    They are on by default, unless the environment has ``SLATEWISE_QUIET=1``.

    Parameters
    ----------
    on
        Whether to show them.
    """
    global _is_on
    _is_on = bool(on)


_is_on = True


def is_quiet() -> bool:
    """Tell whether progress is switched off, here or by ``SLATEWISE_QUIET=1``."""
    return not _is_on or os.environ.get("SLATEWISE_QUIET", "") not in ("", "0")


def track(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Go through the items, and say so; ``total`` is taken from the items where they know it."""
    listener = _listener.get()
    if listener is None:
        yield from items
        return
    loop = listener.begin(what, len(items) if isinstance(items, Sized) else total)
    try:
        for item in items:
            yield item
            listener.advance(loop)
    finally:
        listener.end(loop)


def tell(report: object) -> None:
    """Say what the work is at; usable as a callback of any estimator."""
    listener = _listener.get()
    if listener is not None:
        listener.tell(str(report))
