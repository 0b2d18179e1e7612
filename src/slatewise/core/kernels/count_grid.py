"""Best matching of rows to columns when the rows fall into R classes: a walk over the grid of counts.

    f = sum_i s_i c[column of i] + b_i a[column of i],    b_i = b_r for all rows i of class r

Columns are walked by falling c. Inside a class only s tells rows apart, so a class hands out its rows by falling s, and
a state is how many rows of each class are gone. The state n = (n_1, .., n_R) has filled the first p = |n| columns:

    V(n) = max over r with n_r > 0 of  V(n - e_r) + s[r, n_r - 1] c[p - 1] + b_r a[p - 1]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.kernel import kernel


@kernel
def walk_counts(
    scores: Floats,
    starts: Ints,
    class_values: Floats,
    walk: Floats,
    partner: Floats,
    strides: Ints,
    values: Floats,
    last: NDArray[np.int8],
) -> None:
    """Fill ``values`` and ``last``, the class of the row in column p - 1, for every state.

    ``scores[starts[r] : starts[r + 1]]`` are those of class r, falling; ``walk`` and ``partner`` are c and a in the
    order of the walk; a state n has the number ``sum_r n_r strides[r]``.
    """
    n_classes = len(class_values)
    counts = np.zeros(n_classes, dtype=np.int64)
    filled = 0
    values[0], last[0] = 0.0, -1
    for state in range(1, len(values)):
        # The next state of an odometer whose first wheel turns fastest.
        wheel = 0
        while counts[wheel] == starts[wheel + 1] - starts[wheel]:
            filled -= counts[wheel]
            counts[wheel] = 0
            wheel += 1
        counts[wheel] += 1
        filled += 1
        c, a = walk[filled - 1], partner[filled - 1]
        best, chosen = -np.inf, -1
        for r in range(n_classes):
            if counts[r] > 0:
                value = values[state - strides[r]] + scores[starts[r] + counts[r] - 1] * c + class_values[r] * a
                if chosen < 0 or value > best:  # the first at any rate: NaN is never the larger
                    best, chosen = value, r
        values[state], last[state] = best, chosen
