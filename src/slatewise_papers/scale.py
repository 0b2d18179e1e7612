"""How long a round takes on more workers than there are: what each part costs, dealt out as a cluster deals it.

    python -m slatewise_papers.scale              # what is predicted, for 1 to 1,000 workers
    python -m slatewise_papers.scale --measure    # constants, and rounds of 1, 2 and 4 workers here beside predictions

A round: the driver puts the parameters where all workers read them and asks one worker after the other; each makes its
point (``begin``) and adds up its blocks; the driver takes in the answers in order, a few subtrees from each, and adds
them. Work is divided by the number of workers, asking and answering is not: that is all there is to predict.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slatewise.cluster.workers import shares
from slatewise.core.running.block_sums import BlockSum, Subtree, Tree
from slatewise.core.running.executor import Executor, thread_count
from slatewise_papers.bench import ray as bench

WORKERS = (1, 2, 4, 10, 30, 100, 300, 1000)


@dataclass(frozen=True)
class Machine:
    """What another process costs, in seconds: of two local actors on an idle machine of two cores."""

    ask: float = 0.2e-3
    """To send one call."""
    answer: float = 0.48e-3
    """To take in one answer."""
    byte: float = 0.45e-9
    """To send or take in a byte."""
    cores: int | None = None
    """That all workers share; None: one each."""
    first: float = 0.86e-3
    """Of a round, however many workers there are."""


@dataclass(frozen=True)
class Learner:
    """What a round of a learner costs."""

    name: str
    n_blocks: int
    block: float
    """Seconds of one block."""
    begin: float
    """Seconds that every worker takes before its first block."""
    sent: int
    """Bytes of the parameters."""
    returned: int
    """Bytes of one sum."""
    add: float = 0.0
    """Seconds to add two sums."""
    crowded: float = 1.0
    """How much longer a block takes where the other cores of its machine are busy too, and share its memory."""


@dataclass(frozen=True)
class Round:
    """A predicted round."""

    n_workers: int
    seconds: float
    efficiency: float
    """Of the workers: the work of one alone, over what all together take."""
    bytes: int
    """To and from the driver."""


def predicted(learner: Learner, n_workers: int, machine: Machine | None = None) -> Round:
    """Walk through one round.

    Examples
    --------
    >>> free = Machine(0.0, 0.0, 0.0, first=0.0)
    >>> predicted(Learner("a sum", 128, 0.01, 0.0, 0, 0), 4, free)
    Round(n_workers=4, seconds=0.32, efficiency=1.0, bytes=0)
    """
    machine = machine or Machine()
    dealt = shares(learner.n_blocks, n_workers)
    crowd = 1.0 if machine.cores is None else max(1.0, len(dealt) / machine.cores)
    block = learner.block * (learner.crowded if len(dealt) > 1 else 1.0)
    clock_of_calls = machine.first + learner.sent * machine.byte
    done: list[float] = []
    for first, last in dealt:
        clock_of_calls += machine.ask
        done.append(clock_of_calls + learner.sent * machine.byte + crowd * (learner.begin + (last - first) * block))
    clock, moved = clock_of_calls, len(dealt) * learner.sent
    for end, (first, last) in zip(done, dealt, strict=True):
        n_sums = n_subtrees(first, last)
        moved += n_sums * learner.returned
        clock = max(clock, end) + machine.answer + n_sums * (learner.returned * machine.byte + learner.add)
    alone = learner.begin + learner.n_blocks * learner.block
    return Round(n_workers, round(clock, 9), round(alone / (n_workers * clock), 6), moved)


def n_subtrees(first: int, last: int) -> int:
    """Return how many whole subtrees a run of blocks is.

    Examples
    --------
    >>> n_subtrees(0, 64), n_subtrees(3, 9)
    (1, 3)
    """
    tree: Tree[int] = Tree(max)
    for number in range(first, last):
        tree.push(Subtree(0, number, 0))
    return len(tree.subtrees)


def margin(n_rows: int, n_features: int = 46, row: float = 7.0e-8) -> Learner:
    """A linear ranker: blocks of 4 MB of features; ``row`` seconds per row of 46 features, lists of 100, MAP."""
    rows_per_block = max(1, (1 << 22) // (8 * n_features))
    n_blocks = -(-n_rows // rows_per_block)
    name = f"MarginRanker, {n_rows:.0e} rows x {n_features}"
    return Learner(name, n_blocks, rows_per_block * row, 0.0, 8 * n_features, 8 * n_features, crowded=1.15)


def likelihood(n_rows: int, n_labels: int = 93, n_core: int = 8, row: float = 2.13e-5) -> Learner:
    """A c-star likelihood: blocks of 256 rows; ``row`` seconds per row of 93 labels with 8 core labels."""
    size = 8 * n_labels * (2 + n_core)
    name = f"CStarRanker, {n_rows:.0e} rows x {n_labels}, {n_core} core labels"
    return Learner(name, -(-n_rows // 256), 256 * row, 0.0, size, size, crowded=1.07)


def metric(
    n_queries: int, n_items: int, n_features: int, rank: int, flop: float = 1.0e-10, key: float = 2.5e-8
) -> Learner:
    """A distance: blocks of 4 MB of scores; ``flop`` seconds per operation of a product, ``key`` per score ranked."""
    rows = max(1, (1 << 22) // (8 * n_items))
    work = rows * n_items * (2 * rank + 2 * n_features) * flop + rows * n_items * key + 2 * rows * n_features**2 * flop
    size, begin = 8 * (n_features**2 + n_items), 2 * n_items * n_features * rank * flop
    name = f"MetricRanker, {n_queries:.0e} x {n_items:.0e} items x {n_features}"
    return Learner(name, -(-n_queries // rows), work, begin, 8 * rank * n_features, size, size * 1e-10)


class Measured(NamedTuple):
    """Seconds of rounds on ``n_workers`` workers of this machine."""

    n_workers: int
    empty: float
    """Of a round without work."""
    heavy: float
    """Of a round without work whose sums are ``HEAVY`` bytes."""
    rounds: dict[str, float]
    """Of each learner."""


HEAVY = 8 << 20


def measured(n_workers: int, learners: Sequence[bench.Learner]) -> Measured:
    """Open workers here, and take the shortest of some rounds."""
    from slatewise import cluster

    with cluster.ray(workers=n_workers) as opened:
        there = Executor(1, opened)
        empty, heavy = (there.place_blocks([size] * n_workers, None) for size in (8, HEAVY))
        rounds = {learner.name: bench.best_round(learner.ask(there), 5) for learner in learners}
        return Measured(
            n_workers,
            bench.best_round(lambda: empty.sum(_LOAD, None), 50),
            bench.best_round(lambda: heavy.sum(_LOAD, None), 10),
            rounds,
        )


def _nothing(shared: None, at: None) -> None:
    del shared, at


def _load(at: None, size: int) -> NDArray[Any]:
    del at
    return np.zeros(size // 8)


_LOAD: BlockSum[None, None, None, int, NDArray[Any]] = BlockSum(_nothing, _load, np.add)


def machine_of(found: Sequence[Measured]) -> Machine:
    """Return what a call, an answer and a byte cost, by rounds without work: least squares over numbers of workers."""
    workers = np.array([one.n_workers for one in found], dtype=np.float64)
    per_worker = float(np.polyfit(workers, [one.empty for one in found], 1)[0])
    first = max(found[0].empty - per_worker, 0.0)
    per_byte = float(np.mean([(one.heavy - one.empty) / (one.n_workers * HEAVY) for one in found]))
    return Machine(0.3 * per_worker, 0.7 * per_worker, per_byte, thread_count(None), first)


def compare(quick: bool) -> None:
    """Measure 1, 2 and 4 workers here, and print what the simulator says of 4 from the rounds of 1 and 2."""
    share = 10 if quick else 1
    learners = [bench.margin(1_000_000 // share), bench.likelihood(64_000 // share)]
    models = [margin(1_000_000 // share), likelihood(64_000 // share)]
    found = [measured(n_workers, learners) for n_workers in (1, 2, 4)]
    machine = machine_of(found)
    print(f"a call and an answer {1e3 * (machine.ask + machine.answer):.2f} ms, a round {1e3 * machine.first:.2f} ms,")
    print(f"a byte {1e9 * machine.byte:.2f} ns, {machine.cores} cores")
    for learner, model in zip(learners, models, strict=True):
        alone, beside = (one.rounds[learner.name] - one.empty for one in found[:2])
        block, most = alone / model.n_blocks, max(last - first for first, last in shares(model.n_blocks, 2))
        model = replace(model, block=block, crowded=beside / (most * block))
        print(f"{model.name}: {model.n_blocks} blocks of {1e3 * block:.3f} ms, x {model.crowded:.2f} beside others")
        for one, how in zip(found, ("taken for it", "taken for it", "predicted"), strict=True):
            model_s = predicted(model, one.n_workers, machine).seconds
            took = one.rounds[learner.name]
            print(f"  {one.n_workers} workers: measured {took:.4f} s, {how} {model_s:.4f} s, {model_s / took - 1:+.0%}")


def main() -> None:
    """Print predictions for a few sizes, or measurements beside them."""
    parser = argparse.ArgumentParser(prog="python -m slatewise_papers.scale", description=__doc__)
    parser.add_argument("--measure", action="store_true", help="measure 1, 2 and 4 workers of this machine")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    arguments = parser.parse_args()
    if arguments.measure:
        compare(arguments.quick)
        return
    print("learner", *(f"{n} workers" for n in WORKERS), sep="\t")
    for learner in (
        margin(10**6),
        margin(10**9),
        likelihood(64_000),
        likelihood(10**7),
        metric(60_000, 60_000, 512, 100),
    ):
        found = [predicted(learner, n) for n in WORKERS]
        print(learner.name, *(f"{one.seconds:.3g} s ({one.efficiency:.0%})" for one in found), sep="\t")


if __name__ == "__main__":
    main()
