"""Rows with one class each: UCI tables, scikit-learn's copies of them, and Omniglot's characters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.data.reading import open_source
from slatewise.datasets.records import About, ImageSet, LabelledSet


def load_wine(about: About, folder: Path) -> LabelledSet:
    """Load 13 measurements of wines; class 1, 2 or 3 in the last column."""
    table = _table(folder / "wine.csv")
    return LabelledSet(about, table[:, :-1], table[:, -1].astype(np.int64) - 1, np.array(["1", "2", "3"]))


def load_wdbc(about: About, folder: Path) -> LabelledSet:
    """Load 30 measurements of tumours; the first line has the class names, the last column the class."""
    table = _table(folder / "wdbc.csv.xz", skip=1)
    return LabelledSet(about, table[:, :-1], table[:, -1].astype(np.int64), np.array(["malignant", "benign"]))


def load_balance(about: About, folder: Path) -> LabelledSet:
    """Load weights and distances on a scale; the first column says where it tips."""
    table = _table(folder / "balance-scale.csv")
    return LabelledSet(about, table[:, 1:], table[:, 0].astype(np.int64), np.array(["balanced", "right", "left"]))


def load_isolet(about: About, folder: Path) -> LabelledSet:
    """Load spoken letters: speaker group 1 is for training, group 5 (UCI's test file) for testing."""
    train, test = _table(folder / "isolet1.csv.xz"), _table(folder / "isolet5.csv.xz")
    table = np.vstack([train, test])
    is_train = np.arange(len(table)) < len(train)
    letters = np.array([chr(ord("A") + letter) for letter in range(26)])
    return LabelledSet(about, table[:, :-1], table[:, -1].astype(np.int64) - 1, letters, is_train)


def load_omniglot(about: About, folder: Path) -> ImageSet:
    """Load handwritten characters: 20 drawings of each, one a drawer."""
    with np.load(folder / "omniglot901.npz", allow_pickle=False) as parts:
        y, drawer = parts["y"].astype(np.int64), parts["drawer"].astype(np.int64)
        return ImageSet(about, parts["packed"], (105, 105), y, parts["class_names"], drawer, parts["from_evaluation"])


def sklearn_wine(about: About) -> LabelledSet:
    """Return the wines from scikit-learn's own copy."""
    from sklearn.datasets import load_wine

    return _from_sklearn(about, load_wine, ["1", "2", "3"])


def sklearn_wdbc(about: About) -> LabelledSet:
    """Return the tumours from scikit-learn's own copy."""
    from sklearn.datasets import load_breast_cancer

    return _from_sklearn(about, load_breast_cancer, ["malignant", "benign"])


def sklearn_digits(about: About) -> LabelledSet:
    """Return scikit-learn's handwritten digits, 8 x 8 grey values per row."""
    from sklearn.datasets import load_digits

    return _from_sklearn(about, load_digits, [str(digit) for digit in range(10)])


def _from_sklearn(about: About, load: Callable[..., Any], class_names: list[str]) -> LabelledSet:
    X, y = load(return_X_y=True)
    return LabelledSet(about, X, y.astype(np.int64), np.array(class_names))


def _table(path: Path, skip: int = 0) -> Floats:
    with open_source(path) as source:
        lines = [line for number, line in source.text_lines() if number > skip and line]
    return np.loadtxt(lines, delimiter=",", dtype=np.float64, ndmin=2)
