"""One step of exact WARP on a device: score, compare, sum, and move every row once.

    bar_p = f(q, d) - 1 ,    c_p = number of violators ,    a_p = weight_p L(c_p) ,    l_p = a_p / c_p

A pair pulls its item by a_p and pushes every violator by l_p: the mean over *all* of them, where ``blocked`` takes the
mean of a sample. Items that get something beside products are compared once more, by their whole score, and what the
kernels counted for them by the product alone is taken back. Two passes over the catalog: one that counts and sums, and,
when the weights are known, one that pushes and moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

from slatewise.factors.gpu.queries import DeviceOffsets, DeviceQueries, products, weighted_rows
from slatewise.factors.gpu.tables import DeviceTable, Sent, by_row

torch: Any = import_module("torch")
Tensor: TypeAlias = Any

LARGEST_SHARE = 16384.0
"""What the largest l_p of a step is scaled to, at most, in float16: sums of violators are of float16 numbers."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Pairs of all steps of an epoch, (steps, pairs); those that fill up the last step weigh 0."""

    queries: Tensor
    items: Tensor
    weights: Tensor


@dataclass(frozen=True, eq=False)
class Violations:
    """What the pairs of a step found."""

    sums: Tensor
    """Of the violators' rows; the last column is their number."""
    bars: Tensor
    counted: Tensor
    """1 where a pair's own item was counted by the kernels."""
    after: Tensor | None
    """Whether items that a query holds violate."""
    change: Tensor | None
    """1, 0 or -1: that, less what the kernels counted."""


