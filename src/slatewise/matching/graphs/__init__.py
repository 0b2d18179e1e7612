"""Matching the points of two graphs, in reading order.

- :mod:`~slatewise.matching.graphs.edges`: graphs of one shape as blocks, and how parameters score edges.
- :mod:`~slatewise.matching.graphs.inference`: the best matching, sums over all of them, and samples.
- :mod:`~slatewise.matching.graphs.risks`: the likelihood and the hinge of known matchings; parts of few rows.
- :mod:`~slatewise.matching.graphs.fit`: training by either risk, and the choice of the strength.
- :mod:`~slatewise.matching.graphs.matcher`: :class:`slatewise.GraphMatcher`.
"""
