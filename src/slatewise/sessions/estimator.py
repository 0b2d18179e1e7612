"""What rankers have in common that learn from sessions and are asked with sessions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from slatewise.core import rules
from slatewise.core.executor import Executor
from slatewise.core.rankings import Rankings
from slatewise.data.records import Prefixes, Sessions
from slatewise.factors.input import Ids
from slatewise.persistence.saving import card_for
from slatewise.recommend.filters import Seen, check_depths, check_k, check_lengths, check_shown
from slatewise.recommend.frozen_ranker import FrozenRanker
from slatewise.recommend.histories import NumberedSessions, SessionQueries, number_sessions
from slatewise.recommend.ids import Unknown, joined_ids, number_ids
from slatewise.sessions.sparse_scores import Floats, RankedItems, SparseScorer, best_items, item_scores

LEAST_DECAY = 0.01
DECAY = rules.number(f"a number from {LEAST_DECAY:g} to 1", LEAST_DECAY, 1.0)
WINDOW = rules.count(1, 1 << 16)


class SessionRanker(FrozenRanker[SparseScorer]):
    """Sessions in, sessions asked: the door of both, and the switches of every answer."""

    n_jobs: int | None
    item_ids_: Ids

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
        return self.fit_numbered(number_sessions(sessions))

    def fit_numbered(self, sessions: NumberedSessions) -> Self:
        """Learn from sessions that have passed the door already."""
        self._learn(sessions, Executor.of(self.n_jobs))
        self._seen(sessions, 0)
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
        self._add(numbered, former)
        self._seen(numbered, before.n_lists)
        self.model_card_ = self.model_card_.after(before)
        return self

    def with_further(self, sessions: Any, n_jobs: int | None) -> Self:
        """Return a ranker that has learnt from further sessions too; this one stays as it is."""
        copy = type(self)(**{**self.get_params(deep=False), "n_jobs": n_jobs})
        vars(copy).update({name: value for name, value in vars(self).items() if name.endswith("_")})
        return copy.partial_fit(sessions)

    def rank(
        self,
        queries: Any,
        k: int = 10,
        exclude: Any = None,
        exclude_seen: Seen = False,
        candidates: Any = None,
        unknown: Unknown = "error",
    ) -> Rankings:
        """Return the k best next items of each session, best first; equal scores in the order of ids.

        Items that nothing speaks for come after all others, by popularity, with scores from -1 to 0. A session that
        may be shown fewer than k has a shorter list.

        Parameters
        ----------
        queries
            Sessions in any form that :meth:`fit` takes, or :class:`slatewise.data.Prefixes`; also a list of ids, or one
            id: each is then a session of that item alone. A session without items, or (see ``unknown``) without any
            that fit saw, gets the most popular items, with a warning, and is marked in ``nothing_known`` of the answer.
        k
            How many items.
        exclude
            Items not to show: a sequence of ids for each query, or a sparse matrix (queries, items) in the order of
            ``item_ids_``.
        exclude_seen
            True: do not show the items of the session; "last": not its last item.
        candidates
            The only items to show: a sequence of ids for all queries, or one for each, or a sparse matrix.
        unknown
            What becomes of ids that fit never saw: "error", or "ignore" with a warning that counts them; they are then
            left out of their sessions, of ``exclude`` and of ``candidates``.
        """
        asked, found = self._ranked(queries, k, exclude, exclude_seen, candidates, unknown)
        there = found.items >= 0
        offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        ids, scores = self.item_ids_[found.items[there]], found.scores[there]
        nothing = asked.nothing_known
        return Rankings.of_lists(asked.ids, ids, scores, offsets, nothing if nothing.any() else None)

    def scores(self, queries: Any, items: Any, unknown: Unknown = "error") -> Floats:
        """Return the scores that :meth:`rank` sorts by, of every session with every item given, (queries, items).

        Parameters
        ----------
        queries
            As in :meth:`rank`.
        items
            Ids of the items, one per column.
        unknown
            As in :meth:`rank`; an item that fit never saw has the score -inf.
        """
        model = self._model()
        asked = self._asked(queries, unknown)
        numbers = number_ids("items", items, self.item_ids_, unknown=unknown, instead="have the score -inf")
        return item_scores(model, asked, numbers, Executor.of(self.n_jobs))

    def recall(
        self,
        queries: Any,
        items: Any = None,
        ks: Sequence[int] = (5, 10, 20),
        exclude: Any = None,
        exclude_seen: Seen = False,
        candidates: Any = None,
        unknown: Unknown = "error",
    ) -> dict[int, float]:
        """Return, for each k, the share of sessions whose next item is among the k best.

        Parameters
        ----------
        queries
            As in :meth:`rank`.
        items
            What came next, one per session. None: of :class:`slatewise.data.Prefixes` the next item of each, and of
            sessions every item but the first, each after those before it.
        ks
            How many are looked at.
        exclude, exclude_seen, candidates, unknown
            As in :meth:`rank`; next items that fit never saw count as not found.
        """
        if items is None:
            queries = queries if isinstance(queries, Prefixes) else Sessions.of(queries).prefixes()
            items = queries.next_items
        self._model()
        numbers = number_ids("items", items, self.item_ids_, unknown=unknown, instead="count as not found")
        depths = check_depths(ks)
        deepest = min(max(depths), len(self.item_ids_))
        asked, found = self._ranked(queries, deepest, exclude, exclude_seen, candidates, unknown)
        check_lengths(asked.starts, numbers)
        hit = (found.items == numbers[:, None]) & (numbers >= 0)[:, None]
        places = np.where(hit.any(axis=1), hit.argmax(axis=1), deepest)
        return {k: float(np.mean(places < min(k, deepest))) for k in depths}

    def scorer(self) -> SparseScorer:
        """Return what was learnt, for others to ask with numbers of items."""
        return self._model()

    @abstractmethod
    def _learn(self, sessions: NumberedSessions, executor: Executor) -> None:
        """Learn from checked sessions alone."""

    @abstractmethod
    def scorer_of(self, sessions: NumberedSessions, executor: Executor) -> SparseScorer:
        """Return what scores with other sessions under the settings that fit found; the items are those of fit."""

    @abstractmethod
    def _add(self, sessions: NumberedSessions, former: Any) -> None:
        """Learn from further sessions, numbered among all items; ``former`` are the new places of the old items."""

    def _seen(self, sessions: NumberedSessions, n_before: int) -> None:
        self._frozen = None
        self.item_ids_ = sessions.item_ids
        self.n_features_in_ = 1  # a query is one session
        self.model_card_ = card_for(n_before + len(sessions), sessions.items, sessions.offsets, sessions.item_ids)

    def _asked(self, queries: Any, unknown: Unknown) -> SessionQueries:
        asked = SessionQueries.of(queries, self.item_ids_, unknown)
        asked.warn_of_nothing_known("get the most popular items")
        return asked

    def _ranked(
        self, queries: Any, k: int, exclude: Any, exclude_seen: Seen, candidates: Any, unknown: Unknown
    ) -> tuple[SessionQueries, RankedItems]:
        model = self._model()
        asked = self._asked(queries, unknown)
        shown = check_shown(asked, self.item_ids_, exclude, exclude_seen, candidates, unknown)
        check_k(k, len(self.item_ids_))
        return asked, best_items(model, asked, int(k), shown, Executor.of(self.n_jobs))

    def _check_items(self) -> None:
        """Raise ValueError unless there is an item, and a query is one session."""
        if not len(self.item_ids_) or self.n_features_in_ != 1:
            raise ValueError("item_ids_, n_features_in_: expected at least one item, and 1 for a query of one session")
