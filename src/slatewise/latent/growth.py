"""A further epoch of a LatentRanker, whose tables get rows for ids that were not there before."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slatewise.core.executor import Executor
from slatewise.latent.engine import Factors
from slatewise.latent.fitting import engine_of, shape_of, stages_of, training_pairs, zero_untaught
from slatewise.latent.input import Ids, LatentPairs, queries_of
from slatewise.latent.model import LatentModel
from slatewise.latent.search import Learned
from slatewise.latent.settings import LatentSettings, Steps
from slatewise.latent.tables import Ints, Singles, Table
from slatewise.latent.training import StageState


@dataclass(frozen=True, eq=False)
class Former:
    """What an epoch goes on from."""

    model: LatentModel
    query_steps: Singles
    item_steps: Singles
    """AdaGrad's accumulators."""
    epochs: int
    """Trained so far."""


def one_more_epoch(
    settings: LatentSettings, steps: Steps, fresh: LatentPairs, former: Former | None, executor: Executor
) -> tuple[LatentPairs, Learned]:
    """Train on further pairs; return them numbered among all ids, and the tables with rows for all of those."""
    if settings.stages != 1 or (former is not None and former.model.n_stages != 1):
        raise ValueError("stages: expected 1 for partial_fit, found more; use fit")
    if former is not None:
        pairs, state = _grown(settings, steps, fresh, former)
    else:
        pairs = fresh
        state = stages_of(settings, fresh, shape_of(settings, fresh, steps), executor).start(0, ())
        zero_untaught(state.queries, pairs)
    training = training_pairs(pairs)
    factors = Factors(queries_of(pairs, settings.n_components)(state.queries), state.items)
    nothing = np.empty((pairs.n_queries, 0), dtype=np.int64)
    rng = np.random.default_rng((settings.seed, 0, state.epoch))
    engine_of(settings, len(training), executor, state, nothing).epoch(factors, training, rng)
    return pairs, Learned((replace(state, epoch=state.epoch + 1, best_epoch=state.epoch + 1),), steps)


def _grown(
    settings: LatentSettings, steps: Steps, fresh: LatentPairs, former: Former
) -> tuple[LatentPairs, StageState]:
    model, n, seed = former.model, settings.n_components, settings.seed
    if n != model.n_components:
        raise ValueError(
            f"n_components: expected {model.n_components}, that of the tables to go on with, found {n}; use fit"
        )
    window = 0 if fresh.sessions is None else fresh.sessions.window
    if (model.by_features, model.window == 0) != (fresh.features is not None, window == 0):
        raise ValueError("queries: expected ids, features or sessions as in fit, found another kind")
    if model.window != window:
        raise ValueError(f"window: expected {model.window}, that of the tables to go on with, found {window}; use fit")
    item_ids, old_items, new_items = _joined_ids("items", model.item_ids, fresh.item_ids)
    pairs = replace(fresh, items=new_items[fresh.items], item_ids=item_ids)
    before, own = model.items[0].values, model.queries[0].values
    old_queries = np.arange(len(own))
    if pairs.query_ids is not None:
        query_ids, old_queries, new_queries = _joined_ids("queries", model.query_ids, pairs.query_ids)
        pairs = replace(pairs, queries=new_queries[pairs.queries], query_ids=query_ids)
    if pairs.sessions is not None:
        bags = pairs.sessions.bags
        bags = bags._replace(items=new_items[bags.items])
        pairs = replace(pairs, sessions=replace(pairs.sessions, bags=bags))
        n_weights = len(own) - len(old_items)
        old_queries = np.append(old_items, len(item_ids) + np.arange(n_weights))  # weights of ages are behind the items
    queries, items = shape_of(settings, pairs, steps).tables(0)
    rng = np.random.default_rng((seed, 0, former.epochs, len(item_ids)))
    _fill_rows(queries, n, old_queries, own, former.query_steps, None if pairs.sessions is not None else rng)
    _fill_rows(items, n, old_items, before, former.item_steps, rng)
    zero_untaught(queries, pairs, old_queries)
    return pairs, StageState(0, queries, items, epoch=former.epochs)


def _joined_ids(name: str, old: Ids, new: Ids) -> tuple[Ids, Ints, Ints]:
    """Return all ids in ascending order, and where the old and the new ones are among them."""
    if old.dtype.kind != new.dtype.kind:
        raise ValueError(f"{name}: expected ids as in fit, dtype {old.dtype}, found {new.dtype}")
    together = np.union1d(old, new)
    return together, np.searchsorted(together, old), np.searchsorted(together, new)


def _fill_rows(
    table: Table, n: int, places: Ints, values: Singles, steps: Singles, rng: np.random.Generator | None
) -> None:
    """Put learned rows into their places of an empty table; the rest are random, as fit begins with, or stay 0."""
    new = np.ones(len(table.values), dtype=bool)
    new[places] = False
    if rng is not None:
        table.values[new, :n] = rng.normal(0, 1 / np.sqrt(n), (int(new.sum()), n))
    table.values[places], table.accumulators[places] = values[:, : table.values.shape[1]], steps
