"""A further epoch of a LatentRanker, whose tables get rows for ids that were not there before."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slatewise.core.executor import Executor
from slatewise.factors.base_levels import N_KNOTS
from slatewise.factors.engine import Factors
from slatewise.factors.input import LatentPairs, queries_of
from slatewise.factors.model import LatentModel
from slatewise.factors.search import Learned
from slatewise.factors.settings import LatentSettings, Steps
from slatewise.factors.tables import Ints, Singles, Table
from slatewise.factors.training import StageState
from slatewise.latent.fitting import engine_of, shape_of, stages_of, training_pairs, zero_untaught
from slatewise.recommend.ids import joined_ids
from slatewise.sessions.cross_fit import further_levels, with_levels
from slatewise.sessions.estimator import SessionModel


@dataclass(frozen=True, eq=False)
class Former:
    """What an epoch goes on from."""

    model: LatentModel
    query_steps: Singles
    item_steps: Singles
    """AdaGrad's accumulators."""
    epochs: tuple[int, ...]
    """Trained so far, by stage."""
    base: SessionModel | None = None
    weight: float | None = 1.0
    """Of what was learnt beside the base."""


def first_epoch(
    settings: LatentSettings, steps: Steps, pairs: LatentPairs, base: SessionModel | None, executor: Executor
) -> Learned:
    """Train on the first pairs of all, with a base that was fitted on them."""
    if settings.stages != 1:
        raise ValueError(f"stages: expected 1 for a first partial_fit, found {settings.stages}; use fit")
    shape = shape_of(settings, pairs, steps, n_knots=0 if base is None else N_KNOTS)
    apart = replace(settings, validation_fraction=0.0)
    state = stages_of(apart, pairs, shape, executor, session_base=base).start(0, ())
    zero_untaught(state.queries, pairs)
    _epoch(settings, with_levels(pairs, base, None, settings.seed, executor), state, executor)
    return Learned((replace(state, epoch=1, best_epoch=1),), steps)


def one_more_epoch(
    settings: LatentSettings, steps: Steps, fresh: LatentPairs, former: Former, executor: Executor
) -> tuple[LatentPairs, Learned]:
    """Train stage 0 on further pairs; return them numbered among all ids, and the tables with rows for all of those.

    Later stages have U, V and b of stage 0, and keep their S. Where a base answers alone, nothing is trained.
    """
    pairs, state, old_items = _grown(settings, steps, fresh, former)
    if former.base is not None and pairs.sessions is not None:
        levels = further_levels(former.base, pairs.sessions, len(pairs.item_ids), old_items, executor)
        pairs = replace(pairs, sessions=replace(pairs.sessions, levels=levels))
    if former.weight != 0:
        _epoch(settings, pairs, state, executor)
    first = former.epochs[0] + 1
    states = [replace(state, epoch=first, best_epoch=first, weight=former.weight)]
    for stage in range(1, former.model.n_stages):
        states.append(_later(settings, steps, pairs, former, states[0], old_items, stage))
    return pairs, Learned(tuple(states), steps)


def _epoch(settings: LatentSettings, pairs: LatentPairs, state: StageState, executor: Executor) -> None:
    training = training_pairs(pairs)
    factors = Factors(queries_of(pairs, settings.n_components)(state.queries), state.items)
    nothing = np.empty((pairs.n_queries, 0), dtype=np.int64)
    rng = np.random.default_rng((settings.seed, 0, state.epoch))
    factors = replace(factors, queries=factors.queries.for_epoch(rng))
    engine_of(settings, len(training), executor, state, nothing).epoch(factors, training, rng)


def _later(
    settings: LatentSettings,
    steps: Steps,
    pairs: LatentPairs,
    former: Former,
    first: StageState,
    old_items: Ints,
    stage: int,
) -> StageState:
    """Return a later stage with the U, V and b of the first; an item that was not there before has no S."""
    queries, items = shape_of(settings, pairs, steps, n_knots=_n_knots(former)).tables(stage)
    own = first.items.values.shape[1]
    queries.values[:, : first.queries.values.shape[1]] = first.queries.values
    items.values[old_items] = former.model.items[stage].values[:, : items.values.shape[1]]
    pair = former.model.pair.S.start
    items.values[:, :pair] = first.items.values[:, : min(pair, own)]
    epochs = former.epochs[stage]
    return StageState(stage, queries, items, epoch=epochs, best_epoch=epochs)


def _n_knots(former: Former) -> int:
    return 0 if former.base is None else N_KNOTS


def _grown(
    settings: LatentSettings, steps: Steps, fresh: LatentPairs, former: Former
) -> tuple[LatentPairs, StageState, Ints]:
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
    n_context = 0 if fresh.sessions is None else fresh.sessions.n_context
    if model.n_context != n_context:
        expected = f"{model.n_context} columns, as in fit" if model.n_context else "None, as in fit"
        raise ValueError(f"query_features: expected {expected}, found {n_context or None}")
    item_ids, old_items, new_items = joined_ids("items", model.item_ids, fresh.item_ids)
    pairs = replace(fresh, items=new_items[fresh.items], item_ids=item_ids)
    before, own = model.items[0].values, model.queries[0].values
    old_queries = np.arange(len(own))
    if pairs.query_ids is not None:
        query_ids, old_queries, new_queries = joined_ids("queries", model.query_ids, pairs.query_ids)
        pairs = replace(pairs, queries=new_queries[pairs.queries], query_ids=query_ids)
    if pairs.sessions is not None:
        bags = pairs.sessions.bags
        bags, items = bags._replace(items=new_items[bags.items]), new_items[pairs.sessions.items]
        pairs = replace(pairs, sessions=replace(pairs.sessions, bags=bags, items=items))
        n_behind = len(own) - len(old_items)
        old_queries = np.append(old_items, len(item_ids) + np.arange(n_behind))  # all else is behind the items
    queries, items = shape_of(settings, pairs, steps, n_knots=_n_knots(former)).tables(0)
    rng = np.random.default_rng((seed, 0, sum(former.epochs), len(item_ids)))
    _fill_rows(queries, n, old_queries, own, former.query_steps, None if pairs.sessions is not None else rng)
    _fill_rows(items, n, old_items, before, former.item_steps, rng)
    zero_untaught(queries, pairs, old_queries)
    return pairs, StageState(0, queries, items, epoch=sum(former.epochs)), old_items


def _fill_rows(
    table: Table, n: int, places: Ints, values: Singles, steps: Singles, rng: np.random.Generator | None
) -> None:
    """Put learned rows into their places of an empty table; the rest are random, as fit begins with, or stay 0."""
    new = np.ones(len(table.values), dtype=bool)
    new[places] = False
    if rng is not None:
        table.values[new, :n] = rng.normal(0, 1 / np.sqrt(n), (int(new.sum()), n))
    table.values[places], table.accumulators[places] = values[:, : table.values.shape[1]], steps
