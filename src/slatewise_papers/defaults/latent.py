"""`LatentRanker()` on sessions: what comes next, beside counting, the former defaults and a grid.

    R@20 = share of the test pairs (item, next item) whose next item is among the 20 best of all items for the first

A twentieth of the sessions, drawn by the seed, is cut at random into a fifth for testing and the rest; so that thirty
fits take minutes. All fits learn from the same pairs and hold the same ones out, and the best of the grid is the one
with the best recall at 20 on those. Only then are the test pairs looked at.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from slatewise import LatentRanker, datasets
from slatewise.core.running.progress import tell, track
from slatewise.data.records import Sessions
from slatewise.datasets.records import SessionSet
from slatewise.factors.settings import EpochReport
from slatewise_papers.framework.reproduction import Row
from slatewise_papers.lasr.counts import Counts
from slatewise_papers.lasr.data import ArtistPairs, MusicProblem, of_sessions
from slatewise_papers.lasr.lists import Lists

SETS = ("nowplaying_sessions", "lastfm1k_artist_sessions")
SHARE, QUICK_SHARE = 0.05, 0.005
"""Of the sessions."""
GRID = tuple(product((25, 50, 100), (0.1, 0.3), (1.0, 1.5, 2.0, 2.5, 3.5)))
"""n_components, learning_rate and max_norm, named before the first run."""
QUICK_GRID = ((25, 0.3, 1.5), (25, 0.3, 2.5))
FORMER = (50, 0.3, 2.5)
DEPTH = 20


def rows(quick: bool, seed: int) -> list[Row]:
    """Compare on every set."""
    found: list[Row] = []
    for name in track(SETS, "set of sessions"):
        problem = of_sessions(name, share_of(name, QUICK_SHARE if quick else SHARE, seed), seed)
        found += compare(problem, QUICK_GRID if quick else GRID, seed)
    return found


def share_of(name: str, share: float, seed: int) -> Sessions:
    """Return a share of all sessions of a set, drawn at random."""
    both = datasets.load(name, SessionSet)
    lengths = np.concatenate([np.diff(part.offsets) for part in (both.train, both.test)])
    drawn = np.random.default_rng((seed, 1)).random(len(lengths)) < share
    items = np.concatenate([both.train.items, both.test.items])[np.repeat(drawn, lengths)]
    return Sessions(items, np.concatenate([[0], np.cumsum(lengths[drawn])]))


def compare(problem: MusicProblem, grid: Sequence[tuple[int, float, float]], seed: int) -> list[Row]:
    """Return a row for counting, for the former defaults, for the best of the grid and for no argument at all."""
    known, test = problem.known, problem.test
    tried = {cell: _fit(known, *cell, seed) for cell in track(grid, f"cells of the grid on {problem.name}")}
    n_components, learning_rate, max_norm = best = max(grid, key=lambda cell: tried[cell].held_out)
    settings = f"best of the grid, n={n_components}, learning_rate={learning_rate:g}, max_norm={max_norm:g}"
    former = tried[FORMER] if FORMER in tried else _fit(known, *FORMER, seed)
    own = _timed(LatentRanker(random_state=seed), known)
    counts = 100.0 * recall_of(Counts.of(known, problem.n_artists, 0.0).lists, test)
    figures = {
        "counts of what followed": {f"R@{DEPTH}": counts},
        "LatentRanker(learning_rate=.3, max_norm=2.5)": former.measured(test),
        settings: tried[best].measured(test),
        "LatentRanker()": own.measured(test)
        | {"learning_rate": own.ranker.learning_rate_, "max_norm": own.ranker.max_norm_},
    }
    ratio = figures["LatentRanker()"][f"R@{DEPTH}"] / figures[settings][f"R@{DEPTH}"]
    figures["LatentRanker()"] |= {f"R@{DEPTH} over the grid's": ratio, "pairs": len(known), "test_pairs": len(test)}
    return [Row(f"{problem.name}: {name}", measured, None) for name, measured in figures.items()]


def recall_of(lists: Lists, pairs: ArtistPairs) -> float:
    """Return the share of the pairs whose item is in the list of its query."""
    distinct, own = np.unique(pairs.queries, return_inverse=True)
    return float((lists(distinct, DEPTH)[own] == pairs.items[:, None]).any(axis=1).mean())


@dataclass(frozen=True, eq=False)
class _Fitted:
    ranker: LatentRanker
    held_out: float
    seconds: float
    epochs: int
    """Of all trials together."""

    def measured(self, test: ArtistPairs) -> dict[str, float]:
        recall = self.ranker.recall(test.queries, test.items, (DEPTH,))[DEPTH]
        return {
            f"R@{DEPTH}": 100.0 * recall,
            "held_out": 100.0 * self.held_out,
            "seconds": self.seconds,
            "epochs": self.epochs,
        }


def _fit(pairs: ArtistPairs, n_components: int, learning_rate: float, max_norm: float, seed: int) -> _Fitted:
    return _timed(LatentRanker(n_components, learning_rate=learning_rate, max_norm=max_norm, random_state=seed), pairs)


def _timed(ranker: LatentRanker, pairs: ArtistPairs) -> _Fitted:
    recalls: list[float] = []

    def listen(report: EpochReport) -> None:
        recalls.append(report.recall or 0.0)
        tell(report)

    start = time.perf_counter()
    ranker.fit(pairs.queries, pairs.items, callbacks=[listen])
    return _Fitted(ranker, max(recalls), time.perf_counter() - start, len(recalls))
