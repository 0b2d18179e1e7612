"""The part on labels, on generated rows: every system, and the same figure in any unit."""

import numpy as np

from slatewise import datasets
from slatewise_papers.cstar.data import LabelProblem
from slatewise_papers.cstar.scores import Logistic
from slatewise_papers.defaults.tags import problem_rows


def test_systems_and_figures() -> None:
    scenes = datasets.make_label_scenes(200, n_labels=6, random_state=0)
    problem = LabelProblem("scenes", scenes.X, scenes.Y.astype(np.float64), Logistic())
    rows = problem_rows(problem, 2, 0)
    figures = {row.name: row.measured["break-even precision"] for row in rows}
    assert "scenes: likelihood-k on logistic, C=1 per row" in figures
    assert len(figures) == 7
    assert abs(figures["scenes: CStarRanker()"] - figures["scenes: CStarRanker() on 1e-06 X"]) < 5
    assert all(30 < value <= 100 for value in figures.values())
    assert all(0 <= row.measured["break-even precision_se"] < 30 for row in rows)
