"""Misordered pairs of graded lists, without looking at pairs: two sweeps over the sorted scores, O(n log n) per list.

    loss    = #{(i, j): grade_i > grade_j, s_i - s_j < 1/2} / pairs
    weights : +2 / pairs for i, -2 / pairs for j, of every such pair;     pairs = #{(i, j): grade_i > grade_j}

Going down the sorted scores, a Fenwick tree over grades holds the items whose score lies above ``s_i - 1/2``; going up,
those whose score lies below ``s_j + 1/2``. A prefix of the tree counts the wrong partners of the item at hand.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.kernel import kernel


@kernel
def _insert(tree: Ints, grade: Ints) -> None:
    place = grade + 1
    while place < len(tree):
        tree[place] += 1
        place += place & -place


@kernel
def _count_below(tree: Ints, grade: Ints) -> int:
    total = 0
    place = grade
    while place > 0:
        total += tree[place]
        place -= place & -place
    return int(total)


@kernel
def ordered_pairs_block(scores: Floats, grades: Ints, offsets: Ints, losses: Floats, weights: Floats) -> None:
    """Fill the loss of every list and the weight of every item; ``grades`` are numbers 0, 1, .. inside each list."""
    for q in range(len(offsets) - 1):
        first, n = offsets[q], offsets[q + 1] - offsets[q]
        losses[q] = 0.0
        weights[first : first + n] = 0.0
        if n == 0:
            continue
        s, grade, weight = scores[first : first + n], grades[first : first + n], weights[first : first + n]
        n_grades = grade.max() + 1
        sizes = np.zeros(n_grades, dtype=np.int64)
        for i in range(n):
            sizes[grade[i]] += 1
        pairs, lower = 0, 0
        for size in sizes:
            pairs += size * lower
            lower += size
        if pairs == 0:
            continue
        order = np.argsort(s)
        tree = np.zeros(n_grades + 1, dtype=np.int64)
        wrong, inserted = 0, n
        for place in range(n - 1, -1, -1):  # as the better item of a pair
            i = order[place]
            while inserted > 0 and s[i] - s[order[inserted - 1]] < 0.5:
                inserted -= 1
                _insert(tree, grade[order[inserted]])
            below = _count_below(tree, grade[i])
            wrong += below
            weight[i] += below
        tree[:] = 0
        inserted = 0
        for place in range(n):  # as the worse item of a pair
            j = order[place]
            while inserted < n and s[order[inserted]] - s[j] < 0.5:
                _insert(tree, grade[order[inserted]])
                inserted += 1
            weight[j] -= inserted - _count_below(tree, grade[j] + 1)
        losses[q] = wrong / pairs
        for i in range(n):
            weight[i] *= 2.0 / pairs
