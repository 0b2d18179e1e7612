"""One server per project, and one trainer: a lock of the system on a file beside it, which ends with its holder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from slatewise.core.errors import ProjectError


class HeldFile:
    """A lock held from when it is made until :meth:`release`. The file stays: to remove it would race with the next."""

    def __init__(self, project: Path, ending: str, expected: str, busy: str) -> None:
        path = project.with_name(project.name + ending)
        try:
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise ProjectError(f"{project}: expected a file {path.name} to lock beside it, found {error}") from None
        try:
            _lock(self._file)
        except OSError as error:
            holder = os.pread(self._file, 20, 0).decode(errors="replace").strip() if os.name == "posix" else ""
            os.close(self._file)
            found = f"{busy} by process {holder}" if holder else f"{error}"
            raise ProjectError(f"{project}: expected {expected}, found {found}") from None
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let others serve; nothing where that was done."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class ServerLock(HeldFile):
    """Held by the one server of a project."""

    def __init__(self, project: Path) -> None:
        super().__init__(project, ".lock", "a project that no other server serves", "it is served")


class TrainerLock(HeldFile):
    """Held by the one process that trains a model of a project."""

    def __init__(self, project: Path) -> None:
        super().__init__(project, ".training.lock", "a project whose model nobody trains now", "it is trained")


def _lock(file: int) -> None:
    """Lock an open file, or raise OSError where another holds it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        from fcntl import LOCK_EX, LOCK_NB, flock

        flock(file, LOCK_EX | LOCK_NB)
