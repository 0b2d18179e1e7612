"""StructuredReranker: what it ranks, that it helps, ids, files, refusals."""

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csr_array, csr_matrix
from sklearn.base import clone
from sklearn.decomposition import NMF, TruncatedSVD
from sklearn.exceptions import NotFittedError

from slatewise import datasets, load
from tests.factors.flat import make_latent, make_reranker
from tests.factors.reference import parts


class Named:
    """A scorer of strings, which remembers how much it was asked for at once."""

    def __init__(self, scores, queries, items):
        self.table, self.queries, self.items = scores, list(queries), list(items)
        self.largest = 0

    def scores(self, queries, items):
        self.largest = max(self.largest, len(queries))
        rows, columns = [self.queries.index(q) for q in queries], [self.items.index(d) for d in items]
        return self.table[np.ix_(rows, columns)]


@pytest.fixture(scope="module")
def sessions():
    """Two halves of pairs of sessions in clusters, and a base that knows the first half only."""
    pairs = datasets.make_sessions(1500, 120, n_clusters=12, follow=0.0, stay=0.8, random_state=3).sessions.pairs()
    first = np.random.default_rng(0).random(len(pairs.queries)) < 0.15
    counts = np.zeros((120, 120))
    np.add.at(counts, (pairs.queries[first], pairs.items[first]), 1.0)
    rest = np.flatnonzero(~first)
    train, test = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    base = np.log1p(counts) + 0.3 * np.random.default_rng(1).normal(size=counts.shape)
    return base, (pairs.queries[train], pairs.items[train]), (pairs.queries[test], pairs.items[test])


SMALL = {"n_components": 8, "k": 10, "base_scale": 2.0, "epochs": 6, "random_state": 0}


@pytest.fixture(scope="module")
def fitted(sessions):
    base, train, _ = sessions
    return make_reranker(base, stages=2, **SMALL).fit(*train)


def test_it_finds_what_the_base_does_not_know(sessions, fitted):
    _, _, test = sessions
    before, after = fitted.recall(*test, stage=0), fitted.recall(*test)
    assert fitted.n_stages_ >= 1
    assert after[10] > before[10] * 1.1


def test_lists_are_those_of_the_formula(sessions, fitted):
    base, _, _ = sessions
    scaled = base / fitted.base_unit_
    ids, scores = parts(fitted.rank([3, 77], k=120, stage=1))
    S = fitted.pair_factors_[0].astype(float)
    for place, query in enumerate((3, 77)):
        listed = np.argsort(-scaled[query], kind="stable")[:10]
        expected = scaled[query] + S @ sum(S[j] / (r + 1) for r, j in enumerate(listed))
        np.testing.assert_allclose(scores[place], expected[ids[place]], atol=1e-3)
        np.testing.assert_allclose(scores[place], -np.sort(-expected), atol=1e-3)
    assert fitted.rank([3], k=5, stage=0).ids.tolist() == [np.argsort(-base[3], kind="stable")[:5].tolist()]


def test_the_unit_makes_the_gap_of_the_lists_the_scale(sessions, fitted):
    base, (queries, _), _ = sessions
    best = -np.sort(-base[np.unique(queries)], axis=1)
    assert fitted.base_unit_ == pytest.approx((best[:, 0] - best[:, 9]).mean() / 2.0, rel=1e-5)
    doubled = make_reranker(2.0 * base, stages=2, **SMALL).fit(*sessions[1])
    np.testing.assert_allclose(doubled.pair_factors_, fitted.pair_factors_, atol=1e-5)


def test_recall_counts_pairs(sessions, fitted):
    queries, items = sessions[2][0][:200], sessions[2][1][:200]
    ids = fitted.rank(queries, k=10).ids
    hits = [item in row[:5] for item, row in zip(items.tolist(), ids.tolist(), strict=True)]
    assert fitted.recall(queries, items, (5,))[5] == pytest.approx(np.mean(hits))


