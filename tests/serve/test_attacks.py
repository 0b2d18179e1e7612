"""What strangers may try on a service; what they may try on any page of ours is in ``tests/web``."""

import json
import logging

import pytest

from slatewise.serve.logs import JsonLines
from tests.web.asking import ask

RANK = b'{"queries": [1]}'
HERE = ("host", "127.0.0.1:8000")
ATTACKS = {
    "another name for this machine": ("POST", "/v1/models/plays/rank", [("host", "evil.example:8000")], 421),
    "a page of others asks": ("POST", "/v1/models/plays/rank", [HERE, ("origin", "https://evil.example")], 403),
    "a page of others asks, by its kind": (
        "POST",
        "/v1/models/plays/rank",
        [HERE, ("sec-fetch-site", "cross-site")],
        403,
    ),
    "a page of others reads": ("GET", "/v1/models", [HERE, ("sec-fetch-site", "cross-site")], 403),
    "a path up": ("GET", "/v1/models/../../etc/passwd", [HERE], 400),
    "a model that is a path": ("GET", "/v1/models/%2e%2e", [HERE], 404),
    "a method that changes": ("DELETE", "/v1/models/plays", [HERE], 405),
    "a method nobody knows": ("TRACE", "/v1/models", [HERE], 405),
    "a wrong token where none is needed": ("GET", "/v1/models", [HERE, ("authorization", "Bearer slw_x")], 401),
    "two lengths": ("POST", "/v1/models/plays/rank", [HERE, ("content-length", "1"), ("content-length", "2")], 400),
    "two kinds": ("POST", "/v1/models/plays/rank", [HERE, ("content-type", "a/b"), ("content-type", "c/d")], 400),
    "a length beyond the limit": ("POST", "/v1/models/plays/rank", [HERE, ("content-length", "999999999")], 413),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_are_refused(asking, attack):
    method, path, headers, status = ATTACKS[attack]
    answered = ask(asking.app, method, path, headers, RANK, client=(f"203.0.113.{len(attack)}", 1))
    assert answered.status == status, answered.body
    assert b"answers" not in answered.body


def test_a_page_of_others_cannot_read_answers(asking):
    answered = asking.raw("POST", "/v1/models/plays/rank", RANK)
    assert not [name for name in answered.headers if name.startswith("access-control-")]
    assert answered.headers["x-content-type-options"] == "nosniff"
    assert answered.headers["cross-origin-resource-policy"] == "same-origin"
    assert asking.raw("OPTIONS", "/v1/models/plays/rank").status == 405


def test_names_cannot_write_into_logs_or_answers(asking):
    name = 'x"}\n{"event": "ready\x1b[2J'
    record = logging.LogRecord("slatewise.serve", logging.INFO, "", 0, "model", None, None)
    record.fields = {"model": name}
    line = JsonLines().format(record)
    assert "\n" not in line
    assert "\x1b" not in line
    assert json.loads(line)["model"] == name
    status, body = asking.rank("plays", queries=[1], unknown=name)
    assert status == 422
    assert "\x1b" not in body["message"]
    assert "\n" not in body["message"]


def test_long_names_are_not_echoed_at_length(asking):
    for fields in ({"queries": ["a" * 1000]}, {"queries": ["item 01"], "x" * 100_000: 1}):
        status, body = asking.rank("names", **fields)
        assert status == 422
        assert len(body["message"]) < 2000


def test_what_fails_inside_says_nothing_of_it(asking, monkeypatch, caplog):
    def fails(*_, **__):
        raise RuntimeError("the password is swordfish")

    monkeypatch.setattr(asking.service.models.get("near").doors["rank"].respond.__self__.ranker, "rank", fails)
    with caplog.at_level(logging.ERROR, "slatewise.serve"):
        status, body = asking.rank("near", queries=[[0.0] * 3])
    assert (status, body) == (500, {"place": "server", "message": "the server failed; its log says why"})
    assert "swordfish" in caplog.text
