"""From a log of events in a CSV file to lists: neighbors and cooccurrence on the command line."""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from slatewise import SessionNeighbors, data, datasets, load

NUMBER = re.compile(r"-?\d+\.\d+")
PLAIN = ("--param", "decay=0.8", "--param", "last_weight=1", "--param", "repeat_weight=1")


@pytest.fixture
def log(tmp_path):
    """Sessions as a table of users and times, and as a file with one session per line."""
    sessions = datasets.make_sessions(200, 30, random_state=0).sessions
    rows, table = ["user,item,time"], tmp_path / "log.csv"
    for number, items in enumerate(sessions):
        rows += [f"u{number % 50},sku{item},{10000 * number + 60 * place}" for place, item in enumerate(items)]
    table.write_text("\n".join(rows) + "\n")
    lines = tmp_path / "log.txt"
    lines.write_text("".join(",".join(f"sku{item}" for item in items) + "\n" for items in sessions))
    return table, lines


@pytest.mark.parametrize("system", ["neighbors", "cooccurrence", "sessions"])
def test_fit_rank_evaluate(system, log, tmp_path, done):
    settings = ("--param", "factors__n_components=4", "--param", "factors__epochs=2") if system == "sessions" else PLAIN
    models = []
    for place, path in enumerate(log):
        models.append(tmp_path / f"{place}.safetensors")
        assert "lists" in done("fit", system, path, "--out", models[-1], *settings)
    one, other = map(load, models)
    asked = data.read_events(log[0])
    np.testing.assert_array_equal(one.rank(asked, 5).scores, other.rank(asked, 5).scores)
    trec = tmp_path / "r.run"
    done("rank", models[0], log[0], "--top", "3", "--exclude-seen", "--out", trec)
    lines = [line.split() for line in trec.read_text().splitlines()]
    expected = one.rank(asked, 3, exclude_seen=True)
    assert [line[2] for line in lines] == expected.ids.ravel().tolist()
    assert lines[3][0] == "1"
    figures = json.loads(done("evaluate", models[0], log[0], "--measures", "recall@5,recall@20,mrr@5", "--json"))
    prefixes = asked.prefixes()
    recall = one.recall(prefixes, ks=[5, 20])
    near = 1e-9 if system == "sessions" else 0.01  # counts are often equal, and equal scores count halves here
    assert figures["recall@5"] == pytest.approx(recall[5], abs=near)
    assert figures["recall@20"] == pytest.approx(recall[20], abs=near)
    assert 0 < figures["mrr@5"] < figures["recall@5"]
    without = json.loads(done("evaluate", models[0], log[0], "--measures", "recall@5", "--exclude-seen", "--json"))
    seen = json.loads(done("evaluate", models[0], log[0], "--measures", "recall", "--json"))
    assert without["recall@5"] != figures["recall@5"] < seen["recall"] == 1.0


def test_columns_and_gaps(tmp_path, run, done):
    path, model, trec = tmp_path / "log.csv", tmp_path / "m.safetensors", tmp_path / "r.run"
    path.write_text("visitor,sku,at\nu,a,0\nu,b,50\nv,b,0\nv,c,500\n")
    names = ("--columns", "user=visitor, item=sku,time=at")
    assert "from 2 lists" in done("fit", "neighbors", path, "--out", model, *names, *PLAIN)
    assert "from 3 lists" in done("fit", "neighbors", path, "--out", model, *names, "--gap", "60", *PLAIN)
    (tmp_path / "only.txt").write_text("b\nc\n")
    done("rank", model, path, "--out", trec, *names, "--top", "1", "--candidates", tmp_path / "only.txt")
    assert {line.split()[2] for line in trec.read_text().splitlines()} <= {"b", "c"}
    path.write_text("visitor,sku\n1,a\n")
    code, _, err = run("fit", "neighbors", path, "--out", model)
    assert code == 2
    assert "log.csv:1:1: expected columns called 'item', and 'session' or 'user' and 'time'" in err


