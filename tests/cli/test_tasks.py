"""What the command line does with rows that ask for rows like themselves, and with documents."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse

from slatewise import GraphMatcher, MarginRanker, MetricRanker, kernels, load, losses, metrics
from slatewise.cli.options import DataOptions
from slatewise.cli.tasks import _features, task_for_model, task_named
from slatewise.data import write_npz
from slatewise.data.records import MultiLabel, RowsToRank


@pytest.fixture
def rows(tmp_path: Path) -> str:
    path = tmp_path / "rows.csv"
    path.write_text("length,width,class\n1,20,red\n1.5,25,red\n5,21,blue\n5.5,24,blue\n5.7,22,blue\n")
    return str(path)


def test_rows_rank_the_training_rows(rows: str, tmp_path: Path) -> None:
    task = task_named("metric")
    model = task.make(["C=10", "loss=map"])
    task.fit(model, rows)
    model.save(tmp_path / "model")
    model = load(tmp_path / "model")
    assert isinstance(model, MetricRanker)
    assert task_for_model(model) is task
    run = task.run(model, rows, 2)
    assert {"".join(pair) for pair in run.doc_ids[:4].reshape(2, 2)} <= {"01", "10"}  # red rows find red ones
    assert run.doc_ids[4::2].tolist() == ["2", "3", "4"]  # the others themselves
    assert np.abs(run.scores[::2]).max() < 1e-9
    assert len(task.run(model, rows, 99).scores) == 25
    precision, mean = task.evaluate(model, rows, [metrics.Precision(1), metrics.AP()])
    assert precision == 1.0
    assert 0 < mean <= 1


def test_the_loss_and_the_kernel_of_a_distance_have_parameters(rows: str) -> None:
    model = task_named("metric").make(["loss__k=2", "loss=precision", "kernel__gamma=0.5", "kernel=rbf"])
    assert (model.loss, model.kernel) == (losses.Precision(2), kernels.Rbf(0.5))
    with pytest.raises(
        ValueError, match="--param loss__k: expected a parameter of loss='precision' or 'ndcg' or 'knn'"
    ):
        task_named("metric").make(["loss__k=2"])


def test_a_distance_of_lists_is_not_measured_by_classes(rows: str) -> None:
    model = MetricRanker().fit([[0.0, 1.0], [1.0, 1.0], [5.0, 1.0]], relevance=[[0, 1, 0], [1, 0, 0], [0, 1, 0]])
    with pytest.raises(ValueError, match="model: expected one fitted on rows with classes"):
        task_named("metric").evaluate(model, rows, [metrics.AP()])


def test_distances_of_rows_far_from_zero_are_not_lost(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = np.column_stack([3.0 * y + rng.normal(size=40), rng.normal(size=40)])
    lines = [f"{a + 1.7e9:.6f},{b:.6f},{'red' if label else 'blue'}" for (a, b), label in zip(X, y, strict=True)]
    path = tmp_path / "far.csv"
    path.write_text("\n".join(["time,width,class", *lines]) + "\n")
    task = task_named("metric")
    model = task.make(["C=10"])
    task.fit(model, str(path))
    run = task.run(model, str(path), 5)
    order = run.doc_ids.astype(int).reshape(40, 5)
    differences = X[:, None] - X[order]
    expected = -np.einsum("qid,de,qie->qi", differences, model.metric_, differences)
    np.testing.assert_allclose(run.scores.reshape(40, 5), expected, atol=1e-5)
    assert order[:, 0].tolist() == list(range(40))
    assert (np.diff(run.scores.reshape(40, 5), axis=1) <= 0).all()
    (mean,) = task.evaluate(model, str(path), [metrics.AP()])
    assert mean == pytest.approx(MetricRanker(C=10).fit(X, y).score(X, y), abs=0.02)


def test_documents_rank(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("1 qid:1 1:2\n0 qid:1 1:1\n0 qid:2 1:5\n1 qid:2 1:8\n")
    task = task_named("margin")
    model = task.make(["C=10"])
    task.fit(model, str(path))
    assert isinstance(model, MarginRanker)
    assert task.evaluate(model, str(path), [metrics.AP()]) == [1.0]


def test_sessions_rank_the_catalogue(tmp_path: Path) -> None:
    path = tmp_path / "sessions.txt"
    path.write_text("a b c\n" * 30 + "b c a\n" * 20)
    task = task_named("latent")
    model = task.make(["n_components=4", "epochs=5"])
    task.fit(model, str(path))
    assert task_for_model(model) is task
    run = task.run(model, str(path), 2)
    assert run.qid.tolist() == ["a", "a", "b", "b", "c", "c"]
    (first,) = task.evaluate(model, str(path), [metrics.Precision(1)])
    assert first == 1.0
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("a,b\nb,c\n")
    assert len(task.run(model, str(pairs), 99).scores) == 6


@pytest.fixture
def cycle(tmp_path: Path):
    """A model that knows that b follows a, c follows b and a follows c."""
    path = tmp_path / "sessions.txt"
    path.write_text("a b c\n" * 30 + "b c a\n" * 20)
    task = task_named("latent")
    model = task.make(["n_components=4", "epochs=5"])
    task.fit(model, str(path))
    return task, model


def test_pairs_of_unknown_queries_are_misses(cycle, tmp_path: Path) -> None:
    task, model = cycle
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("a,b\nb,c\nnew,a\nnewer,b\na,z\n")
    with pytest.warns(UserWarning, match=r"2 of 4 queries, 'new' the first, are unknown .* count as misses"):
        recall, mrr = task.evaluate(model, str(pairs), [metrics.Recall(1), metrics.RR()])
    assert recall == pytest.approx((1 / 2 + 1 + 0 + 0) / 4)  # of a's two items one is unknown
    assert mrr == pytest.approx((1 + 1 + 0 + 0) / 4)
    with pytest.warns(UserWarning, match=r"'new' the first, are unknown to the model and get no list"):
        assert set(task.run(model, str(pairs), 2).qid) == {"a", "b"}
    pairs.write_text("new,a\n")
    with pytest.raises(ValueError, match=r"pairs\.csv: expected queries that the model knows, found none"):
        task.evaluate(model, str(pairs), [metrics.Recall(1)])


def test_ids_are_the_same_whatever_else_is_in_their_file(tmp_path: Path) -> None:
    """A file of numbers alone has whole numbers as ids, one with a text has texts."""
    path, pairs = tmp_path / "sessions.txt", tmp_path / "pairs.csv"
    path.write_text("1 2 x\n" * 30)
    task = task_named("latent")
    model = task.make(["n_components=4", "epochs=5"])
    task.fit(model, str(path))
    pairs.write_text("1,2\n")
    assert task.evaluate(model, str(pairs), [metrics.Recall(1)]) == [1.0]


def test_weights_of_pairs_count(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("user,item,often\n" + "a,x,1\na,y,9\nb,y,1\nb,x,9\n" * 20)
    plain = task_named("latent")
    weighted = plain.reading(DataOptions(weight="often"))
    models = []
    for task in (plain.reading(DataOptions(header=True)), weighted):
        model = task.make(["n_components=4", "epochs=8", "validation_fraction=0", "random_state=0"])
        if task is weighted:
            task.fit(model, str(path))
        else:
            with pytest.warns(UserWarning, match="two of 3 columns are read"):
                task.fit(model, str(path))
        models.append(model)
    assert models[1].rank(["a", "b"], 1).ids.tolist() == [["y"], ["x"]]
    assert models[0].item_factors_.tobytes() != models[1].item_factors_.tobytes()
    with pytest.raises(ValueError, match="--header: expected with files of pairs"):
        task_named("margin").reading(DataOptions(header=True))


def test_features_rank_the_catalogue(tmp_path: Path) -> None:
    """Rows with sets of labels: labels are the items, as from Python."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 300)
    X = np.eye(3)[kind] + 0.1 * rng.normal(size=(300, 3))
    names = np.array(["red", "green", "blue", "dark"])
    Y = np.column_stack([np.eye(3)[kind], rng.random(300) < 0.2])
    write_npz(tmp_path / "tags.npz", MultiLabel(X, csr_array(Y), names))
    lines = [
        ",".join(map(str, np.flatnonzero(y))) + "".join(f" {i + 1}:{v!r}" for i, v in enumerate(x.tolist()))
        for x, y in zip(X, Y, strict=True)
    ]
    (tmp_path / "tags.txt").write_text("\n".join(lines) + "\n")
    task = task_named("latent-features")
    models = []
    for name in ("tags.npz", "tags.txt"):
        model = task.make(["n_components=4", "epochs=8", "random_state=0"])
        task.fit(model, str(tmp_path / name))
        models.append(model)
    assert models[0].item_factors_.shape == models[1].item_factors_.shape
    path, model = str(tmp_path / "tags.npz"), models[0]
    run = task.run(model, path, 2)
    assert run.qid[:4].tolist() == ["0", "0", "1", "1"]
    assert run.doc_ids[::2].tolist() == names[model.rank(X, 1).ids.ravel()].tolist()
    (first,) = task.evaluate(model, path, [metrics.Precision(1)])
    assert first == pytest.approx(Y[np.arange(300), model.rank(X, 1).ids.ravel()].mean())
    assert first > 0.95
    assert len(task.run(model, path, 99).scores) == 1200
    with pytest.raises(ValueError, match="--header: expected with files of pairs"):
        task.reading(DataOptions(header=True)).run(model, path, 2)


@pytest.mark.parametrize("few", [True, False])
def test_features_are_dense_where_few_of_them_are_zero(few: bool) -> None:
    X = np.eye(4) + (1.0 if few else 0.0)
    for given in (X, csr_array(X)):
        features = _features(RowsToRank(given, np.zeros(4), np.arange(4)))
        assert issparse(features) is not few
        assert (features is given) == (issparse(given) is not few)
        np.testing.assert_array_equal(features if few else features.toarray(), X)


def test_a_model_without_a_command_says_so() -> None:
    with pytest.raises(ValueError, match=r"model: expected one of collaborative, .* found GraphMatcher"):
        task_for_model(GraphMatcher())
