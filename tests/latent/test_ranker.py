import copy
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import slatewise
from slatewise import LatentFeatureRanker, datasets
from slatewise.core.errors import ModelFileError
from slatewise.factors import Stages
from slatewise.factors.pairs import hold_out_pairs, id_pairs
from slatewise.persistence.file import read_model, write_model
from tests.factors.flat import make_featured, make_latent
from tests.factors.reference import parts
from tests.interrupted_fits import KILLED, exit_code

SMALL = {"n_components": 8, "epochs": 6, "learning_rate": 0.3, "max_norm": 2.5, "random_state": 0}
"""Without a search for the step and the norm, which test_learner.py looks at."""


@parametrize_with_checks([LatentFeatureRanker(n_components=4, epochs=2)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def made():
    return datasets.make_sessions(300, 60, n_clusters=6, random_state=0)


@pytest.fixture(scope="module")
def pairs(made):
    return made.sessions.pairs()


@pytest.fixture(scope="module")
def ranker(pairs):
    return make_latent(**SMALL).fit(pairs.queries, pairs.items)


@pytest.fixture(scope="module")
def staged(pairs):
    return make_latent(**{**SMALL, "stages": 2, "validation_fraction": 0.0}).fit(pairs.queries, pairs.items)


def scores_of(ranker, stage=0):
    """Every query against every item, from the formula."""
    n, weights = ranker.n_components_, ranker.position_weights_
    U, V = ranker.query_factors_[0][:, :n], ranker.item_factors_[0]
    scores = U @ V[:, :n].T + V[:, n]
    for t in range(1, stage + 1):
        before = np.argsort(-scores, axis=1, kind="stable")[:, : len(weights)]
        U, Z = ranker.query_factors_[t][:, :n], ranker.item_factors_[t]
        S = Z[:, n + 1 : 2 * n + 1]
        p = np.einsum("j,qjf->qf", weights[: before.shape[1]], S[before])
        scores = U @ Z[:, :n].T + Z[:, n] + p @ S.T
    return scores


def test_a_query_in_its_own_list_teaches_both_directions():
    """Of a ring only one direction is seen: t=0 cannot turn round, S'S can."""
    rng = np.random.default_rng(0)
    queries = rng.integers(0, 60, 1500)
    items = (queries + rng.integers(1, 3, 1500)) % 60
    settings = {"n_components": 8, "stages": 2, "epochs": 8, "max_norm": 0.8, "validation_fraction": 0.0}
    without, with_own = (
        make_latent(**settings, own_weight=weight, random_state=0).fit(queries, items).recall(items, queries, [5])[5]
        for weight in (0.0, 3.0)
    )
    assert with_own > 3 * without


def test_ids_that_are_no_items_have_no_place_in_their_lists(tmp_path):
    rng = np.random.default_rng(0)
    queries, items = rng.integers(0, 12, 600), rng.integers(4, 20, 600)
    ranker = make_latent(**{**SMALL, "stages": 2, "validation_fraction": 0.0, "own_weight": 2.0})
    for names in (np.arange(20), np.array([f"item {i:02d}" for i in range(20)])):
        ranker.fit(names[queries], names[items])
        assert ranker.n_stages_ == 2
        why = ranker.explain(names[[2, 7]], k=16)
        assert why.neighbours[0, -1] == (-1 if names.dtype.kind == "i" else "")
        assert why.neighbours[1, -1] == names[7]
        assert (why.moved_by[0, :, -1] == 0).all()
        assert (why.moved_by[1, :, -1] != 0).all()
        np.testing.assert_allclose(why.score, ranker.rank(names[[2, 7]], k=16).scores, atol=1e-5)
        n = ranker.n_components_
        S = ranker.item_factors_[1][:, n + 1 : 2 * n + 1].astype(float)
        own = 2.0 * S[np.searchsorted(ranker.item_ids_, why.items[1])] @ S[np.searchsorted(ranker.item_ids_, names[7])]
        np.testing.assert_allclose(why.moved_by[1, :, -1], own, atol=1e-5)
        row = ranker.fold_in([names[[5, 6]]])
        np.testing.assert_allclose(ranker.explain(row, k=5).score, ranker.rank(row, k=5).scores, atol=1e-5)
        ranker.save(tmp_path / "model.safetensors")
        back = slatewise.load(tmp_path / "model.safetensors").set_params(stages=1)
        assert back.rank(names[[2, 7]], k=16).scores.tobytes() == ranker.rank(names[[2, 7]], k=16).scores.tobytes()


@pytest.mark.parametrize("stage", [0, 1])
def test_rank_is_the_order_of_the_scores(staged, stage):
    scores = scores_of(staged, stage)
    ids, values = parts(staged.rank(staged.query_ids_, k=7, stage=stage))
    np.testing.assert_allclose(values, -np.sort(-scores, axis=1)[:, :7], atol=1e-4)
    places = np.searchsorted(staged.item_ids_, ids)
    np.testing.assert_allclose(np.take_along_axis(scores, places, axis=1), values, atol=1e-4)


def test_a_stage_may_be_a_number_of_numpy(staged):
    np.testing.assert_array_equal(staged.rank([3], stage=np.int64(1)).ids, staged.rank([3], stage=1).ids)


def test_it_finds_most_of_what_can_be_found(made, pairs, ranker):
    best = made.best_next(pairs.queries, 10)
    reachable = np.mean((best == pairs.items[:, None]).any(axis=1))
    assert ranker.recall(pairs.queries, pairs.items, [10])[10] > 0.85 * reachable


@pytest.mark.parametrize("stage", [0, 1, None])
def test_recall_is_that_of_rank(pairs, staged, stage):
    ids = staged.rank(pairs.queries, k=5, stage=stage).ids
    hits = (ids == pairs.items[:, None]).any(axis=1)
    found = staged.recall(pairs.queries, pairs.items, [5, 1000], stage=stage)
    assert found == {5: pytest.approx(hits.mean()), 1000: 1.0}


def test_strings_rank_as_numbers_do(pairs):
    def name(number):
        return f"artist {number:03d}"

    numbers = make_latent(**SMALL).fit(pairs.queries, pairs.items)
    names = make_latent(**SMALL).fit([name(q) for q in pairs.queries], [name(d) for d in pairs.items])
    ids, scores = parts(numbers.rank([3, 25], k=4))
    named, same = parts(names.rank([name(3), name(25)], k=4))
    np.testing.assert_array_equal(same, scores)
    assert named.tolist() == [[name(d) for d in row] for row in ids]


def test_objects_are_ids_if_they_are_all_of_a_kind(pairs):
    objects = np.array([str(q) for q in pairs.queries], dtype=object)
    ranker = make_latent(**{**SMALL, "epochs": 1}).fit(objects, pairs.items)
    assert ranker.query_ids_.dtype.kind == "U"


def test_interactions_are_weighted_pairs(pairs):
    keys, counts = np.unique(np.stack([pairs.queries, pairs.items]), axis=1, return_counts=True)
    matrix = csr_array((counts, (keys[0], keys[1])), shape=(60, 60))
    settings = {**SMALL, "validation_fraction": 0.0, "epochs": 2}
    given = make_latent(**settings).fit(matrix)
    listed = make_latent(**settings).fit(keys[0], keys[1], sample_weight=counts)
    for query in (0, 25):
        np.testing.assert_allclose(given.rank([query], 5).scores, listed.rank([query], 5).scores, atol=1e-4)
    np.testing.assert_array_equal(given.item_ids_, np.arange(60))
    np.testing.assert_array_equal(make_latent(**settings).fit(matrix.toarray()).item_factors_, given.item_factors_)


def test_entries_of_a_matrix_that_are_stored_twice_add_up(pairs):
    settings = {**SMALL, "validation_fraction": 0.0, "epochs": 1}
    once = csr_array(([3.0, 1.0, 2.0], [1, 0, 2], [0, 1, 3]), shape=(2, 3))
    twice = csr_array(([1.0, 2.0, 0.0, 1.0, 2.0], [1, 1, 0, 0, 2], [0, 3, 5]), shape=(2, 3))
    one, other = (make_latent(**settings).fit(matrix) for matrix in (once, twice))
    np.testing.assert_array_equal(other.item_factors_, one.item_factors_)
    assert other.model_card_ == one.model_card_
    assert twice.data.tolist() == [1.0, 2.0, 0.0, 1.0, 2.0]  # the caller's own is left as it was


def test_pairs_of_weight_zero_do_not_count(pairs):
    weight = np.ones(len(pairs.queries))
    weight[1000:] = 0
    settings = {**SMALL, "validation_fraction": 0.0, "epochs": 1}
    weighted = make_latent(**settings).fit(pairs.queries, pairs.items, sample_weight=weight)
    asked = weighted.query_steps_[:, 0] > 0
    assert set(weighted.query_ids_[asked]) <= set(pairs.queries[:1000].tolist())
    assert len(weighted.query_ids_) == len(np.unique(pairs.queries))


TINY = (1e-21, 1e-22, 1e-23, 1e-24, 1e-60)  # squares around the least that float32 has


@pytest.mark.parametrize("engine", ["blocked", "sampled"])
def test_weights_may_be_far_apart(pairs, engine):
    settings = {"n_components": 50, "epochs": 1, "engine": engine, "n_jobs": 1}
    sets = [np.where(pairs.queries == 25, smallest, 1.0) for smallest in TINY]
    for weights in (*sets, 0.5 ** (np.linspace(400, 0, len(pairs.queries)) / 5)):
        fitted = make_latent(**settings).fit(pairs.queries, pairs.items, weights)
        assert np.isfinite(fitted.rank([25, 3]).scores).all()


@pytest.mark.parametrize("engine", ["blocked", "sampled"])
def test_only_the_ratios_of_weights_count(pairs, engine):
    settings = {**SMALL, "epochs": 2, "engine": engine, "n_jobs": 1}
    fits = [
        make_latent(**settings).fit(pairs.queries, pairs.items, np.full(len(pairs.queries), size))
        for size in (1.0, 1e308, 5e-324)
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.item_factors_, fits[0].item_factors_)


@pytest.mark.parametrize("sparse", [False, True])
def test_features_may_be_tiny(sparse):
    X, labels = blobs()
    for size in TINY:
        small = csr_array(X * size) if sparse else X * size
        ranker = make_featured(n_components=50, epochs=1).fit(small, labels)
        assert ranker.rank(small, k=6).ids.shape == (300, 6)


def test_a_repeated_pair_counts_twice(pairs):
    settings = {**SMALL, "validation_fraction": 0.0, "epochs": 1, "batch_size": 100_000}
    twice = make_latent(**settings).fit(np.tile(pairs.queries, 2), np.tile(pairs.items, 2))
    once = make_latent(**settings).fit(pairs.queries, pairs.items)
    # One step in all: twice the gradient, which AdaGrad's first step does not see.
    np.testing.assert_allclose(twice.item_factors_, once.item_factors_, atol=2e-4)


def blobs(n=300, n_labels=6, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_labels, 10))
    labels = rng.integers(0, n_labels, n)
    return centres[labels] + 0.3 * rng.normal(size=(n, 10)), labels


@pytest.mark.filterwarnings("ignore:stages")
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("stages", [1, 2])
def test_features_against_items(sparse, stages):
    X, labels = blobs()
    X = csr_array(X) if sparse else X
    ranker = make_featured(n_components=6, stages=stages, k=3, epochs=10, validation_fraction=0.1)
    ranker.fit(X[:200], labels[:200])
    assert ranker.recall(X[200:], labels[200:], [1])[1] > 0.9
    assert ranker.rank(X[200:], k=2).ids.shape == (100, 2)


def test_features_against_sets_of_items():
    X, labels = blobs()
    Y = np.eye(6, dtype=int)[labels]
    Y[:, 0] = 1
    ranker = make_featured(n_components=6, epochs=10).fit(X, csr_array(Y))
    dense = make_featured(n_components=6, epochs=10).fit(X, Y)
    np.testing.assert_array_equal(dense.item_factors_, ranker.item_factors_)
    top = ranker.rank(X, k=2).ids
    assert np.mean([Y[row, items].sum() == min(2, Y[row].sum()) for row, items in enumerate(top)]) > 0.9


@pytest.mark.parametrize("settings", [{"loss": "auc"}, {"engine": "sampled"}, {"negatives": 20, "stages": 2}])
def test_other_engines_and_losses_learn_too(pairs, ranker, settings):
    other = make_latent(**{**SMALL, **settings}).fit(pairs.queries, pairs.items)
    bar = 0.8 * ranker.recall(pairs.queries, pairs.items, [10])[10]
    assert other.recall(pairs.queries, pairs.items, [10])[10] > bar


def test_alpha_0_is_the_auc_loss(pairs):
    settings = {**SMALL, "epochs": 2}
    flat, auc, steep = (
        make_latent(**settings, **change).fit(pairs.queries, pairs.items)
        for change in ({"alpha": 0}, {"loss": "auc"}, {"alpha": 1.5})
    )
    np.testing.assert_array_equal(flat.item_factors_, auc.item_factors_)
    assert not np.array_equal(steep.item_factors_, flat.item_factors_)


def test_excluded_items_do_not_show(ranker):
    ids = ranker.rank([3, 25], k=5).ids
    rest = ranker.rank([3, 25], k=3, exclude=[ids[0, :2], []]).ids
    assert rest[0].tolist() == ids[0, 2:].tolist()
    assert rest[1].tolist() == ids[1, :3].tolist()
    hidden = np.zeros((2, len(ranker.item_ids_)))
    hidden[0, np.searchsorted(ranker.item_ids_, ids[0, :2])] = 1
    np.testing.assert_array_equal(ranker.rank([3, 25], k=3, exclude=csr_array(hidden)).ids, rest)


def test_similar_items_are_those_of_the_largest_cosine(ranker):
    V = ranker.item_factors_[0][:, : ranker.n_components]
    V = V / np.linalg.norm(V, axis=1, keepdims=True)
    cosine = V @ V.T
    np.fill_diagonal(cosine, -np.inf)
    ids, scores = parts(ranker.similar_items(ranker.item_ids_, k=4))
    np.testing.assert_allclose(scores, -np.sort(-cosine, axis=1)[:, :4], atol=1e-5)
    assert not np.any(ids == ranker.item_ids_[:, None])


def test_the_best_epoch_is_kept_and_stages_only_where_they_help(pairs):
    reports = []
    ranker = make_latent(**{**SMALL, "stages": 3, "epochs": 8}, callbacks=[reports.append])
    with pytest.warns(UserWarning, match="stages: [12] of 3 are kept: the next one did not raise the recall"):
        ranker.fit(pairs.queries, pairs.items)
    assert ranker.n_stages_ < 3
    assert [report.stage for report in reports] == sorted(report.stage for report in reports)
    best = [max(r.recall for r in reports if r.stage == stage) for stage in range(ranker.n_stages_)]
    assert best == sorted(best)
    for stage, epochs in enumerate(ranker.n_epochs_):
        own = [r.recall for r in reports if r.stage == stage]
        assert own[epochs - 1] == max(own)
    assert all(0 <= report.violated <= 1 and report.loss >= 0 for report in reports)


def test_the_recall_of_a_small_catalogue_says_something(pairs):
    few = (pairs.queries < 12) & (pairs.items < 12)
    reports = []
    settings = {**SMALL, "validation_fraction": 0.2, "callbacks": [reports.append]}
    make_latent(**settings).fit(pairs.queries[few] % 4, pairs.items[few])  # k is more than there are items
    assert all(report.recall < 1 for report in reports)
    assert len({report.recall for report in reports}) > 1


def test_few_rows_are_held_out_whole_but_never_most_pairs():
    marks = np.zeros((4, 30), dtype=int)
    marks[0] = 1
    marks[1:, :5] = 1
    for seed in range(6):
        reports = []
        settings = {"n_components": 2, "epochs": 1, "validation_fraction": 0.05, "random_state": seed}
        make_featured(**settings, callbacks=[reports.append]).fit(np.eye(4), marks)
        assert reports[0].recall in {0, 0.2, 0.4, 0.6, 0.8, 1}  # five pairs of one of the small rows


def test_rows_without_items_are_in_no_fold():
    marks = np.zeros((30, 4), dtype=int)
    marks[:7] = np.eye(4, dtype=int)[np.arange(7) % 4]
    settings = {"n_components": 2, "stages": 2, "k": 2, "epochs": 2, "validation_fraction": 0.0}
    for seed in range(10):
        for n_marked in (1, 5, 7):
            marked = marks * (np.arange(30) < n_marked)[:, None]
            assert make_featured(**settings, random_state=seed).fit(np.eye(30), marked).n_stages_ == 2


def as_they_are(features):
    return features


@pytest.mark.parametrize("n_pairs", [2, 3])
def test_a_pair_of_every_query_and_item_is_trained(n_pairs):
    rng = np.random.default_rng(0)
    queries, items = np.repeat(np.arange(1000), n_pairs), rng.integers(0, 400, 1000 * n_pairs)
    pairs = id_pairs(queries, items, None)
    for seed in range(3):
        used, held = hold_out_pairs(pairs, 0.2, 10, seed)
        assert len(held.queries) == 200 * n_pairs
        np.testing.assert_array_equal(np.unique(used.queries), np.unique(pairs.queries))
        np.testing.assert_array_equal(np.unique(used.items), np.unique(pairs.items))
        together = np.concatenate([np.stack([used.queries, used.items]), np.stack([held.queries, held.items])], axis=1)
        np.testing.assert_array_equal(
            np.sort(together[0] * 400 + together[1]), np.sort(pairs.queries * 400 + pairs.items)
        )
    # Where every pair is the last of its query or item, none is held out.
    assert hold_out_pairs(id_pairs(np.arange(50), np.arange(50), None), 0.2, 10, 0)[1] is None


@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("engine", ["blocked", "sampled"])
def test_a_query_without_pairs_gets_the_order_of_the_biases(pairs, stages, engine):
    settings = {**SMALL, "epochs": 2, "stages": stages, "engine": engine, "validation_fraction": 0.0, "n_jobs": 1}
    matrix = np.zeros((62, 60))
    np.add.at(matrix, (pairs.queries, pairs.items), 1.0)
    weights = np.where(pairs.queries == 25, 0.0, 1.0)
    rankers = [
        (make_latent(**settings).fit(csr_array(matrix)), 61),
        (make_latent(**settings).fit(pairs.queries, pairs.items, weights), 25),
    ]
    if stages == 1:
        grown = make_latent(**settings).partial_fit(pairs.queries, pairs.items, weights)
        rankers.append((grown.partial_fit([3, 99, 77], [3, 3, 5], [1.0, 0.0, 1.0]), 99))
        assert grown.query_factors_[0][np.searchsorted(grown.query_ids_, [3, 77]), :8].any(axis=1).all()
    for ranker, untaught in rankers:
        nobody = ranker.rank(ranker.fold_in([[]]), k=20)
        for found, expected in zip(parts(ranker.rank([untaught], k=20)), parts(nobody), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("pair", ["semidefinite", "bilinear", "both"])
def test_later_stages_are_saved_and_kept_by_partial_fit(tmp_path, pairs, pair):
    n = 16  # every form has a width of its own, padding counted in
    settings = {**SMALL, "n_components": n, "epochs": 2, "stages": 2, "k": 4, "validation_fraction": 0.0}
    ranker = make_latent(**settings, pair=pair).fit(pairs.queries, pairs.items)
    parts = {"semidefinite": 1, "bilinear": 2, "both": 3}[pair]
    own, used = n + 1, n + 1 + parts * n
    assert ranker.item_factors_[1][:, own:used].any(axis=0).all()
    assert not ranker.item_factors_[1][:, used:].any()
    assert ranker.item_factors_.shape[2] - used < 16
    ranker.save(tmp_path / "m")
    again = slatewise.load(tmp_path / "m")
    np.testing.assert_array_equal(again.rank([25, 3], k=9).scores, ranker.rank([25, 3], k=9).scores)
    for stage in (0, 1):
        vectors, items = ranker.query_vectors([25, 3], stage), ranker.item_vectors(stage)
        scores = ranker.scores([25, 3], ranker.item_ids_, stage=stage)
        np.testing.assert_allclose(vectors @ items.T, scores, atol=1e-5)
    again.partial_fit([25, 3, 25], [3, 999, 999])
    old = np.searchsorted(again.item_ids_, ranker.item_ids_)
    np.testing.assert_array_equal(again.item_factors_[1][old, own:], ranker.item_factors_[1][:, own:])
    assert not again.item_factors_[1][np.searchsorted(again.item_ids_, 999), own:].any()
    np.testing.assert_array_equal(again.item_factors_[1][:, :own], again.item_factors_[0][:, :own])
    again.save(tmp_path / "m")
    np.testing.assert_array_equal(slatewise.load(tmp_path / "m").rank([3], k=9).scores, again.rank([3], k=9).scores)
    other = "semidefinite" if pair == "both" else "both"
    with pytest.raises(
        ValueError, match=f"stages: expected pair='{pair}', that of the stages to go on with, found '{other}'"
    ):
        again.set_params(stages__pair=other).partial_fit([25], [3])


def test_draws_beyond_the_catalogue_change_nothing(pairs):
    settings = {**SMALL, "epochs": 2, "engine": "sampled", "n_jobs": 1}
    by_default, capped = (
        make_latent(**settings, max_draws=draws).fit(pairs.queries, pairs.items) for draws in (None, 600)
    )
    np.testing.assert_array_equal(capped.item_factors_, by_default.item_factors_)


def test_partial_fit_learns_new_ids(pairs):
    old = (pairs.queries < 40) & (pairs.items < 40)
    ranker = make_latent(**SMALL).fit(pairs.queries[old], pairs.items[old])
    before = ranker.rank([3], k=40)
    for _ in range(6):
        ranker.partial_fit(pairs.queries, pairs.items)
    assert set(ranker.item_ids_) == set(pairs.items.tolist())
    assert before.ids.shape == (1, 40)
    whole = make_latent(**SMALL).fit(pairs.queries, pairs.items)
    reached = ranker.recall(pairs.queries, pairs.items, [10])[10]
    assert reached > 0.9 * whole.recall(pairs.queries, pairs.items, [10])[10]


def test_partial_fit_alone_is_a_fit_of_one_epoch(pairs):
    settings = {**SMALL, "validation_fraction": 0.0, "epochs": 1}
    part = make_latent(**settings).partial_fit(pairs.queries, pairs.items)
    whole = make_latent(**settings).fit(pairs.queries, pairs.items)
    np.testing.assert_array_equal(part.item_factors_, whole.item_factors_)


def test_partial_fit_takes_a_single_event(ranker):
    one = copy.deepcopy(ranker).partial_fit([25], [3])
    assert not np.array_equal(one.query_factors_, ranker.query_factors_)
    np.testing.assert_array_equal(one.item_ids_, ranker.item_ids_)
    assert copy.deepcopy(ranker).partial_fit([25], [999]).rank([25], k=61).ids.shape == (1, 61)
    with pytest.raises(ValueError, match="items: expected at least two to rank, found 1"):
        make_latent(**SMALL).partial_fit([25], [3])


def test_partial_fit_takes_the_parameters_of_now(pairs, ranker):
    def gone_on(**settings):
        return copy.deepcopy(ranker).set_params(**settings).partial_fit(pairs.queries, pairs.items)

    as_before, slower, tighter = gone_on(), gone_on(learning_rate=0.01), gone_on(max_norm=0.5)
    moved = [np.abs(one.item_factors_ - ranker.item_factors_).mean() for one in (as_before, slower)]
    assert moved[1] < 0.2 * moved[0]
    assert (slower.learning_rate_, tighter.max_norm_) == (0.01, 0.5)
    touched = tighter.query_steps_[:, 0] > ranker.query_steps_[:, 0]
    assert np.linalg.norm(tighter.query_factors_[0][touched, :8], axis=1).max() <= 0.5 * (1 + 1e-5)
    with pytest.raises(ValueError, match="n_components: expected 8, that of the tables to go on with, found 9"):
        gone_on(n_components=9)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_components": 3},
        {"stages__pair": "bilinear"},
        {"stages__pair": "both"},
        {"stages__k": 2},
        {"stages": Stages(k=2, position_weights=[5.0, 0.0])},
        {"stages__self_weight": 2.0},
    ],
)
def test_parameters_set_after_fit_change_no_answer(tmp_path, staged, settings):
    changed = copy.deepcopy(staged).set_params(**settings)
    changed.save(tmp_path / "m")
    folded = staged.fold_in([[3, 5]])
    answers = [
        lambda r: r.rank([25, 3], k=7).scores,
        lambda r: r.rank(folded, k=7).scores,
        lambda r: r.explain([25], k=3).moved_by,
        lambda r: r.query_vectors([25]),
        lambda r: r.item_vectors(),
        lambda r: r.similar_items([25]).scores,
        lambda r: r.fold_in([[3, 5]]).vectors,
        lambda r: r.scores([25], [3, 5]),
    ]
    for one in (changed, slatewise.load(tmp_path / "m")):
        for answer in answers:
            np.testing.assert_array_equal(answer(one), answer(staged))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_that_float32_has_not_are_refused(pairs):
    X, labels = blobs()
    ranker = make_featured(n_components=6, epochs=2).fit(X, labels)
    large = np.sign(X) * 2e38
    for call in (lambda: ranker.rank(large, k=3), lambda: ranker.scores(large, [0, 1])):
        with pytest.raises(ValueError, match="queries: expected finite scores, found others for query"):
            call()
    before = ranker.item_factors_
    with pytest.raises(ValueError, match="learning_rate: expected steps under which factors stay finite, found"):
        ranker.fit(large, labels)
    assert ranker.item_factors_ is before
    for engine in ("blocked", "sampled"):
        with pytest.raises(ValueError, match=r"learning_rate: expected steps .* stay finite, found 3e\+38"):
            make_latent(**SMALL | {"learning_rate": 3e38, "engine": engine}).fit(pairs.queries, pairs.items)


