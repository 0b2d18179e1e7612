"""Tags: ``CStarRanker(random_state=0)``, one setting for all sets, beside its base and tuned peers.

Protocol, settled before the first run: five random splits of the rows, four fifths to train on, of seeds 4001 to 4005
(of delicious one), and no choice looks at a test row. Of each test row with a label: break-even precision before any
question (Q0) and after 1, 5 and 10 truthful answers, and average precision (MAP); in percent, means over rows and
splits. Precision is always taken at the row's true number of labels; "known" and "unknown" say whether the model knows
that number. c-star asks by its margin rule, all others by uncertainty sampling.

A difference is paired: per row, averaged over the splits that test the row, with the 95% interval of the mean over
distinct rows (Student's). It does not count how fits on other training rows would differ. ``settings`` is how many were
tried at most, ``seconds`` the CPU time of a fit, choices included; an own base is fitted within its c-star. LightGBM is
run on one split where a set has over 100 labels; of delicious only logistic regression and ML-kNN stand beside.

``--data`` names one set, or "base": c-star on a small network through ``base=``, on yeast (five splits) and Corel5k
(two). ``--keep`` names a folder for the results of every split: a run that was killed goes on from there, sets can be
run one by one, and a run that finds all of them prints the whole table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from slatewise.cli.inputs import read_labels
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.progress import track
from slatewise_papers.cstar.data import LabelProblem, load_problem
from slatewise_papers.cstar.scores import Logistic
from slatewise_papers.framework.reproduction import Reproduction, Row
from slatewise_papers.framework.running import installed, kept_or_made
from slatewise_papers.framework.statistics import paired_by_row
from slatewise_papers.tags.split import (
    BASE,
    CHAINS,
    CSTAR,
    FIGURES,
    LOGISTIC,
    MLKNN,
    NETWORK,
    ON_NETWORK,
    PRETRAINED,
    TREES,
    Measured,
    SplitResult,
    Systems,
    all_systems,
    network_systems,
    run_split,
)

Differences: TypeAlias = dict[tuple[str, str], dict[str, float]]
"""Of one system minus another: figures with the ends of their intervals."""

SEED, N_SPLITS = 4001, 5
SETS = ("mulan_yeast", "corel5k_tagprop", "mulan_cal500", "mulan_bibtex", "mulan_enron", "mulan_delicious")
LARGE = "mulan_delicious"
NETWORK_SPLITS = {"mulan_yeast": 5, "corel5k_tagprop": 2}
QUICK_ROWS, QUICK_LABELS = 200, 8
QUESTIONED = ("Q5", "Q10")
ALONE = tuple(
    (f"{CSTAR}, {known}", f"{other}, {known}")
    for known in ("unknown", "known")
    for other in (BASE, LOGISTIC, CHAINS, MLKNN, TREES)
)
DIFFERENCES = (*ALONE, (f"{CSTAR}, known", f"{PRETRAINED}, known"), (f"{CSTAR}, known", f"{CSTAR}, unknown"))
NETWORK_DIFFERENCES = tuple(
    pair
    for known in ("unknown", "known")
    for pair in (
        (f"{ON_NETWORK}, {known}", f"{NETWORK}, {known}"),
        (f"{ON_NETWORK}, {known}", f"{CSTAR}, {known}"),
        (f"{NETWORK}, {known}", f"{BASE}, {known}"),
    )
)


@dataclass(frozen=True)
class Task:
    """One split of one set."""

    problem: str
    seed: int
    systems: Callable[..., Systems]
    tag: str = ""
    """What tells its file from that of other systems on the same split."""


def run(data: str | None = None, quick: bool = False, seed: int = SEED, keep: Path | None = None) -> Reproduction:
    """Run all sets, one set or multi-label file, or the part on another base; ``quick``: one split, few rows."""
    names = SETS if data is None else (*NETWORK_SPLITS,) if data == "base" else (data,)
    rows: list[Row] = []
    held: list[dict[str, bool]] = []
    for name in track(names, "data set"):
        tasks = tasks_of(name, seed)
        if data == "base":
            seeds = range(seed, seed + NETWORK_SPLITS[name])
            tasks = [Task(name, one, network_systems, "-base") for one in seeds]
        results = _results(tasks[:1] if quick else tasks, quick, keep)
        rows += [Row(f"{name}: {system}", _means(results, system), None) for system in results[0].systems]
        found = differences(results, NETWORK_DIFFERENCES if data == "base" else DIFFERENCES)
        rows += [Row(f"{name}: {one} minus {other}", figures, None) for (one, other), figures in found.items()]
        held += [] if data == "base" else [bars(found)]
    rows += [Row(f"bar: {bar}", _count(held, bar), None) for bar in dict.fromkeys(bar for bars in held for bar in bars)]
    left_out = "" if installed("lightgbm") or data == "base" else "; LightGBM is not installed and left out"
    return Reproduction(f"tags with default settings (splits of seeds from {seed}){left_out}", ", ".join(names), rows)


def tasks_of(name: str, seed: int) -> list[Task]:
    """Return the splits of a set."""
    few = name == LARGE
    return [
        Task(name, seed + place, partial(all_systems, few=few, first=place == 0))
        for place in range(1 if few else N_SPLITS)
    ]


def _results(tasks: Sequence[Task], quick: bool, keep: Path | None) -> list[SplitResult]:
    loaded: list[LabelProblem] = []  # only where a split is not there yet

    def result(task: Task) -> SplitResult:
        if not loaded:
            loaded.append(load(task.problem, quick))
        with one_blas_thread():
            return run_split(loaded[0], task.seed, task.systems)

    found: list[SplitResult] = []
    for task in track(tasks, "split"):
        file = f"{Path(task.problem).stem}{task.tag}{'-quick' if quick else ''}-{task.seed}.json"
        found.append(kept_or_run(None if keep is None else keep / file, partial(result, task)))
    return found


def load(name: str, quick: bool = False) -> LabelProblem:
    """Load a data set or a multi-label file; ``quick``: the first rows and the most frequent labels."""
    if name == "corel5k_tagprop":
        problem = load_problem(name)
    else:
        rows = read_labels(name)
        problem = LabelProblem(name, rows.X, rows.Y.toarray().astype(np.float64), Logistic(standardize=True))
    return problem.smaller(QUICK_ROWS, QUICK_LABELS) if quick else problem


def differences(results: Sequence[SplitResult], pairs: Sequence[tuple[str, str]]) -> Differences:
    """Return each paired difference with its interval, in points, over the splits that have both systems."""
    found: Differences = {}
    for one, other in pairs:
        both = [result for result in results if one in result.systems and other in result.systems]
        if both:
            rows = np.concatenate([result.rows for result in both])
            values = [result.systems[one].figures - result.systems[other].figures for result in both]
            found[one, other] = paired_by_row(FIGURES, rows, 100.0 * np.vstack(values))
    return found


def bars(found: Differences) -> dict[str, bool]:
    """Return what one set should show, and whether it does."""
    base, known = (f"{CSTAR}, unknown", f"{BASE}, unknown"), (f"{CSTAR}, known", f"{PRETRAINED}, known")
    held = {"unknown, Q0 not significantly below the own base": found[base]["Q0_high"] >= 0.0}
    for after in QUESTIONED:
        name = f"unknown, {after} significantly above uncertainty sampling on the own base"
        held[name] = found[base][f"{after}_low"] > 0.0
    if known in found:
        held["known, Q0 not significantly below the pretrained likelihood as it was"] = found[known]["Q0_high"] >= 0.0
    return held


def _count(held: Sequence[dict[str, bool]], bar: str) -> dict[str, float]:
    return {
        "sets": float(sum(bar in of_set for of_set in held)),
        "held": float(sum(of_set.get(bar, False) for of_set in held)),
    }


def _means(results: Sequence[SplitResult], system: str) -> dict[str, float]:
    """Return the means over the splits that have the system, the settings it tried and the CPU seconds of a fit."""
    measured = [result.systems[system] for result in results if system in result.systems]
    figures = 100.0 * np.mean([split.figures.mean(axis=0) for split in measured], axis=0)
    return {
        **dict(zip(FIGURES, figures.tolist(), strict=True)),
        "splits": float(len(measured)),
        "settings": float(measured[0].n_settings),
        "seconds": float(np.mean([split.seconds for split in measured])),
    }


def kept_or_run(path: Path | None, run: Callable[[], SplitResult]) -> SplitResult:
    """Read the results of a split from a JSON file where there is one; otherwise run it and write the file."""
    if path is None:
        return run()

    def as_json() -> dict[str, Any]:
        result = run()
        systems = {
            name: {
                "settings": measured.n_settings,
                "seconds": round(measured.seconds, 2),
                "figures": measured.figures.round(6).tolist(),
            }
            for name, measured in result.systems.items()
        }
        return {"columns": FIGURES, "rows": result.rows.tolist(), "systems": systems}

    read = kept_or_made(path, as_json)
    if read.get("columns") != list(FIGURES) or not all(name.endswith("known") for name in read["systems"]):
        raise ValueError(f"{path}: expected the columns {', '.join(FIGURES)} and systems of this version, found others")
    systems = {
        name: Measured(np.array(one["figures"], dtype=np.float64), int(one["settings"]), float(one["seconds"]))
        for name, one in read["systems"].items()
    }
    return SplitResult(np.array(read["rows"], dtype=np.int64), systems)