def test_hidden_items_do_not_show(fitted):
    ids = fitted.rank([3, 4], k=5).ids
    hidden = csr_array((np.ones(2), ([0, 1], [ids[0, 0], ids[1, 2]])), shape=(2, 120))
    for exclude in ([[ids[0, 0]], [ids[1, 2]]], hidden):
        without = fitted.rank([3, 4], k=4, exclude=exclude).ids
        assert without.tolist() == [ids[0, 1:].tolist(), [ids[1, 0], ids[1, 1], ids[1, 3], ids[1, 4]]]


@pytest.mark.parametrize("stage", [0, 1])
def test_a_query_that_excludes_too_many_has_a_short_list(fitted, stage):
    everything, scores = parts(fitted.rank([3, 4], k=120, stage=stage))
    found = fitted.rank([3, 4], k=4, stage=stage, exclude=[everything[0, 2:], []])
    assert [ids.tolist() for ids in found.lists()] == [everything[0, :2].tolist(), everything[1, :4].tolist()]
    np.testing.assert_allclose(found.list_scores(0), scores[0, :2], rtol=1e-5)
    why = fitted.explain([3, 4], k=4, stage=stage, exclude=[everything[0, 2:], []])
    np.testing.assert_array_equal(why.items, [[*everything[0, :2], -1, -1], everything[1, :4]])
    np.testing.assert_allclose(why.score[0], [*found.list_scores(0), -np.inf, -np.inf], atol=1e-5)
    np.testing.assert_allclose(why.score[1], found.list_scores(1), atol=1e-5)


@pytest.mark.parametrize("form", ["dense", "sparse", "vectors"])
def test_unknown_queries_get_the_mean_of_the_base_and_are_counted(sessions, form):
    base, train, _ = sessions
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(120, 3)), rng.normal(size=(120, 3))
    forms = {"dense": (base, base), "sparse": (csr_array(base), base), "vectors": (vectors, vectors[0] @ vectors[1].T)}
    given, table = forms[form]
    fitted = make_reranker(given, **SMALL | {"epochs": 1}).fit(*train)
    with pytest.raises(ValueError, match="queries: expected row numbers below 120, the base's rows, found 500"):
        fitted.rank([3, 500])
    with pytest.warns(UserWarning, match="queries: 2 of 3 ids are no rows of the base and get the mean .*: 500"):
        ids, scores = parts(fitted.rank([500, 3, -1], k=5, stage=0, unknown="ignore"))
    expected = -np.sort(-table.mean(axis=0))[:5] / fitted.base_unit_
    np.testing.assert_allclose(scores, [expected, fitted.rank([3], k=5, stage=0).scores[0], expected], rtol=1e-4)
    with pytest.warns(UserWarning, match="exclude: 1 of 2 ids"):
        left = fitted.rank([3], k=4, stage=0, exclude=[[ids[1, 0], 500]], unknown="ignore").ids
    np.testing.assert_array_equal(left[0], ids[1, 1:])
    with pytest.warns(UserWarning, match="items: 1 of 2 ids were not seen in fit and count as not found"):
        assert fitted.recall([3, 3], [ids[1, 0], 500], [1], stage=0, unknown="ignore") == {1: 0.5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda base: base * 1e-38, "base: expected lists that span .* on average, found"),
        (lambda base: (base * 1e-44).astype(np.float32), "base: expected lists that span .* on average, found"),
        (lambda base: csr_array(base * 1e-300), "base: expected scores that float32 can hold, found none above"),
        (
            lambda base: np.where(np.arange(120)[:, None] == 3, np.float32(3e38), base.astype(np.float32) * 1e-25),
            "base: expected scores that float32 holds in units of",
        ),
    ],
    ids=["tiny gaps", "tiny gaps, float32", "below float32, sparse", "of all sizes"],
)
def test_gaps_that_float32_does_not_have_are_named(sessions, change, message):
    base, train, _ = sessions
    with pytest.raises(ValueError, match=message):
        make_reranker(change(base), **SMALL).fit(*train)


