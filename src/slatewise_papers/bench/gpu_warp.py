"""Exact WARP and the 20 best of all items on one GPU, 176,948 items, 5.4M generated pairs, n = 50.

Part of ``bench gpu``. An epoch is timed whole, as fit has it: tables and the order of the pairs go to the GPU, means
are taken, and all comes back. What takes longer has a command of its own,
``python -m slatewise_papers.bench.gpu_warp [--quick] [--race] [--recall]``: ``--race`` prints recall by seconds, to be
put beside a peer's; ``--recall`` compares recall with the exact engine of the CPU on lastfm1k (of SLATEWISE_DATA),
which takes minutes of all cores; ``--quick`` is a tenth of items and pairs.
"""

from __future__ import annotations

import gzip
import os
import time
from argparse import ArgumentParser
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from slatewise.core.arrays import Ints
from slatewise.core.running.executor import Executor
from slatewise.factors.engines.blocked import BlockedEngine, WholeCatalogue, rank_weights
from slatewise.factors.engines.gpu import GpuEngine, TorchDevice, gpu
from slatewise.factors.engines.protocol import WarpEngine
from slatewise.factors.pairs import TrainingPairs
from slatewise.factors.scoring import Cascade, Factors
from slatewise.factors.stages import PLAIN_EPOCHS, recall_at
from slatewise.factors.tables import EpochMean
from slatewise.factors.tables import Table as Rows
from slatewise_papers.bench._gpu import peak
from slatewise_papers.bench._gpu import seconds as seconds_of
from slatewise_papers.bench.gpu import machine
from slatewise_papers.bench.warp import STEP_PAIRS, Race, first_factors, generated_race
from slatewise_papers.framework.benchmark import Row
from slatewise_papers.framework.timing import each_seconds, timed

K, WIDTH = 20, 64
"""Items of a list; columns of n = 50, a bias and a count as the GPU has them."""
LASTFM = "lastfm1k_artist_sessions"
EPOCHS = (1, 2, 4)


def rows(quick: bool) -> list[Row]:
    """Time training and ranking; ``quick``: a tenth of the items and pairs."""
    race = _race(quick)
    return [*_epochs(race), *_counts(race), *_top(race.n_items)]


def _race(quick: bool) -> Race:
    return generated_race(17_695 if quick else 176_948, 113_000 if quick else 1_130_000)


@dataclass(frozen=True, eq=False)
class Start:
    """What training begins with."""

    factors: Factors
    queries: Rows

    @classmethod
    def of(cls, n_items: int, max_norm: float = 2.5, seed: int = 0) -> Start:
        """Make tables."""
        factors = first_factors(n_items, max_norm, seed)
        made: Any = factors.queries
        return cls(factors, made.table)

    def epoch(self, engine: WarpEngine, pairs: TrainingPairs, number: int) -> EpochMean:
        """Train an epoch whose mean is taken."""
        mean = EpochMean(self.queries, self.factors.items, len(pairs.offsets) - 1)
        engine.epoch(self.factors, pairs, np.random.default_rng((0, number)), mean)
        return mean


