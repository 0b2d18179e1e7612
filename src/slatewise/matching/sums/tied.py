"""Sums over rankings when positions come in classes of equal weight: polynomial, so whole queries can be summed.

    Z = sum over rankings of exp(sum_i c[pos_i] s_i),    c constant on classes of m_1 .. m_R positions

Which item has which position inside a class makes no difference: Z is prod_r m_r! times a sum over the ways to deal the
items out to the classes, O(R prod_r (m_r + 1)). See ``kernels/permanent_tied.py``. With three classes and
more, where it saves work, counts too unlikely to matter are left out, some sqrt(n) of n counts of a class remain, and
what that may cost is known (``kernels/tied_counts.py``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import bounded, real

MOST_STATES = 1 << 31
"""More states than this are refused: minutes of work."""
TAIL = 1e-19
"""Counts of a class are left out, from below and from above, that weigh no more than this together."""
MOST_LEFT_OUT = 1e-13
"""If that may be more of Z than this, nothing is left out."""
MOST_BUFFER = 1 << 24
"""Nor of a class whose likely counts take more numbers than this to find (128 MiB)."""
_SWEEPS = 12


class TiedSum(NamedTuple):
    """The sum over rankings with tied positions."""

    log_z: float
    marginals: Floats
    """(n, R) the probability that item i has one of class r's positions; one position of it has 1/m_r of that."""
    error: float
    """How much ``log_z`` and a marginal can be off by what was left out; rounding comes on top."""


def tied_log_sum(scores: ArrayLike, class_sizes: ArrayLike, class_values: ArrayLike) -> TiedSum:
    """Return log Z and the probability of each item's class.

    Parameters
    ----------
    scores : (n,)
        Item scores s, at most 1e50 in size, as the values.
    class_sizes : (R,)
        How many positions each class has; they add up to n.
    class_values : (R,)
        The weight c of a class's positions. The gradient of log Z by the scores is ``marginals @ class_values``.

    Examples
    --------
    Three items for one position of weight 1 and two of weight 0:

    >>> result = tied_log_sum(np.log([1.0, 2.0, 5.0]), [1, 2], [1.0, 0.0])
    >>> np.exp(result.log_z).round(6), result.marginals[:, 0]
    (np.float64(16.0), array([0.125, 0.25 , 0.625]))
    """
    s, sizes, values = _checked(scores, class_sizes, class_values)
    n, kept = len(s), np.flatnonzero(sizes > 0)
    marginals = np.zeros((n, len(sizes)))
    # The largest class is not kept track of, the second largest lies along memory.
    by_size = kept[np.argsort(-sizes[kept], kind="stable")]
    order = np.concatenate((by_size[:1], by_size[2:], by_size[1:2]))
    within = math.fsum(math.lgamma(size + 1) for size in sizes.tolist())
    if len(order) == 1:
        marginals[:, order[0]] = 1.0
        return TiedSum(within + float(values[order[0]] * s.sum()), marginals, 0.0)
    log_z, marginals[:, order], error = _sum(s, sizes[order], values[order])
    return TiedSum(within + log_z, marginals, error)


def _sum(s: Floats, sizes: Ints, values: Floats) -> TiedSum:
    from slatewise.matching.kernels.permanent_tied import scale_classes

    best = _best_classes(s, sizes, values)[:, None]
    log_x = _priced(s, sizes, values)
    # Scores of 1e20 round by thousands: held to what prices promise, an item's best class weighs 1 and no other more.
    x = np.exp(np.minimum(log_x - np.take_along_axis(log_x, best, axis=1), 0.0))
    np.put_along_axis(x, best, 1.0, axis=1)
    log_scale = math.fsum((s * values[best[:, 0]]).tolist()) + scale_classes(x, sizes, _SWEEPS)
    # An item's work: with two classes, or one large and others tiny, the walk is done before the likely counts are.
    walk, narrowing = math.prod((sizes[1:] + 1).tolist()), int((sizes + 2).sum())
    left_out, *bounds = _counts(x, sizes, TAIL if len(sizes) > 2 and walk > narrowing else 0.0)
    z, marginals = _walk(x, sizes, *bounds)
    if left_out > MOST_LEFT_OUT * z:
        left_out, *bounds = _counts(x, sizes, 0.0)
        z, marginals = _walk(x, sizes, *bounds)
    return TiedSum(math.log(z) + log_scale, marginals, left_out / z)


