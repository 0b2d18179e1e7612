"""The tables of metric learning to rank: rows, figures and choices, on small and on generated data."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from slatewise import datasets
from slatewise.cli.inputs import read_classes
from slatewise.datasets.records import RankingSet
from slatewise_papers import Reproduction, reproduce
from slatewise_papers.mlr import tables as mlr
from slatewise_papers.mlr.data import Fold, Map, common, inner_folds, load_problem, standard, unscaled
from slatewise_papers.mlr.knn import (
    JUDGED_NEIGHBORS,
    Judged,
    Method,
    Setting,
    error_on_test,
    ranked_settings,
    scaled_each_way,
)
from slatewise_papers.mlr.retrieval import Lists, Retrieval


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes that differ in one of three features; the others are louder."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.column_stack([rng.normal(size=60), y + 0.2 * rng.normal(size=60), rng.normal(size=60)])
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    lines = [f"{a:.4f},{b:.4f},{c:.4f},{'no' if label else 'yes'}" for (a, b, c), label in zip(X, y, strict=True)]
    path.write_text("\n".join(["one,two,three,class", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def table(csv: Path) -> Reproduction:
    return reproduce("mlr", str(csv), quick=True)


def test_every_method_has_an_error(table: Reproduction, csv: Path) -> None:
    errors = {row.name.removeprefix(f"{csv}: "): row.measured["error"] for row in table.rows}
    assert list(errors)[:3] == ["Euclidean", "NCA", "MLCC"]
    assert {"MLR-AUC", "MLR-P@k", "MLR-MAP", "MLR-MRR", "MLR-NDCG", "MLR, best on validation"} <= set(errors)
    assert all(0 <= error <= 100 for error in errors.values())
    assert errors["MLR, best on validation"] in [errors[name] for name in errors if name.startswith("MLR-")]
    json.dumps(asdict(table), allow_nan=False)


def test_the_papers_figures_stand_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    wine = load_problem("uci-wine")
    small = replace(wine, X=wine.X[::3, :3], y=wine.y[::3], scalings=(standard,))
    monkeypatch.setattr(mlr, "load_problem", {"uci-wine": small}.get)
    table = reproduce("mlr", "uci-wine", quick=True)
    published = {row.name: row.paper for row in table.rows}
    assert published["uci-wine: MLR-MAP"] == {"error": 1.0}
    assert published["uci-wine: LMNN"] == {"error": 1.7}
    assert published["uci-wine: MLR, best on validation"] is None


def _given(maps: dict[float, np.ndarray]) -> Method:
    """A method that learns nothing: C says which matrix."""

    def learn(X: np.ndarray, y: np.ndarray, settings: Sequence[Setting]) -> list[Map]:
        return [lambda rows, matrix=maps[setting.C]: rows @ matrix for setting in settings]

    settings = tuple(Setting(C) for C in maps)
    return Method("given", settings, settings[0], learn)


@pytest.fixture
def rows() -> Fold:
    """The first feature tells the classes, the second is louder."""
    rng = np.random.default_rng(1)
    y = np.arange(80) % 2
    X = np.column_stack([y + 0.1 * rng.normal(size=80), 10 * rng.normal(size=80)])
    return Fold(X[:60], y[:60], X[60:], y[60:])


MAPS = {1.0: np.eye(2), 2.0: np.diag([1.0, 0.0]), 3.0: np.diag([0.0, 1.0])}


def test_settings_are_judged_on_the_folds_they_are_given(rows: Fold) -> None:
    inner = Fold(rows.X[:40], rows.y[:40], rows.X[40:], rows.y[40:])
    judged = ranked_settings(_given(MAPS), [{unscaled: inner}])
    assert judged[0].setting.C == 2.0
    assert [one.others for one in judged] == sorted(one.others for one in judged)
    learned = [one for one in judged if not one.setting.beside]
    assert len(learned) == len(judged) / 2 == len(MAPS)
    for one in learned:
        matrix = MAPS[one.setting.C]
        distances = [np.linalg.norm((inner.X - row) @ matrix, axis=1) for row in inner.X_test]
        nearest = [inner.y[np.argsort(row)[:JUDGED_NEIGHBORS]] for row in distances]
        shares = [np.mean(classes != label) for classes, label in zip(nearest, inner.y_test, strict=True)]
        assert one.others == pytest.approx(100 * np.mean(shares))
    assert error_on_test(judged[:1], {unscaled: rows}) == 0.0


def test_the_scaling_is_chosen_by_the_typical_setting(rows: Fold) -> None:
    inner = Fold(rows.X[:40], rows.y[:40], rows.X[40:], rows.y[40:])
    judged = ranked_settings(_given({1.0: np.eye(2), 3.0: MAPS[3.0]}), [scaled_each_way(inner, [common, standard])])
    assert {(one.setting.C, one.setting.scaling) for one in judged} == {(1.0, standard), (3.0, standard)}


def test_the_mean_distance_is_of_the_mean_matrix(rows: Fold) -> None:
    rng = np.random.default_rng(4)
    maps = {C: rng.normal(size=(2, 2)) for C in (1.0, 2.0, 3.0)}
    method = _given(maps)
    chosen = [Judged(method, setting._replace(scaling=unscaled), 0.0) for setting in method.settings]
    pairs = [(a, b) for a in rows.X for b in rows.X]
    W = sum(
        matrix @ matrix.T / np.mean([((a - b) @ matrix) @ ((a - b) @ matrix) for a, b in pairs])
        for matrix in maps.values()
    )
    knn = KNeighborsClassifier(3, metric="mahalanobis", metric_params={"VI": W}, algorithm="brute")
    error = 1 - knn.fit(rows.X, rows.y).score(rows.X_test, rows.y_test)
    assert error > 0
    assert error_on_test(chosen, {unscaled: rows}) == pytest.approx(100 * error)


def test_the_distance_before_learning_has_half_a_say(rows: Fold) -> None:
    method = _given({1.0: MAPS[3.0]})
    scaled = scaled_each_way(rows, [standard])
    before, _ = ranked_settings(_given({1.0: np.eye(2)}), [scaled])
    beside, learned = ranked_settings(method, [scaled])
    assert beside.setting.beside
    assert not learned.setting.beside
    assert before.others < beside.others < learned.others
    spread = rows.X.std(axis=0)
    half = np.diag(np.sqrt([0.5, 1.5]) / spread)  # of both features one half, and of the second one again
    knn = KNeighborsClassifier(3).fit(rows.X @ half, rows.y)
    assert error_on_test([beside], scaled) == pytest.approx(100 * (1 - knn.score(rows.X_test @ half, rows.y_test)))


def test_another_seed_cuts_other_splits(csv: Path) -> None:
    problem = load_problem(str(csv))
    first, again, other = (next(problem.folds(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.X, again.X)
    assert (first.X != other.X).any()


def test_folds_of_speakers_share_no_speaker(shared_data: Path) -> None:
    problem = load_problem("uci-isolet")
    (fold,) = problem.folds()
    assert fold.X.shape == (1560, 170)
    assert fold.X_test.shape == (1559, 170)
    speaker = fold.speaker
    assert speaker is not None
    assert np.bincount(speaker).tolist() == [52] * 30
    inner = list(inner_folds(fold))
    assert [len(part.y_test) for part in inner] == [6 * 52] * 2


def test_scores_of_pairs_are_distances() -> None:
    rng = np.random.default_rng(3)
    X, L = rng.normal(size=(6, 4)), rng.normal(size=(2, 4))
    query, item = np.array([0, 0, 1, 5]), np.array([1, 2, 4, 3])
    lists = Lists(X, query, item, np.array([True, False, True, True]))
    expected = [-(((X[q] - X[i]) @ L.T) ** 2).sum() for q, i in zip(query, item, strict=True)]
    np.testing.assert_allclose(lists.scores(L.T @ L), expected)
    assert lists.useful().query.tolist() == [0, 0]


def test_items_of_one_table_are_counted_once_and_of_two_apart() -> None:
    X, relevant = np.zeros((6, 2)), np.array([True, False, True])
    train = Lists(X, np.array([0, 0, 1]), np.array([1, 2, 2]), relevant)
    test = Lists(X, np.array([3, 3, 4]), np.array([2, 4, 5]), relevant)
    assert Retrieval(train, train, train, test).n_items == 4
    other = Lists(X.copy(), test.query, test.item, relevant)
    assert Retrieval(train, train, train, other).n_items == 5


@pytest.mark.parametrize(("name", "least", "users"), [("speed-dating", 0.45, 551), ("omniglot901", 0.7, 32 * 12)])
def test_retrieval_table(shared_data: Path, name: str, least: float, users: int) -> None:
    table = reproduce("mlr", name, quick=True)
    sizes, *rows = table.rows
    assert set(sizes.measured) == {"train", "test", "users", "queries"}
    assert sizes.measured["users"] == users
    assert [row.name.removeprefix(f"{name}: ") for row in rows] == [
        "MLR-AUC",
        "MLR-MAP",
        "MLR-MRR",
        "SVM-MAP",
        "Euclidean",
    ]
    for row in rows:
        assert least < row.measured["AUC"] <= 1
        assert row.paper is not None


def test_documents_table(shared_data: Path) -> None:
    table = reproduce("mlr", "ohsumed25", quick=True)
    official = next(run for run in datasets.load("ohsumed25", RankingSet).runs if run.name == "RankSVM_fold1")
    assert table.rows[0].measured["MAP"] == pytest.approx(official.figures["MAP"], abs=1e-4)
    ours = next(row for row in table.rows if row.name.endswith("MarginRanker-MAP"))
    assert ours.measured["MAP"] > official.figures["MAP"] - 0.02


def test_svmlight_holds_classes_too(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("1 1:0.5 2:3\n2 1:0.7\n1 2:1\n")
    rows = read_classes(str(tmp_path / "rows"), n_features=3)
    assert rows.y.tolist() == [1, 2, 1]
    assert rows.X.tolist() == [[0.5, 3, 0], [0.7, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,a\n3,x,b\n", "rows.csv:2:3: expected a finite number, found 'x'"),
        ("1,2,a\n3,b\n", "rows.csv:2:1: expected 2 numbers and a class"),
        ("1,2,a\n3,4,\n", "rows.csv:2:1: expected 2 numbers and a class"),
        ("one,two,class\n", "rows.csv:1:1: expected at least one row"),
        ("1,2,a\n" * 9, "expected at least two classes"),
        ("1,2,a\n" * 9 + "3,4,b\n" * 4, "expected at least two classes of at least 5 rows"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        reproduce("mlr", str(path), quick=True)
