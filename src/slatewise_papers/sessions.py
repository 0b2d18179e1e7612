"""Next items of sessions: every method asked the same, tuned by the same rule with the same number of trials.

Published protocol (diginetica, tmall, nowplaying as GCE-GNN has them): every beginning of a test session asks for the
next item, all items are ranked, repeats allowed; recall at 20 (papers call it P@20) and MRR at 20. Last.fm twice:
sessions dealt 75/5/20 at random, and learnt from the earlier part and tested on the later one, restricted to known
artists; there the next artist is never the last one.

A method's settings (``sessions_methods.py`` names them all) are judged on validation sessions by NDCG@20; the best is
fitted again on all training sessions. "As it comes" is fitted on these at once: what it chooses, it chooses within fit.
``trials`` is how many settings were tried, ``tuning`` and ``fit`` are CPU seconds, ``ms`` CPU milliseconds per query.
A difference is paired, over test queries, with a 95% interval that counts sessions and not queries as independent.

``--data`` names a set; ``--keep`` a folder for the results of every method: only what is not there is run.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.executor import one_blas_thread
from slatewise.core.progress import track
from slatewise.data.records import Prefixes
from slatewise_papers._kept import kept_or_made
from slatewise_papers._reproduction import Reproduction, Row
from slatewise_papers.sessions_data import LASTFM, PUBLISHED, Part, SessionProblem, load_problems
from slatewise_papers.sessions_methods import DEPTH, METHODS, Method, Rank

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

SEED = 5001
RECALLS = (5, 10, 20, 30, 50)
FIGURES = (*(f"R@{k}" for k in RECALLS), "MRR@20")
PEER = "V-SKNN, tuned"
"""What every other method is compared with."""
OURS = ("SessionNeighbors, tuned", "SessionNeighbors() as it comes")
AT_ONCE = 2048


class Result(NamedTuple):
    """What a method came to on the test queries of a problem."""

    places: Ints
    """How many items are ahead of the one that came; -1 where these are DEPTH or more."""
    settings: dict[str, Any]
    budget: dict[str, float]


def run(data: str | None = None, quick: bool = False, seed: int = SEED, keep: Path | None = None) -> Reproduction:
    """Run all sets, or one; ``quick``: few sessions, and two settings of each method."""
    names = (*PUBLISHED, LASTFM) if data is None else (data,)
    rows: list[Row] = []
    for name in track(names, "data set"):
        for problem in load_problems(name, seed, quick):
            rows += _rows(problem, quick, None if keep is None else keep / f"{seed}{'-quick' if quick else ''}")
    return Reproduction(f"next items of sessions (seed {seed})", ", ".join(names), rows)


def _rows(problem: SessionProblem, quick: bool, keep: Path | None) -> list[Row]:
    testing = problem.testing()
    rows: list[Row] = []
    results: dict[str, Result] = {}
    for name, method in track(list(METHODS.items()), problem.name):
        tried = method._replace(grid=method.grid[:2]) if quick else method
        results[name] = result = _kept(problem, testing, name, tried, keep)
        chosen = ", ".join(f"{setting}={value}" for setting, value in result.settings.items())
        means = 100.0 * figures_of(result.places).mean(axis=0)
        measured = dict(zip(FIGURES, means.tolist(), strict=True)) | result.budget
        rows.append(Row(f"{problem.name}: {name}{f' ({chosen})' if chosen else ''}", measured, None))
    pairs = [(name, PEER) for name in METHODS if name != PEER] + [OURS]
    for one, other in pairs:
        gains = 100.0 * (figures_of(results[one].places) - figures_of(results[other].places))
        rows.append(Row(f"{problem.name}: {one} minus {other}", paired(testing.asked.sessions, gains), None))
    return rows


def _kept(problem: SessionProblem, testing: Part, name: str, method: Method, keep: Path | None) -> Result:
    """Read what a method came to where that is kept; a file of other queries or other settings is an error."""
    path = None if keep is None else keep / _file(problem.name) / f"{_file(name)}.json"
    said = {"queries": len(testing.asked), "grid": [dict(settings) for settings in method.grid]}
    read = kept_or_made(path, lambda: said | _as_json(tried_and_tested(problem, testing, method)))
    if {key: read.get(key) for key in said} != said:
        raise ValueError(f"{path}: expected {said['queries']} queries and the settings of this version, found others")
    return Result(np.array(read["places"], dtype=np.int64), read["settings"], read["budget"])


def _file(name: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in name).split()).lower()


def _as_json(result: Result) -> dict[str, Any]:
    return {"places": result.places.tolist(), "settings": result.settings, "budget": result.budget}


def tried_and_tested(problem: SessionProblem, testing: Part, method: Method) -> Result:
    """Choose settings on validation where there are several, fit, and rank for the test queries."""
    with one_blas_thread():
        start = time.process_time()
        settings = dict(method.grid[0] if len(method.grid) == 1 else _best(problem, method))
        tuned = time.process_time()
        rank = method.fit(testing.log, problem.n_items, **settings)
        fitted = time.process_time()
        places = places_of(rank, testing.asked, problem.item_differs)
        ranked = time.process_time()
    budget = {
        "trials": float(len(method.grid)) if len(method.grid) > 1 else 0.0,
        "tuning": tuned - start,
        "fit": fitted - tuned,
        "ms": 1e3 * (ranked - fitted) / len(places),
    }
    return Result(places, settings, budget)


def _best(problem: SessionProblem, method: Method) -> Any:
    part, quality = problem.validation(), list[float]()
    for settings in track(method.grid, "setting"):
        rank = method.fit(part.log, problem.n_items, **settings)
        quality.append(ndcg(places_of(rank, part.asked, problem.item_differs)))
    return method.grid[int(np.argmax(quality))]


def places_of(rank: Rank, asked: Prefixes, item_differs: bool) -> Ints:
    """Return how many items are ahead of each that came next, the last item of a session left out if need be."""
    places = np.full(len(asked), -1, dtype=np.int64)
    for first in range(0, len(asked), AT_ONCE):
        part = asked[first : first + AT_ONCE]
        lists = rank(part)
        rows, columns = np.nonzero(lists == part.next_items[:, None])
        if item_differs:
            left_out = lists == part.items[part.ends - 1][:, None]
            columns = columns - np.cumsum(left_out, axis=1)[rows, columns]
        places[first + rows] = np.where(columns < DEPTH, columns, -1)
    return places


def ndcg(places: Ints) -> float:
    """Return what settings are judged by: NDCG@20, which lies between recall and MRR."""
    near = places[(places >= 0) & (places < 20)]
    return float((1.0 / np.log2(near + 2.0)).sum() / len(places))


def figures_of(places: Ints) -> Floats:
    """Return every figure of every query, (queries, FIGURES).

    Examples
    --------
    >>> figures_of(np.array([0, 7, -1]))[:, [0, 1, -1]].tolist()
    [[1.0, 1.0, 1.0], [0.0, 1.0, 0.125], [0.0, 0.0, 0.0]]
    """
    ahead = np.where(places < 0, DEPTH, places)
    found = [(ahead < k).astype(np.float64) for k in RECALLS]
    return np.stack([*found, np.where(ahead < 20, 1.0 / (1.0 + ahead), 0.0)], axis=1)


def paired(sessions: Ints, gains: Floats) -> dict[str, float]:
    """Return the mean of each figure's gains over queries, and its 95% interval over sessions.

    Examples
    --------
    >>> found = paired(np.array([0, 0, 1]), np.array([[1.0], [1.0], [4.0]]) * np.ones(len(FIGURES)))
    >>> found["R@5"], round(found["R@5_low"], 1), round(found["R@5_high"], 1)
    (2.0, -0.6, 4.6)
    """
    _, own = np.unique(sessions, return_inverse=True)
    found: dict[str, float] = {}
    for name, column in zip(FIGURES, gains.T, strict=True):
        mean = float(column.mean())
        of_session = np.bincount(own, column - mean)  # its queries go together: their errors add up
        n = len(of_session)
        reach = 1.96 * float(np.sqrt(n / max(n - 1, 1) * (of_session**2).sum())) / len(column)
        found |= {name: mean, f"{name}_low": mean - reach, f"{name}_high": mean + reach}
    return found
