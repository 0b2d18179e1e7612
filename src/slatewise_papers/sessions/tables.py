"""Next items of sessions: every method on the same queries, tuned by the same rule with the same number of trials.

Published protocol (diginetica, tmall, nowplaying as GCE-GNN has them): every beginning of a test session asks for the
next item, all items are ranked, repeats allowed; recall at 20 (papers call it P@20) and MRR at 20. Last.fm twice:
sessions dealt 75/5/20 at random, and trained on the earlier part and tested on the later one, restricted to known
artists; there the next artist is never the last one, and evenly spaced test sessions give about 60,000 queries.

A method's settings (``methods.py`` names them all) are judged on validation sessions by NDCG@20; the best is
fitted again on all training sessions. "Out of the box" is fitted on these at once: it chooses within fit.
``trials`` is how many settings were tried, ``tuning`` and ``fit`` are CPU seconds, ``ms`` CPU milliseconds per query.
A difference is paired, over test queries, with a 95% interval that counts sessions and not queries as independent.

``--data`` names a set; ``--keep`` a folder for the results of every trial and method: only what is not there is run.
``python -m slatewise_papers.sessions.cells`` fills that folder by many processes at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from slatewise.core.arrays import Ints
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.progress import track
from slatewise_papers.framework.reproduction import Reproduction, Row
from slatewise_papers.framework.running import kept_or_made, over_sets
from slatewise_papers.framework.statistics import paired_by_cluster
from slatewise_papers.sessions.data import (
    FIGURES,
    LASTFM,
    PUBLISHED,
    Part,
    SessionProblem,
    figures_of,
    load_problems,
    ndcg,
    places_of,
)
from slatewise_papers.sessions.methods import METHODS, Method

SEED = 5001
PEER = "V-SKNN, tuned"
"""What every other method is compared with."""
BAG = "SessionRanker(base=None), the sum of items alone"
OURS = (
    ("SessionNeighbors, tuned", "SessionNeighbors() out of the box"),
    (BAG, "GRU4Rec, tuned"),
    (BAG, "SASRec, tuned"),
    ("SessionRanker(base=None), tuned", "GRU4Rec, tuned"),
    ("SessionRanker(base=None), tuned", "SASRec, tuned"),
    ("SessionRanker(factors=None) out of the box", "SessionNeighbors, tuned"),
    ("SessionRanker() out of the box", "SessionNeighbors, tuned"),
    ("SessionRanker, tuned", "SessionNeighbors, tuned"),
    ("SessionRanker() out of the box", "SessionRanker, tuned"),
)
"""What else is compared."""


class Result(NamedTuple):
    """What a method came to on the test queries of a problem."""

    places: Ints
    """How many items are ahead of the one that came; -1 where these are DEPTH or more."""
    settings: dict[str, Any]
    budget: dict[str, float]


def run(data: str | None = None, quick: bool = False, seed: int = SEED, keep: Path | None = None) -> Reproduction:
    """Run all sets, or one; ``quick``: few sessions, and two settings of each method."""

    def rows_of(name: str) -> Iterator[Row]:
        for problem in load_problems(name, seed, quick):
            yield from _rows(problem, quick, folder(keep, seed, quick, problem.name))

    return over_sets(f"next items of sessions (seed {seed})", (*PUBLISHED, LASTFM), data, rows_of)


def folder(keep: Path | None, seed: int, quick: bool, problem: str) -> Path | None:
    """Return where a problem's results are kept."""
    return None if keep is None else keep / f"{seed}{'-quick' if quick else ''}" / _file(problem)


def methods(quick: bool) -> dict[str, Method]:
    """Return all methods; quickly, two settings of each."""
    return {name: method._replace(grid=method.grid[:2]) if quick else method for name, method in METHODS.items()}


