"""What a fitted LatentRanker can be asked beside its lists: new queries, reasons, vectors, an index, a mapped file."""

import copy
import doctest
import gc
import pickle
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

import slatewise
from slatewise import datasets
from slatewise.core.numerics.result import ConvergenceWarning
from slatewise.latent.fold_in import FoldedIn, FoldedQueries
from tests.factors.flat import make_featured, make_latent, make_reranker
from tests.factors.reference import parts

SMALL = {"n_components": 8, "epochs": 6, "random_state": 0, "validation_fraction": 0.0}


@pytest.fixture(scope="module")
def pairs():
    return datasets.make_sessions(700, 120, n_clusters=8, random_state=0).sessions.pairs()


@pytest.fixture(scope="module")
def ranker(pairs):
    return make_latent(**SMALL).fit(pairs.queries, pairs.items)


@pytest.fixture(scope="module", params=["semidefinite", "bilinear", "both"])
def staged(request, pairs):
    return make_latent(**SMALL, stages=3, k=6, pair=request.param).fit(pairs.queries, pairs.items)


def sides(rows, n, pair):
    """Return what an item and a listed one have in their product, from rows that begin with S."""
    S, second, third = rows[:, :n], rows[:, n : 2 * n], rows[:, 2 * n : 3 * n]
    return {"semidefinite": (S, S), "bilinear": (S, second), "both": (np.hstack([S, second]), np.hstack([S, third]))}[
        pair
    ]


# --- new queries -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stages", [1, 2])
def test_a_new_query_is_ranked_almost_as_if_it_had_been_there(pairs, stages):
    rng = np.random.default_rng(0)
    new = pairs.queries % 5 == 0
    seen = new & (rng.random(len(new)) < 0.5)
    asked = new & ~seen
    without = make_latent(**SMALL, stages=stages).fit(pairs.queries[~new], pairs.items[~new])
    names = np.unique(pairs.queries[new])
    rows = without.fold_in([pairs.items[seen & (pairs.queries == name)] for name in names])
    assert rows.vectors.shape == (len(names), 8)
    assert (np.linalg.norm(rows.vectors, axis=1) <= without.max_norm_ + 1e-5).all()
    own = np.searchsorted(names, pairs.queries[asked])
    recall = without.recall(rows[own], pairs.items[asked], [10])[10]
    popular = np.argsort(-np.bincount(pairs.items[~new], minlength=120), kind="stable")[:10]
    assert recall > 2 * np.isin(pairs.items[asked], popular).mean()
    # What training would have made of the same pairs.
    there = make_latent(**SMALL, stages=stages).fit(pairs.queries[~asked], pairs.items[~asked])
    assert recall > 0.9 * there.recall(pairs.queries[asked], pairs.items[asked], [10])[10]


def test_the_same_items_give_the_same_row_however_they_are_given(ranker):
    rows = ranker.fold_in([[5, 7, 7], [9]])
    assert rows.vectors.dtype == np.float32
    weights = csr_array(([2.0, 4.0, 3.0], ([0, 0, 1], np.searchsorted(ranker.item_ids_, [5, 7, 9]))), shape=(2, 120))
    np.testing.assert_allclose(ranker.fold_in(weights).vectors, rows.vectors, atol=1e-5)
    np.testing.assert_array_equal(ranker.fold_in([[5, 7, 7], [9]]).vectors, rows.vectors)
    ids, scores = parts(ranker.rank(rows, k=4, exclude=[[5, 7], [9]]))
    assert ids.shape == scores.shape == (2, 4)
    assert not np.isin(ids[0], [5, 7]).any()


def test_a_row_does_not_depend_on_whom_it_is_asked_with(ranker):
    sets = [[5], [7, 9, 11], list(range(40)), [80, 80, 80, 2]]
    together = ranker.fold_in(sets).vectors
    for row, items in zip(together, sets, strict=True):
        np.testing.assert_allclose(ranker.fold_in([items]).vectors[0], row, atol=1e-5)


def test_weights_of_any_size_are_shares(ranker):
    places = np.searchsorted(ranker.item_ids_, [5, 7])
    for size in (1e308, 1e-320):
        seen = csr_array(([size, size], ([0, 0], places)), shape=(1, 120))
        np.testing.assert_allclose(ranker.fold_in(seen).vectors, ranker.fold_in([[5, 7]]).vectors, atol=1e-5)


