"""What a fitted LatentRanker is asked about: queries in all their forms, numbered as given, at some stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slatewise.core import executor
from slatewise.core.rules import is_whole
from slatewise.latent.engine import Factors
from slatewise.latent.explanation import SlateExplanation, explain_slates
from slatewise.latent.fold_in import FoldedQueries
from slatewise.latent.index_vectors import against_equally_long
from slatewise.latent.input import (
    Ids,
    Unknown,
    check_features,
    check_ids,
    number_ids,
    own_items,
    queries_of,
)
from slatewise.latent.lists import check_exclude, check_k
from slatewise.latent.pair_terms import PairTerm
from slatewise.latent.queries import IdQueries, Queries
from slatewise.latent.screen import Screen
from slatewise.latent.screens import screen_of
from slatewise.latent.settings import pair_term
from slatewise.latent.stages import OwnItems, places_of, stage_factors
from slatewise.latent.tables import Ints, Singles, Table
from slatewise.latent.top_k import QUERIES_A_BLOCK, TopItems, top_items
from slatewise.model.sklearn import check_is_fitted

if TYPE_CHECKING:
    from slatewise.latent.ranker import LatentRanker


@dataclass(frozen=True, eq=False)
class Asked:
    """Queries, and the tables of every stage up to the one that answers."""

    make: Callable[[Table], Queries]
    n_queries: int
    tables: tuple[tuple[Table, Table], ...]
    pair: PairTerm
    position_weights: Singles
    own_items: OwnItems | None
    item_ids: Ids
    n_threads: int | None
    screen: Callable[[int], Screen | None]
    """Returns the screen of the items of a stage, if so few queries ask that it pays."""
    unknown: Unknown = "error"
    """What becomes of unknown ids among the excluded ones."""

    @property
    def width(self) -> int:
        """How many numbers of a vector make its score: [U q | 1] with [V d | b], and p_q with S d at later stages."""
        return self.pair.S.start if len(self.tables) == 1 else self.pair.S.stop

    def factors(self) -> Factors:
        """Return the factors of the last stage."""
        tables, weights = self.tables, self.position_weights
        return stage_factors(
            self.make, self.n_queries, tables, self.pair, weights, self.n_threads, self.own_items, self.screen
        )

    def vectors(self) -> Singles:
        """Return a vector a query."""
        return against_equally_long(self.factors().queries.vectors(np.arange(self.n_queries))[:, : self.width])

    def top(self, k: int, exclude: Any = None) -> TopItems:
        """Rank the catalogue without the items that a query excludes; -1 and -inf where fewer than k are left."""
        hidden = check_exclude(exclude, self.n_queries, self.item_ids, self.unknown)
        check_k(k, len(self.item_ids))
        factors, numbers = self.factors(), np.arange(self.n_queries)
        screen = self.screen(len(self.tables) - 1)
        found = top_items(factors.queries, numbers, factors.items.values, k, hidden, self.n_threads, screen)
        _require_finite(found.scores, found.items >= 0 if hidden is not None else None)
        return found

    def score(self, items: Ints) -> Singles:
        """Return the score of every query with each of these items, (queries, items); -inf for item -1."""
        factors = self.factors()
        rows = factors.items.values[items, : self.width]
        scores = np.empty((self.n_queries, len(items)), dtype=np.float32)

        def multiply(first: int) -> None:
            out = scores[first : first + QUERIES_A_BLOCK]
            vectors = factors.queries.vectors(np.arange(first, first + len(out)))
            np.matmul(vectors[:, : self.width], rows.T, out=out)

        with executor.one_blas_thread():
            for _ in executor.map_blocks(multiply, range(0, self.n_queries, QUERIES_A_BLOCK), self.n_threads):
                pass
        _require_finite(scores)
        scores[:, items < 0] = -np.inf
        return scores

    def explain(self, k: int, exclude: Any = None) -> SlateExplanation:
        """Rank, and take the scores apart."""
        items, (own, table) = self.top(k, exclude).items, self.tables[-1]
        lists, weights = np.empty((self.n_queries, 0), dtype=np.int64), self.position_weights[:0]
        if len(self.tables) > 1:
            length = min(len(self.position_weights), len(self.item_ids))
            lists = replace(self, tables=self.tables[:-1]).top(length).items
            lists, weights = places_of(lists, self.position_weights, self.own_items)
        vectors = self.make(own).vectors(np.arange(self.n_queries))
        return explain_slates(vectors, table.values, self.pair, items, lists, weights, self.item_ids)


def asked_of(ranker: LatentRanker, queries: Any, stage: int | None, unknown: Unknown = "error") -> Asked:
    """Find the rows of ids; multiply features; take rows of :meth:`LatentRanker.fold_in` as they are.

    Unknown ids that are to be ignored have a row of zeros: the biases alone rank for them.
    """
    check_is_fitted(ranker)
    last = check_stage(ranker, stage)
    features, own, itself, item_factors = None, ranker.query_factors_, None, ranker.item_factors_
    if ranker.by_features_:
        features = check_features(ranker, queries, reset=False)
        n_queries = int(features.shape[0])
    elif is_folded(queries):
        own = _folded(ranker, queries, last)
        n_queries = int(own.shape[1])
    else:
        ids = _ids_of(ranker, queries)
        instead = "get the order of the biases"
        numbers = number_ids("queries", ids, ranker.query_ids_, unknown=unknown, instead=instead)
        own, n_queries = own[: last + 1, numbers], len(numbers)
        own[:, numbers < 0, : ranker.n_components_] = 0.0
        itself = own_items(ids, ranker.item_ids_, ranker.own_weight_)
    pair = pair_term(ranker)

    def screen(stage: int) -> Screen | None:
        width = pair.S.stop if stage else pair.S.start
        return screen_of(ranker, item_factors, f"stage {stage}", n_queries, lambda rows: Screen.of(rows[stage], width))

    return Asked(
        queries_of(features, ranker.n_components_),
        n_queries,
        tuple((_as_table(own[t]), _as_table(item_factors[t])) for t in range(last + 1)),
        pair,
        ranker.position_weights_,
        itself,
        ranker.item_ids_,
        ranker.n_threads,
        screen,
        unknown,
    )


def check_stage(ranker: LatentRanker, stage: int | None) -> int:
    """Return the number of the stage asked for, by default the last."""
    last = ranker.n_stages_ - 1 if stage is None else stage
    if not is_whole(last) or not 0 <= last < ranker.n_stages_:
        raise ValueError(f"stage: expected a number from 0 to {ranker.n_stages_ - 1}, found {stage!r}")
    return int(last)


def is_folded(queries: Any) -> bool:
    """Tell rows of fold_in from ids, of whatever type these are."""
    return isinstance(queries, FoldedQueries)


def _ids_of(ranker: LatentRanker, queries: Any) -> Ids:
    """Return ids; other arrays could be rows of fold_in, or ids in a column: whoever means rows has to say so."""
    ids = np.asarray(queries)
    if ids.ndim == 2:
        raise ValueError(
            f"queries: expected ids, one-dimensional, or rows of {ranker.n_components_} numbers as fold_in returns "
            f"them, found {ids.dtype} {ids.shape}; an array that was made by fold_in says so by "
            "rows.view(slatewise.latent.fold_in.FoldedQueries)"
        )
    return check_ids("queries", ids)


def most_similar(ranker: LatentRanker, numbers: Ints, k: int) -> TopItems:
    """Rank the other items by the cosine of their rows of V with an item's."""
    hidden = check_exclude(ranker.item_ids_[numbers, None], len(numbers), ranker.item_ids_)
    check_k(k, len(ranker.item_ids_) - 1)
    n, item_factors = ranker.n_components_, ranker.item_factors_

    def make(factors: Singles) -> Screen | None:
        return Screen.of(factors[0], n, _inverse_lengths(factors[0, :, :n]))

    screen, rows = screen_of(ranker, item_factors, "cosine", len(numbers), make), item_factors[0, :, :n]
    own = rows[numbers] * _inverse_lengths(rows[numbers])[:, None]
    if screen is None:
        rows = rows * _inverse_lengths(rows)[:, None]
    queries = IdQueries(_as_table(own))
    found = top_items(queries, np.arange(len(numbers)), rows, k, hidden, ranker.n_threads, screen)
    _require_finite(found.scores)
    return found


