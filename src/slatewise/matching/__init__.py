"""Exact sums over matchings: RankMatch, graph matching, permanents (Petterson et al. 2009)."""
