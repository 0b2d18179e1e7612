"""Every field of every route, wrong in type, size and value: 4xx, with the place and what was expected there."""

import json
import re

import msgspec
import pytest

from slatewise.serve.settings import Limits
from tests.serve.conftest import MESSAGEPACK, make_asking

BASES = {
    "plays/rank": {"queries": [1, 2]},
    "plays/scores": {"queries": [1], "items": [2]},
    "plays/explain": {"queries": [1, 2]},
    "names/rank": {"queries": ["item 01"]},
    "rows/rank": {"queries": [[0.0, 0.0, 0.0]]},
    "near/rank": {"queries": [[0.0, 0.0, 0.0]]},
    "near/scores": {"queries": [[0.0, 0.0, 0.0]], "items": [0]},
    "tags/rank": {"queries": [[0.0] * 8]},
    "tags/scores": {"queries": [[0.0] * 8]},
    "tags/explain": {"queries": [[0.0] * 8]},
    "tags/next_question": {"queries": [[0.0] * 8], "known": [{}]},
    "documents/rank": {"queries": [{"rows": [[0.0, 0.0, 0.0]]}]},
    "documents/scores": {"queries": [{"rows": [[0.0, 0.0, 0.0]]}]},
}
IDS = {
    "queries": [
        (None, "queries", "expected array, found null"),
        ("a", "queries", "expected array, found str"),
        ({}, "queries", "expected array, found object"),
        ([], "queries", "expected array of length >= 1"),
        ([1] * 1025, "queries", "expected array of length <= 1024"),
        ([1, None], "queries[1]", "expected int | array, found null"),
        ([1, 1.5], "queries[1]", "expected int | array, found float"),
        ([True], "queries[0]", "expected int | array, found bool"),
        (["1"], "queries[0]", "expected int | array, found str"),
        ([1 << 63], "queries[0]", "expected int <= 9223372036854775807"),
        ([1, 999], "queries[1]", "expected an id seen in fit, found 999"),
        ([1, [2]], "queries[1]", "expected an id, as the first query"),
        ([[2], 1], "queries[1]", "expected a list of items, as the first query"),
        ([[1], [2, 999]], "queries[1][1]", "expected an id seen in fit, found 999"),
        ([[1, "a"]], "queries[0][1]", "expected int, found str"),
        ([[1] * 10_001], "queries[0]", "expected array of length <= 10000"),
    ],
    "k": [
        (None, "k", "expected int, found null"),
        ("3", "k", "expected int, found str"),
        (1.5, "k", "expected int, found float"),
        (0, "k", "expected int >= 1"),
        (31, "k", "expected int <= 30"),
        (-(1 << 62), "k", "expected int >= 1"),
    ],
    "exclude": [
        (3, "exclude", "expected array | null, found int"),
        ([3], "exclude[0]", "expected array, found int"),
        ([[3]], "exclude", "expected one for each of 2 queries, found 1"),
        ([[3], ["a"]], "exclude[1][0]", "expected int, found str"),
        ([[3], [999]], "exclude[1][0]", "expected an id seen in fit, found 999"),
    ],
    "unknown": [
        (None, "unknown", "expected str, found null"),
        ("Error", "unknown", "expected 'error' or 'ignore', found 'Error'"),
    ],
    "stage": [
        ("a", "stage", "expected int | null, found str"),
        (-1, "stage", "expected int >= 0"),
        (2, "stage", "expected int <= 1"),
    ],
    "candidate": [([1], "candidate", "expected one of the fields queries, k, exclude")],
}
ROWS = {
    "queries": [
        (None, "queries", "expected array, found null"),
        ([], "queries", "expected array of length >= 1"),
        ([[]], "queries[0]", "expected array of length >= "),
        ([1.0], "queries[0]", "expected array, found float"),
        ([["a"] * 8], "queries[0]", "expected "),
        ([[0.0] * 9], "queries[0]", "expected array of length <= "),
        ([[None] * 8], "queries[0]", "expected "),
    ]
}
K_OR_NONE = {
    "k": [("a", "k", "expected int | null, found str"), (0, "k", "expected int >= 1"), (7, "k", "expected int <= 6")]
}
KNOWN = {
    "known": [
        (3, "known", "expected array"),
        ([3], "known[0]", "expected object, found int"),
        ([{}, {}], "known", "expected one for each of 1 queries, found 2"),
        ([{"sea": 1}], "known[0]", "expected labels seen in fit, found 'sea'"),
        ([{"tag 1": 2}], "known[0]", "expected 0 or 1"),
        ([{"tag 1": "yes"}], "known[0]", "expected bool | int, found str"),
    ]
}
DOCUMENTS = {
    "queries": [
        ([], "queries", "expected array of length >= 1"),
        ([3], "queries[0]", "expected object, found int"),
        ([{}], "queries[0].rows", "expected, found nothing"),
        ([{"rows": []}], "queries[0].rows", "expected array of length >= 1"),
        ([{"rows": [[0.0]]}], "queries[0].rows[0]", "expected array of length >= 3"),
        ([{"rows": [[0.0] * 3], "ids": []}], "queries[0].ids", "expected array of length >= 1"),
        ([{"rows": [[0.0] * 3], "ids": ["a", "b"]}], "queries[0].ids", "expected one for each of 1 rows, found 2"),
        ([{"rows": [[0.0] * 3], "ids": [None]}], "queries[0].ids[0]", "expected int | str, found null"),
        ([{"rows": [[0.0] * 3], "name": 1}], "queries[0].name", "expected one of the fields"),
    ]
}
ITEMS = {
    "items": [
        (None, "items", "expected array, found null"),
        ([], "items", "expected array of length >= 1"),
        (["a"], "items[0]", "expected int, found str"),
        ([0] * 10_001, "items", "expected array of length <= 10000"),
    ]
}
WRONG = {
    "plays/rank": IDS,
    "plays/explain": IDS,
    "plays/scores": ITEMS | {"items": [*ITEMS["items"], ([999], "items[0]", "expected an id seen in fit, found 999")]},
    "names/rank": {
        "queries": [
            ([1], "queries[0]", "expected str | array, found int"),
            (["nobody"], "queries[0]", "expected an id seen in fit, found 'nobody'"),
            (["item 01\0"], "queries", "expected texts without the character 0"),
            (["a" * 1001], "queries[0]", "expected str of length <= 1000"),
        ]
    },
    "rows/rank": ROWS,
    "near/rank": ROWS | {"k": [(61, "k", "expected int <= 60")]},
    "near/scores": {"items": [*ITEMS["items"], ([60], "items[0]", "expected int <= 59")]},
    "tags/rank": ROWS | K_OR_NONE | KNOWN,
    "tags/scores": ROWS | K_OR_NONE | KNOWN,
    "tags/explain": ROWS | K_OR_NONE | KNOWN,
    "tags/next_question": ROWS | K_OR_NONE | KNOWN,
    "documents/rank": DOCUMENTS | {"k": [(0, "k", "expected int >= 1"), (1001, "k", "expected int <= 1000")]},
    "documents/scores": DOCUMENTS,
}
CASES = [
    (route, {**BASES[route], field: value}, place, message)
    for route, fields in WRONG.items()
    for field, cases in fields.items()
    for value, place, message in cases
]


