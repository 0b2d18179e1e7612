"""The ranking half of the RankMatch reproduction on a generated file and on a LETOR folder: rows, figures, schema."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from slatewise import data, datasets
from slatewise.data.records import RowsToRank
from slatewise.datasets.records import OfficialRun, Published
from slatewise_papers import Row
from slatewise_papers.rankmatch import ranking as rankmatch_ranking
from slatewise_papers.rankmatch.data import RankingProblem, load_ranking
from slatewise_papers.rankmatch.ranking import BETTER, CHOSEN, DORM, RANKMATCH, consistency, figure_2, table_1
from slatewise_papers.rankmatch.tables import run


@pytest.fixture(scope="module")
def queries():
    return datasets.make_queries(n_queries=30, n_features=4, shortest=22, longest=26, random_state=0)


def write_rows(path, queries, rows):
    y = np.minimum(queries.y[rows], 2).astype(float)
    data.write_svmlight(path, RowsToRank(csr_array(queries.X[rows]), y, queries.qid[rows], None))


@pytest.fixture(scope="module")
def problem(queries, tmp_path_factory) -> RankingProblem:
    path = tmp_path_factory.mktemp("queries") / "made.txt"
    write_rows(path, queries, np.arange(len(queries.y)))
    return load_ranking(str(path))


@pytest.fixture(scope="module")
def small(problem) -> RankingProblem:
    """One fold, with an official run that is perfect and one that is random."""
    small = problem.smaller()
    test = small.folds[0].test
    noise = np.random.default_rng(0).random(len(test.y))
    runs = tuple(
        OfficialRun(f"{name}_fold1", "made", 1, {"NDCG@1": 0.5}, test.y, scores, test.qid)
        for name, scores in (("RankSVM", test.y), ("RankBoost", noise))
    )
    return replace(small, name="made", runs=runs, published=(Published("ListNet", "made", 1, {"NDCG@1": 0.25}),))


@pytest.fixture(scope="module")
def rows(small) -> dict[str, Row]:
    return {row.name.removeprefix("made: "): row for row in figure_2(small, quick=True)}


@pytest.mark.parametrize(("most_repeated", "draws"), [(10**6, 5), (0, 1)])
def test_large_collections_are_drawn_from_once_and_say_so(small, monkeypatch, most_repeated, draws):
    seeds = []

    def by_first_feature(fold, seed):
        seeds.append(seed)
        return fold.test.X[:, 0]

    monkeypatch.setattr(rankmatch_ranking, "MOST_REPEATED", most_repeated)
    named = [(RANKMATCH, True, by_first_feature), (DORM, True, by_first_feature), ("ListNet", False, by_first_feature)]
    monkeypatch.setattr(rankmatch_ranking, "_systems", lambda _: named)
    names = [row.name for row in figure_2(small)]
    assert len(seeds) == 2 * draws + 1
    said = ", one draw" if draws == 1 else ""
    assert names[:3] == [f"made: {RANKMATCH}{said}", f"made: {DORM}{said}", "made: ListNet"]
    assert f"made: {RANKMATCH}{said} minus {DORM}{said}" in names


def test_every_system_is_measured_with_both_discounts(rows):
    for name in (RANKMATCH, CHOSEN, DORM, "RankMatch, whole queries", "ListNet", "AdaRank-MAP", "AdaRank-NDCG"):
        measured = rows[name].measured
        assert list(measured) == [f"NDCG@{k}{kind}" for kind in ("", " log2") for k in range(1, 11)]
        assert all(0.5 < value <= 1 for value in measured.values())
        assert measured["NDCG@1"] == measured["NDCG@1 log2"]


def test_official_runs_stand_beside(rows):
    assert rows["official RankSVM"].measured["NDCG@10"] == pytest.approx(1.0)
    assert rows["official RankSVM"].paper == {"NDCG@1": 0.5}
    assert rows["ListNet"].paper == {"NDCG@1": 0.25}
    assert rows[f"{RANKMATCH} minus {BETTER}"].measured["NDCG@5"] == pytest.approx(
        rows[RANKMATCH].measured["NDCG@5"] - 1
    )
    for name, row in rows.items():
        if " minus " in name:
            assert all(0 < row.measured[f"NDCG@{k}_p"] <= 1 for k in range(1, 11))


def test_it_is_json(rows):
    json.dumps([asdict(row) for row in rows.values()], allow_nan=False)


def test_the_curve_has_both_estimators(small):
    names = [row.name for row in consistency(small, quick=True)]
    assert names == [f"made: {name}, {part} D M slates" for part in (0.03, 0.4) for name in ("RankMatch", "DORM")]


def test_training_is_timed_beside_the_published_seconds(small):
    rows = table_1(small, quick=True)
    assert [row.name for row in rows][-2:] == ["training, M=20, likelihood", "training, M=20, max-margin"]
    assert all(row.measured["seconds"] > 0 for row in rows)
    assert rows[-2].paper == {"seconds": 36.03}


def test_the_whole_of_a_file_has_rows_and_figures(queries, tmp_path):
    write_rows(tmp_path / "made.txt", queries, np.arange(len(queries.y)))
    result = run(str(tmp_path / "made.txt"), quick=True)
    assert {"training, M=3, likelihood"} <= {row.name for row in result.rows}
    assert all(svg.startswith("<svg") for svg, _ in result.figures)
    assert [caption.partition(": ")[2] for _, caption in result.figures][-1].startswith("NDCG@1 with a growing number")
    json.dumps(asdict(result), allow_nan=False)


def test_folds_of_a_file_never_share_a_list(problem):
    assert len(problem.folds) == 5
    for fold in problem.folds:
        parts = [set(part.qid.tolist()) for part in fold]
        assert not parts[0] & parts[1]
        assert not parts[0] & parts[2]
        assert not parts[1] & parts[2]


def test_a_letor_folder_is_read_as_it_is(queries, tmp_path):
    for fold, (first, second) in {1: (10, 20), 2: (15, 25)}.items():
        folder = tmp_path / "TD2003" / "Data" / f"Fold{fold}"
        folder.mkdir(parents=True)
        parts = {"trainingset": queries.qid < first, "testset": queries.qid >= second}
        parts["validationset"] = (queries.qid >= first) & (queries.qid < second)
        for name, inside in parts.items():
            write_rows(folder / f"{name}.txt", queries, np.flatnonzero(inside))
    problem = load_ranking(str(tmp_path / "TD2003"))
    assert problem.name == "TD2003"
    assert [len(np.unique(fold.train.qid)) for fold in problem.folds] == [10, 15]
    assert problem.folds[0].test.X.max() == 1.0
    assert problem.folds[0].test.X.shape[1] == 4


def test_a_folder_without_folds_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected folders Fold1"):
        load_ranking(str(tmp_path))
    (tmp_path / "Fold1").mkdir()
    with pytest.raises(ValueError, match="expected one file whose name begins with 'train'"):
        load_ranking(str(tmp_path))


def test_an_unknown_name_is_named():
    with pytest.raises(ValueError, match="no_such_set"):
        load_ranking("no_such_set")


def test_public_collections_have_their_folds_and_runs(shared_data):
    problem = load_ranking("ohsumed25")
    assert len(problem.folds) == 5
    assert {run.name.split("_")[0] for run in problem.runs} == {"RankSVM", "RankBoost"}
    assert problem.folds[0].train.X.min() == 0.0
    assert problem.folds[0].train.X.max() == 1.0
