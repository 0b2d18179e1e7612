"""Metric learning to rank (McFee and Lanckriet 2010), and linear ranking by the same losses, in reading order.

- :mod:`~slatewise.metric_learning.distance`: scores by a learned distance, and the search by it.
- :mod:`~slatewise.metric_learning.relevance`: which items are relevant to which query.
- :mod:`~slatewise.metric_learning.oracle`: the most violated ranking of a list, for every loss; ``kernels/`` has one
  file per loss.
- :mod:`~slatewise.metric_learning.cone`: the matrices among which W is sought.
- :mod:`~slatewise.metric_learning.hinge`: the hinge of a distance as a sum over blocks of queries; ``gpu/`` sums it on
  a GPU.
- :mod:`~slatewise.metric_learning.solver`: descent on a factor of W, and cuts that prove how good it is.
- :mod:`~slatewise.metric_learning.problem`: from checked points and settings to features, oracle and hinge.
- :mod:`~slatewise.metric_learning.ranker`: :class:`slatewise.MetricRanker`.
- :mod:`~slatewise.metric_learning.margin_hinge`, :mod:`~slatewise.metric_learning.margin_ranker`: the hinge of lists of
  rows, and :class:`slatewise.MarginRanker`.

Data goes from points and labels (``ranker``) to a relevance, features and a hinge (``problem``), to W (``solver``), to
the mapped catalog that queries are ranked in (``distance``).
"""
