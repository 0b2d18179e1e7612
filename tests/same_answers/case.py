"""What a case is: one estimator in the words of two commits, and what it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Answers = Iterator[tuple[str, Any]]


@dataclass(frozen=True)
class Case:
    """An estimator before and now, as Python would be written after ``from slatewise import *``."""

    name: str
    before: str | None
    """None: there was no such thing; there is nothing to compare with."""
    now: str | None
    """None: it was dropped, which ``why`` gives the reason for."""
    ask: Callable[[Any], Answers]
    """Fits the estimator and yields what it learned and answers."""
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Learned attributes that have another name now: that of before, by the present one."""
    tolerance: float = 0.0
    """Beyond 0 where an array was split out of a table, or where only one thread gives the same bits."""
    why: str = ""


def learned(estimator: Any) -> Answers:
    """Yield the learned arrays, numbers and lists."""
    for name, value in sorted(vars(estimator).items()):
        if name.endswith("_") and isinstance(value, np.ndarray | int | float | list) and not name.startswith("_"):
            yield name, value


def ranked(answer: Any) -> Answers:
    """Yield ids and scores of an answer."""
    yield "ids", answer.ids
    if isinstance(answer.scores, np.ndarray) and answer.offsets is None:
        yield "scores", answer.scores
