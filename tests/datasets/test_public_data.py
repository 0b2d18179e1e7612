"""The public data sets themselves: the counts their sources state, by other means than the loaders' own."""

import hashlib
import lzma
from functools import cache

import numpy as np
import pytest

from slatewise import datasets
from slatewise.data.reading import open_source
from slatewise.datasets.records import (
    FigureSet,
    ImageSet,
    LabelledSet,
    MatchingSet,
    MeetingSet,
    MultiLabelSet,
    MultiViewSet,
    OutlineSet,
    PairSet,
    QapSet,
    RankingSet,
    SessionSet,
    TaggedListeningSet,
    TaggedPairSet,
)
from slatewise.datasets.table import TABLE

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def load(shared_data):
    """Load a set once, however many tests look at it."""
    return cache(lambda name, kind: datasets.load(name, kind, folder=shared_data))


def test_every_folder_has_a_name_and_every_name_its_files(shared_data):
    folders = {path.name for path in shared_data.iterdir() if path.is_dir()}
    assert folders == {entry.folder_name for entry in TABLE.values() if entry.files}
    assert all(datasets.describe(name, folder=shared_data).present for name in datasets.names())


def test_the_download_has_the_content_of_the_file_here(shared_data):
    for entry in TABLE.values():
        if entry.download is not None:
            content = hashlib.sha256()
            with open_source(shared_data / entry.folder_name / entry.download.file) as source:
                for chunk in source.chunks():
                    content.update(chunk)
            assert content.hexdigest() == entry.download.sha256


# Ranking


@pytest.mark.parametrize(
    ("name", "queries", "labels", "features", "tests"),
    [
        ("ohsumed25", 106, [11303, 2585, 2252], 25, [3383, 2570, 3076, 3573, 3538]),
        ("ohsumed45", 106, [11303, 2585, 2252], 45, [3383, 2570, 3076, 3573, 3538]),
        ("ohsumed45_raw", 106, [11303, 2585, 2252], 45, [3383, 2570, 3076, 3573, 3538]),
        ("mq2007-85pct", 1692, [43857, 11994, 3284], 46, None),
    ],
)
def test_letor_sets(load, name, queries, labels, features, tests):
    data = load(name, RankingSet)
    assert len(set(data.qid.tolist())) == queries
    assert np.bincount(data.y.astype(int)).tolist() == labels
    assert data.X.shape == (sum(labels), features)
    assert np.isfinite(data.X).all()
    assert len(set(zip(data.qid.tolist(), data.doc_ids.tolist(), strict=True))) == len(data.y)
    assert len(data.folds) == 5
    for fold, before in zip(data.folds, (data.folds[-1], *data.folds[:-1]), strict=True):
        rows = np.concatenate([fold.train, fold.validation, fold.test])
        assert sorted(rows.tolist()) == list(range(len(data.y)))
        np.testing.assert_array_equal(fold.validation, before.test)
        assert not set(data.qid[fold.test].tolist()) & set(data.qid[fold.train].tolist())
    if tests is not None:
        assert [len(fold.test) for fold in data.folds] == tests
        assert [len(set(data.qid[fold.test].tolist())) for fold in data.folds] == [22, 21, 21, 21, 21]


def test_query_level_norm_is_in_the_unit_interval(load):
    data = load("ohsumed45", RankingSet)
    assert (data.X.min(), data.X.max()) == (0, 1)


def test_a_row_is_where_its_line_was(load, shared_data):
    data = load("ohsumed25", RankingSet)
    packed = [(shared_data / f"ohsumed25/part{part}.txt.xz").read_bytes() for part in range(1, 6)]
    lines = [line for part in packed for line in lzma.decompress(part).decode().splitlines()]
    assert len(lines) == len(data.y)
    for row in range(0, len(lines), 997):
        fields, _, comment = lines[row].partition("#")
        label, qid, *values = fields.split()
        assert (float(label), f"qid:{data.qid[row]}") == (data.y[row], qid)
        assert [float(value.partition(":")[2]) for value in values] == data.X[row].tolist()
        assert comment.split()[-1] == data.doc_ids[row]


