"""Choosing the core labels greedily: the labels that say most about all others together.

    next = argmax over c of   sum over the other labels i of  I( z_i ; z_core, z_c )

The joint of the core is a table of its 2^C settings, counted over the training rows by weight, with half a count added
to every cell, so that a setting seen once does not count as evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slatewise.core.arrays import Floats, Ints

_SMOOTHING = 0.5


def greedy_core(Y: Floats, size: int, weight: Floats | None = None) -> Ints:
    """Return ``size`` labels of Y (n, N) 0/1, in the order in which they were chosen.

    Examples
    --------
    Label 0 decides labels 1 and 2; label 3 is noise.

    >>> Y = np.array([[1, 1, 0, 0], [1, 1, 0, 1], [0, 0, 1, 0], [0, 0, 1, 1]] * 5, dtype=float)
    >>> int(greedy_core(Y, 1)[0]) in (0, 1, 2)
    True
    """
    n, n_labels = len(Y), int(Y.shape[1])
    core: list[int] = []
    setting = np.zeros(n, dtype=np.int64)
    while len(core) < size:
        counts = _Counts.of(Y, setting, np.ones(n) if weight is None else weight)
        rest = np.setdiff1d(np.arange(n_labels), np.array(core, dtype=np.int64))
        gains = [counts.information(int(c), rest[rest != c]) for c in rest]
        chosen = int(rest[int(np.argmax(gains))])
        # Settings that never occur need no row in the table: number those that do.
        setting = np.unique(2 * setting + Y[:, chosen].astype(np.int64), return_inverse=True)[1]
        core.append(chosen)
    return np.array(core, dtype=np.int64)


def residual_label(Y: Floats, chance: Floats, core: Ints, weight: Floats) -> int:
    """Return the label, not in the core, whose residuals ``Y - chance`` (n, N) go together with those of most others.

    A label may say much about others that their own scores say already. What is left shows in the residuals: for each
    pair the squared score statistic of its term in the likelihood, of which 1 is due to chance,

        max( (sum_m r_mi r_mj)^2 / sum_m p_mi (1 - p_mi) p_mj (1 - p_mj)  -  1, 0 )

    summed over the other labels.

    Examples
    --------
    Label 0 is foreseen; labels 1 and 2 come together more often than they should.

    >>> Y = np.array([[1, 1, 1], [1, 0, 0], [0, 1, 1], [0, 0, 0]] * 5, dtype=float)
    >>> chance = np.column_stack([0.98 * Y[:, 0] + 0.01, np.full(20, 0.5), np.full(20, 0.5)])
    >>> residual_label(Y, chance, np.zeros(0, dtype=np.int64), np.ones(20))
    1
    """
    residual, variance = Y - chance, chance * (1.0 - chance)
    expected = (variance * weight[:, None]).T @ variance
    statistic = ((residual * weight[:, None]).T @ residual) ** 2 / np.maximum(expected, 1.0)
    excess = np.maximum(statistic - 1.0, 0.0)
    np.fill_diagonal(excess, 0.0)
    gains = excess.sum(axis=1)
    gains[core] = -1.0
    return int(np.argmax(gains))


@dataclass(frozen=True, eq=False)
class _Counts:
    """How often labels come with each setting of the core; most rows lack a label, and are counted once for all."""

    Y: Floats
    setting: Ints
    """(n,) in ascending order."""
    weight: Floats
    rows: Ints
    """(S,) the number of rows with the setting."""
    total: Floats
    """(S,) their weight."""
    ones: Floats
    """(S, N) the weight of those with the label."""

    @classmethod
    def of(cls, Y: Floats, setting: Ints, weight: Floats) -> _Counts:
        order = np.argsort(setting, kind="stable")
        Y, setting, weight = Y[order], setting[order], weight[order]
        n_settings = int(setting.max(initial=0)) + 1
        return cls(Y, setting, weight, *_summed(Y, setting, weight, n_settings))

    def information(self, label: int, others: Ints) -> float:
        """Sum over ``others`` of the mutual information with the setting and the label, in nats."""
        rows = np.flatnonzero(self.Y[:, label])
        n_rows, count, ones = _summed(
            self.Y[np.ix_(rows, others)], self.setting[rows], self.weight[rows], len(self.rows)
        )
        seen = np.column_stack([self.rows - n_rows, n_rows]).ravel() > 0
        count = np.column_stack([_less(self.total, count), count]).ravel()[seen]
        ones = np.stack([_less(self.ones[:, others], ones), ones], axis=1).reshape(len(seen), -1)[seen]
        table = np.stack([_less(count[:, None], ones), ones]) + _SMOOTHING
        table /= table.sum(axis=(0, 1))
        outer = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
        return float((table * np.log(table / outer)).sum())


def _summed(Y: Floats, setting: Ints, weight: Floats, n_settings: int) -> tuple[Ints, Floats, Floats]:
    """Return the number of rows of each setting, their weight, and that of those with each label; settings ascend."""
    rows = np.bincount(setting, minlength=n_settings)
    weights = np.bincount(setting, weight, n_settings).astype(np.float64)
    ones, present = np.zeros((n_settings, int(Y.shape[1]))), rows > 0
    if present.any():
        starts = np.cumsum(rows)[present] - rows[present]
        ones[present] = np.add.reduceat(weight[:, None] * Y, starts, axis=0)
    return rows, weights, ones


def _less(whole: Floats, part: Floats) -> Floats:
    """Return what is left; by rounding, a part can be a little more than its whole."""
    return np.maximum(whole - part, 0.0)
