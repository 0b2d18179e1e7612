"""How long a round takes on workers that nobody has: what each part costs, dealt out as a cluster deals it.

    python -m slatewise_papers.scale

A round: the driver puts the parameters where all workers read them and asks one worker after the other; each makes its
point (``begin``) and adds up its blocks; the driver takes in the answers in order, a few subtrees from each, and adds
them. Work is divided by the number of workers, asking and answering is not: that is all there is to predict.
"""

from __future__ import annotations

from dataclasses import dataclass

from slatewise.cluster.workers import shares
from slatewise.core.block_sums import Subtree, Tree

WORKERS = (1, 2, 4, 10, 30, 100, 300, 1000)


@dataclass(frozen=True)
class Machine:
    """What another process costs, in seconds: of two local actors on an idle machine of two cores."""

    ask: float = 0.5e-3
    """To send one call."""
    answer: float = 1.2e-3
    """To take in one answer."""
    byte: float = 3.5e-9
    """To send or take in a byte."""
    cores: int | None = None
    """That all workers share; None: one each."""


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
    >>> free = Machine(0.0, 0.0, 0.0)
    >>> predicted(Learner("a sum", 128, 0.01, 0.0, 0, 0), 4, free)
    Round(n_workers=4, seconds=0.32, efficiency=1.0, bytes=0)
    """
    machine = machine or Machine()
    dealt = shares(learner.n_blocks, n_workers)
    crowd = 1.0 if machine.cores is None else max(1.0, len(dealt) / machine.cores)
    asked = learner.sent * machine.byte
    done: list[float] = []
    for first, last in dealt:
        asked += machine.ask
        done.append(asked + learner.sent * machine.byte + crowd * (learner.begin + (last - first) * learner.block))
    clock, moved = asked, len(dealt) * learner.sent
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


def margin(n_rows: int, n_features: int = 46, row: float = 6.8e-8) -> Learner:
    """A linear ranker: blocks of 4 MB of features; ``row`` seconds per row of 46 features, lists of 100, MAP."""
    rows_per_block = max(1, (1 << 22) // (8 * n_features))
    n_blocks = -(-n_rows // rows_per_block)
    name = f"MarginRanker, {n_rows:.0e} rows x {n_features}"
    return Learner(name, n_blocks, rows_per_block * row, 0.0, 8 * n_features, 8 * n_features)


def likelihood(n_rows: int, n_labels: int = 93, n_core: int = 8, row: float = 2.4e-5) -> Learner:
    """A c-star likelihood: blocks of 256 rows; ``row`` seconds per row of 93 labels with 8 core labels."""
    size = 8 * n_labels * (2 + n_core)
    name = f"CStarRanker, {n_rows:.0e} rows x {n_labels}, {n_core} core labels"
    return Learner(name, -(-n_rows // 256), 256 * row, 0.0, size, size)


def metric(
    n_queries: int, n_items: int, n_features: int, rank: int, flop: float = 1.0e-10, key: float = 2.5e-8
) -> Learner:
    """A distance: blocks of 4 MB of scores; ``flop`` seconds per operation of a product, ``key`` per score ranked."""
    rows = max(1, (1 << 22) // (8 * n_items))
    work = rows * n_items * (2 * rank + 2 * n_features) * flop + rows * n_items * key + 2 * rows * n_features**2 * flop
    size, begin = 8 * (n_features**2 + n_items), 2 * n_items * n_features * rank * flop
    name = f"MetricRanker, {n_queries:.0e} x {n_items:.0e} items x {n_features}"
    return Learner(name, -(-n_queries // rows), work, begin, 8 * rank * n_features, size, size * 1e-10)


def main() -> None:
    """Print predictions for a few sizes."""
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