def test_names_that_are_as_many_as_the_items_are_names():
    ranker = make_latent(2, epochs=1, validation_fraction=0.0).fit(["p", "q"], ["a", "b"])
    found = ranker.fold_in(np.array([["a", "b"]]))
    np.testing.assert_array_equal(found.vectors, ranker.fold_in([["b", "a"]]).vectors)
    assert not ranker.fold_in([[], []]).vectors.any()


def test_a_row_that_is_not_certified_is_told(ranker, monkeypatch):
    unknown = FoldedIn(np.zeros((1, 8)), np.array([np.nan]), np.zeros(1))
    monkeypatch.setattr("slatewise.latent.ranker.fold_in", lambda *_: unknown)
    with pytest.warns(ConvergenceWarning, match="certified gap of nan"):
        ranker.fold_in([[5]])


def test_a_query_that_saw_nothing_gets_the_order_of_the_biases(ranker):
    ids, scores = parts(ranker.rank(ranker.fold_in([[]]), k=120))
    bias = ranker.item_factors_[0][:, 8]
    np.testing.assert_array_equal(ids[0], ranker.item_ids_[np.argsort(-bias, kind="stable")])
    np.testing.assert_allclose(scores[0], -np.sort(-bias), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.fold_in([3, 5]), "items: expected a list of ids in each place, found int in place 0"),
        (lambda r: r.fold_in([[3, 999]]), "items: expected ids seen in fit, found 999 at place 1 of query 0"),
        (
            lambda r: r.fold_in(np.eye(2, 120)),
            "items: expected a sequence of ids .* sparse matrix, found a dense matrix",
        ),
        (lambda r: r.fold_in(csr_array((1, 3))), "items: expected shape"),
        (lambda r: r.fold_in(csr_array(-np.eye(120))), "items: expected finite weights >= 0"),
        (lambda r: r.fold_in(csr_array(np.eye(120) * np.nan)), "items: expected finite weights >= 0"),
        (lambda r: r.rank(FoldedQueries(np.zeros((2, 3), np.float32))), "queries: expected finite rows of 8 numbers"),
        (lambda r: r.rank(FoldedQueries(np.full((1, 8), np.nan))), "queries: expected finite rows of 8 numbers"),
        (lambda r: r.rank(FoldedQueries(np.zeros(8))), "queries: expected finite rows of 8 numbers"),
    ],
)
def test_what_cannot_be_folded_in_is_named(ranker, call, message):
    with pytest.raises(ValueError, match=message):
        call(ranker)


@pytest.fixture(scope="module")
def one_wide(pairs):
    return make_latent(**SMALL | {"n_components": 1}).fit(pairs.queries, pairs.items)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_an_array_of_numbers_never_passes_for_rows_of_fold_in(one_wide, kind):
    column = np.array([[3], [5]], dtype=kind)
    for ask in (one_wide.rank, one_wide.explain, one_wide.query_vectors):
        with pytest.raises(ValueError, match=r"queries: expected a one-dimensional array of ids, found shape \(2, 1\)"):
            ask(column)
    with pytest.raises(ValueError, match="queries: expected a one-dimensional array of ids"):
        one_wide.recall(column, [3, 5])
    np.testing.assert_array_equal(one_wide.rank(column[:, 0]).ids, one_wide.rank([3, 5]).ids)


def test_parts_of_folded_queries_are_folded_queries(ranker):
    rows = ranker.fold_in([[5, 7], [9], [11]])
    expected = ranker.rank(rows).ids
    for same in (rows[np.arange(3)], copy.deepcopy(rows), FoldedQueries(rows.vectors.astype(np.float64))):
        np.testing.assert_array_equal(ranker.rank(same).ids, expected)
    np.testing.assert_array_equal(ranker.rank(rows[1:]).ids, expected[1:])
    assert len(rows) == 3


