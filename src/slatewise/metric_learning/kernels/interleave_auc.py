"""The most violated ranking for the area under the ROC curve.

    Delta(m) = (1/PN) sum_i m_i,    m_i = #{j : v_j + 1/2 > s_i}

Every pair decides alone: the irrelevant item goes first where the loss that brings, 1/PN, exceeds the score it costs,
2 (s_i - v_j) / PN. So irrelevant items are never sorted, only looked up among the relevant ones.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.running.kernel import kernel
from slatewise.metric_learning.kernels.interleave import (
    Scores,
    count_at_least,
    longest,
    new_bins,
    new_search,
    new_side,
    sort_falling,
    split,
)


@kernel
def auc_block(scores: Scores, relevance: Bytes, offsets: Ints, k: int, losses: Floats, weights: Floats) -> None:
    """Fill the loss and the weights psi(0) - psi(m) of each list; ``k`` is not used."""
    n = longest(offsets)
    good, bins, ahead = new_side(n), new_bins(n), np.empty(n + 1, np.int64)
    for number in range(len(losses)):
        low, high = offsets[number], offsets[number + 1]
        n_good, n_bad = split(scores, relevance, low, high, 1, good), 0
        for item in range(low, high):
            n_bad += relevance[item] == 0
            weights[item] = 0.0
        losses[number] = 0.0
        if n_good == 0 or n_bad == 0:
            continue
        sort_falling(good, n_good, bins)
        search = new_search(good.score, n_good, bins.start)
        for i in range(n_good + 1):
            ahead[i] = 0
        unit = 2.0 / (n_good * n_bad)
        for item in range(low, high):
            if relevance[item] == 0:
                over = count_at_least(scores[item] + 0.5, good.score, bins.start, search)
                ahead[over] += 1
                weights[item] = unit * (over - n_good)
        before, total = 0, 0
        for i in range(n_good):
            before += ahead[i]
            total += before
            weights[good.item[i]] = unit * before
        losses[number] = total / (n_good * n_bad)
