"""The hinge of a quadratic ranking model, for a linear loss; all lists rank the same N items (Mensink et al., eq. 4-6).

    R(w)    = sum_m omega_m  max over Pi of [ Delta_m(Pi) + f_m(Pi) - f_m(target_m) ]
    f_m(Pi) = sum_i (W_i . x_m + v_i) c[pos_i] + sum over unordered pairs F_ij (D[pos_i, pos_j] + D[pos_j, pos_i])

F is symmetric with a zero diagonal, so only D + D' counts. The argmax is :func:`quadratic_ranking` with the loss,
``b a'``, as its linear term. It is proven for few items or a D that depends on the later position only, else searched
for. What stays true of a ranking that was found, but not proven best:

- *Its cut is valid.* R is a maximum of linear functions, one per choice of rankings; each lies below R everywhere.
  So the lower bound that a bundle makes of such cuts holds without any proof.
- *Its value is too small.* The cut at w gives an amount <= R(w), and "no violated ranking was found" is not "there is
  none". What is >= R(w) is inference's upper bound instead of the value found: :meth:`QuadraticHinge.risk` returns
  that. Where all argmaxes at w are proven the two agree; that needs to hold at the parameters returned only.

Parameters are one flat vector: W (N, d), v (N,), then F above its diagonal, row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.quadratic.form import QuadraticForm
from slatewise.quadratic.ranking import Method, quadratic_ranking


class Corners(NamedTuple):
    """The loss-augmented argmax of every list, as far as inference knows it."""

    order: Ints
    """(n, N) rankings found."""
    bound: Floats
    """(n,) no ranking has a larger loss + f."""
    proven: NDArray[np.bool_]
    """(n,) whether the ranking found reaches the bound."""


@dataclass(frozen=True, eq=False)
class QuadraticHinge:
    """Lists with features, targets and losses; all arrays are checked by the caller."""

    X: Floats
    """(n, d) a row of features per list."""
    c: Floats
    D: Floats
    target: Ints
    """(n, N) ``target[m, r]`` is the item at rank r."""
    position_cost: Floats
    """(n, N) a of each list's loss."""
    item_cost: Floats
    """(n, N) b(z) of each list's loss."""
    weight: Floats
    """(n,) summing to 1."""
    method: Method = "auto"
    random_state: int = 0
    executor: Executor = ONE_THREAD

    @property
    def n_items(self) -> int:
        """How many items a list has."""
        return len(self.c)

    @property
    def n_params(self) -> int:
        """Length of the flat parameter vector."""
        n = self.n_items
        return n * self.X.shape[1] + n + n * (n - 1) // 2

    def unpack(self, w: Floats) -> tuple[Floats, Floats, Floats]:
        """Return W (N, d), v (N,) and the symmetric F (N, N)."""
        n, d = self.n_items, self.X.shape[1]
        F = np.zeros((n, n))
        F[np.triu_indices(n, 1)] = w[n * d + n :]
        return w[: n * d].reshape(n, d), w[n * d : n * d + n], F + F.T

    def features(self, order: Ints) -> Floats:
        """Return ``sum_m omega_m df_m / dw`` of one ranking per list; f is its product with w."""
        place = np.argsort(order, axis=1)
        placement = self.weight[:, None] * self.c[place]
        both_ways, pairs = self.D + self.D.T, np.zeros_like(self.D)
        for amount, at in zip(self.weight, place, strict=True):
            pairs += amount * both_ways[np.ix_(at, at)]
        above = pairs[np.triu_indices(self.n_items, 1)]
        return np.concatenate([(placement.T @ self.X).ravel(), placement.sum(axis=0), above])

    def losses(self, order: Ints) -> Floats:
        """Return the loss of one ranking per list."""
        return (self.position_cost * np.take_along_axis(self.item_cost, order, axis=1)).sum(axis=1)

    def corners(self, w: Floats) -> Corners:
        """Return the loss-augmented argmax of every list."""
        W, v, F = self.unpack(w)
        form = _Form(W, v, self.c, F, self.D, self.method, self.random_state)
        lists = list(map(_List, self.X, self.target, self.position_cost, self.item_cost))
        with one_blas_thread():
            order, bound, proven = zip(*self.executor.map_blocks(_corner, form, lists), strict=True)
        return Corners(np.array(order), np.array(bound), np.array(proven))

    def risk(self, w: Floats) -> float:
        """Return R(w); where an argmax is not proven, inference's upper bound stands for it."""
        return self.bound_of(self.corners(w), w)

    def bound_of(self, corners: Corners, w: Floats) -> float:
        """Return the upper bound on R(w) that its corners give."""
        return float(self.weight @ corners.bound - self._target_features @ w)

    def cut(self, w: Floats) -> tuple[float, Floats]:
        """Return (offset, gradient) of a plane below R; it touches R at w where all argmaxes are proven."""
        return self.cut_of(self.corners(w))

    def cut_of(self, corners: Corners) -> tuple[float, Floats]:
        """Return the plane of given rankings, valid for any."""
        offset = float(self.weight @ self.losses(corners.order))
        return offset, self.features(corners.order) - self._target_features

    @cached_property
    def _target_features(self) -> Floats:
        return self.features(self.target)


class _Form(NamedTuple):
    """How rankings score at one w."""

    W: Floats
    v: Floats
    c: Floats
    F: Floats
    D: Floats
    method: Method
    random_state: int


class _List(NamedTuple):
    x: Floats
    target: Ints
    position_cost: Floats
    item_cost: Floats


def _corner(form: _Form, of: _List) -> tuple[Ints, float, bool]:
    """Return the loss-augmented argmax of one list, its bound, and whether it is proven."""
    s, loss = form.W @ of.x + form.v, np.outer(of.item_cost, of.position_cost)
    found = quadratic_ranking(s, form.c, form.F, form.D, form.method, random_state=form.random_state, linear=loss)
    order = found.order
    if not found.proven_best:
        # A search may end below the target, which is known: with it, no hinge is below the target's loss.
        known = QuadraticForm.of(np.outer(s, form.c) + loss, form.F, form.D).score(of.target)
        order = order if found.score >= known else of.target
    return order, found.upper_bound, found.proven_best