# --- reasons ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_the_parts_are_those_of_the_formula_and_add_up(staged, stage):
    queries = staged.query_ids_[:5]
    why = staged.explain(queries, k=7, stage=stage)
    ids, scores = parts(staged.rank(queries, k=7, stage=stage))
    np.testing.assert_array_equal(why.items, ids)
    np.testing.assert_allclose(why.score, scores, atol=1e-5)
    np.testing.assert_array_equal(why.score, why.own + why.bias + why.moved_by.sum(axis=2))
    U, Z = staged.query_factors_[stage][:5, :8], staged.item_factors_[stage]
    moved, listed = sides(Z[:, 9:], 8, staged.pair_)
    number = {name: place for place, name in enumerate(staged.item_ids_.tolist())}
    if stage == 0:
        assert why.neighbours.shape == (5, 0)
    else:
        np.testing.assert_array_equal(why.neighbours, staged.rank(queries, k=6, stage=stage - 1).ids)
    for q in range(5):
        for place, item in enumerate(ids[q].tolist()):
            assert why.own[q, place] == pytest.approx(U[q] @ Z[number[item], :8], abs=1e-5)
            assert why.bias[q, place] == Z[number[item], 8]
            for j, other in enumerate(why.neighbours[q].tolist()):
                share = moved[number[item]] @ listed[number[other]] / (j + 1)
                assert why.moved_by[q, place, j] == pytest.approx(share, abs=1e-5)


def test_reasons_for_features_and_for_new_queries(staged):
    rows = staged.fold_in([[5, 7]])
    np.testing.assert_allclose(staged.explain(rows, k=3).score, staged.rank(rows, k=3).scores, atol=1e-5)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 5, 60)
    other = make_featured(3, stages=2, k=3, epochs=2, validation_fraction=0.0, pair=staged.pair_).fit(X, y)
    np.testing.assert_allclose(other.explain(X, k=5).score, other.rank(X, k=5).scores, atol=1e-5)


@pytest.mark.parametrize("pair", ["semidefinite", "bilinear", "both"])
def test_reasons_of_a_reranker(pairs, pair):
    base = np.zeros((120, 120))
    np.add.at(base, (pairs.queries, pairs.items), 1.0)
    settings = {"stages": 2, "pair": pair, "k": 5, "epochs": 2, "validation_fraction": 0.0}
    reranker = make_reranker(base, 4, **settings).fit(pairs.queries, pairs.items)
    for stage in (0, 1, 2):
        why = reranker.explain([3, 77], k=6, stage=stage)
        ids, scores = parts(reranker.rank([3, 77], k=6, stage=stage))
        np.testing.assert_array_equal(why.items, ids)
        np.testing.assert_allclose(why.score, scores, atol=1e-5)
        np.testing.assert_allclose(why.own[1], base[77, ids[1]] / reranker.base_unit_, rtol=1e-5)
        assert why.neighbours.shape == (2, 5 if stage else 0)
        if stage:
            np.testing.assert_array_equal(why.neighbours, reranker.rank([3, 77], k=5, stage=stage - 1).ids)
            moved, listed = sides(reranker.pair_factors_[stage - 1], 4, pair)
            expected = moved[ids[0, 2]] @ listed[why.neighbours[0, 1]] / 2
            assert why.moved_by[0, 2, 1] == pytest.approx(expected, abs=1e-5)


# --- scores ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", [0, 1, 2, None])
def test_scores_are_those_that_rank_sorts_by(staged, stage):
    queries = staged.query_ids_[[7, 3, 50]]
    ids, scores = parts(staged.rank(queries, k=120, stage=stage))
    table = staged.scores(queries, staged.item_ids_, stage=stage)
    assert table.shape == (3, 120)
    np.testing.assert_allclose(-np.sort(-table, axis=1), scores, atol=1e-5)
    places = np.searchsorted(staged.item_ids_, ids)
    np.testing.assert_allclose(np.take_along_axis(table, places, axis=1), scores, atol=1e-5)
    few = staged.item_ids_[[5, 90, 5]]
    np.testing.assert_allclose(staged.scores(queries, few, stage=stage), table[:, [5, 90, 5]], atol=1e-5)
    assert staged.scores(queries[:0], few).shape == (0, 3)
    assert staged.scores(queries, few[:0]).shape == (3, 0)


def test_scores_of_features_and_of_new_queries(staged):
    rows = staged.fold_in([[5, 7], []])
    np.testing.assert_allclose(
        staged.scores(rows, staged.item_ids_).max(axis=1), staged.rank(rows, k=1).scores[:, 0], atol=1e-5
    )
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 5, 60)
    other = make_featured(3, stages=2, k=3, epochs=2, validation_fraction=0.0, pair=staged.pair_).fit(X, y)
    table = other.scores(X, np.arange(5))
    np.testing.assert_array_equal(table.argmax(axis=1), other.rank(X, k=1).ids[:, 0])


