"""Open plain files only: whatever else has a name could have no end, or keep who reads it waiting."""

from __future__ import annotations

import os
import stat


def open_plain(path: str, flags: int) -> int:
    """Open a plain file, as an ``opener`` of :func:`open`; one that is made is its owner's only."""
    number = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise ValueError(f"{path}: expected a plain file, found a folder or device")
    return number