def test_a_refused_partial_fit_leaves_a_ranker_as_it_was():
    X, labels = blobs()
    ranker = make_featured(n_components=4, epochs=1).fit(X, labels)
    with pytest.raises(ValueError, match="Expected 2D array"):
        ranker.partial_fit([1, 2], [1, 2])
    assert ranker.rank(X, k=3).ids.shape == (300, 3)


def test_the_card_tells_data_apart_and_adds_them_up(pairs):
    settings = {**SMALL, "epochs": 1}
    X, labels = blobs(40)
    fits = [
        (pairs.queries, pairs.items),
        (pairs.queries + 1, pairs.items),
        (pairs.queries, pairs.items + 1),
        (X, labels),
        (X + 1, labels),
        (csr_array(X), labels),
        (csr_array(X + 1), labels),
        (csr_array(X[:, ::-1]), labels),
    ]
    made = [make_latent] * 3 + [make_featured] * 5
    cards = [make(**settings).fit(*data).model_card_ for make, data in zip(made, fits, strict=True)]
    assert len({card.data_sha256 for card in cards}) == len(fits)
    for place, n_lists in ((0, cards[0].n_lists), (3, 80)):
        (queries, items), card, make = fits[place], cards[place], made[place]
        both = make(**settings).fit(queries, items).partial_fit(queries, items).model_card_
        assert (both.n_rows, both.n_lists) == (2 * card.n_rows, n_lists)
        assert both.data_sha256 != card.data_sha256
        alone = make(**settings).partial_fit(queries, items).model_card_
        assert alone == card


