"""Next items of sessions, on generated ones: the table, kept results, the split, places and intervals."""

import json
from functools import partial

import numpy as np
import pytest

from slatewise import data, datasets
from slatewise.data import Sessions
from slatewise_papers import reproduce
from slatewise_papers.framework.statistics import paired_by_cluster
from slatewise_papers.sessions import cells as sessions_cells
from slatewise_papers.sessions import networks as sessions_networks
from slatewise_papers.sessions import tables as sessions
from slatewise_papers.sessions.data import SessionProblem, load_problems
from slatewise_papers.sessions.methods import METHODS, TRIALS, Method, markov, popularity

N_ITEMS = 40
BRIEF = {"n_components": 4, "epochs": 1, "learning_rate": 0.3, "max_norm": 1.5}


def small(name, method):
    """Fit what is learnt in many steps in few: whether it is any good is asked elsewhere."""
    if name.startswith("SessionRanker") and "factors=None" not in name:
        grid = tuple({key: BRIEF.get(key, value) for key, value in given.items()} for given in method.grid)
        return method._replace(
            fit=partial(method.fit, **{key: value for key, value in BRIEF.items() if key not in method.grid[0]}),
            grid=grid,
        )
    if name.startswith(("GRU4Rec", "SASRec")):
        return method._replace(grid=tuple({**given, "width": 8} for given in method.grid))
    return method


@pytest.fixture(scope="module", autouse=True)
def _small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sessions, "METHODS", {name: small(name, method) for name, method in METHODS.items()})
        patch.setattr(sessions_networks, "EPOCHS", 1)
        yield


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.txt"
    data.write_sessions(path, datasets.make_sessions(200, N_ITEMS, random_state=0).sessions)
    return path


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def table(log, kept):
    return reproduce("sessions", str(log), quick=True, keep=kept)


def test_methods_and_figures(table, log):
    rows = {row.name.removeprefix(f"{log}: "): row.measured for row in table.rows}
    not_run = [name for name, method in METHODS.items() if method.missing(N_ITEMS) is not None]
    for name in not_run:
        assert [row.startswith(f"{name}: not run, ") for row in rows if row.startswith(name)] == [True]
    for name, method in METHODS.items():
        if name in not_run:
            continue
        (found,) = (figures for row, figures in rows.items() if row.startswith(name) and " minus " not in row)
        assert set(found) == {*sessions.FIGURES, "trials", "tuning", "fit", "ms"}
        assert 0 < found["MRR@20"] < found["R@20"] <= found["R@50"] <= 100
        assert found["trials"] == (2 if len(method.grid) > 1 else 0)
    for name in set(METHODS) - {sessions.PEER, *not_run}:
        found = rows[f"{name} minus {sessions.PEER}"]
        assert all(found[f"{figure}_low"] <= found[figure] <= found[f"{figure}_high"] for figure in sessions.FIGURES)
    assert rows["popularity"]["R@10"] < rows["SessionNeighbors() out of the box"]["R@10"]


def test_a_method_that_cannot_be_run_is_listed(log, monkeypatch):
    absent = Method(markov, ({}, {}), missing=lambda n_items: f"{n_items} are too many")
    kept = {sessions.PEER: METHODS["popularity"], "popularity": METHODS["popularity"], "other": absent}
    monkeypatch.setattr(sessions, "METHODS", kept)
    rows = reproduce("sessions", str(log), quick=True).rows
    assert [row.name.removeprefix(f"{log}: ") for row in rows] == [
        sessions.PEER,
        "popularity",
        f"other: not run, {N_ITEMS} are too many",
        f"popularity minus {sessions.PEER}",
    ]


def test_every_method_that_is_tuned_has_the_same_number_of_trials():
    assert {len(method.grid) for method in METHODS.values()} == {1, TRIALS}
    assert all("tuned" in name for name, method in METHODS.items() if len(method.grid) > 1)


def test_what_is_kept_is_read_and_not_run(table, log, kept, monkeypatch):
    def refuse(*_):
        raise AssertionError("run again")

    monkeypatch.setattr(sessions, "tried_and_tested", refuse)
    assert reproduce("sessions", str(log), quick=True, keep=kept).rows == table.rows
    (file,) = kept.rglob("markov.json")
    found = file.read_text()
    file.write_text(json.dumps({**json.loads(found), "queries": 3}))
    with pytest.raises(ValueError, match=r"markov\.json: expected \d+ queries and the settings of this version"):
        reproduce("sessions", str(log), quick=True, keep=kept)
    file.write_text(found)


