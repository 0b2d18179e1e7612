"""Task losses that are linear in the ranking, and how each folds into inference.

    Delta(Pi, z) = <Pi a, b(z)>,    (Pi a)_i = a[position of item i]

A loss is two vectors: what a position weighs, ``a``, and what an item of relevance z costs there, ``b(z)``.
Loss-augmented inference adds ``b a'`` to the item-by-position scores
(:func:`slatewise.inference.linear_loss_ranking`, the ``linear`` term of
:func:`slatewise.inference.quadratic_ranking`); for precision at k it only shifts the item scores
(:meth:`PrecisionLoss.augmented`).
"""

from slatewise.losses.dcg import DCGLoss
from slatewise.losses.linear import LinearLoss, Vectors
from slatewise.losses.precision import PrecisionLoss
from slatewise.losses.reciprocal_rank import ReciprocalRankLoss
from slatewise.losses.winner import WinnerLoss

__all__ = ["DCGLoss", "LinearLoss", "PrecisionLoss", "ReciprocalRankLoss", "Vectors", "WinnerLoss"]
