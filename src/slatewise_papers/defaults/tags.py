"""Labels with default settings: ``CStarRanker().fit(X, Y)`` beside one logistic regression per label.

Break-even precision in percent, with the number of relevant labels known. The logistic regressions are what
scikit-learn's ``StandardScaler`` and ``LogisticRegression`` give with no argument, all labels fitted at once. Their
out-of-fold log-odds are what the likelihood adjusts: with the default ``C``, with the same number on the mean over rows
(what it meant before it was per row), and by validation. The same fit on X in another unit shows that none is needed.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from slatewise import metrics
from slatewise.core.arrays import Ints
from slatewise.core.running.progress import track
from slatewise.cstar.ranker import CStarRanker
from slatewise_papers.cstar.data import LabelProblem, load_problem
from slatewise_papers.cstar.likelihood import LikelihoodGivenK
from slatewise_papers.cstar.scores import fit_logistic
from slatewise_papers.framework.arrays import folds, out_of_fold, standardized
from slatewise_papers.framework.reproduction import Row
from slatewise_papers.framework.running import over_splits
from slatewise_papers.framework.statistics import mean_and_error

FOLDS = {"corel5k_tagprop": 1, "mulan_yeast": 5, "mulan_emotions": 5}
"""How many of five folds are run: one of the large set."""
UNIT = 1e-6


def rows(quick: bool, seed: int) -> list[Row]:
    """Run all data sets; ``quick``: one fold, fewer rows and labels."""
    found: list[Row] = []
    for name, n_folds in track((*FOLDS.items(),), "data set"):
        problem = load_problem(name)
        if quick:
            problem = problem.smaller()
        found += problem_rows(problem, 1 if quick else n_folds, seed)
    return found


def problem_rows(problem: LabelProblem, n_folds: int, seed: int) -> list[Row]:
    """Return the mean over folds, and its standard error where there are several, of every system."""
    cuts = list(folds(len(problem.X), seed=seed))[:n_folds]
    per_fold = over_splits(cuts, lambda cut: _systems(problem, *cut).items(), "fold")
    return [
        Row(f"{problem.name}: {system}", mean_and_error("break-even precision", [100.0 * one for one in values]), None)
        for system, values in per_fold.items()
    ]


def _systems(problem: LabelProblem, train: Ints, test: Ints) -> dict[str, float]:
    X, Y, X_test, Y_test = problem.X[train], problem.Y[train], problem.X[test], problem.Y[test]
    standard, standard_test = standardized(X, X_test)
    logistic = partial(fit_logistic, C=1.0)
    given, given_test = out_of_fold(logistic, standard, Y), logistic(standard, Y)(standard_test)
    some = Y_test.any(axis=1)

    def likelihood(C: float | Literal["auto"]) -> float:
        return LikelihoodGivenK(C=C).fit(given, Y).score(given_test, Y_test)

    by_default = CStarRanker().fit(X, Y)
    return {
        "one-vs-rest logistic": metrics.BreakEven()(Y_test[some], given_test[some]),
        "CStarRanker()": by_default.score(X_test, Y_test),
        "CStarRanker(), number of labels not known": by_default.score(X_test, Y_test, count_known=False),
        f"CStarRanker() on {UNIT:g} X": CStarRanker().fit(UNIT * X, Y).score(UNIT * X_test, Y_test),
        "likelihood-k on logistic, C=1 of the mean": likelihood(1.0 / len(Y)),
        "likelihood-k on logistic, C=1 per row": likelihood(1.0),
        "likelihood-k on logistic, C by validation": likelihood("auto"),
    }
