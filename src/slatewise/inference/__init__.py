"""The best list, or sums over all lists, for every model of the family."""

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
