"""Several workers on one socket: a client cannot choose who answers, so none is told to come before all are warm."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(eq=False)
class Crew:
    """A folder where every worker leaves a file, named after its place, when it can answer.

    The file outlives its worker: who takes the place of a dead one takes no requests before it can answer, so that the
    others need not be left alone meanwhile.
    """

    folder: Path
    size: int
    place: int
    complete: bool = False

    def say_warm(self) -> None:
        """Say that this worker can answer."""
        (self.folder / str(self.place)).touch()

    @property
    def missing(self) -> int:
        """How many workers have not said so yet."""
        if self.complete:
            return 0
        missing = self.size - sum(1 for _ in self.folder.iterdir())
        self.complete = missing == 0
        return missing
