"""Why a label is asked for: how likely it is, how likely it was before the first answer, and which labels moved it.

The log-odds of a label that is not in the core are ``s_i + sum over core labels c of G_ci t_c``. When answers change
how likely the core labels are, they move by about

    sum over c of G_ci (P(c | answers) - P(c)) ,

exactly where the answers decide the core; a core label is moved by all others in the same way. Each term is a *push*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Bytes, Floats
from slatewise.cstar.inference.any_size import chances
from slatewise.labeling.rows import LabelRows

_MOST_PUSHES = 3
_LEAST_PUSH = 0.05


class Push(NamedTuple):
    """What another label did to the log-odds of the one that is asked for."""

    label: int
    name: str
    by: float
    because: str
    """"yes" or "no" where somebody said so of it; "likelier" or "less likely" where the model infers that."""


class Reason(NamedTuple):
    """Why a label is asked for."""

    text: str
    """For people."""
    before: float | None = None
    """How likely the label was before the first answer; None where no model says so."""
    pushes: tuple[Push, ...] = ()
    """The strongest first."""


def pushes(rows: LabelRows, label: int, before: Floats, now: Floats, known: Bytes, names: list[str]) -> list[Push]:
    """Return what moved a label of one row; ``before`` and ``now`` are log-odds (N,) without and with the answers."""
    change = chances(now) - chances(before)
    by = np.zeros(len(now))
    if label in rows.core:
        by[:] = rows.pair[np.flatnonzero(rows.core == label)[0]] * change
    else:
        by[rows.core] = rows.pair[:, label] * change[rows.core]
    order = np.argsort(-np.abs(by), kind="stable")[:_MOST_PUSHES]
    return [
        Push(int(other), names[other], float(by[other]), _because(int(known[other]), float(change[other]) > 0.0))
        for other in order
        if abs(by[other]) >= _LEAST_PUSH
    ]


def _because(known: int, likelier: bool) -> str:
    return ("no", "yes")[known] if known >= 0 else "likelier" if likelier else "less likely"


def model_reason(before: float, now: float, moved: list[Push]) -> Reason:
    """Put it into words.

    Examples
    --------
    >>> model_reason(0.2, 0.61, [Push(3, "beach", 1.9, "yes"), Push(5, "street", -0.2, "likelier")]).text
    '61% likely, 20% before the answers: more because of beach (yes), less because of street (likelier)'
    """
    text = f"{now:.0%} likely"
    if f"{before:.0%}" != f"{now:.0%}":
        text = f"{text}, {before:.0%} before the answers"
    more, less = ([f"{push.name} ({push.because})" for push in moved if push.by * sign > 0] for sign in (1, -1))
    parts = [f"{word} because of {', '.join(found)}" for word, found in (("more", more), ("less", less)) if found]
    return Reason(": ".join([text, *([", ".join(parts)] if parts else [])]), before, tuple(moved))
