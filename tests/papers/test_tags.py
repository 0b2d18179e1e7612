"""Tags as they come, on generated rows: systems and figures, kept splits, intervals over rows and not over splits."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import ttest_1samp

from slatewise import data, datasets
from slatewise_papers import reproduce
from slatewise_papers.cstar.data import LabelProblem
from slatewise_papers.cstar.scores import Logistic
from slatewise_papers.framework.running import installed
from slatewise_papers.framework.statistics import paired_by_row
from slatewise_papers.tags import tables as tags
from slatewise_papers.tags.split import FIGURES, Measured, SplitResult


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    made = datasets.make_label_scenes(150, n_labels=8, random_state=0)
    path = tmp_path_factory.mktemp("scenes") / "scenes.npz"
    data.write_npz(
        path, data.MultiLabel(made.X, csr_array(made.Y.astype(float)), np.array([f"t{i}" for i in range(8)]))
    )
    return path


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def table(scenes, kept):
    return reproduce("tags", str(scenes), quick=True, seed=17, keep=kept)


def test_systems_and_figures(table, scenes):
    rows = {row.name.removeprefix(f"{scenes}: "): row.measured for row in table.rows}
    peers = [
        "own base",
        "tuned logistic",
        "ten chains on the own base",
        "ML-kNN",
        *["LightGBM"][: installed("lightgbm")],
    ]
    for system in ("c-star", *peers):
        for known in ("known", "unknown"):
            found = rows[f"{system}, {known}"]
            assert set(found) == {*FIGURES, "splits", "settings", "seconds"}
            assert 30 < found["Q0"] <= found["Q10"] == 100.0  # eight labels, ten questions
            assert found["settings"] >= 4
    assert "pretrained likelihood as it was, known" in rows
    for other in peers:
        found = rows[f"c-star, unknown minus {other}, unknown"]
        assert all(found[f"{name}_low"] <= found[name] <= found[f"{name}_high"] for name in FIGURES)
    assert all(row["held"] <= row["sets"] == 1.0 for name, row in rows.items() if name.startswith("bar: "))
    assert sum(name.startswith("bar: ") for name in rows) == 4
    assert table.paper.endswith("left out") == (not installed("lightgbm"))


def test_a_kept_split_is_read_and_not_run(table, scenes, kept, monkeypatch):
    def refuse(*_):
        raise AssertionError("run again")

    monkeypatch.setattr(tags, "run_split", refuse)
    again = reproduce("tags", str(scenes), quick=True, seed=17, keep=kept)
    assert [row.name for row in again.rows] == [row.name for row in table.rows]
    assert again.rows == table.rows
    file = kept / "scenes-quick-17.json"
    found = json.loads(file.read_text())
    file.write_text(json.dumps({**found, "columns": ["Q0"]}))
    with pytest.raises(ValueError, match=r"scenes-quick-17\.json: expected the columns Q0, Q1"):
        reproduce("tags", str(scenes), quick=True, seed=17, keep=kept)
    file.write_text(json.dumps(found))


def test_other_tables_keep_nothing(tmp_path):
    with pytest.raises(ValueError, match="keep: expected none for letor, which runs as a whole"):
        reproduce("letor", quick=True, keep=tmp_path)


def test_splits_are_four_fifths_and_one_fifth_and_of_their_seed():
    problem = LabelProblem("rows", np.zeros((53, 1)), np.ones((53, 2)), Logistic())
    train, test = problem.split(17)
    assert (len(train), len(test)) == (43, 10)
    assert sorted([*train, *test]) == list(range(53))
    assert test.tolist() != problem.split(18)[1].tolist()


def test_the_protocol():
    seeds = {name: [task.seed for task in tags.tasks_of(name, tags.SEED)] for name in tags.SETS}
    assert seeds.pop("mulan_delicious") == [4001]
    assert set(seeds) == {"mulan_yeast", "corel5k_tagprop", "mulan_cal500", "mulan_bibtex", "mulan_enron"}
    assert all(of_set == [4001, 4002, 4003, 4004, 4005] for of_set in seeds.values())


def test_a_row_that_two_splits_tested_counts_once():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, len(FIGURES)))
    once = paired_by_row(FIGURES, np.arange(40), values)
    twice = paired_by_row(FIGURES, np.tile(np.arange(40), 2), np.vstack([values + 1.0, values - 1.0]))
    assert twice == pytest.approx(once)
    expected = ttest_1samp(values[:, 0], 0.0).confidence_interval(0.95)
    assert (once["Q0_low"], once["Q0_high"]) == pytest.approx((expected.low, expected.high))
    assert once["Q0"] == pytest.approx(values[:, 0].mean())


def test_intervals_cover_the_truth_where_splits_repeat_rows():
    # Rows differ by sd 1 and each is tested in all five splits: as 5 x 60 rows the interval would be too short by half.
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        row = np.repeat(rng.normal(size=(60, 1)), len(FIGURES), axis=1)
        found = paired_by_row(FIGURES, np.tile(np.arange(60), 5), np.tile(row, (5, 1)))
        covered += found["Q0_low"] <= 0.0 <= found["Q0_high"]
    assert 180 <= covered <= 198


def test_differences_are_of_the_splits_that_have_both():
    def result(rows, **systems):
        return SplitResult(
            np.array(rows), {name: Measured(np.full((len(rows), 5), value), 4, 1.0) for name, value in systems.items()}
        )

    results = [result([0, 1], a=0.5, b=0.25), result([2], a=1.0)]
    found = tags.differences(results, [("a", "b"), ("a", "c")])
    assert list(found) == [("a", "b")]
    assert found["a", "b"]["Q5"] == 25.0


def test_bars():
    def figures(low, high):
        return {f"{name}_{end}": value for name in FIGURES for end, value in (("low", low), ("high", high))}

    base, known = ("c-star, unknown", "own base, unknown"), ("c-star, known", "pretrained likelihood as it was, known")
    assert list(tags.bars({base: figures(0.1, 1.0), known: figures(-1.0, 0.2)}).values()) == [True, True, True, True]
    assert list(tags.bars({base: figures(-1.0, 0.1)}).values()) == [True, False, False]
    assert list(tags.bars({base: figures(-1.0, -0.1), known: figures(-1.0, -0.2)}).values()) == [False] * 4


def test_another_base(scenes, kept, monkeypatch):
    monkeypatch.setattr(tags, "NETWORK_SPLITS", {str(scenes): 1})
    table = reproduce("tags", "base", quick=True, seed=17, keep=kept)
    names = [row.name.removeprefix(f"{scenes}: ") for row in table.rows]
    assert "c-star on the network, unknown minus network alone, unknown" in names
    assert {"network alone, known", "c-star, known"} <= set(names)
    assert (kept / "scenes-base-quick-17.json").exists()
