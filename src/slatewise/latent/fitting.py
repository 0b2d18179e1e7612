"""How settings and pairs become the parts of a fit: tables, engine, schedule, stages."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

from slatewise.core.executor import Executor, refuse_on_cluster
from slatewise.factors.base_levels import N_KNOTS, likely_steps
from slatewise.factors.base_scores import BaseScores
from slatewise.factors.checkpoint import packed, unpacked
from slatewise.factors.engine import EngineTask, WarpEngine
from slatewise.factors.engines import ENGINES
from slatewise.factors.input import LatentPairs, own_items, queries_of
from slatewise.factors.pairs import TrainingPairs
from slatewise.factors.queries import zero_queries
from slatewise.factors.search import Progress, StageSearch, left_open
from slatewise.factors.settings import LatentSettings, Steps
from slatewise.factors.stages import Shape, Stages
from slatewise.factors.tables import Ints, Singles, Table
from slatewise.factors.training import EpochReport, Schedule, StageState
from slatewise.factors.validation import cross_folds, hold_out
from slatewise.persistence.checkpoint import Checkpoint
from slatewise.sessions.cross_fit import with_levels
from slatewise.sessions.estimator import SessionModel

MOST_SEARCHED = 1 << 31
"""Scores of an epoch over sessions, pairs times items, up to which steps and norms are searched for."""


def search_of(
    settings: LatentSettings,
    pairs: LatentPairs,
    checkpoint: Checkpoint,
    executor: Executor,
    session_base: SessionModel | None = None,
) -> StageSearch:
    """Put the parts of a LatentRanker's fit together, going on from a checkpoint."""
    shape, steps = partial(shape_of, settings, pairs, n_knots=0 if session_base is None else N_KNOTS), settings.steps()
    stages = stages_of(settings, pairs, shape(steps), executor, session_base=session_base)
    saved = checkpoint.read()
    progress = Progress() if saved is None else unpacked(saved, shape, steps)

    def watch(report: EpochReport) -> None:
        if checkpoint.path is not None:
            checkpoint.write(*packed(progress))
        settings.report(report)

    # Without pairs to judge by, what is left open stays where a search would begin; so it does where sessions are many:
    # there the start is good enough, and every trial takes minutes.
    names = [] if stages.validation is None or are_many(pairs) else left_open(settings)
    return StageSearch(stages, shape, names, settings.stages, progress, watch)


def are_many(pairs: LatentPairs) -> bool:
    """Say whether pairs are of so many sessions that nothing is searched for."""
    return pairs.sessions is not None and len(pairs.queries) * len(pairs.item_ids) > MOST_SEARCHED


def tell_of_stages(kept: int, wanted: int) -> None:
    """Warn where a stage was trained and left out: who asked for it would take its list for another's."""
    if kept < wanted:
        warnings.warn(
            f"stages: {kept} of {wanted} are kept: the next one did not raise the recall of held-out pairs",
            stacklevel=3,
        )


def stages_of(
    settings: LatentSettings,
    pairs: LatentPairs,
    shape: Shape,
    executor: Executor,
    base: BaseScores | None = None,
    session_base: SessionModel | None = None,
) -> Stages:
    """Hold pairs out and put the parts of stages together; on a base, which is then stage 0 itself.

    A base of sessions is a part of stage 0.
    """
    refuse_on_cluster("WARP training", "a ranker that was fitted before the cluster was opened")
    own = own_items(pairs.query_ids, pairs.item_ids, settings.own_weight)
    if own is not None and settings.stages > 1 and (own.items < 0).all():
        raise ValueError(f"own_weight: expected 0 where no query has the id of an item, found {settings.own_weight!r}")
    seed, on_base = settings.seed, base is not None
    used, validation = hold_out(pairs, settings.validation_fraction, settings.k, seed, on_base)
    pairs = with_levels(pairs, session_base, validation, seed, executor)
    training = training_pairs(used)
    return Stages(
        shape,
        zero_queries if on_base else queries_of(pairs, settings.n_components),
        pairs.n_queries,
        training,
        validation,
        Schedule(settings.epochs, settings.patience, seed),
        settings.position_weights,
        partial(engine_of, settings, len(training), executor),
        cross_folds(used, seed) if settings.stages > 1 else None,
        executor,
        own,
        base,
        steps_of_base(pairs, used),
        ENGINES[settings.engine].device(),
    )