def test_a_file_is_cut_at_its_end_and_items_are_those_learnt(tmp_path):
    path = tmp_path / "log.txt"
    data.write_sessions(path, Sessions.of([[9, 5], [5, 9, 9], [7, 5], [9, 7], [7, 4, 9, 7]]))
    (problem,) = load_problems(str(path), 0)
    assert (problem.n_items, len(problem.train), problem.held.tolist()) == (3, 4, [False, False, False, True])
    assert [items.tolist() for items in problem.test] == [[1, 2, 1]]  # 4 was never learnt from
    with pytest.raises(ValueError, match="data: expected diginetica, tmall, nowplaying, lastfm1k, aotm, or a file"):
        next(load_problems("music", 0))


def problem_of(train, held, test, **more):
    return SessionProblem("tiny", 5, Sessions.of(train), np.array(held), Sessions.of(test), **more)


def test_validation_asks_for_items_that_are_left_to_learn_from():
    part = problem_of([[0, 1], [1, 2], [2, 3, 0, 1]], [False, False, True], [[0, 1]]).validation
    assert [items.tolist() for items in part.log] == [[0, 1], [1, 2]]
    assert ([items.tolist() for items in part.questions], part.questions.next_items.tolist()) == ([[2], [2, 0]], [0, 1])


@pytest.mark.parametrize("item_differs", [False, True])
def test_places_are_those_of_whole_lists(item_differs):
    test = [[0, 0, 1, 4], [3, 2]]
    problem = problem_of([[0, 1], [1, 0, 1, 3], [3]], [False] * 3, test, item_differs=item_differs)
    part, lists = problem.testing, {0: [1, 0, 3], 1: [0, 1, 3], 3: [3, 0, 1]}
    found = sessions.places_of(
        lambda asked: np.array([lists[items[-1]] for items in asked]), part.questions, problem.item_differs
    )
    # 0 asks for 0, 0 0 for 1, 0 0 1 for 4, and 3 for 2
    assert found.tolist() == ([0, -1, -1] if item_differs else [1, 0, -1, -1])


def test_the_last_item_leaves_its_place_to_those_behind():
    problem = problem_of([[0, 1]], [False], [[0, 3]], item_differs=True)
    found = sessions.places_of(lambda _: np.array([[2, 0, 3]]), problem.testing.questions, True)
    assert found.tolist() == [1]


def test_popularity_and_markov_by_hand():
    log = Sessions.of([[0, 1], [0, 1, 2], [0, 3], [2]])
    asked = Sessions.of([[0, 4], [4, 4]]).prefixes()
    assert popularity(log, 5)(asked).tolist() == [[0, 1, 2, 3, 4]] * 2
    assert markov(log, 5)(asked).tolist() == [[1, 3, 0, 2, 4], [0, 1, 2, 3, 4]]


def test_settings_are_chosen_on_validation_alone():
    problem = problem_of([[0, 2], *[[0, 1]] * 8, [0, 2]], [False] * 9 + [True], [[0, 1]])
    learnt: list[int] = []

    def fit(log, n_items, item):
        learnt.append(len(log))
        return lambda asked: np.full((len(asked), 1), item)

    found = sessions.tried_and_tested(problem, problem.testing, Method(fit, ({"item": 1}, {"item": 2})))
    assert found.settings == {"item": 2}
    assert found.places.tolist() == [-1]
    assert learnt == [9, 9, 10]


def test_cells_fill_the_folder_of_kept_results(table, log, kept, tmp_path, monkeypatch, capsys):
    words = ["cells", "--quick", "--data", str(log), "--only", "ItemKNN", "Markov", "--cpu", "1", "--gpu", "0"]
    monkeypatch.setattr("sys.argv", [*words, "--keep", str(tmp_path)])
    sessions_cells.main()
    assert "3 cells to do" in (said := capsys.readouterr().out)
    assert said.endswith("0 cells left\n")
    of_cells, of_table = ({file.name: file for file in folder.rglob("*.json")} for folder in (tmp_path, kept))
    assert {"markov.json", "itemknn-tuned.json", "itemknn-tuned.trial-1.json"} <= set(of_cells) <= set(of_table)
    for name, file in of_cells.items():
        one, other = (json.loads(path.read_text()) for path in (file, of_table[name]))
        assert {key: one[key] for key in one if key in ("places", "quality", "settings")} == {
            key: other[key] for key in other if key in ("places", "quality", "settings")
        }


def test_intervals_count_sessions():
    rng = np.random.default_rng(0)
    gains = np.repeat(rng.normal(size=(50, 1)), len(sessions.FIGURES), axis=1)
    once = paired_by_cluster(sessions.FIGURES, np.arange(50), gains)
    assert paired_by_cluster(
        sessions.FIGURES, np.repeat(np.arange(50), 4), np.repeat(gains, 4, axis=0)
    ) == pytest.approx(once)
    error = gains[:, 0].std(ddof=1) / np.sqrt(50)
    assert once["R@5_high"] - once["R@5"] == pytest.approx(1.96 * error)
