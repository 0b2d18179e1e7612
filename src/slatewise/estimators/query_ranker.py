"""What all rankers of rows share: ``fit(X, y, qid)``, ``predict``, ``rank``, ``score``.

``qid`` asks scikit-learn's metadata routing for itself, in fit and in score, so that Pipeline, GridSearchCV and
GroupKFold carry it along. Without routing a search would drop it: a ranker fitted with ``qid`` therefore refuses to
score without, instead of taking all rows for one list.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise import rules
from slatewise.estimators._checkpoint import resumed
from slatewise.estimators._sklearn import check_is_fitted, check_rows, check_targets, check_weights
from slatewise.estimators.saving import SavedEstimator, card_for
from slatewise.learners.result import Round
from slatewise.lists import group_rows
from slatewise.metrics import NDCG
from slatewise.rankings import Rankings, rank_rows


class QueryRanker(SavedEstimator):
    """Rank the rows of each query; a subclass learns in ``_fit_lists`` and scores rows in ``_scores``."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    has_qid_: bool

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, qid: ArrayLike | None = None) -> Self:
        """Learn from graded rows.

        Parameters
        ----------
        X
            Features, one row a document.
        y
            Relevance of each row: a finite number, larger is better; :meth:`score` needs numbers >= 0.
        qid
            The list each row belongs to: any dtype, rows in any order. None: all rows are one list.

        Returns
        -------
        self
        """
        rules.check(self)
        rows = check_rows(self, X, reset=True)
        relevance = check_targets(rows, y)
        groups = group_rows(qid, len(rows))
        order = np.arange(len(rows)) if groups.order is None else groups.order
        card = card_for(len(groups.ids), rows, relevance, groups.offsets, order)
        with resumed(self, card.data_sha256) as tell:
            self._fit_lists(rows, relevance, None if qid is None else np.asarray(qid), tell)
        self.has_qid_ = qid is not None
        self.model_card_ = replace(card, **self._certificate())
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return one score a row; larger is better, comparable inside a list."""
        check_is_fitted(self)
        return self._scores(check_rows(self, X, reset=False))

    def rank(self, X: ArrayLike, qid: ArrayLike | None = None) -> Rankings:
        """Return, for every list, its row numbers best first."""
        return rank_rows(self.predict(X), qid)

    def score(
        self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the mean NDCG@10 over lists.

        Parameters
        ----------
        X, y, qid
            As for :meth:`fit`; ``qid`` must be given where fit had it.
        sample_weight
            One weight a row; a list counts with the mean weight of its rows.
        """
        check_is_fitted(self)
        if qid is None and self.has_qid_:
            raise ValueError(
                "qid: expected one id a row, as in fit, found None; inside Pipeline or GridSearchCV switch on "
                "sklearn.set_config(enable_metadata_routing=True) and pass qid= to their fit"
            )
        scores = self.predict(X)
        relevance = check_targets(scores, y)
        values = NDCG(k=10).per_list(relevance, scores, qid)
        if sample_weight is None:
            return float(np.mean(values))
        groups = group_rows(qid, len(scores))
        weight = groups.gather(check_weights(sample_weight, len(scores)))
        per_list = np.add.reduceat(weight, groups.offsets[:-1]) / np.diff(groups.offsets)
        if not per_list.any():
            raise ValueError("sample_weight: expected a weight > 0 in some row, found none")
        return float(np.average(values, weights=per_list))

    def _certificate(self) -> dict[str, Any]:
        """Return what the model card says of the objective; nothing where a ranker minimises none."""
        return {}

    @abstractmethod
    def _fit_lists(
        self, X: NDArray[Any], y: NDArray[np.float64], qid: NDArray[Any] | None, tell: Callable[[Round], None]
    ) -> None: ...

    @abstractmethod
    def _scores(self, X: NDArray[Any]) -> NDArray[np.float64]: ...
