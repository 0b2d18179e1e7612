"""What the command line does with rows that ask for rows like themselves, and with documents."""

from pathlib import Path

import numpy as np
import pytest

from slatewise import GraphMatcher, MarginRanker, MetricRanker, load, metrics
from slatewise.tasks import task_named, task_of


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
    assert task_of(model) is task
    run = task.run(model, rows, 2)
    assert {"".join(pair) for pair in run.doc_ids[:4].reshape(2, 2)} <= {"01", "10"}  # red rows find red ones
    assert run.doc_ids[4::2].tolist() == ["2", "3", "4"]  # the others themselves
    assert np.abs(run.scores[::2]).max() < 1e-9
    assert len(task.run(model, rows, 99).scores) == 25
    precision, mean = task.evaluate(model, rows, [metrics.Precision(1), metrics.AP()])
    assert precision == 1.0
    assert 0 < mean <= 1


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
    assert task_of(model) is task
    run = task.run(model, str(path), 2)
    assert run.qid.tolist() == ["a", "a", "b", "b", "c", "c"]
    (first,) = task.evaluate(model, str(path), [metrics.Precision(1)])
    assert first == 1.0
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("a,b\nb,c\n")
    assert len(task.run(model, str(pairs), 99).scores) == 6


def test_a_model_without_a_command_says_so() -> None:
    with pytest.raises(ValueError, match=r"model: expected one of cstar, .* found GraphMatcher"):
        task_of(GraphMatcher())
