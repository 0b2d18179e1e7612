"""`LatentRanker()` beside a grid: who is compared, on what, judged by counting by hand."""

import numpy as np
import pytest

from slatewise import LatentRanker, datasets
from slatewise.data.records import Sessions
from slatewise.datasets.records import SessionSet
from slatewise_papers.defaults import latent as defaults_latent
from slatewise_papers.lasr.data import of_sessions


@pytest.fixture(scope="module")
def problem():
    return of_sessions("made", datasets.make_sessions(250, 60, n_clusters=6, random_state=0).sessions, 3)


def test_the_rows_are_the_figures_of_plain_fits(problem, monkeypatch):
    monkeypatch.setattr(defaults_latent, "FORMER", (4, 0.3, 2.5))
    counts, former, best, own = defaults_latent.compare(problem, ((4, 0.3, 1.5), (4, 0.3, 2.5)), 3)
    known, test = problem.known, problem.test
    followed = np.zeros((60, 60))
    np.add.at(followed, (known.queries, known.items), 1.0)
    followed += np.bincount(known.items, minlength=60) / len(known)  # rare ones among equals last
    lists = np.argsort(-followed, axis=1, kind="stable")[:, :20]
    by_hand = np.mean([item in lists[query] for query, item in zip(test.queries, test.items, strict=True)])
    assert counts.measured["R@20"] == pytest.approx(100 * by_hand)
    ranker = LatentRanker(random_state=3).fit(known.queries, known.items)
    assert own.measured["R@20"] == pytest.approx(100 * ranker.recall(test.queries, test.items, [20])[20])
    assert own.measured["max_norm"] == ranker.max_norm_
    assert best.measured["held_out"] >= former.measured["held_out"]
    assert own.measured["R@20 over the grid's"] == pytest.approx(own.measured["R@20"] / best.measured["R@20"])
    assert best.name.startswith("made: best of the grid, n=4, learning_rate=0.3, max_norm=")


def test_a_share_of_the_sessions_is_the_same_for_a_seed(monkeypatch):
    made = datasets.make_sessions(400, 60, random_state=0).sessions
    both = SessionSet(None, Sessions(made.items[: made.offsets[300]], made.offsets[:301]),
                      Sessions(made.items[made.offsets[300] :], made.offsets[300:] - made.offsets[300]))  # fmt: skip
    monkeypatch.setattr(datasets, "load", lambda *_: both)
    one, again, other = (defaults_latent.share_of("made", 0.25, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.items, again.items)
    assert len(one.offsets) != len(other.offsets) or (one.offsets != other.offsets).any()
    assert 60 < len(one.offsets) - 1 < 140
    whole = {tuple(part) for part in np.split(made.items, made.offsets[1:-1])}
    assert all(tuple(part) in whole for part in np.split(one.items, one.offsets[1:-1]))