def test_scores_have_the_same_bits_with_any_number_of_threads(pairs):
    names = np.repeat(np.arange(600), 2)
    one, two = (
        make_latent(**SMALL | {"epochs": 1, "n_jobs": threads}).fit(names, np.arange(1200) % 90) for threads in (1, 2)
    )
    np.testing.assert_array_equal(one.scores(one.query_ids_, one.item_ids_), two.scores(two.query_ids_, two.item_ids_))


def test_what_cannot_be_scored_is_named(ranker):
    with pytest.raises(ValueError, match="items: expected ids seen in fit, found 999 at place 1"):
        ranker.scores([3], [3, 999])
    with pytest.raises(ValueError, match="queries: expected ids seen in fit, found 999"):
        ranker.scores([999], [3])
    with pytest.raises(NotFittedError):
        make_latent().scores([3], [3])


def test_a_ranker_can_be_the_base_of_a_reranker(pairs, ranker):
    settings = {"stages": 1, "k": 5, "epochs": 2, "validation_fraction": 0.0}
    reranker = make_reranker(ranker, 4, **settings).fit(pairs.queries, pairs.items)
    np.testing.assert_array_equal(reranker.rank([3, 77], k=6, stage=0).ids, ranker.rank([3, 77], k=6).ids)
    assert reranker.rank([3, 77], k=6).ids.shape == (2, 6)


# --- short lists and unknown ids -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", [0, 2])
@pytest.mark.parametrize("size", [1, 6])
def test_a_query_that_excludes_too_many_has_a_short_list_and_the_others_their_own(staged, stage, size, request):
    if size == 1:
        request.getfixturevalue("quantized")
    queries = staged.query_ids_[:size]
    everything = staged.rank(queries, k=120, stage=stage)
    hidden = [everything.ids[0, 3:], *([[]] * (size - 1))]
    found = staged.rank(queries, k=5, stage=stage, exclude=hidden)
    np.testing.assert_array_equal(found.query_ids, queries)
    assert [len(ids) for ids in found.lists()] == [3, *([5] * (size - 1))]
    for row, ids in enumerate(found.lists()):
        np.testing.assert_array_equal(ids, everything.ids[row, : len(ids)])
        np.testing.assert_allclose(found.list_scores(row), everything.scores[row, : len(ids)], rtol=1e-5)
    why = staged.explain(queries, k=5, stage=stage, exclude=hidden)
    np.testing.assert_array_equal(why.items[0], [*found[0], -1, -1])
    np.testing.assert_array_equal(why.items[1:], everything.ids[1:, :5])
    assert (why.score[0, 3:] == -np.inf).all()
    np.testing.assert_allclose(why.score[0, :3], found.list_scores(0), atol=1e-5)
    nothing = staged.rank(queries[:1], k=2, stage=stage, exclude=[staged.item_ids_])
    assert nothing[0].tolist() == []


def test_short_lists_of_names():
    ranker = make_latent(2, epochs=1, validation_fraction=0.0).fit(["p", "q", "q"], ["a", "b", "c"])
    found = ranker.rank(["p", "q"], k=3, exclude=[["a", "c"], []])
    assert found.query_ids.tolist() == ["p", "q"]
    assert found[0].tolist() == ["b"]
    assert sorted(found[1].tolist()) == ["a", "b", "c"]
    assert found.offsets.tolist() == [0, 1, 4]
    assert found.to_dict()["p"] == {"b": float(found.scores[0])}


def test_the_queries_of_an_answer_are_named_by_their_ids(ranker):
    for found in (ranker.rank([3, 25], k=4), ranker.similar_items([3, 25], k=4)):
        np.testing.assert_array_equal(found.query_ids, [3, 25])


def test_queries_without_ids_are_numbered(ranker):
    assert ranker.rank(ranker.fold_in([[3], [5]]), k=2).query_ids.tolist() == [0, 1]
    features = make_featured(2, epochs=1).fit(np.eye(6), [0, 1, 0, 1, 0, 1])
    assert features.rank(np.eye(6)[:3], k=1).query_ids.tolist() == [0, 1, 2]


def test_score_is_recall_at_20(ranker, pairs):
    assert ranker.score(pairs.queries, pairs.items) == ranker.recall(pairs.queries, pairs.items, [20])[20]


