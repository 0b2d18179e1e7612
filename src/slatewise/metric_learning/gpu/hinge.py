"""The hinge of a learned distance on a GPU: scores, rankings and their sums in tiles of queries, all in float64.

What is as large as queries x items exists for one tile at a time, except the relevance, a byte each, which stays on
the device where there is room. Tiles depend on the sizes only and are added in their order, and nothing is added by two
threads at once: the same bits in every run. A tile that does not fit is cut in halves, from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, fields
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.core.running.devices import MOST_TILE, halved, with_less_memory, working_on
from slatewise.metric_learning.distance import Rows, dense, is_sparse, row_blocks
from slatewise.metric_learning.gpu.interleavings import (
    LOSSES,
    ROUNDING,
    Conquer,
    Tensor,
    harmonic,
    most_violated,
    try_all,
)
from slatewise.metric_learning.hinge import MetricHinge
from slatewise.metric_learning.oracle import Oracle

torch: Any = import_module("torch")
Result = TypeVar("Result")


class Tiles:
    """Rows in tiles of a given size; of a smaller one after a tile did not fit."""

    def __init__(self, n_rows: int, at_once: int) -> None:
        self.n_rows, self.at_once = n_rows, max(1, min(at_once, n_rows))

    def over(self, work: Callable[[slice], Result]) -> Generator[Result]:
        """Yield ``work`` of every tile in order."""
        start = 0

        def attempt(at_once: int) -> Result:
            self.at_once = at_once
            return work(slice(start, min(start + at_once, self.n_rows)))

        while start < self.n_rows:
            yield with_less_memory(attempt, self.at_once, halved, "one query against all items", "device=None")
            start += self.at_once


class Sent(NamedTuple):
    """What lies on the device during a fit."""

    queries: Tensor
    items: Tensor
    weight: Tensor
    scale: Tensor
    relevance: Tensor | None
    """(queries, items) int8, where there is room."""


@dataclass(frozen=True, eq=False)
class GpuHinge(MetricHinge):
    """The same hinge, summed on a device."""

    device: Any = None
    conquer: Conquer = try_all

    @property
    def rounding(self) -> float:
        """What scores lose of the square of the largest point."""
        return 4.0 * ROUNDING if self.oracle.name in LOSSES else super().rounding

    def cut(self, factor: Floats, oracle: Oracle | None = None) -> tuple[float, Floats]:
        """Return (offset, gradient) of the plane that touches R at the W of this factor, up to rounding."""
        with working_on(self.device):
            return self._cut(factor, oracle or self.oracle)

    def _cut(self, factor: Floats, oracle: Oracle) -> tuple[float, Floats]:
        sent, L = self._sent, torch.as_tensor(np.ascontiguousarray(factor), device=self.device)
        items = _embed(sent.items, L)
        queries = items if sent.queries is sent.items else _embed(sent.queries, L)
        squares = (items * items).sum(dim=1)

        def work(tile: slice) -> tuple[Tensor, Tensor, Tensor]:
            scores = torch.addmm(-squares, queries[tile], items.T, alpha=2.0)
            scale, share = sent.scale[tile], sent.weight[tile]
            losses, S = self._rankings(oracle, scores.mul_(scale[:, None]), self._relevance(tile))
            S *= (share * scale)[:, None]
            return (share * losses).sum(), _products(sent.queries[tile], S @ sent.items, L), S.sum(dim=0)

        offset, products, column_sums = 0.0, 0.0, 0.0
        for part in self._tiles.over(work):
            offset, products, column_sums = offset + part[0], products + part[1], column_sums + part[2]
        inner = _products(sent.items, sent.items * column_sums[:, None], L)  # pyright: ignore[reportIndexIssue]
        return float(offset), self.cone.symmetric((0.5 * inner - products).cpu().numpy())

    def _rankings(self, oracle: Oracle, scores: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """Rank on the device, or on the CPU in threads: losses of the first ranks hardly sort, so copies are cheap."""
        loss = LOSSES.get(oracle.name)
        if loss is not None:
            return most_violated(loss, scores, relevance, self._tables, self.conquer)
        values, wanted = scores.cpu().numpy(), relevance.cpu().numpy()
        losses, weights = np.empty(len(values)), np.empty(values.shape)

        def fill(rows: slice) -> None:
            part, n_rows = weights[rows], rows.stop - rows.start
            offsets = np.arange(n_rows + 1, dtype=np.int64) * values.shape[1]
            oracle.most_violated_block(
                values[rows].ravel(), wanted[rows].ravel(), offsets, losses[rows], part.reshape(-1)
            )

        self.executor.fill_blocks(fill, row_blocks(*values.shape))
        return torch.as_tensor(losses, device=self.device), torch.as_tensor(weights, device=self.device)

    def _relevance(self, tile: slice) -> Tensor:
        kept = self._sent.relevance
        return self._filled(tile) if kept is None else kept[tile]

    def _filled(self, rows: slice) -> Tensor:
        """Write the relevance of some queries, in threads, and copy it to the device."""
        out = np.empty((rows.stop - rows.start, self.relevance.n_items), dtype=np.int8)

        def fill(block: slice) -> None:
            moved = slice(block.start + rows.start, block.stop + rows.start)
            self.relevance.fill(moved, out[block])

        self.executor.fill_blocks(fill, row_blocks(*out.shape))
        return torch.as_tensor(out, device=self.device)

    @cached_property
    def _sent(self) -> Sent:
        try:
            items = _points(self.items, self.device)
            queries = items if self.queries is self.items else _points(self.queries, self.device)
            weight, scale = (
                torch.as_tensor(part, device=self.device)
                for part in (self.weight, np.ones(len(self.weight)) if self.scale is None else self.scale)
            )
            size = len(self.weight) * self.relevance.n_items
            relevance = torch.cat(list(self._tiles.over(self._filled))) if 4 * size < _free(self.device) else None
        except torch.OutOfMemoryError as error:
            raise MemoryError(f"device: expected room for all points in float64, found {error}") from None
        return Sent(queries, items, weight, scale, relevance)

    @cached_property
    def _tiles(self) -> Tiles:
        return Tiles(len(self.weight), MOST_TILE // (8 * self.relevance.n_items))

    @cached_property
    def _tables(self) -> Any:
        return harmonic(self.relevance.n_items + 1, self.device)


def on_gpu(hinge: MetricHinge, gpu: Any) -> GpuHinge:
    """Return the same hinge for a GPU."""
    from slatewise.metric_learning.gpu.fused import conquer

    return on_device(hinge, gpu, conquer)


def on_device(hinge: MetricHinge, device: Any, conquer: Conquer = try_all) -> GpuHinge:
    """Return the same hinge for any device of torch's."""
    parts = {field.name: getattr(hinge, field.name) for field in fields(hinge)}
    return GpuHinge(**parts, device=device, conquer=conquer)


def _points(rows: Rows, device: Any) -> Tensor:
    return torch.as_tensor(np.ascontiguousarray(dense(rows) if is_sparse(rows) else rows), device=device)


def _embed(points: Tensor, factor: Tensor) -> Tensor:
    """Map points by a factor L, or by one weight per feature."""
    return points @ factor.T if factor.ndim == 2 else points * factor


def _products(points: Tensor, SX: Tensor, factor: Tensor) -> Tensor:
    """Return Q'(SX), or its diagonal."""
    return points.T @ SX if factor.ndim == 2 else (points * SX).sum(dim=0)


def _free(device: Any) -> int:
    return int(torch.cuda.mem_get_info(device)[0]) if device.type == "cuda" else MOST_TILE
