"""The most violated rankings of many lists at once, in plain torch on any device: what ``kernels/`` does list by list.

Scores of a list become whole numbers, the *depth* below its best one in steps of 2^-30 of its range, so that one sort
of integers puts relevant items first, irrelevant ones behind them, and those left out last, each part by score:

    key = depth | 2^30 + depth | 2^31 - 1

A ranking is then x_j, the relevant items before the j-th best irrelevant one, or m_l, the irrelevant ones before the
l-th best relevant one; both rise, so a binary search turns one into the other. The ranking found is the most violated
one of the rounded scores. Its loss and weights are exact, so the cut they make is a true one, and of the hinge it
misses at most 2^-28 of the range of the scores.

Average precision (``kernels/interleave_map.py``) needs for every j the best x of

    f_j(x) = price (x c_j - C_x) - H_{x+j} - (j - 1) / (x + j) ,    C_x = c_1 + .. + c_x ,    H_t = 1 + 1/2 + .. + 1/t

which is G_j(x) up to a constant, in closed form: sum_{l <= x} l / ((l+j)(l+j-1)) = H_{x+j} - H_j - (1 - 1/j) x/(x+j).
``fused.py`` finds it by divide and conquer, here every x is tried. C_x is a sum of integers: exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

torch: Any = import_module("torch")
Tensor: TypeAlias = Any

BAD = 1 << 30
LAST = (1 << 31) - 1
LEVELS = BAD - 2
ROUNDING = 2.0**-28
"""Share of the range of a list's scores by which its hinge may be too small."""
_TRIED = 1 << 22


class Lists(NamedTuple):
    """Lists of equal length, sorted."""

    key: Tensor
    """(B, n) int32, rising."""
    order: Tensor
    """(B, n) which item stands at each place."""
    n_good: Tensor
    """(B, 1) relevant items."""
    n_bad: Tensor
    """(B, 1) irrelevant ones."""
    step: Tensor
    """(B, 1) the score that one step of depth is worth."""
    most_good: int
    """Of any list."""


class Harmonic(NamedTuple):
    """Tables over t = 0, 1, .."""

    sums: Tensor
    """H_t."""
    inverse: Tensor
    """1/t."""


Conquer: TypeAlias = Callable[[Lists, Tensor, Tensor, Harmonic], Tensor]
"""Lists, C_x (B, P + 1) and price times step (B, 1) -> (B, n) x of each irrelevant item, at its place."""


def sort_lists(scores: Tensor, relevance: Tensor) -> Lists:
    """Sort scores (B, n) by side; relevance is 1, 0 or -1."""
    bottom, top = scores.aminmax(dim=1, keepdim=True)
    step = (top - bottom) / LEVELS
    step = step.where((step > 0.0) & step.isfinite(), 1.0)
    key = ((top - scores) / step).nan_to_num_(0.0).round_().clamp_(0, LEVELS).to(torch.int32)
    key.add_((relevance == 0).to(torch.int32), alpha=BAD).masked_fill_(relevance < 0, LAST)
    n_good, n_bad = ((relevance == side).sum(dim=1, keepdim=True) for side in (1, 0))
    key, order = key.sort(dim=1, stable=True)
    return Lists(key, order, n_good, n_bad, step, int(n_good.max()))


def harmonic(n: int, device: Any) -> Harmonic:
    """Make the tables up to n."""
    inverse = 1.0 / torch.arange(n + 1, dtype=torch.float64).clamp_(min=0.5)
    inverse[0] = 0.0
    return Harmonic(inverse.cumsum(dim=0).to(device), inverse.to(device))


def auc_before(lists: Lists, tables: Harmonic, conquer: Conquer) -> Tensor:
    """Return x: every pair decides alone, see ``kernels/interleave_auc.py``."""
    goods = lists.key[:, : lists.most_good].contiguous()  # what else is in it is deeper than any relevant item
    half = ((lists.key - BAD) - 0.5 / lists.step).floor_().clamp_(min=-1).to(torch.int32)
    return torch.searchsorted(goods, half, right=True, out_int32=True)