@pytest.mark.parametrize("stage", [0, 2])
def test_unknown_ids_can_be_ignored_and_are_counted(staged, stage):
    with pytest.warns(UserWarning, match=r"queries: 2 of 3 ids were not seen in fit .*; the first: 999 at place 1"):
        found = staged.rank([3, 999, -4], k=7, stage=stage, unknown="ignore")
    assert found.nothing_known.tolist() == [False, True, True]
    assert staged.rank([3], 7, stage=stage).nothing_known is None
    ids, scores = parts(found)
    rows = np.concatenate(
        [staged.rank([3], 7, stage=stage).ids, *[staged.rank(staged.fold_in([[]]), 7, stage=stage).ids] * 2]
    )
    np.testing.assert_array_equal(ids, rows)
    with pytest.warns(UserWarning, match="queries: 2 of 3"):
        np.testing.assert_allclose(
            staged.explain([3, 999, -4], 7, stage=stage, unknown="ignore").score, scores, atol=1e-5
        )
    with pytest.warns(UserWarning, match="exclude: 1 of 2 ids were not seen in fit and are left out; .* of query 0"):
        without = staged.rank([3], 6, stage=stage, exclude=[[ids[0, 0], 999]], unknown="ignore").ids
    np.testing.assert_array_equal(without[0], ids[0, 1:])
    with pytest.warns(UserWarning, match="items: 1 of 2 ids were not seen in fit and have the score -inf"):
        found = staged.scores([3], [999, ids[0, 0]], stage=stage, unknown="ignore")
    np.testing.assert_allclose(found, [[-np.inf, scores[0, 0]]], rtol=1e-5)
    with pytest.warns(UserWarning, match="items: 1 of 2 ids were not seen in fit and count as not found"):
        assert staged.recall([3, 3], [999, ids[0, 0]], [1], stage=stage, unknown="ignore") == {1: 0.5}


@pytest.mark.parametrize("named", [False, True])
def test_a_query_that_is_an_item_need_not_be_shown_itself(pairs, ranker, named):
    name = (lambda ids: np.char.add("i", np.asarray(ids).astype(str))) if named else np.asarray
    if named:
        ranker = make_latent(**SMALL).fit(name(pairs.queries), name(pairs.items))
    asked, own = name([3, 25]), name([[3], [25]])
    found = ranker.rank(asked, 20, exclude_seen="last")
    np.testing.assert_array_equal(found.ids, ranker.rank(asked, 20, exclude=own).ids)
    both = ranker.rank(asked, 20, exclude_seen="last", exclude=found.ids[:, :1])
    np.testing.assert_array_equal(both.ids[:, :5], found.ids[:, 1:6])
    everything = ranker.rank(asked, 120, exclude_seen="last").lists()
    assert not any(item in ids for item, ids in zip(asked, everything, strict=True))
    assert ranker.recall(asked, asked, [120], exclude_seen="last") == {120: 0.0}
    with pytest.raises(ValueError, match="exclude_seen: expected False or 'last' where queries are ids"):
        ranker.rank(asked, exclude_seen=True)
    with pytest.raises(ValueError, match="exclude_seen: expected False where queries are rows, found 'last'"):
        ranker.rank(ranker.fold_in(own), exclude_seen="last")


def test_one_id_is_a_list_of_one(pairs, ranker):
    base = np.zeros((120, 120))
    np.add.at(base, (pairs.queries, pairs.items), 1.0)
    reranker = make_reranker(base, 4, epochs=1, validation_fraction=0.0).fit(pairs.queries, pairs.items)
    for one in (ranker, reranker):
        np.testing.assert_array_equal(one.rank(3, 5).ids, one.rank([3], 5).ids)
        np.testing.assert_array_equal(one.scores(np.int64(3), [7, 9]), one.scores([3], [7, 9]))


@pytest.mark.parametrize("queries", [["3", 4], [[3], [4, 5]], {3}, b"3", None])
def test_what_is_no_row_of_ids_is_refused(ranker, queries):
    with pytest.raises(ValueError, match="queries: expected"):
        ranker.rank(queries)


def test_unknown_items_can_be_left_out_of_new_queries(ranker):
    with pytest.warns(UserWarning, match="items: 2 of 4 ids were not seen in fit and are left out"):
        rows = ranker.fold_in([[5, 999, 7], [998]], unknown="ignore")
    np.testing.assert_array_equal(rows.vectors, ranker.fold_in([[5, 7], []]).vectors)


