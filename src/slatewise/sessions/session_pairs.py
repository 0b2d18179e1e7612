"""Sessions or baskets to learn from, in all their forms, as pairs: what was there so far, and an item that came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, ValuesView
from numbers import Number
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.data.records import Sessions
from slatewise.data.session_forms import is_frame
from slatewise.estimators.sklearn import check_weights
from slatewise.factors.bags import learned_from
from slatewise.factors.input import LatentPairs, SessionsSoFar, check_context, check_enough
from slatewise.recommend.histories import number_sessions


def opened(queries: Any) -> Any:
    """Return a list of what can be gone through once, and of a column or array of lists; all else as it is."""
    if isinstance(queries, np.ndarray):
        array = cast("NDArray[Any]", queries)
        return array.tolist() if array.dtype.kind == "O" and array.ndim == 1 else array
    if isinstance(queries, Iterator | ValuesView):
        return list(cast("Iterable[Any]", queries))
    from narwhals.dependencies import is_into_series

    return list(queries) if is_into_series(queries) else queries


def are_sessions(queries: Any) -> bool:
    """Tell sessions from a matrix: lists of lists are sessions, and frames that have a column "session" or "item"."""
    if isinstance(queries, list | tuple):
        first = next(iter(cast("list[object]", queries)), None)
        return not isinstance(first, str | Number)
    if not is_frame(queries):
        return isinstance(queries, Sessions | Mapping)  # a mapping is neither, and refused as sessions
    from slatewise.data.frames import table_of  # only for frames

    return not {"session", "item"}.isdisjoint(table_of(queries, "queries").columns)


def is_ragged(queries: Any) -> bool:
    """Tell lists of several lengths, which are no rows of features."""
    if not isinstance(queries, list | tuple):
        return False
    rows = [
        cast("list[object]", one) for one in cast("list[object]", queries) if isinstance(one, list | tuple | np.ndarray)
    ]
    return len({len(row) for row in rows}) > 1


def session_pairs(
    sessions: Any,
    sample_weight: ArrayLike | None,
    window: int | None,
    further: bool = False,
    query_features: Any = None,
) -> LatentPairs:
    """Check sessions, number their items, and take apart what came after what.

    ``sample_weight`` has a number per session, ``query_features`` a row, and ``window`` is None for baskets. Sessions
    that are ``further`` ones may be all of one item.
    """
    given = Sessions.of(sessions)
    used = np.diff(given.offsets) > 0
    weights = check_weights(sample_weight, len(given))[used]
    context = None if query_features is None else check_context(query_features, len(given))[np.flatnonzero(used)]
    numbered = number_sessions(given)
    bags, following, owners = learned_from(numbered.items, numbered.offsets, window)
    if not len(following):
        raise ValueError(f"sessions: expected one of two items at least, found none in {len(given)}")
    firsts = bags.starts if window is None else numbered.offsets[owners]
    so_far = SessionsSoFar(bags, owners, window, firsts, numbered.items, numbered.offsets, None, context)
    pairs = LatentPairs(np.arange(len(following)), following, weights[owners], numbered.item_ids, sessions=so_far)
    return check_enough(pairs, further)
