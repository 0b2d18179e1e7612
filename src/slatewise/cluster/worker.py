"""What runs in each worker's process: it holds runs of blocks, and adds them up at the parameters it is told.

A run is loaded when it is first asked for. A worker that was killed begins with nothing, says so, is asked again with
where its run is found, and loads it anew: that is all there is to a restart.
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
"""Packages whose versions decide about bits."""


class About(NamedTuple):
    """Where a worker runs, and with what."""

    node: str
    pid: int
    cpu: str
    versions: dict[str, str]


class Run(NamedTuple):
    """Neighbouring blocks, the number of the first, and what all blocks share."""

    first: int
    blocks: Sequence[Any]
    shared: Any


class Answer(NamedTuple):
    """Sums of whole subtrees, and the warnings on the way."""

    subtrees: list[Subtree]
    warned: list[tuple[str, type[Warning]]]


def about() -> About:
    """Say where this process runs, and with what."""
    from llvmlite.binding import get_host_cpu_name

    versions = {"Python": platform.python_version(), "slatewise": __version__}
    versions |= {name: version(name) for name in _MATTER}
    return About(platform.node(), os.getpid(), get_host_cpu_name(), versions)


class Worker:
    """One process of a cluster."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}

    def about(self) -> About:
        """Say where this worker runs, and with what."""
        return about()

    def sum(
        self,
        key: str,
        what: BlockSum[Any, Any, Any, Any, Any],
        at: Any,
        refs: tuple[int, Any, Any] | None = None,
    ) -> Answer | None:
        """Add up a run, or return None where it is not here and nobody says where it is found.

        ``refs`` say so: the number of its first block, its blocks, what they share. To send them costs Ray a message
        each, so they come with the first question only, and again after a None.
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
        """Free a run."""
        self._runs.pop(key, None)


def _loaded(first: int, blocks: Any, shared: Any) -> Run:
    """Fetch a run, and read what of it lies in files.

    Copied: what comes from the object store is read-only, for which kernels would be compiled anew.
    """
    import ray

    blocks, shared = ray.get([blocks, shared])
    return Run(first, read_lazy(deepcopy([*blocks])), read_lazy(deepcopy(shared)))
