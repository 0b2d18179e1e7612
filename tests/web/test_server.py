"""A real server: clients that are slow, greedy or rude harm only themselves."""

import asyncio
import logging
import select
import socket
import threading
import time
from contextlib import nullcontext, suppress

import pytest

from slatewise.web.asgi import Answer, start
from slatewise.web.guard import Guard, Rules
from slatewise.web.requests import BodyLimits
from slatewise.web.server import reading_the_rest, server_config
from slatewise.web.site import Site
from slatewise.web.tokens import Digests, form_token

uvicorn = pytest.importorskip("uvicorn", reason="the extra label is not installed")

SECRET = b"sixteen bytes at least"
HEAD_SECONDS = 0.3
LONG = b"long " * 2_000_000
"""More than the system keeps for a client."""


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    if scope["path"] == "/long":
        await start(send, 200, [])
        await send({"type": "http.response.body", "body": LONG})
    else:
        await Answer(200, "hello").send(send)


@pytest.fixture(scope="module")
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    rules = Rules(body=BodyLimits(bytes=1000, seconds=0.3))
    guarded = Guard(app, Site.local(number), Digests(list), SECRET, rules)
    short = {"head_seconds": HEAD_SECONDS, "take_seconds": 0.3, "rest_seconds": 0.3}
    server = uvicorn.Server(server_config(guarded, "127.0.0.1", number, **short))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield number
    server.should_exit = True
    thread.join()


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def until_closed(connection):
    received = b""
    while part := connection.recv(1 << 16):
        received += part
    return received


def head(port, *lines, method="GET", path="/"):
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: localhost:{port}", *lines, "", ""]).encode()


def answers(port, sent, expected):
    """Whether the server answers so; asked again where this machine was too slow for the short times of these tests."""
    for _ in range(10):
        try:
            with connected(port) as client:
                client.sendall(sent)
                received = until_closed(client)
        except ConnectionError:
            continue
        if received.startswith(expected):
            return received
    raise AssertionError(received)


def is_served(port):
    return b"hello" in answers(port, head(port, "Connection: close"), b"HTTP/1.1 200 OK")


def change(port, *lines):
    origin, form = f"Origin: http://localhost:{port}", f"X-Form-Token: {form_token(SECRET, 'local')}"
    return head(port, origin, form, *lines, method="POST")


def test_a_normal_client_is_served_without_a_server_header(port):
    assert is_served(port)
    assert b"server:" not in answers(port, head(port, "Connection: close"), b"HTTP/1.1 200 OK").lower()


def test_heads_that_never_end_are_cut_off(port):
    """Others are served meanwhile."""
    with connected(port) as silent, connected(port) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nX-A: ")
        assert is_served(port)
        for client in (silent, slow):
            assert b"200" not in until_closed(client)


def test_a_second_head_that_never_ends_is_cut_off_too(port):
    with connected(port) as client:
        client.sendall(head(port))
        received = client.recv(1 << 16)
        if received:
            client.sendall(b"GET / HT")
        assert (received + until_closed(client)).count(b"HTTP/1.1 200") <= 1
    assert is_served(port)


def test_an_answer_that_nobody_takes_is_dropped(port):
    with connected(port) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(head(port, path="/long"))
        ended = select.poll()
        ended.register(slow, 0)  # nothing is read; that the connection is reset is told all the same
        assert ended.poll(60_000)
    assert is_served(port)


def test_a_body_that_never_comes_is_refused(port):
    assert answers(port, change(port, "Content-Length: 10") + b"123", b"HTTP/1.1 408")


def test_a_body_that_does_not_end_is_refused(port):
    chunk = b"190\r\n" + b"a" * 400 + b"\r\n"
    assert answers(port, change(port, "Transfer-Encoding: chunked") + 3 * chunk, b"HTTP/1.1 413")


