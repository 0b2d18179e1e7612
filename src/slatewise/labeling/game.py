"""Rows whose labels are asked one by one, of a simulated annotator who knows the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slatewise.core.arrays import Bools, Bytes, Ints
from slatewise.labeling.annotators import Annotator
from slatewise.labeling.policies import QuestionPolicy, Situation


@dataclass(frozen=True, eq=False)
class Game:
    """Who asks, who answers, and what was said so far."""

    truth: Bools
    """(n, N) relevant labels."""
    policy: QuestionPolicy
    annotator: Annotator
    rng: np.random.Generator
    answers: Bytes
    """(n, N): 1 yes, 0 no, -1 not asked, or nobody knew."""
    was_asked: Bools
    """(n, N): no label is asked twice."""

    @classmethod
    def of(
        cls,
        truth: Bools,
        policy: QuestionPolicy,
        annotator: Annotator,
        random_state: int | np.random.Generator | None,
    ) -> Game:
        """Start with nothing asked."""
        unknown, rng = np.full(truth.shape, -1, dtype=np.int8), np.random.default_rng(random_state)
        return cls(truth, policy, annotator, rng, unknown, np.zeros(truth.shape, dtype=np.bool_))

    def ask(self, numbers: Ints, situation: Situation) -> Ints:
        """Ask one question in each of some rows and note the answers; return the labels, -1 where none is askable."""
        labels = self.policy.ask(situation, self.rng)
        busy = labels >= 0
        rows, asked = numbers[busy], labels[busy]
        self.answers[rows, asked] = self.annotator.answer(self.truth[rows, asked], self.rng)
        self.was_asked[rows, asked] = True
        return labels
