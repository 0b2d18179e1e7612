"""Simulate labeling: ask, answer, rank again, and measure after some numbers of questions.

The measure is break-even precision: the precision of the first k labels, where k labels of the row are relevant.
Whether the model knows k, as in the paper, or not, as in practice, is up to the caller. There is one question per
label. An answer "don't know" leaves it open to inference; answers that contradict a known k are dropped, see
:func:`slatewise.labeling.questions.rows.consistent`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Bools, Bytes, Floats, Ints
from slatewise.data.labels import check_labels
from slatewise.labeling.questions.policies import MarginRule, QuestionPolicy, RandomQuestion, Situation, Uncertainty
from slatewise.labeling.questions.rows import LabelRanker, LabelRows, consistent, ranks
from slatewise.report.plots import lines

PAPER_QUESTIONS = (0, 1, 5, 10)
POLICIES: Mapping[str, QuestionPolicy] = {
    "margin rule": MarginRule(),
    "uncertainty": Uncertainty(),
    "random": RandomQuestion(),
}


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
        answers = self.annotator.answer(truth, rng)
        flipped = (rng.random(len(truth)) < self.flip) & (answers >= 0)
        return np.where(flipped, 1 - answers, answers).astype(np.int8)


@dataclass(frozen=True)
class Unsure:
    """Does not know, with probability ``rate``; otherwise answers as another annotator."""

    rate: float
    annotator: Annotator = field(default_factory=Truthful)

    def __post_init__(self) -> None:
        _require_probability("rate", self.rate)

    def answer(self, truth: Bools, rng: np.random.Generator) -> Bytes:
        """Leave some labels unknown."""
        answers = self.annotator.answer(truth, rng)
        return np.where(rng.random(len(truth)) < self.rate, -1, answers).astype(np.int8)


def _require_probability(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name}: expected a probability from 0 to 1, found {value!r}")


@dataclass(frozen=True, eq=False)
class SimulationState:
    """A simulated session: who asks, who answers, and the answers so far."""

    truth: Bools
    """(n, N) relevant labels."""
    policy: QuestionPolicy
    annotator: Annotator
    rng: np.random.Generator
    answers: Bytes
    """(n, N): 1 yes, 0 no, -1 unknown."""
    answered: Bools
    """(n, N), "don't know" included: there is one question per label."""

    @classmethod
    def of(
        cls,
        truth: Bools,
        policy: QuestionPolicy,
        annotator: Annotator,
        random_state: int | np.random.Generator | None,
    ) -> SimulationState:
        """Start without answers."""
        unknown, rng = np.full(truth.shape, -1, dtype=np.int8), np.random.default_rng(random_state)
        return cls(truth, policy, annotator, rng, unknown, np.zeros(truth.shape, dtype=np.bool_))

    def ask(self, numbers: Ints, situation: Situation) -> Ints:
        """Ask one question in each of some rows and note the answers; return the labels, -1 if none is askable."""
        labels = self.policy.ask(situation, self.rng)
        busy = labels >= 0
        rows, columns = numbers[busy], labels[busy]
        self.answers[rows, columns] = self.annotator.answer(self.truth[rows, columns], self.rng)
        self.answered[rows, columns] = True
        return labels


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """How good the lists were after each number of questions."""

    questions: tuple[int, ...]
    per_list: Floats
    """(n, numbers of questions) break-even precision; NaN for a row without a relevant label."""
    labels: Ints
    """(n, most questions) the label of each question, -1 if nothing was left to ask."""

    def mean(self) -> dict[int, float]:
        """Return the mean over lists after each number of questions."""
        measured = self.per_list[~np.isnan(self.per_list[:, 0])]
        return dict(zip(self.questions, measured.mean(axis=0).tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class PolicyComparison:
    """The same state under several policies."""

    results: dict[str, SimulationResult]

    def table(self) -> dict[str, dict[int, float]]:
        """Return the mean of each policy after each number of questions."""
        return {name: result.mean() for name, result in self.results.items()}

    def plot(self) -> str:
        """Draw break-even precision against the number of questions, one line per policy, as SVG."""
        table = self.table()
        numbers = next(iter(self.results.values())).questions
        series = {name: list(means.values()) for name, means in table.items()}
        return lines(numbers, series, "questions", "break-even precision")


def simulate(
    ranker: LabelRanker,
    X: ArrayLike,
    Y: Any,
    policy: QuestionPolicy | None = None,
    annotator: Annotator | None = None,
    questions: Sequence[int] = PAPER_QUESTIONS,
    random_state: int | np.random.Generator | None = None,
    count_known: bool | None = None,
) -> SimulationResult:
    """Ask ``policy``'s questions to ``annotator`` and measure the lists along the way.

    Parameters
    ----------
    ranker : LabelRanker
        A fitted :class:`slatewise.CStarRanker` or :class:`slatewise.CStarMarginRanker`, or
        :class:`slatewise.labeling.GivenScores`, or ``GivenLogOdds``.
    X, Y
        Rows and their true labels, 0/1.
    policy : QuestionPolicy, optional
        Default: the paper's margin rule.
    annotator : Annotator, optional
        Default: always right.
    questions : sequence of int
        After how many questions to measure.
    random_state : int or Generator, optional
        For policies and annotators that draw.
    count_known : bool, optional
        Whether the model uses the number of labels of each row. Default: only if it needs that.

    Examples
    --------
    >>> from slatewise.labeling import GivenScores
    >>> simulate(GivenScores(3), [[0.9, 0.8, 0.1]], [[0, 1, 0]], questions=(0, 1)).mean()
    {0: 0.0, 1: 1.0}
    """
    truth = check_labels(Y, len(np.asarray(X)))[0] > 0
    counts = truth.sum(axis=1).astype(np.int64)
    rows = LabelRows.of(ranker, X, counts if (ranker.needs_count if count_known is None else count_known) else None)
    measure_after = tuple(int(count) for count in questions)
    if not measure_after or measure_after[0] < 0 or any(one >= two for one, two in pairwise(measure_after)):
        raise ValueError(f"questions: expected growing numbers >= 0, such as (0, 1, 5, 10), found {measure_after}")
    state = SimulationState.of(truth, policy or MarginRule(), annotator or Truthful(), random_state)
    every_row = np.arange(len(truth))
    labels = np.full((len(truth), measure_after[-1]), -1, dtype=np.int64)
    measured: dict[int, Floats] = {}
    for count in range(measure_after[-1] + 1):
        known = consistent(state.answers, rows.scores, rows.k)
        margins = rows.margins(known)
        if count in measure_after:
            measured[count] = break_even(truth, margins, counts)
        if count < measure_after[-1]:
            open_labels = ~state.answered & np.isfinite(margins)
            labels[:, count] = state.ask(every_row, Situation(rows, known, margins, open_labels))
    return SimulationResult(measure_after, np.column_stack([measured[count] for count in measure_after]), labels)


def compare_policies(
    ranker: LabelRanker,
    X: ArrayLike,
    Y: Any,
    policies: Mapping[str, QuestionPolicy] = POLICIES,
    annotator: Annotator | None = None,
    questions: Sequence[int] = tuple(range(11)),
    random_state: int | None = None,
    count_known: bool | None = None,
) -> PolicyComparison:
    """Simulate the same rows under several policies, each from the same seed; see :func:`simulate`.

    Examples
    --------
    >>> from slatewise import CStarMarginRanker, CStarRanker, datasets
    >>> scenes = datasets.make_label_scenes(300, random_state=0)
    >>> ranker = CStarRanker(core=3).fit(scenes.X[:200], scenes.Y[:200])
    >>> compared = compare_policies(ranker, scenes.X[200:], scenes.Y[200:], questions=(0, 4), random_state=0).table()
    >>> compared["margin rule"][4] > compared["random"][4]
    True
    """
    return PolicyComparison(
        {
            name: simulate(ranker, X, Y, policy, annotator, questions, random_state, count_known)
            for name, policy in policies.items()
        }
    )


def break_even(truth: Bools, margins: Floats, k: Ints) -> Floats:
    """Return the precision of the k labels of each row with the largest margins; NaN if k is 0."""
    chosen = ranks(-margins) < k[:, None]
    return np.where(k > 0, (truth & chosen).sum(axis=1) / np.maximum(k, 1), np.nan)
