"""Plots as inline SVG: the same input gives the same text."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

_SETTINGS = {"svg.hashsalt": "slatewise", "svg.fonttype": "none", "font.family": "sans-serif"}
_INK = "#1d2433"
_COLOURS = ("#9aa5b8", "#1f6feb", "#e0a030", "#2a9d8f", "#c2476b")


def bars(groups: Sequence[str], series: Mapping[str, Sequence[float]], xlabel: str) -> str:
    """Draw one row of the picture a group, one bar of it a series, with the value at its end; NaN has none.

    Examples
    --------
    >>> bars(["wine"], {"independent": [0.4], "structured": [0.5]}, "NDCG@10").startswith("<svg")
    True
    """
    matplotlib = import_module("matplotlib")  # on first use: half a second, and its types are too loose to check
    figures = import_module("matplotlib.figure")
    with matplotlib.rc_context(_SETTINGS):
        height = 0.84 / len(series)
        # Every bar is as high as the text of its value needs, however many there are.
        figure = figures.Figure(figsize=(8, 0.9 + 0.25 * len(groups) * len(series)), layout="constrained")
        axes = figure.subplots()
        there = [[name for name in series if not math.isnan(series[name][group])] for group in range(len(groups))]
        for position, (name, values) in enumerate(series.items()):
            own = [group for group, names in enumerate(there) if name in names]
            places = [group + (there[group].index(name) - (len(there[group]) - 1) / 2) * height for group in own]
            colour = _COLOURS[position % len(_COLOURS)]
            drawn = axes.barh(places, [values[group] for group in own], height * 0.9, label=name, color=colour)
            axes.bar_label(drawn, fmt="%.3f", fontsize=9, padding=3)
        axes.set_yticks(range(len(groups)), groups)
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()  # the first row on top
        axes.set_xlabel(xlabel)
        axes.margins(x=0.1, y=0.02)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(frameon=False, fontsize=9, ncols=len(series), loc="outside upper left")
        return _svg(figure)


def lines(places: Sequence[float], series: Mapping[str, Sequence[float]], xlabel: str, ylabel: str) -> str:
    """Draw one line per series over the same places.

    Examples
    --------
    >>> lines([0, 1], {"random": [0.5, 0.6], "margin rule": [0.5, 0.7]}, "questions", "BEP").startswith("<svg")
    True
    """
    matplotlib = import_module("matplotlib")
    figures = import_module("matplotlib.figure")
    with matplotlib.rc_context(_SETTINGS):
        figure = figures.Figure(figsize=(8, 3.2), layout="constrained")
        axes = figure.subplots()
        for position, (name, values) in enumerate(series.items()):
            axes.plot(places, values, marker="o", markersize=4, label=name, color=_COLOURS[position % len(_COLOURS)])
        axes.set_xticks(places)
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
        return _svg(figure)


def matchings(
    source: Sequence[Sequence[float]],
    target: Sequence[Sequence[float]],
    true: Sequence[int],
    found: Mapping[str, Sequence[int]],
    outlines: bool = False,
) -> str:
    """Draw two sets of points side by side, once a matching found, with a line a match: wrong ones stand out.

    ``outlines`` says that the points of the source follow each other around a shape, which is then drawn.

    Examples
    --------
    >>> matchings([[0, 0], [1, 1]], [[0, 0], [1, 1]], [0, 1], {"before": [1, 0], "after": [0, 1]}).startswith("<svg")
    True
    """
    matplotlib = import_module("matplotlib")
    figures = import_module("matplotlib.figure")
    left, right = min(x for x, _ in source), max(x for x, _ in source)
    shift = right + 0.4 * (right - left) - min(x for x, _ in target)
    shifted = [(x + shift, y) for x, y in target]
    width = max(x for x, _ in shifted) - left
    height = max(y for _, y in [*source, *target]) - min(y for _, y in [*source, *target])
    with matplotlib.rc_context(_SETTINGS):
        # As high as the points need: a panel keeps their proportions.
        inches = min(max(8 / len(found) * height / (width or 1.0), 1.2), 6.0) + 0.5
        figure = figures.Figure(figsize=(8, inches), layout="constrained")
        for axes, (title, columns) in zip(figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True):
            for begin, column, own in zip(source, columns, true, strict=True):
                if column >= 0:
                    ends = zip(begin, shifted[column], strict=True)
                    colour, layer = (_COLOURS[0], 1) if column == own else (_COLOURS[4], 2)
                    axes.plot(*ends, color=colour, linewidth=0.8, zorder=layer)
            if outlines:
                for around in (source, [shifted[own] for own in true]):
                    axes.fill(
                        *zip(*around, strict=True), facecolor="#eef2f8", edgecolor=_COLOURS[0], linewidth=0.6, zorder=0
                    )
            for placed in (source, shifted):
                axes.scatter(*zip(*placed, strict=True), s=9, color=_COLOURS[1], zorder=3)
            wrong = sum(column != own for column, own in zip(columns, true, strict=True))
            axes.set_title(f"{title}: {wrong} of {len(true)} wrong", fontsize=9)
            axes.invert_yaxis()  # images have their first row on top
            axes.set_aspect("equal")
            axes.set_axis_off()
        return _svg(figure)


def points(panels: Mapping[str, Sequence[Sequence[float]]], classes: Sequence[str]) -> str:
    """Draw points of the plane, one panel beside the other, coloured by class.

    Examples
    --------
    >>> points({"before": [[0, 1], [1, 0]], "after": [[0, 0], [3, 3]]}, ["red", "white"]).startswith("<svg")
    True
    """
    matplotlib = import_module("matplotlib")
    figures = import_module("matplotlib.figure")
    with matplotlib.rc_context(_SETTINGS):
        figure = figures.Figure(figsize=(8, 3.6), layout="constrained")
        drawn = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (title, places) in zip(drawn, panels.items(), strict=True):
            for position, name in enumerate(sorted(set(classes))):
                own = [place for place, label in zip(places, classes, strict=True) if label == name]
                # The first color is a grey for what others are compared with.
                colour = _COLOURS[1 + position % (len(_COLOURS) - 1)]
                axes.scatter(*zip(*own, strict=True), s=9, color=colour, label=name)
            axes.set_title(title, fontsize=9)
            axes.set_xticks([])
            axes.set_yticks([])
        drawn[-1].legend(frameon=False, fontsize=8)
        return _svg(figure)


def pair_graphs(panels: Mapping[str, Mapping[tuple[str, str], float]]) -> str:
    """Draw pairs (core label, other label) as edges: blue where they attract each other, red where they repel.

    The wider an edge, the stronger the pair, within its panel. A label has the same place in every panel: core labels
    on an inner circle, the others around them, near the core labels they have to do with.

    Examples
    --------
    >>> pair_graphs({"learned": {("sky", "sea"): 1.0, ("sky", "street"): -2.0}}).startswith("<svg")
    True
    """
    matplotlib = import_module("matplotlib")
    figures = import_module("matplotlib.figure")
    edges = [edge for panel in panels.values() for edge in panel]
    core = sorted({label for label, _ in edges})
    places = {label: _on_circle(turn / len(core), 0.45 if len(core) > 1 else 0) for turn, label in enumerate(core)}
    around = sorted(
        {label for _, label in edges} - set(core), key=lambda label: (_direction(label, edges, places), label)
    )
    places |= {label: _on_circle(turn / len(around), 1.0) for turn, label in enumerate(around)}
    with matplotlib.rc_context(_SETTINGS):
        figure = figures.Figure(figsize=(8, 4.2), layout="constrained")
        drawn = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (title, panel) in zip(drawn, panels.items(), strict=True):
            strongest = max(map(abs, panel.values()), default=1.0) or 1.0
            for (one, other), weight in panel.items():
                ends = zip(places[one], places[other], strict=True)
                colour = _COLOURS[1] if weight > 0 else _COLOURS[4]
                axes.plot(*ends, color=colour, linewidth=0.4 + 3.6 * abs(weight) / strongest, zorder=1, alpha=0.8)
            for label, (x, y) in places.items():
                box = {"boxstyle": "round,pad=0.35", "linewidth": 1.0, "edgecolor": _INK}
                box |= {"facecolor": "#ffe9b8" if label in core else "#ffffff"}
                axes.text(x, y, label, ha="center", va="center", fontsize=9, zorder=2, bbox=box)
            axes.set_title(title, fontsize=10)
            axes.set(xlim=(-1.25, 1.25), ylim=(-1.2, 1.2), aspect="equal")
            axes.set_axis_off()
        signs = {"attract": _COLOURS[1], "repel": _COLOURS[4]}
        handles = [
            import_module("matplotlib.lines").Line2D([], [], color=c, linewidth=3, label=n) for n, c in signs.items()
        ]
        figure.legend(handles=handles, frameon=False, fontsize=9, ncols=2, loc="outside lower center")
        return _svg(figure)


def slopes(before: Sequence[str], after: Sequence[str], titles: tuple[str, str], good: Sequence[str] = ()) -> str:
    """Draw a list before and after, with a line from an item's old place to its new one; good items stand out.

    An item that was not there before, or is not any more, comes from below, or goes there.

    Examples
    --------
    >>> slopes(["a", "b"], ["b", "c"], ("stage 0", "stage 1"), good=["b"]).startswith("<svg")
    True
    """
    matplotlib = import_module("matplotlib")
    figures = import_module("matplotlib.figure")
    below = max(len(before), len(after)) + 0.8
    with matplotlib.rc_context(_SETTINGS):
        figure = figures.Figure(figsize=(8, 0.9 + 0.32 * below), layout="constrained")
        axes = figure.subplots()
        old, new = ({item: place for place, item in enumerate(items)} for items in (before, after))
        for item in dict.fromkeys([*before, *after]):
            colour, width = (_COLOURS[1], 2.2) if item in good else (_COLOURS[0], 1.0)
            ends = old.get(item, below), new.get(item, below)
            axes.plot((0, 1), ends, color=colour, linewidth=width, zorder=2 if item in good else 1)
        for side, items, align in ((0, before, "right"), (1, after, "left")):
            for place, item in enumerate(items):
                colour, weight = (_COLOURS[1], "bold") if item in good else (_INK, "normal")
                where = -0.03 if side == 0 else 1.03
                style = {"ha": align, "va": "center", "fontsize": 9, "color": colour, "weight": weight}
                axes.text(where, place, f"{place + 1}", **style)
                axes.text(where + (0.09 if side else -0.09), place, item, **style)
                axes.scatter([side], [place], s=14, color=colour, zorder=3)
            axes.text(side, -1.1, titles[side], ha="center", va="center", fontsize=10, color=_INK)
        axes.text(-0.03, below, "not in the list", ha="right", va="center", fontsize=8, style="italic", color="#4a5263")
        axes.text(1.03, below, "not in the list", ha="left", va="center", fontsize=8, style="italic", color="#4a5263")
        axes.set(xlim=(-0.7, 1.7), ylim=(below + 0.5, -1.6))
        axes.set_axis_off()
        return _svg(figure)


def gains(values: Sequence[float], xlabel: str, ylabel: str) -> str:
    """Draw what each list gained, the largest gain first: blue above nothing, red below.

    Examples
    --------
    >>> gains([0.1, -0.2, 0.0], "queries", "gain in ndcg@10").startswith("<svg")
    True
    """
    matplotlib = import_module("matplotlib")
    figures = import_module("matplotlib.figure")
    sinking = sorted(values, reverse=True)
    better, worse = sum(value > 0 for value in values), sum(value < 0 for value in values)
    with matplotlib.rc_context(_SETTINGS):
        figure = figures.Figure(figsize=(8, 3.2), layout="constrained")
        axes = figure.subplots()
        colours = [_COLOURS[1] if value > 0 else _COLOURS[4] for value in sinking]
        axes.bar(range(len(sinking)), sinking, 1.0, color=colours)
        axes.axhline(0, color=_INK, linewidth=0.8)
        axes.set_title(f"{better} better, {len(values) - better - worse} the same, {worse} worse", fontsize=10)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        axes.set_xticks([])
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        return _svg(figure)


def _on_circle(turn: float, radius: float) -> tuple[float, float]:
    angle = 2 * math.pi * (turn + 0.25)
    return radius * math.cos(angle), radius * math.sin(angle)


def _direction(label: str, edges: Sequence[tuple[str, str]], places: Mapping[str, tuple[float, float]]) -> float:
    """Return the turn, from 0 to 1, at which the core labels stand that a label is paired with."""
    ends = [places[one] for one, other in edges if other == label]
    x, y = sum(x for x, _ in ends), sum(y for _, y in ends)
    return (math.atan2(y, x) / (2 * math.pi) - 0.25) % 1.0


def _svg(figure: Any) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]  # the XML prologue has no place inside HTML
