"""Rows with classes for the table of nearest-neighbor errors: how they are split and validated on.

Ten random 80/20 splits that keep the classes' shares. How features are scaled is chosen with everything else. Isolet
has its own split, by speakers, and features of one scale already: like in the paper, 170 principal components. Its
training rows come from 30 speakers, and validation is on speakers left out, because testing is.

*Scaling.* Scales of features, learned from training rows; which one suits is a setting, and every method may choose.

- *standard*: (x - mean) / spread, each feature by itself;
- *common*: (x - mean) / root of the mean variance: for features of one unit, like pixels, whose spreads tell;
- *power*: standard, then the power of each feature that makes it most like a normal one (Yeo and Johnson 2000).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from slatewise import datasets
from slatewise.cli.inputs import read_classes
from slatewise.core.arrays import Floats, Ints
from slatewise.datasets.records import LabelledSet

Map: TypeAlias = Callable[[Floats], Floats]
Scaling: TypeAlias = Callable[[Floats], Map]
_preprocessing: Any = import_module("sklearn.preprocessing")


def unscaled(X: Floats) -> Map:
    """Leave the rows as they are."""
    return np.asarray


def standard(X: Floats) -> Map:
    """Bring features to mean 0 and spread 1; a constant one becomes 0."""
    mean, variance = _moments(X)
    spread = np.where(variance == 0.0, 1.0, np.sqrt(variance))
    return lambda rows: (rows - mean) / spread


def common(X: Floats) -> Map:
    """Bring features to mean 0 and, all by one factor, to a mean variance of 1."""
    mean, variance = _moments(X)
    spread = np.sqrt(variance.mean()) or 1.0
    return lambda rows: (rows - mean) / spread


def power(X: Floats) -> Map:
    """Bring features to mean 0 and spread 1, each by the power that makes it most like a normal one."""
    scaled = standard(X)  # the powers are of 1 + x, so the unit matters
    known = scaled(X)
    powers = _preprocessing.PowerTransformer().fit(known)
    # Beyond the rows they were learned from, steep powers lead anywhere.
    low, high = known.min(axis=0), known.max(axis=0)
    return lambda rows: powers.transform(np.clip(scaled(rows), low, high))


def _moments(X: Floats) -> tuple[Floats, Floats]:
    """Return each feature's mean and variance; a constant one has variance 0, which rounding of the mean would hide."""
    mean, variance = X.mean(axis=0), X.var(axis=0)
    constant = (X[0] == X).all(axis=0)
    mean[constant], variance[constant] = X[0, constant], 0.0
    return mean, variance


UCI = ("uci-wine", "uci-wdbc", "digits", "uci-balance", "uci-isolet")
SPLITS = 10
SEED = 2010
"""Of the splits that are reported; the way to choose was settled on others (of seed 101)."""
SCALINGS = (standard, common, power)
INNER_FOLDS = 5
MANY_ROWS, FEW_FOLDS = 1000, 2
"""With more training rows than this, the first few of the inner folds are enough to choose by."""
PCA_COMPONENTS = 170
QUICK_ROWS = 120
FEWEST_ROWS = 5
"""Of a class: less cannot be cut twice."""
_selection: Any = import_module("sklearn.model_selection")
_decomposition: Any = import_module("sklearn.decomposition")


class Fold(NamedTuple):
    """Rows to learn from, and rows to measure on."""

    X: Floats
    y: Ints
    X_test: Floats
    y_test: Ints
    speaker: Ints | None = None
    """Of the rows to learn from, where that is known."""

    def mapped(self, learned: Map) -> Fold:
        """Return the same rows after a map."""
        return self._replace(X=learned(self.X), X_test=learned(self.X_test))


@dataclass(frozen=True, eq=False)
class ClassProblem:
    """Rows with classes, and how to cut them."""

    name: str
    X: Floats
    y: Ints
    n_splits: int = SPLITS
    is_train: NDArray[np.bool_] | None = None
    """The source's split, which is then the only one."""
    speaker: Ints | None = None
    scalings: tuple[Scaling, ...] = SCALINGS

    def smaller(self) -> ClassProblem:
        """Return one split of a part of the rows: enough to see every part at work."""
        if self.is_train is not None:
            kept = np.arange(len(self.y)) % 5 == 0
            speaker = None if self.speaker is None else self.speaker[kept]
            return replace(self, X=self.X[kept], y=self.y[kept], is_train=self.is_train[kept], speaker=speaker)
        if len(self.y) <= QUICK_ROWS:
            return replace(self, n_splits=1)
        kept, _ = next(_shuffled(self.y, 1, QUICK_ROWS / len(self.y), SEED))
        return replace(self, X=self.X[kept], y=self.y[kept], n_splits=1)

    def folds(self, seed: int = SEED) -> Iterator[Fold]:
        """Yield the splits; the seed is of the random ones."""
        if self.is_train is not None:
            train, test = np.flatnonzero(self.is_train), np.flatnonzero(~self.is_train)
            model = _decomposition.PCA(min(PCA_COMPONENTS, len(train), self.X.shape[1]), random_state=0)
            X = model.fit_transform(self.X[train])
            speaker = None if self.speaker is None else self.speaker[train]
            yield Fold(X, self.y[train], model.transform(self.X[test]), self.y[test], speaker)
            return
        for train, test in _shuffled(self.y, self.n_splits, 0.8, seed):
            yield Fold(self.X[train], self.y[train], self.X[test], self.y[test])


def inner_folds(fold: Fold) -> Iterator[Fold]:
    """Cut the rows to learn from again, to validate on: by speaker where that is known, else at random."""
    if fold.speaker is None:
        cuts = _selection.StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=0).split(fold.X, fold.y)
    else:
        cuts = _selection.GroupKFold(INNER_FOLDS).split(fold.X, fold.y, fold.speaker)
    for kept, held_out in islice(cuts, FEW_FOLDS if len(fold.y) > MANY_ROWS else None):
        yield Fold(fold.X[kept], fold.y[kept], fold.X[held_out], fold.y[held_out])


def load_problem(name: str) -> ClassProblem:
    """Load a data set by name, or any file of rows with classes."""
    if name == "uci-isolet":
        return _isolet(datasets.load(name, LabelledSet))
    rows = read_classes(name)
    _, codes, sizes = np.unique(rows.y, return_inverse=True, return_counts=True)
    if len(sizes) < 2 or sizes.min() < FEWEST_ROWS:
        raise ValueError(f"{name}: expected at least two classes of at least {FEWEST_ROWS} rows, found sizes {sizes}")
    return ClassProblem(name, rows.X, codes.astype(np.int64))


def _isolet(letters: LabelledSet) -> ClassProblem:
    is_train = cast("NDArray[np.bool_]", letters.is_train)
    # The training rows are sorted by letter and then by speaker, two rows each.
    speaker = np.full(len(letters.y), -1)
    sizes = np.bincount(letters.y[is_train])
    speaker[is_train] = (np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)) // 2
    return ClassProblem(letters.name, letters.X, letters.y, 1, is_train, speaker, (unscaled,))


def _shuffled(y: Ints, n_splits: int, share: float, seed: int) -> Iterator[tuple[Ints, Ints]]:
    return _selection.StratifiedShuffleSplit(n_splits, train_size=share, random_state=seed).split(y, y)
