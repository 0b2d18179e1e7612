"""BLAS and LAPACK on one thread while a fit runs: OpenBLAS adds in another order with two."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import NamedTuple

from threadpoolctl import ThreadpoolController


class _Blas(NamedTuple):
    """One BLAS library."""

    read: Callable[[], int]
    write: Callable[[int], None]


@cache
def _blas() -> tuple[_Blas, ...]:
    # The controller sees the libraries loaded so far, so load both BLAS users before it looks.
    import_module("numpy.linalg")
    import_module("scipy.linalg")

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    # From 3.8 on threadpoolctl lets only the first thread set OpenBLAS, and silently ignores others. The contexts here
    # are counted, so each may set it: take the setter beneath that rule if there is one.
    return tuple(
        _Blas(lib.get_num_threads, getattr(lib, "_real_set_num_threads", lib.set_num_threads)) for lib in found
    )


_lock = threading.RLock()
_inside: dict[object, int] = {}
"""The contexts that are open now, and the thread of each."""
_before: list[int] = []
"""The number of threads of each BLAS when the first of them opened."""


@contextmanager
def one_blas_thread() -> Generator[None]:
    """Return a context in which BLAS and LAPACK use one thread, in the whole process.

    Contexts may be nested, and those of several threads may overlap in any order. The first one to open records the
    number of threads of BLAS, and the last one to close restores it, also after an exception. A forked child keeps the
    contexts of the thread that forked it.
    """
    libraries, user = _blas(), object()
    try:
        with _lock:
            if not _inside:
                _before[:] = [library.read() for library in libraries]
            _inside[user] = threading.get_ident()
            for library in libraries:  # in every context: some BLAS keep the number per thread
                library.write(1)
        yield
    finally:
        with _lock:
            _leave([user])


def _leave(users: list[object]) -> None:
    for user in users:
        _inside.pop(user, None)
    if not _inside:
        for library, number in zip(_blas(), _before, strict=True):
            library.write(number)


def _in_child() -> None:
    gone = [user for user, thread in _inside.items() if thread != threading.get_ident()]
    if gone:  # their threads are not in this process, and will never leave
        _leave(gone)
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_in_child)