@pytest.mark.parametrize("change", [(1e-300, 0.0), (1e-9, 1.0), (1e-5, 100.0)])
def test_rows_that_float32_cannot_tell_apart_are_counted(sessions, change):
    base, train, _ = sessions
    one = np.arange(120)[:, None] == np.unique(train[0])[3]
    rows = np.where(one, base * change[0] + change[1], base)
    with pytest.warns(UserWarning, match="base: float32 cannot tell the scores of 1 of .* rows apart, the first is 3"):
        make_reranker(rows, **SMALL | {"epochs": 1}).fit(*train)


def test_the_unit_of_the_base_does_not_matter(sessions, fitted):
    base, train, _ = sessions
    small = make_reranker(base * 1e-25, stages=2, **SMALL).fit(*train)
    np.testing.assert_allclose(small.pair_factors_, fitted.pair_factors_, atol=1e-4)
    assert np.array_equal(small.rank([3, 4]).ids, fitted.rank([3, 4]).ids)


def test_a_scorer_of_strings_is_the_matrix_again(sessions, fitted, monkeypatch):
    base, (queries, items), (test_queries, test_items) = sessions
    names = np.array([f"a{i:03d}" for i in range(120)])
    scorer = Named(base, names, names)
    seen = np.unique(items)
    assert len(seen) == 120  # so that both catalogues are the same
    named = make_reranker(scorer, stages=2, **SMALL).fit(names[queries], names[items])
    assert named.pair_factors_.tobytes() == fitted.pair_factors_.tobytes()
    assert named.recall(names[test_queries], names[test_items]) == fitted.recall(test_queries, test_items)
    # What is kept is asked for piece by piece as well.
    monkeypatch.setattr("slatewise.factors.scoring.MOST_SCORES", 50 * 120)
    scorer.largest = 0
    assert named.recall(names[test_queries], names[test_items], stage=0) == fitted.recall(
        test_queries, test_items, stage=0
    )
    assert scorer.largest == 50
    monkeypatch.undo()
    # A table that is too large to keep is asked for block by block, with the same result.
    monkeypatch.setattr("slatewise.latent.base_scores.MOST_KEPT", 0)
    scorer.largest = 0
    again = make_reranker(scorer, stages=2, n_jobs=2, **SMALL).fit(names[queries], names[items])
    assert scorer.largest <= 128
    assert again.pair_factors_.tobytes() == fitted.pair_factors_.tobytes()


def test_a_sparse_matrix_is_the_dense_one(sessions, monkeypatch):
    base, train, test = sessions
    counts = csr_array(np.where(base > 1.0, base, 0.0))
    dense = make_reranker(counts.toarray(), **SMALL).fit(*train)
    assert dense.n_stages_ == 1
    asked = []
    whole = csr_array.toarray
    monkeypatch.setattr(csr_array, "toarray", lambda rows: asked.append(rows.shape) or whole(rows))
    monkeypatch.setattr("slatewise.factors.scoring.MOST_SCORES", 5 * 120)
    for sparse in (counts, counts.tocsc(), coo_matrix(counts)):
        again = make_reranker(sparse, **SMALL).fit(*train)
        np.testing.assert_allclose(again.pair_factors_, dense.pair_factors_, atol=1e-4)
        assert again.recall(*test, stage=0) == dense.recall(*test, stage=0)
    assert max(rows for rows, _ in asked) <= 5  # never whole


def test_entries_stored_twice_are_added():
    twice = csr_array((np.array([1, 2, 1, 1]), np.array([1, 1, 2, 0]), np.array([0, 2, 3, 4])), shape=(3, 3))
    settings = SMALL | {"epochs": 1, "validation_fraction": 0.0}
    reranker = make_reranker(twice, **settings).fit([0, 1, 2], [1, 2, 0])
    assert reranker.rank([0], k=1, stage=0).scores * reranker.base_unit_ == pytest.approx(3.0)
    assert len(twice.data) == 4  # the caller's matrix stays as it was


