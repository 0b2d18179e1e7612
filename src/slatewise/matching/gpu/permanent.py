"""Permanents with all marginals on a GPU, in float64: what is summed there, and which matrices go back to the CPU.

- up to 8 rows: *subsets*, only positive terms; row maxima are taken off first.
- from 9 to 36 rows: *glynn* (``twins.py``), on weights that sum to 1 in every row and nearly in every column.
- more columns than rows: rows of ones are added, which the free columns take in (N - M)! orders.

A matrix whose weights leave the range of numbers or whose terms cancel is summed on the CPU, as far as that can be.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from slatewise.core.running.devices import halved, tile_bytes, with_less_memory
from slatewise.matching.gpu.twins import GRAIN, TORCH, Backend, Tensor, sum_all_signs
from slatewise.matching.kernels.sinkhorn import balance
from slatewise.matching.sums.exact import FEW, MOST_BYTES, MOST_ROUNDING, by_subsets, scale, table_bytes

torch: Any = import_module("torch")

MOST_ROWS = 36
"""Sums over 2^35 signs take seconds; every further row twice as long."""
MOST_ROUNDING_OF_MANY = 1e-8
"""From 23 rows on the subsets take far longer than the signs: more rounding is accepted; ``error`` has it."""
LOW = 14
"""Low columns at most: 2^14 sign vectors per program."""
_FEW_SUBSETS, _DUALS_FROM, _SMALL, _SWEEPS = 22, 17, 1e-200, 10
_EPSILON = float(np.finfo(np.float64).eps)


class GpuSums(NamedTuple):
    """log Z (B,), marginals (B, M, N) and rounding (B,), where the weights are."""

    log_z: Tensor
    marginals: Tensor
    error: Tensor


def sums_on_gpu(log_weights: Any, method: str, gpu: Any, largest: float) -> tuple[str, Any, Any, Any]:
    """Return the method, log Z, marginals and rounding of weights to be checked: tensors for tensors, else arrays."""
    from slatewise.matching.gpu.fused import TRITON

    with torch.cuda.device(gpu):
        name, sums = sums_on_device(checked_tensor(log_weights, gpu, largest), method, TRITON)
        return name, *_as_given(sums, log_weights)


def checked_tensor(log_weights: Any, device: Any, largest: float) -> Tensor:
    """Return the weights as a float64 tensor (B, M, N) on the device."""
    weights = log_weights if isinstance(log_weights, torch.Tensor) else torch.as_tensor(np.asarray(log_weights))
    if weights.is_complex() or weights.dtype == torch.bool:
        raise ValueError(f"log_weights: expected real numbers, found {weights.dtype}")
    shape = tuple(weights.shape)
    if weights.ndim not in (2, 3) or 0 in shape[-2:] or shape[-2] > shape[-1]:
        raise ValueError(f"log_weights: expected shape (M, N) or (B, M, N) with 1 <= M <= N, found {shape}")
    if shape[-1] > MOST_ROWS:
        raise ValueError(f"log_weights: expected at most {MOST_ROWS} rows and columns on a GPU, found {shape}")
    weights = weights.to(device=device, dtype=torch.float64).contiguous()
    wrong = ~(weights <= largest) | ((weights < -largest) & (weights != -math.inf))
    if bool(wrong.any()):
        at = [int(index) for index in wrong.nonzero()[0]]
        found = float(weights[tuple(at)])
        expected = f"at most {largest} in size" if math.isfinite(found) else "finite numbers or -inf"
        raise ValueError(f"log_weights: expected {expected}, found {found} at {at}")
    return weights if weights.ndim == 3 else weights[None]


def sums_on_device(log_weights: Tensor, method: str, backend: Backend) -> tuple[str, GpuSums]:
    """Sum square or wide matrices of checked log weights; return the method's name too."""
    count, n_rows, n_columns = log_weights.shape
    if method == "auto":
        method = "subsets" if n_columns <= FEW else "glynn"
    if method not in ("subsets", "glynn"):
        raise ValueError(f"method: expected 'auto', 'subsets' or 'glynn' on a GPU, found {method!r}")
    if method == "subsets" and n_columns > FEW:
        raise ValueError(f"method: expected 'auto' or 'glynn' beyond {FEW} columns on a GPU, found {method!r}")
    added = n_columns - n_rows
    square = torch.nn.functional.pad(log_weights, (0, 0, 0, added)) if added else log_weights
    sums = GpuSums(*(torch.empty_like(like) for like in (square[:, 0, 0], square, square[:, 0, 0])))
    solve = _by_subsets if method == "subsets" else _by_glynn

    def fill(at_once: int) -> None:
        for first in range(0, count, at_once):
            for whole, part in zip(sums, solve(square[first : first + at_once], backend), strict=True):
                whole[first : first + at_once] = part

    with_less_memory(fill, _at_once(square, method, backend), halved, "the sums of one matrix", "device=None")
    _mend(square, sums)
    return method, GpuSums(sums.log_z - math.lgamma(added + 1), sums.marginals[:, :n_rows], sums.error)


