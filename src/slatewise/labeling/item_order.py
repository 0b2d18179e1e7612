"""Which item comes next: what each is worth, computed once per version of the model, then row by row as answers come.

file order     as they were added
least sure     of whose labels the model knows least                        :class:`slatewise.labeling.LeastSure`
most gain      where questions put most labels right for their cost         :class:`slatewise.labeling.MostGain`
disagreement   most labels that people dispute; then where the answers differ most from what the model expected,
               ``sum over answered labels of |answer - p|``: where a second opinion is worth most

Items that may end without a question come last. Of equal items the first in the file comes first.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import RLock

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.cstar.inference.any_size import chances
from slatewise.labeling.plan import By
from slatewise.labeling.questions.policies import LeastSure, MostGain, Situation
from slatewise.labeling.scored_items import ScoredItems
from slatewise.labeling.store.known_labels import KnownLabels

_BLOCK = 256
"""Rows that are scored together: one block of the sums, so that no threads take the cores from people's requests."""


class ItemOrder:
    """What every item is worth to the person who takes it next; may be used from any thread.

    Parameters
    ----------
    scored
        The items, as a version of the model sees them.
    known
        What is known of them.
    shared
        Whether the answers of one person are known to the next; else everybody starts from nothing.
    """

    def __init__(self, scored: ScoredItems, known: KnownLabels, shared: bool) -> None:
        self._scored, self._known, self._shared = scored, known, shared
        self._worth: dict[By, Floats] = {}
        self._lock = RLock()

    def prepare(self, by: By) -> None:
        """Compute what all items are worth in an order, so that the first person need not wait."""
        # Without a model all items are equal, unless people disagree about them.
        if by == "file order" or (by != "disagreement" and self._scored.basis == "frequency"):
            return
        with self._lock:
            if by not in self._worth:
                self._worth[by] = self._computed(by, np.arange(len(self._known.values)))

    def changed(self, items: Iterable[int]) -> None:
        """Compute anew what some items are worth."""
        numbers = np.array(sorted(items), dtype=np.int64)
        with self._lock:
            for by, worth in self._worth.items():
                worth[numbers] = self._computed(by, numbers)

    def sorted(self, free: Ints, by: By) -> Ints:
        """Return some items, the best first."""
        self.prepare(by)
        with self._lock:
            worth = self._worth.get(by)
            return free if worth is None else free[np.argsort(-worth[free], kind="stable")]

    def _computed(self, by: By, numbers: Ints) -> Floats:
        cuts = (numbers[start : start + _BLOCK] for start in range(0, len(numbers), _BLOCK))
        return np.concatenate([np.empty(0), *(self._of_block(by, at) for at in cuts)])

    def _of_block(self, by: By, at: Ints) -> Floats:
        rows, values = self._scored.rows.take(at), self._known.values[at]
        unknown = np.full_like(values, -1)
        known = values if self._shared else unknown
        seen = self._scored.rule.look(rows, known)
        askable = seen.hidden & ~seen.stop[:, None]
        if by == "disagreement":
            surprise = np.where(values >= 0, np.abs(values - chances(rows.margins(unknown))), 0.0).sum(axis=1)
            return self._known.disputed[at].sum(axis=1) + surprise / (values.shape[1] + 1.0)
        policy = LeastSure() if by == "least sure" else MostGain(self._scored.rule)
        worth = policy.worth(Situation(rows, known, seen.log_odds, askable))
        return np.where(askable.any(axis=1), worth, -np.inf)
