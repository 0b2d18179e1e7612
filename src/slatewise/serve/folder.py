"""The folder of a running service; what one that was killed left behind, the next one removes.

Whoever runs in a folder holds the lock of a file in it, which ends with the last of its processes, however they end.
So a service that is killed again and again, as for its memory, does not fill the disk with copies of its models.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX, _LOCK = "slatewise-serve-", "lock"


@contextmanager
def own_folder() -> Generator[tuple[Path, int]]:
    """Yield a new folder and the number of its lock, which workers hold too."""
    _remove_left()
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        folder = Path(name)
        with open(folder / "new", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.rename(folder / "new", folder / _LOCK)  # a lock that is seen is held
            yield folder, lock.fileno()


def _remove_left() -> None:
    """Remove folders of ours that nobody holds."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError):  # somebody holds it, or has just removed it
            if os.lstat(path.parent).st_uid == os.getuid():
                with open(path, encoding="utf-8") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path.parent)
