"""Sessions or baskets to learn from as pairs: the items so far, and the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.arrays import Ints
from slatewise.core.checks import feature_rows
from slatewise.data.records import Sessions
from slatewise.estimators.sklearn import check_weights
from slatewise.factors.bags import Bags, learned_from
from slatewise.factors.pairs import Pairs, check_enough, single_rows
from slatewise.recommend.histories import NumberedSessions, number_sessions, warn_of_sorted

if TYPE_CHECKING:
    from scipy.sparse import csr_array


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
    def n_ages(self) -> int:
        """The number of ages that have weights."""
        return self.window or 1

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
    """Check sessions, number their items, and take apart what came after what.

    ``sample_weight`` has a number per session, ``query_features`` a row, and ``window`` is None for baskets. Sessions
    that are ``further`` ones may be all of one item.
    """
    given = Sessions.of(sessions)
    used = np.diff(given.offsets) > 0
    weights = check_weights(sample_weight, len(given))[used]
    features = None
    if query_features is not None:
        features = check_query_features(query_features, len(given))[np.flatnonzero(used)]
    numbered = number_sessions(given)
    if window is not None:
        warn_of_sorted(numbered)
    bags, following, owners = learned_from(numbered.items, numbered.offsets, window)
    if not len(following):
        raise ValueError(f"sessions: expected one of two items at least, found none in {len(given)}")
    pairs = SessionPairs(
        np.arange(len(following)),
        following,
        weights[owners],
        numbered.item_ids,
        bags.n_queries,
        bags,
        owners,
        window,
        bags.starts if window is None else numbered.offsets[owners],
        numbered,
        features,
    )
    return check_enough(pairs, further)


def check_query_features(features: Any, n_queries: int, n_columns: int | None = None) -> csr_array:
    """Return finite float32 rows, one per query, the same CSR in whatever form they are given.

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