def _counts(x: Floats, sizes: Ints, tail: float) -> tuple[float, Ints, Ints]:
    """Return the lowest and the highest count of each class after each item, (R, n + 1), and what others weigh."""
    from slatewise.matching.kernels.tied_counts import likely_counts

    n, left_out = len(x), 0.0
    after, all_of_class = np.arange(n + 1, dtype=np.int64), sizes[:, None]
    lows, highs = np.maximum(0, all_of_class - (n - after)), np.minimum(all_of_class, after)
    if tail > 0.0:
        for r, size in enumerate(sizes.tolist()):
            if (n + 1) * (size + 2) > MOST_BUFFER:
                continue
            inside, others = np.ascontiguousarray(x[:, r]), np.delete(x, r, axis=1).sum(axis=1)
            ahead, behind = np.empty((n + 1, size + 2)), np.empty((2, size + 2))
            left_out += likely_counts(inside, others, tail, ahead, behind, lows[r], highs[r])
    return left_out, lows, highs


def _walk(x: Floats, sizes: Ints, lows: Ints, highs: Ints) -> tuple[float, Floats]:
    """Return Z and the marginals, from the counts between the bounds."""
    from slatewise.matching.kernels.permanent_tied import Buffers, Grid, longest_layer, sum_classes

    n, between = len(x), sizes[1:-1]
    counts = _counts_of_all(between)
    strides = np.array([math.prod((between[r + 1 :] + 1).tolist()) for r in range(len(between))], dtype=np.int64)
    grid = Grid(counts, strides, lows, highs)
    layer = longest_layer(grid)
    stretch = math.isqrt(n // 4) + 1  # the layers of a stretch are used often and should stay in the cache
    buffers = Buffers(np.empty((-(-n // stretch), layer)), np.empty((stretch, layer)), np.empty((2, layer)))
    marginals = np.empty(x.shape)
    return sum_classes(x, grid, buffers, marginals), marginals


def _counts_of_all(sizes: Ints) -> Ints:
    """Return every way to have 0 .. m_r items in each class, the last class fastest, and a last column with the sum."""
    counts = np.zeros((1, 0), dtype=np.int64)
    for size in sizes.tolist():
        again = np.tile(np.arange(size + 1, dtype=np.int64), len(counts))
        counts = np.column_stack((np.repeat(counts, size + 1, axis=0), again))
    return np.ascontiguousarray(np.column_stack((counts, counts.sum(axis=1))))


def _best_classes(s: Floats, sizes: Ints, values: Floats) -> Ints:
    """Return the class of each item in the best ranking, which gives larger values to larger scores."""
    order = np.argsort(-values, kind="stable")
    best = np.empty(len(s), dtype=np.int64)
    best[np.argsort(-s, kind="stable")] = np.repeat(order, sizes[order])
    return best


def _priced(s: Floats, sizes: Ints, values: Floats) -> Floats:
    """Return log weights, up to a constant per item, with a price per class: no item gains by leaving its best class.

    In the best ranking a class meets the next at one score. Prices are added up from where that is least, so that
    classes of very large or small scores take no digits from those between.
    """
    order, ranked = np.argsort(-values, kind="stable"), -np.sort(-s)
    middle = float(ranked[len(ranked) // 2])
    ends = np.cumsum(sizes[order])[:-1]
    meeting = (ranked[ends - 1] - middle) / 2.0 + (ranked[ends] - middle) / 2.0
    steps = (values[order[:-1]] - values[order[1:]]) * meeting
    least = int(np.argmin(np.abs(steps)))
    prices = np.zeros(len(sizes))
    prices[order[least + 1 :]] = np.cumsum(steps[least:])
    prices[order[:least]] = -np.cumsum(steps[:least][::-1])[::-1]
    return np.outer(s - middle, values - values[order[least]]) + prices


def _checked(scores: ArrayLike, class_sizes: ArrayLike, class_values: ArrayLike) -> tuple[Floats, Ints, Floats]:
    s = bounded("scores", scores)
    if s.ndim != 1 or len(s) == 0:
        raise ValueError(f"scores: expected one finite number per item, found shape {s.shape}")
    sizes = real("class_sizes", class_sizes)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any() or sizes.sum() != len(s):
        raise ValueError(f"class_sizes: expected whole numbers >= 0 that add up to {len(s)}, found {sizes.tolist()}")
    values = bounded("class_values", class_values)
    if values.shape != sizes.shape:
        raise ValueError(f"class_values: expected {len(sizes)} finite numbers, found shape {values.shape}")
    states = math.prod((sizes + 1).tolist())
    if states > MOST_STATES:
        raise ValueError(f"class_sizes: expected at most {MOST_STATES} states, found {states}: {sizes.tolist()}")
    return s, sizes.astype(np.int64), values
