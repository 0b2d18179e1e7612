"""Which item comes next: what each is worth, computed once per version of the model, then row by row as answers come.

file order     as they were added
least sure     of whose labels the model knows least                        :class:`slatewise.labeling.LeastSure`
most gain      where a visit puts most labels right for its questions       :class:`slatewise.labeling.MostGain`
disagreement   most labels that people dispute; then where what was said differs most from what the model expected,
               ``sum over answered labels of |said - p|``: where a second opinion is worth most

Items that may end without a question come last. Of equal items the first in the file comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import RLock
from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Bools, Bytes, Floats, Ints
from slatewise.cstar.inference.any_size import chances
from slatewise.labeling.plan import By
from slatewise.labeling.questions.policies import LeastSure, MostGain, Situation
from slatewise.labeling.scored_items import ScoredItems
from slatewise.labeling.store.known_labels import KnownLabels

_BLOCK = 256
"""Rows that are looked at together: one block of the sums, so that no threads take the cores from those who answer."""


class _Block(NamedTuple):
    scored: ScoredItems
    situation: Situation
    said: Bytes
    disputed: Bools


def _least_sure(block: _Block) -> Floats:
    return LeastSure().worth(block.situation)


def _most_gain(block: _Block) -> Floats:
    return MostGain(block.scored.rule).worth(block.situation)


def _disagreement(block: _Block) -> Floats:
    expected = chances(block.situation.rows.margins(np.full(block.said.shape, -1, dtype=np.int8)))
    surprise = np.where(block.said >= 0, np.abs(block.said - expected), 0.0).sum(axis=1)
    return block.disputed.sum(axis=1) + surprise / (block.said.shape[1] + 1.0)


class _Order(NamedTuple):
    worth: Callable[[_Block], Floats]
    by_questions: bool
    """Whether items without a question come last, and all are equal before there is a model."""


_ORDERS: Mapping[str, _Order] = {
    "least sure": _Order(_least_sure, by_questions=True),
    "most gain": _Order(_most_gain, by_questions=True),
    "disagreement": _Order(_disagreement, by_questions=False),
}


class ItemOrder:
    """What every item is worth to the person who takes it next; may be used from any thread.

    Parameters
    ----------
    scored
        The items, as a version of the model sees them.
    said
        What is known of them.
    shared
        Whether what one person said is known to the next; else everybody starts from nothing.
    """

    def __init__(self, scored: ScoredItems, said: KnownLabels, shared: bool) -> None:
        self._scored, self._said, self._shared = scored, said, shared
        self._worth: dict[str, Floats] = {}
        self._lock = RLock()

    def prepare(self, by: By) -> None:
        """Compute what all items are worth in an order, so that the first who asks need not wait."""
        order = _ORDERS.get(by)
        if order is None or (order.by_questions and self._scored.basis == "frequency"):
            return
        with self._lock:
            if by not in self._worth:
                self._worth[by] = self._computed(order, np.arange(len(self._said.values)))

    def changed(self, items: Iterable[int]) -> None:
        """Compute anew what some items are worth."""
        numbers = np.array(sorted(items), dtype=np.int64)
        with self._lock:
            for by, worth in self._worth.items():
                worth[numbers] = self._computed(_ORDERS[by], numbers)

    def sorted(self, free: Ints, by: By) -> Ints:
        """Return some items, the best first."""
        self.prepare(by)
        with self._lock:
            worth = self._worth.get(by)
            return free if worth is None else free[np.argsort(-worth[free], kind="stable")]

    def _computed(self, order: _Order, numbers: Ints) -> Floats:
        cuts = (numbers[start : start + _BLOCK] for start in range(0, len(numbers), _BLOCK))
        return np.concatenate([np.empty(0), *(self._of_block(order, at) for at in cuts)])

    def _of_block(self, order: _Order, at: Ints) -> Floats:
        rows, said = self._scored.rows.take(at), self._said.values[at]
        known = said if self._shared else np.full_like(said, -1)
        seen = self._scored.rule.look(rows, known)
        askable = seen.hidden & ~seen.stop[:, None]
        block = _Block(self._scored, Situation(rows, known, seen.log_odds, askable), said, self._said.disputed[at])
        last = ~askable.any(axis=1) & order.by_questions
        return np.where(last, -np.inf, order.worth(block))
