"""``slatewise fit collaborative``: users and their items, from a file to lists."""

import pytest

SMALL = ("--param", "validation_fraction=0")


@pytest.fixture
def plays(tmp_path):
    path = tmp_path / "plays.csv"
    path.write_text("user,artist\nann,abba\nann,bach\nbob,abba\nbob,bach\nbob,cher\n")
    return path


def test_users_get_what_they_do_not_have(tmp_path, done, plays):
    model, lists = tmp_path / "m.safetensors", tmp_path / "r.run"
    assert "CollaborativeRanker from 2 lists, 5 rows" in done(
        "fit", "collaborative", plays, "--out", model, "--header", *SMALL
    )
    done("rank", model, plays, "--header", "--out", lists)
    assert [line.split()[::2][:2] for line in lists.read_text().splitlines()] == [["ann", "cher"]]


def test_held_out_items_are_measured(tmp_path, done, plays):
    model, test = tmp_path / "m.safetensors", tmp_path / "test.csv"
    test.write_text("user,artist\nann,cher\n")
    done("fit", "collaborative", plays, "--out", model, "--header", *SMALL)
    out = done("evaluate", model, test, "--header", "--measures", "recall@1", "--json")
    assert out == '{"recall@1": 1.0}\n'


def test_an_order_that_histories_do_not_have_is_refused(tmp_path, run, done, plays):
    model = tmp_path / "m.safetensors"
    done("fit", "collaborative", plays, "--out", model, "--header", *SMALL)
    code, _, err = run("rank", model, plays, "--header", "--exclude-last", "--out", tmp_path / "r.run")
    assert code == 2
    assert "--exclude-last" in err


def test_a_part_is_named(tmp_path, done, plays):
    model = tmp_path / "m.safetensors"
    done("fit", "collaborative", plays, "--out", model, "--header", "--param", "parts=als", *SMALL)
