"""Latent factors: tables of vectors, WARP training in stages, search for the learning rate, scoring.

settings    the public settings objects
tables, pairs, bags, queries    the rows that learn, and the vectors of queries made from them
engine, blocked, sampled, gpu_engine    one epoch over the pairs
stages, search, checkpoint, fitting    all epochs of all stages, and the search for learning rates
model, batch, cascade, among, explanation, staged    what was learned, and ranking with it
growth    a further epoch on further pairs
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
