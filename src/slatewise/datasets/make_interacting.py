"""Lists whose best items depend on each other, with the best selection of every list.

The score of a selection t (0/1, k ones) is

    f(t) = s.t + sum over unordered pairs G_ij t_i t_j ,     s = X W' + b ,

with G non-zero only in the rows and columns of a few core items (a star). Once the core items are fixed, the rest is
a sort; so trying every subset of the core finds the best selection exactly, at any number of items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.datasets.splits import RandomState

_MOST_CORE = 12
"""2 ** 12 subsets of the core, each a pass over all the scores."""


@dataclass(frozen=True, eq=False)
class InteractingLists:
    """Lists over shared items: list l has features ``X[l]`` and item scores ``s[l] = X[l] @ W.T + b``.

    ``pair[a, i]`` is the interaction of core item ``core[a]`` with item i; entries between core items stand twice
    (they agree) and count once. ``best[l]`` are the k items of the best selection, by item number.
    """

    X: Floats
    W: Floats
    b: Floats
    pair: Floats
    core: Ints
    k: int
    best: Ints
    best_score: Floats

    @property
    def s(self) -> Floats:
        """Item scores, (lists, items)."""
        return self.X @ self.W.T + self.b

    @property
    def Y(self) -> NDArray[np.int8]:
        """The best selections as 0/1 rows, (lists, items)."""
        chosen = np.zeros((len(self.X), len(self.W)), dtype=np.int8)
        np.put_along_axis(chosen, self.best, 1, axis=1)
        return chosen

    def score(self, selections: Ints) -> Floats:
        """Return f of one selection per list: (lists, k) item numbers."""
        chosen = np.zeros((len(self.X), len(self.W)))
        np.put_along_axis(chosen, selections, 1.0, axis=1)
        in_core = chosen[:, self.core]
        core_pairs = np.einsum("la,ab,lb->l", in_core, self.pair[:, self.core], in_core)
        pairs = np.einsum("la,ai,li->l", in_core, self.pair, chosen)
        return np.einsum("li,li->l", self.s, chosen) + pairs - core_pairs / 2


def make_interacting_lists(
    n_lists: int = 100,
    n_items: int = 20,
    k: int = 4,
    *,
    n_core: int = 3,
    n_features: int = 5,
    strength: float = 2.0,
    random_state: RandomState = None,
) -> InteractingLists:
    """Draw lists in which pair interactions of size ``strength`` (item scores have size 1) decide what is best.

    Examples
    --------
    >>> lists = make_interacting_lists(n_lists=200, random_state=0)
    >>> independent = np.argsort(-lists.s, axis=1)[:, : lists.k]
    >>> bool((lists.score(independent) < lists.best_score - 1e-9).mean() > 0.9)
    True
    """
    if not 0 <= n_core <= min(n_items, _MOST_CORE):
        raise ValueError(f"n_core: expected a number from 0 to {min(n_items, _MOST_CORE)}, found {n_core}")
    if not 1 <= k <= n_items:
        raise ValueError(f"k: expected a number from 1 to n_items = {n_items}, found {k}")
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n_lists, n_features))
    W = rng.normal(size=(n_items, n_features)) / np.sqrt(max(n_features, 1))
    b = rng.normal(size=n_items) / 2
    core = np.sort(rng.choice(n_items, n_core, replace=False)).astype(np.int64)
    pair = strength * rng.normal(size=(n_core, n_items))
    among = np.triu(pair[:, core], 1)
    pair[:, core] = among + among.T
    best, best_score = _best_selections(X @ W.T + b, pair, core, k)
    return InteractingLists(X, W, b, pair, core, k, best, best_score)


def _best_selections(s: Floats, pair: Floats, core: Ints, k: int) -> tuple[Ints, Floats]:
    n_lists, n_items = s.shape
    others = np.setdiff1d(np.arange(n_items, dtype=np.int64), core)
    best = np.zeros((n_lists, k), dtype=np.int64)
    best_score = np.full(n_lists, -np.inf)
    for subset in range(1 << len(core)):
        inside = np.flatnonzero((subset >> np.arange(len(core))) & 1)
        rest = k - len(inside)
        if not 0 <= rest <= len(others):
            continue
        chosen = core[inside]
        gains = s[:, others] + pair[inside][:, others].sum(axis=0)
        top = np.argsort(-gains, axis=1, kind="stable")[:, :rest]
        score = s[:, chosen].sum(axis=1) + pair[np.ix_(inside, chosen)].sum() / 2
        score += np.take_along_axis(gains, top, axis=1).sum(axis=1)
        better = score > best_score
        selection = np.hstack([np.broadcast_to(chosen, (n_lists, len(chosen))), others[top]])
        best[better] = np.sort(selection[better], axis=1)
        best_score[better] = score[better]
    return best, best_score
