"""Every route of every kind of model says what the estimator says."""

import json

import msgspec
import numpy as np
import pytest

from slatewise import BestFeatureRanker, CStarMarginRanker, GraphMatcher, MatchingRanker, StructuredReranker, datasets
from slatewise._registry import ESTIMATORS
from slatewise.serve.endpoints import endpoints_for
from slatewise.serve.settings import Limits
from slatewise.sessions.blend import SessionBlend
from slatewise.web.codec import RequestError
from tests.serve.conftest import JSON, MESSAGEPACK, make_asking
from tests.web.asking import ask

ROWS = np.random.default_rng(3).normal(size=(5, 3))


def answers(asked):
    status, body = asked
    assert status == 200, body
    assert body["warnings"] == []
    return body["answers"]


def assert_ranked(found, expected, queries=None):
    """Ids and scores as those of Rankings."""
    assert [one["query"] for one in found] == (list(range(len(expected))) if queries is None else queries)
    for place, one in enumerate(found):
        assert one["ids"] == expected[place].tolist()
        np.testing.assert_allclose(one["scores"], expected.list_scores(place), rtol=1e-5)


def test_queries_by_id(asking, direct):
    for name, queries in (("plays", [3, 1, 2]), ("names", ["item 03", "item 01"])):
        assert_ranked(answers(asking.rank(name, queries=queries, k=7)), direct[name].rank(queries, 7), queries)
        hidden = [direct[name].item_ids_[:4].tolist(), *([[]] * (len(queries) - 1))]
        found = answers(asking.rank(name, queries=queries, k=30, exclude=hidden))
        assert_ranked(found, direct[name].rank(queries, 30, exclude=hidden), queries)
        assert len(found[0]["ids"]) == 26
    found = answers(asking.rank("plays", queries=[3], stage=0))
    assert_ranked(found, direct["plays"].rank([3], stage=0), [3])


def test_baskets_are_folded_in(asking, direct):
    baskets = [[3, 4, 4], [5, 5], [9]]
    expected = direct["plays"].rank(direct["plays"].fold_in(baskets), 5)
    assert_ranked(answers(asking.rank("plays", queries=baskets, k=5)), expected)
    status, body = asking.rank("plays", queries=[[], [999], [1]], k=5, unknown="ignore")
    assert status == 200
    assert body["warnings"] == [
        "queries: 1 of 2 ids were not seen in fit",
        "queries: 2 of 3 have no item that fit saw",
    ]
    assert [one["nothing_known"] for one in body["answers"]] == [True, True, False]


def test_rows_ask_for_items_labels_and_rows(asking, direct):
    assert_ranked(answers(asking.rank("rows", queries=ROWS.tolist(), k=4)), direct["rows"].rank(ROWS, 4))
    assert_ranked(answers(asking.rank("near", queries=ROWS.tolist(), k=4)), direct["near"].rank(ROWS, 4))
    wide = np.random.default_rng(3).normal(size=(4, direct["tags"].n_features_in_))
    assert_ranked(answers(asking.rank("tags", queries=wide.tolist(), k=4)), direct["tags"].rank(wide, 4))
    assert_ranked(answers(asking.rank("tags", queries=wide.tolist())), direct["tags"].rank(wide))


def test_documents_of_queries(asking, direct):
    queries = [{"rows": ROWS[:2].tolist(), "ids": ["a", 7]}, {"rows": ROWS[2:].tolist()}]
    found = answers(asking.rank("documents", queries=queries, k=2))
    expected = direct["documents"].rank(ROWS, group=[2, 3])
    names = {0: "a", 1: 7, 2: 0, 3: 1, 4: 2}
    for place, one in enumerate(found):
        assert one["ids"] == [names[row] for row in expected[place].tolist()][:2]
        np.testing.assert_allclose(one["scores"], expected.list_scores(place)[:2])
    scored = answers(asking.post("/v1/models/documents/scores", {"queries": queries}))
    np.testing.assert_allclose(scored[1]["scores"], direct["documents"].predict(ROWS)[2:])


