"""How a list moves an item: p_q . (S d) with p_q a weighted sum over the list dbar of query q.

gram        sum_{j <= k} w_j (S d).(S dbar_j)        S'S can only say that items belong together
bilinear    sum_{j <= k} w_j (S d).(T dbar_j)        S'T can also say that they do not
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from slatewise.latent.queries import ListedQueries, Onward, Queries
from slatewise.latent.tables import Ints, Segment, Singles, Table, aligned_zeros


@dataclass(frozen=True)
class Silent:
    """Queries without vectors of their own."""

    width: int

    def vectors(self, queries: Ints) -> Singles:
        """Return zeros."""
        return aligned_zeros(len(queries), self.width)

    def onward(self, queries: Ints, gradient: Singles) -> Onward | None:
        """Depend on no item."""
        return None

    def step(self, queries: Ints, gradient: Singles, n_threads: int | None = None) -> None:
        """Learn nothing."""


class PairTerm(Protocol):
    """How an item's row and the rows of a list make a score."""

    @property
    def S(self) -> Segment:
        """The columns of the item that is moved."""
        ...

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The columns of the items' table."""
        ...

    @property
    def listed(self) -> Segment:
        """The columns of a listed item that meet those of S."""
        ...

    def queries(self, inner: Queries, table: Table, lists: Ints, weights: Singles) -> Queries:
        """Return the inner queries with p_q in the columns of S."""
        ...


@dataclass(frozen=True)
class Gram:
    """S'S."""

    S: Segment

    @property
    def segments(self) -> tuple[Segment, ...]:
        """S alone."""
        return (self.S,)

    @property
    def listed(self) -> Segment:
        """S again."""
        return self.S

    def queries(self, inner: Queries, table: Table, lists: Ints, weights: Singles) -> Queries:
        """Sum rows of S."""
        return ListedQueries(inner, table, self.S, lists, weights)


@dataclass(frozen=True)
class Bilinear:
    """S'T, columns of T after those of S."""

    S: Segment

    @property
    def segments(self) -> tuple[Segment, ...]:
        """S and T, alike in step and norm."""
        return self.S, self.listed

    @property
    def listed(self) -> Segment:
        """T."""
        return replace(self.S, start=self.S.stop, stop=2 * self.S.stop - self.S.start)

    def queries(self, inner: Queries, table: Table, lists: Ints, weights: Singles) -> Queries:
        """Sum rows of T, to be multiplied with those of S."""
        return _Crossed(ListedQueries(inner, table, self.listed, lists, weights), self.S, self.listed)


@dataclass(frozen=True, eq=False)
class _Crossed:
    """Vectors [p_q | 0] with p_q = sum_j w_j T dbar_j, against rows [S d | T d]."""

    inner: ListedQueries
    S: Segment
    T: Segment

    def vectors(self, queries: Ints) -> Singles:
        out = self.inner.vectors(queries)
        out[:, self.S.start : self.S.stop] = out[:, self.T.start : self.T.stop]
        out[:, self.T.start : self.T.stop] = 0.0
        return out

    def onward(self, queries: Ints, gradient: Singles) -> Onward | None:
        crossed = np.zeros(gradient.shape, dtype=np.float32)
        crossed[:, self.T.start : self.T.stop] = gradient[:, self.S.start : self.S.stop]
        return self.inner.onward(queries, crossed)

    def step(self, queries: Ints, gradient: Singles, n_threads: int | None = None) -> None:
        self.inner.step(queries, gradient, n_threads)
