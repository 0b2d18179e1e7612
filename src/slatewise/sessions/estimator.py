"""What the models of sessions without training share: fit, partial_fit, settings that are "auto", predictions."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from slatewise.core import rules
from slatewise.core.arrays import Ints
from slatewise.core.ids import Ids
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.data.records import Prefixes, Sessions
from slatewise.persistence.saving import card_for
from slatewise.recommend.filters import RankOptions, check_filters, check_k
from slatewise.recommend.histories import NumberedSessions, SessionQueries, number_sessions
from slatewise.recommend.ids import Unknown, joined_ids
from slatewise.recommend.recommender import Recommender
from slatewise.sessions.sparse_scores import SparseScorer, best_items, item_scores

Model = TypeVar("Model", bound="SessionModel")
LEAST_DECAY = 0.01
DECAY = rules.number(f"a number from {LEAST_DECAY:g} to 1", LEAST_DECAY, 1.0)
WINDOW = rules.count(1, 1 << 16)
AUTO_DECAY, AUTO_WEIGHT = DECAY | rules.one_of("auto"), rules.WEIGHT | rules.one_of("auto")
DECAY_TEXT = "Weight of an item of the query relative to the next one, from 0.01 to 1; 1: all the same, as in a basket."
LAST_TEXT = "Factor of the score of the last item of the query."
REPEAT_TEXT = """Factor of the scores of its earlier items, also those before the window. With 0 they come after all
items that have a score; ``rank(exclude_seen=True)`` leaves them out."""


@dataclass(frozen=True, eq=False)
class SessionBatch:
    """Sessions to rank for, and the scorer that ranks."""

    queries: SessionQueries
    item_ids: Ids
    scorer: SparseScorer

    @classmethod
    def of(cls, queries: Any, item_ids: Ids, scorer: SparseScorer, unknown: Unknown) -> SessionBatch:
        """Read sessions in any form, and warn of those that have no known item."""
        known = SessionQueries.of(queries, item_ids, unknown)
        known.warn_of_nothing_known("get the most popular items")
        return cls(known, item_ids, scorer)

    @property
    def ids(self) -> Ids:
        """What each query is called."""
        return self.queries.ids

    @property
    def nothing_known(self) -> NDArray[np.bool_] | None:
        """Which sessions have no known item; None: none."""
        nothing = self.queries.nothing_known
        return nothing if nothing.any() else None

    def top(self, k: int, options: RankOptions, executor: Executor) -> tuple[Ints, NDArray[Any]]:
        """Return the k best items and their scores; item -1 where fewer are left."""
        k, shown = check_k(k, len(self.item_ids)), check_filters(self.queries, self.item_ids, options)
        return best_items(self.scorer, self.queries, k, shown, executor)

    def scores(self, items: Ints, executor: Executor) -> NDArray[Any]:
        """Return the score of every query with each of these items; -inf for item -1."""
        return item_scores(self.scorer, self.queries, items, executor)


class SessionModel(Recommender[SparseScorer]):
    """Learn from sessions and rank next items.

    Items that have no score come after all others, by popularity, with scores from -1 to 0. A session without known
    items gets the most popular items, with a warning.
    """

    def fit(self, sessions: Any) -> Self:
        """Learn from sessions.

        Parameters
        ----------
        sessions
            :class:`slatewise.data.Sessions`, a list of lists of ids (oldest first, all whole numbers or all strings),
            or a data frame with the columns session and item, and time where there is one. Where a setting is "auto",
            the order of the sessions counts: the last ones are taken for the latest.
        """
        rules.check(self)
        numbered = number_sessions(sessions, in_order=True)
        with self._watched(None):
            self._learn(numbered, Executor.of(self.n_jobs))
        self._seen(numbered, 0)
        return self

    def partial_fit(self, sessions: Any) -> Self:
        """Add sessions, which come after those that were there: the answers are those of one fit of all.

        Parameters
        ----------
        sessions
            As in :meth:`fit`; items not seen before are new items. Settings that are "auto" stay as fit found them, and
            others are taken as they are now. On a ranker that is not fitted this is :meth:`fit`.
        """
        if "item_ids_" not in vars(self):
            return self.fit(sessions)
        rules.check(self)
        fresh, before = number_sessions(sessions), self.model_card_
        together, former, places = joined_ids("sessions", self.item_ids_, fresh.item_ids)
        numbered = replace(fresh, item_ids=together, items=places[fresh.items])
        with self._watched(None):
            self._add(numbered, former)
        self._seen(numbered, before.n_lists)
        self.model_card_ = self.model_card_.after(before)
        return self

    # --- parts -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def _learn(self, sessions: NumberedSessions, executor: Executor) -> None:
        """Learn from checked sessions alone."""

    @abstractmethod
    def _scorer_of(self, sessions: NumberedSessions | None, executor: Executor) -> SparseScorer:
        """Return the scorer of the sessions of fit (None), or of others under the settings that fit found."""

    @abstractmethod
    def _add(self, sessions: NumberedSessions, former: Ints) -> None:
        """Learn from further sessions, numbered among all items; ``former`` are the new places of the old items."""

    def _seen(self, sessions: NumberedSessions, n_before: int) -> None:
        self._predictor = None
        self.item_ids_ = sessions.item_ids
        self.n_features_in_ = 1  # a query is one session
        self.model_card_ = card_for(
            n_before + len(sessions.offsets) - 1, sessions.items, sessions.offsets, sessions.item_ids
        )

    def _freeze(self) -> SparseScorer:
        return self._scorer_of(None, ONE_THREAD)

    def _batch(self, model: SparseScorer, queries: Any, options: RankOptions, executor: Executor) -> SessionBatch:
        return SessionBatch.of(queries, self.item_ids_, model, options.unknown)

    def _continued(self, queries: Any) -> tuple[Any, Any]:
        prefixes = queries if isinstance(queries, Prefixes) else Sessions.of(queries).prefixes()
        return prefixes, prefixes.next_items

    def _check_learned(self) -> None:
        """Raise ValueError unless there is an item, and a query is one session."""
        super()._check_learned()
        if not len(self.item_ids_) or self.n_features_in_ != 1:
            raise ValueError("item_ids_, n_features_in_: expected at least one item, and 1 for a query of one session")


# Functions for other models of the library, not for users.


def fit_numbered(model: SessionModel, sessions: NumberedSessions) -> None:
    """Fit on sessions that are checked already."""
    model._learn(sessions, Executor.of(model.n_jobs))  # pyright: ignore[reportPrivateUsage]
    model._seen(sessions, 0)  # pyright: ignore[reportPrivateUsage]


def with_further(model: Model, sessions: Any, n_jobs: int | None) -> Model:
    """Return a model that has learned from further sessions too; the one given stays as it is."""
    copy = type(model)(**{**model.get_params(deep=False), "n_jobs": n_jobs})
    vars(copy).update({name: value for name, value in vars(model).items() if name.endswith("_")})
    return copy.partial_fit(sessions)


def scorer_of(
    model: SessionModel, sessions: NumberedSessions | None = None, executor: Executor = ONE_THREAD
) -> SparseScorer:
    """Return what scores with the sessions of fit, or with others under the settings that fit found."""
    if sessions is None:
        return model._model()  # pyright: ignore[reportPrivateUsage]
    return model._scorer_of(sessions, executor)  # pyright: ignore[reportPrivateUsage]
