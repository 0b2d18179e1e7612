"""What a person at a terminal sees: tables that fit it, bars that count."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from slatewise.cli.console import print_table, working
from slatewise.core.running.progress import anybody_listening, track


def shown():
    """The lines of progress, as the terminal shows them now."""
    console = Console(width=80, file=io.StringIO())
    console.print(anybody_listening().bars.get_renderable())
    return console.file.getvalue().splitlines()


def test_a_bar_counts_or_is_not_there(terminal):
    with terminal(), working("demo"):
        problems = track(range(7), "problem")
        next(problems)
        next(problems)
        files = track(iter("abc"), "file")
        next(files)
        command, loop, begun = shown()
        next(files)
        further = shown()[2]
        files.close()
        problems.close()
    assert "demo" in command
    assert not {"━", "/"} & set(command)
    assert "problem" in loop
    assert {"━", "/"} <= set(loop)
    assert " 1/7 " in loop
    assert not {"━", "/"} & set(begun)
    assert " 1/? " in further  # nobody knows how many there are, but they are counted


def test_headings_wrap_before_they_widen_a_column(terminal):
    with terminal() as printed:
        print_table("Figures", ["name", "best possible"], [["one", "1.000"], ["two", ""]])
    assert printed() == ["Figures", "      best", "name  possible", "──────────────", "one   1.000", "two"]


@pytest.mark.parametrize("cell", ["a" * 200, "few words " * 20, "[bold]", "漢字" * 50], ids=len)
def test_no_cell_is_cut(terminal, cell):
    with terminal() as printed:
        print_table("Words", ["number", "what"], [["1", cell], ["2", "short"]])
    lines = printed()
    assert max(map(cell_len, lines)) <= 80
    assert "".join(line[8:] for line in lines[3:-1]).replace(" ", "") == cell.replace(" ", "")


def test_a_table_may_be_empty(terminal):
    with terminal() as printed:
        print_table("Nobody", ["who", "since"], [])
    assert printed()[1] == "who  since"