NAN = np.zeros((4, 2))
NAN[1, 1] = np.nan
LARGE = np.where(np.isnan(NAN), 1e300, NAN)
BAD = [
    ({"loss": "hinge"}, {}, "loss: expected 'warp', 'auc' or Warp"),
    ({"engine": "cpu"}, {}, "engine: expected 'blocked', 'sampled', 'gpu' or Blocked"),
    ({"alpha": -1}, {}, "alpha: expected a finite number >= 0, found -1"),
    ({"alpha": np.nan}, {}, "alpha"),
    ({"pair": "cosine"}, {}, "pair: expected one of semidefinite, bilinear, both"),
    ({"n_components": 0}, {}, "n_components: expected a whole number from 1"),
    ({"stages": 1.5}, {}, "stages"),
    ({"k": 0}, {}, "k: expected"),
    ({"epochs": 0}, {}, "epochs"),
    ({"patience": 0}, {}, "patience"),
    ({"negatives": "few"}, {}, "negatives: expected a whole number from 1 to 2147483647 or 'all'"),
    ({"negatives": 0}, {}, "negatives"),
    ({"batch_size": 0}, {}, "batch_size"),
    ({"max_draws": 0}, {}, "max_draws"),
    ({"learning_rate": 1e39}, {}, "learning_rate: expected a finite float32 number > 0"),
    ({"stage_norm": 1e-60}, {}, "Stages.max_norm: expected a number > 0 and at most"),
    ({"position_weights": [1e300] * 20}, {}, "position_weights: expected 'reciprocal' or numbers from 0 to 1e"),
    ({}, {"queries": csr_array(([1e308, 1e308], [0, 0], [0, 2, 2])), "items": None}, "queries: expected finite entr"),
    ({"learning_rate": 0}, {}, "learning_rate: expected a finite float32 number > 0 or 'auto', found 0"),
    ({"max_norm": np.inf}, {}, "max_norm"),
    ({"stage_norm": -1}, {}, "Stages.max_norm"),
    ({"stage_learning_rate": "fast"}, {}, "Stages.learning_rate"),
    ({"validation_fraction": 1.0}, {}, "validation_fraction"),
    ({"position_weights": "equal"}, {}, "position_weights"),
    ({"own_weight": -1}, {}, "self_weight: expected a number from 0 to .*, found -1"),
    ({"own_weight": np.nan}, {}, "self_weight"),
    ({"own_weight": "itself"}, {}, "self_weight"),
    ({"own_weight": 1.0}, {"queries": np.eye(4)}, "stages: expected .* with self_weight=0"),
    (
        {"own_weight": 1.0, "stages": 2},
        {"queries": ["a", "b", "c", "d"]},
        "Stages.self_weight: expected 0 where no query has the id of an it",
    ),
    ({"position_weights": [1.0]}, {}, "position_weights: expected 20"),
    ({"engine": "sampled"}, {"queries": np.eye(4)}, "engine: expected 'blocked'"),
    ({}, {"queries": [], "items": []}, "at least one pair"),
    ({}, {"queries": [1, 2], "items": [5, 5]}, "items: expected at least two"),
    ({}, {"queries": [1, 2]}, "inconsistent"),
    ({}, {"queries": [1.5, 2, 3, 4]}, "queries: expected ids"),
    ({}, {"queries": [1, np.nan, 3, 4]}, "queries: expected ids"),
    ({}, {"queries": np.array([1, "a", None, 2], dtype=object)}, "queries: expected ids"),
    ({}, {"items": np.zeros((2, 2, 2))}, "one-dimensional"),
    ({}, {"items": None}, "items: expected one item per query"),
    ({}, {"queries": NAN}, "NaN"),
    ({}, {"queries": csr_array(NAN)}, "X: expected finite numbers, found nan"),
    ({}, {"queries": csr_array(NAN), "items": None}, "queries: expected finite numbers"),
    ({}, {"queries": -np.eye(4), "items": None}, "queries: expected finite entries >= 0, found -1"),
    ({}, {"queries": np.eye(4), "items": None, "sample_weight": np.ones(4)}, "sample_weight"),
    ({}, {"queries": np.eye(4), "items": np.full((4, 3), 2)}, "zeros and ones"),
    ({}, {"queries": np.eye(4), "items": csr_array((np.ones(2), ([1, 1], [0, 0])), shape=(4, 3))}, "zeros and ones"),
    ({}, {"queries": np.eye(4), "items": [1, 2]}, "inconsistent"),
    ({}, {"sample_weight": [-1, 1, 1, 1]}, "sample_weight"),
    ({}, {"queries": LARGE}, r"X: expected finite float32 numbers, found 1e\+300 at row 1, column 1"),
    ({}, {"queries": csr_array(LARGE)}, r"X: expected finite float32 numbers, found 1e\+300 at row 1, column 1"),
    (
        {},
        {"queries": np.array([1, 2, 2**63, 4], dtype=np.uint64)},
        "queries: expected ids up to 9.*, found 9.* at place 2",
    ),
    ({}, {"items": [1, -1e17, 2, 3]}, r"items: expected ids up to 9007199254740992 .*, found -1e\+17 at place 1"),
    ({"random_state": -1}, {}, "random_state: expected None or a whole number from 0 .* found -1"),
    ({"random_state": "seed"}, {}, "random_state: expected None or a whole number from 0 .* found 'seed'"),
    ({}, {"sample_weight": np.zeros(4)}, "at least one pair of weight > 0"),
]


