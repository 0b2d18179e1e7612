"""The CPU seconds of a run of the suite, and what it compiles: each kernel is compiled by one worker only.

Workers begin with an empty cache at the same time and meet the same kernels. What one of them compiles, Numba writes
beside the source when it is done; another one has by then begun to compile the same, and if it compiles another
signature, each may write its own over the other's. Here a process waits for a kernel that another one compiles, and
then loads it.
"""

import contextlib
import os
import time
from collections import Counter
from pathlib import Path

from numba.core import event
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # not a POSIX system: every process compiles for itself
    flock = None

PATIENCE = 300.0
"""Seconds after which a process compiles what another one has not finished compiling."""


class Compilations(event.Listener):
    """The CPU seconds that processes have spent compiling, and how often each signature of a kernel was compiled."""

    def __init__(self):
        self.seconds, self.kernels, self._starts = 0.0, Counter(), []

    def on_start(self, event):
        self._starts.append(time.thread_time())

    def on_end(self, event):
        start = self._starts.pop()
        if not self._starts:  # a kernel that is called by another one compiles within it
            self.seconds += time.thread_time() - start
        function = event.data["dispatcher"].py_func
        self.kernels[f"{function.__module__}.{function.__qualname__} {event.data['args']}"] += 1

    def add(self, seconds, kernels):
        """Add what another process has compiled."""
        self.seconds += seconds
        self.kernels.update(kernels)

    def summary(self):
        again = self.kernels.total() - len(self.kernels)
        used = sum(os.times()[:4])  # of this process, and of workers and others that have ended
        return (
            f"{used:.0f} CPU seconds, {self.seconds:.0f} of them to compile: "
            f"{len(self.kernels)} signatures, {again} compiled again"
        )


@contextlib.contextmanager
def lock_of(path):
    """Hold a lock among processes, or go on without it after ``PATIENCE`` seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(BlockingIOError):
                flock(file, LOCK_EX | LOCK_NB)
                break
            time.sleep(0.01)
        yield


def compile_once(compile_here):
    """Let ``Dispatcher.compile`` wait for a process that compiles the same function."""

    def compile_or_load(self, signature):
        if self.stats.cache_path is None:  # there is nothing to load from
            return compile_here(self, signature)
        function = self.py_func
        name = f"{function.__module__}.{function.__qualname__}-{function.__code__.co_firstlineno}.lock"
        # The lock of the process first, which Numba takes too: otherwise two threads could wait for each other.
        with global_compiler_lock, lock_of(Path(self.stats.cache_path, name)):
            return compile_here(self, signature)

    return compile_or_load


def share():
    """Count what this process compiles from now on, and compile only what no other process does."""
    found = Compilations()
    event.register("numba:compile", found)
    if flock is not None:
        Dispatcher.compile = compile_once(Dispatcher.compile)
    return found
