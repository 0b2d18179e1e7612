"""LightGBM (Ke et al. 2017), one classifier of boosted trees per label."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy.sparse import issparse

from slatewise.core.arrays import Floats
from slatewise.core.checks import Features
from slatewise_papers.framework.arrays import smoothed_log_odds
from slatewise_papers.tags.baselines import Part

TREES = ((0.1, 7), (0.1, 31), (0.05, 15), (0.3, 4))
"""Learning rates and numbers of leaves."""
MOST_ROUNDS, PATIENCE, MOST_LABELS_TO_CHOOSE = 200, 10, 25


def boosted_trees(part: Part) -> tuple[Floats, int]:
    """LightGBM, one classifier per label: one setting for all labels, the number of rounds per label.

    The setting is chosen by the held-out log loss of at most 25 labels, drawn at random; the rounds by early stopping
    on the same validation rows; the classifiers are then fitted to all training rows.
    """
    inner, truth = part.validation()
    forest, labels = _Forest.of(inner, truth), np.flatnonzero(np.ptp(inner.Y, axis=0) > 0.0)
    drawn = np.random.default_rng(0).permutation(labels)[:MOST_LABELS_TO_CHOOSE]
    losses = [sum(forest.stopped(setting, label)[0] for label in drawn) for setting in TREES]
    best = TREES[int(np.argmin(losses))]
    rounds = {int(label): forest.stopped(best, int(label))[1] for label in labels}
    whole = _Forest.of(part, None)
    out = np.broadcast_to(smoothed_log_odds(part.Y), (int(part.X_test.shape[0]), part.Y.shape[1])).copy()
    for label, count in rounds.items():
        out[:, label] = whole.trained(best, label, count)
    return out, len(TREES)


@dataclass(frozen=True, eq=False)
class _Forest:
    """Binned rows that all labels share."""

    lightgbm: Any
    part: Part
    rows: Any
    truth: Floats | None
    held_out: Any

    @classmethod
    def of(cls, part: Part, truth: Floats | None) -> _Forest:
        lightgbm = import_module("lightgbm")
        options = {"verbose": -1, "num_threads": 1, "max_bin": 63, "feature_pre_filter": False}
        rows = lightgbm.Dataset(_plain(part.X), label=np.zeros(len(part.Y)), params=options, free_raw_data=False)
        rows.construct()
        held_out = None
        if truth is not None:
            held_out = rows.create_valid(_plain(part.X_test), label=np.zeros(len(truth)), params=options)
            held_out.construct()
        return cls(lightgbm, part, rows, truth, held_out)

    def stopped(self, setting: tuple[float, int], label: int) -> tuple[float, int]:
        """Return the held-out log loss and the number of rounds."""
        assert self.truth is not None
        self.rows.set_label(self.part.Y[:, label])
        self.held_out.set_label(self.truth[:, label])
        stop = self.lightgbm.early_stopping(PATIENCE, verbose=False)
        trees = self.lightgbm.train(
            _options(setting), self.rows, MOST_ROUNDS, valid_sets=[self.held_out], callbacks=[stop]
        )
        return float(trees.best_score["valid_0"]["binary_logloss"]), int(trees.best_iteration)

    def trained(self, setting: tuple[float, int], label: int, rounds: int) -> Floats:
        """Return the log-odds of the test rows."""
        self.rows.set_label(self.part.Y[:, label])
        trees = self.lightgbm.train(_options(setting), self.rows, rounds)
        return np.asarray(trees.predict(_plain(self.part.X_test), raw_score=True), dtype=np.float64)


def _options(setting: tuple[float, int]) -> dict[str, Any]:
    rate, leaves = setting
    return {
        "objective": "binary",
        "metric": "binary_logloss",
        "learning_rate": rate,
        "num_leaves": leaves,
        "min_data_in_leaf": 5,
        "feature_fraction": 0.3,
        "max_bin": 63,
        "feature_pre_filter": False,
        "num_threads": 1,
        "seed": 0,
        "deterministic": True,
        "verbose": -1,
    }


def _plain(X: Features) -> Any:
    """Return what LightGBM reads: it knows sparse matrices, not sparse arrays."""
    return import_module("scipy.sparse").csr_matrix(X) if issparse(X) else X
