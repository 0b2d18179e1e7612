"""What the search of ``LatentRanker()`` takes on one processor and on another, and what it is worth.

    python -m tests.choices run --out native.json
    NUMBA_CPU_NAME=generic OPENBLAS_CORETYPE=Haswell python -m tests.choices run --out generic.json
    python -m tests.choices compare native.json generic.json

Each run fits the default and the fixed standard setting with the same seeds on three generated problems and, where
``SLATEWISE_DATA`` names it, on a two-hundredth of the sessions of Last.fm.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slatewise import LatentFeatureRanker, LatentRanker, datasets
from slatewise.factors.settings import STARTS

STANDARD = {name: STARTS[name] for name in ("learning_rate", "max_norm")}


@dataclass(frozen=True)
class Problem:
    """Pairs to learn from, and pairs to test on."""

    train: tuple[Any, Any]
    test: tuple[Any, Any]
    k: int
    n_components: int


def grouped_users(seed: int) -> Problem:
    """Half of what a user takes depends on one of ten groups, and half is chance."""
    rng = np.random.default_rng(seed)
    users, items = np.repeat(np.arange(300), 12), rng.integers(0, 400, 3600)
    grouped = rng.random(3600) < 0.5
    items[grouped] = (users % 10 * 40 + rng.integers(0, 40, 3600))[grouped]
    test = rng.random(3600) < 0.2
    known = np.isin(items, items[~test]) & test
    return Problem((users[~test], items[~test]), (users[known], items[known]), 20, 16)


def next_items(seed: int) -> Problem:
    """Which item follows which."""
    pairs = datasets.make_sessions(600, 60, n_clusters=6, random_state=seed).sessions.pairs()
    queries, items = np.asarray(pairs.queries), np.asarray(pairs.items)
    test = np.random.default_rng(seed).random(len(items)) < 0.2
    known = np.isin(items, items[~test]) & np.isin(queries, queries[~test]) & test
    return Problem((queries[~test], items[~test]), (queries[known], items[known]), 5, 16)


def feature_rows(seed: int) -> Problem:
    """Rows around twelve centers, each with six items of its own; a third of the pairs is chance."""
    rng = np.random.default_rng(seed)
    groups, n_train = rng.integers(0, 12, 1000), 800
    X = rng.normal(size=(12, 20))[groups] + 0.7 * rng.normal(size=(1000, 20))
    items = np.where(rng.random(1000) < 2 / 3, groups * 6 + rng.integers(0, 6, 1000), rng.integers(0, 72, 1000))
    known = np.isin(items, items[:n_train]) & (np.arange(1000) >= n_train)
    return Problem((X[:n_train], items[:n_train]), (X[known], items[known]), 5, 16)


def artists(seed: int) -> Problem:
    """Which artist follows which on Last.fm, a two-hundredth of the sessions."""
    from slatewise_papers.defaults.latent import QUICK_SHARE, share_of
    from slatewise_papers.lasr.data import of_sessions

    name = "lastfm1k_artist_sessions"
    problem = of_sessions(name, share_of(name, QUICK_SHARE, seed), seed)
    return Problem((problem.known.queries, problem.known.items), (problem.test.queries, problem.test.items), 20, 50)


PROBLEMS = {one.__name__: one for one in (grouped_users, next_items, feature_rows, artists)}


def run(problems: list[str], seeds: range) -> list[dict[str, Any]]:
    """Fit both rankers on every problem with every seed."""
    rows = []
    for name in problems:
        for seed in seeds:
            problem = PROBLEMS[name](seed)
            common = {"n_components": problem.n_components, "random_state": seed}
            kind = LatentFeatureRanker if name == "feature_rows" else LatentRanker
            searched = kind(**common).fit(*problem.train)
            standard = kind(**common, **STANDARD).fit(*problem.train)
            chosen = {one: float(getattr(searched, f"{one}_")) for one in STANDARD}
            recalls = (one.recall(*problem.test, [problem.k])[problem.k] for one in (searched, standard))
            row = {"problem": name, "seed": seed, **chosen, **dict(zip(("recall", "standard"), recalls, strict=True))}
            row["n_test"] = len(problem.test[1])
            rows.append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
    return rows


def compare(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> str:
    """Say how often both runs took the same setting, and how recall stands to that of the standard setting."""
    lines = ["problem             same   recall  standard   worst (standard errors)   moved"]
    for name in dict.fromkeys(row["problem"] for row in one):
        pairs = [(a, b) for a, b in zip(one, other, strict=True) if a["problem"] == name]
        same = sum(all(a[key] == b[key] for key in STANDARD) for a, b in pairs)
        gains = np.array([a["recall"] - a["standard"] for a, _ in pairs])
        errors = [np.sqrt(a["standard"] * (1 - a["standard"]) / a["n_test"]) for a, _ in pairs]
        moved = sum(any(a[key] != STANDARD[key] for key in STANDARD) for a, _ in pairs)
        recall, standard = (100 * np.mean([a[key] for a, _ in pairs]) for key in ("recall", "standard"))
        worst = np.min(gains / errors)
        lines.append(
            f"{name:17s} {same:3d}/{len(pairs)}  {recall:6.2f}  {standard:6.2f}     {100 * gains.min():+6.2f} "
            f"({worst:+.1f})   {moved:9d}/{len(pairs)}"
        )
    return "\n".join(lines)


def main() -> None:
    """Run, or compare two runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    fits = commands.add_parser("run")
    fits.add_argument("--out", type=Path, required=True)
    fits.add_argument("--seeds", type=int, default=20)
    fits.add_argument("--problems", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    both = commands.add_parser("compare")
    both.add_argument("files", type=Path, nargs=2)
    options = parser.parse_args()
    if options.command == "run":
        options.out.write_text(json.dumps(run(options.problems, range(options.seeds))))
    else:
        print(compare(*(json.loads(path.read_text()) for path in options.files)))


if __name__ == "__main__":
    main()