@pytest.mark.parametrize(("settings", "arguments", "message"), BAD)
def test_bad_input_to_fit(settings, arguments, message):
    given = {"queries": [1, 2, 3, 4], "items": [1, 2, 3, 1], **arguments}
    by_features = getattr(given["queries"], "ndim", 1) == 2 and given["items"] is not None
    with pytest.raises(ValueError, match=message):
        (make_featured if by_features else make_latent)(**settings).fit(*given.values())


def test_users_and_their_items_warn():
    users, items = np.repeat([f"user {n}" for n in range(20)], 6), np.tile(np.arange(30), 4)
    with pytest.warns(UserWarning, match=r"queries: 20 ids .* look like users .*: CollaborativeRanker\(\)"):
        make_latent(2, epochs=1).fit(users, items)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.rank([3, 999]), "queries: expected ids seen in fit, found 999 at place 1"),
        (lambda r: r.rank(["3"]), "queries: expected ids as in fit, whole numbers"),
        (lambda r: r.rank([3], k=0), "k: expected"),
        (lambda r: r.rank([3], k=True), "k: expected a whole number from 1 to the 60 items .*, found True"),
        (lambda r: r.rank([3], stage=False), "stage: expected a number from 0 to 0, found False"),
        (lambda r: r.rank([3], k=61), "k: expected a whole number from 1 to the 60 items there are, found 61"),
        (lambda r: r.rank([3], stage=1), "stage: expected a number from 0 to 0"),
        (lambda r: r.rank([3, 4], exclude=[[5], [6, 999]]), "exclude: .* found 999 at place 1 of query 1"),
        (lambda r: r.rank([3], exclude=np.eye(1, 60)), "exclude: expected a sequence of ids .*, found a dense matrix"),
        (lambda r: r.rank([3], exclude=[[5], [6]]), "exclude: expected items for each of 1 queries, found 2"),
        (lambda r: r.rank([3], exclude=csr_array((1, 3))), "exclude: expected shape"),
        (lambda r: r.similar_items([999]), "ids: expected ids seen in fit"),
        (lambda r: r.recall([3], [999]), "items: expected ids seen in fit"),
        (lambda r: r.recall([3, 4], [5]), "items: expected one per query"),
        (lambda r: r.recall([], []), "at least one"),
        (lambda r: r.recall([3], [5], ks=[0]), "ks: expected"),
        (lambda r: r.recall([3], [5], ks=5), "ks: expected whole numbers >= 1, found 5"),
        (lambda r: r.recall([3], [5], ks=[True]), "ks: expected"),
        (lambda r: r.partial_fit(["a", "b"], [1, 2]), "queries: expected ids as in fit"),
        (lambda r: r.partial_fit(np.eye(3, 1), [1, 2, 3]), "queries: expected ids, found a matrix"),
    ],
)
def test_bad_input_to_a_fitted_ranker(ranker, call, message):
    with pytest.raises(ValueError, match=message):
        call(ranker)


