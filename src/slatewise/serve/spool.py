"""Copies of model files that nobody else writes to, shared by all workers.

Arrays of a model are mapped from its file. Somebody who copies a new model over the file, instead of renaming one into
its place, would change or cut the arrays under a running service. So a model is copied into a folder of the service's
own first. Workers that copy the same bytes end up with one file, and the system keeps its pages in memory once.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from slatewise.serve.plain_file import open_plain

_PART = 1 << 20
_VERSION_LETTERS = 12


class Spool:
    """A folder of copies, named after their content."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def copy(self, name: str, source: Path) -> tuple[Path, str]:
        """Copy a file as it is now; return where, and its version: the start of its sha256."""
        digest = hashlib.sha256()
        number, temporary = tempfile.mkstemp(suffix=".part", dir=self.folder)
        try:
            with open(number, "wb") as out, open(source, "rb", opener=open_plain) as file:
                while part := file.read(_PART):
                    digest.update(part)
                    out.write(part)
            version = digest.hexdigest()[:_VERSION_LETTERS]
            target = self.folder / f"{name}@{version}.safetensors"
            with suppress(FileExistsError):  # another worker was here first
                os.link(temporary, target)
        finally:
            os.unlink(temporary)
        return target, version

    def kept(self, name: str) -> list[tuple[Path, str]]:
        """Return the copies of a model, the newest first, and their versions."""
        copies = [path for path in self.folder.glob("*@*.safetensors") if path.name.rpartition("@")[0] == name]
        return [(path, path.stem.rpartition("@")[2]) for path in sorted(copies, key=_age)]

    def keep_only(self, name: str, version: str) -> None:
        """Remove other copies of a model; who has one mapped keeps it until it lets go."""
        for path in self.folder.glob("*@*.safetensors"):
            of, _, rest = path.name.rpartition("@")
            if of == name and rest != f"{version}.safetensors":
                path.unlink(missing_ok=True)


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:  # another worker has removed it
        return 0.0
