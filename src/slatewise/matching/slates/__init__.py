"""Ranking documents by matchings with positions, in reading order.

- :mod:`~slatewise.matching.slates.slates`: the settings, rated lists, and how slates are drawn from them.
- :mod:`~slatewise.matching.slates.likelihood`: RankMatch, the likelihood of slates and of whole lists.
- :mod:`~slatewise.matching.slates.hinge`: DORM, the hinge of slates and of whole lists.
- :mod:`~slatewise.matching.slates.training`: from settings to a problem, fits averaged over draws, the choice of l2.
- :mod:`~slatewise.matching.slates.ranker`: :class:`slatewise.MatchingRanker`.
"""