def steps_of_base(pairs: LatentPairs, used: LatentPairs) -> Singles | None:
    """Return how the levels of a base are added, learnt from the pairs used; None where there is no base."""
    levels = None if pairs.sessions is None else pairs.sessions.levels
    return None if levels is None else likely_steps(levels, used.queries, used.items, len(pairs.item_ids))


def shape_of(
    settings: LatentSettings, pairs: LatentPairs, steps: Steps, on_base: bool = False, n_knots: int = 0
) -> Shape:
    """Return the sizes of the tables, and how they move."""
    return Shape(
        settings.n_components,
        _rows_of_queries(pairs),
        len(pairs.item_ids),
        steps.learning_rate,
        steps.max_norm,
        steps.learning_rate,
        steps.stage_learning_rate,
        steps.stage_norm,
        by_id=pairs.by_id,
        term=settings.term,
        on_base=on_base,
        n_ages=0 if pairs.sessions is None else pairs.sessions.n_ages,
        n_knots=n_knots,
    )


def _rows_of_queries(pairs: LatentPairs) -> int:
    """Return how many rows U has: one per query, per feature or per item, and then one per feature of who asks."""
    if pairs.sessions is not None:
        return len(pairs.item_ids) + pairs.sessions.n_context
    return pairs.n_queries if pairs.features is None else int(pairs.features.shape[1])


def engine_of(settings: LatentSettings, n_pairs: int, executor: Executor, state: StageState, lists: Ints) -> WarpEngine:
    """Return what trains a stage on so many pairs."""
    task = EngineTask(settings, state.stage, state.queries, lists, len(state.items.values), n_pairs, executor)
    return ENGINES[settings.engine].make(task)


def check_for_kind(settings: LatentSettings, pairs: LatentPairs) -> None:
    """Raise where the engine cannot be had, or parameters mean nothing for queries given by features, or by items."""
    ENGINES[settings.engine].check(settings)
    if pairs.by_id:
        return
    kind = "queries given by features" if pairs.sessions is None else "sessions"
    if not ENGINES[settings.engine].takes_features:
        able = " or ".join(repr(name) for name, engine in ENGINES.items() if engine.takes_features)
        raise ValueError(f"engine: expected {able} for {kind}, found {settings.engine!r}")
    if settings.own_weight:
        raise ValueError(f"own_weight: expected 0 for {kind}, which are no items, found {settings.own_weight!r}")
    if pairs.sessions is not None and settings.negatives != "catalogue":
        raise ValueError(f"negatives: expected 'catalogue' for sessions, found {settings.negatives!r}")


def training_pairs(pairs: LatentPairs) -> TrainingPairs:
    """Sort the pairs, with weights of mean 1."""
    weights = pairs.weights / pairs.weights.max()  # of which no sum is infinite
    return TrainingPairs.of(pairs.queries, pairs.items, (weights / weights.mean()).astype(np.float32))


def zero_untaught(queries: Table, pairs: LatentPairs, *known: Ints) -> None:
    """Set U of queries that have no pair, and are not ``known`` from before, to 0: nothing but chance has made it.

    Such a query then gets the order of the biases, as one does that is folded in without items.
    """
    if not pairs.by_id:
        return
    own = queries.segments[0]
    untaught = np.ones(pairs.n_queries, dtype=bool)
    for taught in (pairs.queries, *known):
        untaught[taught] = False
    queries.values[untaught, own.start : own.stop] = 0.0
