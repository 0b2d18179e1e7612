"""The two clocks of a project: the machine's, which may be set back, and one that only ever goes on."""

from __future__ import annotations

import time


def wall_clock() -> float:
    """Seconds since 1970, as the machine believes."""
    return time.time()


def steady_clock() -> float:
    """Seconds since some moment of this machine's."""
    return time.monotonic()


def now() -> int:
    """Milliseconds since 1970, as the machine believes."""
    return int(wall_clock() * 1000)
