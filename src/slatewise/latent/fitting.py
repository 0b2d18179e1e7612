"""How a LatentRanker's parameters become the parts of a fit: tables, engine, schedule, stages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from slatewise.latent.blocked import BlockedEngine, step_size
from slatewise.latent.checkpoint import packed, unpacked
from slatewise.latent.engine import WarpEngine
from slatewise.latent.input import LatentPairs, own_items, queries_of
from slatewise.latent.negatives import Negatives, SharedNegatives, SharedWithLists, WholeCatalogue
from slatewise.latent.pairs import TrainingPairs
from slatewise.latent.rank_weights import rank_weights
from slatewise.latent.sampled import SampledEngine
from slatewise.latent.search import Learned, Progress, Steps, fit_searching, left_open
from slatewise.latent.settings import PAIR_TERMS, position_weights
from slatewise.latent.stages import Shape, Stages
from slatewise.latent.tables import Ints, Table
from slatewise.latent.training import EpochReport, Schedule, StageState
from slatewise.latent.validation import cross_folds, hold_out
from slatewise.model.checkpoint import Checkpoint

if TYPE_CHECKING:
    from slatewise.latent.ranker import LatentRanker


def fit_stages(ranker: LatentRanker, pairs: LatentPairs, data_hash: str) -> Learned:
    """Train all stages, going on from a checkpoint, with the best steps and norms found for those left open."""

    def watch(report: EpochReport) -> None:
        if checkpoint.path is not None:
            checkpoint.write(*packed(progress))
        for callback in ranker.callbacks or ():
            callback(report)

    def shape(steps: Steps) -> Shape:
        return shape_of(ranker, pairs, steps)

    steps = Steps.of(ranker)
    stages = stages_of(ranker, pairs, shape(steps))
    # Without pairs to judge by, what is left open stays where a search would begin.
    names = [] if stages.validation is None else left_open(ranker)
    checkpoint = Checkpoint.of(ranker, data_hash, position_weights=position_weights(ranker))
    saved = checkpoint.read()
    progress = Progress() if saved is None else unpacked(saved, shape, steps)
    learned = fit_searching(stages, shape, steps, names, ranker.stages, progress, watch)
    checkpoint.remove()
    for state in learned.stages:
        silence_untaught(state.queries, pairs)
    return learned


def silence_untaught(queries: Table, pairs: LatentPairs, *known: Ints) -> None:
    """Set U of queries that have no pair, and are not ``known`` from before, to 0: nothing but chance has made it.

    Such a query then gets the order of the biases, as one does that is folded in without items.
    """
    if pairs.features is not None:
        return
    untaught = np.ones(pairs.n_queries, dtype=bool)
    for taught in (pairs.queries, *known):
        untaught[taught] = False
    own = queries.segments[0]
    queries.values[untaught, own.start : own.stop] = 0.0


def seed_of(ranker: LatentRanker) -> int:
    """Return the seed of everything random."""
    return ranker.seed_


def shape_of(ranker: LatentRanker, pairs: LatentPairs, steps: Steps) -> Shape:
    """Return the sizes of the tables, and how they move."""
    return Shape(
        ranker.n_components,
        pairs.n_queries if pairs.features is None else int(pairs.features.shape[1]),
        len(pairs.item_ids),
        steps.learning_rate,
        steps.max_norm,
        steps.learning_rate,
        steps.stage_learning_rate,
        steps.stage_norm,
        by_id=pairs.features is None,
        term=PAIR_TERMS[ranker.pair],
    )


def stages_of(ranker: LatentRanker, pairs: LatentPairs, shape: Shape) -> Stages:
    """Hold pairs out and put the parts of a fit together."""
    seed = seed_of(ranker)
    own = own_items(pairs.query_ids, pairs.item_ids, ranker.own_weight)
    if own is not None and ranker.stages > 1 and (own.items < 0).all():
        raise ValueError(f"own_weight: expected 0 where no query has the id of an item, found {ranker.own_weight!r}")
    used, validation = hold_out(pairs, ranker.validation_fraction, ranker.k, seed)
    training = training_pairs(used)
    return Stages(
        shape,
        queries_of(pairs.features, ranker.n_components),
        pairs.n_queries,
        training,
        validation,
        Schedule(ranker.epochs, ranker.patience, seed),
        position_weights(ranker),
        lambda state, lists: engine_of(ranker, state, lists, len(training)),
        cross_folds(used, seed) if ranker.stages > 1 else None,
        ranker.n_threads,
        own,
    )


def training_pairs(pairs: LatentPairs) -> TrainingPairs:
    """Sort the pairs, with weights of mean 1."""
    weights = pairs.weights / pairs.weights.max()  # of which no sum is infinite
    return TrainingPairs.of(pairs.queries, pairs.items, (weights / weights.mean()).astype(np.float32))


def engine_of(ranker: LatentRanker, state: StageState, lists: Ints, n_pairs: int) -> WarpEngine:
    """Return what trains a stage on so many pairs."""
    n_items = len(state.items.values)
    weight = rank_weights(n_items, float(ranker.alpha) if ranker.loss == "warp" else 0.0)
    if ranker.engine == "sampled" and state.stage == 0:
        draws = min(ranker.max_draws or n_items, n_items - 1)  # more would say that a rank is below 1
        return SampledEngine(state.queries, weight, draws, ranker.n_threads)
    negatives: Negatives = WholeCatalogue()
    if ranker.negatives != "catalogue":
        # A later stage begins at the lists it was handed, and moves little.
        drawn = int(ranker.negatives)
        negatives = SharedWithLists(drawn, lists) if state.stage else SharedNegatives(drawn, ranker.k)
    return BlockedEngine(negatives, weight, ranker.batch_size or step_size(n_pairs), ranker.n_threads)
