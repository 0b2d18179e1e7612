"""What the annotation tables run on: rows of features with labels, in three parts.

Where a source has histograms, features are those of the paper: principal components of the intersection kernel,
centered (through at most 2,048 pivots, not all pairs of rows). Drawn characters become histograms of stroke directions
in a grid of cells, and are split, also for cross-fitting, by who drew them. Other rows are scaled to length 1. A tenth
of the training rows is for validation. Labels that no training row has, and rows left without a label, are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, solve_triangular

from slatewise import datasets
from slatewise.cli.inputs import read_labels
from slatewise.core.arrays import Bools, Floats, Ints
from slatewise.core.numerics.row_kernels import Intersection, kernel_basis
from slatewise.datasets.records import ImageSet, MultiViewSet, TaggedListeningSet
from slatewise_papers.framework.arrays import dense, most_frequent

TEST_SHARE, VALIDATION_SHARE = 0.2, 0.1
CELLS, DIRECTIONS = 7, 8
TEST_DRAWERS, VALIDATION_DRAWERS = range(15, 21), range(13, 15)
FEWEST_ARTISTS = 20
"""Tags of fewer artists are left out."""
QUICK_ROWS, QUICK_LABELS = 400, 30
PIVOTS, ROWS_A_BLOCK = 2048, 1000
"""Of the intersection kernel: training rows that its components are made of, and rows compared with them at a time."""
TRAIN, VALIDATION, TEST = range(3)


@dataclass(frozen=True, eq=False)
class LabelledPart:
    """Rows of features, and 0/1 of every label."""

    X: Floats
    Y: Floats
    group: Ints
    """Rows of one group are alike in more than their labels, and are cross-fitted together."""

    def rows(self, chosen: Bools) -> LabelledPart:
        """Return some of the rows."""
        return LabelledPart(self.X[chosen], self.Y[chosen], self.group[chosen])


@dataclass(frozen=True, eq=False)
class AnnotationProblem:
    """Which labels a row has, in three parts."""

    name: str
    train: LabelledPart
    validation: LabelledPart
    test: LabelledPart
    label_names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """A source's rows, each of one part, and how they become features once it is settled which are used."""

    raw: NDArray[Any]
    Y: Floats
    part: Ints
    group: Ints
    label_names: tuple[str, ...]
    describe: Callable[[NDArray[Any], Bools, int], Floats]
    """From raw rows, which of them are for training, and the most components."""

    def smaller(self, seed: int) -> LabelledRows:
        """Return a few rows of the most frequent labels."""
        frequent = most_frequent(self.Y, QUICK_LABELS)
        some = np.flatnonzero(self.Y[:, frequent].any(axis=1))
        return self._of(np.random.default_rng(seed).permutation(some)[:QUICK_ROWS], frequent)

    def learnable(self) -> LabelledRows:
        """Leave out labels that no training row has, and rows that are then without a label."""
        labels = np.flatnonzero(self.Y[self.part == TRAIN].any(axis=0))
        return self._of(np.flatnonzero(self.Y[:, labels].any(axis=1)), labels)

    def _of(self, rows: Ints, labels: Ints) -> LabelledRows:
        names = tuple(self.label_names[int(label)] for label in labels)
        Y = self.Y[np.ix_(rows, labels)]
        return replace(self, raw=self.raw[rows], Y=Y, part=self.part[rows], group=self.group[rows], label_names=names)


def is_annotation(name: str) -> bool:
    """Tell data with labels from data with sessions."""
    return name in ANNOTATION or Path(name).suffix in (".npz", ".arff")


def load_annotation(name: str, n_components: int, quick: bool, seed: int) -> AnnotationProblem:
    """Load a data set by name, or a file of rows with labels; ``n_components`` is the most that histograms become."""
    rows = _SOURCES.get(name, _vectors)(name, seed)
    rows = (rows.smaller(seed) if quick else rows).learnable()
    X = rows.describe(rows.raw, rows.part == TRAIN, n_components)
    everything = LabelledPart(X, rows.Y, rows.group)
    parts = [everything.rows(rows.part == number) for number in range(3)]
    if not all(len(part.X) for part in parts):
        raise ValueError(f"{name}: expected rows to learn from, to validate and to test on, found none in some part")
    return AnnotationProblem(name, parts[TRAIN], parts[VALIDATION], parts[TEST], rows.label_names)