@pytest.mark.parametrize("kind", [MatchingRanker, BestFeatureRanker])
def test_other_rankers_of_documents(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    ranker = kind().fit(X, (X[:, 0] > 0).astype(int), qid=np.repeat(np.arange(4), 10))
    endpoint = endpoints_for(ranker, Limits())["rank"]
    queries = [{"rows": ROWS[:2].tolist()}, {"rows": ROWS[2:].tolist(), "ids": ["c", "d", "e"]}]
    (found,) = endpoint.respond([endpoint.check(msgspec.convert({"queries": queries}, endpoint.request))])
    expected = ranker.rank(ROWS, group=[2, 3])
    assert [one.ids for one in found] == [expected[0].tolist(), ["..cde"[row] for row in expected[1].tolist()]]
    for place, one in enumerate(found):
        np.testing.assert_allclose(one.scores, expected.list_scores(place))


def test_sets_of_k_labels():
    scenes = datasets.make_label_scenes(80, n_labels=6, random_state=0)
    ranker = CStarMarginRanker(core=2, C=1.0).fit(scenes.X, scenes.Y)
    endpoints, queries = endpoints_for(ranker, Limits()), scenes.X[:3].tolist()
    for endpoint in endpoints.values():
        for request in (endpoint.example, *endpoint.warmup_requests):
            assert endpoint.respond([endpoint.check(request)])
    endpoint = endpoints["rank"]
    (found,) = endpoint.respond([endpoint.check(msgspec.convert({"queries": queries, "k": 2}, endpoint.request))])
    assert [one.ids for one in found] == ranker.rank(scenes.X[:3], 2).ids.tolist()
    with pytest.raises(RequestError, match="expected at most k = 1 labels that are in"):
        endpoint.check(msgspec.convert({"queries": queries[:1], "k": 1, "known": [{"0": 1, "1": 1}]}, endpoint.request))


def test_every_estimator_is_served_or_refused_by_name():
    """A reranker's file has no base, a matcher ranks nothing, and a blend is a part of SessionRanker."""
    others = {"GraphMatcher": GraphMatcher, "SessionBlend": SessionBlend, "StructuredReranker": StructuredReranker}
    assert {name for name, row in ESTIMATORS.items() if row.service is None} == set(others)
    for name, kind in others.items():
        with pytest.raises(
            ValueError, match=f"model: expected one of BestFeature.*, found {name}, which ranks nothing"
        ):
            endpoints_for(kind(), Limits())


def test_scores(asking, direct):
    found = answers(asking.post("/v1/models/plays/scores", {"queries": [3, 1], "items": [5, 2]}))
    np.testing.assert_allclose([one["scores"] for one in found], direct["plays"].scores([3, 1], [5, 2]), rtol=1e-5)
    assert found[0]["ids"] == [5, 2]
    found = answers(asking.post("/v1/models/near/scores", {"queries": ROWS.tolist(), "items": [5, 2]}))
    np.testing.assert_allclose([one["scores"] for one in found], direct["near"].scores(ROWS)[:, [5, 2]])


def test_scores_of_few_rows_need_no_matrix_of_all(files, direct, tmp_path, monkeypatch):
    """A catalogue of 60 rows and answers of 100 scores: the library is asked for one query at a time."""
    small = make_asking({"near": files["near"]}, tmp_path, limits=Limits(numbers=100))
    small.service.models.look()
    ranker = small.service.models.get("near").endpoints["scores"].respond.__self__.ranker
    sizes, scores = [], ranker.scores
    monkeypatch.setattr(ranker, "scores", lambda rows: (sizes.append(len(rows)), scores(rows))[1])
    found = answers(small.post("/v1/models/near/scores", {"queries": ROWS.tolist(), "items": [5, 2]}))
    np.testing.assert_allclose([one["scores"] for one in found], direct["near"].scores(ROWS)[:, [5, 2]])
    assert sizes == [1] * len(ROWS)
    small.service.close()


def test_labels_that_are_known(asking, direct):
    tags, rows = direct["tags"], np.zeros((2, direct["tags"].n_features_in_))
    known = [{"tag 1": 1, "tag 2": 0}, {}]
    found = answers(asking.post("/v1/models/tags/scores", {"queries": rows.tolist(), "known": known}))
    expected = tags.decision_function(rows, known=known)
    assert found[0]["scores"][1:3] == [None, None]
    np.testing.assert_allclose(found[1]["scores"], expected[1])
    status, body = asking.post("/v1/models/tags/scores", {"queries": rows.tolist(), "known": known}, accept=MESSAGEPACK)
    assert (status, body["answers"][0]["scores"][1:3]) == (200, [np.inf, -np.inf])
    found = answers(asking.post("/v1/models/tags/next_question", {"queries": rows.tolist(), "known": known}))
    asked = tags.next_question(rows, known)
    assert [one["label"] for one in found] == tags.label_names_[asked].tolist()
    every = [{f"tag {number}": 0 for number in range(6)}] * 2
    found = answers(asking.post("/v1/models/tags/next_question", {"queries": rows.tolist(), "known": every}))
    assert [one["label"] for one in found] == [None, None]


def test_explanations(asking, direct):
    (found,) = answers(asking.post("/v1/models/plays/explain", {"queries": [3], "k": 2}))
    why = direct["plays"].explain([3], k=2)
    assert [part["id"] for part in found["items"]] == why.items[0].tolist()
    np.testing.assert_allclose([part["score"] for part in found["items"]], why.score[0], rtol=1e-5)
    for place, part in enumerate(found["items"]):
        np.testing.assert_allclose([one["by"] for one in part["moved_by"]], why.moved_by[0, place], rtol=1e-5)
    row = [[0.5] * direct["tags"].n_features_in_]
    (found,) = answers(asking.post("/v1/models/tags/explain", {"queries": row, "k": 3}))
    why = direct["tags"].explain(row, k=3)
    assert [part["label"] for part in found["labels"]] == why.labels[0].tolist()
    np.testing.assert_allclose([part["own"] for part in found["labels"]], why.own[0])


def test_what_is_not_known_is_counted(asking, direct):
    status, body = asking.rank("plays", queries=[1, 999], k=2, exclude=[[3, 1000], [4]], unknown="ignore")
    assert status == 200
    assert body["warnings"] == [
        "queries: 1 of 2 ids were not seen in fit",
        "exclude: 1 of 3 ids were not seen in fit",
    ]
    assert [one["unknown"] for one in body["answers"]] == [0, 1]
    with pytest.warns(UserWarning, match="not seen"):
        expected = direct["plays"].rank([1, 999], 2, exclude=[[3, 1000], [4]], unknown="ignore")
    assert [one["ids"] for one in body["answers"]] == expected.ids.tolist()


def test_messagepack_says_the_same(asking):
    fields = {"queries": ["item 01"], "k": 3}
    plain = asking.post("/v1/models/names/rank", fields)
    for sent in (JSON, MESSAGEPACK):
        for wanted in (JSON, MESSAGEPACK):
            assert asking.post("/v1/models/names/rank", fields, sent, wanted) == plain
    answered = asking.raw("POST", "/v1/models/names/rank", msgspec.json.encode(fields))
    assert answered.headers["content-type"] == JSON  # which is what a body without a type is


def test_models_are_described(asking):
    status, body = asking.get("/v1/models")
    assert status == 200
    forms = {one["name"]: one["queries"] for one in body["models"]}
    assert forms == {
        "plays": "ids", "names": "ids", "rows": "rows", "tags": "rows", "documents": "documents", "near": "rows",
    }  # fmt: skip
    status, one = asking.get("/v1/models/tags")
    assert (status, one) == (200, body["models"][3])
    assert one["routes"] == ["rank", "scores", "explain", "next_question"]
    assert len(one["version"]) == 12
    assert asking.get("/v1/models/nobody")[0] == 404


def test_the_document_shows_what_was_really_answered(asking):
    status, document = asking.get("/openapi.json")
    assert status == 200
    paths = [path for path, item in document["paths"].items() if "post" in item]
    assert len(paths) == 17
    for path in paths:
        operation = document["paths"][path]["post"]
        asked = operation["requestBody"]["content"][JSON]["example"]
        assert asking.post(path, asked) == (200, operation["responses"]["200"]["content"][JSON]["example"])
    for path in ("/health", "/ready", "/v1/models"):
        shown = document["paths"][path]["get"]["responses"]["200"]["content"][JSON]["example"]
        assert asking.get(path) == (200, shown)
    assert "at most 1024 queries" in document["info"]["description"]


def test_health_readiness_and_figures(asking):
    assert asking.get("/health") == (200, {"status": "alive"})
    assert asking.get("/ready") == (200, {"status": "ready", "waits_for": []})
    asking.rank("plays", queries=[1])
    figures = asking.raw("GET", "/metrics").body.decode()
    version = asking.get("/v1/models/plays")[1]["version"]
    line = f'slatewise_model_info{{estimator="LatentRanker",model="plays",version="{version}"}} 1.0'
    assert line in figures
    for name in ("request_seconds_bucket", "batch_queries_bucket", "errors_total", "answers_total", "swaps_total"):
        assert f"slatewise_{name}" in figures
    asking.service.stopping = True
    try:
        assert asking.get("/ready") == (503, {"status": "stopping", "waits_for": []})
        answered = asking.raw("GET", "/health")
        assert (answered.status, answered.headers["connection"]) == (200, "close")
    finally:
        asking.service.stopping = False


def test_what_no_model_has_seen_is_counted_too(asking):
    def counted(kind):
        return asking.service.metrics.registry.get_sample_value("slatewise_errors_total", {"kind": kind}) or 0

    before = {kind: counted(kind) for kind in ("host", "path", "method", "body", "refused")}
    assert ask(asking.app, "GET", "/v1/models", [("host", "evil.example")]).status == 421
    assert asking.raw("GET", "/v1/models/").status == 404  # not led elsewhere either
    assert asking.raw("DELETE", "/v1/models").status == 405
    assert asking.raw("POST", "/v1/models/plays/rank", b" " * (5 << 20)).status == 413
    assert asking.rank("plays", queries=[])[0] == 422
    assert {kind: counted(kind) - before[kind] for kind in before} == dict.fromkeys(before, 1)


def test_an_explanation_has_a_size(files, tmp_path):
    """It names all that moved an item: a list of ten, here, and the query's own item."""
    small = make_asking({"plays": files["plays"], "tags": files["tags"]}, tmp_path, limits=Limits(numbers=120))
    small.service.models.look()
    assert small.post("/v1/models/plays/explain", {"queries": [1], "k": 5})[0] == 200
    status, answer = small.post("/v1/models/plays/explain", {"queries": [1, 2], "k": 10})
    assert (status, answer["place"]) == (422, "k")
    assert "expected an answer of at most 120 scores" in answer["message"]
    rows = [[0.0] * 8] * 20
    assert small.post("/v1/models/tags/scores", {"queries": rows})[0] == 200
    status, answer = small.post("/v1/models/tags/explain", {"queries": rows, "k": 3})
    assert (status, answer["place"]) == (422, "queries")
    small.service.close()


def test_the_warm_start_goes_every_way(asking):
    """Every field of every request is in what is asked before readiness, so that nothing is compiled later."""
    for name in asking.service.models.names:
        for endpoint in asking.service.models.get(name).endpoints.values():
            requests = endpoint.example, *endpoint.warmup_requests
            for field in msgspec.structs.fields(endpoint.request):
                used = {str(getattr(way, field.name)) for way in requests} - {str(field.default)}
                assert used or field.name == "k", (name, endpoint.name, field.name)


def test_answers_are_json_that_anybody_reads(asking):
    answered = asking.raw("POST", "/v1/models/plays/rank", b'{"queries": [1], "k": 2}')
    assert json.loads(answered.body)["answers"][0]["query"] == 1
    assert answered.headers["cache-control"] == "no-store"
