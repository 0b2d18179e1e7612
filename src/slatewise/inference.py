"""The best list, or sums over all lists, for every model of the family. Names load on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slatewise._lazy import lazy_getattr

if TYPE_CHECKING:
    from slatewise.core.numerics.assignment import LinearRanking, linear_loss_ranking
    from slatewise.cstar.inference.any_size import (
        SubsetInformation,
        subset_information,
        subset_log_odds,
        subset_log_partition,
        subset_marginals,
        subset_none,
    )
    from slatewise.cstar.inference.best_set import (
        StarMarginals,
        StarResult,
        UnprovenWarning,
        star_max_marginals,
        star_top_k,
    )
    from slatewise.cstar.inference.decisions import BestSubsets, best_subset, f1_subset, subset_sizes
    from slatewise.cstar.inference.fixed_size import star_log_odds
    from slatewise.cstar.inference.permutation import StarRanking, star_permutation
    from slatewise.matching.sums.permanents import Permanent, permanent, tied_permanent, with_unmatched
    from slatewise.matching.sums.sampling import MatchingSamples, sample_matchings
    from slatewise.matching.sums.tied import TiedSum, tied_log_sum
    from slatewise.metric_learning.oracle import MostViolated, most_violated
    from slatewise.quadratic.ranking import QuadraticRanking, quadratic_ranking
    from slatewise.quadratic.slates import Slates, beam_slates, greedy_slates, iterated_slates

__all__ = [
    "BestSubsets",
    "LinearRanking",
    "MatchingSamples",
    "MostViolated",
    "Permanent",
    "QuadraticRanking",
    "Slates",
    "StarMarginals",
    "StarRanking",
    "StarResult",
    "SubsetInformation",
    "TiedSum",
    "UnprovenWarning",
    "beam_slates",
    "best_subset",
    "f1_subset",
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
    "subset_information",
    "subset_log_odds",
    "subset_log_partition",
    "subset_marginals",
    "subset_none",
    "subset_sizes",
    "tied_log_sum",
    "tied_permanent",
    "with_unmatched",
]

_HOMES = {
    "BestSubsets": "slatewise.cstar.inference.decisions",
    "LinearRanking": "slatewise.core.numerics.assignment",
    "MatchingSamples": "slatewise.matching.sums.sampling",
    "MostViolated": "slatewise.metric_learning.oracle",
    "Permanent": "slatewise.matching.sums.permanents",
    "QuadraticRanking": "slatewise.quadratic.ranking",
    "Slates": "slatewise.quadratic.slates",
    "StarMarginals": "slatewise.cstar.inference.best_set",
    "StarRanking": "slatewise.cstar.inference.permutation",
    "StarResult": "slatewise.cstar.inference.best_set",
    "SubsetInformation": "slatewise.cstar.inference.any_size",
    "TiedSum": "slatewise.matching.sums.tied",
    "UnprovenWarning": "slatewise.cstar.inference.best_set",
    "beam_slates": "slatewise.quadratic.slates",
    "best_subset": "slatewise.cstar.inference.decisions",
    "f1_subset": "slatewise.cstar.inference.decisions",
    "greedy_slates": "slatewise.quadratic.slates",
    "iterated_slates": "slatewise.quadratic.slates",
    "linear_loss_ranking": "slatewise.core.numerics.assignment",
    "most_violated": "slatewise.metric_learning.oracle",
    "permanent": "slatewise.matching.sums.permanents",
    "quadratic_ranking": "slatewise.quadratic.ranking",
    "sample_matchings": "slatewise.matching.sums.sampling",
    "star_log_odds": "slatewise.cstar.inference.fixed_size",
    "star_max_marginals": "slatewise.cstar.inference.best_set",
    "star_permutation": "slatewise.cstar.inference.permutation",
    "star_top_k": "slatewise.cstar.inference.best_set",
    "subset_information": "slatewise.cstar.inference.any_size",
    "subset_log_odds": "slatewise.cstar.inference.any_size",
    "subset_log_partition": "slatewise.cstar.inference.any_size",
    "subset_marginals": "slatewise.cstar.inference.any_size",
    "subset_none": "slatewise.cstar.inference.any_size",
    "subset_sizes": "slatewise.cstar.inference.decisions",
    "tied_log_sum": "slatewise.matching.sums.tied",
    "tied_permanent": "slatewise.matching.sums.permanents",
    "with_unmatched": "slatewise.matching.sums.permanents",
}

__getattr__ = lazy_getattr(globals(), _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
