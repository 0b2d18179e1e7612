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


def _svg(figure: Any) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]  # the XML prologue has no place inside HTML
