"""The tables of latent structured ranking on generated data: rows, figures, splits, the way recall is counted."""

import json
from dataclasses import asdict, replace
from html import unescape

import numpy as np
import pytest
from scipy.sparse import csr_array

from slatewise import data, datasets
from slatewise.factors.pair_terms import Bilinear, Semidefinite
from slatewise.factors.queries import IdQueries
from slatewise.factors.scoring import Factors
from slatewise.factors.tables import Table
from slatewise_papers import Reproduction, reproduce
from slatewise_papers.lasr import labels as lasr_labels
from slatewise_papers.lasr.annotation import QUICK, choose, per_row, table_5
from slatewise_papers.lasr.baselines import log_counts, nmf, one_vs_rest, popularity, rank_svm, rocchio, svd
from slatewise_papers.lasr.counts import Counts
from slatewise_papers.lasr.data import ArtistPairs, generated_music, load_music, of_log, of_sessions
from slatewise_papers.lasr.labels import (
    AnnotationProblem,
    LabelledPart,
    kernel_components,
    load_annotation,
    stroke_histograms,
)
from slatewise_papers.lasr.lists import Factored, Ranks, by_frequency, difference, ranks_of
from slatewise_papers.lasr.music import BOTH_WAYS, OWN, at_scale
from slatewise_papers.lasr.wsabie import best_labels, first_stage, fold_numbers, next_stage

pytestmark = pytest.mark.filterwarnings("ignore:stages")  # quick tables are too small for some of them


@pytest.fixture(scope="module")
def music():
    return generated_music(400, 70, seed=1)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    sessions = datasets.make_sessions(400, 70, n_clusters=7, random_state=0).sessions
    path = tmp_path_factory.mktemp("sessions") / "sessions.txt"
    data.write_sessions(path, sessions)
    return reproduce("lasr", str(path), quick=True, seed=3)


@pytest.fixture(scope="module")
def annotated(tmp_path_factory):
    scenes = datasets.make_label_scenes(300, n_labels=12, random_state=0)
    path = tmp_path_factory.mktemp("scenes") / "scenes.npz"
    names = np.array([f"tag{i}" for i in range(12)])
    data.write_npz(path, data.MultiLabel(scenes.X, csr_array(scenes.Y.astype(float)), names))
    return reproduce("lasr", str(path), quick=True)


def test_rows_and_figures_of_the_music_tables(table: Reproduction):
    rows = {row.name: row for row in table.rows}
    for name in ("popularity", "NMF", "SVD", "LaSR (t=0), AUC loss", "LaSR (t=0)", "LaSR (t=1)", "LaSR (t=2)", OWN):
        recall = [rows[name].measured[f"R@{k}"] for k in (5, 10, 30, 50)]
        assert 0 < recall[0] <= recall[1] <= recall[2] <= recall[3] <= 100
        assert 0 < rows[name].measured["R@5 no self"] <= 100
    for name in (
        "Rocchio on t=0 (S = V)",
        "SVD, reranked (t=1)",
        "LaSR (t=0), n=16",
        "Table 2, SVD, n=4",
        "counts",
        BOTH_WAYS,
    ):
        assert name in rows
    assert f"{OWN} minus LaSR (t=0), query seen 1 to 10 times" in rows
    gain = rows["LaSR (t=1) minus LaSR (t=0)"].measured
    assert gain["R@5"] == pytest.approx(rows["LaSR (t=1)"].measured["R@5"] - rows["LaSR (t=0)"].measured["R@5"])
    assert 0 < gain["R@5_p"] <= 1
    assert any(name.startswith("LaSR (t=1) minus LaSR (t=0), query seen 1 to 10 times") for name in rows)
    assert rows["Table 2, SVD, n=8"].measured == rows["SVD"].measured