@pytest.mark.filterwarnings("error")
def test_ids_of_another_kind_are_an_error_all_the_same(ranker):
    with pytest.raises(ValueError, match="queries: expected ids as in fit, whole numbers, found dtype <U1"):
        ranker.rank(["a"], unknown="ignore")
    with pytest.raises(ValueError, match="unknown: expected 'error' or 'ignore', found 'drop'"):
        ranker.rank([3], unknown="drop")
    ranker.rank([3], unknown="ignore", exclude=[[5]])  # nothing to warn of


# --- vectors and an index of them ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", [0, 1, 2, None])
def test_scores_are_inner_products_of_vectors(staged, stage):
    scores = staged.query_vectors(staged.query_ids_, stage) @ staged.item_vectors(stage).T
    lengths = np.linalg.norm(staged.item_vectors(stage), axis=1)
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-5)
    width = {"semidefinite": 18, "bilinear": 18, "both": 26}[staged.pair_]
    assert staged.item_vectors(stage).shape == (120, 10 if stage == 0 else width)
    np.testing.assert_allclose(
        -np.sort(-scores)[:, :5], staged.rank(staged.query_ids_, 5, stage=stage).scores, atol=1e-5
    )


def test_vectors_are_asked_of_a_fitted_ranker(ranker):
    with pytest.raises(ValueError, match="stage: expected a number from 0 to 0, found 1"):
        ranker.item_vectors(1)
    for call in (lambda r: r.item_vectors(), lambda r: r.query_vectors([3]), lambda r: r.fold_in([[3]])):
        with pytest.raises(NotFittedError):
            call(make_latent())


@pytest.mark.parametrize("stage", [0, 2])
def test_an_index_finds_most_of_what_rank_finds(tmp_path, staged, stage):
    usearch = pytest.importorskip("usearch.index")
    staged.export_index(tmp_path / "items.usearch", stage)
    index = usearch.Index.restore(str(tmp_path / "items.usearch"))
    assert len(index) == 120
    keys = index.search(staged.query_vectors(staged.query_ids_, stage), 10).keys.astype(np.int64)
    exact = staged.rank(staged.query_ids_, k=10, stage=stage).ids
    found = [np.isin(row, staged.item_ids_[own]).mean() for row, own in zip(exact, keys, strict=True)]
    assert np.mean(found) > 0.95


