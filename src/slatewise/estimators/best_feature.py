"""A baseline for every learner: rank by the one feature, up or down, that ranks the training lists best."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from slatewise import metrics
from slatewise.core import rules
from slatewise.core.checks import Features
from slatewise.core.declarations import learned, param
from slatewise.core.numerics.result import Round
from slatewise.core.rules import Rule
from slatewise.estimators.lists import GradedLists
from slatewise.estimators.query_ranker import QueryRanker

_SIGN = Rule("1.0 or -1.0", lambda value: isinstance(value, float) and value in (1.0, -1.0))


class BestFeatureRanker(QueryRanker):
    """Rank by the single best feature: ``s_i = sign * x_i[feature]``.

    LETOR publishes the same baseline for its collections; a learner that does not beat it has learned nothing.

    Examples
    --------
    >>> from slatewise import BestFeatureRanker
    >>> X = [[3, 1], [1, 2], [2, 5], [9, 4]]
    >>> ranker = BestFeatureRanker().fit(X, [0, 1, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.feature_, ranker.sign_
    (0, -1.0)
    """

    measure: str = param(
        rules.TEXT,
        "The measure that chooses, as :func:`slatewise.metrics.parse` reads it.",
        default="ndcg@10",
        kw_only=False,
    )
    feature_: int = learned(rules.count(0), "Index of the chosen column.")
    sign_: float = learned(_SIGN, "1.0 if larger values rank higher, else -1.0.")
    train_score_: float = learned(rules.ANY_NUMBER, "The measure on the training lists.")

    def _fit_lists(self, lists: GradedLists, tell: Callable[[Round], None]) -> None:
        del tell  # there are no rounds
        measure = metrics.parse(self.measure)
        choices: list[tuple[int, float]] = []
        values: list[float] = []
        for feature, column in _columns(lists):
            for sign in (1.0, -1.0):
                choices.append((feature, sign))
                of_lists = measure.of_lists(lists.y, sign * column, lists.offsets)
                counts = ~np.isnan(of_lists)
                mean = np.average(of_lists[counts], weights=lists.weight[counts]) if counts.any() else np.nan
                values.append(float(mean))
        if np.isnan(values).all():  # whether a list counts depends on its relevance alone
            raise ValueError(f"y: expected a list that {self.measure} can measure, found none")
        best = int(np.argmin(values) if measure.smaller_is_better else np.argmax(values))
        self.feature_, self.sign_ = choices[best]
        self.train_score_ = float(values[best])

    def _check_learned(self) -> None:
        """Raise ValueError unless the measure is one and the feature is one of X."""
        super()._check_learned()
        metrics.parse(self.measure)
        if self.feature_ >= self.n_features_in_:
            raise ValueError(f"feature_: expected a column of {self.n_features_in_}, found {self.feature_}")

    def _scores(self, X: Features) -> NDArray[np.float64]:
        column = X[:, self.feature_] if isinstance(X, np.ndarray) else X[:, [self.feature_]].toarray().ravel()
        return self.sign_ * column.astype(np.float64)


def _columns(lists: GradedLists) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Features by rising number; of those that are 0 in every row, which all rank alike, the first."""
    X: Any = lists.X
    if isinstance(X, np.ndarray):
        yield from enumerate(cast("NDArray[np.float64]", X).T)
        return
    by_column, zeros = X.tocsc(), np.zeros(len(lists.y))
    used = np.arange(lists.n_features) if lists.columns is None else lists.columns
    absent = int(np.count_nonzero(used == np.arange(len(used))))  # up to here no feature is missing
    for place, feature in enumerate(used.tolist()):
        if place == absent:
            yield absent, zeros
        yield feature, by_column[:, [place]].toarray().ravel()
    if absent == len(used) < lists.n_features:
        yield absent, zeros
