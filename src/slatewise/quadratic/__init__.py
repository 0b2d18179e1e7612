"""Quadratic ranking: items whose scores depend on where other items are, in reading order.

- :mod:`~slatewise.quadratic.form`: the score of a ranking, its gradient, and an upper bound.
- :mod:`~slatewise.quadratic.solvers`: the best ranking of few items or by subsets; Frank-Wolfe and tabu search.
- :mod:`~slatewise.quadratic.ranking`: :func:`slatewise.inference.quadratic_ranking`, which chooses among them.
- :mod:`~slatewise.quadratic.slates`: the best slate of a whole catalog whose items attract each other.
- :mod:`~slatewise.quadratic.hinge`, :mod:`~slatewise.quadratic.fit`: learning a model of items and pairs.
"""
