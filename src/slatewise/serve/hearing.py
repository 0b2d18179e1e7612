"""What the library warns of while it answers: heard per thread, because the answers of one are not another's.

``warnings.catch_warnings`` changes the whole process and is not for threads. Here one hook, set once, gives every
warning to whoever listens in the thread that caused it, and to the log where nobody does.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

_log = logging.getLogger("slatewise.serve")
_local = threading.local()
_COUNTED = ("queries:", "exclude:", "candidates:", "items:")
"""Warnings of ids that fit never saw: the door counts them for each request, the library for a whole batch."""


def hear_warnings() -> None:
    """Give all warnings of the process to those who listen; the service does this, not the library."""
    warnings.simplefilter("always")
    warnings.simplefilter("ignore", ResourceWarning)  # of files that the end of the process closes
    warnings.showwarning = _heard


def _heard(message: Warning | str, *_: Any, **__: Any) -> None:
    text = " ".join(str(message).split())
    heard: list[str] | None = getattr(_local, "heard", None)
    if heard is None:
        _log.warning("warning", extra={"fields": {"text": text}})
    elif not text.startswith(_COUNTED) and text not in heard:
        heard.append(text)


@contextmanager
def listening() -> Generator[list[str]]:
    """Yield the warnings that this thread causes."""
    heard: list[str] = []
    _local.heard = heard
    try:
        yield heard
    finally:
        _local.heard = None
