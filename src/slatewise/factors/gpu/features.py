"""Queries given by features, on a device."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from slatewise.core.arrays import Singles
from slatewise.factors.gpu.queries import DeviceOffsets, DeviceQueries, step_places, weighted_rows
from slatewise.factors.gpu.tables import DeviceTable, Sent
from slatewise.factors.tables import Table

if TYPE_CHECKING:
    from scipy.sparse import csr_array

torch: Any = import_module("torch")
Tensor: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class _OfFeatures(DeviceQueries):
    """What dense and sparse features have in common."""

    sent: Sent
    table: DeviceTable
    bias: int


@dataclass(frozen=True, eq=False)
class DeviceDense(_OfFeatures):
    """Vectors linear in dense features."""

    features: Tensor

    @classmethod
    def of(cls, sent: Sent, features: Singles, table: Table, bias: int) -> DeviceDense:
        """Send them."""
        return cls(sent, sent.table(table), bias, sent.array(features))

    def vectors(self, queries: Tensor) -> Tensor:
        """Return the products."""
        out = self.features[queries] @ self.table.values[: self.table.n_rows]
        out[:, self.bias] = 1.0
        return out

    def step(self, queries: Tensor, gradient: Tensor) -> None:
        """Step all rows along ``X' G``."""
        if self.table.moving:
            total = self.features[queries].T @ gradient
            every = torch.arange(len(total), device=queries.device)[:, None]
            ones = torch.ones(every.shape, dtype=torch.float32, device=queries.device)
            step_places(self.sent, self.table, every, ones, ones > 0, total)


@dataclass(frozen=True, eq=False)
class DeviceSparse(_OfFeatures):
    """Vectors linear in sparse features."""

    numbers: Tensor
    columns: Tensor
    offsets: Tensor
    longest: int

    @classmethod
    def of(cls, sent: Sent, features: csr_array, table: Table, bias: int) -> DeviceSparse:
        """Send them."""
        numbers, columns, offsets = (sent.array(part) for part in (features.data, features.indices, features.indptr))
        longest = max(1, int((features.indptr[1:] - features.indptr[:-1]).max(initial=1)))
        return cls(sent, sent.table(table), bias, numbers, columns, offsets, longest)

    def vectors(self, queries: Tensor) -> Tensor:
        """Return the products."""
        columns, numbers, _ = self._places(queries)
        out = weighted_rows(self.table.values, columns, numbers, slice(0, self.sent.width))
        out[:, self.bias] = 1.0
        return out

    def step(self, queries: Tensor, gradient: Tensor) -> None:
        """Step the rows of the features that occur."""
        if self.table.moving:
            columns, numbers, there = self._places(queries)
            step_places(self.sent, self.table, columns, numbers, there, gradient)

    def _places(self, queries: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        places = self.offsets[queries].long()[:, None] + torch.arange(self.longest, device=queries.device)
        there = places < self.offsets[queries + 1].long()[:, None]
        places = torch.where(there, places, 0)
        return self.columns[places].long(), self.numbers[places].float() * there, there


@dataclass(frozen=True, eq=False)
class DeviceContext(DeviceQueries):
    """The vectors of bags, and those of features added to them; both are of one table."""

    bags: DeviceQueries
    features: DeviceQueries
    bias: int
    owners: Tensor

    def vectors(self, queries: Tensor) -> Tensor:
        """Return the sums."""
        out = self.bags.vectors(queries) + self.features.vectors(self.owners[queries])
        out[:, self.bias] = 1.0
        return out

    def score_offsets(self, queries: Tensor) -> DeviceOffsets | None:
        """Return what the bags hold."""
        return self.bags.score_offsets(queries)

    def step(self, queries: Tensor, gradient: Tensor) -> None:
        """Step the rows of items and w, then those of features, which are others."""
        self.bags.step(queries, gradient)
        self.features.step(self.owners[queries], gradient)

    def learn(self, queries: Tensor, coefficients: Tensor) -> None:
        """Step what repeated items get."""
        self.bags.learn(queries, coefficients)
