"""What all rankers of rows share: ``fit(X, y, qid, group, sample_weight)``, ``predict``, ``rank``, ``score``.

``qid`` asks scikit-learn's metadata routing for itself, in fit and in score, so that Pipeline, GridSearchCV and
GroupKFold carry it along. Without routing a search would drop it: a ranker fitted with ``qid`` therefore refuses to
score without, instead of taking all rows for one list.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core import rules
from slatewise.core.checks import Features
from slatewise.core.declarations import learned
from slatewise.core.numerics.result import Round
from slatewise.core.rankings import Rankings, rank_rows
from slatewise.core.running.executor import Executor
from slatewise.data.row_source import ListTable, RowSource
from slatewise.estimators.base import Estimator
from slatewise.estimators.lists import GradedLists, card_of_lists, group_lists, list_weights, warn_of_one_list
from slatewise.estimators.sklearn import check_features, check_is_fitted, check_targets
from slatewise.metrics import NDCG
from slatewise.persistence.checkpoint import Callbacks, Path, resumed
from slatewise.persistence.saving import card_for

if TYPE_CHECKING:
    from slatewise.core.checks import Sparse


class QueryRanker(Estimator):
    """Rank the rows of each query; a subclass learns in ``_fit_lists`` and scores rows in ``_scores``."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    has_qid_: bool = learned(rules.BOOLEAN, "Whether ``fit`` had ``qid`` or ``group``.")

    def fit(
        self,
        X: ArrayLike | Sparse | RowSource,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        callbacks: Callbacks = None,
        checkpoint: Path = None,
    ) -> Self:
        """Learn from graded rows.

        Parameters
        ----------
        X
            Features, one row per document: dense, or sparse in any of SciPy's formats, of which no zero is filled in.
            Or, for :class:`slatewise.MarginRanker` and :class:`slatewise.MatchingRanker`, a
            :func:`slatewise.cluster.source`, which names all the others too.
        y
            Relevance of each row: a finite number, larger is better; :meth:`score` needs numbers >= 0.
        qid
            The list each row belongs to: any dtype, rows in any order. None: all rows are one list, which is a warning
            that ``group=[n_rows]`` spares.
        group
            Instead of ``qid``, where the rows of a list stand together: how many rows each list has.
        sample_weight
            How much lists count: one weight per list, in the order in which they first appear, or one per row, of which
            a list takes the mean. A list of weight 0 is left out; one of weight 2 counts as if it were there twice.
        callbacks
            Functions to call with a :class:`slatewise.core.numerics.result.Round` after every round.
        checkpoint
            A file that keeps what was computed so far. If it is there, and of the same data and settings, fit goes on
            from it and ends with the same bits as if it had never stopped. At the end the file is removed.

        Returns
        -------
        self
        """
        rules.check(self)
        if isinstance(X, RowSource):
            given = {"y": y, "qid": qid, "group": group, "sample_weight": sample_weight}
            extra = [name for name, value in given.items() if value is not None]
            return self._fit_files(X, extra, callbacks, checkpoint)
        rows = check_features(self, X, reset=True)
        relevance = check_targets(rows, y)
        groups = group_lists(int(rows.shape[0]), qid, group)
        weight = list_weights(sample_weight, groups)
        card = card_of_lists(rows, relevance, groups, weight)
        self._settle_seed()
        with resumed(self, card.data_sha256, callbacks, checkpoint) as tell:
            self._fit_lists(GradedLists.of(rows, relevance, groups, weight), tell)
        self.has_qid_ = qid is not None or group is not None
        self.model_card_ = replace(card, **self._certificate())
        return self

    def _fit_files(self, source: RowSource, given: list[str], callbacks: Callbacks, checkpoint: Path) -> Self:
        if given:
            raise ValueError(f"{given[0]}: expected None with a source, which names its columns, found a value")
        source.require_labels()
        self._settle_seed()
        lists = source.lists(Executor.of(self.get_params().get("n_jobs")))
        card = replace(card_for(len(lists), np.empty(0)), n_rows=source.n_rows, data_sha256=lists.sha256)
        self.n_features_in_ = source.n_features
        with resumed(self, card.data_sha256, callbacks, checkpoint) as tell:
            self._fit_source(source, lists, tell)
        self.has_qid_ = True
        self.model_card_ = replace(card, **self._certificate())
        return self

    def predict(self, X: ArrayLike | Sparse) -> NDArray[np.float64]:
        """Return one score per row; larger is better, comparable inside a list."""
        check_is_fitted(self)
        return self._scores(check_features(self, X, reset=False))

    def rank(
        self,
        X: ArrayLike | Sparse,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        doc_ids: ArrayLike | None = None,
    ) -> Rankings:
        """Return every list best first.

        Parameters
        ----------
        X
            As in :meth:`fit`.
        qid, group
            The list of each row, or how many rows each list has; lists given by ``group`` are called 0, 1, .. Without
            either all rows are one list, which is a warning.
        doc_ids
            What each row is called in the answer; default: its number.
        """
        scores = self.predict(X)
        names = None if doc_ids is None else np.asarray(doc_ids)
        if names is not None and names.shape != scores.shape:
            raise ValueError(f"doc_ids: expected one per row of X ({len(scores)}), found shape {names.shape}")
        warn_of_one_list(len(scores), qid, group)
        return rank_rows(scores, qid, group, names)

    def score(
        self,
        X: ArrayLike | Sparse,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> float:
        """Return the mean ``NDCG@10`` over lists.

        Parameters
        ----------
        X, y, qid, group, sample_weight
            As for :meth:`fit`; ``qid`` or ``group`` must be given where fit had one of them.
        """
        check_is_fitted(self)
        if qid is None and group is None and self.has_qid_:
            raise ValueError(
                "qid: expected one id per row, as in fit, found None; inside Pipeline or GridSearchCV switch on "
                "sklearn.set_config(enable_metadata_routing=True) and pass qid= to their fit"
            )
        scores = self.predict(X)
        relevance = check_targets(scores, y)
        groups = group_lists(len(scores), qid, group)
        weight = list_weights(sample_weight, groups)
        values = NDCG(k=10).of_lists(groups.gather(relevance), groups.gather(scores), groups.offsets)
        return float(np.average(values, weights=weight))

    def __sklearn_tags__(self) -> Any:
        """Say that sparse X is welcome."""
        tags: Any = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _certificate(self) -> dict[str, Any]:
        """Return what the model card says of the objective; nothing where a ranker minimizes none."""
        return {}

    @abstractmethod
    def _fit_lists(self, lists: GradedLists, tell: Callable[[Round], None]) -> None: ...

    def _fit_source(self, source: RowSource, lists: ListTable, tell: Callable[[Round], None]) -> None:
        """Learn from rows that stay in their files, where a ranker can."""
        raise ValueError(
            f"X: expected arrays for {type(self).__name__}, found a source; MarginRanker and MatchingRanker take one"
        )

    @abstractmethod
    def _scores(self, X: Features) -> NDArray[np.float64]: ...