def test_the_papers_figures_stand_beside(table: Reproduction):
    rows = {row.name: row.paper for row in table.rows}
    assert rows["LaSR (t=1)"] == {"R@5": 6.65, "R@10": 10.73, "R@30": 20.1, "R@50": 26.7}
    assert rows["LaSR (t=1) minus LaSR (t=0)"]["R@5_relative"] == pytest.approx(18.8)
    assert rows["popularity"] is None


def test_lists_stand_side_by_side_with_counts(table: Reproduction):
    lists = [row for row in table.rows if row.name.startswith("Table 3")]
    assert len(lists) == 4
    for row in lists:
        assert len(row.entries) == 20
        counts = np.array([json.loads(entry[entry.index("[") :]) for entry in row.entries])
        assert counts.sum(axis=0).tolist() == [row.measured["train"], row.measured["test"]]


def test_rows_and_figures_of_the_annotation_tables(annotated: Reproduction):
    rows = {row.name: row for row in annotated.rows}
    crossed = "LaSR (t=1), cross-fitted, S'T"
    later = ("LaSR (t=1)", "LaSR (t=1), S'T", crossed, "LaSR (t=1), chosen on validation")
    for name in ("One-vs-Rest", "Rank SVM", "WSABIE", "WSABIE, n=16", *later):
        measured = rows[name].measured
        assert 0 < measured["r@1"] <= measured["r@5"] <= measured["r@10"] <= 100
        assert 0 < measured["MAP"] <= 1 <= measured["mean rank"] <= 12
    assert rows["LaSR (t=1)"].paper["mean rank"] == 523
    assert rows["LaSR (t=1) minus WSABIE"].paper["r@1"] == pytest.approx(1.06)
    assert rows["LaSR (t=1) minus WSABIE"].paper["r@1_relative"] == pytest.approx(12.6)
    assert rows[f"{crossed} minus WSABIE"].paper is None
    for name in later:
        gain = rows[f"{name} minus WSABIE"].measured
        assert gain["r@5"] == pytest.approx(rows[name].measured["r@5"] - rows["WSABIE"].measured["r@5"])
        if not rows[name].measured["kept"]:
            assert gain["r@5"] == gain["MAP"] == 0.0
            assert gain["r@5_p"] == 1.0


def test_examples_are_shown_even_of_a_stage_that_was_not_kept(annotated: Reproduction):
    kept = {row.name: row for row in annotated.rows}["LaSR (t=1)"].measured["kept"]
    lists = [row for row in annotated.rows if row.name.startswith("Table 4")]
    assert len(lists) == 16
    assert sum(row.name.endswith("LaSR (t=1)" if kept else "LaSR (t=1) though not kept") for row in lists) == 8
    for row in lists:
        assert sum(entry.startswith("[") for entry in row.entries) == row.measured["right"] <= row.measured["labels"]


def test_a_setting_is_chosen_after_the_other():
    asked = []

    def quality(settings):
        asked.append((settings["a"], settings["b"]))
        return np.array([-abs(settings["a"] - 2) - abs(settings["b"] - settings["a"])])

    trial = choose({"a": (1.0, 2.0, 3.0), "b": (5.0, 3.0, 1.0)}, dict, quality)
    assert asked == [(1, 5), (2, 5), (3, 5), (2, 3), (2, 1)]  # of equals the first stays
    assert trial.settings == {"a": 2.0, "b": 3.0}
    assert trial.quality == -1.0


def test_labels_of_test_rows_choose_nothing():
    rng = np.random.default_rng(8)
    X, Y = rng.normal(size=(120, 6)), np.eye(12)[rng.integers(0, 12, 120)]
    train, validation, test = (LabelledPart(X[some], Y[some], some) for some in np.split(np.arange(120), [70, 95]))
    two = {"step": (0.1, 0.3), "norm": (4.0, 1.0)}
    effort = replace(
        QUICK,
        regression={"strength": (10.0, 1.0)},
        machine={**two, "epochs": (4.0, 2.0)},
        wsabie=two,
        stage=two,
        on_base={"scale": (4.0, 2.0), **two, "epochs": (2.0, 1.0)},
    )
    outcomes = []
    for labels in (test.Y, np.roll(test.Y, 1, axis=1)):
        problem = AnnotationProblem(
            "made", train, validation, LabelledPart(test.X, labels, test.group), tuple("abcdefghijkl")
        )
        rows = table_5(problem, effort, 0)
        notes = ("strength", "step", "norm", "epochs", "scale", "kept")
        chosen = {row.name: [row.measured.get(note) for note in notes] for row in rows if " minus " not in row.name}
        outcomes.append((chosen, [[entry.strip("[]") for entry in row.entries] for row in rows]))
    assert outcomes[0] == outcomes[1]


