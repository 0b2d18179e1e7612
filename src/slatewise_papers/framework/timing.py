"""How a benchmark takes time: of single calls, of calls by turns, and of new processes.

Each function returns seconds by the clock unless its name says otherwise.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import numpy as np

Input = TypeVar("Input")


def seconds(call: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def wall_and_cpu(call: Callable[[], object]) -> tuple[float, float]:
    """Return seconds by the clock and of the processor."""
    start = time.process_time()
    wall = seconds(call)
    return wall, time.process_time() - start


def timed(call: Callable[[], Input]) -> tuple[Input, float]:
    """Return what a call returns, and its seconds."""
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def best_seconds(function: Callable[[Input], object], inputs: Iterable[Input]) -> float:
    """Return the shortest time over *fresh* inputs: repeating one instance flatters caches and branch predictors."""
    return min(each_seconds(function, inputs))


def each_seconds(function: Callable[[Input], object], inputs: Iterable[Input]) -> list[float]:
    """Time a function on each input."""
    return [seconds(lambda value=value: function(value)) for value in inputs]


def by_turns(
    functions: Mapping[str, Callable[[Input], object]], inputs: Iterable[Input], warm_up: int = 0
) -> dict[str, list[float]]:
    """Time every function on each input before the next input: what else the machine does then falls on all alike.

    The first ``warm_up`` inputs, on which functions compile and make indexes, are not in the result.
    """
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for value in inputs:
        for name, function in functions.items():
            taken[name].append(seconds(lambda function=function, value=value: function(value)))
    return {name: each[warm_up:] for name, each in taken.items()}


def milliseconds(taken: list[float], share: float = 0.5) -> float:
    """Return a quantile in milliseconds, the median by default."""
    return 1e3 * float(np.quantile(taken, share))


def numbers_printed(code: str, *arguments: object, environment: Mapping[str, str] | None = None) -> list[float]:
    """Run a program in a new process, and return the numbers that it prints."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [float(word) for word in done.stdout.split()]
