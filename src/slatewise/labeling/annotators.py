"""People who answer, simulated: they know the truth, err, or do not know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from slatewise.core.arrays import Bools, Bytes


class Annotator(Protocol):
    """Answers one question per row."""

    def answer(self, truth: Bools, rng: np.random.Generator) -> Bytes:
        """Return 1 yes, 0 no or -1 don't know, for labels that are or are not relevant."""
        ...


@dataclass(frozen=True)
class Truthful:
    """Always right.

    Examples
    --------
    >>> Truthful().answer(np.array([True, False]), np.random.default_rng(0))
    array([1, 0], dtype=int8)
    """

    def answer(self, truth: Bools, rng: np.random.Generator) -> Bytes:
        """Say what is true."""
        return truth.astype(np.int8)


@dataclass(frozen=True)
class Noisy:
    """Turns another annotator's yes into no, and no into yes, with probability ``flip``."""

    flip: float
    annotator: Annotator = field(default_factory=Truthful)

    def __post_init__(self) -> None:
        _require_probability("flip", self.flip)

    def answer(self, truth: Bools, rng: np.random.Generator) -> Bytes:
        """Err now and then; "don't know" stays."""
        said = self.annotator.answer(truth, rng)
        flipped = (rng.random(len(truth)) < self.flip) & (said >= 0)
        return np.where(flipped, 1 - said, said).astype(np.int8)


@dataclass(frozen=True)
class Unsure:
    """Does not know, with probability ``rate``; otherwise answers as another annotator."""

    rate: float
    annotator: Annotator = field(default_factory=Truthful)

    def __post_init__(self) -> None:
        _require_probability("rate", self.rate)

    def answer(self, truth: Bools, rng: np.random.Generator) -> Bytes:
        """Leave some labels unknown."""
        said = self.annotator.answer(truth, rng)
        return np.where(rng.random(len(truth)) < self.rate, -1, said).astype(np.int8)


def _require_probability(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name}: expected a probability from 0 to 1, found {value!r}")
