"""Sums over all matchings of a matrix of weights, in reading order.

- :mod:`~slatewise.matching.sums.permanents`: the public functions, and which method they take.
- :mod:`~slatewise.matching.sums.exact`: exact sums over subsets, signs, rows of subsets, and few candidates.
- :mod:`~slatewise.matching.sums.bethe`: a lower bound for matrices of any size.
- :mod:`~slatewise.matching.sums.tied`: exact sums over rankings whose positions come in classes of equal weight.
- :mod:`~slatewise.matching.sums.sampling`: random matchings.
"""
