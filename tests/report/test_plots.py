"""Pictures say what they were given, and no text is printed over another."""

import re
from itertools import pairwise

import pytest

from slatewise.report import bars, gains, lines, matchings, pair_graphs, points, slopes


def texts(svg):
    """Every text of the picture with the place it is anchored at: (text, x, y)."""
    found = []
    for block in re.findall(r"<text.*?</text>", svg, flags=re.S):
        words = re.search(r">([^<>]*)</", block).group(1)
        moved = re.search(r"translate\(([-\d.]+) ([-\d.]+)\)", block) or re.search(
            r' x="([-\d.]+)" y="([-\d.]+)"', block
        )
        found.append((words, float(moved.group(1)), float(moved.group(2))))
    return found


def test_bars_of_many_problems_do_not_overprint():
    groups = [f"a problem with a long name, number {number}" for number in range(8)]
    values = [0.1 * number + 0.123 for number in range(8)]
    best = [float("nan") if number % 2 else 0.95 for number in range(8)]
    found = texts(bars(groups, {"alone": values, "joint": values, "best": best}, "mean"))
    rows = sorted(y for text, _, y in found if text in groups)
    assert len(rows) == 8
    assert min(b - a for a, b in pairwise(rows)) > 20  # a row is higher than its 10 point text
    ends = sorted(y for text, x, y in found if re.fullmatch(r"\d\.\d{3}", text))
    assert len(ends) == 8 + 8 + 4  # a value nobody knows has no bar
    assert min(b - a for a, b in pairwise(ends)) > 9


def test_graphs_name_every_label_once_per_panel():
    svg = pair_graphs({"given": {("4", "13"): -2.0, ("5", "4"): 1.0}, "learned": {("4", "7"): 0.5}})
    found = [text for text, _, _ in texts(svg)]
    for label in ("4", "5", "13", "7"):
        assert found.count(label) == 2
    places = {(round(x), round(y)) for text, x, y in texts(svg) if text.isdigit()}
    assert len(places) == 8
    assert pair_graphs({"nothing": {}}).startswith("<svg")


def test_slopes_name_both_lists_in_order():
    found = texts(slopes(["a", "b", "c"], ["c", "a", "z"], ("before", "after"), good=["z"]))
    sides = {"a": 2, "b": 1, "c": 2, "z": 1}
    assert {name: sum(text == name for text, _, _ in found) for name in sides} == sides
    right = sorted((y, text) for text, x, y in found if text in sides and x > 288)  # the middle of 8 inches
    assert [text for _, text in right] == ["c", "a", "z"]


def test_gains_count_themselves():
    assert "2 better, 1 the same, 3 worse" in gains([0.5, 0.1, 0.0, -0.1, -0.2, -0.3], "queries", "gain")


@pytest.mark.parametrize("source", [[[0, 0], [1, 1], [0, 2]], [[1, 1], [1, 1], [1, 1]]])
def test_matchings_count_errors_and_draw_outlines(source):
    plain, outlined = (
        matchings(source, source, [0, 1, 2], {"one": [0, 2, 1], "two": [0, 1, 2]}, outlines=drawn)
        for drawn in (False, True)
    )
    for svg in (plain, outlined):
        assert "one: 2 of 3 wrong" in svg
        assert "two: 0 of 3 wrong" in svg
    assert plain.count("#eef2f8") == 0
    assert outlined.count("#eef2f8") == 4


def test_same_input_same_text():
    for draw in (
        lambda: lines([0, 1], {"a": [1, 2]}, "x", "y"),
        lambda: points({"a": [[0, 1]]}, ["c"]),
        lambda: pair_graphs({"p": {("a", "b"): 1.0}}),
        lambda: slopes(["a"], ["b"], ("x", "y")),
    ):
        assert draw() == draw()