def _epochs(race: Race) -> list[Row]:
    """Train twice from the same start; the first epoch compiles."""
    pairs = race.pairs
    found = [Start.of(race.n_items) for _ in range(2)]
    seconds: list[float] = []
    for start in found:
        engine = GpuEngine(rank_weights(race.n_items), STEP_PAIRS)
        seconds += each_seconds(lambda epoch, start=start, engine=engine: start.epoch(engine, pairs, epoch), range(2))
    same = all(
        np.array_equal(*tables)
        for tables in zip(*([one.queries.values, one.factors.items.values] for one in found), strict=True)
    )
    steps = _seconds_of_steps(found[0], GpuEngine(rank_weights(race.n_items), STEP_PAIRS), pairs, 2)
    what = f"exact WARP, {race.n_items:,} items, {len(pairs):,} pairs"
    least = 8.0 * STEP_PAIRS * race.n_items * WIDTH * -(-len(pairs) // STEP_PAIRS) / peak().fp16
    return [
        Row(f"{what}: the first epoch, which compiles", seconds[0]),
        Row(f"{what}: an epoch", min(seconds[1:]), "its products alone", least, bar="<= 2.0 s (stretch 1.5)"),
        Row(f"{what}: the slowest of three epochs", max(seconds[1:]), "its products alone", least),
        Row(f"{what}: the steps of an epoch", steps, "its products alone", least),
        Row("same bits from run to run, 1: yes", float(same), unit="", bar="1"),
    ]


def _counts(race: Race, n_pairs: int = 2048) -> list[Row]:
    """Compare the counts of a step after an epoch with sums in float64.

    Scores of the float16 tables are sums of products that float32 holds exactly; the kernel adds them, and those of the
    bar, in float32. A score nearer to the bar than such sums can be off may fall on either side: *at the bar*.
    """
    torch: Any = import_module("torch")
    fused: Any = import_module("slatewise.factors.gpu.fused")
    tiles: Any = import_module("slatewise.factors.gpu.tiles")
    start, pairs, device = Start.of(race.n_items), race.pairs, gpu().name
    start.epoch(GpuEngine(rank_weights(race.n_items), STEP_PAIRS), pairs, 0)
    chosen = np.linspace(0, len(pairs) - 1, n_pairs).astype(np.int64)
    vectors = torch.from_numpy(start.queries.values[pairs.queries[chosen]]).to(device)
    items = torch.from_numpy(start.factors.items.values).to(device)
    positives = torch.from_numpy(pairs.items[chosen]).to(device)
    u, half = vectors.half(), torch.nn.functional.pad(items, (0, 0, 0, -len(items) % 128)).half()
    bars = (u.float() * half[positives].float()).sum(1) - 1
    half[: len(items), -1] = 1
    counts = fused.sum_violators(u, half, bars, tiles.tiles_for(WIDTH))[:, -1].long()
    half[:, -1] = 0
    exact, least, most = counts_between(u, half[: len(items)], positives)
    single, _, _ = counts_between(vectors, items, positives)
    change = (counts - single).abs().double() / single.clamp(min=1)
    return [
        Row(f"counts of {n_pairs} pairs, float16 tables, that scores at the bar do not explain",
            float(((counts < least) | (counts > most)).sum()), unit="", bar="0"),
        Row("counts other than those of float64 sums", float((counts != exact).sum()), unit=""),
        Row("the largest such difference, of items", float((counts - exact).abs().max()), unit=""),
        Row("scores at the bar, of all pairs and items", float((most - least).sum()), unit=""),
        Row("mean count", float(exact.double().mean()), unit=""),
        Row("mean relative difference to counts of the float32 tables", 100 * float(change.mean()), unit="%"),
        Row("largest relative difference to them", 100 * float(change.max()), unit="%"),
    ]  # fmt: skip


def counts_between(left: Any, right: Any, positives: Any) -> tuple[Any, Any, Any]:
    """Return how many rows of ``right`` score more than those of ``positives``, less 1, by sums in float64.

    The second and third are the fewest and most that sums in float32, in any order, may count.
    """
    torch: Any = import_module("torch")
    left, right = left.double(), right.double()
    own, most_off = right[positives], (left.shape[1] + 1) * 2.0**-23  # of a sum of sizes, were every digit cut off
    bars, bar_off = (left * own).sum(1) - 1, most_off * ((left * own).abs().sum(1) + 1)
    counts = torch.zeros((3, len(left)), dtype=torch.int64, device=left.device)
    for first in range(0, len(right), 4096):
        rows = right[first : first + 4096]
        above, off = left @ rows.T - bars[:, None], most_off * (left.abs() @ rows.abs().T) + bar_off[:, None]
        for count, found in zip(counts, (above > 0, above > off, above > -off), strict=True):
            count += found.sum(1)
    return counts[0], counts[1], counts[2]


def _top(n_items: int) -> list[Row]:
    factors, device = first_factors(n_items), gpu()
    cascade = Cascade((factors,))
    device.top(cascade, np.arange(n_items), K, None)
    runs = [timed(lambda: device.top(cascade, np.arange(n_items), K, None)) for _ in range(3)]
    found, took = runs[-1][0], min(taken for _, taken in runs)
    few = np.arange(0, n_items, max(1, n_items // 200))
    expected = cascade.top(few, K, executor=Executor.of(None))
    differ = float((found.items[few] != expected.items).mean())
    least = 8.0 * n_items * n_items / peak().copy
    return [
        Row(f"top {K} of {n_items:,} items for all {n_items:,} queries", took,
            "scores written and read once", least, bar="<= 0.5 s"),
        Row("places whose item is not the CPU's, which differ in the last digits", 100 * differ, unit="%"),
    ]  # fmt: skip


def choices(quick: bool = False, n_steps: int = 150) -> None:
    """Print milliseconds per step with other tiles, one pass changed at a time, and other sizes of ranking."""
    tiles: Any = import_module("slatewise.factors.gpu.tiles")
    race = _race(quick)
    pairs, first = race.pairs, tiles.tiles_for(WIDTH)
    some = slice(None, None, len(pairs) // (n_steps * STEP_PAIRS))
    few = TrainingPairs.of(pairs.queries[some], pairs.items[some], pairs.weights[some])
    changes: list[dict[str, int]] = [{}]
    changes += [
        {"pairs": p, "items": i, "shares": s, "warps": w, "stages": t}
        for p, i, s, w, t in (
            (128, 64, 16, 4, 3),
            (128, 64, 64, 4, 3),
            (128, 64, 33, 4, 3),
            (128, 128, 32, 4, 3),
            (128, 128, 32, 8, 3),
            (128, 64, 32, 8, 3),
            (64, 64, 16, 4, 3),
            (128, 64, 32, 4, 2),
            (128, 64, 32, 4, 4),
            (128, 128, 33, 8, 2),
        )
    ]
    changes += [
        {"step_pairs": p, "step_items": i, "step_warps": w, "stages": t}
        for p, i, w, t in (
            (128, 128, 8, 3),
            (64, 64, 4, 3),
            (128, 64, 4, 3),
            (32, 128, 4, 3),
            (64, 128, 8, 3),
            (64, 128, 4, 2),
            (64, 128, 4, 4),
            (128, 128, 8, 2),
        )
    ]
    for change in changes:
        start, engine = Start.of(race.n_items), GpuEngine(rank_weights(race.n_items), STEP_PAIRS)
        engine.setting = replace(engine.setting, tiles=first._replace(**change))
        try:
            seconds = [_seconds_of_steps(start, engine, few, number) for number in range(3)]
        except MemoryError as error:
            print(change, error, flush=True)
            continue
        print(f"a step, {change or first}: {1e3 * min(seconds[1:]) / -(-len(few) // STEP_PAIRS):.4f} ms", flush=True)
    _top_sizes(race.n_items)


def _top_sizes(n_items: int) -> None:
    """Print the seconds of ranking with other groups and blocks."""
    topk: Any = import_module("slatewise.factors.gpu.topk")
    cascade, device = Cascade((first_factors(n_items),)), gpu()
    for group, at_once in ((64, 29), (32, 29), (128, 29), (256, 29), (64, 27), (64, 31), (128, 31)):
        with patch.multiple(topk, GROUP=group, SCORES_AT_ONCE=1 << at_once):
            took = seconds_of(lambda: device.top(cascade, np.arange(n_items), K, None), 3)
        print(f"top {K}, groups of {group}, 2 ** {at_once} scores at once: {took:.4f} s", flush=True)


def _seconds_of_steps(start: Start, engine: GpuEngine, pairs: TrainingPairs, number: int) -> float:
    """Time the steps of an epoch alone, without what goes to the GPU and back."""
    torch: Any = import_module("torch")
    spent: list[float] = []
    take = engine.setting.take

    def timed(*args: Any) -> None:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        take(*args)
        torch.cuda.synchronize()
        spent.append(time.perf_counter() - begin)

    engine.setting = replace(engine.setting, take=timed)
    start.epoch(engine, pairs, number)
    engine.setting = replace(engine.setting, take=take)
    return spent[-1]


def recall_rows(seeds: int = 3) -> list[Row]:
    """Return R@10 of both engines after some epochs, means over seeds; held out are the pairs of 5% of the sessions."""
    data = _lastfm()
    found: dict[str, list[list[float]]] = {"gpu": [], "blocked": []}
    for seed in range(seeds):
        for name in found:
            recalls, taken = timed(lambda name=name, seed=seed: _recalls(name, data, seed))
            found[name].append(recalls)
            print(name, seed, [f"{100 * one:.3f}" for one in recalls], f"{taken:.1f} s")
    ours, theirs = (100 * np.mean(found[name], axis=0) for name in ("gpu", "blocked"))
    return [
        Row(f"R@10 after {epoch} epochs, lastfm1k, {seeds} seeds", float(own), "blocked", float(other), unit="%",
            bar="within 0.2 points")
        for epoch, own, other in zip(EPOCHS, ours, theirs, strict=True)
    ]  # fmt: skip


def _lastfm() -> Race:
    folder = Path(os.environ["SLATEWISE_DATA"]) / LASTFM
    lines: list[str] = []
    for path in sorted(folder.glob("*.gz")):
        with gzip.open(path, "rt") as file:
            lines += file.read().split("\n")
    sessions: list[Ints] = [np.array(line.split(","), dtype=np.int64) for line in lines if "," in line]
    order = np.random.default_rng(0).permutation(len(sessions)).tolist()
    cut = int(0.95 * len(order))
    queries, items = _consecutive([sessions[i] for i in order[:cut]])
    test_queries, wanted = _consecutive([sessions[i] for i in order[cut:]])
    known = np.unique(np.concatenate([queries, items]))
    there = np.isin(test_queries, known) & np.isin(wanted, known)
    parts = (queries, items, test_queries[there], wanted[there])
    return Race(len(known), *(np.searchsorted(known, part) for part in parts))


def _consecutive(sessions: list[Ints]) -> tuple[Ints, Ints]:
    return np.concatenate([one[:-1] for one in sessions]), np.concatenate([one[1:] for one in sessions])


def _recalls(name: str, race: Race, seed: int) -> list[float]:
    """Train, with the defaults of LatentRanker, and return R@10 after each of EPOCHS."""
    weight, pairs = rank_weights(race.n_items), race.pairs
    engine: WarpEngine = GpuEngine(weight, STEP_PAIRS)
    if name == "blocked":
        engine = BlockedEngine(WholeCatalogue(), weight, STEP_PAIRS, Executor.of(None))
    start = Start.of(race.n_items, 1.5, seed)
    queries, items = start.queries, start.factors.items
    recalls: list[float] = []
    for epoch in range(max(EPOCHS)):
        mean = EpochMean(queries, items, len(pairs.offsets) - 1)
        rng = np.random.default_rng((seed, epoch))
        engine.epoch(start.factors, pairs, rng, mean if epoch >= PLAIN_EPOCHS else None)
        if epoch + 1 in EPOCHS:
            judged = mean.tables()
            recalls.append(_recall(race, Factors(_ids(judged[0]), judged[1]), gpu()))
    return recalls


def _ids(table: Rows) -> Any:
    return import_module("slatewise.factors.queries").IdQueries(table)


def _recall(race: Race, factors: Factors, device: TorchDevice) -> float:
    return recall_at(Cascade((factors,), device=device), race.test_queries, race.test_items, (10,))[10]


def race_rows(quick: bool = False, epochs: int = 10) -> list[Row]:
    """Return R@10 after each epoch, and the seconds up to it, from grouping the pairs on."""
    race = _race(quick)
    warm = Start.of(race.n_items)
    few = TrainingPairs.of(race.queries[:20_000], race.items[:20_000], np.ones(20_000, dtype=np.float32))
    warm.epoch(GpuEngine(rank_weights(race.n_items), STEP_PAIRS), few, 0)
    (start, pairs, engine), spent = timed(
        lambda: (Start.of(race.n_items), race.pairs, GpuEngine(rank_weights(race.n_items), STEP_PAIRS))
    )
    found: list[Row] = []
    for epoch in range(epochs):
        (queries, items), taken = timed(lambda epoch=epoch: start.epoch(engine, pairs, epoch).tables())
        spent += taken
        recall = _recall(race, Factors(_ids(queries), items), gpu())
        found.append(Row(f"R@10 after {epoch + 1} epochs and {spent:.2f} s", recall, unit=""))
        print(found[-1].what, f"{recall:.4f}", flush=True)
    return found


def main(arguments: list[str] | None = None) -> None:
    """Print the race, or recall, or the machine alone."""
    parser = ArgumentParser(prog="python -m slatewise_papers.bench.gpu_warp")
    for flag in ("--quick", "--race", "--recall"):
        parser.add_argument(flag, action="store_true")
    given = parser.parse_args(arguments)
    print(*machine(), sep="\n", flush=True)
    if given.race:
        race_rows(given.quick)
    for row in recall_rows() if given.recall else []:
        print(f"{row.what}: {row.ours:.4f} {row.unit}  ({row.peer}: {row.theirs:.4f})  {row.bar}", flush=True)


if __name__ == "__main__":
    main()