def test_a_fold_has_whole_groups():
    group = np.random.default_rng(1).integers(0, 12, 200)
    folds = fold_numbers(group, 3)
    assert set(folds) == set(range(5))
    assert all(len(set(folds[group == one])) == 1 for one in range(12))
    assert sorted(len(set(group[folds == fold])) for fold in range(5)) == [2, 2, 2, 3, 3]


def test_a_stage_is_what_its_formula_says():
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(60, 5)), np.eye(30)[rng.integers(0, 30, 60)]
    part = LabelledPart(X, Y, np.arange(60))
    problem = AnnotationProblem("made", part, part, part, tuple(map(str, range(30))))
    first = first_stage(problem, 4, 0.1, 3.0, 2, 0)
    assert first.epochs in (1, 2)
    lists = best_labels(np.vstack([first.scores(X)] * 2), 20)
    for term, crossed in ((Semidefinite, slice(5, 9)), (Bilinear, slice(9, 13))):
        stage = next_stage(problem, first, lists, term, 0.1, 1.0, 2, 0)
        rows = stage.states[1].items.values.astype(float)
        moved = np.array([sum(rows[j, crossed] / place for place, j in enumerate(one, 1)) for one in lists[:60]])
        np.testing.assert_allclose(stage.scores(X), first.scores(X) + moved @ rows[:, 5:9].T, atol=1e-5)


@pytest.mark.parametrize("which", ["table", "annotated"])
def test_it_is_json_and_a_page(which, request):
    result = request.getfixturevalue(which)
    assert {"paper", "data", "seconds", "rows"} <= set(json.loads(json.dumps(asdict(result), allow_nan=False)))
    html = result.page().html()
    assert "LaSR (t=1)" in html
    assert "(523)" in html or "(6.65)" in html
    lists = [row for row in result.rows if row.entries]
    assert len(lists) == 2 * html.count('<td class="number">1.</td>')  # two stand side by side
    assert all(entry in unescape(html) for row in lists for entry in row.entries)
    rows = json.loads(json.dumps(result.as_json()))["rows"]
    assert [row.get("entries") for row in rows] == [list(row.entries) or None for row in result.rows]


def test_counts_rank_as_counting_by_hand():
    rng = np.random.default_rng(0)
    pairs = ArtistPairs(*rng.integers(0, 9, size=(2, 60)))
    table = np.zeros((9, 9))
    for q, d in zip(pairs.queries, pairs.items, strict=True):
        table[q, d] += 1
    popular = table.sum(axis=0) / 60
    vectors, items = rng.normal(size=(2, 9, 16)).astype(np.float32)
    numbers = np.array([4, 0, 7])
    for reverse in (0.0, 0.3):
        scores = np.log(1 + table + reverse * table.T + popular)
        counts = Counts.of(pairs, 9, reverse)
        assert counts.lists(numbers, 20).tolist() == np.argsort(-scores[numbers], kind="stable").tolist()
        mixed = counts.with_factors(lambda asked: Factors(IdQueries(_rows(vectors[asked])), _rows(items)), strength=2.0)
        together = 2 * scores + vectors @ items.T
        assert mixed(numbers, 9).tolist() == np.argsort(-together[numbers], kind="stable").tolist()


def _rows(values):
    return Table(values, np.empty((len(values), 0), dtype=np.float32), ())


