"""Rank items for users by what they and others have: a blend of item-item weights, a graph filter and factors."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from slatewise.collaborative import parts
from slatewise.collaborative.choice import HeldOut, choose, harmful, standard
from slatewise.collaborative.interactions import Interactions, check_histories, refuse_dense
from slatewise.collaborative.item_item import frequent_items, most_with_weights
from slatewise.collaborative.settings import ALS, ItemItem, LowPass, Part
from slatewise.core import rules
from slatewise.core.arrays import Bools, Floats, Ints, Shorts, Singles
from slatewise.core.checks import sparse_rows
from slatewise.core.declarations import JOBS_TEXT, expanded, learned, param, seed_text
from slatewise.core.errors import levels_to_caller
from slatewise.core.ids import Ids, check_ids, one_or_more
from slatewise.core.rankings import Rankings
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import Executor
from slatewise.data.sessions import flat_lists
from slatewise.persistence.saving import card_for
from slatewise.recommend.filters import (
    DEFAULT_K,
    ItemFilter,
    RankOptions,
    Seen,
    check_candidates,
    check_exclude,
    check_k,
)
from slatewise.recommend.ids import Unknown, number_ids
from slatewise.recommend.recommender import Recommender

KINDS = (ItemItem, LowPass, ALS)
Parts: TypeAlias = Literal["auto"] | ItemItem | LowPass | ALS | Sequence[ItemItem | LowPass | ALS | str]
MOST_JUDGED = 1_000_000
"""Interactions up to which parts that harm are looked for, which fits all parts once more."""
QUERIES = 64
"""Histories that are scored at once."""


def _listed(value: object) -> tuple[Part, ...] | None:
    """Return the settings that ``parts`` stands for, all of different kinds; None where they are not."""
    if isinstance(value, str) and value == "auto":
        return tuple(kind() for kind in KINDS)
    listed = cast("Sequence[object]", value if isinstance(value, list | tuple) else (value,))
    found = [expanded(KINDS, one) for one in listed]
    if not found or any(one is None for one in found) or len({type(one) for one in found}) < len(found):
        return None
    return cast("tuple[Part, ...]", tuple(found))


PARTS = rules.Rule(
    "'auto', or settings among ItemItem(...), LowPass(...), ALS(...), each at most once",
    lambda value: _listed(value) is not None,
    KINDS,
)


@dataclass(frozen=True, eq=False)
class Model:
    """What a ranker learned, ready to answer."""

    blend: parts.Blend
    histories: csr_array
    """(users, items)."""
    popularity: Singles
    """Scores for users without a history: 0 for the most popular item."""


@dataclass(frozen=True, eq=False)
class Histories:
    """Checked queries, and the blend that scores them."""

    ids: Ids
    matrix: csr_array
    item_ids: Ids
    blend: parts.Blend
    popularity: Singles

    @property
    def nothing_known(self) -> Bools | None:
        """Which histories are empty; None: none."""
        empty = np.diff(self.matrix.indptr) == 0
        return empty if empty.any() else None

    def _shown(self, options: RankOptions) -> ItemFilter:
        """Check which items may be shown to each query."""
        if not isinstance(options.exclude_seen, bool | np.bool_):
            raise ValueError(f"`exclude_seen` must be True or False, got {options.exclude_seen!r}")
        hidden = check_exclude(options.exclude, len(self.ids), self.item_ids, options.unknown)
        if options.exclude_seen:
            seen = csr_array((np.ones(self.matrix.nnz), self.matrix.indices, self.matrix.indptr), self.matrix.shape)
            hidden = seen if hidden is None else hidden + seen
        common, own = check_candidates(options.candidates, len(self.ids), self.item_ids, options.unknown)
        return ItemFilter(hidden, common, own)

    def top(self, k: int, options: RankOptions, executor: Executor) -> tuple[Ints, NDArray[Any]]:
        """Return the k best items and their scores, (queries, k); item -1 where fewer are left."""
        k, shown = check_k(k, len(self.item_ids)), self._shown(options)
        items = np.full((len(self.ids), k), -1, dtype=np.int64)
        scores = np.full((len(self.ids), k), -np.inf, dtype=np.float32)
        allowed = None
        if shown.common is not None:
            allowed = np.zeros(len(self.item_ids), dtype=bool)
            allowed[shown.common] = True

        def fill(start: int) -> None:
            rows = slice(start, min(len(self.ids), start + QUERIES))
            found = self._scores(rows)
            if allowed is not None:
                found[:, ~allowed] = -np.inf
            if shown.own is not None:
                own = shown.own[rows].toarray() != 0
                found[~own] = -np.inf
            if shown.hidden is not None:
                hidden = shown.hidden[rows]
                found[np.repeat(np.arange(len(found)), np.diff(hidden.indptr)), hidden.indices] = -np.inf
            items[rows], scores[rows] = best(found, k)

        with one_blas_thread():
            executor.fill_blocks(fill, range(0, len(self.ids), QUERIES))
        items[np.isneginf(scores)] = -1
        return items, scores

    def scores(self, items: Ints, executor: Executor) -> NDArray[Any]:
        """Return the score of every query with each of these items; -inf for item -1."""
        scores = np.empty((len(self.ids), len(items)), dtype=np.float32)

        def fill(start: int) -> None:
            rows = slice(start, min(len(self.ids), start + QUERIES))
            scores[rows] = self._scores(rows)[:, items]

        with one_blas_thread():
            executor.fill_blocks(fill, range(0, len(self.ids), QUERIES))
        scores[:, items < 0] = -np.inf
        return scores

    def _scores(self, rows: slice) -> Singles:
        histories = self.matrix[rows]
        found = self.blend.scores(histories)
        found[np.diff(histories.indptr) == 0] = self.popularity
        return found


def best(scores: Singles, k: int) -> tuple[Ints, Singles]:
    """Return the k largest of each row, best first; equal ones in the order of items."""
    k = min(k, scores.shape[1])
    bar = -np.partition(-scores, k - 1, axis=1)[:, k - 1 : k]
    items = np.empty((len(scores), k), dtype=np.int64)
    for row, (values, least) in enumerate(zip(scores, bar[:, 0], strict=True)):
        above = np.flatnonzero(values > least)
        ties = np.flatnonzero(values == least)[: k - len(above)]
        chosen = np.concatenate([above, ties])
        items[row] = chosen[np.argsort(-values[chosen], kind="stable")]
    return items, np.take_along_axis(scores, items, axis=1)


class CollaborativeRanker(Recommender[Model]):
    """Recommend items to users by the items that they and others have, in no order.

    Up to three parts score all items for a history. Each is brought to mean 0 and standard deviation 1 over the items,
    and their sum ranks. No part is best on every kind of data; the sum is as good as the best part or better.

    A user is its history: known users are ranked for what they had in ``fit``, new ones for the history given, and the
    same history has the same answer. For sequences, where order matters, take :class:`SessionRanker`.

    Notes
    -----
    "auto" hides ``validation_fraction`` of the interactions and climbs from the standard settings of each part to
    others while NDCG@20 of the hidden items gets better by more than one standard error over users. With
    ``parts="auto"`` and at most a million interactions, a part without which the sum is better by three standard
    errors is dropped, with a warning. All parts then learn from all interactions.

    Examples
    --------
    >>> from slatewise import CollaborativeRanker
    >>> baskets = [["tea", "milk"], ["tea", "milk", "cup"], ["pen", "ink"], ["pen", "ink", "paper"]]
    >>> ranker = CollaborativeRanker(validation_fraction=0.0).fit(baskets)
    >>> ranker.rank([["tea", "cup"], ["ink"]], k=1).ids.tolist()
    [['milk'], ['pen']]
    """

    parts: Parts = param(
        PARTS,
        """"auto": item-item weights, a low-pass filter and factors. Or settings of the parts to use, such as
        ``(ItemItem(), ALS(n_components=64))`` of :mod:`slatewise.collaborative`.""",
        default="auto",
        kw_only=False,
    )
    validation_fraction: float = param(
        rules.SHARE, "Share of the interactions on which settings are chosen; 0 keeps the standard ones.", default=0.1
    )
    n_jobs: int | None = param(rules.JOBS, JOBS_TEXT, default=None, saved=False)
    random_state: Any = param(rules.SEED, seed_text("Held-out interactions and starts are drawn."), default=None)

    user_ids_: Ids = learned(rules.IDS, "Ids of the users, ascending.")
    history_offsets_: Ints = learned(rules.whole_array(1), "Where each user begins in ``history_items_``.")
    history_items_: Shorts = learned(
        rules.whole_array(1, "int32"), "Items of the histories, as places in ``item_ids_``.", shape=("h",)
    )
    history_weights_: Singles = learned(
        rules.learned_array(1, np.float32), "Weights of the interactions.", shape=("h",)
    )
    parts_: tuple[Part, ...] = learned(PARTS, "Settings of the parts in use, with the numbers that were chosen.")
    weights_: Floats = learned(rules.learned_array(1, most=rules.MOST_WEIGHT), "Weight of each part in the sum.")
    item_item_offsets_: Ints = learned(
        rules.whole_array(1), "Where the weights of each item begin in ``item_item_items_``.", optional=True
    )
    item_item_items_: Shorts = learned(
        rules.whole_array(1, "int32"), "The items that an item votes for.", shape=("w",), optional=True
    )
    item_item_weights_: Singles = learned(
        rules.learned_array(1, np.float32), "Weights of the votes.", shape=("w",), optional=True
    )
    low_pass_vectors_: Singles = learned(
        rules.learned_array(2, np.float32, 2.0),
        "Singular vectors of the filter.",
        shape=("item_ids_", "s"),
        optional=True,
    )
    item_factors_: Singles = learned(
        rules.learned_array(2, np.float32), "V of the factors.", shape=("item_ids_", "n"), optional=True
    )

    def fit(self, users: Any, items: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from interactions.

        Parameters
        ----------
        users
            Ids of users, one per interaction, with ``items``; or, with ``items`` None, a sparse matrix (users, items)
            of weights, a data frame with the columns user and item (and weight), or a list of lists of item ids, such
            as baskets.
        items
            The item id of each interaction.
        sample_weight
            One weight >= 0 per interaction. Those of a pair that occurs twice add up; without weights it counts once.
        """
        rules.check(self)
        interactions = Interactions.of(users, items, sample_weight)
        self._settle_seed()
        with self._watched(None), one_blas_thread():
            self._learn(interactions, Executor.of(self.n_jobs))
        self._predictor = None
        return self

    def rank(
        self,
        queries: Any,
        k: int = DEFAULT_K,
        *,
        exclude: Any = None,
        exclude_seen: Seen = True,
        candidates: Any = None,
        unknown: Unknown = "error",
        n_jobs: int | None = None,
    ) -> Rankings:
        """Return the k best items of each user, best first; equal scores in the order of ids.

        Parameters
        ----------
        queries
            Ids of users that fit saw; or histories of new users: a list of lists of item ids, or a sparse matrix
            (users, items) in the order of ``item_ids_``, which also has weights. A user without a history gets the most
            popular items, marked in ``nothing_known`` of the answer.
        k
            The number of items, at most as many as there are. The default is capped by the size of the catalog.
        exclude
            Items not to show: a sequence of ids for each query, or a sparse matrix (queries, items).
        exclude_seen
            Whether items of the history are left out.
        candidates
            The only items to show: ids for all queries, a sequence of ids for each, or a sparse matrix.
        unknown
            Ids that fit never saw: "error", or "ignore" with a warning that counts them. A user that fit never saw
            then has no history.
        n_jobs
            Threads; None: as the parameter of the estimator says.
        """
        return super().rank(
            queries,
            k,
            exclude=exclude,
            exclude_seen=exclude_seen,
            candidates=candidates,
            unknown=unknown,
            n_jobs=n_jobs,
        )

    def recall(
        self,
        queries: Any,
        items: Any = None,
        ks: Sequence[int] = (5, 10, 20),
        *,
        exclude: Any = None,
        exclude_seen: Seen = True,
        candidates: Any = None,
        unknown: Unknown = "error",
        n_jobs: int | None = None,
    ) -> dict[int, float]:
        """Return, for each k, the share of pairs whose item is among the k best of its user.

        Parameters
        ----------
        queries
            As in :meth:`rank`, one per pair.
        items
            The item of each pair, such as those of a later time that ``fit`` did not see.
        ks
            Depths of the recall.
        exclude, exclude_seen, candidates, unknown, n_jobs
            As in :meth:`rank`; items that fit never saw count as not found.
        """
        return super().recall(
            queries,
            items,
            ks,
            exclude=exclude,
            exclude_seen=exclude_seen,
            candidates=candidates,
            unknown=unknown,
            n_jobs=n_jobs,
        )

    def explain(self, query: Any, item: Any) -> dict[Any, float]:
        """Return what each item of a history adds to the score of an item; the values add up to the score.

        Parameters
        ----------
        query
            The id of a user that fit saw, or the history of a new one, a list of item ids.
        item
            The id of an item.

        Returns
        -------
        contributions
            By item id, largest first; the last entry, "average item", is what the score of an average item takes away.
            Without a history "popularity" is the only entry.
        """
        model = self._model()
        blend = model.blend
        place = number_ids("item", one_or_more("item", item), self.item_ids_)
        if len(place) != 1:
            raise ValueError(f"item: expected one id, found {len(place)}")
        batch = self._batch(model, [query], RankOptions(), Executor(1))
        history = batch.matrix
        if not history.nnz:
            return {"popularity": float(batch.popularity[place[0]])}
        total, constant = np.zeros(history.nnz), 0.0
        for part, weight in zip(blend.parts, blend.weights, strict=True):
            mean, deviation = parts.scale_of(part.scores(history))
            total += weight / deviation[0, 0] * part.contributions(history, place)[:, 0]
            constant -= weight * mean[0, 0] / deviation[0, 0]
        order = np.argsort(-total, kind="stable")
        names = self.item_ids_[history.indices[order]].tolist()
        reasons: dict[Any, float] = dict(zip(names, total[order].tolist(), strict=True))
        reasons["average item"] = reasons.pop("average item", 0.0) + float(constant)  # an item may have this name
        return reasons

    def similar_items(self, items: Any, k: int = DEFAULT_K) -> Rankings:
        """Return the items that rank best for someone who has this item alone.

        Parameters
        ----------
        items
            Ids of items.
        k
            The number of similar items.
        """
        ids = one_or_more("items", items)
        places = number_ids("items", ids, self.item_ids_)
        matrix = csr_array(
            (np.ones(len(places), dtype=np.float32), places, np.arange(len(places) + 1)),
            shape=(len(places), len(self.item_ids_)),
        )
        found = self.rank(matrix, k)
        return Rankings(ids, found.ids, found.scores)

    # --- parts -------------------------------------------------------------------------------------------------------

    def _learn(self, interactions: Interactions, executor: Executor) -> None:
        matrix, given = interactions.matrix, cast("tuple[Part, ...]", _listed(self.parts))
        _warn_of_rare_items(matrix, given)
        held = HeldOut.of(matrix, self.validation_fraction, self.seed_) if self.validation_fraction else None
        chosen = [standard(one) if held is None else choose(one, held, self.seed_, executor) for one in given]
        if held is not None and isinstance(self.parts, str) and matrix.nnz <= MOST_JUDGED:
            self._drop_harmful(chosen, held, executor)
        for name in self._optional:
            vars(self).pop(name, None)
        self.parts_, self.weights_ = tuple(chosen), np.ones(len(chosen))
        self.user_ids_, self.item_ids_ = interactions.user_ids, interactions.item_ids
        self.history_offsets_ = matrix.indptr.astype(np.int64)
        self.history_items_ = matrix.indices.astype(np.int32)
        self.history_weights_ = matrix.data
        for one in chosen:
            self._keep(parts.fit_part(one, matrix, self.seed_, executor))
        self.n_features_in_ = 1  # a query is one user
        arrays = (self.history_items_, self.history_offsets_, self.history_weights_, self.user_ids_, self.item_ids_)
        self.model_card_ = card_for(matrix.shape[0], *arrays)

    def _drop_harmful(self, chosen: list[Part], held: HeldOut, executor: Executor) -> None:
        fitted = [parts.fit_part(one, held.training, self.seed_, executor) for one in chosen]
        while len(chosen) > 1 and (worst := harmful(held, fitted, executor)) is not None:
            warnings.warn(
                f"the part {chosen[worst]!r} makes the ranking of held-out items worse and is dropped; "
                f"name the parts in `parts` to keep it",
                stacklevel=levels_to_caller(),
            )
            del chosen[worst], fitted[worst]

    def _keep(self, part: parts.FittedPart) -> None:
        match part:
            case parts.ItemItem(weights):
                self.item_item_offsets_ = weights.indptr.astype(np.int64)
                self.item_item_items_ = weights.indices.astype(np.int32)
                self.item_item_weights_ = weights.data
            case parts.LowPass():
                self.low_pass_vectors_ = part.vectors
            case parts.ALS():
                self.item_factors_ = part.items
            case _:
                raise TypeError(type(part).__name__)

    def _freeze(self) -> Model:
        entries = (self.history_weights_, self.history_items_, self.history_offsets_)
        histories = csr_array(entries, shape=(len(self.user_ids_), len(self.item_ids_)))
        counts = np.bincount(self.history_items_, minlength=len(self.item_ids_))
        blend = parts.Blend(tuple(self._part(one, histories) for one in self.parts_), self.weights_)
        return Model(blend, histories, (counts / counts.max() - 1.0).astype(np.float32))

    def _part(self, given: Part, histories: csr_array) -> parts.FittedPart:
        n_items = len(self.item_ids_)
        match given:
            case ItemItem():
                entries = (self.item_item_weights_, self.item_item_items_, self.item_item_offsets_)
                return parts.ItemItem(csr_array(entries, shape=(n_items, n_items)))
            case LowPass():
                return parts.LowPass.of(histories, self.low_pass_vectors_, float(given.smooth_weight))
            case ALS():
                return parts.ALS(self.item_factors_, float(given.regularization), float(given.unobserved_weight))

    def _batch(self, model: Model, queries: Any, options: RankOptions, executor: Executor) -> Histories:
        ids, matrix = self._queries(queries, options.unknown, model.histories)
        found = Histories(ids, matrix, self.item_ids_, model.blend, model.popularity)
        empty = found.nothing_known
        if empty is not None:
            warnings.warn(
                f"queries: {int(empty.sum())} of {len(ids)} users have no history and get the most popular items; "
                f"the first: {ids[int(np.argmax(empty))].item()!r}",
                stacklevel=levels_to_caller(),
            )
        return found

    def _queries(self, queries: Any, unknown: Unknown, histories: csr_array) -> tuple[Ids, csr_array]:
        """Return what each query is called, and its history."""
        queries = _kept(queries)
        if (given := sparse_rows("queries", queries)) is not None:
            if given.shape[1] != len(self.item_ids_):
                raise ValueError(
                    f"queries: a matrix must have a column per item, {len(self.item_ids_)}, got {given.shape[1]}"
                )
            return np.arange(given.shape[0]), check_histories("queries", given)
        if _are_ids(queries):
            ids = one_or_more("queries", queries)
            places = number_ids("queries", ids, self.user_ids_, unknown=unknown, instead="have no history")
            found = csr_array(histories[np.maximum(places, 0)])
            found.data[np.repeat(places < 0, np.diff(found.indptr))] = 0.0
            found.eliminate_zeros()
            return ids, found
        refuse_dense("queries", queries, len(self.item_ids_))
        together, sizes = flat_lists("queries", queries)
        owners = np.repeat(np.arange(len(sizes)), sizes)
        numbers = number_ids("queries", together, self.item_ids_, unknown=unknown, instead="are left out of histories")
        seen = numbers >= 0
        shape = (len(sizes), len(self.item_ids_))
        matrix = csr_array((np.ones(int(seen.sum()), dtype=np.float32), (owners[seen], numbers[seen])), shape=shape)
        matrix.sum_duplicates()
        matrix.data[:] = 1.0
        return np.arange(len(sizes)), matrix

    def _distinct(self, queries: Any) -> tuple[Any, Ints | None]:
        """Rank once for a user who occurs several times."""
        queries = _kept(queries)
        if not _are_ids(queries):
            return queries, None
        return np.unique(check_ids("queries", one_or_more("queries", queries)), return_inverse=True)

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other."""
        super()._check_learned()
        n_items = len(self.item_ids_)
        if not len(self.history_items_):
            raise ValueError("history_items_: expected at least one interaction, found none")
        if self.history_weights_.min() <= 0:
            raise ValueError(f"history_weights_: expected numbers > 0, found {self.history_weights_.min()}")
        check_rows("history_offsets_", self.history_offsets_, self.history_items_, len(self.user_ids_), n_items)
        if len(self.weights_) != len(self.parts_):
            raise ValueError(f"weights_: expected {len(self.parts_)}, one per part, found {len(self.weights_)}")
        needed = {ItemItem: ["item_item_offsets_", "item_item_items_", "item_item_weights_"]}
        needed |= {LowPass: ["low_pass_vectors_"], ALS: ["item_factors_"]}
        for one in self.parts_:
            if any(getattr(one, name) == "auto" for name in one.get_params()):
                raise ValueError(f"parts_: expected numbers, found {one!r}")
            for name in needed[type(one)]:
                if name not in vars(self):
                    raise ValueError(f"{name}: expected an array, as parts_ has {type(one).__name__}, found none")
        if "item_item_offsets_" in vars(self):
            check_rows("item_item_offsets_", self.item_item_offsets_, self.item_item_items_, n_items, n_items)


def _warn_of_rare_items(matrix: csr_array, given: Sequence[Part]) -> None:
    """Warn where item-item weights are those of the most frequent items only."""
    most = next((one.most_items for one in given if isinstance(one, ItemItem)), None)
    if most is None or matrix.shape[1] <= (most := most_with_weights(matrix.shape[0], most)):
        return
    kept = np.isin(matrix.indices, frequent_items(matrix, most)).mean()
    warnings.warn(
        f"the item-item weights are those of the {most} most frequent of {matrix.shape[1]} items, with {kept:.1%} of "
        f"the interactions; for more, raise `most_items` of ItemItem: the fit takes 4 bytes times its square",
        stacklevel=levels_to_caller(),
    )


def check_rows(name: str, offsets: Ints, places: Shorts, n_rows: int, n_columns: int) -> None:
    """Raise ValueError unless offsets and columns are those of a sparse matrix."""
    if len(offsets) != n_rows + 1 or offsets[0] != 0 or offsets[-1] != len(places) or (np.diff(offsets) < 0).any():
        raise ValueError(f"{name}: expected {n_rows} rows of {len(places)} entries in all, found others")
    if places.max(initial=0) >= n_columns:
        raise ValueError(f"{name}: expected places among {n_columns} items, found {places.max()}")


def _kept(queries: Any) -> Any:
    """Return queries that can be looked at twice."""
    return list(cast("Iterator[Any]", queries)) if isinstance(queries, Iterator) else queries


def _are_ids(queries: Any) -> bool:
    """Tell ids of users from histories: a flat sequence, or one id."""
    if isinstance(queries, str | int | np.generic):
        return True
    array = cast("NDArray[Any] | None", queries if isinstance(queries, np.ndarray) else None)
    if array is not None and array.dtype.kind != "O":
        return array.ndim == 1
    return isinstance(queries, Iterable) and all(
        isinstance(one, str | int | float | np.generic) for one in cast("Iterable[object]", queries)
    )