def test_mq2007_queries(load):
    data = load("mq2007-85pct", RankingSet)
    _, query, length = np.unique(data.qid, return_inverse=True, return_counts=True)
    assert (length.min(), length.max()) == (6, 127)
    assert (np.bincount(query, weights=data.y) == 0).sum() == 259
    assert sorted(len(set(data.qid[fold.test].tolist())) for fold in data.folds) == [336, 339, 339, 339, 339]
    figures = {(run.name, run.fold): run.figures for run in data.published}
    assert len(figures) == 25
    assert figures["RankBoost", 1]["NDCG@10"] == 0.4773
    assert figures["RankBoost", 5]["MAP"] == 0.4692
    assert figures["RankBoost", 2]["P@1"] == 0.4631
    assert figures["ListNet", 4]["NDCG@1"] == 0.3520
    assert figures["RankSVM-Struct", 1]["NDCG@1"] == 0.4395
    assert figures["RankSVM-Struct", 3].keys() == figures["AdaRank-MAP", 3].keys()


def test_official_runs(shared_data):
    runs = datasets.load_official_runs("ohsumed25", folder=shared_data)
    assert [(run.name, run.fold) for run in runs[:2]] == [("RankBoost_fold1", 1), ("RankSVM_fold1", 1)]
    assert len(runs) == 10
    for run in runs:
        assert len(run.scores) == len(run.relevance) == len(run.qid)
        assert list(run.figures) == [*(f"P@{k}" for k in range(1, 17)), "MAP", *(f"NDCG@{k}" for k in range(1, 17))]
        # P@1, from scratch: the first of the highest scores of each list is relevant.
        hits = []
        for qid in dict.fromkeys(run.qid.tolist()):
            rows = np.flatnonzero(run.qid == qid)
            hits.append(run.relevance[rows[np.argmax(run.scores[rows])]] > 0)
        assert np.mean(hits) == pytest.approx(run.figures["P@1"], abs=5e-5)


def test_a_set_without_official_runs_says_so(shared_data):
    with pytest.raises(ValueError, match="ohsumed45: expected a data set that comes with official runs"):
        datasets.load_official_runs("ohsumed45", folder=shared_data)


def test_letor_baselines(load):
    data = load("letor-baselines", FigureSet)
    means = {
        ("TD2003", "RankSVM"): (0.4200, 0.3410, 0.2564),
        ("TD2003", "RankBoost"): (0.2600, 0.2851, 0.2125),
        ("TD2004", "RankSVM"): (0.4400, 0.4201, 0.3505),
        ("TD2004", "RankBoost"): (0.4800, 0.4716, 0.3835),
    }
    assert len(data.published) == 20
    for (task, method), expected in means.items():
        runs = [run.figures for run in data.published if (run.data, run.name) == (task, method)]
        assert len(runs) == 5
        found = [np.mean([run[figure] for run in runs]) for figure in ("NDCG@1", "NDCG@10", "MAP")]
        np.testing.assert_allclose(found, expected, atol=5e-5)
    assert len(data.tables) == 6
    assert data.tables["letor1_reference_OHSUMED"][3][:4] == ("Average", "3", "RankBoost", "0.497691")


def test_lightgbm_example(load):
    data = load("lightgbm-rank", RankingSet)
    (fold,) = data.folds
    assert [len(part) for part in (fold.train, fold.validation, fold.test)] == [3005, 0, 768]
    assert [len(set(data.qid[part].tolist())) for part in (fold.train, fold.test)] == [201, 50]
    assert len(set(data.qid.tolist())) == 251
    assert data.X.shape[1] == 300
    assert sorted(set(data.y.tolist())) == [0, 1, 2, 3, 4]


# Multi-label


