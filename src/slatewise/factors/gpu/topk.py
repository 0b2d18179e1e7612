"""The k best items of the whole catalogue on a device: what :meth:`slatewise.factors.scoring.Cascade.top` returns.

The scores of a block of queries are made by one product in float32. Items are put in groups, of which the k with the
largest maxima have all of the k best items: whatever is in another group has k larger ones, or earlier equal ones,
before it. So all scores are read once, and only those of k groups are sorted. Equal scores rank by item number.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from slatewise.core.arrays import Ints
from slatewise.core.running.devices import halved, with_less_memory
from slatewise.factors.gpu.tables import to_device
from slatewise.factors.offsets import ItemOffsets
from slatewise.factors.pair_terms import add_lists, places_of
from slatewise.factors.scoring import Cascade, Hidden, TopItems, hidden_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

torch: Any = import_module("torch")
Tensor: TypeAlias = Any

GROUP = 128
"""Items of a group: with fewer there are more maxima to sort, with more there is more left to sort."""
SCORES_AT_ONCE = 1 << 29
"""2 GB of them."""


def top(device: str, cascade: Cascade, numbers: Ints, k: int, exclude: csr_array | None) -> TopItems:
    """Rank the catalogue by the last stage, in blocks of queries that fit in memory."""
    if exclude is not None:
        exclude.sort_indices()

    def attempt(n_queries: int) -> TopItems:
        return _top(device, cascade, numbers, k, exclude, n_queries)

    first = max(1, min(len(numbers), SCORES_AT_ONCE // cascade.n_items))
    return with_less_memory(
        attempt, first, halved, f"scores of {cascade.n_items} items", "device=None, which ranks on the CPU"
    )


def _top(device: str, cascade: Cascade, numbers: Ints, k: int, exclude: csr_array | None, n_queries: int) -> TopItems:
    tables = [_padded(to_device(factors.items.values, device)) for factors in cascade.stages]
    n_padded = len(tables[0])
    buffer = torch.empty((n_queries, n_padded), dtype=torch.float32, device=device)
    items = torch.empty((len(numbers), k), dtype=torch.int64, device=device)
    scores = torch.empty((len(numbers), k), dtype=torch.float32, device=device)
    for first in range(0, len(numbers), n_queries):
        rows = slice(first, min(first + n_queries, len(numbers)))
        _rank(cascade, tables, numbers[rows], _rows(exclude, rows), buffer, items[rows], scores[rows])
    return TopItems(items.cpu().numpy(), scores.cpu().numpy())


def _rank(
    cascade: Cascade,
    tables: list[Tensor],
    numbers: Ints,
    hidden: Hidden | None,
    buffer: Tensor,
    items: Tensor,
    scores: Tensor,
) -> None:
    """Fill in the best items of a block, stage after stage."""
    lists, last = np.empty((len(numbers), 0), dtype=np.int64), len(tables) - 1
    base = cascade.stages[0].base
    given = None if base is None else to_device(base.rows(numbers), buffer.device)
    for stage, (factors, table) in enumerate(zip(cascade.stages, tables, strict=True)):
        vectors = factors.queries.vectors(numbers)
        if stage and cascade.pair is not None:
            places, weights = places_of(lists, cascade.position_weights, cascade.own_items, numbers)
            add_lists(cascade.pair, factors.items.values, places, weights, vectors)
        made = buffer[: len(numbers)]
        torch.mm(to_device(vectors, buffer.device), table.T, out=made)
        if given is not None:
            made[:, : cascade.n_items] += given
        added = factors.queries.score_offsets
        if added is not None:
            _add(made, added.of_queries(numbers))
        made[:, cascade.n_items :] = -torch.inf
        if stage == last:
            if hidden is not None:
                _hide(made, hidden)
            best_of(made, items, scores)
            return
        found = torch.empty((len(numbers), cascade.list_length), dtype=torch.int64, device=buffer.device)
        best_of(made, found, torch.empty(found.shape, dtype=torch.float32, device=buffer.device))
        lists = found.cpu().numpy()


def best_of(made: Tensor, items: Tensor, scores: Tensor) -> None:
    """Fill in the k best of each row of scores, best first, equal ones by number; -1 where a score is -inf or NaN.

    Rows are whole groups long.
    """
    n_queries, k = items.shape
    groups = made.view(n_queries, -1, GROUP)
    n_groups = min(k, groups.shape[1])
    # NaN has no place, but must not hide what is beside it.
    maxima = groups.amax(2).nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=-torch.inf)
    chosen = _order(maxima, n_groups)[0].sort(1).values
    few = groups.gather(1, chosen[:, :, None].expand(-1, -1, GROUP)).reshape(n_queries, -1)
    few = torch.where(few.isnan(), -torch.inf, few)
    places, best = _order(few, min(k, few.shape[1]))
    inside = torch.arange(GROUP, device=made.device)
    numbers = (chosen[:, :, None] * GROUP + inside).reshape(n_queries, -1).gather(1, places)
    items.fill_(-1)
    scores.fill_(-torch.inf)
    items[:, : places.shape[1]] = torch.where(best > -torch.inf, numbers, -1)
    scores[:, : places.shape[1]] = best


def _order(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return where the k largest of each row are, largest first, equal ones by place; and what they are."""
    n = values.shape[1]
    bits = (values + 0.0).view(torch.int32)  # -0 is 0
    bits = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)  # in the order of the numbers
    keys = (bits.long() << 32) + torch.arange(n - 1, -1, -1, device=values.device)
    places = n - 1 - (torch.topk(keys, k, dim=1).values & 0xFFFFFFFF)
    return places, values.gather(1, places)


def _padded(table: Tensor) -> Tensor:
    return torch.nn.functional.pad(table, (0, 0, 0, -len(table) % GROUP))


def _rows(exclude: csr_array | None, rows: slice) -> Hidden | None:
    return None if exclude is None else hidden_rows(exclude, rows.start, rows.stop - rows.start)


def _hide(made: Tensor, hidden: Hidden) -> None:
    owners = np.repeat(np.arange(len(made)), np.diff(hidden.offsets))
    made[to_device(owners, made.device), to_device(hidden.items, made.device)] = -torch.inf


def _add(made: Tensor, held: ItemOffsets) -> None:
    """Add to the scores of items that queries hold, each once."""
    owners = to_device(np.repeat(np.arange(len(made)), np.diff(held.offsets)), made.device)
    items, amounts = to_device(held.items, made.device), to_device(held.amounts, made.device)
    made[owners, items] = made[owners, items] + amounts
