"""Fit a quadratic ranking model:  min over W, v, F of  1/2 (|W|^2 + |v|^2 + rho sum_{i<j} F_ij^2) + C R(W, v, F).

R is the hinge of :mod:`slatewise.quadratic.hinge`; the one-slack bundle minimizes it. Three numbers describe
the end, and they hold for every inference method:

    lower bound  <=  min of the objective  <=  objective at the parameters  <=  ``fit.objective``
                                  ``found_objective``  <=  objective at the parameters

With proven argmaxes (``certified``) the last ``<=`` of either line is an equality: the usual certificate. With searched
ones, as for D = |k - l| on more than 8 items, the bundle stops when the *search* finds no ranking that violates more;
``fit.objective`` then takes inference's upper bound for every unproven list, which is honest and mostly loose, and a
warning says that there is no certificate.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import numbers, require_finite, require_in_range
from slatewise.core.numerics.bundle import Cuts, one_slack
from slatewise.core.numerics.result import ConvergenceWarning, Fit, warn_unless_converged
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import Executor
from slatewise.losses import DCGLoss, LinearLoss, Vectors
from slatewise.quadratic.hinge import QuadraticHinge
from slatewise.quadratic.ranking import Method, quadratic_ranking


@dataclass(frozen=True, eq=False)
class QuadraticFit:
    """A fitted model with what is known about its objective."""

    fit: Fit
    """``objective`` and ``gap`` hold in any case; the history follows the found objective."""
    certified: bool
    """Whether every argmax at the parameters is proven, so that ``fit.objective`` is the objective, not a bound."""
    found_objective: float
    """The objective with the rankings found: at most the true one."""
    w: Floats
    """(N, d) weights of the features for each item."""
    v: Floats
    """(N,) what an item scores without features."""
    F: Floats
    """(N, N) symmetric, zero diagonal."""
    c: Floats
    D: Floats
    method: Method
    """How :meth:`predict` ranks; ``dataclasses.replace`` gives the model another one."""
    random_state: int = 0

    def predict(self, X: ArrayLike) -> Ints:
        """Return (n, N) rankings: ``order[m, r]`` is the item of list m at rank r."""
        rows = _matrix("X", X, (None, self.w.shape[1]))
        with one_blas_thread():
            scores = rows @ self.w.T + self.v
        ranked = [quadratic_ranking(s, self.c, self.F, self.D, self.method, None, self.random_state) for s in scores]
        return np.array([found.order for found in ranked], dtype=np.int64).reshape(scores.shape)


def fit_quadratic(
    X: ArrayLike,
    c: ArrayLike,
    D: ArrayLike,
    orders: ArrayLike | None = None,
    relevance: ArrayLike | None = None,
    *,
    loss: LinearLoss | None = None,
    k: int | None = None,
    C: float = 1.0,
    rho: float = 1.0,
    method: Method = "auto",
    tol: float = 1e-3,
    max_iter: int = 1000,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> QuadraticFit:
    """Learn item scores and item pairs from lists of the same N items.

    Parameters
    ----------
    X : array-like of shape (n, d)
        A row of features per list; d may be 0.
    c : array-like of shape (N,)
        Position weights.
    D : array-like of shape (N, N)
        How two positions weigh the pair of items on them; F is symmetric, so only D + D' counts.
    orders : array-like of shape (n, N), optional
        Target rankings, ``orders[m, r]`` the item at rank r. None: by relevance, the lower item number first among
        equals; any ranking is a valid target, one that the model can reach gives the tighter hinge.
    relevance : array-like of shape (n, N), optional
        What the loss reads. None: N - 1 for the first item of the target, down to 0 for the last.
    loss : LinearLoss, optional
        None: ``DCGLoss(gain="linear")``. ``k``: the ranks that count.
    C, rho : float
        Weight of the mean hinge, and of F's regularizer.
    method : {"auto", "enumeration", "subsets", "faq", "tabu"}
        See :func:`quadratic_ranking`. Where ``"auto"`` means tabu, ``"faq"`` is many times faster.
    tol, max_iter
        The relative gap to stop at, and the maximum number of rounds.

    Examples
    --------
    >>> D = np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    >>> model = fit_quadratic([[1.0], [-1.0]], [2, 1, 0], D, orders=[[0, 1, 2], [2, 1, 0]], C=10.0)
    >>> model.predict([[0.5], [-0.5]]).tolist(), model.certified
    ([[0, 1, 2], [2, 1, 0]], True)
    """
    for name, value in (("C", C), ("rho", rho), ("tol", tol), ("max_iter", max_iter)):
        if not 0 < value < np.inf:
            raise ValueError(f"{name}: expected a finite number > 0, found {value}")
    target, grades = _targets(orders, relevance)
    if target.size == 0:
        raise ValueError(f"orders, relevance: expected at least one list of at least one item, found {target.shape}")
    hinge = _hinge(X, c, D, target, [(loss or DCGLoss(gain="linear")).vectors(row, k) for row in grades])
    hinge = replace(hinge, method=method, random_state=random_state, executor=Executor.of(n_jobs))
    weights = np.ones(hinge.n_params)
    weights[hinge.n_items * (hinge.X.shape[1] + 1) :] = rho
    with one_blas_thread():
        with warnings.catch_warnings():
            # The bundle would speak of the gap to what was found; what is proven is known below only.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit = one_slack(hinge, Cuts(weights), C, tol=tol, max_iter=max_iter)
        w, corners = fit.params, hinge.corners(fit.params)
        certified, (offset, gradient) = bool(corners.proven.all()), hinge.cut_of(corners)
        penalty = 0.5 * float(w @ (weights * w))
        found = penalty + C * (offset + float(gradient @ w))
        fit = replace(fit, objective=found if certified else penalty + C * hinge.bound_of(corners, w))
    fit = replace(fit, converged=fit.gap <= tol)
    if certified:
        warn_unless_converged(fit.converged, fit.gap, tol, len(fit.history))
    elif not fit.converged:
        warnings.warn(
            f"no certificate: {np.sum(~corners.proven)} of {len(corners.proven)} argmaxes were searched, not proven; "
            f"after {len(fit.history)} rounds the objective is between {found:.6g} and {fit.objective:.6g}, and no "
            f"parameters go below {fit.lower_bound:.6g}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return QuadraticFit(fit, certified, found, *hinge.unpack(w), hinge.c, hinge.D, method, random_state)


def _hinge(X: ArrayLike, c: ArrayLike, D: ArrayLike, target: Ints, costs: list[Vectors]) -> QuadraticHinge:
    n_lists, n_items = len(target), int(target.shape[1])
    hinge = QuadraticHinge(
        _matrix("X", X, (n_lists, None)),
        _matrix("c", np.reshape(c, (1, -1)), (1, n_items))[0],
        _matrix("D", D, (n_items, n_items)),
        target,
        np.array([cost.positions for cost in costs]),
        np.array([cost.items for cost in costs]),
        np.full(n_lists, 1.0 / n_lists),
    )
    if hinge.losses(target).min() < -1e-9:
        raise ValueError("loss: expected no negative loss of a target, because the bundle's first lower bound is 0")
    return hinge


def _targets(orders: ArrayLike | None, relevance: ArrayLike | None) -> tuple[Ints, Floats]:
    """Return target rankings and relevance; each stands in for the other."""
    grades = None if relevance is None else _matrix("relevance", relevance, (None, None))
    if orders is None:
        if grades is None:
            raise ValueError("orders, relevance: expected at least one of them, found neither")
        return np.argsort(-grades, axis=1, kind="stable"), grades
    given = _matrix("orders", orders, (None, None) if grades is None else grades.shape)
    n_items = int(given.shape[1])
    wrong = (np.sort(given, axis=1) != np.arange(n_items)).any(axis=1)
    if wrong.any():
        m = int(np.argmax(wrong))
        raise ValueError(f"orders: expected each item 0 to {n_items - 1} once, found {given[m]} in list {m}")
    target = given.astype(np.int64)
    by_rank = (n_items - 1 - np.argsort(target, axis=1)).astype(np.float64)
    return target, by_rank if grades is None else grades


def _matrix(name: str, values: ArrayLike, shape: tuple[int | None, ...]) -> Floats:
    """Return a finite float64 matrix of the shape given; None: any."""
    matrix = numbers(name, values, 2).astype(np.float64)
    if any(wanted not in (None, found) for wanted, found in zip(shape, matrix.shape, strict=True)):
        raise ValueError(f"{name}: expected shape {shape}, found {matrix.shape}".replace("None", "any"))
    require_finite(name, matrix, lambda row: f"row {row}")
    require_in_range(name, matrix)
    return matrix
