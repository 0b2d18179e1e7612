"""Table 1 on a generated file: the rows, the figures, the schema."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from slatewise import data, datasets
from slatewise_papers import Reproduction, reproduce
from slatewise_papers.cstar.scores import BaseScores, KernelSvm, Logistic, chain_log_odds, fit_logistic
from slatewise_papers.cstar.tables import FOLD_SEED
from slatewise_papers.framework.arrays import folds


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    scenes = datasets.make_label_scenes(50, n_labels=9, random_state=0)
    path = tmp_path_factory.mktemp("scenes") / "scenes.npz"
    names = np.array([f"tag{i}" for i in range(9)])
    data.write_npz(path, data.MultiLabel(scenes.X, csr_array(scenes.Y.astype(float)), names))
    return reproduce("cstar", str(path), quick=True)


def test_rows_and_figures(table: Reproduction) -> None:
    names = [row.name for row in table.rows]
    for name in ("base scores", "classifier chains", "pre-trained, independent", "kernel, c-star C=5"):
        assert name in names
    for row in table.rows:
        assert {"auto", "Q1", "Q5", "Q10"} <= set(row.measured)
        if " minus " in row.name:
            for column in ("auto", "Q1", "Q5", "Q10"):
                assert row.measured[f"{column}_low"] <= row.measured[column] <= row.measured[f"{column}_high"]
                assert 0 < row.measured[f"{column}_p"] <= 1
        else:
            assert 0 < row.measured["auto"] <= row.measured["Q10"] + 1e-9
            assert row.measured["Q10"] == 100.0  # nine labels, ten questions


def test_the_papers_figures_stand_beside(table: Reproduction) -> None:
    published = {row.name: row.paper for row in table.rows}
    assert published["pre-trained, c-star C=5"] == {"auto": 68.0, "Q1": 69.8, "Q5": 76.1, "Q10": 81.6}
    assert published["pre-trained, c-star C=5 minus pre-trained, independent"] == pytest.approx(
        {"auto": 1.4, "Q1": 1.3, "Q5": 1.1, "Q10": 0.5}
    )
    assert published["base scores"] is None


def test_it_is_json(table: Reproduction) -> None:
    text = json.dumps(asdict(table), allow_nan=False)
    assert {"paper", "data", "seconds", "rows"} <= set(json.loads(text))


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(ValueError, match="no_such_set: expected a file or one of the names"):
        reproduce("cstar", "no_such_set", quick=True)


def test_a_seed_cuts_other_folds() -> None:
    cuts = [[test.tolist() for _, test in folds(50, seed=seed)] for seed in (FOLD_SEED, FOLD_SEED, FOLD_SEED + 1)]
    assert cuts[0] == cuts[1] != cuts[2]


def test_fixed_folds_take_no_seed() -> None:
    with pytest.raises(ValueError, match="seed: expected none for letor, whose folds are fixed, found 3"):
        reproduce("letor", quick=True, seed=3)


def test_logistic_regressions_equal_scikit_learns() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) * np.array([1, 5, 0.2, 1, 1, 3])
    Y = (X @ rng.normal(size=(6, 4)) + rng.normal(size=(300, 4)) > 1).astype(float)
    ours = fit_logistic(X, Y, 0.5)(X)
    theirs = np.column_stack(
        [LogisticRegression(C=0.5, tol=1e-10, max_iter=5000).fit(X, y).decision_function(X) for y in Y.T]
    )
    assert np.abs(ours - theirs).max() < 0.05


@pytest.mark.parametrize("scorer", [KernelSvm(), Logistic(), Logistic(standardize=True)])
def test_base_scores_are_calibrated_and_survive_a_constant_label(scorer: Logistic) -> None:
    scenes = datasets.make_label_scenes(1200, n_labels=8, random_state=1)
    Y = scenes.Y.astype(float)
    Y[:, 3], Y[:, 4] = 0.0, 1.0
    scores = scorer.cross_fit(scenes.X[:400], Y[:400], scenes.X[400:])
    chance = 1.0 / (1.0 + np.exp(-scores.test))
    assert np.abs(chance.mean(axis=0) - Y[400:].mean(axis=0)).max() < 0.1
    assert scores.train.shape == (400, 8)


def test_chains_survive_constant_labels() -> None:
    scenes = datasets.make_label_scenes(150, n_labels=7, random_state=2)
    Y = scenes.Y.astype(float)
    Y[:, 2] = 0.0
    base = BaseScores(scenes.X[:, :7], scenes.X[:20, :7])
    log_odds = chain_log_odds(base, Y, 2)
    assert log_odds.shape == (20, 7)
    assert np.isfinite(log_odds).all()


def test_public_problems_have_the_published_sizes(shared_data: Path) -> None:
    from slatewise_papers.cstar.data import load_problem

    assert load_problem("mulan_cal500").Y.shape == (502, 174)
    corel = load_problem("corel5k_tagprop")
    assert corel.Y.shape == (4999, 151)
    assert np.allclose((corel.X**2).sum(axis=1), 2.0)
