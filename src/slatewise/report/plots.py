"""Plots as inline SVG: the same input gives the same text."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

_SETTINGS = {"svg.hashsalt": "slatewise", "svg.fonttype": "none", "font.family": "sans-serif"}
_COLOURS = ("#9aa5b8", "#1f6feb", "#e0a030", "#2a9d8f", "#c2476b")


def bars(groups: Sequence[str], series: Mapping[str, Sequence[float]], ylabel: str) -> str:
    """Draw one cluster of bars a group, one bar a series, with the value on top.

    Examples
    --------
    >>> bars(["wine"], {"independent": [0.4], "structured": [0.5]}, "NDCG@10").startswith("<svg")
    True
    """
    matplotlib = import_module("matplotlib")  # on first use: half a second, and its types are too loose to check
    figures = import_module("matplotlib.figure")
    with matplotlib.rc_context(_SETTINGS):
        figure = figures.Figure(figsize=(8, 3.2), layout="constrained")
        axes = figure.subplots()
        width = 0.8 / len(series)
        for position, (name, values) in enumerate(series.items()):
            places = [group + (position - (len(series) - 1) / 2) * width for group in range(len(groups))]
            drawn = axes.bar(places, values, width * 0.92, label=name, color=_COLOURS[position % len(_COLOURS)])
            axes.bar_label(drawn, fmt="%.3f", fontsize=8, padding=2)
        axes.set_xticks(range(len(groups)), groups)
        axes.set_ylabel(ylabel)
        axes.margins(y=0.18)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, ncols=len(series), loc="upper left")
        return _svg(figure)


def lines(places: Sequence[float], series: Mapping[str, Sequence[float]], xlabel: str, ylabel: str) -> str:
    """Draw one line a series over the same places.

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
) -> str:
    """Draw two sets of points side by side, once a matching found, with a line a match: wrong ones stand out.

    Examples
    --------
    >>> matchings([[0, 0], [1, 1]], [[0, 0], [1, 1]], [0, 1], {"before": [1, 0], "after": [0, 1]}).startswith("<svg")
    True
    """
    matplotlib = import_module("matplotlib")
    figures = import_module("matplotlib.figure")
    width = max(x for x, _ in source) - min(x for x, _ in source)
    shifted = [(x + 1.3 * width, y) for x, y in target]
    with matplotlib.rc_context(_SETTINGS):
        figure = figures.Figure(figsize=(8, 3.2), layout="constrained")
        for axes, (title, columns) in zip(figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True):
            for begin, column, right in zip(source, columns, true, strict=True):
                if column >= 0:
                    ends = zip(begin, shifted[column], strict=True)
                    colour, layer = (_COLOURS[0], 1) if column == right else (_COLOURS[4], 2)
                    axes.plot(*ends, color=colour, linewidth=0.8, zorder=layer)
            for points in (source, shifted):
                axes.scatter(*zip(*points, strict=True), s=9, color=_COLOURS[1], zorder=3)
            wrong = sum(column != right for column, right in zip(columns, true, strict=True))
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
                # The first colour is a grey for what others are compared with.
                colour = _COLOURS[1 + position % (len(_COLOURS) - 1)]
                axes.scatter(*zip(*own, strict=True), s=9, color=colour, label=name)
            axes.set_title(title, fontsize=9)
            axes.set_xticks([])
            axes.set_yticks([])
        drawn[-1].legend(frameon=False, fontsize=8)
        return _svg(figure)


def _svg(figure: Any) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]  # the XML prologue has no place inside HTML
