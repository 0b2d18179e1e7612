"""What an objective answered, kept so that a fit can be walked again without asking: a checkpoint for any learner.

A learner is a function of the answers it gets. Given the same ones it asks the same questions and ends at the same
bits, whatever it remembers in between, and so does a validation that runs many fits one after the other. The state of
all of them is the list of answers so far, each with a digest of its question: where a question is another one than
before (another release of a solver), the rest is forgotten and asked anew.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.results import Params

Oracle: TypeAlias = Callable[[Params], tuple[float, Params]]
"""What a learner asks: a value and a vector at given parameters."""
Arrays: TypeAlias = Mapping[str, NDArray[Any]]
_SHARE = 16  # one answer of so many may be lost: writing all of them after each would take the square of their number


class Answers:
    """The answers of a fit in their order; those of an earlier run first."""

    def __init__(self, known: Arrays | None, write: Callable[[Arrays], None]) -> None:
        self._write = write
        self._questions: list[int] = []
        self._answers: list[Params] = []
        if known is not None:
            self._questions = known["questions"].tolist()
            self._answers = np.split(known["numbers"], np.cumsum(known["sizes"])[:-1])
        self._asked, self._written = 0, len(self._questions)

    @property
    def replaying(self) -> bool:
        """Whether the next answer is known."""
        return self._asked < len(self._questions)

    def ask(self, oracle: Oracle, w: Params) -> tuple[float, Params]:
        """Return the answer of an earlier run to the same question, or ask."""
        question = int.from_bytes(blake2b(w.tobytes(), digest_size=8).digest(), "little", signed=True)
        if self.replaying and self._questions[self._asked] != question:
            del self._questions[self._asked :], self._answers[self._asked :]
            self._written = self._asked
        if not self.replaying:
            value, vector = oracle(w)
            self._questions.append(question)
            self._answers.append(np.append(vector, value))
            if (len(self._questions) - self._written) * _SHARE > self._written:
                self._write(self._arrays())
                self._written = len(self._questions)
        answer = self._answers[self._asked]
        self._asked += 1
        return float(answer[-1]), answer[:-1].copy()

    def _arrays(self) -> Arrays:
        return {
            "questions": np.array(self._questions, dtype=np.int64),
            "sizes": np.array([len(answer) for answer in self._answers], dtype=np.int64),
            "numbers": np.concatenate(self._answers),
        }


_kept: ContextVar[Answers | None] = ContextVar("answers", default=None)


@contextmanager
def keeping(answers: Answers | None) -> Generator[None]:
    """Have all that is :func:`answered` go through these answers; None: be asked each time."""
    token = _kept.set(answers)
    try:
        yield
    finally:
        _kept.reset(token)


def answered(oracle: Oracle) -> Oracle:
    """Return an oracle with the same answers, which are kept where somebody is :func:`keeping` them."""
    answers = _kept.get()
    return oracle if answers is None else partial(answers.ask, oracle)