def factorised(counts):
    svd, nmf = TruncatedSVD(8, random_state=0), NMF(8, random_state=0, max_iter=1000)
    yield svd.fit_transform(counts), svd.components_.T
    yield nmf.fit_transform(counts), nmf.components_.T


def test_factors_of_other_libraries_are_the_matrix_of_their_products(sessions, tmp_path):
    base, train, test = sessions
    counts = csr_array(np.maximum(base, 0.0))
    for vectors in factorised(counts):
        dense = make_reranker(vectors[0] @ vectors[1].T, **SMALL).fit(*train)
        reranker = make_reranker(vectors, **SMALL).fit(*train)
        assert reranker.base_unit_ == pytest.approx(dense.base_unit_, rel=1e-5)
        assert reranker.recall(*test, stage=0) == dense.recall(*test, stage=0)
        assert reranker.recall(*test)[10] > reranker.recall(*test, stage=0)[10]
        own = reranker.explain([3, 77], k=4).own * reranker.base_unit_
        ids = reranker.rank([3, 77], k=4).ids
        np.testing.assert_allclose(own, (vectors[0] @ vectors[1].T)[[[3], [77]], ids], rtol=1e-4, atol=1e-5)
    reranker.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors").set_params(base=vectors)
    assert again.recall(*test) == reranker.recall(*test)
    with pytest.raises(ValueError, match="base: expected scores of the 120 items of fit, found 119 columns"):
        again.set_params(base=(vectors[0], vectors[1][:119])).rank([3])
    assert clone(reranker).get_params()["base"][1].shape == (120, 8)


@pytest.mark.filterwarnings("ignore:OpenBLAS is configured:RuntimeWarning")
def test_a_model_of_implicit_is_a_base(sessions):
    als = pytest.importorskip("implicit.cpu.als")
    base, train, test = sessions
    model = als.AlternatingLeastSquares(factors=8, iterations=5, num_threads=1, random_state=0)
    model.fit(csr_matrix(np.maximum(base, 0.0).astype(np.float32)), show_progress=False)
    reranker = make_reranker((model.user_factors, model.item_factors), **SMALL).fit(*train)
    ids = reranker.rank([3], k=5, stage=0).ids
    theirs = model.recommend(3, csr_matrix((1, 120), dtype=np.float32), N=5, filter_already_liked_items=False)[0]
    assert ids[0].tolist() == theirs.tolist()
    assert reranker.recall(*test)[10] >= reranker.recall(*test, stage=0)[10]


def test_a_latent_ranker_is_a_base(sessions):
    _, (queries, items), test = sessions
    half, every = len(queries) // 2, np.arange(120)  # every item is there at least once
    latent = make_latent(8, epochs=3, random_state=0).fit(
        np.append(queries[:half], every), np.append(items[:half], every)
    )
    assert len(latent.item_ids_) == 120
    reranker = make_reranker(latent, **SMALL).fit(queries[half:], items[half:])
    assert reranker.rank([3, 77], k=5, stage=0).ids.tolist() == latent.rank([3, 77], k=5).ids.tolist()
    assert reranker.recall(*test, stage=0) == latent.recall(*test)


def test_a_base_of_numbers_does_not_serve_a_fit_with_other_ids(sessions):
    base, (queries, items), _ = sessions
    names = np.array([f"a{i:03d}" for i in range(120)])
    settings = SMALL | {"epochs": 1, "validation_fraction": 0.0}
    named = make_reranker(Named(base, names, names), **settings).fit(names[queries], names[items])
    with pytest.raises(ValueError, match="base: expected scores of the 120 items of fit"):
        named.set_params(base=base).rank([3])


