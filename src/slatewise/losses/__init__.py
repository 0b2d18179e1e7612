"""Losses of a ranking: those that rankers are trained for (``training``), and linear ones (``linear``, ``precision``).

:class:`AUC`, :class:`Precision`, :class:`MAP`, :class:`MRR`, :class:`NDCG` and :class:`KNN` are the ``loss`` of
:class:`slatewise.MetricRanker` and :class:`slatewise.MarginRanker`. The others are linear in the ranking:

    Delta(Pi, z) = <Pi a, b(z)>,    (Pi a)_i = a[position of item i]

Such a loss is two vectors: what a position weighs, ``a``, and what an item of relevance z costs there, ``b(z)``.
Loss-augmented inference adds ``b a'`` to the item-by-position scores
(:func:`slatewise.inference.linear_loss_ranking`, the ``linear`` term of
:func:`slatewise.inference.quadratic_ranking`); for precision at k it only shifts the item scores
(:meth:`PrecisionLoss.augmented`).
"""

from slatewise.losses.linear import DCGLoss, LinearLoss, ReciprocalRankLoss, Vectors, WinnerLoss
from slatewise.losses.precision import PrecisionLoss
from slatewise.losses.training import AUC, KNN, MAP, MRR, NDCG, Precision

__all__ = [
    "AUC",
    "KNN",
    "MAP",
    "MRR",
    "NDCG",
    "DCGLoss",
    "LinearLoss",
    "Precision",
    "PrecisionLoss",
    "ReciprocalRankLoss",
    "Vectors",
    "WinnerLoss",
]