def test_names_that_mean_nothing_are_told(tmp_path):
    with pytest.raises(ValueError, match="name: expected one of"):
        reproduce("lasr", "no_such_set", quick=True)
    path = tmp_path / "few.txt"
    path.write_text("1,2\n")
    with pytest.raises(ValueError, match="expected enough pairs of known artists"):
        reproduce("lasr", str(path), quick=True)


def test_sessions_are_cut_whole_and_by_the_seed():
    sessions = datasets.make_sessions(300, 50, random_state=2).sessions
    problem, again, other = (of_sessions("made", sessions, seed) for seed in (5, 5, 6))
    assert problem.test.items.tolist() == again.test.items.tolist() != other.test.items.tolist()
    assert set(problem.test.queries) <= set(problem.train.queries)
    assert set(problem.test.items) <= set(problem.train.items)
    everything = sessions.pairs()
    known = {(str(q), str(d)) for q, d in zip(everything.queries, everything.items, strict=True)}
    for part in (problem.train, problem.validation, problem.test):
        assert {(problem.names[q], problem.names[d]) for q, d in zip(part.queries, part.items, strict=True)} <= known
    total = sum(len(part) for part in (problem.train, problem.validation, problem.test))
    assert 0.9 * len(everything.queries) < total <= len(everything.queries)


def test_a_smaller_problem_keeps_frequent_artists():
    problem = generated_music(8000, 900, seed=0)
    small = problem.smaller()
    assert small.n_artists <= 200
    assert 1000 < len(small.train) <= 6000
    known = set(zip(problem.train.queries.tolist(), problem.train.items.tolist(), strict=True))
    number = {name: artist for artist, name in enumerate(problem.names)}
    for query, item in zip(small.train.queries, small.train.items, strict=True):
        assert (number[small.names[query]], number[small.names[item]]) in known


def test_public_data_have_the_sizes_that_are_told(shared_data):
    problem = load_music("lastfm1k_artist_sessions", 2012)
    assert 30_000 < problem.n_artists < 31_864
    assert len(problem.train) + len(problem.validation) + len(problem.test) < 936_028
    assert 0.18 < len(problem.test) / len(problem.train) < 0.3
    corel = load_annotation("corel5k_tagprop", 20, True, 0)
    assert corel.train.X.shape[1] == 20
    assert corel.train.Y.shape[1] == len(corel.label_names) <= 30


def test_a_listening_log_is_cut_by_days():
    rng = np.random.default_rng(0)
    users = np.sort(rng.integers(0, 5, 3000))
    seconds = rng.integers(0, 40 * 86400, 3000)
    log = data.ListeningLog(
        users, seconds[np.lexsort((seconds, users))], rng.integers(0, 12, 3000), tuple("abcdefghijkl")
    )
    problem = of_log("log", log, 0)
    train, test = log.split_by_day()
    assert len(problem.train) + len(problem.validation) == len(train.queries)
    assert len(problem.test) == len(test.queries)
    assert problem.names == tuple("abcdefghijkl")


def slow_recall(lists, pairs, k, drop_self):
    hits = []
    for query, item in zip(pairs.queries.tolist(), pairs.items.tolist(), strict=True):
        if drop_self and query == item:
            continue
        ranked = [one for one in lists[query] if not (drop_self and one == query)]
        hits.append(item in ranked[:k])
    return 100 * np.mean(hits)


def test_recall_is_counted_pair_by_pair():
    rng = np.random.default_rng(3)
    lists = np.array([rng.permutation(80) for _ in range(80)])
    pairs = ArtistPairs(rng.integers(0, 20, 500), rng.integers(0, 80, 500))
    found = ranks_of(lambda numbers, k: lists[numbers][:, :k], pairs, 80).recall()
    for k in (5, 10, 30, 50):
        assert found[f"R@{k}"] == pytest.approx(slow_recall(lists, pairs, k, False))
        assert found[f"R@{k} no self"] == pytest.approx(slow_recall(lists, pairs, k, True))