@pytest.mark.parametrize(
    ("name", "train", "test", "features", "labels", "mean", "least", "most"),
    [
        ("mulan_bibtex", 4880, 2515, 1836, 159, 2.40, 1, 28),
        ("mulan_birds", 322, 323, 260, 19, 1.01, 0, 6),
        ("mulan_cal500", 502, None, 68, 174, 26.04, 13, 48),
        ("mulan_corel5k", 4500, 500, 499, 374, 3.52, 1, 5),
        ("mulan_delicious", 12920, 3185, 500, 983, 19.02, 0, 25),
        ("mulan_emotions", 391, 202, 72, 6, 1.87, None, None),
        ("mulan_enron", 1123, 579, 1001, 53, 3.38, 1, 12),
        ("mulan_scene", 1211, 1196, 294, 6, 1.07, None, None),
        ("mulan_yeast", 1500, 917, 103, 14, 4.24, 1, 11),
    ],
)
def test_mulan_sets(load, name, train, test, features, labels, mean, least, most):
    data = load(name, MultiLabelSet)
    n = train + (test or 0)
    assert data.X.shape == (n, features)
    assert data.Y.shape == (n, labels)
    assert len(data.label_names) == len(set(data.label_names.tolist())) == labels
    if test is None:
        assert data.is_train is None
    else:
        assert (data.is_train.sum(), (~data.is_train).sum()) == (train, test)
    per_row = data.Y.sum(axis=1)
    assert set(data.Y.data.tolist()) == {1}
    assert per_row.mean() == pytest.approx(mean, abs=0.005)
    if least is not None:
        assert (per_row.min(), per_row.max()) == (least, most)


@pytest.mark.parametrize(
    ("name", "rarest", "commonest"),
    [("mulan_bibtex", 51, 1042), ("mulan_cal500", 5, 444), ("mulan_corel5k", 1, 1120), ("mulan_delicious", 21, 6495)],
)
def test_mulan_label_frequencies(load, name, rarest, commonest):
    frequency = load(name, MultiLabelSet).Y.sum(axis=0)
    assert (frequency.min(), frequency.max()) == (rarest, commonest)


def test_corel5k(load):
    data = load("corel5k_tagprop", MultiViewSet)
    widths = {name: view.shape for name, view in data.views.items()}
    assert widths == {"DenseSift": (4999, 1000), "DenseHue": (4999, 100), "Rgb": (4999, 4096), "Lab": (4999, 4096)}
    assert data.Y.shape == (4999, 260)
    assert (data.is_train.sum(), (~data.is_train).sum()) == (4500, 499)
    per_image, frequency = data.Y.sum(axis=1), data.Y.sum(axis=0)
    assert per_image.mean() == pytest.approx(3.40, abs=0.005)
    assert (per_image.max(), (per_image[data.is_train] == 0).sum()) == (5, 7)
    assert (frequency.min(), frequency.max()) == (2, 1120)
    assert len(set(data.image_ids.tolist())) == 4999
    # Every pixel is counted once in each colour histogram, so both have the same total.
    np.testing.assert_array_equal(data.views["Rgb"].sum(axis=1) > 0, data.views["Lab"].sum(axis=1) > 0)


# One class per row


@pytest.mark.parametrize(
    ("name", "features", "counts"),
    [
        ("uci-wine", 13, [59, 71, 48]),
        ("uci-wdbc", 30, [212, 357]),
        ("uci-balance", 4, [49, 288, 288]),
    ],
)
def test_uci_tables(load, name, features, counts):
    data = load(name, LabelledSet)
    assert data.X.shape == (sum(counts), features)
    assert np.bincount(data.y).tolist() == counts
    assert len(data.class_names) == len(counts)


@pytest.mark.parametrize("name", ["uci-wine", "uci-wdbc"])
def test_scikit_learns_copy_is_the_same(load, name):
    here, there = load(name, LabelledSet), TABLE[name].builtin(TABLE[name].about)
    np.testing.assert_allclose(here.X, there.X, rtol=1e-6)
    np.testing.assert_array_equal(here.y, there.y)
    np.testing.assert_array_equal(here.class_names, there.class_names)


def test_the_scale_tips_where_the_class_says(load):
    data = load("uci-balance", LabelledSet)
    torque = data.X[:, 0] * data.X[:, 1] - data.X[:, 2] * data.X[:, 3]
    side = np.where(torque == 0, "balanced", np.where(torque > 0, "left", "right"))
    np.testing.assert_array_equal(data.class_names[data.y], side)


def test_isolet(load):
    data = load("uci-isolet", LabelledSet)
    assert data.X.shape == (3119, 617)
    assert (data.is_train.sum(), (~data.is_train).sum()) == (1560, 1559)
    assert np.bincount(data.y[data.is_train]).tolist() == [60] * 26
    assert -1 <= data.X.min() <= data.X.max() <= 1
    assert len(np.unique(data.X, axis=0)) == 3119