@pytest.mark.filterwarnings("ignore:queries.*look like users")
@pytest.mark.parametrize("settings", [{}, {"stages": 2, "validation_fraction": 0.0}, {"engine": "sampled"}])
def test_saved_and_loaded_it_ranks_the_same(tmp_path, pairs, settings):
    ranker = make_latent(**{**SMALL, "epochs": 2, **settings}).fit([f"q{q}" for q in pairs.queries], pairs.items)
    ranker.save(tmp_path / "model.safetensors")
    back = slatewise.load(tmp_path / "model.safetensors")
    for stage in range(ranker.n_stages_):
        for one, other in zip(
            parts(ranker.rank(["q3"], stage=stage)), parts(back.rank(["q3"], stage=stage)), strict=True
        ):
            np.testing.assert_array_equal(one, other)
    assert back.n_epochs_ == ranker.n_epochs_


def test_a_ranker_of_features_is_saved_too(tmp_path):
    X, labels = blobs()
    ranker = make_featured(n_components=4, epochs=2, position_weights=[1.0] * 3, k=3).fit(X, labels)
    ranker.save(tmp_path / "m")
    np.testing.assert_array_equal(slatewise.load(tmp_path / "m").rank(X, k=3).scores, ranker.rank(X, k=3).scores)


@pytest.mark.parametrize(
    "change",
    [
        {"item_factors_": np.zeros((1, 3, 16), dtype=np.float32)},
        {"item_factors_": np.full((1, 60, 16), np.nan, dtype=np.float32)},
        {"query_factors_": np.zeros((1, 60, 16))},
        {"query_ids_": np.zeros(60, dtype=np.int64)},
        {"item_steps_": np.full((60, 2), -1, dtype=np.float32)},
        {"n_stages_": 2},
        {"max_norm_": 0.0},
        {"stage_norm_": "auto"},
        {"n_components_": 40},
        {"n_components_": 0},
        {"n_components_": 8.0},
        {"pair_": "cosine"},
        {"pair_": ["semidefinite"]},
        {"position_weights_": np.zeros(0, dtype=np.float32)},
        {"position_weights_": np.ones(20)},
        {"self_weight_": -1.0},
        {"self_weight_": "0"},
        {"position_weights_": np.full(20, np.nan, dtype=np.float32)},
    ],
)
def test_a_file_whose_parts_do_not_fit_is_refused(tmp_path, ranker, staged, change):
    of_stages = {"pair_", "position_weights_", "self_weight_", "stage_norm_"}
    (staged if of_stages & change.keys() else ranker).save(tmp_path / "m")
    state = read_model(tmp_path / "m")
    arrays = {**state.arrays, **{name: value for name, value in change.items() if name in state.arrays}}
    values = {**state.values, **{name: value for name, value in change.items() if name in state.values}}
    write_model(tmp_path / "m", replace(state, arrays=arrays, values=values))
    with pytest.raises(ModelFileError):
        slatewise.load(tmp_path / "m")


