"""Callbacks of a fit: plain functions, and those of scikit-learn, which pipelines and searches carry along."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slatewise import LatentRanker, MarginRanker, SessionRanker, StructuredReranker, datasets
from slatewise.factors import Factors

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")


class Recorder:
    """Notes what it is told; scikit-learn passes it on from a pipeline or a search to what is inside."""

    max_propagation_depth = None

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {type(estimator).__name__} {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.events.append(f"end {type(estimator).__name__} {context.task_name}")

    def teardown(self, estimator, context):
        self.events.append("teardown")


@pytest.fixture
def queries():
    made = datasets.make_queries(n_queries=8, random_state=0)
    return made.X, made.y, made.qid


def test_a_fit_is_a_task_with_a_subtask_per_round(queries):
    watch, rounds = Recorder(), []
    ranker = MarginRanker().set_callbacks(watch).fit(*queries, callbacks=[rounds.append])
    assert len(rounds) == ranker.n_iter_
    begin, end = "begin MarginRanker round", "end MarginRanker round"
    assert watch.events == [
        *("setup", "begin MarginRanker fit"),
        *(begin, end) * len(rounds),
        *("end MarginRanker fit", "teardown"),
    ]


SESSIONS = datasets.make_sessions(60, 20, random_state=0).sessions
PAIRS = SESSIONS.pairs()


@pytest.mark.parametrize(
    ("ranker", "data"),
    [
        (LatentRanker(4, epochs=3, learning_rate=0.1, max_norm=1.5), (PAIRS.queries, PAIRS.items)),
        (SessionRanker(Factors(n_components=4, epochs=3, learning_rate=0.1, max_norm=1.5)), (SESSIONS,)),
        (
            StructuredReranker(np.eye(20), n_components=3, epochs=3, validation_fraction=0.0),
            (PAIRS.queries, PAIRS.items),
        ),
    ],
    ids=["latent", "sessions", "reranker"],
)
def test_a_recommender_tells_both_kinds_of_every_epoch(ranker, data):
    watch, epochs, name = Recorder(), [], type(ranker).__name__
    ranker.set_callbacks(watch).fit(*data, callbacks=[epochs.append])
    assert epochs
    assert watch.events.count(f"end {name} round") == len(epochs)
    assert watch.events[-2:] == [f"end {name} fit", "teardown"]


def test_they_do_not_change_a_bit(queries):
    watched = MarginRanker().set_callbacks(Recorder()).fit(*queries)
    assert watched.coef_.tobytes() == MarginRanker().fit(*queries).coef_.tobytes()


def test_a_fit_that_fails_is_torn_down(queries):
    watch = Recorder()

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        MarginRanker().set_callbacks(watch).fit(*queries, callbacks=[stop])
    assert watch.events[-1] == "teardown"


@pytest.mark.filterwarnings("ignore:all .* rows are one list")
@pytest.mark.parametrize(
    "outer",
    [
        lambda ranker: make_pipeline(StandardScaler(), ranker),
        lambda ranker: GridSearchCV(ranker, {"C": [1.0]}, cv=2),
    ],
    ids=["pipeline", "search"],
)
def test_they_reach_what_is_inside_a_pipeline_or_a_search(queries, outer):
    X, y, _ = queries
    watch = Recorder()
    outer(MarginRanker(max_iter=5, tol=0.9)).set_callbacks(watch).fit(X, np.asarray(y))
    assert watch.events.count("setup") == watch.events.count("teardown") == 1
    assert "begin MarginRanker round" in watch.events
