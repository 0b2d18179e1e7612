"""Measures of ranked lists: explicit conventions, presets for other tools, significance. NumPy is all it imports.

The path of data: arrays (``lists``) or a run and judgments (``runs``) -> lists in order -> who stands above and beside
each relevant item (``standings``) -> the ranks it may take under a tie rule (``hits``) -> one value per list.

conventions                where tools disagree: ties, gains, discounts, empty and short lists, labels
measure                    the base class: conventions, checks, names, one value per list
precision                  Precision, Recall, BreakEven
average_precision, reciprocal_rank, ndcg, auc   AP; RR; NDCG and MeanNDCG; AUC and MeanRank
presets                    the conventions of trec_eval, scikit-learn, LightGBM, XGBoost, CatBoost, LETOR
evaluate                   several measures at once, and the scikit-learn scorer
significance               paired bootstrap, randomization test
lists, runs, standings, hits   the steps of the path above
kernels/                   compiled standings
"""

from slatewise.metrics.auc import AUC, MeanRank
from slatewise.metrics.average_precision import AP
from slatewise.metrics.evaluate import PerQuery, evaluate, evaluate_queries, evaluate_run, scorer
from slatewise.metrics.measure import Measure
from slatewise.metrics.ndcg import NDCG, MeanNDCG
from slatewise.metrics.precision import BreakEven, Precision, Recall
from slatewise.metrics.presets import Preset, parse, preset
from slatewise.metrics.reciprocal_rank import RR
from slatewise.metrics.significance import (
    Bootstrap,
    Randomisation,
    paired_bootstrap,
    randomisation_test,
)

__all__ = [
    "AP",
    "AUC",
    "NDCG",
    "RR",
    "Bootstrap",
    "BreakEven",
    "MeanNDCG",
    "MeanRank",
    "Measure",
    "PerQuery",
    "Precision",
    "Preset",
    "Randomisation",
    "Recall",
    "evaluate",
    "evaluate_queries",
    "evaluate_run",
    "paired_bootstrap",
    "parse",
    "preset",
    "randomisation_test",
    "scorer",
]
