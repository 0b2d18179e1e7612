"""The floor every learner has to clear: rank by the one feature, up or down, that ranks the training lists best."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slatewise import metrics, rules
from slatewise.estimators.query_ranker import QueryRanker
from slatewise.learners.result import Round
from slatewise.rules import Rule


class BestFeatureRanker(QueryRanker):
    """Rank by the single best feature: ``s_i = sign * x_i[feature]``.

    LETOR publishes the same baseline for its collections; a learner that does not beat it has learnt nothing.

    Parameters
    ----------
    measure
        The measure that chooses, as :func:`slatewise.metrics.parse` reads it.

    Attributes
    ----------
    feature_
        Index of the chosen column.
    sign_
        1.0 where larger values rank higher, -1.0 otherwise.
    train_score_
        The measure on the training lists.

    Examples
    --------
    >>> from slatewise import BestFeatureRanker
    >>> X = [[3, 1], [1, 2], [2, 5], [9, 4]]
    >>> ranker = BestFeatureRanker().fit(X, [0, 1, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.feature_, ranker.sign_
    (0, -1.0)
    """

    learned: ClassVar[Mapping[str, Rule]] = {
        "feature_": rules.count(0),
        "sign_": Rule("1.0 or -1.0", lambda value: isinstance(value, float) and value in (1.0, -1.0)),
        "train_score_": rules.SEEN,
        "has_qid_": rules.BOOLEAN,
    }

    rules: ClassVar[Mapping[str, Rule]] = {"measure": rules.TEXT}

    def __init__(self, measure: str = "ndcg@10") -> None:
        self.measure = measure

    def _fit_lists(
        self, X: NDArray[Any], y: NDArray[np.float64], qid: NDArray[Any] | None, tell: Callable[[Round], None]
    ) -> None:
        del tell  # there are no rounds
        measure = metrics.parse(self.measure)
        choices = [(feature, sign) for feature in range(X.shape[1]) for sign in (1.0, -1.0)]
        values = [measure(y, sign * X[:, feature].astype(np.float64), qid) for feature, sign in choices]
        if np.isnan(values).all():  # whether a list counts depends on its relevance alone
            raise ValueError(f"y: expected a list that {self.measure} can measure, found none")
        best = int(np.argmin(values) if measure.smaller_is_better else np.argmax(values))
        self.feature_, self.sign_ = choices[best]
        self.train_score_ = float(values[best])

    def check_learned(self) -> None:
        """Raise ValueError unless the measure is one and the feature is one of X."""
        super().check_learned()
        metrics.parse(self.measure)
        if self.feature_ >= self.n_features_in_:
            raise ValueError(f"feature_: expected a column of {self.n_features_in_}, found {self.feature_}")

    def _scores(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return self.sign_ * X[:, self.feature_].astype(np.float64)