def test_threads_change_no_bit(sessions, fitted):
    base, train, _ = sessions
    for n_jobs in (1, 2):
        again = make_reranker(base, stages=2, n_jobs=n_jobs, **SMALL).fit(*train)
        assert again.pair_factors_.tobytes() == fitted.pair_factors_.tobytes()


@pytest.mark.parametrize("weight", [1e308, 1e-300])
def test_only_the_ratio_of_weights_counts(sessions, weight):
    base, train, _ = sessions
    settings = SMALL | {"epochs": 1, "validation_fraction": 0.0}
    fits = [
        make_reranker(base, **settings).fit(*train, np.full(len(train[0]), size)).pair_factors_
        for size in (1.0, weight)
    ]
    np.testing.assert_array_equal(*fits)
    some = np.where(train[0] == 3, 1e-30, 1.0)
    assert np.isfinite(make_reranker(base, **settings).fit(*train, some).pair_factors_).all()


def test_a_stage_that_does_not_help_is_left_out(sessions):
    base, (queries, items), (test_queries, test_items) = sessions
    perfect = np.zeros(base.shape)
    np.add.at(perfect, (queries, items), 1.0)
    with pytest.warns(UserWarning, match="stages: 0 of 3 are kept: the next one did not raise the recall"):
        reranker = make_reranker(perfect, stages=3, **SMALL | {"base_scale": 500.0}).fit(queries, items)
    assert reranker.n_stages_ == 0
    assert reranker.recall(test_queries, test_items) == reranker.recall(test_queries, test_items, stage=0)


def test_an_indefinite_pair_term_can_say_not_together(tmp_path):
    """The base puts an item's own kind first; what is right is always of the other kind."""
    rng = np.random.default_rng(0)
    kind = np.arange(40) % 2
    base = 1.0 * (kind[:, None] == kind) + 0.5 * rng.random((40, 40))
    queries = rng.integers(0, 40, 1500)
    items = 2 * rng.integers(0, 20, 1500) + 1 - kind[queries]
    settings = SMALL | {"k": 5, "learning_rate": 0.3, "max_norm": 4.0, "base_scale": 0.2, "epochs": 15}
    pairs = ("semidefinite", "bilinear", "both")
    fitted = {pair: make_reranker(base, pair=pair, **settings).fit(queries, items) for pair in pairs}
    recall = {pair: reranker.recall(queries, items, (20,))[20] for pair, reranker in fitted.items()}
    assert recall["semidefinite"] < 0.7
    for pair in ("bilinear", "both"):
        assert recall[pair] > 0.95
        fitted[pair].save(tmp_path / "model.safetensors")
        again = load(tmp_path / "model.safetensors").set_params(base=base)
        assert again.recall(queries, items, (20,))[20] == recall[pair]


def test_epochs_are_reported_and_without_held_out_pairs_all_are_run(sessions):
    base, train, _ = sessions
    reports = []
    settings = SMALL | {"validation_fraction": 0.0, "epochs": 3, "callbacks": [reports.append]}
    reranker = make_reranker(base, **settings).fit(*train)
    assert [(report.stage, report.epoch, report.recall) for report in reports] == [
        (1, 1, None),
        (1, 2, None),
        (1, 3, None),
    ]
    assert reranker.n_epochs_ == [3]


def test_saved_without_its_base(sessions, fitted, tmp_path):
    base, _, test = sessions
    path = tmp_path / "reranker.safetensors"
    fitted.save(path)
    again = load(path)
    assert again.base is None
    with pytest.raises(ValueError, match="base: expected a matrix of scores"):
        again.rank([3])
    again.set_params(base=base)
    assert again.recall(*test) == fitted.recall(*test)
    assert fitted.base is base


