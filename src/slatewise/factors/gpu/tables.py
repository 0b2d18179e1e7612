"""Tables in the memory of a device, and what is sent there once."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.factors.gpu.tiles import LARGEST, SMALLEST, Tiles, tiles_for
from slatewise.factors.tables import Table

torch: Any = import_module("torch")
Tensor: TypeAlias = Any
Kernels: TypeAlias = Any
"""``twins`` or ``fused``: modules with the same functions."""


def kernels_for(device: str) -> Kernels:
    """Return the kernels that run on a device."""
    if torch.device(device).type == "cpu":
        return import_module("slatewise.factors.gpu.twins")
    return import_module("slatewise.factors.gpu.fused")


def device_width(n_columns: int) -> int:
    """Return how wide rows are on the device: a power of two, with a column for the 1 that counts."""
    return max(SMALLEST, 1 << n_columns.bit_length())


def to_device(array: NDArray[Any], device: str) -> Tensor:
    """Copy an array."""
    given = np.ascontiguousarray(array)
    own = torch.from_numpy(given if given.flags.writeable else given.copy())
    return own.to(device, copy=True)


@dataclass(frozen=True, eq=False)
class DeviceTable:
    """Rows of float32, accumulators, and how segments move; behind the rows of the table are rows of zeros."""

    source: Table
    n_rows: int
    values: Tensor
    accumulators: Tensor
    moves: Tensor
    weights: dict[str, tuple[Tensor, Tensor]]
    """Values and accumulators of the weights beside the rows."""

    @classmethod
    def of(cls, table: Table, width: int, device: str) -> DeviceTable:
        """Send a table."""
        n_rows, used = len(table.values), min(width, int(table.values.shape[1]))
        padded = -(-n_rows // LARGEST) * LARGEST
        values = torch.zeros((padded, width), dtype=torch.float32, device=device)
        values[:n_rows, :used] = to_device(table.values, device)[:, :used]
        accumulators = torch.zeros((padded, len(table.segments)), dtype=torch.float32, device=device)
        accumulators[:n_rows] = to_device(table.accumulators, device)
        moves = [[part.start, part.stop, part.step, part.max_norm] for part in table.segments]
        weights = {
            name: (to_device(part.values, device), to_device(part.accumulators, device))
            for name, part in table.weights.items()
        }
        moving = torch.tensor(moves, dtype=torch.float32, device=device)
        return cls(table, n_rows, values, accumulators, moving, weights)

    def arrays(self) -> list[Tensor]:
        """Return the tensors that training moves, in the order of ``Table.arrays``."""
        return [self.values, *(values for values, _ in self.weights.values())]

    @property
    def moving(self) -> bool:
        """Whether any segment moves."""
        return any(part.step for part in self.source.segments)

    @property
    def n_used(self) -> int:
        """How many columns are the table's, from the first."""
        return max(part.stop for part in self.source.segments)

    def bring_back(self) -> None:
        """Write rows and accumulators into the table that they came from."""
        self.write(self.arrays(), self.source.arrays())
        torch.from_numpy(self.source.accumulators).copy_(self.accumulators[: self.n_rows])
        for name, (_, accumulators) in self.weights.items():
            torch.from_numpy(self.source.weights[name].accumulators).copy_(accumulators)

    def write(self, arrays: list[Tensor], out: list[NDArray[np.float32]]) -> None:
        """Write the columns of the rows that may have moved, and the weights."""
        torch.from_numpy(out[0])[:, : self.n_used].copy_(arrays[0][: self.n_rows, : self.n_used])
        for weights, own in zip(arrays[1:], out[1:], strict=True):
            torch.from_numpy(own).copy_(weights)


@dataclass(frozen=True, eq=False)
class Sent:
    """What an epoch has on the device: tables, each once, and arrays that do not change, kept from epoch to epoch."""

    device: str
    width: int
    kept: dict[int, tuple[NDArray[Any], Tensor]]
    kernels: Kernels
    tiles: Tiles
    tables: dict[int, DeviceTable] = field(default_factory=dict[int, DeviceTable])

    @classmethod
    def to(cls, device: str, width: int, kept: dict[int, tuple[NDArray[Any], Tensor]]) -> Sent:
        """Begin."""
        return cls(device, width, kept, kernels_for(device), tiles_for(width))

    def table(self, table: Table) -> DeviceTable:
        """Return a table on the device."""
        if id(table) not in self.tables:
            self.tables[id(table)] = DeviceTable.of(table, self.width, self.device)
        return self.tables[id(table)]

    def array(self, array: NDArray[Any]) -> Tensor:
        """Return an array that nobody changes on the device."""
        if id(array) not in self.kept or self.kept[id(array)][0] is not array:
            self.kept[id(array)] = array, to_device(array, self.device)
        return self.kept[id(array)][1]


def by_row(rows: Tensor, coefficients: Tensor, sources: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sort entries by row, each row's in the order they had; return rows, where each row's end, and the rest."""
    ordered, order = torch.sort(rows, stable=True)
    ends = torch.searchsorted(ordered, ordered, right=True, out_int32=True)
    return ordered, ends, coefficients[order], sources[order]