@dataclass(frozen=True, eq=False)
class Step:
    """Takes a step each time it is called; what it needs is on the device, and its shapes never change."""

    sent: Sent
    queries: DeviceQueries
    items: DeviceTable
    half: Tensor
    """Float16 copies of the items' rows, 1 in the last column."""
    pulls: Tensor
    """The gradients of items' rows by their own pairs; zeros between steps."""
    rank_weight: Tensor
    plan: Plan
    at: Tensor
    """The number of the next step."""
    totals: Tensor
    """Loss and number of violated pairs, so far."""
    dropout: float
    n_dropped: int
    """Columns that may be left out: those of U."""
    seed: int

    @classmethod
    def of(
        cls,
        sent: Sent,
        queries: DeviceQueries,
        items: DeviceTable,
        rank_weight: Tensor,
        plan: Plan,
        dropout: float,
        seed: int,
    ) -> Step:
        """Get ready for the first step."""
        items.values[: items.n_rows, -1] = 1.0
        return cls(
            sent,
            queries,
            items,
            items.values.half(),
            torch.zeros_like(items.values),
            rank_weight,
            plan,
            torch.zeros(1, dtype=torch.int64, device=sent.device),
            torch.zeros(2, dtype=torch.float64, device=sent.device),
            dropout,
            items.source.segments[0].stop,
            seed,
        )

    def __call__(self) -> None:
        """Take the next step."""
        queries, positives, weights = (
            part.index_select(0, self.at)[0] for part in (self.plan.queries, self.plan.items, self.plan.weights)
        )
        vectors = self.queries.vectors(queries)
        kept = self._kept_shares(queries) if self.dropout else None
        if kept is not None:
            vectors[:, : self.n_dropped] *= kept
        u, held = vectors.half(), self.queries.score_offsets(queries)
        found = self._compare(u, positives, weights, held)
        counts = found.sums[:, -1].round().long().clamp(0, len(self.rank_weight) - 1)
        amounts = weights * self.rank_weight[counts]
        shares = amounts / counts.clamp(min=1)
        gradient = amounts[:, None] * self.half[positives].float() - shares[:, None] * found.sums
        self._note(u, found, held, counts, shares)
        self._step_items(queries, positives, u, found, held, amounts, shares, gradient)
        if kept is not None:
            gradient[:, : self.n_dropped] *= kept
        self.queries.step(queries, gradient)
        if held is not None and found.after is not None:
            own = held.items[:, : held.n_repeats]
            pushed = shares[:, None] * found.after[:, : held.n_repeats]
            self.queries.learn(queries, torch.where(own == positives[:, None], amounts[:, None], -pushed))
        self.at.add_(1)

    def _compare(self, u: Tensor, positives: Tensor, weights: Tensor, held: DeviceOffsets | None) -> Violations:
        own = self.half[positives].float()
        scores = (u.float() * own).sum(1)
        bars = scores - 1.0
        if held is not None:
            is_own = held.own & (held.items == positives[:, None])
            bars = bars + (held.amounts * is_own).sum(1)
        bars = torch.where(weights > 0, bars, torch.inf)
        sums = self.sent.kernels.sum_violators(u, self.half, bars, self.sent.tiles)
        counted = (scores > bars).float()
        sums = sums - counted[:, None] * own
        if held is None:
            return Violations(sums, bars, counted, None, None)
        others = held.items != positives[:, None]
        x = products(self.half, held.items, u.float(), slice(0, self.sent.width))
        after = (x + held.amounts > bars[:, None]) & others & held.there
        change = (after.float() - (x > bars[:, None]).float()) * (held.own & others)
        sums = sums + weighted_rows(self.half, held.items, change, slice(0, self.sent.width))
        return Violations(sums, bars, counted, after.float(), change)

    def _note(self, u: Tensor, found: Violations, held: DeviceOffsets | None, counts: Tensor, shares: Tensor) -> None:
        scores = (u.float() * found.sums).sum(1)
        if held is not None:
            scores = scores + (found.after * held.own * held.amounts).sum(1)
        hinges = torch.where(counts > 0, scores - counts * found.bars, 0.0)
        self.totals.add_(torch.stack([(shares * hinges).double().sum(), (counts > 0).double().sum()]))

    def _step_items(
        self,
        queries: Tensor,
        positives: Tensor,
        u: Tensor,
        found: Violations,
        held: DeviceOffsets | None,
        amounts: Tensor,
        shares: Tensor,
        gradient: Tensor,
    ) -> None:
        every, nowhere = torch.arange(len(u), device=u.device), len(self.items.values)
        # Where the kernels took a pair's own item for a violator, it is pulled back up.
        rows, coefficients, sources = [positives], [amounts + shares * found.counted], [every]
        vectors = u.float()
        if held is not None and found.change is not None:
            change = found.change
            rows.append(torch.where(change != 0, held.items, nowhere).reshape(-1))
            coefficients.append((-shares[:, None] * change).reshape(-1))
            sources.append(every[:, None].expand(change.shape).reshape(-1))
        backward = self.queries.backward(queries, gradient)
        if backward is not None:
            vectors = torch.cat([vectors, backward.vectors])
            rows.append(torch.where(backward.rows >= 0, backward.rows, nowhere).reshape(-1))
            coefficients.append(backward.coefficients.reshape(-1))
            sources.append((len(u) + every)[:, None].expand(backward.rows.shape).reshape(-1))
        entries = by_row(torch.cat(rows), torch.cat(coefficients), torch.cat(sources))
        self.sent.kernels.sum_rows(self.pulls, *entries, vectors, self.sent.tiles)
        largest = shares.max()
        scale = torch.where(largest > 0, (LARGEST_SHARE / largest).log2().floor().exp2(), 1.0)
        self.sent.kernels.step_items(
            self.items.values,
            self.items.accumulators,
            self.half,
            self.items.moves,
            self.items.n_rows,
            u,
            found.bars,
            (shares * scale).half(),
            scale,
            self.pulls,
            self.sent.tiles,
        )
        self.pulls.index_fill_(0, entries[0].clamp(max=nowhere - 1), 0.0)

    def _kept_shares(self, queries: Tensor) -> Tensor:
        """Return what the numbers of vectors are multiplied by: 0, or what keeps the mean of a product."""
        columns = torch.arange(self.n_dropped, device=queries.device)
        word = (queries[:, None] * _ODD + columns + 1) * _ODD + (self.at + self.seed) * _OTHER
        for shift, factor in ((30, _FIRST), (27, _SECOND)):  # Steele, Lea and Flood 2014
            word = (word ^ ((word >> shift) & ((1 << (64 - shift)) - 1))) * factor
        uniform = ((word >> 40) & 0xFFFFFF).float() / (1 << 24)
        return (uniform >= self.dropout).float() / (1.0 - self.dropout)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word


_ODD, _OTHER = _signed(0x9E3779B97F4A7C15), _signed(0xD1B54A32D192ED03)
_FIRST, _SECOND = _signed(0xBF58476D1CE4E5B9), _signed(0x94D049BB133111EB)
