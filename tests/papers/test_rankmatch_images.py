import numpy as np
import pytest

from slatewise_papers.rankmatch.images import LIKELIHOOD, MARGIN, UNLEARNED, Pairs, run_images, silhouette_problem


@pytest.fixture(scope="module")
def images(shared_data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLATEWISE_DATA", str(shared_data))
        yield run_images(quick=True, seed=0)


def test_rows_and_figures(images):
    measured = {row.name: row.measured for row in images.rows}
    for data, columns in (("silhouettes", ["N=5", "N=10"]), ("house", ["separation 90"])):
        for name in (UNLEARNED, MARGIN, LIKELIHOOD):
            assert list(measured[f"{data}: {name}"]) == columns
            assert all(0 <= value < 0.6 for value in measured[f"{data}: {name}"].values())
        difference = measured[f"{data}: {LIKELIHOOD} minus {MARGIN}"]
        for column in columns:
            one, other = (measured[f"{data}: {name}"][column] for name in (LIKELIHOOD, MARGIN))
            assert difference[column] == pytest.approx(one - other)
            assert 0 < difference[f"{column}_p"] <= 1


def test_learning_helps(images):
    measured = {row.name: row.measured for row in images.rows}
    for name in (MARGIN, LIKELIHOOD):
        assert measured[f"house: {name}"]["separation 90"] < measured[f"house: {UNLEARNED}"]["separation 90"] - 0.2
        assert measured[f"silhouettes: {name}"]["N=10"] < measured[f"silhouettes: {UNLEARNED}"]["N=10"]


def test_figures_are_pictures(images):
    assert len(images.figures) == 2
    for svg, caption in images.figures:
        assert svg.startswith("<svg")
        assert caption.endswith(".")


def test_pairs_of_three_kinds_share_no_image(shared_data, monkeypatch):
    monkeypatch.setenv("SLATEWISE_DATA", str(shared_data))
    problem = silhouette_problem(4, 6, seed=1)
    assert [len(part.graphs) for part in problem] == [4, 4, 6]
    assert np.std(np.array(problem.train.graphs)) == pytest.approx(1.0)
    for graph, match in zip(problem.test.graphs, problem.test.matches, strict=True):
        assert sorted(match.tolist()) == list(range(20))
        assert graph[np.arange(20), match].mean() < graph.mean()


def test_errors_are_shares_of_wrong_points():
    pairs = Pairs([np.eye(3)[:, :, None], np.eye(3)[:, :, None]], [np.array([0, 1, 2]), np.array([0, 2, 1])])
    np.testing.assert_allclose(pairs.errors(np.ones(1)), [0.0, 2 / 3])