@pytest.mark.parametrize("route", WRONG)
def test_wrong_fields(asking, route):
    path = "/v1/models/" + route
    assert asking.post(path, BASES[route])[0] == 200
    for of, body, place, message in CASES:
        if of == route:
            status, answer = asking.post(path, body)
            assert status == 422, (body, answer)
            assert re.fullmatch(re.escape(place) + r"(\[.*\])?", answer["place"]), answer
            assert answer["message"].startswith(f"{answer['place']}: {message}"), answer
    for missing in BASES[route]:
        body = {name: value for name, value in BASES[route].items() if name != missing}
        assert asking.post(path, body) == (422, {"place": missing, "message": f"{missing}: expected, found nothing"})


BODIES = {
    b"": 400, b"{": 400, b"\xff": 400, b'{"queries": [NaN]}': 400, b"[]": 422, b"null": 422, b"1": 422, b'"a"': 422,
    b"[" * 100_000: 422, b'{"queries": [1e999]}': 400, b'{"queries": ["\\ud800"]}': 400,
    b'{"queries": [1], "queries": [2, "a"]}': 422, b'{"queries": [' + b"9" * 5000 + b"]}": 422,
}  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:30]))
def test_wrong_bodies(asking, body):
    answered = asking.raw("POST", "/v1/models/plays/rank", body, [("content-type", "application/json")])
    assert answered.status in (400, 422), answered.body
    assert b"expected" in answered.body


def test_other_kinds_of_bodies_and_paths(asking):
    answered = asking.raw("POST", "/v1/models/plays/rank", b"queries=1", [("content-type", "text/html")])
    assert answered.status == 415
    assert b"content-type: expected application/json or application/msgpack, found 'text/html'" in answered.body
    packed = [("content-type", "application/json"), ("content-encoding", "gzip")]
    answered = asking.raw("POST", "/v1/models/plays/rank", b'{"queries": [1]}', packed)
    assert (answered.status, json.loads(answered.body)["message"]) == (
        415,
        "content-encoding: expected none, found 'gzip'",
    )
    assert asking.post("/v1/models/nobody/rank", {})[1]["message"].startswith("name: expected one of plays, names")
    status, body = asking.post("/v1/models/near/explain", {})
    assert (status, body["message"]) == (404, "path: expected rank or scores of a MetricRanker, found explain")
    for method, path, expected in (
        ("GET", "/v1/models/plays/rank", 405), ("POST", "/v1/models", 405), ("DELETE", "/v1/models/plays", 405),
        ("GET", "/nothing", 404), ("GET", "/v1/models/", 404), ("GET", "/docs", 404),
    ):  # fmt: skip
        answered = asking.raw(method, path)
        assert answered.status == expected, (method, path)
        assert b"expected" in answered.body
    answered = asking.raw("PUT", "/v1/models/plays/rank")
    assert (answered.headers["allow"], json.loads(answered.body)["message"]) == (
        "POST", "method: expected POST, found PUT"
    )  # fmt: skip


