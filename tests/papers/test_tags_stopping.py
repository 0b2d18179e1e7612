"""When to stop, on generated rows: every system, and figures that fit each other."""

import numpy as np
import pytest

from slatewise import datasets
from slatewise_papers.cstar.data import LabelProblem
from slatewise_papers.cstar.scores import Logistic
from slatewise_papers.tags.stopping import problem_rows


@pytest.mark.filterwarnings("ignore:too few of")
def test_systems_and_figures() -> None:
    scenes = datasets.make_label_scenes(600, n_labels=12, random_state=0)
    problem = LabelProblem("scenes", scenes.X, scenes.Y.astype(np.float64), Logistic())
    rows = {row.name.removeprefix("scenes: "): row.measured for row in problem_rows(problem, (1, 2))}
    assert len(rows) == 9
    assert rows["all labels answered"]["mean questions"] == 12
    assert rows["all labels answered"]["stopped"] == 0
    for kind in ("", ", proposals"):
        single, star = (rows[f"{name}{kind}, calibrated"] for name in ("single labels", "c-star"))
        saved = rows[f"single labels minus c-star{kind}, calibrated"]
        assert abs(saved["mean questions"] - (single["mean questions"] - star["mean questions"])) < 1e-9
        assert saved["mean questions_low"] <= saved["mean questions"] <= saved["mean questions_high"]
        assert 0 <= star["missed"] <= 15
        assert 0 < star["mean questions"] < 12
    assert rows["c-star, calibrated"]["wrong shown"] == 0 < rows["c-star, proposals, calibrated"]["wrong shown"]