def _inverse_lengths(rows: Singles) -> Singles:
    return (1.0 / np.maximum(np.linalg.norm(rows, axis=1), 1e-12)).astype(np.float32)


def _require_finite(scores: Singles, there: NDArray[np.bool_] | None = None) -> None:
    """Raise ValueError where factors times a query are more than float32 has: such scores have no order.

    ``there``: where a list has an item at all; None: everywhere.
    """
    finite = np.isfinite(scores)
    wrong = ~(finite if there is None else finite | ~there).all(axis=1)
    if wrong.any():
        raise ValueError(
            f"queries: expected finite scores, found others for query {int(np.flatnonzero(wrong)[0])}: "
            "its numbers are too large for float32"
        )


def _as_table(values: Singles) -> Table:
    return Table(np.ascontiguousarray(values), np.empty((len(values), 0), dtype=np.float32), ())


def _folded(ranker: LatentRanker, queries: FoldedQueries, last: int) -> Singles:
    """Return (stages, queries, width) of new queries: U and V are the same at all stages, so one row serves all."""
    n, rows = ranker.n_components_, np.asarray(queries)
    if rows.dtype.kind != "f" or rows.shape[1:] != (n,) or not np.isfinite(rows).all():
        raise ValueError(
            f"queries: expected ids, or finite rows of {n} numbers from fold_in, found {rows.dtype} {rows.shape}"
        )
    own = np.zeros((last + 1, len(rows), ranker.query_factors_.shape[2]), dtype=np.float32)
    own[:, :, :n], own[:, :, n] = rows, 1.0
    return own
