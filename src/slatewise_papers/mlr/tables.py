"""The tables of McFee and Lanckriet (2010): nearest neighbors by a learned distance, and retrieval by example.

*Nearest neighbors.* Error of 3 nearest neighbors in percent, mean and standard error over ten 80/20 splits (Isolet:
its own split by speakers; only a quarter of the paper's training speakers is at hand, so its figures do not compare).
Loss, C, k, regularizer and the scaling of features are chosen inside the training rows, by every method that has them.
Two rows choose the loss, and whether there is a kernel, too, and are to be compared with NCA and MLCC: one takes the
best setting on validation, the other the mean distance of the best few.
Ionosphere is not at hand. LMNN is quoted: the package that had it does not run under a current scikit-learn.

*Retrieval.* eHarmony's matches are not public; mutual matches at speed dating, and drawings of the same character,
stand in (:mod:`slatewise_papers.mlr.retrieval`).

*Documents.* The same oracles with vector features, against LETOR's own ranking SVM
(:mod:`slatewise_papers.mlr.documents`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from slatewise import losses
from slatewise.core.running.progress import track
from slatewise.metric_learning.ranker import MetricRanker
from slatewise.report import points
from slatewise_papers.framework.reproduction import Figure, Published, Reproduction, Row
from slatewise_papers.framework.running import over_splits
from slatewise_papers.framework.statistics import mean_and_error
from slatewise_papers.mlr.data import SEED, UCI, ClassProblem, Fold, Scaling, inner_folds, load_problem
from slatewise_papers.mlr.documents import DOCUMENTS, document_rows
from slatewise_papers.mlr.knn import (
    Method,
    collapsing_classes,
    error_on_test,
    euclidean,
    kernel_metric_ranking,
    metric_ranking,
    neighborhood_components,
    ranked_settings,
    scaled_each_way,
)
from slatewise_papers.mlr.retrieval import RETRIEVAL, retrieval_rows

BEST = "MLR, best on validation"
FEW = 5
MEAN = f"MLR, mean distance of the {FEW} best on validation"
PAPER = Published(
    ("uci-balance", "uci-wdbc", "uci-wine", "uci-isolet"),
    {
        "MLR-AUC": (7.9, 2.7, 1.4, 4.5),
        "MLR-P@k": (8.2, 2.9, 1.5, 4.5),
        "MLR-MAP": (6.9, 2.6, 1.0, 5.5),
        "MLR-MRR": (8.2, 2.6, 1.5, 4.5),
        "MLR-NDCG": (8.2, 2.9, 1.6, 4.4),
        "LMNN": (8.8, 2.4, 1.7, 4.7),
        "NCA": (4.6, 2.6, 2.7, 10.8),
        "MLCC": (5.5, 2.1, 1.1, 4.4),
        "Euclidean": (10.3, 3.1, 3.1, 8.1),
    },
)
WHOLE = (0.01, 0.1, 1.0, 10.0)
"""Strengths for losses over the whole list; those of its top see fewer items, and need more."""
TOP = (0.1, 1.0, 10.0, 100.0)
QUICK = (1.0, 10.0)


def run(data: str | None = None, quick: bool = False, seed: int = SEED) -> Reproduction:
    """Run the tables, or the one of a named data set or of a file of rows with classes; ``quick``: a part of each.

    The seed is that of the splits of rows with classes; the other tables have their own.
    """
    names = (*UCI, *RETRIEVAL, *DOCUMENTS) if data is None else (data,)
    rows: list[Row] = []
    figures: list[Figure] = []
    for name in track(names, "data set"):
        if name in RETRIEVAL:
            rows += retrieval_rows(name, quick)
        elif name in DOCUMENTS:
            rows += document_rows(name, quick)
        else:
            problem = load_problem(name)
            problem = problem.smaller() if quick else problem
            rows += knn_rows(problem, quick, seed)
            figures.append(before_and_after(problem, seed))
    return Reproduction("metric learning to rank, both tables", ", ".join(names), rows, figures=figures)


def before_and_after(problem: ClassProblem, seed: int) -> Figure:
    """Draw test rows of the first split in two dimensions: principal components, and the learned distance."""
    fold = next(iter(problem.folds(seed)))
    fold = fold.mapped(problem.scalings[0](fold.X))
    learned = MetricRanker("auc", tol=1e-2).fit(fold.X, fold.y).transform(fold.X_test)
    _, _, directions = np.linalg.svd(fold.X, full_matrices=False)
    panels = {
        "two principal components": np.pad(fold.X_test @ directions[:2].T, ((0, 0), (0, 2)))[:, :2].tolist(),
        "two directions of the learned distance": np.pad(learned, ((0, 0), (0, 2)))[:, :2].tolist(),
    }
    classes = [str(label) for label in fold.y_test]
    return points(panels, classes), f"{problem.name}: test rows before and after (MLR-AUC, C=1)."


def knn_rows(problem: ClassProblem, quick: bool, seed: int) -> list[Row]:
    """Return one row a method: its error on the test rows, and what the paper printed."""
    errors = over_splits(
        problem.folds(seed),
        lambda fold: errors_of_split(fold, problem.scalings, quick).items(),
        f"{problem.name}: split",
        problem.n_splits,
    )
    if problem.name in PAPER.columns:
        errors["LMNN"] = [np.nan]  # quoted only
    rows: list[Row] = []
    for name, values in errors.items():
        printed = (PAPER.of(name) or {}).get(problem.name)
        published = None if printed is None else {"error": printed}
        rows.append(Row(f"{problem.name}: {name}", mean_and_error("error", values), published))
    return rows


def errors_of_split(fold: Fold, scalings: Sequence[Scaling], quick: bool) -> dict[str, float]:
    """Choose on folds of the training rows, and return each method's error on the test rows in percent."""
    outer = scaled_each_way(fold, scalings)
    inner = [scaled_each_way(part, scalings) for part in islice(inner_folds(fold), 2 if quick else None)]
    judged = {method: ranked_settings(method, inner) for method in _methods(int(fold.X.shape[1]), quick)}
    ours = sorted((one for each in judged.values() for one in each if one.method.ours), key=lambda one: one.others)
    tested = {method.name: error_on_test(settings[:1], outer) for method, settings in judged.items()}
    return tested | {BEST: tested[ours[0].method.name], MEAN: error_on_test(ours[:FEW], outer)}


def _methods(n_features: int, quick: bool) -> list[Method]:
    whole, top = (QUICK, QUICK) if quick else (WHOLE, TOP)
    ks = (3,) if quick else (3, 10)
    return [
        euclidean(),
        neighborhood_components(n_features),
        collapsing_classes(QUICK if quick else (1.0, 10.0, 100.0)),
        metric_ranking("MLR-AUC", lambda k: "auc", whole),
        metric_ranking("MLR-P@k", losses.Precision, top),
        metric_ranking("MLR-MAP", lambda k: "map", whole),
        metric_ranking("MLR-MRR", lambda k: "mrr", top),
        metric_ranking("MLR-NDCG", losses.NDCG, top, ks),
        kernel_metric_ranking("MLR-AUC, rbf kernel", lambda k: "auc", (10.0,) if quick else (10.0, 100.0), (0.2, 1.0)),
    ]
