"""GraphMatcher with default settings: shares of 30 points of a film matched wrongly, in frames 50, 70 and 90 apart.

``train`` are the source's training pairs, on which all learn, ``test`` its test pairs; its validation pairs choose l2
in the last two rows, which are what choosing is worth. No row but those has an argument that was looked for. The plain
thing is an assignment by the distance of the shape contexts, nothing learned. ``seconds`` are of one fit, without the
time to compile.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from slatewise import datasets
from slatewise.core.running.progress import track
from slatewise.datasets.records import MatchingSet
from slatewise.matching.graphs.fit import Likelihood
from slatewise.matching.graphs.matcher import GraphMatcher
from slatewise.matching.sums.bethe import BetheWarning
from slatewise_papers.framework.reproduction import Row
from slatewise_papers.framework.running import expected_warnings
from slatewise_papers.framework.timing import seconds
from slatewise_papers.rankmatch.images import Problem, house_problem

SEPARATIONS, QUICK_SEPARATIONS = (50, 70, 90), (90,)
STRENGTHS = (0.1, 0.01, 0.001, 1e-4)
MATCHERS: Mapping[str, GraphMatcher] = {
    "GraphMatcher()": GraphMatcher(),
    "GraphMatcher(Likelihood(part_size=10))": GraphMatcher(Likelihood(part_size=10)),
    "GraphMatcher(Likelihood('bethe'))": GraphMatcher(Likelihood("bethe")),
    "GraphMatcher('max-margin')": GraphMatcher("max-margin"),
}
CHOSEN: Mapping[str, tuple[GraphMatcher, ...]] = {
    "likelihood, l2 by validation": tuple(GraphMatcher(l2=l2) for l2 in STRENGTHS),
    "max-margin, l2 by validation": tuple(GraphMatcher("max-margin", l2=l2) for l2 in STRENGTHS),
}


def rows(quick: bool, seed: int) -> list[Row]:
    """Return every matcher's errors; ``quick``: 90 frames apart, nothing chosen."""
    house = datasets.load("cmu_house", MatchingSet)
    found: dict[str, dict[str, float]] = {}
    for separation in track(QUICK_SEPARATIONS if quick else SEPARATIONS, "separation"):
        problem = house_problem(house, separation, seed)
        unlearned = -np.ones(problem.train.graphs[0].shape[2])
        systems = {"assignment, nothing learned": {"test": float(problem.test.errors(unlearned).mean())}}
        systems |= {name: _measure(matcher, problem) for name, matcher in MATCHERS.items()}
        if not quick:
            systems |= {name: _measure(_best(tried, problem), problem) for name, tried in CHOSEN.items()}
        for name, figures in systems.items():
            row = found.setdefault(name, {})
            row |= {f"{what}, separation {separation}": figure for what, figure in figures.items()}
    return [Row(f"cmu_house: {name}", figures, None) for name, figures in found.items()]


def _measure(matcher: GraphMatcher, problem: Problem) -> dict[str, float]:
    """Fit twice, because the first may compile, and return errors and seconds."""
    _fit(matcher, problem)
    taken = seconds(lambda: _fit(matcher, problem))
    parts = {"train": problem.train, "test": problem.test}
    return {name: float(part.errors(matcher.coef_).mean()) for name, part in parts.items()} | {"seconds": taken}


def _best(tried: tuple[GraphMatcher, ...], problem: Problem) -> GraphMatcher:
    """Return the matcher that leaves the fewest validation points wrong, the one with the larger l2 among equals."""
    wrong = [float(problem.validation.errors(_fit(one, problem).coef_).mean()) for one in tried]
    return tried[int(np.argmin(wrong))]


def _fit(matcher: GraphMatcher, problem: Problem) -> GraphMatcher:
    with expected_warnings():
        warnings.simplefilter("ignore", BetheWarning)
        return matcher.fit(problem.train.graphs, problem.train.matches)