def test_numbers_that_only_messagepack_has(asking):
    for value in (float("nan"), float("inf")):
        rows = [[0.0, value, 0.0]]
        status, answer = asking.post("/v1/models/rows/rank", {"queries": rows}, MESSAGEPACK, MESSAGEPACK)
        assert (status, answer["place"]) == (422, "queries[0][1]")
        assert "expected a finite number" in answer["message"]


def test_keys_that_only_messagepack_has(asking):
    for body, place in (
        ({b"queries": [1]}, "body"),
        ({1: [1]}, "body"),
        ({"queries": [[0.0] * 8], "known": [{1: 1}]}, "known[0]"),
    ):
        status, answer = asking.post("/v1/models/tags/rank", body, MESSAGEPACK, MESSAGEPACK)
        assert (status, answer["place"]) == (422, place)
        assert re.fullmatch(re.escape(place) + r": expected str, found (int|bytes), as a key", answer["message"])


def test_numbers_too_large_for_the_model_are_refused_in_its_words(asking):
    status, answer = asking.post("/v1/models/rows/rank", {"queries": [[1e300, 0.0, 0.0]]})
    assert (status, answer["place"]) == (422, "queries")
    assert "expected finite float32 numbers" in answer["message"]


def test_an_answer_has_a_size(files, tmp_path):
    small = make_asking({"plays": files["plays"]}, tmp_path, limits=Limits(queries=20, k=20, numbers=100, ids=3))
    small.service.models.look()
    assert small.rank("plays", queries=[1, 2, 3, 4, 5, 6], k=16)[0] == 200
    status, answer = small.rank("plays", queries=[1, 2, 3, 4, 5, 6], k=17)
    assert (status, answer["message"]) == (422, "k: expected an answer of at most 100 scores, found 6 queries times 17")
    assert small.rank("plays", queries=[1], exclude=[[1, 2, 3, 4]])[1]["place"] == "exclude[0]"
    answered = small.raw("POST", "/v1/models/plays/rank", b" " * (4 << 20) + b'{"queries": [1]}')
    assert answered.status == 413
    assert msgspec.json.encode(small.get("/v1/models")[1])
    small.service.close()


STRANGE = [
    None, True, -1, 1.5, 1 << 70, 1e300, "", "x", "x\0", "x" * 2000, {}, {"x": 1}, [], [None], [True], [-1], [1.5],
    ["x"], ["x" * 2000], [{}], [{"x": None}], [[]], [[None]], [[1.5]], [["x" * 2000]], [[{}]], [[1 << 70]], [[1e300]],
    list(range(20_000)), [list(range(20_000))], [[]] * 2000,
]  # fmt: skip


def check_every_field(asking):
    """Put what is strange into every field of every route there is; return how many were refused.

    What is answered is right by the schema of the document; of all else the place is said, and what was expected.
    """
    validators = pytest.importorskip("jsonschema_rs", reason="it comes with schemathesis, which is not installed")
    schemas = asking.get("/openapi.json")[1]
    n_refused = 0
    for name in asking.service.models.names:
        for endpoint in asking.service.models.get(name).endpoints.values():
            path, base = f"/v1/models/{name}/{endpoint.name}", msgspec.to_builtins(endpoint.example)
            base.pop("query_features", None)  # which must be as many as the queries
            reference = schemas["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
            schema = validators.Draft202012Validator({**reference, "components": schemas["components"]})
            for field in endpoint.request.__struct_fields__:
                refused = 0
                for value in STRANGE:
                    body = {**base, field: value}
                    status, answer = asking.post(path, body)
                    if status == 200:
                        assert schema.is_valid(body), (path, field, value)
                        continue
                    assert status in (400, 422), (path, field, value, answer)
                    assert answer["place"].startswith(field), (path, field, value, answer)
                    assert re.match(re.escape(answer["place"]) + r": .*expected", answer["message"]), answer
                    refused += 1
                assert refused > len(STRANGE) // 2, (path, field)
                n_refused += refused
    return n_refused


def test_every_field_of_every_route(asking):
    assert check_every_field(asking) > 1500