def stroke_histograms(images: NDArray[np.uint8]) -> Floats:
    """Return, a row per image, how much edge of each direction lies in each cell, summing to 1."""
    ink = images.astype(np.float64)
    for axis in (1, 2):  # edges of thin strokes have a direction only after some smoothing
        for _ in range(3):
            ink = (np.roll(ink, 1, axis) + 2.0 * ink + np.roll(ink, -1, axis)) / 4.0
    down, right = cast("list[Floats]", np.gradient(ink, axis=(1, 2)))
    direction = np.floor((np.arctan2(down, right) % np.pi) / np.pi * DIRECTIONS).astype(np.int64) % DIRECTIONS
    n, height, width = ink.shape
    image, row, column = np.ogrid[:n, :height, :width]
    cell = (image * CELLS + row * CELLS // height) * CELLS + column * CELLS // width
    place = np.ravel(cell * DIRECTIONS + direction)
    sums = np.bincount(place, weights=np.hypot(down, right).ravel(), minlength=n * CELLS * CELLS * DIRECTIONS)
    sums = sums.reshape(n, -1)
    return sums / np.maximum(sums.sum(axis=1, keepdims=True), 1e-12)


def _characters(name: str, seed: int) -> LabelledRows:
    images = datasets.load(name, ImageSet)
    height, width = images.shape

    def describe(packed: NDArray[Any], train: Bools, n_components: int) -> Floats:
        blocks = np.array_split(packed, -(-len(packed) // 500))
        pixels = (np.unpackbits(block, axis=1, count=height * width).reshape(-1, height, width) for block in blocks)
        return kernel_components(np.concatenate([stroke_histograms(block) for block in pixels]), train, n_components)

    Y = np.zeros((len(images.y), len(images.class_names)))
    Y[np.arange(len(Y)), images.y] = 1.0
    part = np.full(len(Y), TRAIN, dtype=np.int64)
    part[np.isin(images.drawer, VALIDATION_DRAWERS)], part[np.isin(images.drawer, TEST_DRAWERS)] = VALIDATION, TEST
    names = tuple(images.class_names.tolist())
    return LabelledRows(images.packed, Y, part, images.drawer.astype(np.int64), names, describe)


def _images(name: str, seed: int) -> LabelledRows:
    images = datasets.load(name, MultiViewSet)
    views = [images.views[view].toarray().astype(np.float64) for view in ("DenseSift", "DenseHue")]
    X = np.hstack([view / np.maximum(view.sum(axis=1, keepdims=True), 1.0) / len(views) for view in views])
    Y = images.Y.toarray().astype(np.float64)
    names = tuple(images.label_names.tolist())
    return LabelledRows(X, Y, _cut(images.is_train, seed), np.arange(len(X)), names, kernel_components)


def _vectors(name: str, seed: int) -> LabelledRows:
    rows = read_labels(name)
    X = dense(rows.X)
    drawn = np.random.default_rng((seed, 1)).random(len(X)) >= TEST_SHARE
    part = _cut(drawn if rows.is_train is None else rows.is_train, seed)
    names = tuple(rows.label_names.tolist())
    return LabelledRows(X, rows.Y.toarray().astype(np.float64), part, np.arange(len(X)), names, _of_length_1)


def _artists(name: str, seed: int) -> LabelledRows:
    """Artists with their tags; features are who listens to them, and how often."""
    rows = datasets.load(name, TaggedListeningSet).annotation()
    Y = rows.Y.toarray().astype(np.float64)
    often = np.flatnonzero(Y.sum(axis=0) >= FEWEST_ARTISTS)
    X = np.log1p(dense(rows.X))
    heard = np.flatnonzero(X.any(axis=1))
    part = _cut(np.random.default_rng((seed, 1)).random(len(heard)) >= TEST_SHARE, seed)
    names = tuple(rows.label_names[often].tolist())
    return LabelledRows(X[heard], Y[np.ix_(heard, often)], part, np.arange(len(heard)), names, _of_length_1)


_SOURCES: dict[str, Callable[[str, int], LabelledRows]] = {
    "omniglot901": _characters,
    "corel5k_tagprop": _images,
    "mulan_delicious": _vectors,
    "hetrec2011_lastfm_2k": _artists,
}
ANNOTATION = tuple(_SOURCES)


def kernel_components(X: Floats, train: Bools, n_components: int) -> Floats:
    """Return the leading principal components of the intersection kernel, centered at the training rows' mean.

    Their inner products are about ``(k(x, .) - mean).(k(y, .) - mean)``. The components are those of the training rows'
    projections on pivots among them, so of the kernel itself where all rows are pivots, as they are up to PIVOTS rows.
    """
    training = np.ascontiguousarray(X[train])
    kernel = Intersection.of(training, None)
    basis = kernel_basis(lambda row: kernel.column(training, row), kernel.diagonal(training), max(PIVOTS, n_components))
    mean = basis.phi.mean(axis=0)
    covariance = basis.phi.T @ basis.phi - len(training) * np.outer(mean, mean)
    axes = eigh(covariance, subset_by_index=_last(n_components, len(covariance)))[1][:, ::-1]
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])  # an eigenvector has two signs
    pivots, corner = kernel.rows(training, basis.pivots), basis.phi[basis.pivots]
    out = np.empty((len(X), axes.shape[1]))
    for first in range(0, len(X), ROWS_A_BLOCK):
        block = slice(first, first + ROWS_A_BLOCK)
        against = kernel.compare(np.ascontiguousarray(X[block]), pivots)
        out[block] = (solve_triangular(corner, against.T, lower=True).T - mean) @ axes
    return out


def _last(n: int, size: int) -> tuple[int, int]:
    return max(size - n, 0), size - 1


def _of_length_1(X: Floats, train: Bools, n_components: int) -> Floats:
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)


def _cut(is_train: Bools, seed: int) -> Ints:
    """Draw the validation rows."""
    part = np.where(is_train, TRAIN, TEST)
    part[is_train & (np.random.default_rng(seed).random(len(part)) < VALIDATION_SHARE)] = VALIDATION
    return part.astype(np.int64)
