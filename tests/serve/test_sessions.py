"""Rankers of sessions: every switch over HTTP, and in batches, as in a direct call."""

import numpy as np
import pytest

pytest.importorskip("slatewise.sessions.neighbors", reason="this version has no rankers of sessions")

from slatewise import SessionCooccurrence, SessionNeighbors, SessionRanker, datasets
from slatewise.cli.main import main
from slatewise.serve.batching import install_warning_hook
from tests.factors.flat import make_session_ranker
from tests.serve.conftest import SMALL, make_asking
from tests.serve.test_batching import ask_together
from tests.serve.test_wrong import check_every_field

QUERIES = [[1, 2, 3], [4], [5, 6]]
SWITCHES = [
    {},
    {"exclude_seen": True},
    {"exclude_seen": "last"},
    {"exclude": [[1], [2], []]},
    {"candidates": [1, 2, 3, 4, 5, 6, 7]},
    {"candidates": [[1, 2], [3, 4], [5, 6]]},
]
NAMES = ["neighbours", "counts", "both", "sums", "baskets", "people"]
FIXED = {"decay": 0.8, "last_weight": 0.5, "repeat_weight": 2.0}


def fit_sessions():
    log = datasets.make_sessions(120, 20, random_state=0).sessions
    models = {
        "neighbours": SessionNeighbors(**FIXED).fit(log),
        "counts": SessionCooccurrence(**FIXED).fit(log),
        "both": SessionRanker(None).fit(log),
    }
    models["sums"] = make_session_ranker(**SMALL, base=None).fit(log)
    models["baskets"] = make_session_ranker(**SMALL, base=None, window=None).fit(log)
    people = np.random.default_rng(0).normal(size=(len(log), 2))
    models["people"] = make_session_ranker(**SMALL, base=None).fit(log, query_features=people)
    return models


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder, spool = tmp_path_factory.mktemp("sessions"), tmp_path_factory.mktemp("spool")
    models = fit_sessions()
    install_warning_hook()
    for name, model in models.items():
        model.save(folder / f"{name}.safetensors")
    asking = make_asking({name: folder / f"{name}.safetensors" for name in models}, spool, n_jobs=1)
    asking.service.models.look()
    yield asking, models
    asking.service.close()


@pytest.mark.parametrize("name", NAMES)
def test_sessions_as_queries(served, name):
    asking, models = served
    assert asking.get(f"/v1/models/{name}")[1]["queries"] == "sessions"
    bodies = [{"queries": QUERIES, "k": 3, **switches} for switches in SWITCHES]
    alone = [asking.rank(name, **body) for body in bodies]
    together = ask_together(asking, [(name, "rank", body) for body in bodies * 3])
    assert together == alone * 3
    for switches, (status, body) in zip(SWITCHES, alone, strict=True):
        assert status == 200, body
        expected = models[name].rank(QUERIES, k=3, **switches)
        for place, one in enumerate(body["answers"]):
            assert one["ids"] == expected[place].tolist()
            np.testing.assert_allclose(one["scores"], expected.list_scores(place), rtol=1e-5)


