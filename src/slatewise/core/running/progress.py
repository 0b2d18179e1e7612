"""Progress of long loops, for those who listen; and bars on a terminal or in a notebook.

    for fold in track(folds, "fold"):
        ...

A tracked loop prints nothing and costs nothing if nothing listens. The command line, and a fit that takes long and that
that shows on a terminal, listen with :class:`Bars`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Generator, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, Task, TaskID

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
        """Show the state of the work."""
        ...


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_all: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Generator[None]:
    """Report the loops of this thread to the listener."""
    token = _listener.set(listener)
    _all.append(listener)
    try:
        yield
    finally:
        _all.remove(listener)
        _listener.reset(token)


def anybody_listening() -> Listener | None:
    """Return the listener of this thread, else of another: the threads of a pool work for a thread that waits."""
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
    """Yield the items and report each; ``total`` is their number if they have no length."""
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
    """Report the state of the work; usable as a callback of any estimator."""
    listener = _listener.get()
    if listener is not None:
        listener.tell(str(report))


PATIENCE = 1.0
"""Seconds that work of the library may take before it shows a bar."""


@contextmanager
def progress_bars(what: str, patience: float = PATIENCE) -> Generator[None]:
    """Show the progress of the work inside if it takes longer than ``patience`` seconds and a terminal shows it.

    Nothing is shown into a pipe, in a worker, in a thread, inside other work that shows bars, or after
    ``slatewise.set_progress(False)``.
    """
    if anybody_listening() is not None or is_quiet() or not _is_seen():
        yield
        return
    bars = Bars(what)
    timer = threading.Timer(patience, bars.start)
    timer.daemon = True
    if patience > 0:
        timer.start()
    else:
        bars.start()
    try:
        with listening(bars):
            yield
    finally:
        timer.cancel()
        bars.stop()


def _is_seen() -> bool:
    if parent_process() is not None or threading.current_thread() is not threading.main_thread():
        return False
    try:
        return sys.stderr.isatty() or "ipykernel" in sys.modules
    except (AttributeError, ValueError):  # no stderr, or a closed one
        return False


class Bars:
    """A listener that draws a line for the work, and under it a bar for each loop."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.bars: Progress | None = None
        self._lock = threading.RLock()
        self._loops: dict[int, tuple[str, int | None, int]] = {0: (what, None, 0)}
        self._drawn: dict[int, TaskID] = {}
        self._count, self._ended = 0, False

    def begin(self, what: str, total: int | None) -> int:
        """Show a loop that starts; return its number."""
        with self._lock:
            self._count += 1
            self._loops[self._count] = what, total, 0
            self._draw(self._count)
            return self._count

    def advance(self, loop: int) -> None:
        """One round of the loop is done."""
        with self._lock:
            what, total, done = self._loops[loop]
            self._loops[loop] = what, total, done + 1
            if self.bars is not None:
                self.bars.advance(self._drawn[loop])

    def end(self, loop: int) -> None:
        """Take the loop away."""
        with self._lock:
            del self._loops[loop]
            if self.bars is not None:
                self.bars.remove_task(self._drawn.pop(loop))

    def tell(self, text: str) -> None:
        """Show the state of the work."""
        with self._lock:
            self._loops[0] = f"{self.what}: {text}", None, 0
            if self.bars is not None:
                self.bars.update(self._drawn[0], description=self._loops[0][0])

    def start(self) -> None:
        """Begin to draw."""
        with self._lock:
            if self._ended:
                return
            self.bars = _progress()
            for loop in self._loops:
                self._draw(loop)
            self.bars.start()

    def stop(self) -> None:
        """Take everything away."""
        with self._lock:
            self._ended = True
            if self.bars is not None:
                self.bars.stop()

    def _draw(self, loop: int) -> None:
        if self.bars is not None:
            what, total, done = self._loops[loop]
            self._drawn[loop] = self.bars.add_task(what, total=total, completed=done)


def _progress() -> Progress:
    """Return the display; on first use, because importing it takes a tenth of a second."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    class Counted(ProgressColumn):
        """A column of loops that count: "0/?" beside an empty bar says nothing that the spinner does not."""

        def __init__(self, column: ProgressColumn) -> None:
            super().__init__()
            self.column = column

        def render(self, task: Task) -> RenderableType:
            return "" if task.total is None and not task.completed else self.column(task)

    columns: tuple[Any, ...] = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        Counted(BarColumn(20)),
        Counted(MofNCompleteColumn()),
        TimeElapsedColumn(),
    )
    return Progress(*cast("Any", columns), console=Console(stderr=True), transient=True)