def _rows(problem: SessionProblem, quick: bool, keep: Path | None) -> list[Row]:
    testing = problem.testing
    rows: list[Row] = []
    results: dict[str, Result] = {}
    for name, method in track(list(methods(quick).items()), problem.name):
        missing = None if result_file(keep, name, there=True) else method.missing(problem.n_items)
        if missing is not None:
            rows.append(Row(f"{problem.name}: {name}: not run, {missing}", {}, None))
            continue
        results[name] = result = kept_result(problem, testing, name, method, keep)
        chosen = ", ".join(f"{setting}={value}" for setting, value in result.settings.items())
        means = 100.0 * figures_of(result.places).mean(axis=0)
        measured = dict(zip(FIGURES, means.tolist(), strict=True)) | result.budget
        rows.append(Row(f"{problem.name}: {name}{f' ({chosen})' if chosen else ''}", measured, None))
    for one, other in (*((name, PEER) for name in METHODS if name != PEER), *OURS):
        if one in results and other in results:
            gains = 100.0 * (figures_of(results[one].places) - figures_of(results[other].places))
            rows.append(
                Row(
                    f"{problem.name}: {one} minus {other}",
                    paired_by_cluster(FIGURES, testing.questions.sessions, gains),
                    None,
                )
            )
    return rows


def result_file(keep: Path | None, name: str, there: bool = False) -> Path | None:
    """Return where a method's result is kept; ``there``: None if it is not yet."""
    path = None if keep is None else keep / f"{_file(name)}.json"
    return None if path is None or (there and not path.exists()) else path


def kept_result(problem: SessionProblem, testing: Part, name: str, method: Method, keep: Path | None) -> Result:
    """Read what a method came to where that is kept; a file of other queries or other settings is an error."""
    path = result_file(keep, name)

    def made() -> dict[str, Any]:
        result = tried_and_tested(problem, testing, method, path)
        return expected | {"places": result.places.tolist(), "settings": result.settings, "budget": result.budget}

    expected = {"queries": len(testing.questions), "grid": [dict(settings) for settings in method.grid]}
    read = kept_or_made(path, made)
    _check_kept(path, read, expected)
    return Result(np.array(read["places"], dtype=np.int64), read["settings"], read["budget"])


def _check_kept(path: Path | None, read: dict[str, Any], expected: dict[str, Any]) -> None:
    if {key: read.get(key) for key in expected} != expected:
        raise ValueError(
            f"{path}: expected {expected['queries']} queries and the settings of this version, found others"
        )


def _file(name: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in name).split()).lower()


def tried_and_tested(problem: SessionProblem, testing: Part, method: Method, path: Path | None = None) -> Result:
    """Choose settings on validation where there are several, fit, and rank for the test queries.

    Trials are kept beside ``path``.
    """
    trials = (
        [kept_trial(problem, method, number, path) for number in range(len(method.grid))] if method.grid[1:] else []
    )
    best = int(np.argmax([trial["quality"] for trial in trials])) if trials else 0
    settings = dict(method.grid[best])
    with one_blas_thread():
        start = time.process_time()
        rank = method.fit(testing.log, problem.n_items, **settings)
        fitted = time.process_time()
        places = places_of(rank, testing.questions, problem.item_differs)
        ranked = time.process_time()
    budget = {
        "trials": float(len(trials)),
        "tuning": sum(trial["seconds"] for trial in trials),
        "fit": fitted - start,
        "ms": 1e3 * (ranked - fitted) / len(places),
    }
    return Result(places, settings, budget)


def trial_file(path: Path, number: int) -> Path:
    """Return where a trial is kept, given where the result of its method is."""
    return path.with_name(f"{path.stem}.trial-{number}.json")


def kept_trial(problem: SessionProblem, method: Method, number: int, path: Path | None) -> dict[str, Any]:
    """Read how good a setting is on validation, and how long that took, where that is kept."""
    part, settings = problem.validation, dict(method.grid[number])
    expected = {"queries": len(part.questions), "settings": settings}

    def made() -> dict[str, Any]:
        with one_blas_thread():
            start = time.process_time()
            rank = method.fit(part.log, problem.n_items, **settings)
            quality = ndcg(places_of(rank, part.questions, problem.item_differs))
            return expected | {"quality": quality, "seconds": time.process_time() - start}

    path = None if path is None else trial_file(path, number)
    read = kept_or_made(path, made)
    _check_kept(path, read, expected)
    return read