def _at_once(square: Tensor, method: str, backend: Backend) -> int:
    """Return how many matrices fit into a tile."""
    size = square.shape[1]
    if method == "subsets":
        bytes_each = 8 * size * size if size <= backend.most_subsets else 8 * size << size
    else:
        bytes_each = 6 * 8 * (size + 2) << (size - 1 - low_columns(size))
    return max(1, tile_bytes(square.device) // bytes_each)


def low_columns(size: int) -> int:
    """Return how many columns of M are low: not more than high ones, and the columns 1 .. M - 1 are all there are."""
    return min(LOW, (size - 1) // 2)


def _by_subsets(log_weights: Tensor, backend: Backend) -> GpuSums:
    size = log_weights.shape[1]
    subsets = backend.subsets if size <= backend.most_subsets else TORCH.subsets
    z, offset, marginals = subsets(log_weights)
    taken = log_weights.amax(dim=2).abs().sum(dim=1)
    error = 4.0 * _EPSILON * (4.0 * size + taken)
    return GpuSums(z.log() + offset, marginals, error.masked_fill(~(z >= _SMALL), math.nan))


def _by_glynn(log_weights: Tensor, backend: Backend) -> GpuSums:
    size = log_weights.shape[1]
    weights, offset, rounding = (_balanced_by_duals if size >= _DUALS_FROM else _balanced)(log_weights)
    row_sums = weights.sum(dim=2)
    weights = weights / row_sums[:, :, None]
    sums = sum_all_signs((weights / GRAIN).round() * GRAIN, low_columns(size), backend.signs)
    value = sums.value.where(sums.value > 0.0, math.nan)
    marginals = weights * sums.gradient / value[:, None, None]
    # Rows and columns must add up to 1: what they miss shows the rounding in the gradient.
    missed = (marginals.sum(dim=1) - 1.0).abs().amax(dim=1) + (marginals.sum(dim=2) - 1.0).abs().amax(dim=1)
    products = 0.5 * _EPSILON * (size + 16) * sums.size / value
    grain = 0.5 * GRAIN * sums.gradient.abs().sum(dim=(1, 2)) / value
    error = rounding + products + grain + missed + sums.off / value
    log_z = value.log() + row_sums.log().sum(dim=1) + offset + (1 - size) * math.log(2.0)
    return GpuSums(log_z, marginals, error)


def _balanced_by_duals(log_weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Scale on the CPU as the CPU does: for few large matrices that takes no time, and no matching is too light."""
    scaled = scale(log_weights.cpu().numpy())
    weights, log_scale = scaled.weights, np.zeros(len(scaled.weights))
    balance(weights, _SWEEPS, log_scale)
    parts = (weights, log_scale + scaled.offset, scaled.rounding)
    return tuple(torch.as_tensor(part, device=log_weights.device) for part in parts)  # pyright: ignore[reportReturnType]


def _balanced(log_weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Divide columns and rows by their sums in turn, in logarithms."""
    rows = log_weights.logsumexp(dim=2)
    columns = (log_weights - rows[:, :, None]).logsumexp(dim=1)
    for _ in range(_SWEEPS):
        rows = (log_weights - columns[:, None]).logsumexp(dim=2)
        columns = (log_weights - rows[:, :, None]).logsumexp(dim=1)
    rows = (log_weights - columns[:, None]).logsumexp(dim=2)
    weights = (log_weights - columns[:, None] - rows[:, :, None]).exp()
    taken = rows.abs().sum(dim=1) + columns.abs().sum(dim=1)
    return weights, rows.sum(dim=1) + columns.sum(dim=1), 4.0 * _EPSILON * (4.0 * log_weights.shape[1] + taken)


def _mend(square: Tensor, sums: GpuSums) -> None:
    """Sum on the CPU what lost too many digits, where its tables have room; an error if nothing is left at all."""
    size = square.shape[1]
    most = MOST_ROUNDING if size <= _FEW_SUBSETS else MOST_ROUNDING_OF_MANY
    poor = (~(sums.error <= most)).nonzero()[:, 0]
    if len(poor) and size > FEW and table_bytes("subsets", tuple(square.shape)) > MOST_BYTES:
        lost = sums.log_z[poor].isnan().nonzero()
        if len(lost):
            raise ValueError(
                f"device: expected None, found that Glynn's terms cancel in matrix {int(poor[lost[0, 0]])}"
            )
        return
    if len(poor):
        weights = square[poor].cpu().numpy()
        scale(weights, poor.cpu().numpy())  # names the first without a matching by its number among all
        for whole, part in zip(sums, by_subsets(weights), strict=True):
            whole[poor] = torch.as_tensor(part, device=square.device)


def _as_given(sums: GpuSums, log_weights: Any) -> tuple[Any, Any, Any]:
    """Return arrays for arrays and tensors for tensors; numbers, and one matrix, for one matrix."""
    log_z, marginals, error = sums
    if not isinstance(log_weights, torch.Tensor):
        log_z, marginals, error = (part.cpu().numpy() for part in sums)
    if np.ndim(log_weights) == 2:
        return float(log_z[0]), marginals[0], float(error[0])
    return log_z, marginals, error
