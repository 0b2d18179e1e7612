"""An epoch on a device: tables go there, steps are recorded once and replayed, tables come back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.devices import with_less_memory, working_on
from slatewise.factors.engines.protocol import EpochStats
from slatewise.factors.gpu.step import Plan, Step
from slatewise.factors.gpu.tables import Sent, device_width
from slatewise.factors.gpu.tiles import LARGEST, Tiles
from slatewise.factors.pairs import TrainingPairs
from slatewise.factors.scoring import Factors
from slatewise.factors.tables import EpochMean, is_moment

torch: Any = import_module("torch")
Tensor: TypeAlias = Any

STEPS_BEFORE_RECORDING = 3
"""Steps that are launched kernel by kernel: they compile, and fill the caches of libraries."""


Take: TypeAlias = Callable[[Step, int, Callable[[int], None]], None]
"""A step, how often to take it, and what to call with the number of each that is done."""


def launch(step: Step, n_steps: int, note: Callable[[int], None]) -> None:
    """Take steps kernel by kernel."""
    for number in range(n_steps):
        step()
        note(number)


def replay(step: Step, n_steps: int, note: Callable[[int], None]) -> None:
    """Take steps; on a GPU all but the first few as one that is recorded, which saves launching kernel by kernel."""
    n_first = min(n_steps, STEPS_BEFORE_RECORDING) if step.at.is_cuda else n_steps
    launch(step, n_first, note)
    if n_first == n_steps:
        return
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for number in range(n_first, n_steps):
        graph.replay()
        note(number)


@dataclass(frozen=True, eq=False)
class Setting:
    """The settings of an engine, and what it keeps on the device from epoch to epoch."""

    device: str
    rank_weight: Singles
    step_pairs: int
    dropout: float = 0.0
    tiles: Tiles | None = None
    """None: those that were fastest."""
    take: Take = replay
    """Takes all steps of an epoch."""
    kept: dict[int, tuple[NDArray[Any], Tensor]] = field(default_factory=dict[int, "tuple[NDArray[Any], Tensor]"])


@dataclass(frozen=True, eq=False)
class Draw:
    """The order of an epoch: runs of pairs, and a seed for what is left out."""

    runs: Ints
    seed: int


def run_epoch(
    setting: Setting, factors: Factors, pairs: TrainingPairs, rng: np.random.Generator, mean: EpochMean | None
) -> EpochStats:
    """Train on every pair once; tables are written when all steps are done, so that an epoch may be begun again."""
    draw = Draw(rng.permutation(len(pairs.offsets) - 1), int(rng.integers(0, 1 << 30)))
    width = device_width(max(part.stop for part in factors.items.segments))
    sent = Sent.to(setting.device, width, setting.kept)
    first = sent.tiles if setting.tiles is None else setting.tiles
    what = f"a step of {setting.step_pairs} pairs over {len(factors.items.values)} items, {width} numbers each"
    instead = "a smaller batch_size or n_components, or engine='blocked'"

    def attempt(tiles: Tiles) -> EpochStats:
        return _epoch(setting, replace(sent, tiles=tiles, tables={}), factors, pairs, draw, mean)

    with working_on(setting.device):
        return with_less_memory(attempt, first, Tiles.smaller, what, instead)


def _epoch(
    setting: Setting,
    sent: Sent,
    factors: Factors,
    pairs: TrainingPairs,
    draw: Draw,
    mean: EpochMean | None,
) -> EpochStats:
    n_pairs = -(-setting.step_pairs // LARGEST) * LARGEST
    plan, ends = _plan(sent, pairs, draw.runs, setting.step_pairs, n_pairs)
    items, queries = sent.table(factors.items), factors.queries.on(sent)
    rank_weight = sent.array(setting.rank_weight)
    step = Step.of(sent, queries, items, rank_weight, plan, setting.dropout, draw.seed)
    means = _Means(sent, mean, len(pairs.offsets) - 1, ends, setting.step_pairs)
    setting.take(step, len(plan.queries), means.note)
    loss, violated = step.totals.tolist()
    for table in sent.tables.values():
        table.bring_back()
    means.hand_over()
    return EpochStats(loss / len(pairs), violated / len(pairs))


def _plan(sent: Sent, pairs: TrainingPairs, runs: Ints, step_pairs: int, n_places: int) -> tuple[Plan, Ints]:
    """Put the pairs of runs in a row, cut it into steps, and fill these up; return also where each run ends."""
    sizes = np.diff(pairs.offsets)[runs]
    ends = np.cumsum(sizes)
    order, offsets = torch.from_numpy(runs).to(sent.device), sent.array(pairs.offsets)
    begins, n_pairs = offsets[order], len(pairs)
    lengths = offsets[order + 1] - begins
    before = lengths.cumsum(0) - lengths
    which = torch.repeat_interleave(begins - before, lengths, output_size=n_pairs)
    which += torch.arange(n_pairs, device=sent.device)
    n_steps = -(-n_pairs // step_pairs)

    def steps(values: Tensor) -> Tensor:
        flat = torch.zeros(n_steps * step_pairs, dtype=values.dtype, device=sent.device)
        flat[:n_pairs] = values[which]
        return torch.nn.functional.pad(flat.view(n_steps, step_pairs), (0, n_places - step_pairs))

    queries, items, weights = (sent.array(part) for part in (pairs.queries, pairs.items, pairs.weights))
    return Plan(steps(queries), steps(items), steps(weights)), ends


@dataclass(eq=False)
class _Means:
    """The mean of both tables over an epoch, as :class:`EpochMean` takes it, on the device."""

    sent: Sent
    mean: EpochMean | None
    n_runs: int
    ends: Ints
    step_pairs: int
    moments: int = 0
    values: list[list[Tensor]] = field(default_factory=list[Any])

    def note(self, step: int) -> None:
        """A step is done."""
        if self.mean is None:
            return
        seen = int(np.searchsorted(self.ends, (step + 1) * self.step_pairs, side="right"))
        if not is_moment(seen, self.moments, self.n_runs):
            return
        self.moments += 1
        now = [self.sent.table(table).arrays() for table in (self.mean.queries, self.mean.items)]
        if self.moments == 1:
            self.values = [[values.clone() for values in arrays] for arrays in now]
            return
        for means, arrays in zip(self.values, now, strict=True):
            for mean, values in zip(means, arrays, strict=True):
                mean += (values - mean) * (1.0 / self.moments)

    def hand_over(self) -> None:
        """Tell the mean of all runs at once."""
        if self.mean is None:
            return
        means: list[Singles] = []
        for table, values in zip((self.mean.queries, self.mean.items), self.values, strict=False):
            own = table.copy().arrays()
            self.sent.table(table).write(values, own)
            means += own
        self.mean.take_over(self.n_runs, self.moments, means)