@pytest.mark.parametrize(
    "bytes_sent",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 100_000,
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    ],
)
def test_rude_clients_are_refused_and_the_server_lives(port, bytes_sent):
    with connected(port) as client:
        client.sendall(bytes_sent)
        assert not client.recv(1 << 16).startswith(b"HTTP/1.1 2")
    assert is_served(port)


@pytest.fixture
def logged():
    """What the server logs; its loggers need not propagate."""
    records, handler = [], logging.Handler()
    handler.emit = records.append
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio", "slatewise.web")]
    for logger in loggers:
        logger.addHandler(handler)
    yield records
    for logger in loggers:
        logger.removeHandler(handler)


BAD_CHUNK = b"1\r\na\r\nno size\r\n"


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (["Transfer-Encoding: chunked", "X-Refused: early"], b""),
        (["Transfer-Encoding: chunked"], b""),
        (["Transfer-Encoding: chunked"], BAD_CHUNK),
        (["Content-Length: 10", "Transfer-Encoding: chunked"], b""),
    ],
    ids=["refused before it is read", "read", "in parts", "two lengths"],
)
@pytest.mark.parametrize("method", ["POST", "HEAD"])
def test_a_malformed_body_is_no_failure_of_the_application(port, logged, method, first, later):
    """An answer must not be sent on a connection that the server has refused already."""
    foreign = "Origin: http://evil.example" if len(first) > 1 else f"Origin: http://localhost:{port}"
    form = f"X-Form-Token: {form_token(SECRET, 'local')}"
    for body in (BAD_CHUNK, b"1\r\na\r\n" if later else BAD_CHUNK):
        with connected(port) as client:
            client.sendall(head(port, foreign, form, *first, method=method) + body)
            if later:
                client.sendall(later)
            # A part that arrives when the connection is already closed resets it.
            with suppress(ConnectionResetError) if later else nullcontext():
                assert not until_closed(client).startswith(b"HTTP/1.1 200 OK")
    assert is_served(port)
    assert [record.getMessage() for record in logged if record.levelno > logging.WARNING] == []


def test_an_upgrade_is_not_offered_and_no_library_is_recommended(port, logged):
    for kind in ("websocket", "h2c"):
        asked = head(port, f"Upgrade: {kind}", "Connection: Upgrade, close", "Sec-WebSocket-Key: AAAA")
        assert b"hello" in answers(port, asked, b"HTTP/1.1 200 OK")
    assert [record.getMessage() for record in logged] == []


def refused_while_sending(n_parts, headers=((b"transfer-encoding", b"chunked"),), **limits):
    """Refuse a body of so many parts of 10 bytes; return what was sent when, and how many parts were read."""
    events, left = [], list(range(n_parts))

    async def receive():
        await asyncio.sleep(0)
        if not left:
            return {"type": "http.disconnect"}
        events.append("read")
        left.pop()
        return {"type": "http.request", "body": b"x" * 10, "more_body": bool(left)}

    async def send(message):
        events.append((message.get("status"), message.get("body"), message.get("more_body", False)))

    async def refusing(scope, receive, send):
        await Answer(413, "too large").send(send)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": list(headers)}
    asyncio.run(reading_the_rest(refusing, **limits)(scope, receive, send))
    assert events[:1] == [(413, None, False)]
    return events[1:]


def test_an_answer_is_whole_before_the_rest_of_the_body_is_read():
    assert refused_while_sending(3) == [(None, b"too large\n", True), *["read"] * 3, (None, b"", False)]
    assert refused_while_sending(1, [(b"content-length", b"10")]) == [
        (None, b"too large\n", True), "read", (None, b"", False)
    ]  # fmt: skip
    for nothing in ([], [(b"content-length", b"0")]):
        assert refused_while_sending(0, nothing) == [(None, b"too large\n", False)]


def test_the_rest_of_a_body_is_read_up_to_a_limit():
    assert refused_while_sending(1000, most_bytes=50).count("read") == 5
    assert refused_while_sending(1000, seconds=0)[-1] == (None, b"", False)
