"""Item-item weights: the linear model that predicts each item of a history from the others (EASE, weighted by users).

With X (users, items), D = diag(n_u ** -power), n_u the length of user u's history, and Lambda diagonal,

    Lambda_j = regularization * mean(D) + dropout * (X'DX)_jj
    P = (X'DX + Lambda)^-1,     B_ij = -P_ij / P_jj for i != j,     B_jj = 0,     scores = history B

(Steck 2019; the dropout term: Steck 2020). With fewer users than items P comes from a matrix of users by users,

    P = Lambda^-1 - Lambda^-1 X' (D^-1 + X Lambda^-1 X')^-1 X Lambda^-1

so that the smaller side is inverted. Of each column of B the entries of largest size are kept. With more
than ``most_items`` users and items, X has the most frequent items only, and B has no entries for the others.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, diags_array

from slatewise.collaborative.inverse import invert_in_place
from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.executor import Executor

ROWS = 512
"""Rows of a block of products."""
MOST_ENTRIES = 1 << 24
"""Of a block of products."""
WITH_FEW_USERS = 4
"""Times as many items have weights where no matrix of items is inverted: the time still grows with their square."""
LEAST = 1e-4
"""Penalty of an item relative to its weight, where its own is less: single precision holds no more."""


def item_weights(
    histories: csr_array,
    regularization: float,
    dropout: float,
    n_neighbors: int,
    executor: Executor,
    power: float = 0.5,
    most_items: int = 30_000,
) -> csr_array:
    """Return B, (items, items), with at most ``n_neighbors`` entries in each column."""
    n_users, n_items = histories.shape
    if n_items > (most := most_with_weights(n_users, most_items)):
        kept = frequent_items(histories, most)
        few = csr_array(histories[:, kept])
        found = item_weights(few, regularization, dropout, n_neighbors, executor, power, most_items).tocoo()
        return csr_array((found.data, (kept[found.row], kept[found.col])), shape=(n_items, n_items))
    by_item = histories.T.tocsr()
    lengths = np.maximum(histories.sum(axis=1), 1.0)
    user_weights = (lengths**-power).astype(np.float32)
    own = by_item.power(2) @ user_weights
    ridge = np.maximum(regularization * user_weights.mean() + dropout * own, LEAST * own).astype(np.float32)
    if n_users < n_items:
        inverse = _dense(histories @ diags_array(1.0 / ridge), by_item, executor)
        inverse[np.diag_indices(n_users)] += 1.0 / user_weights
    else:
        inverse = _dense(by_item @ diags_array(user_weights), histories, executor)
        inverse[np.diag_indices(n_items)] += ridge
    try:
        invert_in_place(inverse, executor)
    except np.linalg.LinAlgError:
        raise ValueError(
            "ItemItem: too many items always occur together for these penalties: raise `regularization` or `dropout`"
        ) from None
    step = max(1, min(ROWS, MOST_ENTRIES // n_items))
    starts = range(0, n_items, step)
    least = (1.0 / (own + ridge)).astype(np.float32)  # the diagonal of P is not less except by rounding
    columns: list[csr_array | None] = [None] * len(starts)

    def fill(number: int) -> None:
        rows = slice(starts[number], min(n_items, starts[number] + step))
        if n_users < n_items:
            block = -((by_item[rows] @ inverse) @ histories) / ridge[rows, None] / ridge
            at = np.arange(len(block))
            block[at, at + rows.start] += 1.0 / ridge[rows]
        else:
            block = inverse[rows]
        columns[number] = _largest(-block, rows.start, n_neighbors, least[rows])

    executor.fill_blocks(fill, range(len(starts)))
    from scipy.sparse import vstack

    return csr_array(vstack([one for one in columns if one is not None], format="csr").T.tocsr())


def most_with_weights(n_users: int, most_items: int) -> int:
    """Return the number of items between which weights are learned: more where users are few, and are inverted."""
    return most_items if n_users > most_items else WITH_FEW_USERS * most_items


def frequent_items(histories: csr_array, n: int) -> Ints:
    """Return the n items that occur most often, ascending; of those equally frequent the first."""
    counts = np.bincount(histories.indices, minlength=histories.shape[1])
    return np.sort(np.argsort(-counts, kind="stable")[:n])


def _dense(left: csr_array, right: csr_array, executor: Executor) -> Singles:
    """Return the product of two sparse matrices as a dense one."""
    left = left.tocsr()
    found = np.empty((left.shape[0], right.shape[1]), dtype=np.float32)

    def fill(start: int) -> None:
        found[start : start + ROWS] = (left[start : start + ROWS] @ right).toarray()

    executor.fill_blocks(fill, range(0, len(found), ROWS))
    return found


def _largest(rows: Singles, first: int, n_neighbors: int, least: Singles) -> csr_array:
    """Return rows divided by their diagonal, without it, and with the entries of largest size only."""
    at = np.arange(len(rows))
    diagonal = np.maximum(-rows[at, at + first], least)
    rows = (rows / diagonal[:, None]).astype(np.float32)
    rows[at, at + first] = 0.0
    kept = min(n_neighbors, rows.shape[1])
    if kept == rows.shape[1]:
        return csr_array(rows)
    places = np.sort(np.argpartition(-np.abs(rows), kept - 1, axis=1)[:, :kept], axis=1)
    values = np.take_along_axis(rows, places, axis=1)
    offsets = np.arange(0, kept * len(rows) + 1, kept)
    found = csr_array((values.ravel(), places.ravel().astype(np.int32), offsets), shape=rows.shape)
    found.eliminate_zeros()
    return found