def test_differences_are_means_over_pairs_whoever_asks():
    rng = np.random.default_rng(4)
    pairs = ArtistPairs(rng.integers(0, 15, 400), rng.integers(0, 60, 400))
    ranks = [Ranks(pairs, rng.integers(0, top, 400), np.zeros(400, dtype=int)) for top in (30, 60)]
    gain = difference(ranks[0], ranks[1])
    assert gain["R@5"] == pytest.approx(ranks[0].recall()["R@5"] - ranks[1].recall()["R@5"])
    assert gain["R@30_p"] < 0.05
    assert difference(ranks[0], ranks[0])["R@5_p"] == 1.0
    train = ArtistPairs(np.repeat(np.arange(15), 4 * np.arange(1, 16)), np.zeros(480, dtype=int))
    bins = by_frequency(ranks[0], ranks[1], train, 60)
    sizes = {"1 to 10 times": [0, 1], "11 to 50 times": range(2, 12), "51 to 200 times": [12, 13, 14]}
    assert set(bins) == set(sizes)
    total = sum(bins[name]["R@5"] * np.isin(pairs.queries, list(of)).sum() for name, of in sizes.items())
    assert total / 400 == pytest.approx(gain["R@5"])


def test_baselines_rank_by_what_they_say(music):
    counts = np.zeros((music.n_artists, music.n_artists))
    np.add.at(counts, (music.train.queries, music.train.items), 1.0)
    np.testing.assert_allclose(log_counts(music.train, music.n_artists).toarray(), np.log1p(counts))
    left, values, right = np.linalg.svd(np.log1p(counts))
    approximation = (left[:, :6] * values[:6]) @ right[:6]
    numbers = np.arange(music.n_artists)
    found = svd(music.train, music.n_artists, 6)
    np.testing.assert_allclose(found.scores(numbers, numbers), approximation, atol=1e-8)
    np.testing.assert_array_equal(found.lists(numbers[:9], 5), np.argsort(-approximation[:9], kind="stable")[:, :5])
    top = popularity(music.train, music.n_artists).lists(numbers[:2], 3)
    assert top.tolist() == [np.argsort(-counts.sum(axis=0), kind="stable")[:3].tolist()] * 2
    factors = nmf(music.train, music.n_artists, 6)
    assert factors.query_rows.min() >= 0
    assert factors.item_rows.min() >= 0
    error = np.linalg.norm(np.log1p(counts) - factors.scores(numbers, numbers))
    assert error < 1.1 * np.linalg.norm(np.log1p(counts) - approximation)


def test_rocchio_moves_a_query_towards_its_list():
    rng = np.random.default_rng(6)
    U, V = rng.normal(size=(30, 7)), rng.normal(size=(70, 7))
    U[:, 6] = 1.0
    first = Factored(U, V)
    same = rocchio(first, 0.0)(np.array([4]), 12)[0]
    assert same.tolist() == np.argsort(-(V @ U[4]), kind="stable")[:12].tolist()
    listed = np.argsort(-(V @ U[4]), kind="stable")[:20]
    moved = U[4, :6] + 0.3 * sum(V[j, :6] / (place + 1) for place, j in enumerate(listed))
    expected = np.argsort(-(V[:, :6] @ moved + V[:, 6]), kind="stable")[:12]
    assert rocchio(first, 0.3)(np.array([4]), 12)[0].tolist() == expected.tolist()


def test_label_scorers_separate_what_can_be_separated():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 4, 200)
    X = np.eye(4)[y] + 0.05 * rng.normal(size=(200, 4))
    Y = np.eye(4)[y]
    for scores in (one_vs_rest(X, Y, 10.0), rank_svm(X, Y, 0.1, 10.0, epochs=5)):
        assert (scores(X).argmax(axis=1) == y).all()