@pytest.mark.filterwarnings("always::UserWarning")
def test_unknown_items_are_warned_of(tmp_path, run):
    train, test, model = tmp_path / "train.txt", tmp_path / "test.csv", tmp_path / "m.safetensors"
    train.write_text("1,2,3\n2,3\n1,3\n")
    assert run("fit", "neighbors", train, "--out", model, *PLAIN)[0] == 0
    test.write_text("session,item\nx,1\nx,9\ny,9\n")
    code, _, err = run("rank", model, test, "--out", tmp_path / "r.csv", "--top", "2")
    assert code == 0
    assert [line.split(";")[0] for line in err.splitlines()] == [
        "slatewise: queries: 2 of 3 ids were not seen in fit and are left out of their sessions",
        "slatewise: queries: 1 of 2 have no item that fit saw and get the most popular items",
    ]
    assert data.read_pairs(tmp_path / "r.csv", header=True).queries.tolist() == ["x", "x", "y", "y"]
    code, out, _ = run("evaluate", model, test, "--measures", "recall@3", "--json")
    assert (code, json.loads(out)) == (0, {"recall@3": 0.0})
    test.write_text("session,item\nx,a\n")
    code, _, err = run("rank", model, test, "--out", tmp_path / "r.csv")
    assert code == 2
    assert "test.csv: expected items that are whole numbers, as the model's, found others" in err


def test_the_commands_of_the_guide_say_what_it_says(tmp_path, done, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "recommend.rst").read_text()
    log, visits = (text.replace("\n... ", "\n") for text in re.findall(r'"""(visitor.*?)"""', page, re.DOTALL))
    for name, text in {"clicks": log, "today": visits, "later": f"{visits}zoe,milk,2024-05-03T08:03:00Z\n"}.items():
        (tmp_path / f"{name}.csv").write_text(text)
    commands = re.findall(r"^   \$ (slatewise (?:fit|rank|evaluate)|cat) (.*)\n((?:   [^$].*\n)+)", page, re.MULTILINE)
    assert len(commands) == 4
    for program, words, expected in commands:
        found = Path(words).read_text() if program == "cat" else done(program.split()[1], *words.split())
        expected = re.sub("^   ", "", expected, flags=re.MULTILINE)
        assert NUMBER.sub("#", found) == NUMBER.sub("#", expected)
        numbers, others = ([float(number) for number in NUMBER.findall(text)] for text in (found, expected))
        assert numbers == pytest.approx(others, rel=1e-9)


def test_what_is_not_to_be_shown_to_whom(tmp_path, run, done):
    train, today, model, trec = (tmp_path / name for name in ("train.txt", "today.csv", "m.safetensors", "r.run"))
    train.write_text("a,b,c\na,b\na,c\nb,a,c\n")
    today.write_text("session,item\nx,a\nx,b\ny,c\n")
    (tmp_path / "hidden.csv").write_text("x,c\ny,a\nz,b\n")
    done("fit", "neighbors", train, "--out", model, *PLAIN)

    def shown(*switches):
        done("rank", model, today, "--out", trec, "--top", "3", *switches)
        lists = {"x": "", "y": ""}
        for line in trec.read_text().splitlines():
            lists[line.split()[0]] += line.split()[2]
        return {name: set(items) for name, items in lists.items()}

    hidden = ("--exclude", tmp_path / "hidden.csv")
    assert shown(*hidden) == {"x": {"a", "b"}, "y": {"b", "c"}}
    assert shown("--exclude-last") == {"x": {"a", "c"}, "y": {"a", "b"}}
    assert shown("--exclude-last", "--exclude-seen", *hidden) == {"x": set(), "y": {"b"}}
    found = done("evaluate", model, today, "--measures", "recall@3", "--json", "--exclude-last")
    assert json.loads(found) == {"recall@3": 1.0}
    (tmp_path / "hidden.csv").write_text("0,b\n1,b\n")  # numbers, where the file of today has names
    for words in (("rank", model, today, "--out", trec), ("evaluate", model, today, "--measures", "recall@3")):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            code, _, err = run(*words, *hidden)
        assert code == 0
        assert "hidden.csv: none of its 2 queries is ranked, so nothing is hidden; the first: '0'" in err
    (tmp_path / "hidden.csv").write_text("x,b\n")  # what came after the a of x
    assert json.loads(done("evaluate", model, today, "--measures", "recall@3", "--json", *hidden)) == {"recall@3": 0.0}


