"""Sums over matchings: the partition function of exponential-family matching (Petterson et al. 2009) and its marginals.

    p(y) = exp(sum_i w[i, y(i)]) / Z,     Z = sum over one-to-one y = perm(exp(w)),     P_ij = Pr(y(i) = j)

Every row is matched; with more columns than rows some columns stay free. Each result says what it is: *exact* up to
rounding (:mod:`~slatewise.matching.sums.exact`), or a *bound* from below with approximate marginals
(:mod:`~slatewise.matching.sums.bethe`). Samples: :mod:`~slatewise.matching.sums.sampling`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.arrays import Floats
from slatewise.core.checks import real_numbers
from slatewise.core.running.devices import gpu_of
from slatewise.core.running.executor import Executor
from slatewise.matching.sums.bethe import by_bethe
from slatewise.matching.sums.exact import (
    METHODS,
    MOST_BYTES,
    Solver,
    chosen,
    log_permanents,
    most_sets,
    plan,
    table_bytes,
)

Method: TypeAlias = Literal["auto", "subsets", "glynn", "rows", "candidates", "bethe"]
Kind: TypeAlias = Literal["exact", "bound"]

MOST_EXACT_ROWS = 24
"""Beyond this many rows (a second per matrix) "auto" takes few candidates, else the Bethe bound."""
MOST_STEPS = 1 << 27
"""The same with more columns than rows: columns times sets of them."""
LARGEST = 1e300
"""Finite log weights beyond, of either sign, are refused: their sums would leave the range of numbers."""
_MOST_SETS, _FEW_ROWS = 1 << 18, 8


@dataclass(frozen=True, eq=False)
class Permanent:
    """The sum over all matchings of one matrix, or of each of B matrices."""

    log_z: float | Floats
    """A number, or (B,)."""
    marginals: Floats
    """(M, N) or (B, M, N): the probability of each edge, the gradient of ``log_z`` by the log weights."""
    method: str
    kind: Kind
    error: float | Floats
    """Exact: what rounding may do to ``log_z`` and to a marginal. Bound: how far log Z may lie above ``log_z``."""

    @property
    def exact(self) -> bool:
        """Whether only rounding separates the result from the truth."""
        return self.kind == "exact"


def permanent(
    log_weights: ArrayLike, method: Method = "auto", n_jobs: int | None = None, device: str | None = None
) -> Permanent:
    """Return log Z and the probability of each edge.

    Parameters
    ----------
    log_weights : (M, N) or (B, M, N), M <= N
        -inf forbids an edge; other weights are at most 1e300 in size. A matrix without any matching (Z = 0) is an
        error: it has no marginals.
    method : {"auto", "subsets", "glynn", "rows", "candidates", "bethe"}
        Exact: ``"subsets"`` and ``"glynn"`` for square matrices, ``"rows"`` for more columns than rows,
        ``"candidates"`` where most edges are forbidden. ``"glynn"`` hands matrices whose terms cancel to ``"subsets"``.
        ``"bethe"`` is a bound for any size. ``"auto"`` takes the fastest exact one, and the bound where that would take
        long: ``result.exact`` tells.
    n_jobs : int, optional
        Threads over matrices, and over one large matrix; the result has the same bits with any number.
    device : {None, "cpu", "cuda", "cuda:0", ...}
        "cuda": on a GPU, in float64, exact for up to 36 columns (``pip install 'slatewise[gpu]'``). Arrays are copied
        there and back; a torch tensor must lie there, and gives tensors. A matrix whose terms cancel is summed on the
        CPU where that is possible: ``error`` tells what rounding may have done.

    Examples
    --------
    >>> result = permanent(np.log([[1.0, 3.0], [1.0, 1.0]]))
    >>> round(result.log_z, 6), result.exact
    (1.386294, True)
    >>> result.marginals
    array([[0.25, 0.75],
           [0.75, 0.25]])
    """
    if method not in ("auto", *_SOLVERS):
        raise ValueError(f"method: expected one of auto, {', '.join(_SOLVERS)}, found {method!r}")
    gpu = gpu_of("log_weights", log_weights, device)
    if gpu is not None:
        return _on_gpu(log_weights, method, gpu)
    weights = checked_weights(log_weights)
    name = _fastest(weights) if method == "auto" else method
    square = weights.shape[1] == weights.shape[2]
    if not square and name in ("subsets", "glynn"):
        raise ValueError(f"method: expected 'rows', 'candidates' or 'bethe' for {weights.shape[1:]}, found {name!r}")
    sums = _SOLVERS[name](weights, Executor.of(n_jobs))
    kind: Kind = "bound" if name == "bethe" else "exact"
    if np.ndim(cast(Floats, log_weights)) == 2:
        return Permanent(float(sums.log_z[0]), sums.marginals[0], name, kind, float(sums.error[0]))
    return Permanent(sums.log_z, sums.marginals, name, kind, sums.error)


def _on_gpu(log_weights: ArrayLike, method: Method, gpu: Any) -> Permanent:
    from slatewise.matching.gpu.permanent import sums_on_gpu

    name, log_z, marginals, error = sums_on_gpu(log_weights, method, gpu, LARGEST)
    return Permanent(log_z, marginals, name, "exact", error)


def with_unmatched(log_weights: ArrayLike, unmatched: ArrayLike) -> Floats:
    """Append one private column per row, which only that row can take: to take it is to stay unmatched.

    (.., M, N) and log weights (.., M) of staying unmatched give (.., M, N + M). Dummy columns that rows share would
    count a matching once for every way of dealing them out, and give wrong probabilities.

    Examples
    --------
    >>> with_unmatched([[1.0, 2.0]], [0.5])
    array([[1. , 2. , 0.5]])
    """
    weights, alone = real_numbers("log_weights", log_weights), real_numbers("unmatched", unmatched)
    if weights.ndim < 2:
        raise ValueError(f"log_weights: expected shape (.., M, N), found {weights.shape}")
    if alone.shape not in ((), weights.shape[-2:-1], weights.shape[:-1]):
        raise ValueError(f"unmatched: expected one number, or shape {weights.shape[:-1]}, found {alone.shape}")
    _require_log_weights("log_weights", weights)
    _require_log_weights("unmatched", alone)
    private = np.full((*weights.shape[:-1], weights.shape[-2]), -np.inf)
    rows = np.arange(weights.shape[-2], dtype=np.int64)
    private[..., rows, rows] = alone
    return np.concatenate((weights, private), axis=-1)


def tied_permanent(log_weights: ArrayLike, row_classes: ArrayLike, column_classes: ArrayLike) -> Permanent:
    """Sum over the matchings that keep to classes: rows of a class on columns of the same class (block permanents).

    Its ``log_z`` less that of all matchings is the log likelihood of ratings with ties.

    Parameters
    ----------
    log_weights : (M, M)
    row_classes, column_classes : (M,)
        The class of each row and column; a class has as many of the one as of the other.

    Examples
    --------
    >>> result = tied_permanent(np.zeros((3, 3)), [1, 0, 0], [1, 0, 0])
    >>> np.exp(result.log_z).round(6), result.marginals[1]
    (np.float64(2.0), array([0. , 0.5, 0.5]))
    """
    weights = checked_weights(log_weights)
    if weights.shape != (1, len(weights[0]), len(weights[0])):
        raise ValueError(f"log_weights: expected one square matrix, found shape {np.shape(weights)}")
    rows, columns = _classes("row_classes", row_classes), _classes("column_classes", column_classes)
    if rows.shape != (len(weights[0]),):
        raise ValueError(f"row_classes: expected one class per row, {len(weights[0])}, found shape {rows.shape}")
    if columns.shape != rows.shape or (np.sort(rows) != np.sort(columns)).any():
        raise ValueError(f"column_classes: expected {rows.tolist()} in some order, found {columns.tolist()}")
    log_z, error, marginals = 0.0, 0.0, np.zeros(weights.shape[1:])
    kind: Kind = "exact"
    for kept in np.unique(rows):
        block = np.ix_(rows == kept, columns == kept)
        part = permanent(weights[0][block])
        log_z, error = log_z + float(part.log_z), error + float(part.error)
        marginals[block] = part.marginals
        kind = kind if part.exact else part.kind
    return Permanent(log_z, marginals, "blocks", kind, error)


def checked_weights(log_weights: ArrayLike) -> Floats:
    """Return the weights as (B, M, N)."""
    weights = real_numbers("log_weights", log_weights)
    if weights.ndim not in (2, 3) or 0 in weights.shape[-2:] or weights.shape[-2] > weights.shape[-1]:
        raise ValueError(f"log_weights: expected shape (M, N) or (B, M, N) with 1 <= M <= N, found {weights.shape}")
    _require_log_weights("log_weights", weights)
    return weights if weights.ndim == 3 else weights[None]


def _require_log_weights(name: str, weights: Floats) -> None:
    if not weights.max(initial=-np.inf) < np.inf:  # NaN is the largest of all
        at = tuple(np.argwhere(~(weights < np.inf))[0].tolist())
        raise ValueError(f"{name}: expected finite numbers or -inf, found {weights[at]} at {list(at)}")
    if weights.max(initial=0.0) > LARGEST or weights.min(initial=0.0) < -LARGEST:
        beyond = np.argwhere((np.abs(weights) > LARGEST) & (weights > -np.inf)).tolist()
        if beyond:
            at = tuple(beyond[0])
            raise ValueError(f"{name}: expected at most {LARGEST} in size, found {weights[at]} at {list(at)}")


def _classes(name: str, classes: ArrayLike) -> NDArray[Any]:
    try:
        found = np.asarray(classes)
    except ValueError:
        raise ValueError(f"{name}: expected one class per entry, found lists of different lengths") from None
    if found.dtype.kind == "c" or (found.dtype.kind == "f" and not np.isfinite(found).all()):
        raise ValueError(f"{name}: expected names or finite numbers, found {found.tolist()}")
    return found


def _fastest(weights: Floats) -> str:
    _, n_rows, n_columns = weights.shape
    name = chosen(weights.shape)
    if n_rows > _FEW_ROWS:
        possible = np.asarray((weights > -np.inf).any(axis=0))
        if not possible.all() and most_sets(plan(possible)) < min(_MOST_SETS, 2.0 ** (n_rows - 6)):
            return "candidates"
    too_long = n_columns << n_rows > MOST_STEPS if name == "rows" else n_rows > MOST_EXACT_ROWS
    if table_bytes(name, weights.shape) > MOST_BYTES or too_long:
        return "bethe"
    return name


_SOLVERS: dict[str, Solver] = {**METHODS, "bethe": by_bethe}

__all__ = ["Permanent", "log_permanents", "permanent", "tied_permanent", "with_unmatched"]
