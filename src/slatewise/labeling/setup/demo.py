"""The demo of the labeling page: drawn scenes with a sun, a sea, a boat, ..., some of them labeled, and a model.

Labels come together as they do outside: boats need a sea, stars a night, snow a mountain. The features of a picture are
its colors, the mean of each of 12 x 8 cells.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.labeling.calibration_set import CalibrationSet
from slatewise.labeling.item_data import ItemData
from slatewise.labeling.plan import Plan
from slatewise.labeling.progress_report import PAUSE
from slatewise.labeling.retraining import retrain
from slatewise.labeling.setup.project_folder import whole_folder
from slatewise.labeling.store.leases import now
from slatewise.labeling.store.project import PROJECT_FILE, Project
from slatewise.labeling.store.records import Act, Given, Item

LABELS = (
    "sun", "moon", "stars", "clouds", "rain", "bird", "kite", "mountain", "snow", "tree", "house", "flowers",
    "sea", "boat", "fish", "sand", "palm", "parasol",
)  # fmt: skip
_CELLS = (12, 8)
_SIZE, _DOTS = (6.0, 4.0), 80
_AT_NIGHT = {"moon": 0.7, "stars": 0.8, "clouds": 0.3, "rain": 0.15}
_BY_DAY = {"sun": 0.65, "clouds": 0.5, "rain": 0.12, "bird": 0.35, "kite": 0.15}
_PLACES = {
    "coast": {"sea": 1.0, "sand": 0.75, "boat": 0.45, "fish": 0.25, "palm": 0.45, "parasol": 0.3, "house": 0.1},
    "heights": {"mountain": 1.0, "snow": 0.55, "tree": 0.7, "house": 0.2, "flowers": 0.2},
    "village": {"house": 0.95, "tree": 0.6, "flowers": 0.5, "mountain": 0.2, "kite": 0.2},
}
_Random: TypeAlias = np.random.Generator


@dataclass(frozen=True)
class DrawnScene:
    """A picture, what is in it, and what a model sees of it."""

    png: bytes
    there: frozenset[str]
    colors: NDArray[np.float64]
    """(288,) means of red, green and blue per cell, from 0 to 1."""


def draw_scenes(n_scenes: int, random_state: int = 0) -> list[DrawnScene]:
    """Draw scenes; the same seed gives the same ones.

    Examples
    --------
    >>> scene = draw_scenes(1)[0]
    >>> scene.png[1:4], sorted(scene.there)
    (b'PNG', ['house', 'tree'])
    """
    pen = _Pen()
    return [pen.scene(np.random.default_rng([random_state, number])) for number in range(n_scenes)]


def _contents(rng: _Random) -> set[str]:
    place = _PLACES[str(rng.choice(list(_PLACES)))]
    chances = place | (_AT_NIGHT if rng.random() < 0.25 else _BY_DAY)
    there = {name for name, chance in chances.items() if rng.random() < chance}
    if "rain" in there:
        there = there - {"sun", "stars", "kite"} | {"clouds"}
    return there


class _Pen:
    """Draws shapes on a canvas of 6 x 4."""

    def __init__(self) -> None:
        self._patches: Any = import_module("matplotlib.patches")  # half a second, and its types are too loose to check
        self._lines: Any = import_module("matplotlib.lines")
        self._image: Any = import_module("matplotlib.image")
        self._figure: Any = import_module("matplotlib.figure").Figure(figsize=_SIZE, dpi=_DOTS)
        self._canvas: Any = import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(self._figure)
        self._axes: Any = None

    def scene(self, rng: _Random) -> DrawnScene:
        """Draw one scene."""
        there = _contents(rng)
        night = bool(there & {"moon", "stars"})
        self._figure.clear()
        self._axes = self._figure.add_axes((0, 0, 1, 1), xlim=(0, _SIZE[0]), ylim=(0, _SIZE[1]))
        self._axes.set_axis_off()
        self._sky(rng, night, "rain" in there)
        self.box(0, 0, 6, 1.5, _shade(rng, "#5f9e4a", night))
        for name, draw in _SHAPES.items():  # from far to near
            if name in there:
                draw(self, rng, night)
        self._canvas.draw()
        pixels = np.asarray(self._canvas.buffer_rgba())[:, :, :3]
        columns, rows = _CELLS
        cells = pixels.reshape(rows, pixels.shape[0] // rows, columns, pixels.shape[1] // columns, 3)
        picture = io.BytesIO()
        self._image.imsave(picture, pixels, format="png", metadata={"Software": None})
        return DrawnScene(picture.getvalue(), frozenset(there), cells.mean(axis=(1, 3)).ravel() / 255.0)

    def box(self, x: float, y: float, width: float, height: float, color: str) -> None:
        """Draw a rectangle."""
        self._axes.add_artist(self._patches.Rectangle((x, y), width, height, color=color, lw=0))

    def disc(self, x: float, y: float, width: float, height: float, color: str) -> None:
        """Draw an ellipse around a point."""
        self._axes.add_artist(self._patches.Ellipse((x, y), width, height, color=color, lw=0))

    def shape(self, points: list[tuple[float, float]], color: str) -> None:
        """Draw a polygon."""
        self._axes.add_artist(self._patches.Polygon(points, color=color, lw=0))

    def line(self, points: list[tuple[float, float]], color: str, width: float) -> None:
        """Draw a line through points."""
        across, up = zip(*points, strict=True)
        self._axes.add_artist(self._lines.Line2D(across, up, color=color, lw=width, solid_capstyle="round"))

    def _sky(self, rng: _Random, night: bool, dull: bool) -> None:
        low, high = ("#2b3a67", "#0d1533") if night else ("#c9d3da", "#8fa1ad") if dull else ("#d8eefb", "#6db3e8")
        for band in range(16):
            self.box(0, 1.4 + band * 0.165, 6, 0.17, _mixed(low, high, band / 15 + rng.normal(0, 0.01)))


def _mixed(one: str, other: str, share: float) -> str:
    share = min(max(share, 0.0), 1.0)
    parts = ((int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in parts)


def _shade(rng: _Random, color: str, night: bool) -> str:
    """Return a color as light as the day is, and a little different every time."""
    shaded = _mixed(color, "#10162b", 0.55 if night else 0.0)
    return _mixed(shaded, "#ffffff" if rng.random() < 0.5 else "#000000", 0.12 * rng.random())


def _sun(pen: _Pen, rng: _Random, night: bool) -> None:
    x, y, size = rng.uniform(0.6, 5.4), rng.uniform(3.0, 3.6), rng.uniform(0.5, 0.8)
    pen.disc(x, y, 1.5 * size, 1.5 * size, "#fdf0b0")
    pen.disc(x, y, size, size, "#ffd23f")


def _moon(pen: _Pen, rng: _Random, night: bool) -> None:
    x, y = rng.uniform(0.6, 5.4), rng.uniform(3.0, 3.6)
    pen.disc(x, y, 0.55, 0.55, "#f2efd9")
    pen.disc(x + 0.13, y + 0.06, 0.48, 0.48, "#131c40")


def _stars(pen: _Pen, rng: _Random, night: bool) -> None:
    for _ in range(int(rng.integers(15, 35))):
        size = rng.uniform(0.02, 0.06)
        pen.disc(rng.uniform(0, 6), rng.uniform(2.2, 4), size, size, "#ffffff")


def _clouds(pen: _Pen, rng: _Random, night: bool) -> None:
    color = "#5a658a" if night else "#f4f6f8"
    for _ in range(int(rng.integers(1, 4))):
        x, y, size = rng.uniform(0.5, 5.5), rng.uniform(2.8, 3.7), rng.uniform(0.6, 1.1)
        for across, up in ((-0.45, 0.0), (0.0, 0.12), (0.45, 0.0), (0.1, -0.08)):
            pen.disc(x + across * size, y + up * size, 0.8 * size, 0.45 * size, color)


def _rain(pen: _Pen, rng: _Random, night: bool) -> None:
    for _ in range(60):
        x, y = rng.uniform(0, 6), rng.uniform(0.2, 3.4)
        pen.line([(x, y), (x - 0.06, y - 0.2)], "#7f9fc4", 1.2)


def _bird(pen: _Pen, rng: _Random, night: bool) -> None:
    for _ in range(int(rng.integers(2, 6))):
        x, y = rng.uniform(0.5, 5.5), rng.uniform(2.4, 3.7)
        pen.line([(x - 0.18, y + 0.08), (x - 0.07, y + 0.1), (x, y), (x + 0.07, y + 0.1), (x + 0.18, y + 0.08)],
                 "#2b2b2b", 2.0)  # fmt: skip


def _kite(pen: _Pen, rng: _Random, night: bool) -> None:
    x, y = rng.uniform(1, 5), rng.uniform(2.6, 3.5)
    pen.line([(x, y - 0.3), (x + 0.1, y - 0.6), (x - 0.1, y - 0.9), (x + 0.3, 1.3)], "#555555", 0.8)
    pen.shape([(x, y + 0.35), (x + 0.22, y), (x, y - 0.35), (x - 0.22, y)], "#d1495b")


def _mountain(pen: _Pen, rng: _Random, night: bool) -> None:
    color = _shade(rng, "#7d8597", night)
    for x in (rng.uniform(0.2, 2.0), rng.uniform(2.0, 4.0), rng.uniform(4.0, 5.8)):
        pen.shape([(x - 1.5, 1.4), (x, rng.uniform(2.2, 2.7)), (x + 1.5, 1.4)], color)


def _snow(pen: _Pen, rng: _Random, night: bool) -> None:
    color = _shade(rng, "#f7fbff", night)
    pen.box(0, 0.9, 6, 0.6, color)
    for _ in range(3):
        x = rng.uniform(0.8, 5.2)
        pen.shape([(x - 0.45, 2.1), (x, 2.6), (x + 0.45, 2.1), (x + 0.15, 2.2), (x - 0.1, 2.05)], color)


def _tree(pen: _Pen, rng: _Random, night: bool) -> None:
    for _ in range(int(rng.integers(2, 6))):
        x, y, size = rng.uniform(0.3, 5.7), rng.uniform(0.7, 1.3), rng.uniform(0.7, 1.1)
        pen.box(x - 0.05, y, 0.1, 0.4 * size, _shade(rng, "#6b4226", night))
        for up in (0.3, 0.6, 0.9):
            wide = (1.2 - up) * 0.45 * size
            pen.shape([(x - wide, y + up * size), (x, y + (up + 0.5) * size), (x + wide, y + up * size)],
                      _shade(rng, "#1f6b3a", night))  # fmt: skip


def _house(pen: _Pen, rng: _Random, night: bool) -> None:
    for _ in range(int(rng.integers(1, 4))):
        x, y = rng.uniform(0.4, 4.8), rng.uniform(0.7, 1.1)
        pen.box(x, y, 0.8, 0.6, _shade(rng, "#e8d5b7", night))
        pen.shape([(x - 0.1, y + 0.6), (x + 0.4, y + 1.0), (x + 0.9, y + 0.6)], _shade(rng, "#a63d40", night))
        pen.box(x + 0.12, y + 0.25, 0.18, 0.18, "#ffe08a" if night else "#8ecae6")
        pen.box(x + 0.5, y, 0.17, 0.36, _shade(rng, "#6b4226", night))


def _flowers(pen: _Pen, rng: _Random, night: bool) -> None:
    for _ in range(int(rng.integers(15, 35))):
        x, y = rng.uniform(0.1, 5.9), rng.uniform(0.1, 0.8)
        pen.line([(x, y - 0.12), (x, y)], "#2f6b2f", 1.2)
        pen.disc(x, y, 0.11, 0.11, str(rng.choice(["#e63973", "#f7b801", "#9b5de5", "#ffffff"])))


def _sea(pen: _Pen, rng: _Random, night: bool) -> None:
    pen.box(0, 0.6, 6, 0.9, _shade(rng, "#2176ae", night))
    for _ in range(12):
        x, y = rng.uniform(0, 5.6), rng.uniform(0.7, 1.4)
        pen.line([(x, y), (x + 0.15, y + 0.03), (x + 0.3, y)], _shade(rng, "#8ec6e6", night), 1.2)
    pen.box(0, 0, 6, 0.62, _shade(rng, "#78a06b", night))


def _boat(pen: _Pen, rng: _Random, night: bool) -> None:
    x, y = rng.uniform(0.8, 5.0), rng.uniform(1.1, 1.35)
    pen.shape([(x - 0.4, y + 0.15), (x + 0.4, y + 0.15), (x + 0.25, y), (x - 0.25, y)], _shade(rng, "#7b3f00", night))
    pen.line([(x, y + 0.15), (x, y + 0.85)], "#5b3a1e", 2.0)
    pen.shape([(x + 0.03, y + 0.85), (x + 0.03, y + 0.22), (x + 0.42, y + 0.22)], _shade(rng, "#fffaf0", night))


def _fish(pen: _Pen, rng: _Random, night: bool) -> None:
    for _ in range(int(rng.integers(1, 4))):
        x, y = rng.uniform(0.5, 5.5), rng.uniform(0.75, 1.0)
        pen.disc(x, y, 0.32, 0.15, "#ff8c42")
        pen.shape([(x + 0.13, y), (x + 0.27, y + 0.09), (x + 0.27, y - 0.09)], "#ff8c42")


def _sand(pen: _Pen, rng: _Random, night: bool) -> None:
    pen.box(0, 0, 6, 0.62, _shade(rng, "#ecd9a0", night))
    pen.disc(rng.uniform(1, 5), 0.55, 4.0, 0.35, _shade(rng, "#ecd9a0", night))


def _palm(pen: _Pen, rng: _Random, night: bool) -> None:
    x, lean = rng.uniform(0.5, 5.5), rng.uniform(-0.3, 0.3)
    top = (x + lean, 1.9)
    pen.line([(x, 0.3), (x + lean * 0.4, 1.1), top], _shade(rng, "#8a5a2b", night), 5.0)
    for across, up in ((-0.6, 0.05), (-0.45, 0.3), (0.0, 0.45), (0.45, 0.3), (0.6, 0.05)):
        pen.line([top, (top[0] + across * 0.6, top[1] + up + 0.1), (top[0] + across, top[1] + up - 0.15)],
                 _shade(rng, "#2e8b57", night), 4.0)  # fmt: skip


def _parasol(pen: _Pen, rng: _Random, night: bool) -> None:
    x, y = rng.uniform(0.8, 5.2), rng.uniform(0.1, 0.25)
    pen.line([(x, y), (x, y + 0.7)], "#f5f5f5", 2.5)
    pen.shape([(x - 0.5, y + 0.6), (x - 0.25, y + 0.85), (x, y + 0.92), (x + 0.25, y + 0.85), (x + 0.5, y + 0.6)],
              "#e63946")  # fmt: skip


_SHAPES: Mapping[str, Callable[[_Pen, _Random, bool], None]] = {
    "stars": _stars, "sun": _sun, "moon": _moon, "clouds": _clouds, "mountain": _mountain, "snow": _snow,
    "sea": _sea, "sand": _sand, "boat": _boat, "fish": _fish, "tree": _tree, "house": _house, "palm": _palm,
    "flowers": _flowers, "parasol": _parasol, "kite": _kite, "bird": _bird, "rain": _rain,
}  # fmt: skip


_WHO = "the one who drew them"
_LEFT = 2
"""Of the share without the model: a person who labels for a while gets to see how that is."""
_APART = 2 * PAUSE
"""So that these say nothing of the pace of people."""
_PLAN = Plan(confidence=0.9, share=0.15, list_length=8, retrain_every=40)


def make_demo_folder(path: str | os.PathLike[str], n_scenes: int = 140, n_labeled: int = 90) -> Path:
    """Make the folder of a project of drawn scenes, all of it or nothing; return the file of the project.

    Parameters
    ----------
    path
        The folder, which is not there yet, or empty.
    n_scenes
        How many to draw.
    n_labeled
        How many of these are labeled, so that there is a model.
    """
    target = Path(path)
    with whole_folder(target) as folder:
        pictures = folder / "items"
        pictures.mkdir()
        scenes, items = draw_scenes(n_scenes), list[Item]()
        for number, scene in enumerate(scenes, 1):
            name = f"scene-{number:03d}.png"
            (pictures / name).write_bytes(scene.png)
            items.append(Item(name, "image", name, pictures))
        with Project.create(folder / PROJECT_FILE, LABELS, items) as project:
            _PLAN.keep(project)
            ItemData.of(project, np.array([scene.colors for scene in scenes])).attach(project)
            who = project.people.number(_WHO)
            calibration_set, every = CalibrationSet.of(project, _PLAN), np.arange(len(items))
            measured, others = calibration_set.in_turn(every)[:-_LEFT], every[~calibration_set.members]
            first: list[int] = [*measured.tolist(), *others.tolist()][:n_labeled]
            for place, item in enumerate(first):
                given = tuple(Given(label, int(name in scenes[item].there)) for label, name in enumerate(LABELS))
                time = now() - (len(first) - place) * _APART
                project.record([Act("answer", item, who, given, time), Act("done", item, who, (), time)])
            if n_labeled:
                retrain(project)
    return target / PROJECT_FILE
