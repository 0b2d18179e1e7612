"""Peers that read a session in its order, in torch: GRU4Rec (Hidasi et al. 2016) and SASRec (Kang and McAuley 2018).

Both learn to tell the next item at every place of a session, by a softmax over all items, whose rows are those that are
read (more than either paper's sampled losses find). The last sessions are held out: after every epoch they say
whether it was the best so far, as in LatentRanker. On a GPU where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from slatewise.core.arrays import Ints
from slatewise.core.running.executor import thread_count
from slatewise.data.records import Prefixes, Sessions
from slatewise_papers.sessions.data import LISTED, Rank, ndcg, places_of

States: TypeAlias = Callable[[Any], Any]
"""From items, (sessions, places), to what is known after each of them, (sessions, places, width)."""

LENGTH = 50
"""Items that are read, the last ones."""
BATCH = 256
POOL = 32
"""Batches among which sessions are sorted by length, so that few places are empty."""
EPOCHS, PATIENCE = 12, 2
HELD_OUT, MOST_QUESTIONS = 0.05, 5000


def gru4rec(log: Sessions, n_items: int, width: int, dropout: float, learning_rate: float) -> Rank:
    """Train a layer of gated recurrent units."""
    torch = _torch()
    parts = torch.nn.ModuleDict(
        {
            "rows": torch.nn.Embedding(n_items + 1, width),
            "units": torch.nn.GRU(width, width, batch_first=True),
            "dropout": torch.nn.Dropout(dropout),
        }
    )

    def states(items: Any) -> Any:
        return parts["dropout"](parts["units"](parts["dropout"](parts["rows"](items)))[0])

    return _trained(torch, parts, states, log, n_items, learning_rate)


def sasrec(log: Sessions, n_items: int, width: int, dropout: float, layers: int) -> Rank:
    """Train layers of attention to what came before."""
    torch = _torch()
    layer = torch.nn.TransformerEncoderLayer(width, 2, 4 * width, dropout, batch_first=True, norm_first=True)
    parts = torch.nn.ModuleDict(
        {
            "rows": torch.nn.Embedding(n_items + 1, width),
            "places": torch.nn.Embedding(LENGTH, width),
            "dropout": torch.nn.Dropout(dropout),
            "layers": torch.nn.TransformerEncoder(layer, layers, torch.nn.LayerNorm(width), enable_nested_tensor=False),
        }
    )
    torch.nn.init.normal_(parts["places"].weight, std=0.5 * width**-0.5)

    def states(items: Any) -> Any:
        n_places = items.shape[1]
        later = torch.triu(torch.ones(n_places, n_places, dtype=torch.bool, device=items.device), 1)
        read = parts["rows"](items) + parts["places"].weight[:n_places]
        return parts["layers"](parts["dropout"](read), mask=later)

    return _trained(torch, parts, states, log, n_items, learning_rate=1e-3)


def _torch() -> Any:
    torch: Any = import_module("torch")
    torch.manual_seed(0)
    torch.set_num_threads(thread_count())
    torch.set_float32_matmul_precision("high")
    return torch


def _trained(torch: Any, parts: Any, states: States, log: Sessions, n_items: int, learning_rate: float) -> Rank:
    width = parts["rows"].embedding_dim
    torch.nn.init.normal_(parts["rows"].weight, std=0.5 * width**-0.5)
    parts["biases"] = torch.nn.Embedding.from_pretrained(torch.zeros(n_items, 1), freeze=False)
    parts.to("cuda" if torch.cuda.is_available() else "cpu")
    first = len(log) - max(1, int(HELD_OUT * len(log)))
    later = log[first:].prefixes()
    questions = later[np.linspace(0, len(later) - 1, min(len(later), MOST_QUESTIONS)).astype(np.int64)]
    optimizer = torch.optim.Adam(parts.parameters(), lr=learning_rate)
    rng, rank = np.random.default_rng(0), _ranking(torch, parts, states, n_items)
    best, worse, kept = -1.0, 0, {}
    for _ in range(EPOCHS):
        _epoch(torch, parts, states, optimizer, _batches(log[:first], n_items, rng), n_items)
        quality = ndcg(places_of(rank, questions, item_differs=False))
        if quality > best:
            best, worse = quality, 0
            kept = {name: value.clone() for name, value in parts.state_dict().items()}
        elif (worse := worse + 1) == PATIENCE:
            break
    parts.load_state_dict(kept)
    return rank


def _epoch(torch: Any, parts: Any, states: States, optimizer: Any, batches: Iterator[Ints], n_items: int) -> None:
    parts.train()
    for batch in batches:
        items = torch.from_numpy(batch).to(parts["rows"].weight.device)
        read, wanted = items[:, :-1], items[:, 1:]
        there = wanted != n_items
        scores = _scores(parts, states(read)[there], n_items)
        loss = torch.nn.functional.cross_entropy(scores, wanted[there])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _scores(parts: Any, known: Any, n_items: int) -> Any:
    return known @ parts["rows"].weight[:n_items].T + parts["biases"].weight[:, 0]


def _ranking(torch: Any, parts: Any, states: States, n_items: int) -> Rank:
    def rank(questions: Prefixes) -> Ints:
        parts.eval()
        device = parts["rows"].weight.device
        items = _padded(questions.items, questions.starts, questions.ends, LENGTH, n_items)
        last = torch.from_numpy(np.minimum(questions.ends - questions.starts, LENGTH) - 1).to(device)
        with torch.no_grad():
            known = states(torch.from_numpy(items).to(device))
            scores = _scores(parts, known[torch.arange(len(items), device=device), last], n_items)
            return scores.topk(min(LISTED, n_items), dim=1).indices.cpu().numpy()

    return rank


def _batches(log: Sessions, n_items: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield sessions of two items and more in random order, (sessions, places), ``n_items`` after their ends."""
    lengths = np.diff(log.offsets)
    order: Ints = rng.permutation(np.flatnonzero(lengths > 1))
    batches: list[Ints] = []
    for first in range(0, len(order), BATCH * POOL):
        pool = order[first : first + BATCH * POOL]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[start : start + BATCH] for start in range(0, len(pool), BATCH)]
    shuffled: list[int] = rng.permutation(len(batches)).tolist()
    for number in shuffled:
        chosen: Ints = batches[number]
        yield _padded(log.items, log.offsets[chosen], log.offsets[chosen + 1], LENGTH + 1, n_items)


def _padded(items: Ints, starts: Ints, ends: Ints, most: int, fill: int) -> Ints:
    """Return the last items of each range, at most ``most``, from column 0 on."""
    starts = np.maximum(starts, ends - most)
    places = starts[:, None] + np.arange(int((ends - starts).max()))
    return np.where(places < ends[:, None], items[np.minimum(places, len(items) - 1)], fill).astype(np.int64)
