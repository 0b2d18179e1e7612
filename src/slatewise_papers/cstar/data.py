"""Multi-label problems for the c-star tables: features a row, a 0/1 label matrix, and how single labels are scored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slatewise import datasets
from slatewise.cli.inputs import read_labels
from slatewise.core.arrays import Floats, Ints
from slatewise.datasets.records import MultiViewSet
from slatewise_papers.cstar.scores import BaseScorer, KernelSvm, Logistic
from slatewise_papers.framework.arrays import dense, most_frequent

FEWEST_IMAGES = 20
"""Labels of Corel5k with fewer images are left out."""
QUICK_ROWS, QUICK_LABELS = 300, 12


@dataclass(frozen=True, eq=False)
class LabelProblem:
    """Rows with labels, and the base scorer for them."""

    name: str
    X: Any
    """(n, d), dense except for the tags tables, which take sparse rows too."""
    Y: Floats
    scorer: BaseScorer

    def smaller(self, n_rows: int = QUICK_ROWS, n_labels: int = QUICK_LABELS) -> LabelProblem:
        """Return the first rows and the most frequent labels: enough to see every part at work."""
        frequent = most_frequent(self.Y, n_labels)
        return replace(self, X=self.X[:n_rows], Y=self.Y[:n_rows, frequent])

    def split(self, seed: int) -> tuple[Ints, Ints]:
        """Deal rows at random: four fifths to train on, one fifth to test on."""
        order = np.random.default_rng(seed).permutation(len(self.Y))
        cut = len(self.Y) // 5
        return np.sort(order[cut:]), np.sort(order[:cut])


def load_problem(name: str) -> LabelProblem:
    """Load a data set by name, or any multi-label file."""
    if name == "corel5k_tagprop":
        return _corel5k(datasets.load(name, MultiViewSet))
    rows = read_labels(name)
    scorer = KernelSvm() if name == "mulan_yeast" else Logistic(standardize=True)
    return LabelProblem(name, dense(rows.X), rows.Y.toarray().astype(np.float64), scorer)


def _corel5k(images: MultiViewSet) -> LabelProblem:
    """Square roots of the normalized histograms of SIFT and hue: dot products are then Hellinger affinities."""
    views = [images.views[name].toarray() for name in ("DenseSift", "DenseHue")]
    X = np.hstack([np.sqrt(view / np.maximum(view.sum(axis=1, keepdims=True), 1.0)) for view in views])
    Y = images.Y.toarray().astype(np.float64)
    return LabelProblem(images.name, X, Y[:, Y.sum(axis=0) >= FEWEST_IMAGES], Logistic())
