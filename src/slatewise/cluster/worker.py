"""The process of a worker: it holds runs of blocks, and adds them up at the parameters it receives.

A run is loaded when it is first needed. A restarted worker has no runs and answers None; the driver then sends the
request again with references to the run, which the worker loads.
"""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from importlib.metadata import version
from typing import Any, NamedTuple

from slatewise._version import __version__
from slatewise.core.arrays import read_lazy
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.block_sums import BlockSum, Subtree
from slatewise.core.running.executor import ONE_THREAD

_MATTER = ("numpy", "scipy", "numba", "scikit-learn")
"""Packages whose versions affect the bits of a fit."""


class About(NamedTuple):
    """The machine of a worker, its process, and the versions of its packages."""

    node: str
    pid: int
    cpu: str
    versions: dict[str, str]


class Run(NamedTuple):
    """Consecutive blocks, the number of the first, and the data that all blocks share."""

    first: int
    blocks: Sequence[Any]
    shared: Any


class Answer(NamedTuple):
    """Sums of whole subtrees, and the warnings on the way."""

    subtrees: list[Subtree]
    warned: list[tuple[str, type[Warning]]]


def about() -> About:
    """Describe this process."""
    from llvmlite.binding import get_host_cpu_name

    versions = {"Python": platform.python_version(), "slatewise": __version__}
    versions |= {name: version(name) for name in _MATTER}
    return About(platform.node(), os.getpid(), get_host_cpu_name(), versions)


class Worker:
    """One process of a cluster."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}

    def about(self) -> About:
        """Describe this worker."""
        return about()

    def sum(
        self,
        key: str,
        what: BlockSum[Any, Any, Any, Any, Any],
        at: Any,
        refs: tuple[int, Any, Any] | None = None,
    ) -> Answer | None:
        """Add up a run; return None if it is not loaded and there are no references to load it from.

        ``refs`` are the number of the first block, and references to the blocks and the shared data. Each costs Ray a
        message, so they come with the first request only, and again after a None.
        """
        if key not in self._runs:
            if refs is None:
                return None
            self._runs[key] = _loaded(*refs)
        first, blocks, shared = self._runs[key]
        with one_blas_thread(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tree = ONE_THREAD.subtrees(what, shared, deepcopy(at), blocks, first)
        return Answer(tree.subtrees, [(str(one.message), one.category) for one in caught])

    def call(self, function: Callable[[Any, Any], Any], parameters: Any, block: Any) -> Any:
        """Call a function of a module."""
        with one_blas_thread():
            return function(deepcopy(parameters), block)

    def forget(self, key: str) -> None:
        """Drop a run."""
        self._runs.pop(key, None)


def _loaded(first: int, blocks: Any, shared: Any) -> Run:
    """Fetch a run, and read its parts that are in files.

    It is copied, because arrays of the object store are read-only, for which kernels would be compiled again.
    """
    import ray

    blocks, shared = ray.get([blocks, shared])
    return Run(first, read_lazy(deepcopy([*blocks])), read_lazy(deepcopy(shared)))