def map_before(lists: Lists, tables: Harmonic, conquer: Conquer) -> Tensor:
    """Return the best x."""
    depth = lists.key[:, : lists.most_good].to(torch.int64)
    sums = torch.nn.functional.pad(depth.cumsum(dim=1), (1, 0))
    return conquer(lists, sums, 2.0 * lists.step / lists.n_bad.clamp(min=1), tables)


def try_all(lists: Lists, sums: Tensor, price: Tensor, tables: Harmonic) -> Tensor:
    """Return the best x by trying all of them: the twin of ``fused.conquer``."""
    count, n = lists.key.shape
    x = torch.arange(lists.most_good + 1, device=sums.device)
    allowed = x <= lists.n_good
    found = torch.zeros((count, n), dtype=torch.int64, device=sums.device)
    at_once = max(1, _TRIED // (count * len(x)))
    for first in range(0, n, at_once):
        place = torch.arange(first, min(first + at_once, n), device=sums.device)
        j = (place - lists.n_good + 1).clamp_(1, n)[:, :, None]
        depth = (lists.key[:, place] - BAD).to(torch.int64)[:, :, None]
        t = (x + j).clamp_(max=len(tables.sums) - 1)
        value = price[:, :, None] * (x * depth - sums[:, None]) - tables.sums[t] - (j - 1) * tables.inverse[t]
        found[:, place] = value.masked_fill_(~allowed[:, None], -torch.inf).argmax(dim=2)
    # Rounding may let equal ones fall back; what is no irrelevant item is not looked at.
    found.masked_fill_(torch.arange(n, device=sums.device) < lists.n_good, 0)
    return found.cummax(dim=1).values.to(torch.int32)


def auc_loss(m: Tensor, rank: Tensor, lists: Lists) -> Tensor:
    """Return the pairs in the wrong order, as a share of all."""
    return m.sum(dim=1, keepdim=True) / (lists.n_good * lists.n_bad).clamp(min=1)


def map_loss(m: Tensor, rank: Tensor, lists: Lists) -> Tensor:
    """Return one minus the average precision."""
    return (m / (rank + m)).sum(dim=1, keepdim=True) / lists.n_good.clamp(min=1)


class Loss(NamedTuple):
    """How one loss finds x, and what it loses then."""

    before: Callable[[Lists, Harmonic, Conquer], Tensor]
    of: Callable[[Tensor, Tensor, Lists], Tensor]
    """m (B, P) with zeros where a list has fewer, ranks 1 .. P among the relevant ones, lists -> (B, 1)."""


LOSSES: Mapping[str, Loss] = {"auc": Loss(auc_before, auc_loss), "map": Loss(map_before, map_loss)}


def most_violated(
    loss: Loss, scores: Tensor, relevance: Tensor, tables: Harmonic, conquer: Conquer
) -> tuple[Tensor, Tensor]:
    """Return the loss (B,) of the most violated ranking of each list, and its weights (B, n) psi(0) - psi(m)."""
    lists = sort_lists(scores, relevance)
    P, N, n = lists.n_good, lists.n_bad, scores.shape[1]
    place = torch.arange(n, device=scores.device)
    x = loss.before(lists, tables, conquer)
    # Rising over all places: -1 at relevant items, x at irrelevant ones, more than that at what is left out.
    x = x.masked_fill_(place < P, -1).masked_fill_(place >= P + N, LAST)
    rank = place[: lists.most_good]
    m = torch.searchsorted(x, rank.to(torch.int32).expand(len(x), -1).contiguous(), right=True) - P
    m = m.masked_fill_((rank >= P) | (N == 0), 0).to(scores.dtype)
    lost = loss.of(m, rank + 1, lists)[:, 0]
    moved = (x - P).masked_fill_(place >= P + N, 0).to(scores.dtype)
    moved[:, : lists.most_good] = torch.where(rank < P, m, moved[:, : lists.most_good])
    pairs = (P * N).to(scores.dtype)
    moved *= torch.where(pairs > 0.0, 2.0 / pairs, 0.0)
    return lost, torch.empty_like(scores).scatter_(1, lists.order, moved)