def test_factors_that_do_not_fit_are_not_saved(fitted, tmp_path):
    kept = fitted.pair_factors_
    try:
        fitted.pair_factors_ = kept[:, :5]
        with pytest.raises(ValueError, match="pair_factors_: expected float32 of shape"):
            fitted.save(tmp_path / "reranker.safetensors")
    finally:
        fitted.pair_factors_ = kept


def test_clone_and_parameters(sessions):
    reranker = make_reranker(sessions[0], k=7)
    again = clone(reranker)
    assert again.get_params()["stages__k"] == 7
    with pytest.raises(NotFittedError):
        again.rank([1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base": None}, "base: expected a matrix of scores"),
        ({"base": [1.0, 2.0]}, "base: expected a matrix of scores"),
        ({"base": [[1.0], [1.0, 2.0]]}, "base: expected a matrix of scores"),
        (
            {"base": (np.ones((120, 2)), np.ones((3, 120)))},
            r"base: expected vectors .*, found \(120, 2\) and \(3, 120\)",
        ),
        ({"base": (np.ones((120, 2)), np.full((120, 2), np.inf))}, r"base: expected finite .*, found inf at \[0, 0\]"),
        ({"base": (np.full((120, 2), 1e30), np.full((120, 2), 1e30))}, "base: expected vectors whose products float32"),
        ({"base": csr_array(np.diag(np.arange(120.0)) * 1e38)}, r"base: expected finite .*, found 4e\+38 at \[4, 4\]"),
        ({"base": csr_array(np.ones((120, 120), dtype=complex))}, "base: expected numbers, found dtype complex128"),
        ({"base": np.full((120, 120), np.nan)}, r"base: expected finite float32 numbers, found nan at \[0, 0\]"),
        ({"base": np.diag([1e300] * 120)}, r"base: expected finite float32 numbers, found 1e\+300 at \[0, 0\]"),
        ({"pair": "any"}, "Stages.pair: expected one of semidefinite, bilinear, both, found 'any'"),
        ({"k": 0}, "Stages.k: expected a whole number from 1 to 1048576, found 0"),
        ({"stages": True}, "Stages.n: expected a whole number"),
        ({"batch_size": 0}, "batch_size: expected a whole number from 1 .* found 0"),
        ({"batch_size": "all"}, "batch_size: expected a whole number from 1 .* found 'all'"),
        ({"random_state": -1}, "random_state: expected None or a whole number from 0 .* found -1"),
        ({"base_scale": 0.0}, "base_scale: expected a finite float32 number > 0, found 0.0"),
        ({"max_norm": np.inf}, "Stages.max_norm: expected a number > 0 and at most .*, found inf"),
        ({"validation_fraction": "some"}, "validation_fraction: expected a number from 0 to below 1, found 'some'"),
        ({"validation_fraction": 1.0}, "validation_fraction: expected a number from 0 to below 1, found 1.0"),
    ],
)
def test_bad_parameters_are_named(sessions, change, message):
    base, train, _ = sessions
    with pytest.raises(ValueError, match=message):
        make_reranker(**{"base": base, **SMALL, **change}).fit(*train)


def test_bad_ids_are_named(sessions, fitted):
    base, (queries, items), _ = sessions
    reranker = make_reranker(base, **SMALL)
    for arguments, message in [
        ((queries, items[:-1]), "items: expected one per query"),
        ((queries, np.where(items == 0, 120, items)), "items: expected column numbers below 120, .*, found 120"),
        ((np.where(queries == 0, -1, queries), items), "queries: expected row numbers below 120, .*, found -1"),
        ((queries.astype(str), items), "queries: expected row numbers below 120, .*, found dtype <U"),
        ((queries, items.astype(str)), "items: expected column numbers below 120, .*, found dtype <U"),
        ((np.zeros((3, 2)), items), "queries: expected a one-dimensional array"),
    ]:
        with pytest.raises(ValueError, match=message):
            reranker.fit(*arguments)
    with pytest.raises(ValueError, match=r"queries: expected row numbers below 120, .*, found 500"):
        fitted.rank([500])
    with pytest.raises(ValueError, match=r"queries: expected row numbers below 120, .*, found dtype <U1"):
        fitted.rank(["a"], 3)
    with pytest.raises(ValueError, match=r"queries: expected row numbers below 120, .*, found dtype <U1"):
        fitted.recall(["a"], [3])
    with pytest.raises(ValueError, match="stage: expected a number from 0"):
        fitted.rank([3], stage=9)
    with pytest.raises(ValueError, match="items: expected one per query, 2, found 1"):
        fitted.recall([3, 4], [5])
    with pytest.raises(ValueError, match="items: expected ids seen in fit, found 999"):
        fitted.recall([3], [999])


