"""Training by the hinge of precision at k: CStarMarginRanker, in reading order.

unary      features of single labels, by rows: linear, a kernel, or given scores; and their coefficients
problem    lists with target sets, and the hinge over them
solvers    block-coordinate Frank-Wolfe, cutting planes, subgradient steps
choice     C, the weight of G, and the core, by break-even precision on folds
training   from unary features to a fit, with its checkpoint

:func:`slatewise.cstar.margin.training.train` is the way in; it returns a :class:`Trained`.
"""
