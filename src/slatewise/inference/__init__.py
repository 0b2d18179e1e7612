"""The best list, or sums over all lists, for every model of the family. Names load on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slatewise.inference.assignment import LinearRanking, linear_loss_ranking
    from slatewise.inference.interleave import MostViolated, most_violated
    from slatewise.inference.permanents import Permanent, permanent, tied_permanent, with_unmatched
    from slatewise.inference.quadratic import QuadraticRanking, quadratic_ranking
    from slatewise.inference.samplers import MatchingSamples, sample_matchings
    from slatewise.inference.slates import Slates, beam_slates, greedy_slates, iterated_slates
    from slatewise.inference.star import StarMarginals, StarResult, UnprovenWarning, star_max_marginals, star_top_k
    from slatewise.inference.star_rankings import StarRanking, star_permutation
    from slatewise.inference.star_sums import star_log_odds
    from slatewise.inference.tied import TiedSum, tied_log_sum

__all__ = [
    "LinearRanking",
    "MatchingSamples",
    "MostViolated",
    "Permanent",
    "QuadraticRanking",
    "Slates",
    "StarMarginals",
    "StarRanking",
    "StarResult",
    "TiedSum",
    "UnprovenWarning",
    "beam_slates",
    "greedy_slates",
    "iterated_slates",
    "linear_loss_ranking",
    "most_violated",
    "permanent",
    "quadratic_ranking",
    "sample_matchings",
    "star_log_odds",
    "star_max_marginals",
    "star_permutation",
    "star_top_k",
    "tied_log_sum",
    "tied_permanent",
    "with_unmatched",
]

_HOMES = {
    "LinearRanking": "assignment",
    "MatchingSamples": "samplers",
    "MostViolated": "interleave",
    "Permanent": "permanents",
    "QuadraticRanking": "quadratic",
    "Slates": "slates",
    "StarMarginals": "star",
    "StarRanking": "star_rankings",
    "StarResult": "star",
    "TiedSum": "tied",
    "UnprovenWarning": "star",
    "beam_slates": "slates",
    "greedy_slates": "slates",
    "iterated_slates": "slates",
    "linear_loss_ranking": "assignment",
    "most_violated": "interleave",
    "permanent": "permanents",
    "quadratic_ranking": "quadratic",
    "sample_matchings": "samplers",
    "star_log_odds": "star_sums",
    "star_max_marginals": "star",
    "star_permutation": "star_rankings",
    "star_top_k": "star",
    "tied_log_sum": "tied",
    "tied_permanent": "permanents",
    "with_unmatched": "permanents",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'slatewise.inference' has no attribute {name!r}")
    value = getattr(import_module(f"slatewise.inference.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
