import json
import re
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from slatewise import CStarRanker, __version__, datasets, metrics
from slatewise.cli import demo
from slatewise.cli.console import print_table
from slatewise.cli.main import app, main

ROWS = """\
2 qid:1 1:0.9 2:0.1 #docid = a
0 qid:1 1:0.2 2:0.8 #docid = b
1 qid:1 1:0.5 2:0.3 #docid = c
0 qid:2 1:0.1 2:0.2 #docid = d
1 qid:2 1:0.4 2:0.9 #docid = a
"""

HINGE = ["--param", "C=1.0"]
"""The paper's c-star, which can learn from three rows."""


@pytest.fixture
def letor(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text(ROWS)
    return path


def bad_input(result):
    """Exit code 2, nothing on stdout, one line on stderr; returns that line."""
    code, out, err = result
    assert code == 2
    assert out == ""
    assert err.startswith("slatewise: ")
    assert err.count("\n") == 1
    return err


def test_fit_rank_evaluate(tmp_path, letor, run):
    model, trec = tmp_path / "m.safetensors", tmp_path / "r.run"
    assert run("fit", "feature", letor, "--out", model, "--param", "measure=map")[0] == 0
    assert run("rank", model, letor, "--out", trec, "--top", "2")[0] == 0
    assert [line.split()[:4] for line in trec.read_text().splitlines()] == [
        ["1", "Q0", "a", "1"],
        ["1", "Q0", "c", "2"],
        ["2", "Q0", "a", "1"],
        ["2", "Q0", "d", "2"],
    ]
    code, out, _ = run("evaluate", trec, letor, "--measures", "ndcg@10,map", "--json")
    assert code == 0
    assert json.loads(out) == {"ndcg@10": 1.0, "map": 1.0}
    code, out, _ = run("evaluate", model, letor, "--measures", "p@1", "--json")
    assert json.loads(out) == {"p@1": 1.0}


def test_labels_fit_rank_evaluate(tmp_path, run):
    from slatewise import data, datasets
    from slatewise.data.records import MultiLabel

    scenes = datasets.make_label_scenes(200, n_labels=8, random_state=0)
    names = np.array([f"tag{label}" for label in range(8)])
    data.write_npz(tmp_path / "tags.npz", MultiLabel(scenes.X, csr_array(scenes.Y), names))
    model, trec = tmp_path / "m.safetensors", tmp_path / "r.run"
    assert run("fit", "cstar", tmp_path / "tags.npz", "--out", model, "--param", "core=2", "--param", "C=3")[0] == 0
    assert run("rank", model, tmp_path / "tags.npz", "--out", trec, "--top", "3")[0] == 0
    lines = trec.read_text().splitlines()
    assert len(lines) == 600
    np.savez(tmp_path / "rows.npz", X=scenes.X)  # without names: the model's own
    assert run("rank", model, tmp_path / "rows.npz", "--out", trec, "--top", "3")[0] == 0
    assert trec.read_text().splitlines() == lines
    assert {line.split()[2] for line in lines} <= set(names.tolist())
    code, out, _ = run("evaluate", model, tmp_path / "tags.npz", "--measures", "bep,ndcg@5", "--json")
    assert code == 0
    ranker = CStarRanker(core=2, C=3).fit(scenes.X, scenes.Y)
    assert json.loads(out)["bep"] == pytest.approx(ranker.score(scenes.X, scenes.Y))


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("user,item,often\n" + "a,x,1\na,y,9\nb,y,1\nb,x,9\n" * 20)
    return path


@pytest.mark.filterwarnings("always:.*lists end after")
def test_files_of_pairs(tmp_path, pairs, run):
    model, trec = tmp_path / "m.safetensors", tmp_path / "r.run"
    small = ("--param", "epochs=8", "--param", "n_components=4", "--param", "validation_fraction=0")
    assert run("fit", "latent", pairs, "--out", model, "--header", "--weight", "often", *small)[0] == 0
    assert run("rank", model, pairs, "--header", "--out", trec, "--top", "1")[0] == 0
    assert [line.split()[:3] for line in trec.read_text().splitlines()] == [["a", "Q0", "y"], ["b", "Q0", "x"]]
    assert run("evaluate", model, pairs, "--header", "--measures", "recall@2", "--json")[1] == '{"recall@2": 1.0}\n'
    _, out, err = run("evaluate", trec, pairs, "--header", "--measures", "recall@2", "--json")
    assert out == '{"recall@2": 0.5}\n'
    assert f"{trec}: 2 of 2 lists end after 1 documents, too early for recall@2: 2 relevant documents" in err
    assert "--weight" in bad_input(run("fit", "margin", pairs, "--out", model, "--weight", "2"))
    assert "'seldom'" in bad_input(run("fit", "latent", pairs, "--out", model, "--weight", "seldom"))
    pairs.write_text("kunde,artikel\n1,2\n1,3\n")
    message = bad_input(run("fit", "latent", pairs, "--out", model))
    assert "pairs.csv:1:1: expected" in message
    assert "--header if this line names the columns" in message


@pytest.mark.filterwarnings("always::UserWarning")
def test_left_out_rows_are_warned_of(tmp_path, pairs, run):
    model = tmp_path / "m.safetensors"
    pairs.write_text(pairs.read_text().replace("user,item", "kunde,artikel"))
    code, _, err = run("fit", "latent", pairs, "--out", model, "--param", "epochs=2")
    assert code == 0
    lines = err.splitlines()
    what = "'kunde' and 'artikel' occur in no other line; --header if they name the columns"
    assert lines[0] == f"slatewise: {pairs}:1: {what}"
    assert lines[1].startswith(f"slatewise: {pairs}: two of 3 columns are read; --weight 2")
    pairs.write_text("a,x\nc,x\n")
    code, out, err = run("evaluate", model, pairs, "--measures", "recall@3", "--json")
    assert (code, out) == (0, '{"recall@3": 0.5}\n')
    assert err == f"slatewise: {pairs}: 1 of 2 queries, 'c' the first, are unknown to the model and count as misses\n"


def test_a_named_set_is_measured_on_its_test_part(tmp_path, run, monkeypatch):
    from slatewise import datasets
    from slatewise.data.records import Sessions
    from slatewise.datasets.records import SessionSet

    about = datasets.describe("nowplaying_sessions")
    train = Sessions(np.tile([1, 2, 3, 1], 20), 4 * np.arange(21))
    test = Sessions(np.array([1, 3, 2, 1]), np.array([0, 4]))  # the other way round
    monkeypatch.setattr(datasets, "load", lambda name, kind: SessionSet(about, train, test))
    model = tmp_path / "m.safetensors"
    assert run("fit", "latent", about.name, "--out", model, "--param", "epochs=8", "--param", "n_components=4")[0] == 0
    assert run("evaluate", model, about.name, "--measures", "recall@1", "--json")[1] == '{"recall@1": 0.0}\n'


@pytest.mark.filterwarnings("always:.*lists end after")
def test_run_against_qrels_equals_the_library(tmp_path, run):
    qrels = tmp_path / "j.qrels"
    qrels.write_text("1 0 a 1\n1 0 b 0\n1 0 c 2\n2 0 a 1\n")
    trec = tmp_path / "r.run"
    trec.write_text("1 Q0 b 1 3.5 x\n1 Q0 c 2 2.5 x\n2 Q0 z 1 1 x\n2 Q0 a 2 0.5 x\n")
    code, out, err = run("evaluate", trec, qrels, "--measures", "map,mrr", "--json")
    assert code == 0
    assert "1 of 2 lists end after 2 documents, too early for map: 1 relevant" in err
    expected = metrics.evaluate_run(
        ["map", "mrr"],
        {"1": {"b": 3.5, "c": 2.5}, "2": {"z": 1.0, "a": 0.5}},
        {"1": {"a": 1, "b": 0, "c": 2}, "2": {"a": 1}},
    )
    np.testing.assert_allclose(list(json.loads(out).values()), list(expected.values()), rtol=1e-15)


def test_presets_change_the_conventions(tmp_path, letor, run):
    model = tmp_path / "m.safetensors"
    run("fit", "feature", letor, "--out", model)
    code, out, _ = run("evaluate", model, letor, "--measures", "p@5", "--preset", "trec_eval", "--json")
    assert code == 0
    assert json.loads(out)["p@5"] == pytest.approx((2 / 5 + 1 / 5) / 2)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rank_writes_tables(tmp_path, letor, run, ending):
    import polars

    model, out = tmp_path / "m.safetensors", tmp_path / f"run.{ending}"
    run("fit", "feature", letor, "--out", model)
    assert run("rank", model, letor, "--out", out)[0] == 0
    frame = polars.read_csv(out) if ending == "csv" else polars.read_parquet(out)
    assert len(frame) == 5
    run("rank", model, letor, "--out", tmp_path / "same.run")
    assert run("evaluate", out, letor, "--json") == run("evaluate", tmp_path / "same.run", letor, "--json")


def test_a_sparse_file_need_not_mention_every_feature(tmp_path, letor, run):
    model, other = tmp_path / "m.safetensors", tmp_path / "other.txt"
    run("fit", "feature", letor, "--out", model)
    other.write_text("1 qid:1 1:3 #docid = a\n0 qid:1 1:2 #docid = b\n")
    assert run("evaluate", model, other, "--measures", "map", "--json")[1] == '{"map": 1.0}\n'
    other.write_text("1 qid:1 1:3\n0 qid:1 3:2\n")
    assert f"{other}:2:9: expected a feature index from 1 to 2" in bad_input(run("evaluate", model, other))


def test_a_wide_file_is_never_filled_in(tmp_path, run):
    """500 rows of ten million features are 40 GB as dense numbers."""
    lines = [f"{row % 2} qid:{row // 10} {3 + row % 2}:1 {10_000_000 - row}:0.5" for row in range(500)]
    data, model = tmp_path / "wide.txt", tmp_path / "m.safetensors"
    data.write_text("\n".join(lines) + "\n")
    assert run("fit", "margin", data, "--out", model)[0] == 0
    assert json.loads(run("evaluate", model, data, "--measures", "map", "--json")[1]) == {"map": 1.0}
    assert run("rank", model, data, "--out", tmp_path / "r.run")[0] == 0


def test_a_sparse_file_need_not_mention_every_label(tmp_path, run):
    rows, model, trec = tmp_path / "rows.txt", tmp_path / "m.safetensors", tmp_path / "r.run"
    rows.write_text("0,1 1:0.5 2:1\n1 1:3\n2 2:4\n0 1:1\n")
    assert run("fit", "cstar-margin", rows, "--out", model, *HINGE, "--param", "core=1")[0] == 0
    rows.write_text("0 1:0.5\n1 1:3\n")
    assert run("evaluate", model, rows, "--measures", "bep")[0] == 0
    assert run("rank", model, rows, "--out", trec)[0] == 0
    assert len(trec.read_text().splitlines()) == 6
    rows.write_text("3 1:0.5\n")
    assert "a label from 0 to 2" in bad_input(run("evaluate", model, rows))


def test_labels_that_must_be_in_have_a_score_too(tmp_path, run):
    rows, model, trec = tmp_path / "rows.txt", tmp_path / "m.safetensors", tmp_path / "r.run"
    rows.write_text("0,1 1:0.5 2:1\n0,1 1:3\n0,1 2:4\n")
    run("fit", "cstar-margin", rows, "--out", model, *HINGE, "--param", "core=1")
    assert run("rank", model, rows, "--out", trec)[0] == 0
    assert run("evaluate", model, rows, "--measures", "map", "--json")[1] == '{"map": 1.0}\n'


def test_documents_without_an_id_are_named_by_their_row(tmp_path, letor, run):
    model, rows, trec = tmp_path / "m.safetensors", tmp_path / "some.txt", tmp_path / "r.run"
    run("fit", "feature", letor, "--out", model)
    rows.write_text("1 qid:1 1:3 2:1 #docid = a\n0 qid:1 1:2\n0 qid:1 1:1\n")
    assert run("rank", model, rows, "--out", trec)[0] == 0
    assert [line.split()[2] for line in trec.read_text().splitlines()] == ["a", "1", "2"]


def test_a_mean_over_nothing_is_null_in_json(tmp_path, letor, run):
    model, rows = tmp_path / "m.safetensors", tmp_path / "none.txt"
    run("fit", "feature", letor, "--out", model)
    rows.write_text("0 qid:1 1:3\n0 qid:1 1:2\n")
    assert run("evaluate", model, rows, "--measures", "auc", "--json")[1] == '{"auc": null}\n'


def test_without_a_command_there_is_help(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "Usage: slatewise" in out


def test_bad_rows_name_the_place(tmp_path, run):
    path = tmp_path / "bad.txt"
    path.write_text("1 qid:1 1:0.5\n0 qid:1 1:nan\n")
    line = bad_input(run("fit", "feature", path, "--out", tmp_path / "m.safetensors"))
    assert f"{path}:2:" in line
    assert not (tmp_path / "m.safetensors").exists()


def test_other_bad_input(tmp_path, letor, run):
    model, trec = tmp_path / "m.safetensors", tmp_path / "one.run"
    assert "feature" in bad_input(run("fit", "nonsense", letor, "--out", model))
    assert "measure" in bad_input(run("fit", "feature", letor, "--out", model, "--param", "x=1"))
    assert "--param" in bad_input(run("fit", "feature", letor, "--out", model, "--param", "measure"))
    assert "nowhere" in bad_input(run("fit", "feature", "nowhere", "--out", model))
    assert "out" in bad_input(run("fit", "feature", letor))
    assert "missing.safetensors" in bad_input(run("rank", tmp_path / "missing.safetensors", letor, "--out", trec))
    assert "slatewise model" in bad_input(run("rank", letor, letor, "--out", tmp_path / "x.run"))
    assert "top" in bad_input(run("rank", model, letor, "--out", tmp_path / "x.run", "--top", "0"))
    assert "nonsense" in bad_input(run("evaluate", letor, letor, "--measures", "nonsense@3"))
    assert "letor" in bad_input(run("reproduce", "nonsense"))
    assert "reader" in bad_input(run("bench", "nonsense"))
    assert bad_input(run("nonsense"))
    assert "measure: expected" in bad_input(run("fit", "feature", letor, "--out", model, "--param", "measure=5"))
    assert "none/m:" in bad_input(run("fit", "feature", letor, "--out", tmp_path / "none" / "m"))
    assert "none/r.run:" in bad_input(run("rank", model, letor, "--out", tmp_path / "none" / "r.run"))
    assert "none/f:" in bad_input(run("reproduce", "letor", "--json", tmp_path / "none" / "f"))
    assert "none/f:" in bad_input(run("bench", "metrics", "--json", tmp_path / "none" / "f"))
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    for system in ("feature", "cstar"):
        assert f"{empty}:1:1: expected at least one row" in bad_input(run("fit", system, empty, "--out", model))
    grades = tmp_path / "grades.txt"
    grades.write_text("1e300 qid:1 1:1\n")
    trec.write_text("1 Q0 a 1 1 x\n")
    assert "whole numbers as relevance" in bad_input(run("evaluate", trec, grades))
    assert bad_input(run("demo", "--nonsense"))


def test_debug_shows_the_traceback(tmp_path):
    with pytest.raises(ValueError, match="nonsense"):
        main(["--debug", "fit", "nonsense", "x", "--out", str(tmp_path / "m")])


@pytest.mark.parametrize("command", [command.callback.__name__ for command in app.registered_commands])
def test_help_shows_an_example(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"slatewise {command}" in out.split("Example:")[1]


def test_version(run):
    assert run("--version") == (0, f"slatewise {__version__}\n", "")


def test_python_dash_m():
    done = subprocess.run([sys.executable, "-m", "slatewise", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"slatewise {__version__}\n"


@pytest.mark.filterwarnings("ignore:stages")  # so few sessions leave the second one out
def test_demo(tmp_path, run, monkeypatch, terminal):
    few = {"n_sessions": 1000, "n_items": 100}  # else they are most of the time
    monkeypatch.setattr(demo, "make_sessions", lambda **sizes: datasets.make_sessions(**sizes | few))
    code, out, err = run("demo", "--out", tmp_path / "deep" / "report.html", "--picture", tmp_path / "picture.svg")
    assert code == 0
    assert (tmp_path / "picture.svg").read_text().startswith('<svg style="background:#fff"')
    assert err == ""
    text = (tmp_path / "deep" / "report.html").read_text()
    sections = text.split("<h2>")
    assert len(sections) == len(out.splitlines()) - 1
    assert all(section.count("<svg") == 1 for section in sections)
    for line in out.splitlines()[1:-1]:
        system, problem = line.split("\t")[:2]
        assert f"{system}: {problem}" in text
    columns, *rows = [line.split("\t") for line in out.splitlines()[:-1]]
    with terminal() as printed:
        print_table("What the structure of a list is worth", columns, rows)
    assert max(map(len, printed())) <= 80
    shown = [re.split(" {2,}", line) for line in printed()[4:]]
    assert shown == [[cell for cell in row if cell] for row in rows]  # a line for each row, and nothing is cut


def test_datasets_lists_every_name(run):
    code, out, _ = run("datasets")
    assert code == 0
    assert [line.split("\t")[0] for line in out.splitlines()[1:]] == list(datasets.names())


def test_reproduce_letor(tmp_path, run, shared_data):
    code, _, _ = run("reproduce", "letor", "--json", tmp_path / "l.json")
    assert code == 0
    result = json.loads((tmp_path / "l.json").read_text())
    assert set(result) == {"paper", "data", "seconds", "rows"}
    assert len(result["rows"]) == 10
    for row in result["rows"]:
        assert len(row["paper"]) == 33
        for name, published in row["paper"].items():
            assert row["measured"][name] == pytest.approx(published, abs=5e-5)


# --- headers and ends are told of -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("always::UserWarning")
def test_a_header_is_recognized_by_fit_rank_and_evaluate_alike(tmp_path, run):
    """It became a query of its own: a user that nobody is."""
    pairs, queries, model = tmp_path / "plays.csv", tmp_path / "users.csv", tmp_path / "m.safetensors"
    pairs.write_text("user,artist\nann,abba\nbob,bach\nann,bach\nbob,abba\n")
    queries.write_text("user\nann\n")
    said = "1: 'user', 'artist' read as the names of columns, not as ids"
    said += " (--no-header if they are ids, --header if not)\n"
    small = ("--param", "epochs=2", "--param", "n_components=2", "--param", "validation_fraction=0")
    code, out, err = run("fit", "latent", pairs, "--out", model, *small)
    assert (code, err) == (0, f"slatewise: {pairs}:{said}")
    assert "from 2 lists, 4 rows" in out
    code, _, err = run("rank", model, pairs, "--out", tmp_path / "r.run")
    assert (code, err) == (0, f"slatewise: {pairs}:{said}")
    assert {line.split()[0] for line in (tmp_path / "r.run").read_text().splitlines()} == {"ann", "bob"}
    for system in (model, tmp_path / "r.run"):
        code, out, err = run("evaluate", system, pairs, "--measures", "recall@2", "--json")
        assert (code, out, err) == (0, '{"recall@2": 1.0}\n', f"slatewise: {pairs}:{said}")
    code, _, err = run("rank", model, queries, "--out", tmp_path / "r.run")
    assert (code, err) == (0, f"slatewise: {queries}:{said}".replace(", 'artist'", ""))
    assert {line.split()[0] for line in (tmp_path / "r.run").read_text().splitlines()} == {"ann"}
    code, out, err = run("fit", "latent", pairs, "--out", model, "--no-header", *small)
    assert (code, err) == (0, "")
    assert "from 3 lists, 5 rows" in out
    for option in ("--header", "--no-header"):
        assert run("rank", model, pairs, option, "--out", tmp_path / "r.run")[2] == ""


@pytest.mark.filterwarnings("always::UserWarning")
def test_a_header_of_sessions_is_no_session(tmp_path, run):
    log, model = tmp_path / "log.txt", tmp_path / "m.safetensors"
    log.write_text("items\n1,2,3\n2,3\n1,2\n")
    said = f"slatewise: {log}:1: 'items' read as the names of columns, not as ids (--no-header if they are ids"
    for words in (
        ("fit", "neighbors", log, "--out", model),
        ("rank", model, log, "--out", tmp_path / "r.run"),
        ("evaluate", model, log, "--measures", "recall@1"),
        ("evaluate", tmp_path / "r.run", log, "--system", "neighbors", "--measures", "recall@1"),
        ("fit", "latent", log, "--out", tmp_path / "l.safetensors", "--param", "epochs=1"),
    ):
        code, _, err = run(*words)
        assert code == 0
        assert err.startswith(said)
        assert err.count("\n") == 1
    assert {line.split()[2] for line in (tmp_path / "r.run").read_text().splitlines()} == {"1", "2", "3"}
    log.write_text("einkauf\n1,2,3\n2,3\n1,2\n")
    line = bad_input(run("fit", "neighbors", log, "--out", model))
    assert "log.txt:1:1: expected integer ids as in all other lines (--header if this line names the columns" in line
    assert run("fit", "neighbors", log, "--out", model, "--header")[2] == ""
    assert run("rank", model, log, "--header", "--out", tmp_path / "r.run")[2] == ""
    assert len({line.split()[0] for line in (tmp_path / "r.run").read_text().splitlines()}) == 3


def test_a_run_is_measured_by_a_log_of_events_with_a_header(tmp_path, done):
    """The first two columns were taken for pairs, users for sessions: every figure was 0."""
    log, model, out = tmp_path / "log.csv", tmp_path / "m.safetensors", tmp_path / "r.run"
    log.write_text("user,item,time\nu,a,0\nu,b,10\nv,a,5\nv,b,9\nv,c,12\n")
    done("fit", "neighbors", log, "--out", model)
    done("rank", model, log, "--out", out)
    said = done("evaluate", out, log, "--system", "neighbors", "--measures", "recall@3", "--json")
    assert done("evaluate", out, log, "--measures", "recall@3", "--json") == said == '{"recall@3": 1.0}\n'
    log.write_text("wer,was,wann\nu,a,0\nu,b,10\nv,a,5\nv,b,9\nv,c,12\n")
    words = ("--columns", "user=wer,item=was,time=wann")
    assert done("evaluate", out, log, *words, "--measures", "recall@3", "--json") == said


@pytest.mark.filterwarnings("always::UserWarning")
def test_a_header_hides_and_shows_nothing(tmp_path, run, done):
    log, model, out = tmp_path / "log.txt", tmp_path / "m.safetensors", tmp_path / "r.run"
    log.write_text("a,b\nb,c\na,c\n")
    done("fit", "neighbors", log, "--out", model)
    (tmp_path / "some.txt").write_text("item\na\nb\n")
    (tmp_path / "not.csv").write_text("session,item\n0,a\n")
    (tmp_path / "mixed.csv").write_text("x,a\n0,a\n1,a\n")
    code, _, err = run(
        "rank", model, log, "--candidates", tmp_path / "some.txt", "--exclude", tmp_path / "not.csv", "--out", out
    )
    assert code == 0
    assert [line.split(" ")[2] for line in err.splitlines()] == ["'item'", "'session',"]
    done("rank", model, log, "--exclude", tmp_path / "mixed.csv", "--out", out)


@pytest.mark.filterwarnings("always::UserWarning")
def test_cut_lists_of_a_run_are_warned_of(tmp_path, letor, run):
    """Average precision of lists of two was printed as if it were that of the whole lists."""
    model, cut, whole = tmp_path / "m.safetensors", tmp_path / "cut.run", tmp_path / "whole.run"
    run("fit", "feature", letor, "--out", model)
    run("rank", model, letor, "--top", "1", "--out", cut)
    run("rank", model, letor, "--out", whole)
    code, out, err = run("evaluate", cut, letor, "--measures", "p@1,map,mrr", "--json")
    assert code == 0
    by_model = json.loads(run("evaluate", model, letor, "--measures", "p@1,map,mrr", "--json")[1])
    assert json.loads(out)["p@1"] == by_model["p@1"]
    assert json.loads(out)["map"] < by_model["map"]
    assert err.startswith(f"slatewise: {cut}: ")
    assert "lists end after 1 documents, too early for map" in err
    assert "relevant documents behind the ends count as not found; rank with a larger --top if there are more" in err
    assert run("evaluate", cut, letor, "--measures", "p@1")[2] == ""
    assert run("evaluate", whole, letor, "--measures", "p@1,map,mrr")[2] == ""