def test_a_file_has_what_lists_move_by_with_several_stages_only(tmp_path, ranker, staged):
    of_stages = {"pair_", "position_weights_", "self_weight_", "stage_learning_rate_", "stage_norm_"}
    assert not of_stages & vars(ranker).keys()
    staged.save(tmp_path / "staged")
    state = read_model(tmp_path / "staged")
    for name in of_stages:
        arrays = {key: value for key, value in state.arrays.items() if key != name}
        values = {key: value for key, value in state.values.items() if key != name}
        write_model(tmp_path / "m", replace(state, arrays=arrays, values=values))
        with pytest.raises(ModelFileError, match=f"{name}: expected it to be there with several stages"):
            slatewise.load(tmp_path / "m")
    ranker.save(tmp_path / "one")
    state = read_model(tmp_path / "one")
    write_model(tmp_path / "m", replace(state, values={**state.values, "stage_norm_": 1.0}))
    with pytest.raises(ModelFileError, match="stage_norm_: expected it to be absent with one stage"):
        slatewise.load(tmp_path / "m")


@pytest.mark.filterwarnings("ignore:stages")
@pytest.mark.parametrize(
    "settings", [{"stages": 2}, {"negatives": 16}, *({"stages": 2, "pair": pair} for pair in ("bilinear", "both"))]
)
def test_same_bits_with_any_number_of_threads(pairs, settings):
    one, *others = (
        make_latent(**{**SMALL, "epochs": 3, "n_jobs": threads, **settings}).fit(pairs.queries, pairs.items)
        for threads in (1, 2, 8)
    )
    for other in others:
        np.testing.assert_array_equal(one.item_factors_, other.item_factors_)
        np.testing.assert_array_equal(one.query_factors_, other.query_factors_)