def test_an_index_has_the_same_bytes_with_one_thread(tmp_path, pairs):
    pytest.importorskip("usearch.index")
    ranker = make_latent(**SMALL, n_jobs=1).fit(pairs.queries, pairs.items)
    for name in ("one", "two"):
        ranker.export_index(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_without_usearch_the_extra_is_named(tmp_path, ranker, monkeypatch):
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(ImportError, match=r"pip install 'slatewise\[ann\]'"):
        ranker.export_index(tmp_path / "items")
    assert not (tmp_path / "items").exists()


# --- a mapped file ---------------------------------------------------------------------------------------------------


def test_a_mapped_model_ranks_with_the_same_bits(tmp_path, staged):
    staged.save(tmp_path / "model.safetensors")
    back = slatewise.load(tmp_path / "model.safetensors", mmap=True)
    for factors in (back.item_factors_, back.query_factors_):
        assert not factors.flags.writeable
    for stage in (0, 1, 2):
        for one, other in zip(
            parts(staged.rank(staged.query_ids_, stage=stage)),
            parts(back.rank(staged.query_ids_, stage=stage)),
            strict=True,
        ):
            assert one.tobytes() == other.tobytes()
    assert back.similar_items([3]).scores.tobytes() == staged.similar_items([3]).scores.tobytes()
    assert back.fold_in([[3, 5]]).vectors.tobytes() == staged.fold_in([[3, 5]]).vectors.tobytes()
    assert back.explain([3], k=4).score.tobytes() == staged.explain([3], k=4).score.tobytes()


def test_a_mapped_model_with_names_goes_on_learning(tmp_path, pairs):
    names = np.array([f"artist {number}" for number in range(120)])
    ranker = make_latent(**SMALL).fit(names[pairs.queries], names[pairs.items])
    ranker.save(tmp_path / "m")
    back = slatewise.load(tmp_path / "m", mmap=True)
    assert back.rank(["artist 7"]).ids.tolist() == ranker.rank(["artist 7"]).ids.tolist()
    for one in (back, ranker):
        one.partial_fit(["new", "new"], ["artist 3", "newer"])
    assert back.rank(["new"]).scores.tobytes() == ranker.rank(["new"]).scores.tobytes()


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    pytest.importorskip("usearch.index")
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "latent.rst"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert not failed
    assert tried > 20


# --- a quantized index -----------------------------------------------------------------------------------------------


@pytest.fixture
def quantized(monkeypatch):
    """Make indexes for small catalogues too, as for large ones."""
    monkeypatch.setattr("slatewise.factors.ranking.FEWEST_INDEXED", 1)


@pytest.mark.usefixtures("quantized")
def test_one_query_has_the_list_it_has_among_many(staged):
    together = {stage: staged.rank(staged.query_ids_, k=8, stage=stage) for stage in (0, 1, 2)}
    hidden = [together[2].ids[row, :3] for row in range(len(staged.query_ids_))]
    without = staged.rank(staged.query_ids_, k=8, exclude=hidden)
    similar = staged.similar_items(staged.item_ids_, k=8)
    for row, query in enumerate(staged.query_ids_[:20]):
        alone = [(staged.rank([query], k=8, stage=stage), together[stage]) for stage in (0, 1, 2)]
        alone.append((staged.rank([query], k=8, exclude=[hidden[row]]), without))
        for one, every in alone:
            np.testing.assert_array_equal(one.ids[0], every.ids[row])
            np.testing.assert_allclose(one.scores[0], every.scores[row], rtol=1e-5, atol=1e-6)
        ids, scores = parts(staged.similar_items(staged.item_ids_[[row]], k=8))
        np.testing.assert_array_equal(ids[0], similar.ids[row])
        np.testing.assert_allclose(scores[0], similar.scores[row], atol=1e-6)


@pytest.mark.usefixtures("quantized")
def test_an_index_goes_with_the_factors_it_was_made_of(pairs, tmp_path):
    ranker = make_latent(**SMALL).fit(pairs.queries, pairs.items)
    before = ranker.rank([3], k=8).scores, ranker.similar_items([3], k=8).scores
    for _ in range(2):
        ranker.partial_fit(pairs.queries, pairs.items)
        for one, all_, old in zip(
            (ranker.rank([3], k=8).scores, ranker.similar_items([3], k=8).scores),
            (ranker.rank([3] * 9, k=8).scores, ranker.similar_items([3] * 9, k=8).scores),
            before,
            strict=True,
        ):
            np.testing.assert_allclose(one[0], all_[0], rtol=1e-5, atol=1e-6)
            assert not np.allclose(one, old, rtol=1e-5, atol=1e-6)
    ranker.save(tmp_path / "model.safetensors")
    back = slatewise.load(tmp_path / "model.safetensors", mmap=True)
    assert back.rank([3], k=8).scores.tobytes() == ranker.rank([3], k=8).scores.tobytes()


@pytest.mark.usefixtures("quantized")
def test_indexes_are_neither_copied_nor_kept_after_another_fit(pairs):
    ranker = make_latent(**SMALL).fit(pairs.queries, pairs.items)
    attributes = set(vars(ranker))
    former = weakref.ref(ranker.item_factors_)
    ids, scores = parts(ranker.rank([3], k=8))
    ranker.similar_items([3])
    assert set(vars(ranker)) == attributes
    other = copy.deepcopy(ranker)
    assert other.__dict__.get("_frozen") is None
    assert len(pickle.dumps(ranker)) < 2.0 * (ranker.item_factors_.nbytes + ranker.query_factors_.nbytes)
    np.testing.assert_array_equal(other.rank([3], k=8).ids, ids)
    np.testing.assert_array_equal(other.rank([3], k=8).scores, scores)
    ranker.fit(pairs.items, pairs.queries)
    gc.collect()
    assert former() is None


@pytest.mark.usefixtures("quantized")
def test_few_rows_of_features_are_ranked_as_many_are():
    X = np.random.default_rng(0).normal(size=(40, 6))
    ranker = make_featured(6, stages=2, epochs=3, validation_fraction=0.0).fit(X, np.arange(40) % 9)
    for rows in (X, csr_array(X)):
        ids, scores = parts(ranker.rank(rows, k=5))
        one = ranker.rank(rows[:2], k=5)
        np.testing.assert_array_equal(one.ids, ids[:2])
        np.testing.assert_allclose(one.scores, scores[:2], rtol=1e-5, atol=1e-6)
