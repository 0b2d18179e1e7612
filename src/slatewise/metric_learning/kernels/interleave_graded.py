"""The most violated ranking for NDCG at k with graded relevance: a walk over the grid of counts.

    <W, psi(y)> = (1/Z) sum over the Z pairs with z_i > z_j of y_ij (s_i - s_j),    y_ij = 1: i before j, -1: behind
    Delta = 1 - DCG / DCG*,    DCG = sum_{p <= k} d_p (2^{z at p} - 1),    d_p = 1, 1, 1 / log2(3), 1 / log2(4), ..

With two grades this is the psi of metric learning to rank. An item x of grade r has in it the weight (others behind x)
- (others before x), counting the items of all other grades. That falls from the front to the back, so each grade is
handed out in score order, and a ranking is a path of counts n = (n_1, .., n_R), highest grade first, m_r items in each:

    V(n) = max over r of  V(n - e_r) + s[r, n_r] u_r(n) / Z - d_|n| gain_r / DCG*,    u_r(n) = sum_{q != r} m_q - 2 n_q

Behind position k no loss is left to gain, so the others follow in score order, where every pair of unlike grades adds
|s_i - s_j|: tables by grades and counts. O(R prod(min(m_r, k) + 1)) states; psi of the ideal ranking is linear in the
scores (no order inside a grade enters it), so the hinge is convex.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.running.kernel import kernel
from slatewise.metric_learning.kernels.interleave import Scores, Side, longest, new_bins, new_side, sort_falling

_GRADES = 128


class Graded(NamedTuple):
    """One list, its items by falling grade and score; a class is the items of one grade."""

    score: Floats
    item: Ints
    sums: Floats
    """Of the scores up to each item."""
    start: Ints
    """Where each class begins."""
    gain: Floats
    """Its gain over the ideal DCG."""
    stride: Ints
    """What one more of a class adds to the number of a state."""
    counts: Ints
    """The state, as counts."""


@kernel
def new_graded(n: int) -> Graded:
    """Allocate the work space for lists of up to n items."""
    classes = min(n, _GRADES)
    return Graded(
        np.empty(n),
        np.empty(n, np.int64),
        np.empty(n + 1),
        np.empty(classes + 1, np.int64),
        np.empty(classes),
        np.empty(classes + 1, np.int64),
        np.empty(classes, np.int64),
    )


@kernel
def open_graded(relevance: Bytes, side: Side, n: int, k: int, discount: Floats, number: Ints, out: Graded) -> int:
    """Deal the n falling items into classes, ``number`` gets the class of each grade; return how many there are."""
    for grade in range(_GRADES):
        number[grade] = 0
    for i in range(n):
        number[relevance[side.item[i]]] += 1
    n_classes, place, ideal = 0, 0, 0.0
    out.stride[0] = 1
    for grade in range(_GRADES - 1, -1, -1):
        count = number[grade]
        if count > 0:
            gain = 2.0**grade - 1.0
            for p in range(place, min(place + count, k)):
                ideal += gain * discount[p]
            out.start[n_classes], out.gain[n_classes], out.counts[n_classes] = place, gain, place
            out.stride[n_classes + 1] = out.stride[n_classes] * (min(count, k) + 1)
            number[grade] = n_classes
            place += count
            n_classes += 1
    out.start[n_classes] = n
    out.sums[0] = 0.0
    for i in range(n):
        r = number[relevance[side.item[i]]]
        place = out.counts[r]
        out.counts[r] += 1
        # Less the middle score, so that sums stay small.
        out.score[place], out.item[place] = side.score[i] - side.score[n >> 1], side.item[i]
    for i in range(n):
        out.sums[i + 1] = out.sums[i] + out.score[i]
    for r in range(n_classes):
        out.gain[r] = out.gain[r] / ideal if ideal > 0.0 else 0.0
    return n_classes


@kernel
def fill_gaps(first: Floats, second: Floats, most: int, row: Floats, table: Floats) -> None:
    """Fill ``table[a, b]``, a and b <= most: the sum of |s_i - s_j| over all but the a and b best of two classes."""
    n_rows, n_columns = min(len(first), most), min(len(second), most)
    total = 0.0
    for score in second:
        total += score
    for b in range(n_columns + 1):
        row[b], table[n_rows, b] = 0.0, 0.0
    split, above = len(second), total  # the first ``split`` of the second class lie above the score
    for i in range(len(first) - 1, -1, -1):
        own = first[i]
        while split > 0 and second[split - 1] <= own:
            split -= 1
            above -= second[split]
        gap = 2.0 * above - total + own * (len(second) - 2.0 * split)
        for b in range(n_columns + 1):
            row[b] += gap
            if i <= n_rows:
                table[i, b] = row[b]
            if b < n_columns:
                gap -= abs(own - second[b])


@kernel
def tail_score(work: Graded, n_classes: int, k: int, gaps: Floats) -> float:
    """Return Z <W, psi> of the items behind the state ``work.counts`` of k items."""
    total = 0.0
    for r in range(n_classes):
        taken = work.counts[r]
        total -= (k - taken) * (work.sums[work.start[r + 1]] - work.sums[work.start[r] + taken])
        for q in range(r):
            total += gaps[q, r, work.counts[q], taken]
    return total


@kernel
def walk(
    work: Graded, n_classes: int, k: int, pairs: float, discount: Floats, gaps: Floats, values: Floats, last: Bytes
) -> int:
    """Fill ``last``, the class of the item at position |n|, for all states of up to k items; return the best of k."""
    start, counts, stride = work.start, work.counts, work.stride
    n = start[n_classes]
    for r in range(n_classes):
        counts[r] = 0
    filled, best, at = 0, -np.inf, 0
    values[0] = 0.0
    for state in range(1, stride[n_classes]):
        wheel = 0  # the next state of an odometer whose first wheel turns fastest
        while counts[wheel] == min(start[wheel + 1] - start[wheel], k):
            filled -= counts[wheel]
            counts[wheel] = 0
            wheel += 1
        counts[wheel] += 1
        filled += 1
        if filled > k:
            continue
        value, chosen = -np.inf, -1
        for r in range(n_classes):
            if counts[r] > 0:
                weight = n - (start[r + 1] - start[r]) - 2 * (filled - counts[r])
                own = work.score[start[r] + counts[r] - 1] * weight / pairs - work.gain[r] * discount[filled - 1]
                if chosen < 0 or values[state - stride[r]] + own > value:
                    value, chosen = values[state - stride[r]] + own, r
        values[state], last[state] = value, chosen
        if filled == k:
            value += tail_score(work, n_classes, k, gaps) / pairs
            if at == 0 or value > best:
                best, at = value, state
    return at


@kernel
def write_front(work: Graded, k: int, state: int, unit: float, discount: Floats, last: Bytes, weights: Floats) -> float:
    """Fill the weights of the items on the first k positions, back along the walk; return the loss.

    A weight counts the items of other grades before an item, less those of higher grades, which belong there.
    """
    counts, lost = work.counts, 1.0
    for p in range(k, 0, -1):
        r = int(last[state])
        weights[work.item[work.start[r] + counts[r] - 1]] = unit * (p - counts[r] - work.start[r])
        lost -= work.gain[r] * discount[p - 1]
        counts[r] -= 1
        state -= work.stride[r]
    return max(lost, 0.0)


@kernel
def write_behind(
    work: Graded, relevance: Bytes, side: Side, number: Ints, n_classes: int, k: int, unit: float, weights: Floats
) -> None:
    """Fill the weights of the items behind the state ``work.counts``, in score order."""
    passed = np.zeros(n_classes, np.int64)
    n_passed = 0
    for i in range(work.start[n_classes]):
        r = number[relevance[side.item[i]]]
        if passed[r] >= work.counts[r]:
            others = (k - work.counts[r]) + (n_passed - (passed[r] - work.counts[r]))
            weights[side.item[i]] = unit * (others - work.start[r])
            n_passed += 1
        passed[r] += 1


@kernel
def graded_ndcg_block(scores: Scores, relevance: Bytes, offsets: Ints, k: int, losses: Floats, weights: Floats) -> None:
    """Fill the loss and the weights psi(y*) - psi(y) of each list; ``relevance`` holds grades, -1 leaves out."""
    longest_list = longest(offsets)
    side, bins, work = new_side(longest_list), new_bins(longest_list), new_graded(longest_list)
    number, row = np.empty(_GRADES, np.int64), np.empty(longest_list + 1)
    values, last, gaps = np.empty(1), np.empty(1, np.int8), np.empty((1, 1, 1, 1))
    discount = np.ones(longest_list)
    for p in range(2, longest_list):
        discount[p] = 1.0 / np.log2(p + 1.0)
    for index in range(len(losses)):
        n = 0
        for item in range(offsets[index], offsets[index + 1]):
            weights[item] = 0.0
            side.score[n], side.item[n] = scores[item], item
            n += relevance[item] >= 0
        sort_falling(side, n, bins)
        losses[index] = 0.0
        cut = min(k, n)
        n_classes = open_graded(relevance, side, n, cut, discount, number, work)
        if n_classes < 2:
            continue
        if work.stride[n_classes] > len(values):
            values, last = np.empty(work.stride[n_classes]), np.empty(work.stride[n_classes], np.int8)
        if n_classes > gaps.shape[0] or cut >= gaps.shape[2]:
            gaps = np.empty((n_classes, n_classes, cut + 1, cut + 1))
        pairs = float(n * n)
        for r in range(n_classes):
            mine = work.score[work.start[r] : work.start[r + 1]]
            pairs -= float(len(mine)) ** 2
            for q in range(r):
                fill_gaps(work.score[work.start[q] : work.start[q + 1]], mine, cut, row, gaps[q, r])
        pairs *= 0.5
        state = walk(work, n_classes, cut, pairs, discount, gaps, values, last)
        rest = state
        for r in range(n_classes - 1, -1, -1):
            work.counts[r] = rest // work.stride[r]
            rest -= work.counts[r] * work.stride[r]
        write_behind(work, relevance, side, number, n_classes, cut, 2.0 / pairs, weights)
        losses[index] = write_front(work, cut, state, 2.0 / pairs, discount, last, weights)
