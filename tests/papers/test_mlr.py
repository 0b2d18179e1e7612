"""The tables of metric learning to rank: rows, figures and choices, on small and on generated data."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from slatewise import datasets
from slatewise.datasets.records import RankingSet
from slatewise.inputs import read_classes
from slatewise.papers import Reproduction, reproduce
from slatewise.papers.mlr_data import Fold, inner_folds, load_problem, standardised
from slatewise.papers.mlr_knn import Method, Setting, choose, error_on_test
from slatewise.papers.mlr_retrieval import Lists, Retrieval


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes that differ in one of three features; the others are louder."""
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    X = np.column_stack([rng.normal(size=100), y + 0.2 * rng.normal(size=100), rng.normal(size=100)])
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


def test_the_papers_figures_stand_beside() -> None:
    table = reproduce("mlr", "uci-wine", quick=True)
    published = {row.name: row.paper for row in table.rows}
    assert published["uci-wine: MLR-MAP"] == {"error": 1.0}
    assert published["uci-wine: LMNN"] == {"error": 1.7}
    assert published["uci-wine: MLR, best on validation"] is None


def test_the_choice_is_by_three_neighbours_and_looks_at_no_test_row() -> None:
    rng = np.random.default_rng(1)
    y = np.arange(80) % 2
    X = np.column_stack([y + 0.1 * rng.normal(size=80), 10 * rng.normal(size=80)])
    fold = Fold(X[:60], y[:60], np.full((20, 2), np.nan), y[60:])
    maps = {1.0: np.eye(2), 2.0: np.diag([1.0, 0.0]), 3.0: np.diag([0.0, 1.0])}
    given = {C: lambda rows, matrix=matrix: rows @ matrix for C, matrix in maps.items()}
    method = Method("given", tuple(Setting(C) for C in maps), lambda X, y, settings: [given[one.C] for one in settings])
    chosen = choose(method, [Fold(X[:40], y[:40], X[40:60], y[40:60])])
    assert chosen.setting.C == 2.0
    knn = KNeighborsClassifier(3).fit(X[:40] @ maps[2.0], y[:40])
    assert chosen.error == pytest.approx(100 * (1 - knn.score(X[40:60] @ maps[2.0], y[40:60])))
    assert error_on_test(chosen, fold._replace(X_test=X[60:])) == 0.0


def test_scaling_is_by_the_training_rows() -> None:
    rng = np.random.default_rng(2)
    X = 5.0 + 3.0 * rng.normal(size=(30, 2))
    X[:, 1] = 7.0
    fold = standardised(X[:20], np.zeros(20, dtype=np.int64), X[20:], np.zeros(10, dtype=np.int64))
    assert fold.X.mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert fold.X[:, 0].std() == pytest.approx(1)
    assert (fold.X_test[:, 1] == 0).all()


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