def test_a_catalogue_may_be_shorter_than_the_lists():
    rng = np.random.default_rng(0)
    queries, items = rng.integers(0, 6, 200), rng.integers(0, 4, 200)
    settings = SMALL | {"validation_fraction": 0.0, "epochs": 1}
    reranker = make_reranker(rng.normal(size=(6, 4)), **settings).fit(queries, items)
    why = reranker.explain([1, 2], k=3)
    assert why.moved_by.shape == (2, 3, 4)
    np.testing.assert_allclose(why.score, reranker.rank([1, 2], k=3).scores, atol=1e-4)
    np.testing.assert_array_equal(why.items, reranker.rank([1, 2], k=3, stage=np.int64(1)).ids)


def test_a_base_of_large_numbers_has_a_unit():
    base = np.where(np.eye(6), 3e38, -3e38)
    queries = np.repeat(np.arange(6), 20)
    settings = SMALL | {"epochs": 1, "validation_fraction": 0.0}
    reranker = make_reranker(base, **settings).fit(queries, np.roll(queries, 7))
    assert reranker.base_unit_ == pytest.approx(3e38, rel=1e-6)
    assert np.isfinite(reranker.rank([1], k=6).scores).all()


def test_a_scorer_that_returns_another_shape_is_told(sessions):
    _, train, _ = sessions

    class Wrong:
        def scores(self, queries, items):
            return np.zeros(len(queries))

    with pytest.raises(ValueError, match=r"base: expected scores of shape \(\d+, \d+\) \(queries, items\), found"):
        make_reranker(Wrong(), **SMALL).fit(*train)


def test_parameters_set_after_fit_change_no_answer(sessions, fitted, tmp_path):
    base, _, _ = sessions
    fitted.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors").set_params(
        base=base, stages__k=3, n_components=4, stages__pair="bilinear"
    )
    np.testing.assert_array_equal(again.rank([3, 77]).scores, fitted.rank([3, 77]).scores)
    np.testing.assert_array_equal(again.explain([3]).moved_by, fitted.explain([3]).moved_by)


def test_a_reranker_can_be_the_base_of_another(sessions, fitted):
    _, train, _ = sessions
    settings = SMALL | {"epochs": 1, "validation_fraction": 0.0}
    again = make_reranker(fitted, **settings).fit(*train)
    np.testing.assert_array_equal(again.rank([3, 77], k=5, stage=0).ids, fitted.rank([3, 77], k=5).ids)


def test_one_query_of_a_large_catalogue_has_the_list_it_has_among_many(fitted, monkeypatch):
    together = fitted.rank([3, 4, 5, 6, 7, 8], k=6)
    monkeypatch.setattr("slatewise.factors.ranking.FEWEST_INDEXED", 1)
    monkeypatch.setattr("slatewise.factors.scoring.ITEMS_PER_SHARE", 50)
    for row, query in enumerate(together.query_ids):
        alone = fitted.rank([query], k=6)
        np.testing.assert_array_equal(alone.ids[0], together.ids[row])
        np.testing.assert_allclose(alone.scores[0], together.scores[row], rtol=1e-5)