def test_query_features(served):
    """Those of several requests are put together in order; without them it is as with zeros, and said."""
    asking, models = served
    assert asking.get("/v1/models/people")[1]["query_features"] == 2
    rows = np.random.default_rng(1).normal(size=(4, 2, 2)).tolist()
    queries = [[[1, 2, 3], [4]], [[5], []], [[2], [3]], [[], [9, 9]]]
    bodies = [{"queries": own, "k": 4, "query_features": mine} for own, mine in zip(queries, rows, strict=True)]
    found = ask_together(asking, [("people", "rank", body) for body in bodies])
    for body, (status, answer) in zip(bodies, found, strict=True):
        assert (status, answer["warnings"]) == (200, [])
        expected = models["people"].rank(body["queries"], 4, query_features=body["query_features"])
        for place, one in enumerate(answer["answers"]):
            assert (one["ids"], one["nothing_known"]) == (expected[place].tolist(), False)
            np.testing.assert_allclose(one["scores"], expected.list_scores(place), rtol=1e-5)
        scores = asking.post("/v1/models/people/scores", {**body, "items": [3, 1]} | {"k": 4})[1]
        assert scores["place"] == "k"
        del body["k"]
        scores = asking.post("/v1/models/people/scores", {**body, "items": [3, 1]})[1]["answers"]
        right = models["people"].scores(body["queries"], [3, 1], query_features=body["query_features"])
        np.testing.assert_allclose([one["scores"] for one in scores], right, rtol=1e-5)
    zeros = asking.rank("people", queries=[[1], []], k=4, query_features=[[0, 0]] * 2)[1]
    without = asking.rank("people", queries=[[1], []], k=4)[1]
    assert without["answers"] == zeros["answers"]
    assert [one["nothing_known"] for one in zeros["answers"]] == [False, True]
    assert without["warnings"] == [
        "query_features: fit had 2 and there are none: answered as with zeros",
        "queries: 1 of 2 have no item that fit saw",
    ]
    for value, place in (
        ([[0, 0]] * 2, "query_features"),
        ([[0]], "query_features[0]"),
        ([["a", 0]], "query_features[0][0]"),
        ([[1e300, 0]], "query_features"),
    ):
        status, body = asking.rank("people", queries=[[1]], query_features=value)
        assert (status, body["place"]) == (422, place)
        assert "expected" in body["message"]
    assert asking.rank("sums", queries=[[1]], query_features=[[0, 0]])[1]["place"] == "query_features"


def test_what_is_wrong_with_sessions(served):
    asking, _ = served
    for field, value, place in (
        ("queries", [[1, 999]], "queries[0][1]"),
        ("queries", [1], "queries[0]"),
        ("exclude_seen", "first", "exclude_seen"),
        ("exclude_seen", 1, "exclude_seen"),
        ("candidates", [], "candidates"),
        ("candidates", [1, [2]], "candidates"),
        ("candidates", [[1], 2], "candidates"),
        ("candidates", [999], "candidates[0]"),
        ("candidates", [[1], [2]], "candidates"),
    ):
        status, body = asking.rank("neighbours", **{"queries": [[1]], "k": 2, field: value})
        assert (status, body["place"]) == (422, place)
        assert "expected" in body["message"]
    status, body = asking.rank("neighbours", queries=[[1, 999], []], k=2, unknown="ignore")
    assert status == 200
    assert body["warnings"] == [
        "queries: 1 of 2 ids were not seen in fit",
        "queries: 1 of 2 have no item that fit saw",
    ]
    assert [one["nothing_known"] for one in body["answers"]] == [False, True]


def test_every_field_of_every_route(served):
    assert check_every_field(served[0]) > 1000


def test_rank_with_a_service_is_rank_with_the_file(served, tmp_path):
    """The sessions of a file, as ``slatewise rank --url`` asks for them."""
    asking, models = served
    (tmp_path / "today.csv").write_text("session,item\na,1\na,2\nb,5\nb,999\n")
    (tmp_path / "shown.txt").write_text("1\n2\n3\n4\n")
    with asking.over_http() as url:
        for name in ("neighbours", "counts"):
            for more in ([], ["--exclude-seen"], ["--candidates", str(tmp_path / "shown.txt")]):
                models[name].save(tmp_path / "model.safetensors")
                runs = []
                for words in ([str(tmp_path / "model.safetensors")], [name, "--url", url]):
                    model, *rest = words
                    out = str(tmp_path / "out.csv")
                    with pytest.raises(SystemExit, match="0"):
                        main(["rank", model, str(tmp_path / "today.csv"), "--top", "3", "--out", out, *rest, *more])
                    runs.append((tmp_path / "out.csv").read_text())
                assert runs[0] == runs[1]
