"""The parameter ``base`` of a LatentRanker: which ranker of sessions it means, and that ranker fitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from slatewise.core.rules import NONE, Rule, one_of
from slatewise.data.records import Sessions
from slatewise.factors.input import Ids, LatentPairs, SessionsSoFar
from slatewise.sessions.blend import SessionBlend
from slatewise.sessions.estimator import SessionModel, with_further

BASE = Rule("a SessionBlend, SessionNeighbors or SessionCooccurrence", lambda value: isinstance(value, SessionModel))
BASE = one_of("auto") | NONE | BASE


def is_without_base(base: Any, so_far: SessionsSoFar) -> bool:
    """Say whether sums of these sessions' items are all there is: baskets have no base unless they are given one."""
    return base is None or (so_far.window is None and not isinstance(base, SessionModel))


def fitted_base(base: Any, pairs: LatentPairs, n_jobs: int | None) -> SessionModel | None:
    """Fit a copy of the base on the sessions that pairs are of; None where there is none."""
    so_far = pairs.sessions
    if so_far is None:
        if isinstance(base, SessionModel):
            raise ValueError(f"base: expected 'auto' or None where queries are no sessions, found {base!r}")
        return None
    if is_without_base(base, so_far):
        return None
    chosen = fresh(base) if isinstance(base, SessionModel) else SessionBlend(n_jobs=n_jobs)
    return chosen.fit(Sessions(pairs.item_ids[so_far.items], so_far.offsets))


def added_to(base: SessionModel, pairs: LatentPairs, n_jobs: int | None) -> SessionModel:
    """Return a base that has learnt from further sessions too; the one given stays as it is."""
    so_far = pairs.sessions
    if so_far is None:
        return base
    return with_further(base, Sessions(pairs.item_ids[so_far.items], so_far.offsets), n_jobs)


def fresh(base: SessionModel) -> SessionModel:
    """Return a base with the same parameters that has learnt nothing."""
    return type(base)(**base.get_params(deep=False))


def check_base(base: Any, item_ids: Ids, of_sessions: bool) -> None:
    """Raise ValueError unless a base out of a file is one, of the same items."""
    if base is None:
        return
    if not isinstance(base, SessionModel) or not of_sessions:
        raise ValueError(f"base_: expected a ranker of sessions, and only for sessions, found {type(base).__name__}")
    if not np.array_equal(base.item_ids_, item_ids):
        raise ValueError(f"base_: expected the {len(item_ids)} items of the ranker, found others")


def described(base: SessionModel | None) -> Any:
    """Return a base in a form that can be hashed: its name and parameters."""
    if base is None:
        return None
    params = sorted((name, value) for name, value in base.get_params(deep=False).items() if name != "n_jobs")
    return [type(base).__name__, *(part for pair in params for part in pair)]
