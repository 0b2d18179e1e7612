"""Quadratic ranking: gap to QAPLIB's best known values and seconds, and the exact subset recursion."""

from __future__ import annotations

import numpy as np
from scipy.optimize import quadratic_assignment

from slatewise.datasets import load
from slatewise.datasets.records import QapInstance, QapSet
from slatewise.inference import QuadraticRanking, quadratic_ranking
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.framework.timing import best_seconds, timed


def run(quick: bool = False) -> Table:
    """Search every instance with at most 50 items (quick: 20) with the default steps; rank 20 items exactly."""
    most = 20 if quick else 50
    instances = [instance for instance in load("qaplib", QapSet).instances.values() if len(instance.A) <= most]
    solve(min(instances, key=lambda instance: len(instance.A)))  # compiles
    rows: list[Row] = []
    gaps: list[float] = []
    seconds: list[float] = []
    for instance in instances:
        result, taken = timed(lambda instance=instance: solve(instance))
        seconds.append(taken)
        gaps.append(gap(instance, -result.score))
        rows.append(Row(f"gap, {instance.name}, {seconds[-1]:.2f} s", gaps[-1], unit="%"))
    rows.append(Row(f"mean gap of {len(gaps)} instances", float(np.mean(gaps)), unit="%", bar="<= 0.3 %"))
    rows.append(Row("longest search", max(seconds), bar="<= 2 s"))
    average_precision_like(5, seed=0)
    exact = best_seconds(lambda seed: average_precision_like(20, seed), range(1 if quick else 3))
    rows.append(Row("exact, 20 items, D of average precision", exact, bar="<= 0.3 s"))
    peer = [gap(instance, float(quadratic_assignment(instance.A, instance.B).fun)) for instance in instances]
    return Table("quadratic", rows, remarks=[f"mean gap of scipy.optimize.quadratic_assignment: {np.mean(peer):.2f} %"])


def solve(instance: QapInstance) -> QuadraticRanking:
    """Make the objective small: items are A's rows, positions B's."""
    none = np.zeros(len(instance.A))
    return quadratic_ranking(none, none, -instance.A, instance.B, method="tabu")


def gap(instance: QapInstance, value: float) -> float:
    """Return by how many per cent a value lies above the best known one."""
    return 100.0 * (value / instance.best_value - 1.0)


def average_precision_like(n: int, seed: int) -> QuadraticRanking:
    """Rank n items with random interactions that count one over the later rank."""
    rng = np.random.default_rng(seed)
    rank = np.arange(1.0, n + 1.0)
    return quadratic_ranking(
        rng.normal(size=n), 1.0 / rank, rng.normal(size=(n, n)), 1.0 / np.maximum.outer(rank, rank)
    )
