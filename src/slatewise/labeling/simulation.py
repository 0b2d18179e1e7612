"""Play the labeling game: ask, answer, rank again, and measure after some numbers of questions.

The measure is break-even precision: of as many labels as are relevant in a row. Whether the model knows that number, as
in the paper, or not, as in practice, is up to the caller. A label is asked at most once. An answer "don't know" leaves
it open to inference; answers that contradict a known number are dropped as
:func:`slatewise.labeling.rows.consistent` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Bools, Floats, Ints
from slatewise.data.labels import check_labels
from slatewise.labeling.annotators import Annotator, Truthful
from slatewise.labeling.game import Game
from slatewise.labeling.policies import MarginRule, QuestionPolicy, RandomQuestion, Situation, Uncertainty
from slatewise.labeling.rows import LabelRanker, LabelRows, consistent, places
from slatewise.report.plots import lines

PAPER_QUESTIONS = (0, 1, 5, 10)
POLICIES: Mapping[str, QuestionPolicy] = {
    "margin rule": MarginRule(),
    "uncertainty": Uncertainty(),
    "random": RandomQuestion(),
}


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """How good the lists were after each number of questions."""

    questions: tuple[int, ...]
    per_list: Floats
    """(n, numbers of questions) break-even precision; NaN for a row without a relevant label."""
    asked: Ints
    """(n, most questions) the labels in the order asked, -1 where nothing was left to ask."""

    def mean(self) -> dict[int, float]:
        """Return the mean over lists after each number of questions."""
        measured = self.per_list[~np.isnan(self.per_list[:, 0])]
        return dict(zip(self.questions, measured.mean(axis=0).tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class PolicyComparison:
    """The same game under several policies."""

    results: dict[str, SimulationResult]

    def table(self) -> dict[str, dict[int, float]]:
        """Return the mean of each policy after each number of questions."""
        return {name: result.mean() for name, result in self.results.items()}

    def plot(self) -> str:
        """Draw break-even precision against the number of questions, one line per policy, as SVG."""
        table = self.table()
        places = next(iter(self.results.values())).questions
        series = {name: list(means.values()) for name, means in table.items()}
        return lines(places, series, "questions", "break-even precision")


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
    measure_after = _checked_questions(questions)
    game = Game.of(truth, policy or MarginRule(), annotator or Truthful(), random_state)
    everybody = np.arange(len(truth))
    asked = np.full((len(truth), measure_after[-1]), -1, dtype=np.int64)
    measured: dict[int, Floats] = {}
    for count in range(measure_after[-1] + 1):
        known = consistent(game.answers, rows.scores, rows.k)
        margins = rows.margins(known)
        if count in measure_after:
            measured[count] = _break_even(truth, margins, counts)
        if count < measure_after[-1]:
            open_labels = ~game.was_asked & np.isfinite(margins)
            asked[:, count] = game.ask(everybody, Situation(rows, known, margins, open_labels))
    return SimulationResult(measure_after, np.column_stack([measured[count] for count in measure_after]), asked)


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


def _break_even(truth: Bools, margins: Floats, k: Ints) -> Floats:
    """Precision of the k labels with the largest margins: those of the best set."""
    chosen = places(-margins) < k[:, None]
    return np.where(k > 0, (truth & chosen).sum(axis=1) / np.maximum(k, 1), np.nan)


def _checked_questions(questions: Iterable[int]) -> tuple[int, ...]:
    counts = tuple(int(count) for count in questions)
    if not counts or counts[0] < 0 or any(one >= two for one, two in pairwise(counts)):
        raise ValueError(f"questions: expected growing numbers >= 0, such as (0, 1, 5, 10), found {counts}")
    return counts
