"""When to stop asking: whether a promise of 95% is kept, and how many questions that takes.

Five random splits per data set, 80% to learn from and 20% to play with an annotator who is always right; a fifth of the
training rows is held out and calibrates the rule (:func:`slatewise.labeling.calibrate_stopping`). The number of
right labels is unknown, and nothing is chosen here: ``CStarRanker()`` has default settings, and the question is always
the most probable label.

missed        of the rows that were stopped, % with a relevant label that was neither answered nor shown, and its 95%
              interval over splits: at most 5 is promised
before half   of all rows, % that were stopped before half of the labels were answered
stopped       % that were stopped before all labels were answered or shown
wrong shown   labels per row that are shown and not relevant: only where labels are proposed

Systems: all labels answered; the log-odds of single labels (the base that the c-star learned, product of 1 - p over
unanswered labels), and the c-star; each stopped at 95% by its own probabilities, and calibrated; then with proposals,
where labels more likely than not are shown and need no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from slatewise.core.arrays import Floats
from slatewise.cstar.base.logistic import LinearLogOdds
from slatewise.cstar.ranker import CStarRanker
from slatewise.labeling import GivenLogOdds, LabelRanker, StoppingRule, calibrate_stopping, simulate_stopping
from slatewise_papers.cstar.data import LabelProblem, load_problem
from slatewise_papers.framework.reproduction import Reproduction, Row
from slatewise_papers.framework.running import over_sets, over_splits
from slatewise_papers.framework.statistics import with_interval

SEED, SPLITS, CONFIDENCE, PROPOSE = 4001, 5, 0.95, 0.5
QUICK_SEED = 17
"""Of ``--quick``, which tests and trials use, so that they never see the splits of the table."""
DATA = (
    "mulan_scene",
    "mulan_yeast",
    "corel5k_tagprop",
    "mulan_bibtex",
    "mulan_emotions",
    "mulan_birds",
    "mulan_enron",
    "mulan_cal500",
)
"""The first four were expected, on other splits, to stop half of their rows before half of the labels were answered."""


class Simulated(NamedTuple):
    """What one split gave."""

    missed: float
    before_half: float
    stopped: float
    mean_questions: float
    median_questions: float
    wrong: float


class Scored(NamedTuple):
    """Rows as a model takes them."""

    model: LabelRanker
    calibrating: Floats
    new: Floats


def run(data: str | None = None, quick: bool = False, seed: int | None = None) -> Reproduction:
    """Run all data sets, or the one that ``data`` names; ``quick``: one split of fewer rows and labels of two sets."""
    first = (QUICK_SEED if quick else SEED) if seed is None else seed
    seeds = range(first, first + (1 if quick else SPLITS))

    def rows_of(name: str) -> list[Row]:
        problem = load_problem(name)
        return problem_rows(problem.smaller() if quick else problem, seeds)

    return over_sets("when to stop asking", DATA[:2] if quick else DATA, data, rows_of)


def problem_rows(problem: LabelProblem, seeds: Sequence[int]) -> list[Row]:
    """Return the figures of every system, means over splits, and what the c-star saves."""
    found = over_splits(seeds, lambda seed: _systems(problem, seed).items(), f"split of {problem.name}")
    table = [Row(f"{problem.name}: {system}", _figures(splits), None) for system, splits in found.items()]
    for kind in ("", ", proposals"):
        both = zip(found[f"single labels{kind}, calibrated"], found[f"c-star{kind}, calibrated"], strict=True)
        saved = [one.mean_questions - other.mean_questions for one, other in both]
        name = f"{problem.name}: single labels minus c-star{kind}, calibrated"
        table.append(Row(name, _with_interval("mean questions", saved), None))
    return table


def _systems(problem: LabelProblem, seed: int) -> dict[str, Simulated]:
    order = np.random.default_rng(seed).permutation(len(problem.X))
    n_new = len(order) // 5
    n_calibrating = (len(order) - n_new) // 5
    new, calibrating, train = np.split(order, [n_new, n_new + n_calibrating])
    ranker = CStarRanker(random_state=0).fit(problem.X[train], problem.Y[train])
    base = LinearLogOdds(ranker.base_coef_, ranker.base_intercept_)
    single = Scored(
        GivenLogOdds(problem.Y.shape[1]), base.log_odds(problem.X[calibrating]), base.log_odds(problem.X[new])
    )
    star = Scored(ranker, problem.X[calibrating], problem.X[new])
    known, truth = problem.Y[calibrating], problem.Y[new]
    found = {"all labels answered": _simulated(single, truth, StoppingRule(CONFIDENCE, None, 1.0))}
    for name, scored in (("single labels", single), ("c-star", star)):
        found[f"{name}, uncalibrated"] = _simulated(scored, truth, StoppingRule(CONFIDENCE))
        for kind, propose in (("", None), (", proposals", PROPOSE)):
            rule = calibrate_stopping(scored.model, scored.calibrating, known, CONFIDENCE, propose=propose)
            found[f"{name}{kind}, calibrated"] = _simulated(scored, truth, rule)
    return found


def _simulated(scored: Scored, truth: Floats, rule: StoppingRule) -> Simulated:
    found = simulate_stopping(scored.model, scored.new, truth, rule).summary()
    return Simulated(
        100.0 * found["missed"],
        100.0 * found["before half"],
        100.0 * found["stopped"],
        found["mean questions"],
        found["median questions"],
        found["wrong labels shown"],
    )


def _figures(splits: Sequence[Simulated]) -> dict[str, float]:
    means, missed = np.mean(splits, axis=0), _with_interval("missed", [split.missed for split in splits])
    return {
        **{name: max(value, 0.0) for name, value in missed.items()},
        "before half": float(means[1]),
        "stopped": float(means[2]),
        "mean questions": float(means[3]),
        "median questions": float(means[4]),
        "wrong shown": float(means[5]),
    }


def _with_interval(name: str, values: Sequence[float]) -> dict[str, float]:
    """Return the mean over splits, and its 95% interval by Student's t where there are several."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return {name: mean}
    half = float(student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return with_interval(name, mean, half)