@pytest.mark.filterwarnings("ignore:stages")
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_killed_and_resumed_it_gives_the_same_bits(tmp_path):
    state = tmp_path / "state"
    estimator, data = KILLED["sessions"]
    reports = []
    whole = clone(estimator).fit(*data(), callbacks=[reports.append])
    assert exit_code("sessions", state, 2) == -signal.SIGKILL
    assert state.exists()
    second = next(number for number, report in enumerate(reports) if report.stage == 1)
    assert exit_code("sessions", state, second) == -signal.SIGKILL  # beyond the first stage: two epochs are done
    part = clone(estimator).fit(*data(), checkpoint=state)
    assert not state.exists()
    np.testing.assert_array_equal(whole.item_factors_, part.item_factors_)
    np.testing.assert_array_equal(whole.query_factors_, part.query_factors_)
    assert whole.n_epochs_ == part.n_epochs_


def test_a_checkpoint_of_other_data_is_refused(tmp_path, pairs):
    path = tmp_path / "state"

    def stop(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_latent(**SMALL, checkpoint=path, callbacks=[stop]).fit(pairs.queries, pairs.items)
    with pytest.raises(ValueError, match="checkpoint"):
        make_latent(**SMALL, checkpoint=path).fit(pairs.queries[:100], pairs.items[:100])
    with pytest.raises(ValueError, match="checkpoint"):  # the same pairs by number
        make_latent(**SMALL, checkpoint=path).fit(pairs.queries + 1, pairs.items)
    with pytest.raises(ValueError, match="checkpoint"):
        make_latent(**{**SMALL, "max_norm": 1.0}, checkpoint=path).fit(pairs.queries, pairs.items)
    make_latent(**SMALL, checkpoint=path, n_jobs=2).fit(pairs.queries, pairs.items)
    assert not os.path.exists(path)


def test_settings_of_a_checkpoint_are_told_by_value(tmp_path, pairs):
    path = tmp_path / "state"
    long = 1 / np.arange(1, 2001)
    other = long.copy()
    other[1000] = 0.5  # where an array this long prints as dots

    def stop(report):
        raise KeyboardInterrupt

    def fit(**settings):
        return make_latent(**{**SMALL, "checkpoint": path, **settings}).fit(pairs.queries, pairs.items)

    same = [
        ({"k": 2, "position_weights": [1, 0.5]}, {"k": 2, "position_weights": np.array([1, 0.5])}),
        ({"max_norm": 3, "alpha": 1}, {"max_norm": 3.0, "alpha": np.float64(1)}),
        ({"learning_rate": 0.3, "epochs": 6}, {"learning_rate": np.float64(0.3), "epochs": np.int64(6)}),
        ({"k": 2000, "position_weights": long}, {"k": 2000, "position_weights": long.tolist()}),
        ({"random_state": None}, {"random_state": 0}),
    ]
    for one, another in same:
        with pytest.raises(KeyboardInterrupt):
            fit(callbacks=[stop], **one)
        assert fit(**another).n_stages_ == 1
    with pytest.raises(KeyboardInterrupt):
        fit(callbacks=[stop], k=2000, position_weights=long)
    with pytest.raises(ValueError, match="checkpoint"):
        fit(k=2000, position_weights=other)
