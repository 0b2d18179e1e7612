"""The benchmark's rival computes the same thing: a ratio of times means nothing otherwise."""

import numpy as np

from slatewise.data import Sessions
from slatewise.datasets import make_sessions
from slatewise_papers.bench import neighbors


def test_the_product_of_scipy_finds_the_same_items(monkeypatch):
    monkeypatch.setattr(neighbors, "NEIGHBOURS", 400)  # so many that few are equally similar to the last of them
    log = make_sessions(600, 80, n_clusters=8, mean_length=9, random_state=0).sessions
    ours = neighbors.plain_neighbors().fit(log)
    queries = neighbors.known_queries(make_sessions(60, 80, n_clusters=8, random_state=1).sessions, ours.item_ids_)
    theirs = neighbors.PlainNeighbors.of(log, ours.item_ids_).rank(queries)
    found = ours.rank(queries, neighbors.TOP).ids
    shared = [len(set(row) & set(other)) / neighbors.TOP for row, other in zip(found.tolist(), theirs, strict=True)]
    assert np.mean(shared) > 0.97


def test_queries_have_known_items():
    queries = neighbors.known_queries(Sessions.of([[1, 5], [5], [2]]), np.array([1, 2]))
    assert [items.tolist() for items in queries] == [[1], [2]]
