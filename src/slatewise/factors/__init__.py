"""Latent factors: tables of vectors, WARP training in stages, search for the learning rate, ranking.

settings        the public settings objects, and the settings of one fit
tables          float32 rows with AdaGrad, and their mean over an epoch
pairs           training pairs, pairs held out, blocks of a step
offsets         amounts added to a score beside the product of vectors, by a base
queries         the vectors of queries: of ids, of features
bags            the same of the items of a session or basket; what repeated items get
pair_terms      how a list moves an item; the vectors of queries with lists
engines/        one epoch over the pairs: blocked, sampled, on a GPU
scoring         the k best items of the catalog, stage after stage
stages          all epochs of all stages
learner         a whole fit: the search for learning rates, and its checkpoint
growth          a further epoch on further pairs
ranking         the frozen model, batches of queries, explanations, the methods of recommenders
kernels/, gpu/  compiled loops

The path of the data: pairs -> learner -> stages -> engine -> tables -> ranking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slatewise._lazy import lazy_getattr

if TYPE_CHECKING:
    from slatewise.factors.settings import AUC, Blocked, Factors, Gpu, Sampled, Stages, Warp

__all__ = ["AUC", "Blocked", "Factors", "Gpu", "Sampled", "Stages", "Warp"]

__getattr__ = lazy_getattr(globals(), dict.fromkeys(__all__, "slatewise.factors.settings"))


def __dir__() -> list[str]:
    return sorted(__all__)
