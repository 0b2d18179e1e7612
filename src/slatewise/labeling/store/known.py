"""What is known of every item and label when several people answered.

A reviewer's last answer settles a label. Otherwise the strict majority of yes and no does, and a tie leaves it unknown;
"don't know" is no vote. Where some said yes and some no, and no reviewer spoke, the label is *disputed*, whoever won.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class KnownLabels:
    """(items, labels) of what people said, for ``fit(X, known.values, answered=known.answered)``."""

    values: NDArray[np.int8]
    """1 yes, 0 no, -1 not known."""
    answered: NDArray[np.bool_]
    """Whether it is known because somebody was shown or asked for the label, not because somebody thought of it."""
    disputed: NDArray[np.bool_]
    """Whether people disagree and no reviewer has settled it."""


def known_labels(shape: tuple[int, int], answers: NDArray[np.int64]) -> KnownLabels:
    """Count votes; ``answers`` has a row (item, label, annotator, said, volunteered, reviewed) each, oldest first.

    Of what one annotator said of a label of an item, the last counts.

    Examples
    --------
    >>> said = [[0, 0, 7, 1, 0, 0], [0, 0, 8, 0, 0, 0], [0, 1, 7, 0, 0, 0], [0, 1, 7, 1, 1, 0]]
    >>> known = known_labels((1, 3), np.array(said))
    >>> known.values.tolist(), known.answered.tolist(), known.disputed.tolist()
    ([[-1, 1, -1]], [[False, False, False]], [[True, False, False]])
    """
    n_items, n_labels = shape
    answers = answers[last_of_each(answers)]
    cells = answers[:, 0] * n_labels + answers[:, 1]
    said, volunteered, reviewed = answers[:, 3], answers[:, 4] > 0, answers[:, 5] > 0
    yes, no = (_count(cells[~reviewed & (said == vote)], n_items * n_labels) for vote in (1, 0))
    values = np.sign(yes - no)
    values = np.where(values == 0, -1, np.maximum(values, 0)).astype(np.int8)
    disputed = (yes > 0) & (no > 0)
    values[cells[reviewed]] = said[reviewed]  # of several the last, by the order of assignment
    disputed[cells[reviewed]] = False
    answered = np.zeros(n_items * n_labels, dtype=np.bool_)
    answered[cells[~volunteered & (said >= 0)]] = True
    answered &= values >= 0
    return KnownLabels(values.reshape(shape), answered.reshape(shape), disputed.reshape(shape))


def last_of_each(answers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows (item, label, annotator, ...) that no later one supersedes, in their order."""
    n_items, n_labels = (answers[:, column].max(initial=0) + 1 for column in (0, 1))
    keys = (answers[:, 2] * n_items + answers[:, 0]) * n_labels + answers[:, 1]
    first_from_behind = np.unique(keys[::-1], return_index=True)[1]
    return np.sort(len(keys) - 1 - first_from_behind)


def _count(cells: NDArray[np.int64], n_cells: int) -> NDArray[np.int16]:
    votes = np.zeros(n_cells, dtype=np.int16)
    np.add.at(votes, cells, 1)
    return votes
