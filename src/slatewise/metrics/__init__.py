"""Measures of ranked lists: explicit conventions, presets for other tools, significance. NumPy is all it imports."""

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
