"""What a ranker is trained for: the ``loss`` of :class:`slatewise.MetricRanker` and :class:`slatewise.MarginRanker`.

A ranking of P relevant and N irrelevant items loses between 0 and 1. r_1 < .. < r_P are the ranks, from 1, of the
relevant items, and t of them are among the first k' = min(k, P + N). Tied items count in their worst order.
"""

from __future__ import annotations

from slatewise.core.declarations import Settings, param
from slatewise.core.rules import FINITE, NONE, count

_K = count()
_K_TEXT = "The number of first ranks that count."
_THRESHOLD = FINITE | NONE
_THRESHOLD_TEXT = "The smallest relevance that counts as relevant. None: as the estimator documents."


class AUC(Settings, shorthand="auc"):
    """The share of pairs in the wrong order: sum of (r_i - i) / PN."""

    threshold: float | None = param(_THRESHOLD, _THRESHOLD_TEXT, default=None)


class Precision(Settings, shorthand="precision"):
    """One minus the precision of the first k ranks: 1 - t / min(k', P)."""

    k: int = param(_K, _K_TEXT, default=10)
    threshold: float | None = param(_THRESHOLD, _THRESHOLD_TEXT, default=None)


class MAP(Settings, shorthand="map"):
    """One minus average precision: 1 - (1/P) sum of i / r_i."""

    threshold: float | None = param(_THRESHOLD, _THRESHOLD_TEXT, default=None)


class MRR(Settings, shorthand="mrr"):
    """One minus the reciprocal rank of the first relevant item: 1 - 1 / r_1."""

    threshold: float | None = param(_THRESHOLD, _THRESHOLD_TEXT, default=None)


class NDCG(Settings, shorthand="ndcg"):
    """One minus NDCG of the first k ranks, with LETOR's discount d(1) = d(2) = 1, d(r) = 1 / log2(r).

    1 - (1/D) sum of d(r_i) over r_i <= m, with m = min(k, P) and D = d(1) + .. + d(m).
    """

    k: int = param(_K, _K_TEXT, default=10)
    threshold: float | None = param(_THRESHOLD, _THRESHOLD_TEXT, default=None)


class KNN(Settings, shorthand="knn"):
    """The error of a vote of the k nearest: 1 if 2t <= k', a vote lost or tied, else 0."""

    k: int = param(_K, "The number of items that vote.", default=3)
    threshold: float | None = param(_THRESHOLD, _THRESHOLD_TEXT, default=None)


TrainingLoss = AUC | Precision | MAP | MRR | NDCG | KNN


def cutoff_of(loss: TrainingLoss) -> int | None:
    """Return the number of first ranks that a loss looks at; None for a loss of the whole ranking."""
    return None if isinstance(loss, AUC | MAP | MRR) else int(loss.k)
