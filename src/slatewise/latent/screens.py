"""The screens of a LatentRanker's items: made when few queries first need them, let go with the factors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from slatewise.latent.screen import Screen
from slatewise.latent.tables import Singles
from slatewise.latent.top_k import FEW_QUERIES, ITEMS_A_SHARE

if TYPE_CHECKING:
    from slatewise.latent.ranker import LatentRanker


@dataclass(frozen=True, eq=False)
class _Made:
    factors: Singles
    screens: dict[str, Screen | None]


_MADE: WeakKeyDictionary[LatentRanker, _Made] = WeakKeyDictionary()
"""Not attributes of a ranker, so that they are not copied with it."""


def screen_of(
    ranker: LatentRanker, factors: Singles, name: str, n_queries: int, make: Callable[[Singles], Screen | None]
) -> Screen | None:
    """Return the screen of this name; None where a product is as fast, or where rows are not finite."""
    if n_queries > FEW_QUERIES or factors.shape[1] < ITEMS_A_SHARE:
        return None
    made = _MADE.get(ranker)
    if made is None or made.factors is not factors:
        made = _MADE[ranker] = _Made(factors, {})
    if name not in made.screens:
        made.screens[name] = make(factors)
    return made.screens[name]


def forget_screens(ranker: LatentRanker) -> None:
    """Let go of screens whose factors the ranker no longer has."""
    _MADE.pop(ranker, None)
