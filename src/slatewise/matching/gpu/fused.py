# type: ignore  (kernels are written in Triton's language, of which Python's types know nothing)
"""Sums over matchings on a GPU, in float64: Triton kernels each with its plain torch in ``twins.py``.

``sum_signs``: Glynn's formula (2010) over the signs of the low columns, one program per pattern of the high ones.

    T_i = sum over low signs of (prod_j delta_j) prod_{k != i} r_k,     r_i = sum_j B_ij delta_j

Threads (*lanes*) stand for the signs of the first low columns; those of the others (*steps*) are walked in Gray-code
order, where a step adds a row of ``changes`` to r. Rows go four at a time: a pass up keeps the product of each four and
of all before, a pass down multiplies what is before, after and beside each row, 4 operations per row and sign vector.
Everything lies in registers; nothing is added by two programs, so the bits are the same in every run.

``sum_subsets``: one thread per small matrix walks the subsets of its columns, all terms positive.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from slatewise.matching.gpu.twins import Backend, Tensor, parity, signed_sums

torch: Any = import_module("torch")
triton: Any = import_module("triton")
tl: Any = import_module("triton.language")


@triton.jit
def sum_signs(
    lanes,
    parity,
    changes,
    highs,
    out,
    HIGHS,
    M: tl.constexpr,
    LANES: tl.constexpr,
    STEPS: tl.constexpr,
):
    """Fill ``out[number, high]`` with T (M of them), the sum of the terms, and that of their sizes.

    ``lanes`` (B, M, LANES), ``changes`` (B, STEPS, M) and ``highs`` (B, HIGHS, M) add up to r; ``parity`` (LANES,) is
    the product of a lane's signs. The walk ends where all signs are 1: the largest terms are added last.
    """
    place = tl.program_id(0).to(tl.int64)
    number = place // HIGHS
    lane = tl.arange(0, LANES)
    r = ()
    total = ()
    for i in tl.static_range(M):
        r += (tl.load(lanes + (number * M + i) * LANES + lane) + tl.load(highs + place * M + i),)
        total += (tl.zeros((LANES,), tl.float64),)
    sign = tl.load(parity + lane)
    if STEPS > 1:
        sign = -sign  # the first of an even number of patterns
    value = tl.zeros((LANES,), tl.float64)
    size = tl.zeros((LANES,), tl.float64)
    change = changes + number * STEPS * M
    for _ in range(STEPS):
        after_step = ()
        for i in tl.static_range(M):
            after_step += (r[i] + tl.load(change + i),)
        r = after_step
        change += M
        product = sign
        before = ()
        fours = ()
        for g in tl.static_range(0, M, 4):
            four = r[g]
            if M - g == 2:
                four = r[g] * r[g + 1]
            if M - g == 3:
                four = (r[g] * r[g + 1]) * r[g + 2]
            if M - g >= 4:
                four = (r[g] * r[g + 1]) * (r[g + 2] * r[g + 3])
            before += (product,)
            fours += (four,)
            product = product * four
        value += product
        size += tl.abs(product)
        sign = -sign
        after = tl.full((LANES,), 1.0, tl.float64)
        parts = ()  # from the last row to the first
        for g in tl.static_range((M - 1) // 4 * 4, -1, -4):
            others = after * before[g // 4]
            after = after * fours[g // 4]
            if M - g >= 4:
                with_ab = (r[g] * r[g + 1]) * others
                with_cd = (r[g + 2] * r[g + 3]) * others
                parts += (total[g + 3] + r[g + 2] * with_ab, total[g + 2] + r[g + 3] * with_ab)
                parts += (total[g + 1] + r[g] * with_cd, total[g] + r[g + 1] * with_cd)
            if M - g == 3:
                with_c = r[g + 2] * others
                parts += (total[g + 2] + (r[g] * r[g + 1]) * others,)
                parts += (total[g + 1] + r[g] * with_c, total[g] + r[g + 1] * with_c)
            if M - g == 2:
                parts += (total[g + 1] + r[g] * others, total[g] + r[g + 1] * others)
            if M - g == 1:
                parts += (total[g] + others,)
        total = ()
        for i in tl.static_range(M):
            total += (parts[M - 1 - i],)
    for i in tl.static_range(M):
        tl.store(out + place * (M + 2) + i, tl.sum(total[i], axis=0))
    tl.store(out + place * (M + 2) + M, tl.sum(value, axis=0))
    tl.store(out + place * (M + 2) + M + 1, tl.sum(size, axis=0))


@triton.constexpr_function
def count_bits(subset):
    """Return |S|."""
    return bin(subset).count("1")


@triton.jit
def sum_subsets(log_weights, z, offset, marginals, B, M: tl.constexpr, BLOCK: tl.constexpr):
    """Fill ``z`` (B,), ``offset`` (B,) and ``marginals`` (B, M, M) of matrices with M <= 6; log Z is log z + offset.

    Row maxima are taken off: ``offset`` is their sum. Where z is too small terms may be lost: use neither.
    """
    number = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = number < B
    place = log_weights + number * (M * M)
    weights = ()
    taken = tl.zeros((BLOCK,), tl.float64)
    for i in tl.static_range(M):
        row = ()
        for j in tl.static_range(M):
            row += (tl.load(place + i * M + j, mask=inside, other=0.0),)
        largest = row[0]
        for j in tl.static_range(1, M):
            largest = tl.maximum(largest, row[j])
        taken += largest
        for j in tl.static_range(M):
            weights += (tl.exp(row[j] - largest),)
    one = tl.full((BLOCK,), 1.0, tl.float64)
    alpha = (one,)
    for subset in tl.static_range(1, 2**M):
        total = tl.zeros((BLOCK,), tl.float64)
        for j in tl.static_range(M):
            if (subset // 2**j) % 2 == 1:
                total += weights[(count_bits(subset) - 1) * M + j] * alpha[subset - 2**j]
        alpha += (total,)
    beta = (one,)  # by the columns that are left: of none to all
    for left in tl.static_range(1, 2**M):
        total = tl.zeros((BLOCK,), tl.float64)
        for j in tl.static_range(M):
            if (left // 2**j) % 2 == 1:
                total += weights[(M - count_bits(left)) * M + j] * beta[left - 2**j]
        beta += (total,)
    inverse = 1.0 / alpha[2**M - 1]
    for i in tl.static_range(M):
        for j in tl.static_range(M):
            total = tl.zeros((BLOCK,), tl.float64)
            for left in tl.static_range(1, 2**M):
                if (left // 2**j) % 2 == 1 and count_bits(left) == M - i:
                    total += alpha[2**M - 1 - left] * beta[left - 2**j]
            tl.store(marginals + number * (M * M) + i * M + j, weights[i * M + j] * total * inverse, mask=inside)
    tl.store(z + number, alpha[2**M - 1], mask=inside)
    tl.store(offset + number, taken, mask=inside)


def signs(columns: Tensor, low: int, lane_columns: int = 5, num_warps: int = 1, maxnreg: int | None = None) -> Tensor:
    """Sum over the low signs; see ``twins.Backend``. ``lane_columns`` of them stand side by side."""
    lane_columns = min(lane_columns, low)
    count, size, _ = columns.shape
    lanes = signed_sums(columns[:, 1 : lane_columns + 1]).transpose(1, 2).contiguous()
    walked = signed_sums(columns[:, lane_columns + 1 : low + 1])
    step = torch.arange(walked.shape[1] - 1, -1, -1, device=columns.device)
    walked = walked[:, step ^ (step >> 1)]
    changes = torch.cat((walked[:, :1], walked.diff(dim=1)), dim=1).contiguous()
    highs = (columns[:, :1] + signed_sums(columns[:, low + 1 :])).contiguous()
    out = torch.empty((count, highs.shape[1], size + 2), dtype=columns.dtype, device=columns.device)
    sum_signs[(count * highs.shape[1],)](
        lanes,
        parity(lane_columns, columns.device),
        changes,
        highs,
        out,
        highs.shape[1],
        size,
        lanes.shape[2],
        len(step),
        num_warps=num_warps,
        maxnreg=maxnreg,
    )
    return out


def subsets(log_weights: Tensor, block: int = 128, num_warps: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    """Sum over the subsets of small matrices; see ``twins.Backend``."""
    count, size, _ = log_weights.shape
    z, offset = torch.empty((2, count), dtype=log_weights.dtype, device=log_weights.device)
    marginals = torch.empty_like(log_weights)
    grid = (triton.cdiv(count, block),)
    sum_subsets[grid](log_weights, z, offset, marginals, count, size, block, num_warps=num_warps)
    return z, offset, marginals


TRITON = Backend(signs, subsets, 6)
