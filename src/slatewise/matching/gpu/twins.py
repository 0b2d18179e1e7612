"""Sums over matchings in plain torch, on any device: the twins of ``fused.py``, and what both share.

    perm(B)             = 2^{1-M} sum_delta (prod_j delta_j) prod_i r_i,   r = B delta, delta in {-1, 1}^M, delta_0 = 1
    d perm / d B_ij     = 2^{1-M} sum_delta delta_j L_i,                   L_i = (prod_j delta_j) prod_{k != i} r_k

(Glynn 2010.) The columns are cut into *low* and *high*. For one pattern of high signs the sum of L_i over all low signs
is one number per row, T_i; so sum_delta delta_j L_i, for a high column j, is a sum of T_i with signs over the patterns.
For the low columns the same is done once more with the columns the other way round.

Entries of B are whole multiples of 2^-52 and rows sum to 1, so each r is exact, in any order of its sum: rounding is
left to the products and to their sum.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

torch: Any = import_module("torch")
Tensor: TypeAlias = Any

GRAIN = 2.0**-52


class Backend(NamedTuple):
    """The two sums that a kernel may do: plain torch here, Triton in ``fused.py``."""

    signs: Callable[[Tensor, int], Tensor]
    """(B, M, M) columns and the number of low ones -> (B, 2^high, M + 2): T, sum of terms, sum of their sizes."""
    subsets: Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]
    """(B, M, M) log weights -> z (B,), offset (B,), marginals (B, M, M); log Z is log z + offset."""
    most_subsets: int
    """M up to which ``subsets`` takes any number of matrices at once."""


class SignSums(NamedTuple):
    """Glynn's sums, all times 2^{M-1}."""

    value: Tensor
    size: Tensor
    """(B,) the sum of the terms' sizes."""
    gradient: Tensor
    """(B, M, M) by row and column."""
    off: Tensor
    """(B,) how far the values of the two orders of columns are apart."""


def sum_all_signs(weights: Tensor, low: int, signs: Callable[[Tensor, int], Tensor]) -> SignSums:
    """Sum over all sign vectors of matrices (B, M, M) of whole grains; ``low`` is at most half of M - 1."""
    count, size, _ = weights.shape
    last = size - 1
    turned = [0, *range(last - low + 1, size), *range(1, last - low + 1)]
    columns = weights.transpose(1, 2)
    parts = signs(torch.cat((columns, columns[:, turned])).contiguous(), low)
    parts = parts * parity(last - low, weights.device)[:, None]
    sums = torch.empty((2 * count, size - low, size), dtype=weights.dtype, device=weights.device)
    sizes = parts[:, :, -1].abs().sum(dim=1)
    parts = parts[:, :, :-1]
    for high in range(last - low, 0, -1):  # halves of the patterns: in the second the sign is -1
        plus, minus = parts.chunk(2, dim=1)
        sums[:, high] = (plus - minus)[:, :, :size].sum(dim=1)
        parts = plus + minus
    sums[:, 0], values = parts[:, 0, :size], parts[:, 0, size]
    gradient = torch.cat((sums[:count, :1], sums[count:, 1 : low + 1], sums[:count, 1:]), dim=1)
    return SignSums(values[:count], sizes[:count], gradient.transpose(1, 2), (values[:count] - values[count:]).abs())


def signed_sums(columns: Tensor) -> Tensor:
    """Return sums of k columns (B, k, M) under all signs, (B, 2^k, M): bit b of a pattern set is minus column b."""
    sums = torch.zeros((len(columns), 1, columns.shape[2]), dtype=columns.dtype, device=columns.device)
    for b in range(columns.shape[1]):
        sums = torch.cat((sums + columns[:, b : b + 1], sums - columns[:, b : b + 1]), dim=1)
    return sums


def parity(n_columns: int, device: Any) -> Tensor:
    """Return the product of the signs of each pattern, (2^k,)."""
    signs = torch.ones(1, dtype=torch.float64, device=device)
    for _ in range(n_columns):
        signs = torch.cat((signs, -signs))
    return signs


def torch_signs(columns: Tensor, low: int) -> Tensor:
    """Sum over the low signs in plain torch: all sign vectors of a few high patterns at a time."""
    count, size, _ = columns.shape
    lows = signed_sums(columns[:, 1 : low + 1])
    highs = columns[:, :1] + signed_sums(columns[:, low + 1 :])
    signs = parity(low, columns.device)[:, None]
    out = torch.empty((count, highs.shape[1], size + 2), dtype=columns.dtype, device=columns.device)
    at_once = max(1, (1 << 20) // (count * size << low))
    for first in range(0, highs.shape[1], at_once):
        some = slice(first, first + at_once)
        r = lows[:, None] + highs[:, some, None]
        ones = torch.ones_like(r[..., :1])
        before = torch.cat((ones, r[..., :-1]), dim=-1).cumprod(dim=-1)
        after = torch.cat((ones, r[..., 1:].flip(-1)), dim=-1).cumprod(dim=-1).flip(-1)
        terms = signs * (before[..., -1:] * r[..., -1:])
        out[:, some, :size] = (signs * before * after).sum(dim=2)
        out[:, some, size:] = torch.cat((terms, terms.abs()), dim=-1).sum(dim=2)
    return out


def torch_subsets(log_weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Walk the subsets of columns in plain torch, layer by layer; see ``kernels/permanent_subsets.py``."""
    count, size, _ = log_weights.shape
    largest = log_weights.amax(dim=2)
    weights = (log_weights - largest[:, :, None]).exp().permute(1, 2, 0)
    alpha = torch.zeros((1 << size, count), dtype=weights.dtype, device=weights.device)
    beta = torch.zeros_like(alpha)
    alpha[0] = beta[-1] = 1.0
    found = torch.empty_like(weights)
    for i in range(size):
        sets, columns = (torch.tensor(part, device=weights.device) for part in layer(size, i + 1))
        alpha[sets] = (weights[i][columns] * alpha[sets[:, None] ^ (1 << columns)]).sum(dim=1)
    for i in range(size - 1, -1, -1):
        left, columns = (torch.tensor(part, device=weights.device) for part in layer(size, size - i))
        sets = (1 << size) - 1 - left
        beta[sets] = (weights[i][columns] * beta[sets[:, None] | (1 << columns)]).sum(dim=1)
        for j in range(size):
            free = sets[(sets >> j) & 1 == 0]
            found[i, j] = (alpha[free] * beta[free | (1 << j)]).sum(dim=0)
    z = alpha[-1]
    return z, largest.sum(dim=1), (weights * found / z).permute(2, 0, 1)


@cache
def layer(size: int, count: int) -> tuple[list[int], list[list[int]]]:
    """Return the sets of ``count`` of ``size`` columns as numbers, and the columns of each."""
    members = [list(chosen) for chosen in combinations(range(size), count)]
    return [sum(1 << j for j in chosen) for chosen in members], members


TORCH = Backend(torch_signs, torch_subsets, 0)
