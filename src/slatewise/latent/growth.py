"""A further epoch of a LatentRanker, whose tables get rows for ids that were not there before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from slatewise.latent.engine import Factors
from slatewise.latent.fitting import (
    engine_of,
    seed_of,
    shape_of,
    silence_untaught,
    stages_of,
    training_pairs,
)
from slatewise.latent.input import Ids, LatentPairs, queries_of
from slatewise.latent.search import GRIDS, Learned, Steps
from slatewise.latent.tables import Ints, Singles, Table
from slatewise.latent.training import StageState
from slatewise.model.file import ModelCard
from slatewise.model.saving import card_for

if TYPE_CHECKING:
    from slatewise.latent.ranker import LatentRanker


def one_more_epoch(ranker: LatentRanker, fresh: LatentPairs, fitted: bool) -> tuple[LatentPairs, Learned]:
    """Train on further pairs; return them numbered among all ids, and the tables with rows for all of those."""
    if ranker.stages != 1 or (fitted and ranker.n_stages_ != 1):
        raise ValueError("stages: expected 1 for partial_fit, found more; use fit")
    if fitted:
        if ranker.n_components != ranker.n_components_:
            raise ValueError(
                f"n_components: expected {ranker.n_components_}, that of the tables to go on with, "
                f"found {ranker.n_components}; use fit"
            )
        steps = Steps.of(ranker, {name: getattr(ranker, f"{name}_") for name in GRIDS})
        pairs, state = _grown(ranker, fresh, steps)
    else:
        steps = Steps.of(ranker)
        pairs, state = fresh, stages_of(ranker, fresh, shape_of(ranker, fresh, steps)).start(0, ())
        silence_untaught(state.queries, pairs)
    training = training_pairs(pairs)
    factors = Factors(queries_of(pairs.features, ranker.n_components)(state.queries), state.items)
    nothing = np.empty((pairs.n_queries, 0), dtype=np.int64)
    rng = np.random.default_rng((seed_of(ranker), 0, state.epoch))
    engine_of(ranker, state, nothing, len(training)).epoch(factors, training, rng)
    return pairs, Learned((replace(state, epoch=state.epoch + 1, best_epoch=state.epoch + 1),), steps)


def grown_card(ranker: LatentRanker, pairs: LatentPairs, fitted: bool) -> ModelCard:
    """Describe the data of every fit so far; rows of features are new each time, ids may be old ones."""
    before = ranker.model_card_.n_lists if fitted and ranker.by_features_ else 0
    card = card_for(before + pairs.n_queries, *pairs.arrays())
    return card.after(ranker.model_card_) if fitted else card


def _grown(ranker: LatentRanker, fresh: LatentPairs, steps: Steps) -> tuple[LatentPairs, StageState]:
    if ranker.by_features_ != (fresh.features is not None):
        raise ValueError("queries: expected ids or features as in fit, found the other kind")
    item_ids, old_items, new_items = _joined_ids("items", ranker.item_ids_, fresh.item_ids)
    pairs = replace(fresh, items=new_items[fresh.items], item_ids=item_ids)
    old_queries = np.arange(ranker.n_features_in_)
    if pairs.query_ids is not None:
        query_ids, old_queries, new_queries = _joined_ids("queries", ranker.query_ids_, pairs.query_ids)
        pairs = replace(pairs, queries=new_queries[pairs.queries], query_ids=query_ids)
    queries, items = shape_of(ranker, pairs, steps).tables(0)
    epoch = sum(ranker.n_epochs_)
    rng = np.random.default_rng((seed_of(ranker), 0, epoch, len(item_ids)))
    n = ranker.n_components
    _fill_rows(queries, n, old_queries, ranker.query_factors_[0], ranker.query_steps_, rng)
    _fill_rows(items, n, old_items, ranker.item_factors_[0], ranker.item_steps_, rng)
    silence_untaught(queries, pairs, old_queries)
    return pairs, StageState(0, queries, items, epoch=epoch)


def _joined_ids(name: str, old: Ids, new: Ids) -> tuple[Ids, Ints, Ints]:
    """Return all ids in ascending order, and where the old and the new ones are among them."""
    if old.dtype.kind != new.dtype.kind:
        raise ValueError(f"{name}: expected ids as in fit, dtype {old.dtype}, found {new.dtype}")
    together = np.union1d(old, new)
    return together, np.searchsorted(together, old), np.searchsorted(together, new)


def _fill_rows(table: Table, n: int, places: Ints, values: Singles, steps: Singles, rng: np.random.Generator) -> None:
    """Put learned rows into their places of an empty table, and random ones, as fit begins with, into the rest."""
    new = np.ones(len(table.values), dtype=bool)
    new[places] = False
    table.values[new, :n] = rng.normal(0, 1 / np.sqrt(n), (int(new.sum()), n))
    table.values[places], table.accumulators[places] = values[:, : table.values.shape[1]], steps
