"""The best list, or sums over all lists, for every model of the family. Names load on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slatewise.inference.assignment import LinearRanking, linear_loss_ranking
    from slatewise.inference.quadratic import QuadraticRanking, quadratic_ranking
    from slatewise.inference.star import StarMarginals, StarResult, star_max_marginals, star_top_k
    from slatewise.inference.star_permutation import StarRanking, star_permutation

__all__ = [
    "LinearRanking",
    "QuadraticRanking",
    "StarMarginals",
    "StarRanking",
    "StarResult",
    "linear_loss_ranking",
    "quadratic_ranking",
    "star_max_marginals",
    "star_permutation",
    "star_top_k",
]

_HOMES = {
    "LinearRanking": "assignment",
    "QuadraticRanking": "quadratic",
    "StarMarginals": "star",
    "StarRanking": "star_permutation",
    "StarResult": "star",
    "linear_loss_ranking": "assignment",
    "quadratic_ranking": "quadratic",
    "star_max_marginals": "star",
    "star_permutation": "star_permutation",
    "star_top_k": "star",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'slatewise.inference' has no attribute {name!r}")
    value = getattr(import_module(f"slatewise.inference.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
