"""The best list, or sums over all lists, for every model of the family."""

from slatewise.inference.star import StarMarginals, StarResult, star_max_marginals, star_top_k

__all__ = ["StarMarginals", "StarResult", "star_max_marginals", "star_top_k"]
