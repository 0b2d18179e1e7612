"""Calibration of scores: a slope and a shift per label by their likelihood, held near 1 and 0.

    min over a_i, b_i of   sum over rows of log(1 + exp(-y (a_i s_i + b_i)))  +  10/2 (a_i - 1)^2  +  0.5/2 b_i^2

A sigmoid of its own for every label (Platt 1999) overfits the labels that are rare; towards 1 and 0 it is never far
from scores that are log-odds already. Margins of other kinds are first made log-odds by one slope and shift for all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.cstar.base.logistic import Labels

SLOPE_RIDGE, SHIFT_RIDGE = 10.0, 0.5
_POOLED_RIDGE = 1e-3
_MOST_STEPS, _MOST_HALVINGS, _SMALL_STEP = 50, 20, 1e-7


class Calibration(NamedTuple):
    """Log-odds are ``slope * score + shift``."""

    slope: Floats
    """(labels,)"""
    shift: Floats


def calibrate_log_odds(scores: Floats, labels: Labels, rounding: float = 0.0) -> Calibration:
    """Fit out-of-fold log-odds (n, labels) to the labels by slopes and shifts, regularized towards 1 and 0.

    ``rounding`` is the share of its value that a step may go up by: with 0 the last steps are halved in vain.

    Examples
    --------
    Scores that are ten times too sure, of a label known in all rows, and of one known in two.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(500, 2))
    >>> known = (rng.random((500, 2)) < 1 / (1 + np.exp(-truth))).astype(np.int8)
    >>> known[2:, 1] = -1
    >>> calibrate_log_odds(10 * truth, Labels(known, np.ones(500))).slope.round(1)
    array([0.1, 1. ])
    """
    slope, shift = _newton(scores, labels, (SLOPE_RIDGE, SHIFT_RIDGE), 1.0, rounding)
    varies = labels.varies()
    return Calibration(np.where(varies, np.maximum(slope, 0.0), 1.0), np.where(varies, shift, 0.0))


def calibrate_margins(margins: Floats, labels: Labels) -> Calibration:
    """Return what makes log-odds of margins (n, labels) in any unit; a label that never changes has its frequency."""
    varies = np.flatnonzero(labels.varies())
    slope, shift = np.zeros(margins.shape[1]), labels.log_odds()
    if len(varies):
        known, column = Labels(labels.known[:, varies], labels.weight), margins[:, varies]
        unit = float(np.sqrt((column**2).mean())) or 1.0
        flat = Labels(known.known.reshape(-1, 1), np.repeat(known.weight, len(varies)))
        pooled = _newton(column.reshape(-1, 1) / unit, flat, (_POOLED_RIDGE, _POOLED_RIDGE), 0.0)
        shared = max(float(pooled.slope[0]), 0.0) / unit, float(pooled.shift[0])
        own = calibrate_log_odds(column * shared[0] + shared[1], known)
        slope[varies], shift[varies] = own.slope * shared[0], own.slope * shared[1] + own.shift
    return Calibration(slope, shift)


def _newton(
    scores: Floats, labels: Labels, ridge: tuple[float, float], centre: float, rounding: float = 0.0
) -> Calibration:
    """Minimize over all labels at once, from (centre, 0); steps that would go up are halved."""
    weight, sign = labels.counts, labels.sign
    a, b = np.full(scores.shape[1], centre), np.zeros(scores.shape[1])

    def value(a: Floats, b: Floats) -> Floats:
        losses = (weight * np.logaddexp(0.0, -sign * (a * scores + b))).sum(axis=0)
        return losses + 0.5 * (ridge[0] * (a - centre) ** 2 + ridge[1] * b**2)

    best = value(a, b)
    for _ in range(_MOST_STEPS):
        chance = 0.5 + 0.5 * np.tanh(0.5 * (a * scores + b))
        residual, bend = weight * (chance - (sign > 0.0)), weight * chance * (1.0 - chance)
        down = (residual * scores).sum(axis=0) + ridge[0] * (a - centre), residual.sum(axis=0) + ridge[1] * b
        aa, ab, bb = (bend * scores**2).sum(axis=0) + ridge[0], (bend * scores).sum(axis=0), bend.sum(axis=0) + ridge[1]
        determinant = aa * bb - ab**2
        step = (bb * down[0] - ab * down[1]) / determinant, (aa * down[1] - ab * down[0]) / determinant
        share, most = np.ones(len(a)), (1.0 + rounding) * best
        found = value(a - step[0], b - step[1])
        for _ in range(_MOST_HALVINGS):
            if (found <= most).all():
                break
            share[~(found <= most)] *= 0.5
            found = value(a - share * step[0], b - share * step[1])
        worse = ~(found <= most)
        share[worse] = 0.0
        a, b, best = a - share * step[0], b - share * step[1], np.where(worse, best, found)
        if max(np.abs(share * step[0]).max(initial=0.0), np.abs(share * step[1]).max(initial=0.0)) < _SMALL_STEP:
            break
    return Calibration(a, b)
