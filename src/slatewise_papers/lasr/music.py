"""Tables 1, 2 and 3 of Weston and Blitzer (2012): which artist comes next.

Settings are chosen on the validation pairs, one after the other, by the geometric mean of recall at 5, 10, 30 and 50,
and the method is then fitted to training and validation pairs. No stage takes more than eight epochs. Other widths take
the settings of the main one, except the norm; t=2 those of t=1. In the paper a list holds the best items of the stage
before; one row more has the query itself in it, which here is an artist too. Where ``kept`` is 0 no such stage was
better than the one before, whose figures then stand there. A row "A minus B" is a difference of recall in points,
``_relative`` in percent of B, with p values of a randomization test over queries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from slatewise.core.arrays import Ints
from slatewise.core.running.progress import tell, track
from slatewise.factors.pair_terms import Bilinear, Semidefinite
from slatewise.factors.settings import Blocked, Stages
from slatewise.latent.ranker import LatentRanker
from slatewise.latent.reranker import StructuredReranker
from slatewise_papers.framework.reproduction import Published, Row
from slatewise_papers.lasr.baselines import nmf, popularity, rocchio, svd
from slatewise_papers.lasr.counts import Counts, choose_counts, choose_strength
from slatewise_papers.lasr.data import ArtistPairs, MusicProblem
from slatewise_papers.lasr.lists import DEPTHS, Factored, Lists, Ranks, by_frequency, difference, ranks_of
from slatewise_papers.lasr.stages import (
    LIST_LENGTH,
    Learned,
    Settings,
    choose_first,
    choose_next,
    quality,
    refit,
)

TABLE_1 = Published(
    tuple(f"R@{k}" for k in DEPTHS),
    {
        "NMF": (3.76, 6.38, 13.3, 17.8),
        "SVD": (4.01, 6.93, 13.9, 18.5),
        "LaSR (t=0), AUC loss": (3.56, 6.32, 14.8, 20.3),
        "LaSR (t=0)": (5.60, 9.49, 18.9, 24.8),
        "LaSR (t=1)": (6.65, 10.73, 20.1, 26.7),
        "LaSR (t=2)": (6.93, 10.95, 20.3, 26.5),
    },
    digits=2,
)
TABLE_2: Mapping[str, Mapping[int, float]] = {
    "NMF": {25: 2.82, 50: 3.76, 100: 3.57, 200: 4.82},
    "SVD": {25: 3.61, 50: 4.01, 100: 4.53, 200: 5.28},
    "LaSR (t=0)": {25: 5.23, 50: 5.60, 100: 6.24, 200: 6.42},
}
BETAS = (0.02, 0.05, 0.1, 0.2, 0.4)
BOTH_WAYS = "LaSR (t=0), pairs both ways"
OWN = "LaSR (t=1), query in its list"


@dataclass(frozen=True, eq=False)
class _System:
    """A row of Table 1: what ranks, and notes on it."""

    name: str
    lists: Lists
    notes: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Effort:
    """How much of everything is tried."""

    n_components: int
    widths: tuple[int, ...]
    """Of Table 2."""
    alphas: tuple[float, ...]
    """Of the weights of t=0."""
    norms: tuple[float, ...]
    """Of t=0, ascending."""
    steps: tuple[float, ...]
    """Of t=0."""
    pair_norms: tuple[float, ...]
    """Of later stages, each with S'S and with S'T."""
    pair_steps: tuple[float, ...]
    own_weights: tuple[float, ...]
    """Of a query in its own list."""
    scales: tuple[float, ...]
    """Of a base under a stage."""
    epochs: int


FULL = Effort(
    50,
    (25, 50, 100, 200),
    (1.0, 1.5),
    (2.0, 2.25, 2.5),
    (0.3, 0.5, 0.7),
    (0.7, 1.0),
    (0.05, 0.1, 0.2),
    (1.5, 3.0, 6.0),
    (4.0, 8.0),
    8,
)
QUICK = Effort(8, (4, 8), (1.0,), (2.5,), (0.5,), (1.0,), (0.1,), (3.0,), (4.0,), 4)


def tables(problem: MusicProblem, effort: Effort, seed: int) -> list[Row]:
    """Run Tables 1, 2 and 3."""
    rows, ranks, stages = table_1(problem, effort, seed)
    rows += gains(problem, ranks, f"LaSR (t=0), n={2 * stages.settings.n_components}")
    rows += table_2(problem, effort, seed, ranks, stages.settings)
    return rows + table_3(problem, stages)


def table_1(problem: MusicProblem, effort: Effort, seed: int) -> tuple[list[Row], dict[str, Ranks], Learned]:
    """Fit every method at one width; return also the ranks and the fitted stages."""
    known, n_artists = problem.known, problem.n_artists
    n = min(effort.n_components, n_artists - 1)
    trial = _first(problem, effort, seed, n, effort.alphas)
    first = refit(problem, trial, seed)
    beta = max(BETAS, key=lambda beta: quality(problem, rocchio(trial.first, beta)))
    own = refit(problem, _with_own(problem, trial, effort, seed), seed, first)
    trial = _second(problem, trial, effort, seed)
    trial = choose_next(problem, trial, [trial.settings], effort.epochs, seed) if len(trial.states) > 1 else trial
    stages = refit(problem, trial, seed, first)
    auc = refit(problem, _first(problem, effort, seed, n, (0.0,)), seed)
    wide = _wider(problem, effort, seed, 2 * n, first.settings)
    approximation, reranked, scale = _on_svd(problem, effort, seed, n)
    systems = [
        _System("popularity", popularity(known, n_artists).lists),
        _System("NMF", nmf(known, n_artists, n).lists),
        _System("SVD", approximation.lists),
        _System("LaSR (t=0), AUC loss", auc.lists(), _cost(auc)),
        _System("LaSR (t=0)", first.lists(), _cost(first)),
        _System(f"LaSR (t=0), n={2 * n}", wide.lists(), _cost(wide)),
        _System("Rocchio on t=0 (S = V)", rocchio(first.first, beta), {"beta": beta}),
        *[_System(f"LaSR (t={t})", stages.lists(t), _later_cost(stages, t)) for t in (1, 2)],
        _System(OWN, own.lists(), _later_cost(own, 1)),
        _System("SVD, reranked (t=1)", reranked, {} if scale is None else {"base_scale": scale}),
        *_with_counts(problem, trial, stages, effort, seed),
    ]
    ranks = {system.name: ranks_of(system.lists, problem.test, n_artists) for system in track(systems, "tests")}
    rows = [
        Row(system.name, ranks[system.name].recall() | dict(system.notes), TABLE_1.of(system.name))
        for system in systems
    ]
    return rows, ranks, stages


def gains(problem: MusicProblem, ranks: Mapping[str, Ranks], wide: str) -> list[Row]:
    """Compare the stages with t=0 (also as wide as t=1 is), with each other and with counts."""
    rocchio_name, reranked = "Rocchio on t=0 (S = V)", "SVD, reranked (t=1)"
    pairs = (
        ("LaSR (t=1)", "LaSR (t=0)"),
        *((OWN, other) for other in ("LaSR (t=0)", "LaSR (t=1)", wide, BOTH_WAYS)),
        ("LaSR (t=2)", "LaSR (t=1)"),
        *(("LaSR (t=1)", other) for other in (wide, rocchio_name)),
        (reranked, "SVD"),
        ("LaSR (t=1)", "counts"),
        ("LaSR (t=1) + counts", "LaSR (t=1)"),
        (BOTH_WAYS, "LaSR (t=0)"),
        *((f"{BOTH_WAYS} + counts", other) for other in (BOTH_WAYS, "counts")),
    )
    rows = [
        Row(
            f"{one} minus {'Rocchio' if other == rocchio_name else other}",
            difference(ranks[one], ranks[other]),
            TABLE_1.gain(one, other, TABLE_1.columns),
        )
        for one, other in pairs
    ]
    for name, other in (("LaSR (t=1)", "LaSR (t=0)"), (OWN, "LaSR (t=0)"), ("LaSR (t=1)", "counts")):
        binned = by_frequency(ranks[name], ranks[other], problem.known, problem.n_artists)
        rows += [Row(f"{name} minus {other}, query seen {bin_}", gain, None) for bin_, gain in binned.items()]
    return rows


def table_2(
    problem: MusicProblem, effort: Effort, seed: int, done: Mapping[str, Ranks], settings: Settings
) -> list[Row]:
    """Change the width; what Table 1 has ``done`` is not done again."""
    rows: list[Row] = []
    known, n_artists = problem.known, problem.n_artists
    for n in track([n for n in effort.widths if n < n_artists], "widths"):
        same = "" if n == effort.n_components else f", n={n}"
        systems: dict[str, Callable[[], Lists]] = {
            "NMF": lambda n=n: nmf(known, n_artists, n).lists,
            "SVD": lambda n=n: svd(known, n_artists, n).lists,
            "LaSR (t=0)": lambda n=n: _wider(problem, effort, seed, n, settings).lists(),
        }
        for name, fit in systems.items():
            ranks = done.get(f"{name}{same}") or ranks_of(fit(), problem.test, n_artists)
            paper = {"R@5": TABLE_2[name][n]} if n in TABLE_2[name] else None
            rows.append(Row(f"Table 2, {name}, n={n}", ranks.recall(), paper))
    return rows


def table_3(problem: MusicProblem, stages: Learned) -> list[Row]:
    """Show the lists of a popular and of a rarer query: artist [train, test] pairs, * where the stages differ."""
    counts_of_queries = np.bincount(problem.test.queries, minlength=problem.n_artists)
    by_count, rarer = np.argsort(-counts_of_queries, kind="stable"), int((counts_of_queries > 0).sum()) // 3
    rows: list[Row] = []
    for query in (int(by_count[0]), int(by_count[rarer])):
        counts = [_next_counts(part, query, problem.n_artists) for part in (problem.known, problem.test)]
        lists = [stages.lists(t)(np.array([query]), LIST_LENGTH)[0].tolist() for t in (0, 1)]
        for t, own, other in ((0, lists[0], lists[1]), (1, lists[1], lists[0])):
            shown = [
                f"{problem.names[artist]}{'' if artist in other else '*'} [{counts[0][artist]},{counts[1][artist]}]"
                for artist in own
            ]
            totals = {name: float(of[own].sum()) for name, of in zip(("train", "test"), counts, strict=True)}
            rows.append(Row(f"Table 3, query {problem.names[query]}, t={t}", totals, None, tuple(shown)))
    return rows


def at_scale(problem: MusicProblem, n_components: int, negatives: int, epochs: int, seed: int) -> list[Row]:
    """Train three stages and test them, with the seconds and the peak memory of all that.

    Nothing is chosen and nothing held out: every stage takes all its epochs, whether or not it is better than the one
    before. S is kept small, because generated sessions have no structure beyond what t=0 can see.
    """
    import resource  # not on every system

    start = time.perf_counter()
    ranker = LatentRanker(
        n_components,
        stages=Stages(3, learning_rate=0.03, max_norm=0.5),
        engine=Blocked(negatives=negatives),
        learning_rate=0.3,
        max_norm=2.5,
        epochs=epochs,
        validation_fraction=0.0,
        random_state=seed,
    )
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


def _first(problem: MusicProblem, effort: Effort, seed: int, n: int, alphas: tuple[float, ...]) -> Learned:
    """Choose alpha at a middle norm and step, then the norm, then the step."""
    start = Settings(n, step=_middle(effort.steps), max_norm=_middle(effort.norms))
    trial = choose_first(problem, [replace(start, alpha=alpha) for alpha in alphas], effort.epochs, seed)
    for name, grid in (("max_norm", effort.norms), ("step", effort.steps)):
        if others := _others(trial, name, grid):
            trial = _better(problem, trial, choose_first(problem, others, effort.epochs, seed))
    return trial


def _second(problem: MusicProblem, first: Learned, effort: Effort, seed: int, own_weight: float = 0.0) -> Learned:
    """Choose the kind and the norm of t=1 at a middle step, then the step; return ``first`` if it is best alone."""
    start = replace(first.settings, pair_step=_middle(effort.pair_steps), own_weight=own_weight)
    choices = [
        replace(start, term=term, pair_norm=norm) for norm in effort.pair_norms for term in (Semidefinite, Bilinear)
    ]
    trial = choose_next(problem, first, choices, effort.epochs, seed)
    others = _others(trial, "pair_step", effort.pair_steps)
    if trial is first or not others:
        return trial
    return _better(problem, trial, choose_next(problem, first, others, effort.epochs, seed))


def _with_own(problem: MusicProblem, first: Learned, effort: Effort, seed: int) -> Learned:
    """Choose t=1 with the query in its list at a middle weight, then the weight."""
    trial = _second(problem, first, effort, seed, _middle(effort.own_weights))
    others = _others(trial, "own_weight", effort.own_weights)
    if trial is first or not others:
        return trial
    return _better(problem, trial, choose_next(problem, first, others, effort.epochs, seed))


def _others(trial: Learned, name: str, grid: tuple[float, ...]) -> list[Settings]:
    """Return the settings of a trial with the other values of one of them."""
    return [replace(trial.settings, **{name: value}) for value in grid if value != getattr(trial.settings, name)]


def _better(problem: MusicProblem, one: Learned, other: Learned) -> Learned:
    return max(one, other, key=lambda trial: quality(problem, trial.lists()))


def _wider(problem: MusicProblem, effort: Effort, seed: int, n: int, settings: Settings) -> Learned:
    """Fit t=0 at another width, with the norm chosen for the main one or the next: more numbers want smaller ones."""
    place = effort.norms.index(settings.max_norm) + (-1 if n > settings.n_components else 1)
    norms = {settings.max_norm, effort.norms[min(max(place, 0), len(effort.norms) - 1)]}
    choices = [replace(settings, n_components=n, max_norm=norm) for norm in sorted(norms)]
    return refit(problem, choose_first(problem, choices, effort.epochs, seed), seed)


def _middle(grid: tuple[float, ...]) -> float:
    return grid[len(grid) // 2]


def _on_svd(problem: MusicProblem, effort: Effort, seed: int, n: int) -> tuple[Factored, Lists, float | None]:
    """Return the SVD, its lists under the best stage on it, and the scale of that; None where it is best alone."""
    base = svd(problem.train, problem.n_artists, n)
    best, chosen = quality(problem, base.lists), None
    for scale in track(effort.scales, "scales of a base"):
        reached = quality(problem, _reranked(problem.train, base, effort, seed, scale))
        if reached > best:
            best, chosen = reached, scale
    approximation = svd(problem.known, problem.n_artists, n)
    if chosen is None:
        return approximation, approximation.lists, None
    return approximation, _reranked(problem.known, approximation, effort, seed, chosen), chosen


def _with_counts(problem: MusicProblem, trial: Learned, stages: Learned, effort: Effort, seed: int) -> list[_System]:
    """Count; learn t=0 from pairs in both directions; add the counts to that and to the stages.

    r and g are chosen with what was fitted to the training pairs alone: the ``trial`` of the stages.
    """
    reverse = choose_counts(problem)
    counts = Counts.of(problem.known, problem.n_artists, reverse)
    both_trial = choose_first(problem, [replace(trial.settings, reverse=reverse)], effort.epochs, seed)
    both = refit(problem, both_trial, seed)
    noted = {"reversed": reverse}
    systems = [_System("counts", counts.lists, noted), _System(BOTH_WAYS, both.lists(), _cost(both) | noted)]
    stage = {f"LaSR (t={t})": (partial(trial.factors, stage=t), partial(stages.factors, stage=t)) for t in (0, 1)}
    for name, (chosen_by, factors_of) in {**stage, BOTH_WAYS: (both_trial.factors, both.factors)}.items():
        strength = choose_strength(problem, reverse, chosen_by)
        lists = counts.with_factors(factors_of, strength)
        systems.append(_System(f"{name} + counts", lists, noted | {"strength": strength}))
    return systems


def _reranked(pairs: ArtistPairs, base: Factored, effort: Effort, seed: int, scale: float) -> Lists:
    single = Factored(base.query_rows.astype(np.float32), base.item_rows.astype(np.float32))
    reranker = StructuredReranker(
        single,
        n_components=effort.n_components,
        stages=Stages(k=LIST_LENGTH),
        base_scale=scale,
        epochs=effort.epochs // 2,
        random_state=seed,
    ).fit(pairs.queries, pairs.items, callbacks=[tell])
    return lambda numbers, k: reranker.rank(numbers, min(k, len(reranker.item_ids_))).ids


def _stage(ranker: LatentRanker, stage: int) -> Lists:
    """Rank by a stage, or by the last one kept before it."""
    which = min(stage, ranker.n_stages_ - 1)
    return lambda numbers, k: ranker.rank(numbers, min(k, len(ranker.item_ids_)), stage=which).ids


def _cost(learned: Learned) -> dict[str, float]:
    settings = learned.settings
    # Later stages are fitted after a first one that has a row of its own.
    seconds = "fit_seconds" if len(learned.states) == 1 else "later_stages_seconds"
    notes = {seconds: learned.seconds, "alpha": settings.alpha, "max_norm": settings.max_norm, "step": settings.step}
    if len(learned.states) > 1:
        bilinear = float(settings.term is Bilinear)
        notes |= {"stage_norm": settings.pair_norm, "stage_step": settings.pair_step, "S'T": bilinear}
        notes |= {"own_weight": settings.own_weight} if settings.own_weight else {}
    return notes | {f"epochs_t{t}": float(epochs) for t, epochs in enumerate(learned.epochs)}


def _later_cost(learned: Learned, t: int) -> dict[str, float]:
    return _cost(learned) | {"kept": 1.0} if len(learned.states) > t else {"kept": 0.0}


def _epochs(ranker: LatentRanker) -> dict[str, float]:
    return {f"epochs_t{t}": float(epochs) for t, epochs in enumerate(ranker.n_epochs_)}


def _next_counts(pairs: ArtistPairs, query: int, n_artists: int) -> Ints:
    return np.bincount(pairs.items[pairs.queries == query], minlength=n_artists)
