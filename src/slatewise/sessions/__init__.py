"""Next items of sessions, by similar sessions, by counts, by a blend of both, and by factors beside such a base.

estimator        SessionModel: fit, partial_fit and predictions of the models without training
sparse_scores    scorers of few items per query: rankings, ranks of targets, normalized scores
tuning           settings that are "auto", chosen on the last sessions
neighbors        SessionNeighbors: the items of the most similar sessions
cooccurrence     SessionCooccurrence: counts of items near each other
blend            SessionBlend: the probability of the next item given both; a part of SessionRanker
problem          what factors learn from: pairs of a history and its next item, out-of-fold scores of the base
ranker           SessionRanker: factors beside a base

Sessions are numbered by ``recommend.histories``; ``problem`` makes pairs of them, ``factors`` learns, and ``ranker``
keeps the arrays and ranks.
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