def test_omniglot(load):
    data = load("omniglot901", ImageSet)
    assert len(data.y) == 18020
    assert np.bincount(data.y).tolist() == [20] * 901
    assert len({name.split("/")[0] for name in data.class_names.tolist()}) == 28
    assert (data.drawer.min(), data.drawer.max()) == (1, 20)
    assert len(set(data.y[data.from_evaluation].tolist())) == 659
    some = data.images([0, 9000, 18019])
    assert some.shape == (3, 105, 105)
    assert 0.01 < some.mean() < 0.2  # ink is 1, paper 0
    assert data.images(slice(0, 5)).shape == (5, 105, 105)


# Sessions and pairs


@pytest.mark.parametrize(
    ("name", "train", "test"),
    [
        ("diginetica_sessions", (186670, 906140, 719470, 43097, 66187), (15963, None, 60858, 21131, 5564)),
        ("nowplaying_sessions", (128077, 953381, 825304, 60416, 32112), (14479, None, 89824, 31330, 3601)),
        ("tmall_sessions", (65286, None, 351268, 40727, 64155), (1027, None, 25898, 9939, 2388)),
        ("lastfm1k_artist_sessions", (25947, 297227, 271280, 23295, None), (64585, 729333, 664748, 29439, None)),
    ],
)
def test_sessions(load, name, train, test):
    data = load(name, SessionSet)
    for sessions, (count, events, pairs, items, repeats) in ((data.train, train), (data.test, test)):
        following = sessions.pairs()
        assert len(sessions) == count
        assert len(following.queries) == pairs == len(sessions.items) - count
        assert len(np.unique(sessions.items)) == items
        if events is not None:
            assert len(sessions.items) == events
        if repeats is not None:
            assert (following.queries == following.items).sum() == repeats


def test_lastfm_parts_together(load):
    data = load("lastfm1k_artist_sessions", SessionSet)
    first, second = set(data.train.items.tolist()), set(data.test.items.tolist())
    assert (len(first | second), len(second - first)) == (31864, 8569)
    repeats = sum((p.queries == p.items).sum() for p in (data.train.pairs(), data.test.pairs()))
    assert repeats == 3385


@pytest.mark.parametrize("name", ["diginetica_sessions", "nowplaying_sessions", "tmall_sessions"])
def test_no_test_item_is_unseen(load, name):
    data = load(name, SessionSet)
    assert np.isin(data.test.items, data.train.items).all()


def test_bigrams(load):
    pairs = load("aotm_bigrams", PairSet).pairs
    assert len(pairs.queries) == 66250
    assert len(set(zip(pairs.queries.tolist(), pairs.items.tolist(), strict=True))) == 64566
    assert len(set(pairs.queries.tolist()) | set(pairs.items.tolist())) == 26752


def test_citeulike(load):
    data = load("citeulike_a", TaggedPairSet)
    assert len(data.pairs.queries) == 204986
    assert len(np.unique(data.pairs.queries)) == 5551
    assert np.unique(data.pairs.items).tolist() == list(range(16980))
    assert data.item_tags.shape == (16980, 46391)
    assert data.item_tags.nnz == 239253
    assert set(data.item_tags.data.tolist()) == {1.0}
    assert sorted(data.pairs.items[data.pairs.queries == 0].tolist())[:4] == [495, 1631, 2317, 2526]


def test_hetrec(load):
    data = load("hetrec2011_lastfm_2k", TaggedListeningSet)
    assert len(data.listens.queries) == 92834
    assert len(np.unique(data.listens.queries)) == 1892
    assert len(np.unique(data.listens.items)) == 17632 == len(data.artist_names)
    assert len(data.tag_names) == 11946
    assert data.taggings.shape == (186479, 6)
    assert data.friends.shape == (25434, 2)
    assert {tuple(row) for row in data.friends.tolist()} == {tuple(row[::-1]) for row in data.friends.tolist()}
    assert data.artist_names[1] == "MALICE MIZER"
    annotation = data.annotation()
    assert annotation.Y.shape == (12523, 9749)
    assert annotation.Y.nnz == 109750
    assert set(annotation.Y.data.tolist()) == {1}
    assert (annotation.Y.sum(axis=0) >= 5).sum() == 2216
    assert annotation.X.shape == (12523, 1892)
    assert (np.diff(annotation.X.indptr) > 0).sum() == 12133


