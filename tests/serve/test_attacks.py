"""What strangers may try on a service; what they may try on any page of ours is in ``tests/web``."""

import asyncio
import http.client
import json
import logging
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import pytest

from slatewise.serve.settings import Limits
from slatewise.web.logs import LOGGERS, JsonLines
from slatewise.web.tokens import make_token
from tests.serve.conftest import make_asking
from tests.serve.real import break_off
from tests.web.asking import ask

RANK = b'{"queries": [1]}'
PATH = "/v1/models/plays/rank"
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
    "two ways to say where a body ends": (
        "POST",
        "/v1/models/plays/rank",
        [HERE, ("content-length", "5"), ("transfer-encoding", "chunked")],
        400,
    ),
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


async def until(happened):
    while not happened():
        await asyncio.sleep(0.001)


def client_of(served):
    return httpx.AsyncClient(transport=httpx.ASGITransport(served.app), base_url="http://127.0.0.1:8000")


LARGE = b" " * (1 << 15) + RANK


def test_large_requests_are_few(files, tmp_path, monkeypatch):
    """Of those that have arrived and are not answered yet; also of those that do not say their length."""
    served = make_asking({"plays": files["plays"]}, tmp_path, limits=Limits(large=2))
    served.service.models.look()
    ranker = served.service.models.get("plays").endpoints["rank"].respond.__self__.ranker
    go, rank = threading.Event(), ranker.rank
    monkeypatch.setattr(ranker, "rank", lambda *given, **more: (go.wait(600), rank(*given, **more))[1])

    async def body():
        yield LARGE

    async def work():
        async with client_of(served) as client:
            taken = [asyncio.create_task(client.post(PATH, content=content)) for content in (LARGE, body())]
            await until(lambda: served.service._n_large == 2)
            taken.append(asyncio.create_task(client.post(PATH, content=RANK)))
            refused = await client.post(PATH, content=LARGE)
            go.set()
            answers = [one.status_code for one in await asyncio.gather(*taken)]
            after = await client.post(PATH, content=LARGE)
            return refused, answers, after.status_code

    refused, *others = asyncio.run(work())
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert others == [[200, 200, 200], 200]
    served.service.close()


@pytest.mark.parametrize("n_first", [1, 40_000], ids=["a byte", "more than is small"])
def test_clients_that_trickle_large_bodies_keep_nobody_out(files, tmp_path, n_first):
    served = make_asking({"plays": files["plays"]}, tmp_path)
    served.service.models.look()
    never, n_waiting = asyncio.Event(), 0

    async def trickled():
        nonlocal n_waiting
        yield b" " * n_first
        n_waiting += 1
        await never.wait()

    async def work():
        length = {"content-length": "1000000"}
        async with client_of(served) as client:
            slow = [asyncio.create_task(client.post(PATH, content=trickled(), headers=length)) for _ in range(300)]
            await until(lambda: n_waiting == 300 or any(one.done() for one in slow))
            answers = [(await client.post(PATH, content=LARGE)).status_code for _ in range(40)]
            refused = sum(one.done() for one in slow)
            for one in slow:
                one.cancel()
            await asyncio.gather(*slow, return_exceptions=True)
            return answers, refused

    assert asyncio.run(work()) == ([200] * 40, 0)
    assert served.service._arriving == 0
    served.service.close()


def test_bodies_that_are_arriving_have_a_bound_in_bytes(files, tmp_path):
    served = make_asking({"plays": files["plays"]}, tmp_path, limits=Limits(large=2, body_bytes=100_000))
    served.service.models.look()

    async def work():
        go = asyncio.Event()

        async def slow():
            yield b" " * 90_000
            await go.wait()
            yield RANK

        async with client_of(served) as client:
            taken = [asyncio.create_task(client.post(PATH, content=slow())) for _ in range(2)]
            await until(lambda: served.service._arriving == 180_000)
            refused, fits = await client.post(PATH, content=LARGE), await client.post(PATH, content=RANK)
            go.set()
            answers = [one.status_code for one in await asyncio.gather(*taken)]
            return refused, [fits.status_code, *answers, (await client.post(PATH, content=LARGE)).status_code]

    refused, others = asyncio.run(work())
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert others == [200, 200, 200, 200]
    assert served.service._arriving == 0
    served.service.close()


@pytest.mark.parametrize(
    ("path", "n_bytes", "headers", "status"),
    [
        (PATH, 6 << 20, {}, 413),
        (PATH, 6 << 20, {"connection": "close"}, 413),
        ("/v1/models/nobody/rank", 3 << 20, {"connection": "close"}, 404),
        (PATH, 3 << 20, {"content-type": "text/html", "connection": "close"}, 415),
        (PATH, 3 << 20, {"authorization": "Bearer slw_x", "connection": "close"}, 401),
    ],
)
def test_clients_that_are_still_sending_get_their_answers(files, tmp_path, path, n_bytes, headers, status):
    """They send all of a body before they read; a connection that is closed before is reset, and the answer lost."""
    served = make_asking({"plays": files["plays"]}, tmp_path)
    served.service.models.look()

    def answered(address):
        with closing(http.client.HTTPConnection(address.removeprefix("http://"), timeout=600)) as connection:
            connection.request("POST", path, b" " * n_bytes, headers)
            return connection.getresponse().status

    with served.over_http() as address, ThreadPoolExecutor(16) as pool:
        n_clients = 5 if status == 401 else 16  # with more, wrong tokens are too many
        assert list(pool.map(answered, [address] * n_clients)) == [status] * n_clients
    served.service.close()