def test_measures_of_a_row_by_hand():
    found = per_row(np.array([[2, 0, 1, 3]]), np.array([[0.0, 1.0, 1.0, 0.0]]))
    assert found["r@1"].tolist() == [50.0]
    assert found["r@5"].tolist() == [100.0]
    assert found["MAP"] == pytest.approx([(1 + 2 / 3) / 2])
    assert found["mean rank"].tolist() == [2.0]


def test_strokes_are_counted_by_direction_and_place():
    images = np.zeros((2, 105, 105), dtype=np.uint8)
    images[0, 50:54, 10:95] = 1  # a horizontal bar: gradients point up and down
    images[1, 10:95, 50:54] = 1
    across, upright = (row.reshape(7, 7, 8) for row in stroke_histograms(images))
    np.testing.assert_allclose([across.sum(), upright.sum()], 1.0)
    assert across[3].sum() > 0.9
    assert upright[:, 3].sum() > 0.9
    assert across.sum(axis=(0, 1)).argmax() == 4
    assert upright.sum(axis=(0, 1)).argmax() in (0, 7)


@pytest.fixture
def histograms():
    rng = np.random.default_rng(6)
    parts = rng.dirichlet(np.full(40, 0.2), 5)
    X = 0.7 * rng.dirichlet(np.ones(5), 90) @ parts + 0.3 * rng.dirichlet(np.ones(40), 90)
    mean = (np.arange(90) < 70) / 70  # of the training rows
    centre = np.eye(90) - np.ones((90, 1)) * mean
    return X, np.arange(90) < 70, centre @ np.minimum(X[:, None], X[None]).sum(axis=2) @ centre.T


def test_kernel_components_are_principal(histograms):
    X, train, kernel = histograms
    features = kernel_components(X, train, 6)
    values, vectors = np.linalg.eigh(kernel[:70, :70])
    expected = vectors[:, -6:] * np.sqrt(values[-6:])
    np.testing.assert_allclose(features[:70] @ features[:70].T, expected @ expected.T, atol=1e-6)
    np.testing.assert_allclose((features[:70] ** 2).sum(axis=0), values[:-7:-1], rtol=1e-6)
    new = kernel[70:, :70] @ vectors[:, -6:] / np.sqrt(values[-6:])  # the projections of rows that were not learnt from
    np.testing.assert_allclose(np.abs(features[70:]), np.abs(new[:, ::-1]), atol=1e-6)
    np.testing.assert_array_equal(features, kernel_components(X, train, 6))


def test_all_kernel_components_are_the_kernel(histograms):
    X, train, kernel = histograms
    features = kernel_components(X, train, 100)
    np.testing.assert_allclose((features @ features.T)[:, :70], kernel[:, :70], atol=1e-6)


def test_kernel_components_through_few_pivots(histograms, monkeypatch):
    X, train, kernel = histograms
    monkeypatch.setattr(lasr_labels, "PIVOTS", 30)
    monkeypatch.setattr(lasr_labels, "ROWS_A_BLOCK", 17)
    features = kernel_components(X, train, 8)
    most = np.linalg.eigvalsh(kernel[:70, :70])[-8:].sum()
    assert 0.9 * most < (features[:70] ** 2).sum() <= most
    monkeypatch.setattr(lasr_labels, "PIVOTS", 8)
    fewer = kernel_components(X, train, 8)
    errors = [np.linalg.norm(of[70:] @ of[:70].T - kernel[70:, :70]) for of in (features, fewer)]
    assert errors[0] < errors[1] < np.linalg.norm(kernel[70:, :70])


def test_the_papers_size_reports_what_it_costs(music):
    *stages, cost = at_scale(music, 6, 32, 2, 0)
    assert [row.name for row in stages] == ["LaSR (t=0)", "LaSR (t=1)", "LaSR (t=2)"]
    assert cost.measured["train_pairs"] == len(music.train) + len(music.validation)
    assert cost.measured["all_seconds"] >= cost.measured["fit_seconds"] > 0
    assert cost.measured["peak_megabytes"] > 10
    assert [cost.measured[f"epochs_t{t}"] for t in range(3)] == [2, 2, 2]