# Shapes, assignment, people


def test_outlines(load):
    data = load("mpeg7_contours", OutlineSet)
    assert data.outlines.shape == (1300, 100, 2)
    assert np.bincount(data.y).tolist() == [20] * 65
    assert {"horse", "elephant", "camel", "deer", "dog", "cattle"} <= {
        name.lower() for name in data.class_names.tolist()
    }
    steps = np.linalg.norm(data.outlines - np.roll(data.outlines, 1, axis=1), axis=2)
    assert steps.min() > 0
    # Neighbours along the outline lie close together: the axes are the right way round.
    size = np.ptp(data.outlines, axis=1).max(axis=1)
    assert (np.median(steps, axis=1) < 0.2 * size).all()


def test_house(load):
    data = load("cmu_house", MatchingSet)
    assert data.points.shape == (111, 30, 2)
    assert data.shape_context.shape == (111, 30, 60)
    assert (data.adjacency == data.adjacency.transpose(0, 2, 1)).all()
    frames = [data.frames.train, data.frames.validation, data.frames.test]
    assert [len(part) for part in frames] == [37, 37, 37]
    assert len(set(np.concatenate(frames).tolist())) == 111
    parts = [part for split in data.pairs.values() for part in (split.train, split.validation, split.test)]
    assert list(data.pairs) == list(range(0, 100, 10))
    assert sum(len(part) for part in parts) == 660
    for gap, split in data.pairs.items():
        assert (np.diff(split.test, axis=1) == gap).all()


BEST = {
    "bur26a": 5426670,
    "chr20a": 2192,
    "esc32a": 130,
    "had20": 6922,
    "kra30a": 88900,
    "lipa40a": 31538,
    "nug12": 578,
    "nug20": 2570,
    "nug30": 6124,
    "sko42": 15812,
    "sko49": 23386,
    "ste36a": 9526,
    "tai12a": 224416,
    "tai20a": 703482,
    "tai30a": 1818146,
    "tai30b": 637117113,
    "tai40a": 3139370,
    "tai50a": 4938796,
    "tai50b": 458821517,
    "wil50": 48816,
}


def test_qaplib(load):
    data = load("qaplib", QapSet)
    assert {name: problem.best_value for name, problem in data.instances.items()} == BEST
    assert [name for name, problem in data.instances.items() if problem.permutation is None] == ["ste36a"]
    for name, problem in data.instances.items():
        n = int("".join(filter(str.isdigit, name)))
        assert problem.A.shape == problem.B.shape == (n, n)
        if problem.permutation is not None:
            p = problem.permutation.tolist()
            assert sorted(p) == list(range(n))
            value = sum(int(problem.A[i, j]) * int(problem.B[p[i], p[j]]) for i in range(n) for j in range(n))
            assert value == problem.best_value == problem.value(problem.permutation)


def test_speed_dating(load):
    data = load("speed-dating", MeetingSet)
    assert len(data.match) == 8378
    assert len(data.person_ids) == len(data.people) == 551
    assert len(set(data.wave.tolist())) == 21
    assert (data.match.sum(), data.decision.sum(), (data.partner == -1).sum()) == (1380, 3518, 10)
    met = {pair: row for row, pair in enumerate(zip(data.subject.tolist(), data.partner.tolist(), strict=True))}
    for (subject, partner), row in met.items():
        if partner != -1:
            other = met[partner, subject]
            assert data.match[row] == data.match[other] == data.decision[row] * data.decision[other]
    gender = data.people[:, data.feature_names.tolist().index("gender")]
    known = data.partner != -1
    assert (gender[data.subject[known]] != gender[data.partner[known]]).all()
    _, lengths = np.unique(data.subject, return_counts=True)
    assert (lengths.min(), lengths.max()) == (5, 22)
    leaks = {"attr", "sinc", "intel", "fun", "amb", "shar", "like", "prob", "dec", "match", "dec_o"}
    assert not leaks & set(data.feature_names.tolist())
    assert not any(name.endswith(("_o", "_2", "_3", "_s")) for name in data.feature_names.tolist())
