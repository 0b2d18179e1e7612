"""The two decorators of compiled functions, and the notice that they compile.

``kernel`` is for all of them, ``kernel_fastmath`` for sums that may be added in any order. The first call of each takes
seconds, and the notice explains the wait.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from multiprocessing import parent_process
from threading import Timer
from time import monotonic
from typing import Any, ParamSpec, TypeVar

from numba import njit

from slatewise.core.running.progress import Listener, anybody_listening, is_quiet

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile on first call, release the GIL, keep the machine code on disk if a folder is writable."""
    return _compiled(function)


def kernel_fastmath(function: Callable[P, R]) -> Callable[P, R]:
    """Compile as ``kernel`` does, and let sums be added in any order: the compiler then adds eight numbers at a time.

    The bits still depend on the machine's instructions only, never on threads. But of a loop that also writes, the
    compiler may make two and take one by where the arrays lie: sum in a loop of its own, or let
    ``tests/core/running/test_kernel_fastmath.py`` look at it.
    """
    return _compiled(function, fastmath={"reassoc", "nsz"})


def _compiled(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    try:
        compiled = njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:  # read-only install without a cache folder: compile in every process instead
        return njit(nogil=True, **options)(function)
    cache: Any = getattr(compiled, "_cache", None)  # none where the environment turns compilation off
    if cache is not None:
        cache.load_overload = _without_stale(cache.load_overload, cache.flush)
    return compiled


def _without_stale(load: Callable[..., Any], flush: Callable[[], None]) -> Callable[..., Any]:
    """Compile anew what an older version left on disk and this one cannot read, instead of failing.

    An index names the types of arguments. If one of them was renamed or moved since, Numba fails to load it.
    """

    def load_overload(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except (AttributeError, ImportError):
            flush()
            return None

    return load_overload


_event: Any = import_module("numba.core.event")  # its types are too loose to check


class CompileNotice(_event.Listener):
    """Listens to every compilation in this process; Numba runs one at a time, and calls of kernels cost nothing.

    Listeners of :mod:`slatewise.progress` learn of it at once. Without one, a terminal gets one line when a process has
    compiled for ``patience`` seconds. Nothing goes into a pipe, and nothing is printed if the environment has
    ``SLATEWISE_QUIET=1``.
    """

    def __init__(self, patience: float = 1.0) -> None:
        self.patience = patience
        self._depth, self._began = 0, 0.0
        self._timer: Timer | None = None
        self._shown: tuple[Listener, int] | None = None
        self._printed = False

    def on_start(self, event: Any) -> None:
        """A kernel begins to compile; those that it calls do so within."""
        if not _is_ours(event):
            return
        self._depth += 1
        if self._depth > 1:
            return
        self._began = monotonic()
        dispatcher = event.data["dispatcher"]
        listener = anybody_listening()
        if listener is not None:
            name = dispatcher.py_func.__name__.strip("_")
            self._shown = listener, listener.begin(f"compiling {name} ({_how_often(dispatcher)})", None)
        elif not self._printed and not is_quiet() and _is_terminal():
            if self.patience <= 0:
                self._print(_how_often(dispatcher))
                return
            self._timer = Timer(self.patience, self._print, [_how_often(dispatcher)])
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        """The kernel is compiled, or failed to be."""
        if not _is_ours(event):
            return
        self._depth -= 1
        if self._depth > 0:
            return
        if self._shown is not None:
            listener, loop = self._shown
            listener.end(loop)
            self._shown = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self.patience -= monotonic() - self._began  # many short ones are a long wait too

    def _print(self, how_often: str) -> None:
        self._printed = True
        with suppress(OSError, ValueError):  # the terminal may be gone by now
            print(f"slatewise: compiling kernels ({how_often})", file=sys.stderr, flush=True)


def _is_ours(event: Any) -> bool:
    return event.data["dispatcher"].py_func.__module__.startswith("slatewise.")


def _how_often(dispatcher: Any) -> str:
    return "once per process: no folder to keep them in" if dispatcher.stats.cache_path is None else "once per machine"


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty() and parent_process() is None  # one line, not one of every worker
    except (AttributeError, ValueError):  # none, one of another kind, or closed
        return False


COMPILE_NOTICE = CompileNotice()
_event.register("numba:compile", COMPILE_NOTICE)