def test_pairs_of_ids_take_the_switches_too(tmp_path, run, done):
    pairs, model, trec = tmp_path / "pairs.csv", tmp_path / "m.safetensors", tmp_path / "r.run"
    pairs.write_text("a,b\nb,c\nc,a\na,c\nb,a\n")
    done("fit", "latent", pairs, "--out", model, "--param", "n_components=2", "--param", "epochs=1")
    (tmp_path / "only.txt").write_text("a\nb\n")
    (tmp_path / "hidden.csv").write_text("c,a\n")
    switches = ("--exclude-last", "--candidates", tmp_path / "only.txt", "--exclude", tmp_path / "hidden.csv")
    done("rank", model, pairs, "--out", trec, *switches)
    assert [line.split()[:3:2] for line in trec.read_text().splitlines()] == [["a", "b"], ["b", "a"], ["c", "b"]]
    found = done("evaluate", model, pairs, "--measures", "recall@2", "--json", *switches)
    assert json.loads(found) == {"recall@2": pytest.approx((1 / 2 + 1 / 2 + 0) / 3)}
    code, _, err = run("rank", model, pairs, "--out", trec, "--exclude-seen")
    assert code == 2
    assert "exclude_seen: expected False or 'last' where queries are ids" in err


def test_a_run_is_measured_by_later_items(tmp_path, done):
    train, today, later = (tmp_path / name for name in ("train.txt", "today.csv", "later.csv"))
    model, trec = tmp_path / "m.safetensors", tmp_path / "r.run"
    train.write_text("a,b\na,b\nc,d\n")
    today.write_text("session,item\nx,a\ny,c\n")
    later.write_text("session,item\nx,b\ny,b\n")
    done("fit", "neighbors", train, "--out", model, *PLAIN)
    done("rank", model, today, "--out", trec, "--top", "1", "--exclude-seen")
    found = done("evaluate", trec, later, "--system", "neighbors", "--measures", "recall@1", "--json")
    assert json.loads(found) == {"recall@1": 0.5}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("fit", "margin", "log.txt", "--out", "m.safetensors", "--gap", "5"),
            "--columns, --gap: expected with sessions",
        ),
        (("fit", "neighbors", "log.txt", "--out", "m.safetensors", "--gap", "5"), "expected with a table of events"),
        (
            ("fit", "neighbors", "log.csv", "--out", "m.safetensors", "--columns", "sku"),
            "--columns: expected name=column",
        ),
        (("fit", "neighbors", "log.csv", "--out", "m.safetensors", "--columns", "who=x"), "names from session, item"),
        (
            ("fit", "neighbors", "log.csv", "--out", "m.safetensors", "--weight", "2"),
            "--weight: expected with files of pairs",
        ),
        (("evaluate", "m.run", "log.txt", "--exclude-last"), "--exclude, --candidates: expected with a model"),
        (
            ("rank", "m.run", "log.txt", "--out", "r", "--cluster", "local", "--exclude-last"),
            "expected without --cluster",
        ),
        (("evaluate", "m.run", "log.txt", "--cluster", "local", "--gap", "5"), "expected without --cluster"),
        (("rank", "m", "log.txt", "--out", "r.run", "--url", "x", "--exclude", "log.csv"), "expected without --url"),
    ],
)
def test_options_that_do_not_belong(words, message, log, tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.run").write_text("1 Q0 a 1 1.0 x\n")
    code, _, err = run(*words)
    assert code == 2
    assert message in err


def test_named_sets_have_parts(tmp_path, done, monkeypatch):
    from slatewise.data.records import Sessions
    from slatewise.datasets.records import SessionSet

    about = datasets.describe("nowplaying_sessions")
    train, test = Sessions.of([[1, 2], [1, 2], [3, 4]]), Sessions.of([[1, 2], [3, 1]])
    monkeypatch.setattr(datasets, "load", lambda name, kind: SessionSet(about, train, test))
    done("fit", "neighbors", about.name, "--out", tmp_path / "m.safetensors", *PLAIN)
    assert isinstance(load(tmp_path / "m.safetensors"), SessionNeighbors)
    found = done(
        "evaluate", tmp_path / "m.safetensors", about.name, "--exclude-seen", "--measures", "recall@1", "--json"
    )
    assert json.loads(found) == {"recall@1": 0.5}
