"""What the factors learn from: pairs of a history and its next item, and out-of-fold scores of the base.

A base that has seen a session scores its beginnings as it will score no later session. So in training, sessions of a
fold are scored by a base of all other sessions, with its counts, rarities and popularity; held-out sessions by a base
of all that are trained on; and predictions use a base of all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.arrays import Ints, Singles
from slatewise.core.checks import feature_rows
from slatewise.core.ids import Ids
from slatewise.core.running.executor import Executor
from slatewise.data.records import Sessions
from slatewise.estimators.sklearn import check_weights
from slatewise.factors.bags import BagParts, Bags, bag_queries, learned_from
from slatewise.factors.learner import Problem
from slatewise.factors.offsets import N_KNOTS, Levels, likely_steps
from slatewise.factors.pairs import Pairs, Validation, check_enough, hold_out_owners, single_rows
from slatewise.factors.settings import TrainingSettings
from slatewise.recommend.histories import NumberedSessions, SessionQueries, number_sessions
from slatewise.recommend.ids import joined_ids
from slatewise.sessions.estimator import SessionModel, fit_numbered, scorer_of
from slatewise.sessions.sparse_scores import joined_scores, normalized_scores

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_SEARCHED = 1 << 31
"""Scores of an epoch, pairs times items, up to which learning rates and norms are searched for."""
FOLDS = 10
_STREAM = 2 << 32
"""Keeps the folds apart from other random numbers."""


@dataclass(frozen=True, eq=False)
class SessionPairs(Pairs):
    """Pairs whose queries are the items before each next item."""

    bags: Bags
    owners: Ints
    """The session of each query."""
    window: int | None
    """The maximum number of items of a query, each weighted by its age; None: baskets, in no order."""
    firsts: Ints
    """Where in the items of the bags each query begins, whatever the window: a base has its own."""
    sessions: NumberedSessions
    features: csr_array | None = None
    """A row per session; None: there are none."""

    @property
    def n_features(self) -> int:
        """The number of query features."""
        return 0 if self.features is None else int(self.features.shape[1])

    @property
    def are_many(self) -> bool:
        """Whether nothing is searched for: the start is good enough, and every trial takes minutes."""
        return len(self.queries) * len(self.item_ids) > MOST_SEARCHED

    def base_queries(self) -> SessionQueries:
        """Return the histories as queries of a base, which has a window of its own."""
        return SessionQueries(np.arange(self.bags.n_queries), self.bags.items, self.firsts, self.bags.ends)

    def among(self, known: Ids) -> tuple[Ids, Ints, SessionPairs]:
        """Return all items, the places of those known before, and these pairs numbered among all."""
        item_ids, old, new = joined_ids("sessions", known, self.item_ids)
        bags = self.bags._replace(items=new[self.bags.items])
        sessions = replace(self.sessions, item_ids=item_ids, items=new[self.sessions.items])
        return item_ids, old, replace(self, items=new[self.items], item_ids=item_ids, bags=bags, sessions=sessions)

    def arrays(self) -> list[NDArray[Any]]:
        """Return all that a fit learns from, for its hash."""
        known = [self.queries, self.items, self.weights, self.item_ids, *self.bags, self.owners]
        if self.features is not None:
            known += [np.asarray(one) for one in (self.features.data, self.features.indices, self.features.indptr)]
        return known


def session_pairs(
    sessions: Any,
    sample_weight: ArrayLike | None,
    window: int | None,
    further: bool = False,
    query_features: Any = None,
) -> SessionPairs:
    """Check sessions, number their items, and return every next item with the items before it.

    ``sample_weight`` has a number per session, ``query_features`` a row, and ``window`` is None for baskets. Sessions
    that are ``further`` ones may be all of one item.
    """
    given = Sessions.of(sessions)
    used = np.diff(given.offsets) > 0
    weights = check_weights(sample_weight, len(given))[used]
    features = None
    if query_features is not None:
        features = check_query_features(query_features, len(given))[np.flatnonzero(used)]
    numbered = number_sessions(given, in_order=window is not None)
    bags, following, owners = learned_from(numbered.items, numbered.offsets, window)
    if not len(following):
        raise ValueError(f"sessions: expected one of two items at least, found none in {len(given)}")
    pairs = SessionPairs(
        np.arange(len(following)),
        following,
        weights[owners],
        numbered.item_ids,
        len(bags.starts),
        bags,
        owners,
        window,
        bags.starts if window is None else numbered.offsets[owners],
        numbered,
        features,
    )
    return check_enough(pairs, further)


def check_query_features(features: Any, n_queries: int, n_columns: int | None = None) -> csr_array:
    """Return finite float32 rows, one per query, as the same CSR in any form they are given.

    ``n_columns`` are those of fit; None: any number.
    """
    from scipy.sparse import csr_array

    given = csr_array(cast("Any", feature_rows("query_features", features)), copy=True)
    n_rows, width = given.shape
    if n_rows != n_queries:
        raise ValueError(f"query_features: expected {n_queries} rows, one for each query, found {n_rows}")
    if not width or (n_columns is not None and width != n_columns):
        expected = "one column at least" if n_columns is None else f"{n_columns} columns, as in fit"
        raise ValueError(f"query_features: expected {expected}, found {width}")
    given.sum_duplicates()
    given.eliminate_zeros()
    return single_rows("query_features", given)


def session_problem(
    settings: TrainingSettings, pairs: SessionPairs, base: SessionModel | None, executor: Executor
) -> Problem:
    """Fit the base, and return the problem of a fit: the last sessions are held out, and scores come from folds."""
    # The last sessions: a log goes on in time, and so will the queries.
    order = np.arange(int(pairs.owners.max(initial=-1)) + 1)[::-1]
    owners = pairs.owners[pairs.queries]
    used, validation = hold_out_owners(pairs, owners, order, settings.validation_fraction, settings.depth)
    levels, steps = None, None
    if base is not None:
        levels, steps = fitted_base(base, pairs, used, validation, settings.seed, executor)
    problem = whole_problem(settings, pairs, levels)
    return replace(problem, pairs=used, validation=validation, base_steps=steps)


def whole_problem(settings: TrainingSettings, pairs: SessionPairs, levels: Levels | None) -> Problem:
    """Return the problem of all pairs, none held out."""
    n_items = len(pairs.item_ids)
    queries = BagParts(pairs.bags, pairs.owners, levels, pairs.features)
    return Problem(
        pairs,
        None,
        bag_queries(queries, n_items, settings.n_components),
        n_items + pairs.n_features,
        n_ages=pairs.window or 1,
        n_knots=0 if levels is None else N_KNOTS,
    )


def fitted_base(
    base: SessionModel,
    pairs: SessionPairs,
    used: SessionPairs,
    validation: Validation | None,
    seed: int,
    executor: Executor,
) -> tuple[Levels, Singles]:
    """Fit a base; return scores of all queries by bases that have not seen them, and spline steps for ``used``."""
    fit_numbered(base, pairs.sessions)
    levels = cross_fitted(base, pairs, validation, seed, executor)
    return levels, likely_steps(levels, used.queries, used.items, len(pairs.item_ids))


def cross_fitted(
    base: SessionModel, pairs: SessionPairs, validation: Validation | None, seed: int, executor: Executor
) -> Levels:
    """Return scores of all queries by bases that have not seen their session; ``base`` is fitted on all sessions."""
    sessions = pairs.sessions
    held = np.zeros(len(sessions), dtype=bool)
    if validation is not None:
        held[pairs.owners[validation.queries]] = True
    used = np.flatnonzero(~held)
    folds, n_folds = np.full(len(held), -1, dtype=np.int64), min(FOLDS, len(used))
    if n_folds > 1:  # there are no others to score a single session
        folds[used] = np.random.default_rng((seed, _STREAM)).permutation(len(used)) % n_folds
    queries, parts, rows = pairs.base_queries(), [Levels.none(0)], [np.empty(0, dtype=np.int64)]
    for fold in range(-1, n_folds if n_folds > 1 else 0):
        others, own = (~held, held) if fold < 0 else (~held & (folds != fold), folds == fold)
        numbers = np.flatnonzero(own[pairs.owners])
        if len(numbers):
            scorer = scorer_of(base, sessions.subset(others), executor)
            parts.append(normalized_scores(scorer, queries[numbers], executor))
            rows.append(numbers)
    together, order = joined_scores(parts), np.concatenate(rows)
    starts, ends = np.zeros(len(queries), dtype=np.int64), np.zeros(len(queries), dtype=np.int64)
    starts[order], ends[order] = together.starts, together.ends
    return Levels(starts, ends, together.items, together.levels)


def further_scores(base: SessionModel, pairs: SessionPairs, known: Ints, executor: Executor) -> Levels:
    """Return a base's scores of sessions that it has not learned from yet; ``known`` are its items among all."""
    places = np.full(len(pairs.item_ids), -1, dtype=np.int64)
    places[known] = np.arange(len(known))
    queries = pairs.base_queries()
    numbers = places[queries.items]
    before = np.concatenate(([0], np.cumsum(numbers >= 0)))
    of_base = SessionQueries(queries.ids, numbers[numbers >= 0], before[queries.starts], before[queries.ends])
    found = normalized_scores(scorer_of(base), of_base, executor)
    return found._replace(items=known.astype(np.int32)[found.items])  # both ascend
