"""Tables of a fitted LatentRanker with rows for ids that were not there before."""

from __future__ import annotations

import numpy as np

from slatewise.estimators._latent_input import Ids
from slatewise.warp.tables import Ints, Singles, Table


def joined_ids(name: str, old: Ids, new: Ids) -> tuple[Ids, Ints, Ints]:
    """Return all ids in ascending order, and where the old and the new ones are among them."""
    if old.dtype.kind != new.dtype.kind:
        raise ValueError(f"{name}: expected ids as in fit, dtype {old.dtype}, found {new.dtype}")
    together = np.union1d(old, new)
    return together, np.searchsorted(together, old), np.searchsorted(together, new)


def fill_rows(table: Table, n: int, places: Ints, values: Singles, steps: Singles, rng: np.random.Generator) -> None:
    """Put learned rows into their places of an empty table, and random ones, as fit begins with, into the rest."""
    new = np.ones(len(table.values), dtype=bool)
    new[places] = False
    table.values[new, :n] = rng.normal(0, 1 / np.sqrt(n), (int(new.sum()), n))
    table.values[places], table.accumulators[places] = values[:, : table.values.shape[1]], steps
