"""Sessions as queries: training beside ids with a query per pair, and one session never seen beside one id.

Training is one epoch of the blocked engine over the same pairs, after one that compiles; in the peer each pair has a
query of its own, so that as many rows of scores are made. A session has ten items, and implicit folds the
same ten in. The ranker on a base has the same factors over a blend of generated sessions, and ranks for
ten items of one of these clusters, so that there are neighbors to find.

``python -m slatewise_papers.bench.bag --lastfm`` times a fit on all sessions of lastfm1k (of SLATEWISE_DATA): three
epochs of sums of items with steps and norm given, and with ``--auto`` the default ranker, ``SessionRanker()``.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from slatewise import LatentRanker, SessionRanker, datasets
from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import Executor
from slatewise.data.records import Sessions
from slatewise.datasets.records import SessionSet
from slatewise.factors.bags import BagQueries, learned_from, start_weights
from slatewise.factors.engines.blocked import BlockedEngine, WholeCatalogue, rank_weights
from slatewise.factors.offsets import N_KNOTS
from slatewise.factors.pairs import TrainingPairs
from slatewise.factors.queries import IdQueries
from slatewise.factors.scoring import Factors
from slatewise.factors.settings import Factors as FactorSettings
from slatewise.factors.stages import Shape
from slatewise.factors.tables import aligned_zeros, padded
from slatewise.sessions.blend import SessionBlend
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.framework.running import installed
from slatewise_papers.framework.timing import by_turns, each_seconds, milliseconds, wall_and_cpu

N_COMPONENTS, WINDOW, STEP_PAIRS, K, SESSION_LENGTH = 64, 20, 2048, 20, 10
REPEATS, FIRST = 3, 20
SESSIONS_OF_BASE = 100_000


def run(quick: bool = False) -> Table:
    """Train and rank; ``quick``: a third of the items to learn, a quarter of those to rank."""
    learned, ranked = (10_000, 44_237) if quick else (30_000, 176_948)
    pairs, bags, ids = _tasks(learned, 2_000 if quick else 8_000)
    epochs: dict[str, Callable[[int], object]] = {"bags": lambda _: bags(), "ids": lambda _: ids()}
    # The first epochs compile, and leave the start, at which every item violates.
    rates = {name: pairs / min(each) for name, each in by_turns(epochs, range(1 + REPEATS), 1).items()}
    what, peer = f"pairs per second, {learned} items, n = {N_COMPONENTS}", "ids, one query per pair"
    share = rates["bags"] / rates["ids"]
    rows = [
        Row(f"sessions, {what}", rates["bags"], peer, rates["ids"], unit=""),
        Row("sessions, share of that of ids", share, unit="", bar=">= 0.7"),
    ]
    rows += _answers(ranked, 100 if quick else 300)
    rows += _answers_on_a_base(ranked, SESSIONS_OF_BASE // 10 if quick else SESSIONS_OF_BASE, 100 if quick else 300)
    left_out = [] if installed("implicit") else ["implicit"]
    return Table("bag", rows, left_out, [f"{Executor.of(None).n_threads} threads, {pairs} pairs"])


def _tasks(n_items: int, n_sessions: int) -> tuple[int, Callable[[], object], Callable[[], object]]:
    """Return how many pairs there are, and an epoch over them with sessions as queries, and with ids."""
    sessions = datasets.make_sessions(n_sessions, n_items, n_clusters=n_items // 177, random_state=0).sessions
    found = learned_from(sessions.items, sessions.offsets, WINDOW)
    number = len(found.following)
    pairs = TrainingPairs.of(np.arange(number), found.following, np.ones(number, dtype=np.float32))

    def epoch_of(n_ages: int, n_rows: int, dropout: float) -> Callable[[], object]:
        shape = Shape(N_COMPONENTS, n_rows, n_items, 0.3, 1.5, 0.3, 0.1, 1.0, by_id=not n_ages, n_ages=n_ages)
        queries, items = shape.tables(0)
        rng = np.random.default_rng(0)
        for table in (queries, items):
            table.values[:, :N_COMPONENTS] = rng.normal(0, N_COMPONENTS**-0.5, (len(table.values), N_COMPONENTS))
        made = BagQueries(found.bags, queries, N_COMPONENTS) if n_ages else IdQueries(queries)
        if n_ages:
            queries.values[:] = 0.0
            start_weights(queries.weights, None)
        engine = BlockedEngine(WholeCatalogue(), rank_weights(n_items), STEP_PAIRS, Executor.of(None), dropout)
        return lambda: engine.epoch(Factors(made, items), pairs, rng)

    return number, epoch_of(WINDOW, n_items, FactorSettings().dropout), epoch_of(0, number, 0.0)


def _answers(n_items: int, n_queries: int) -> list[Row]:
    """Rank for one query at a time, by turns."""
    rng = np.random.default_rng(0)
    by_session = _session_ranker(rng, n_items)
    by_id = _ranker(rng, n_items)
    queries = rng.integers(0, n_items, (FIRST + n_queries, SESSION_LENGTH))
    calls: dict[str, Callable[[Ints], object]] = {
        "session": lambda one: by_session.rank([one], K),
        "id": lambda one: by_id.rank(one[:1], K),
    }
    taken = by_turns(calls, queries, FIRST)
    if installed("implicit"):  # after ours: its waiting threads of BLAS would take a core from us
        with one_blas_thread():  # as implicit recommends
            taken |= by_turns({"implicit": _implicit(n_items)}, queries, FIRST)
    half = {name: milliseconds(each) for name, each in taken.items()}
    what = f"a session of {SESSION_LENGTH} items never seen, {K} of {n_items} items"
    rows = [
        Row(f"{what}, 50th of 100", half["session"], "an id", half["id"], unit="ms", bar="ratio >= 1 / 1.3"),
        Row(f"{what}, 99th of 100", milliseconds(taken["session"], 0.99), unit="ms", bar="<= 5 ms"),
    ]
    if "implicit" in half:
        peer = "implicit, recommend(recalculate_user=True)"
        rows.append(Row(f"{what}, 50th of 100", half["session"], peer, half["implicit"], unit="ms", bar="ratio >= 1"))
    return rows


def _answers_on_a_base(n_items: int, n_sessions: int, n_queries: int) -> list[Row]:
    """Rank for one session at a time, with default settings: on a blend of this number of sessions."""
    made = datasets.make_sessions(n_sessions + n_queries + FIRST, n_items, n_clusters=n_items // 177, random_state=0)
    known, later = made.sessions[:n_sessions], made.sessions[n_sessions:]
    ranker = _on_a_base(np.random.default_rng(0), known, n_items)
    taken = each_seconds(lambda items: ranker.rank([np.resize(items, SESSION_LENGTH)], K), later)[FIRST:]
    what = f"the same on a base of {n_sessions} sessions, {K} of {n_items} items"
    return [
        Row(f"{what}, 50th of 100", milliseconds(taken), unit="ms"),
        Row(f"{what}, 99th of 100", milliseconds(taken, 0.99), unit="ms", bar="<= 5 ms"),
    ]


def _on_a_base(rng: np.random.Generator, known: Sessions, n_items: int) -> SessionRanker:
    """Return random factors on a fitted blend; items of no session are put into further ones."""
    first, last = int(known.offsets[0]), int(known.offsets[-1])
    others = np.setdiff1d(np.arange(n_items), known.items[first:last])
    items = np.concatenate([others, known.items[first:last]])
    offsets = np.concatenate([np.arange(0, len(others), SESSION_LENGTH), known.offsets - first + len(others)])
    ranker = _session_ranker(rng, n_items)
    ranker.spline_steps_ = np.full(N_KNOTS, 5.0 / N_KNOTS, dtype=np.float32)
    ranker.parts_, ranker.weights_ = ["base", "factors"], [1.0, 1.0]
    ranker.base_ = SessionBlend().fit(Sessions(items, offsets))
    return ranker


def _ranker(rng: np.random.Generator, n_items: int) -> LatentRanker:
    """Return a ranker of ids with random factors: how fast it ranks does not depend on what it learned."""
    ranker = LatentRanker(N_COMPONENTS)
    ranker.query_ids_ = ranker.item_ids_ = np.arange(n_items)
    ranker.query_factors_, ranker.item_factors_ = _rows(rng, n_items)[None], _rows(rng, n_items)[None]
    ranker.query_factors_[0, :, N_COMPONENTS] = 1.0
    ranker.n_components_ = N_COMPONENTS
    return ranker


def _session_ranker(rng: np.random.Generator, n_items: int) -> SessionRanker:
    """Return a ranker of sessions with random factors."""
    ranker = SessionRanker()
    ranker.item_ids_, ranker.window_, ranker.n_query_features_ = np.arange(n_items), WINDOW, 0
    ranker.query_factors_, ranker.item_factors_ = _rows(rng, n_items), _rows(rng, n_items)
    ranker.age_weights_ = np.full(WINDOW, 0.5, dtype=np.float32)
    ranker.repeat_weights_ = np.zeros(WINDOW, dtype=np.float32)
    ranker.weight_steps_ = np.zeros((2, WINDOW), dtype=np.float32)
    ranker.n_components_, ranker.parts_, ranker.weights_ = N_COMPONENTS, ["factors"], [1.0]
    return ranker


def _rows(rng: np.random.Generator, n_rows: int) -> Singles:
    out = aligned_zeros(n_rows, padded(N_COMPONENTS + 1))
    out[:, :N_COMPONENTS] = rng.normal(0, N_COMPONENTS**-0.5, (n_rows, N_COMPONENTS))
    return out


def _implicit(n_items: int) -> Callable[[Ints], object]:
    from scipy.sparse import csr_matrix

    als: Any = import_module("implicit.als")
    model = als.AlternatingLeastSquares(factors=N_COMPONENTS, iterations=1, use_gpu=False, random_state=0)
    everyone = np.arange(n_items)
    ones = np.ones(n_items, dtype=np.float32)
    model.fit(
        csr_matrix((ones, (everyone // SESSION_LENGTH, everyone)), shape=(-(-n_items // SESSION_LENGTH), n_items)),
        False,
    )

    def recommend(one: Ints) -> object:
        seen = csr_matrix((ones[: len(one)], (np.zeros(len(one), dtype=np.int64), one)), shape=(1, n_items))
        return model.recommend(0, seen, N=K, filter_already_liked_items=False, recalculate_user=True)

    return recommend


def _fit_lastfm(auto: bool) -> None:
    """Print how long a fit on both parts takes, the sessions of the second after those of the first."""
    both = datasets.load("lastfm1k_artist_sessions", SessionSet)
    first, later = both.train, both.test
    offsets = np.concatenate([first.offsets, later.offsets[1:] + first.offsets[-1]])
    sessions = Sessions(np.concatenate([first.items, later.items]), offsets)
    bag = SessionRanker(FactorSettings(N_COMPONENTS, learning_rate=0.3, max_norm=1.5, epochs=3), base=None)
    ranker = SessionRanker() if auto else bag
    taken, worked = wall_and_cpu(lambda: ranker.fit(sessions))
    what = f"{len(sessions)} sessions, {len(ranker.item_ids_)} items, {Executor.of(None).n_threads} threads"
    took = f"{taken:.0f} s, {worked:.0f} s of all cores together"
    print(f"{ranker!r} on lastfm1k ({what}): {took}, epochs {ranker.n_epochs_}", flush=True)


if __name__ == "__main__":
    parser = ArgumentParser(prog="python -m slatewise_papers.bench.bag")
    parser.add_argument("--lastfm", action="store_true", required=True)
    parser.add_argument("--auto", action="store_true")
    _fit_lastfm(parser.parse_args().auto)
