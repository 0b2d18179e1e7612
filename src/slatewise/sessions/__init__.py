"""Next items of sessions, by similar sessions, by counts, by a blend of both and by factors.

estimator    what the models without training share
neighbors, cooccurrence, blend    these models
ranker    SessionRanker: factors beside a base
tuning, cross_fit    settings chosen on the last sessions; scores of sessions that a model has not seen
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slatewise._lazy import lazy_getattr

if TYPE_CHECKING:
    from slatewise.sessions.ranker import Blend

__all__ = ["Blend"]

__getattr__ = lazy_getattr(globals(), {"Blend": "slatewise.sessions.ranker"})


def __dir__() -> list[str]:
    return sorted(__all__)
