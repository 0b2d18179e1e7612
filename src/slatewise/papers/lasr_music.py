"""Tables 1, 2 and 3 of Weston and Blitzer (2012): which artist comes next.

Every setting of every method is chosen on the validation pairs, by the mean recall at 5, 10, 30 and 50, and the method
is then fitted to training and validation pairs; a stage of LaSR ends when recall on pairs held out of these is flat for
three epochs. A row "A minus B" is a difference of recall in
points, ``_relative`` in percent of B, with p values of a randomisation test over queries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from slatewise.estimators.latent import LatentRanker
from slatewise.estimators.structured_reranker import StructuredReranker
from slatewise.papers._reproduction import Row
from slatewise.papers.lasr_baselines import nmf, popularity, rocchio, svd
from slatewise.papers.lasr_data import ArtistPairs, MusicProblem
from slatewise.papers.lasr_lists import DEPTHS, Factored, Ints, Lists, Ranks, by_frequency, difference, ranks_of

Settings: TypeAlias = dict[str, Any]

LIST_LENGTH = 20
TABLE_1: Mapping[str, tuple[float, float, float, float]] = {
    "NMF": (3.76, 6.38, 13.3, 17.8),
    "SVD": (4.01, 6.93, 13.9, 18.5),
    "LaSR (t=0), AUC loss": (3.56, 6.32, 14.8, 20.3),
    "LaSR (t=0)": (5.60, 9.49, 18.9, 24.8),
    "LaSR (t=1)": (6.65, 10.73, 20.1, 26.7),
    "LaSR (t=2)": (6.93, 10.95, 20.3, 26.5),
}
TABLE_2: Mapping[str, Mapping[int, float]] = {
    "NMF": {25: 2.82, 50: 3.76, 100: 3.57, 200: 4.82},
    "SVD": {25: 3.61, 50: 4.01, 100: 4.53, 200: 5.28},
    "LaSR (t=0)": {25: 5.23, 50: 5.60, 100: 6.24, 200: 6.42},
}
BETAS = (0.02, 0.05, 0.1, 0.2, 0.4)


@dataclass(frozen=True)
class Effort:
    """How much of everything is tried."""

    n_components: int
    widths: tuple[int, ...]
    """Of Table 2."""
    first: tuple[Settings, ...]
    """Settings of t=0 to choose from."""
    later: tuple[Settings, ...]
    """Settings of the stages after it."""
    scales: tuple[float, ...]
    """Of a base under a stage."""
    epochs: int


def grid(**choices: tuple[Any, ...]) -> tuple[Settings, ...]:
    """Return every combination."""
    return tuple(dict(zip(choices, values, strict=True)) for values in product(*choices.values()))


FULL = Effort(
    50,
    (25, 50, 100, 200),
    grid(learning_rate=(0.3,), max_norm=(2.0, 2.5, 3.0)),
    grid(stage_learning_rate=(0.05, 0.1), stage_norm=(0.7, 1.0)),
    (4.0, 8.0),
    12,
)
QUICK = Effort(8, (4, 8), grid(learning_rate=(0.3,), max_norm=(2.5,)), grid(stage_learning_rate=(0.1,)), (4.0,), 4)


@dataclass(frozen=True, eq=False)
class Chosen:
    """The settings that are best on the validation pairs."""

    settings: Settings
    trial: LatentRanker
    """Fitted to the training pairs alone."""
    model: LatentRanker
    """Fitted to the validation pairs too."""
    seconds: float
    """Of the latter fit."""

    @property
    def lists(self) -> Lists:
        """Rank by its last stage."""
        return _stage(self.model, None)


def tables(problem: MusicProblem, effort: Effort, seed: int) -> list[Row]:
    """Run Tables 1, 2 and 3."""
    rows, ranks, structured = table_1(problem, effort, seed)
    rows += gains(problem, ranks)
    rows += table_2(problem, effort, seed, ranks)
    return rows + table_3(problem, structured)


def table_1(problem: MusicProblem, effort: Effort, seed: int) -> tuple[list[Row], dict[str, Ranks], LatentRanker]:
    """Fit every method at one width; return also the ranks and the fitted stages."""
    known, n_artists = problem.known, problem.n_artists
    n = min(effort.n_components, n_artists - 1)
    first = _latent(problem, effort, seed, effort.first, n_components=n)
    stages = _latent(problem, effort, seed, effort.later, **first.settings, stages=3)
    auc = _latent(problem, effort, seed, effort.first, n_components=n, loss="auc")
    wide = _latent(problem, effort, seed, effort.first, n_components=2 * n)
    beta = max(BETAS, key=lambda beta: _quality(problem, rocchio(first.trial, beta, n_artists)))
    scale = _scale(problem, effort, seed, svd(problem.train, n_artists, n))
    approximation = svd(known, n_artists, n)
    reranked = approximation.lists if scale is None else _reranked(known, approximation, effort, seed, scale)
    systems: dict[str, tuple[Lists, Mapping[str, float]]] = {
        "popularity": (popularity(known, n_artists).lists, {}),
        "NMF": (nmf(known, n_artists, n).lists, {}),
        "SVD": (approximation.lists, {}),
        "LaSR (t=0), AUC loss": (auc.lists, _cost(auc)),
        "LaSR (t=0)": (first.lists, _cost(first)),
        f"LaSR (t=0), n={2 * n}": (wide.lists, _cost(wide)),
        "Rocchio on t=0 (S = V)": (rocchio(first.model, beta, n_artists), {"beta": beta}),
        **{f"LaSR (t={t})": (_stage(stages.model, t), _cost(stages)) for t in (1, 2)},
        "SVD, reranked (t=1)": (reranked, {} if scale is None else {"base_scale": scale}),
    }
    ranks = {name: ranks_of(lists, problem.test, n_artists) for name, (lists, _) in systems.items()}
    rows = [
        Row(name, ranks[name].recall() | dict(notes), _published(TABLE_1.get(name)))
        for name, (_, notes) in systems.items()
    ]
    return rows, ranks, stages.model


def gains(problem: MusicProblem, ranks: Mapping[str, Ranks]) -> list[Row]:
    """Compare the stages with t=0 and with each other, over all queries and by how often they were learnt from."""
    zero, one, two = (ranks[f"LaSR (t={t})"] for t in range(3))
    rows = [
        Row("LaSR (t=1) minus LaSR (t=0)", difference(one, zero), _published_gain(1, 0)),
        Row("LaSR (t=2) minus LaSR (t=1)", difference(two, one), _published_gain(2, 1)),
        Row("LaSR (t=1) minus Rocchio", difference(one, ranks["Rocchio on t=0 (S = V)"]), None),
        Row("SVD, reranked (t=1) minus SVD", difference(ranks["SVD, reranked (t=1)"], ranks["SVD"]), None),
    ]
    binned = by_frequency(one, zero, problem.known, problem.n_artists)
    return rows + [Row(f"LaSR (t=1) minus LaSR (t=0), query seen {bin_}", gain, None) for bin_, gain in binned.items()]


def table_2(problem: MusicProblem, effort: Effort, seed: int, done: Mapping[str, Ranks]) -> list[Row]:
    """Change the width; what Table 1 has ``done`` is not done again."""
    rows: list[Row] = []
    known, n_artists = problem.known, problem.n_artists
    for n in effort.widths:
        if n >= n_artists:
            continue
        same = "" if n == effort.n_components else f", n={n}"
        systems: dict[str, Callable[[], Lists]] = {
            "NMF": lambda n=n: nmf(known, n_artists, n).lists,
            "SVD": lambda n=n: svd(known, n_artists, n).lists,
            "LaSR (t=0)": lambda n=n: _latent(problem, effort, seed, effort.first, n_components=n).lists,
        }
        for name, fit in systems.items():
            ranks = done.get(f"{name}{same}") or ranks_of(fit(), problem.test, n_artists)
            paper = {"R@5": TABLE_2[name][n]} if n in TABLE_2[name] else None
            rows.append(Row(f"Table 2, {name}, n={n}", ranks.recall(), paper))
    return rows


def table_3(problem: MusicProblem, ranker: LatentRanker) -> list[Row]:
    """Show the lists of a popular and of a rarer query: artist [train, test] pairs, * where the stages differ."""
    asked = np.bincount(problem.test.queries, minlength=problem.n_artists)
    most_asked, rarer = np.argsort(-asked, kind="stable"), int((asked > 0).sum()) // 3
    rows: list[Row] = []
    for query in (int(most_asked[0]), int(most_asked[rarer])):
        counts = [_next_counts(part, query, problem.n_artists) for part in (problem.known, problem.test)]
        lists = [_stage(ranker, t)(np.array([query]), LIST_LENGTH)[0].tolist() for t in (0, 1)]
        for t, own, other in ((0, lists[0], lists[1]), (1, lists[1], lists[0])):
            shown = [
                f"{problem.names[artist]}{'' if artist in other else '*'} [{counts[0][artist]},{counts[1][artist]}]"
                for artist in own
            ]
            totals = {name: float(of[own].sum()) for name, of in zip(("train", "test"), counts, strict=True)}
            rows.append(Row(f"Table 3, query {problem.names[query]}, t={t}: {'; '.join(shown)}", totals, None))
    return rows


def at_scale(problem: MusicProblem, n_components: int, negatives: int, epochs: int, seed: int) -> list[Row]:
    """Train three stages and test them, with the seconds and the peak memory of all that; nothing is chosen."""
    import resource  # not on every system

    start = time.perf_counter()
    ranker = LatentRanker(n_components, 3, negatives=negatives, epochs=epochs, random_state=seed)
    ranker.fit(problem.known.queries, problem.known.items)
    fitted = time.perf_counter() - start
    rows: list[Row] = []
    for t in range(3):
        begun = time.perf_counter()
        recall = ranks_of(_stage(ranker, t), problem.test, problem.n_artists).recall()
        rows.append(Row(f"LaSR (t={t})", recall | {"test_seconds": time.perf_counter() - begun}, None))
    cost = {
        "artists": float(problem.n_artists),
        "train_pairs": float(len(problem.known)),
        "test_pairs": float(len(problem.test)),
        "fit_seconds": fitted,
        "all_seconds": time.perf_counter() - start,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    return [*rows, Row("three stages, hand-overs and tests", cost | _epochs(ranker), None)]


def _latent(problem: MusicProblem, effort: Effort, seed: int, choices: tuple[Settings, ...], **fixed: Any) -> Chosen:
    def fit(pairs: ArtistPairs, settings: Settings) -> LatentRanker:
        ranker = LatentRanker(epochs=effort.epochs, k=LIST_LENGTH, random_state=seed, **settings)
        return ranker.fit(pairs.queries, pairs.items)

    trials = (({**fixed, **choice}, fit(problem.train, {**fixed, **choice})) for choice in choices)
    settings, trial = max(trials, key=lambda one: _quality(problem, _stage(one[1], None)))
    start = time.perf_counter()
    model = fit(problem.known, settings)
    return Chosen(settings, trial, model, time.perf_counter() - start)


def _scale(problem: MusicProblem, effort: Effort, seed: int, base: Factored) -> float | None:
    """Choose the scale of a base under a stage; None where the base alone is best."""
    best, chosen = _quality(problem, base.lists), None
    for scale in effort.scales:
        quality = _quality(problem, _reranked(problem.train, base, effort, seed, scale))
        if quality > best:
            best, chosen = quality, scale
    return chosen


def _reranked(pairs: ArtistPairs, base: Factored, effort: Effort, seed: int, scale: float) -> Lists:
    reranker = StructuredReranker(
        base, effort.n_components, base_scale=scale, k=LIST_LENGTH, epochs=effort.epochs, random_state=seed
    ).fit(pairs.queries, pairs.items)
    return lambda numbers, k: reranker.rank(numbers, min(k, len(reranker.item_ids_)))[0]


def _quality(problem: MusicProblem, lists: Lists) -> float:
    return ranks_of(lists, problem.validation, problem.n_artists).quality()


def _stage(ranker: LatentRanker, stage: int | None) -> Lists:
    """Rank by a stage, or by the last one kept before it."""
    last = ranker.n_stages_ - 1
    which = last if stage is None else min(stage, last)
    return lambda numbers, k: ranker.rank(numbers, min(k, len(ranker.item_ids_)), stage=which)[0]


def _cost(chosen: Chosen) -> dict[str, float]:
    return {"fit_seconds": chosen.seconds} | _epochs(chosen.model)


def _epochs(ranker: LatentRanker) -> dict[str, float]:
    return {f"epochs_t{t}": float(epochs) for t, epochs in enumerate(ranker.n_epochs_)}


def _next_counts(pairs: ArtistPairs, query: int, n_artists: int) -> Ints:
    return np.bincount(pairs.items[pairs.queries == query], minlength=n_artists)


def _published(figures: tuple[float, ...] | None) -> dict[str, float] | None:
    return None if figures is None else {f"R@{k}": figure for k, figure in zip(DEPTHS, figures, strict=True)}


def _published_gain(one: int, other: int) -> dict[str, float]:
    after, before = TABLE_1[f"LaSR (t={one})"], TABLE_1[f"LaSR (t={other})"]
    gain = {f"R@{k}": round(a - b, 2) for k, a, b in zip(DEPTHS, after, before, strict=True)}
    relative = {f"R@{k}_relative": round(100 * (a / b - 1), 1) for k, a, b in zip(DEPTHS, after, before, strict=True)}
    return gain | relative
