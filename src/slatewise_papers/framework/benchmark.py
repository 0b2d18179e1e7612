"""What a benchmark returns."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One line of a benchmark: our figure, the peer's, and the bar that the ratio must clear."""

    what: str
    ours: float
    peer: str | None = None
    theirs: float | None = None
    unit: str = "s"
    bar: str = ""
    """What the issue or the docs promise, in words, e.g. ``"ratio >= 5"``; empty where nothing is promised."""

    @property
    def ratio(self) -> float | None:
        """How many times the peer's figure is ours: for seconds, larger is better for us."""
        return None if self.theirs is None else self.theirs / self.ours


@dataclass(frozen=True)
class Table:
    """A benchmark's rows, the peers that were not installed, and remarks a reader needs."""

    name: str
    rows: list[Row]
    left_out: list[str] = field(default_factory=list[str])
    remarks: list[str] = field(default_factory=list[str])