def test_wrong_requests_that_are_broken_off_are_no_failures(files, tmp_path, caplog):
    """``python -m tests.serve.endurance resets`` does 4,000."""
    served = make_asking({"plays": files["plays"]}, tmp_path)
    served.service.models.look()
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addHandler(caplog.handler)
    with served.over_http() as address:
        break_off(int(address.rpartition(":")[2]), 400, seed=1)
    for logger in loggers:
        logger.removeHandler(caplog.handler)
    served.service.close()
    assert [
        record.getMessage() for record in caplog.records if record.exc_info or record.levelno > logging.WARNING
    ] == []


def test_time_and_the_queue_have_an_end(files, tmp_path, monkeypatch):
    """A model that hangs: a full queue refuses at once, and a request that waits too long gets 504."""
    served = make_asking({"plays": files["plays"]}, tmp_path, limits=Limits(waiting=1, at_once=1))
    served.service.models.look()
    ranker = served.service.models.get("plays").endpoints["rank"].respond.__self__.ranker
    go, rank = threading.Event(), ranker.rank
    monkeypatch.setattr(ranker, "rank", lambda *given, **more: (go.wait(600), rank(*given, **more))[1])

    async def work():
        async with client_of(served) as client:
            two = [asyncio.create_task(client.post(PATH, content=RANK)) for _ in range(2)]
            await until(lambda: len(served.service.batchers["plays"].waiting) == 1)
            refused = await client.post(PATH, content=RANK)
            go.set()
            answers = [one.status_code for one in await asyncio.gather(*two)]
            go.clear()
            served.service.limits = Limits(seconds=0.05)
            late = await client.post(PATH, content=RANK)
            go.set()
            return refused, answers, late

    refused, answers, late = asyncio.run(work())
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert refused.json()["message"].startswith("queue: expected room for one more request")
    assert answers == [200, 200]
    assert late.status_code == 504
    assert late.json()["message"].startswith("time: expected an answer within 0.05 s, found none")
    figures = served.service.metrics.registry
    assert figures.get_sample_value("slatewise_errors_total", {"kind": "time"}) == 1
    assert figures.get_sample_value("slatewise_errors_total", {"kind": "queue full"}) == 1
    served.service.close()


def test_those_who_watch_processes_need_no_name(files, tmp_path):
    """A container calls itself by its address, under any host name; it gets only its state."""
    (tmp_path / "tokens").write_text(make_token().token)
    own = {"origin": "https://rank.example.org", "token_file": str(tmp_path / "tokens"), "host": "0.0.0.0"}
    served = make_asking({"plays": files["plays"]}, tmp_path, **own)
    assert ask(served.app, "GET", "/health", [HERE]).status == 200
    assert ask(served.app, "GET", "/ready", [HERE]).status == 503
    assert ask(served.app, "GET", "/health", [HERE, ("sec-fetch-site", "cross-site")]).status == 403
    for path in ("/v1/models", "/metrics", "/openapi.json"):
        assert ask(served.app, "GET", path, [HERE]).status == 421
    wrong = ("authorization", f"Bearer {make_token().token}")
    assert {ask(served.app, "GET", "/health", [HERE, wrong]).status for _ in range(11)} == {401, 429}
    assert ask(served.app, "GET", "/health", [HERE]).status == 200  # whatever others show from the same address
    served.service.close()


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
    for name, fields in (
        ("names", {"queries": ["a" * 1000]}),
        ("names", {"queries": ["item 01"], "x" * 100_000: 1}),
        ("names", {"queries": ["item 01"], "x\n\x1b[2J" * 100_000: 1}),
        ("tags", {"queries": [[0.0] * 8], "known": [{"x\n\x1b[2J" * 100_000: 1}]}),
    ):
        status, body = asking.rank(name, **fields)
        assert status == 422
        assert len(body["message"]) < 2000
        assert body["message"].isprintable()
        assert "expected" in body["message"]


def test_one_long_id_does_not_make_all_others_as_long(asking):
    """NumPy gives every text of an array the room of the longest: 40,000 of a thousand letters are 160 MB."""
    ids = [*["a"] * 9_999, "b" * 1000]
    lists = {"queries": [ids] * 4, "exclude": [ids] * 4, "candidates": [["item 01", "item 02"], *[ids] * 3]}
    tracemalloc.start()
    status, answer = asking.rank("names", **lists, unknown="ignore", k=3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert status == 200, answer
    assert [one["unknown"] for one in answer["answers"]] == [10_000] * 4
    assert [sorted(one["ids"]) for one in answer["answers"]] == [["item 01", "item 02"], [], [], []]
    assert peak < 100e6


def test_what_fails_inside_says_nothing_of_it(asking, monkeypatch, caplog):
    def fails(*_, **__):
        raise RuntimeError("the password is swordfish")

    monkeypatch.setattr(asking.service.models.get("near").endpoints["rank"].respond.__self__.ranker, "rank", fails)
    with caplog.at_level(logging.ERROR, "slatewise.serve"):
        status, body = asking.rank("near", queries=[[0.0] * 3])
    assert (status, body) == (500, {"place": "server", "message": "the server failed; its log says why"})
    assert "swordfish" in caplog.text
