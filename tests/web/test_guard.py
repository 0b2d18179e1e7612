"""Requests that must pass, and attacks that must not: each is one request to an application behind the guard."""

import asyncio
import logging

import pytest

from slatewise.web.asgi import POLICY, Answer
from slatewise.web.guard import Guard, Rules
from slatewise.web.requests import BodyLimits
from slatewise.web.site import Site
from slatewise.web.tokens import Digests, TokenCookie, Visitor, WrongTokens, form_token, make_token
from tests.web.asking import HOST, ORIGIN, ask, scope_of

SECRET = b"sixteen bytes at least"
NEW = make_token()
OTHER = make_token()
KEYS = Digests(lambda: [(OTHER.digest, Visitor("owner", 2)), (NEW.digest, Visitor("annotator", 1))])
SITE, LOCAL = Site.public("https://label.example.org"), Site.local(8000)
NAME = TokenCookie(SITE, SECRET).name
COOKIE = ("cookie", f"theme=dark; {NAME}={NEW.token}")
FORM = ("x-form-token", form_token(SECRET, NEW.token))
BEARER = ("authorization", f"Bearer {NEW.token}")
HERE = ("host", "localhost:8000")
HERE_ORIGIN = ("origin", "http://localhost:8000")
HERE_FORM = ("x-form-token", form_token(SECRET, "local"))


async def echo(scope, receive, send):
    """Say who was let in, and how long the body is."""
    length = 0
    while (message := await receive())["type"] == "http.request":
        length += len(message["body"])
        if not message["more_body"]:
            break
    visitor = scope["state"]["visitor"]
    await Answer(200, f"{visitor.role if visitor else 'nobody'} {visitor.who if visitor else ''} {length}").send(send)


def guard(app=echo, site=SITE, **rules):
    return Guard(app, site, KEYS, SECRET, Rules(**rules))


def test_who_shows_a_token_is_let_in():
    for shown in (COOKIE, BEARER):
        answered = ask(guard(), headers=[HOST, shown])
        assert (answered.status, answered.body) == (200, b"annotator 1 0\n")


def test_a_page_of_ours_may_change_things():
    answered = ask(guard(), "POST", "/api/answer", [HOST, ORIGIN, COOKIE, FORM], b"12345")
    assert (answered.status, answered.body) == (200, b"annotator 1 5\n")
    answered = ask(guard(site=LOCAL), "POST", "/api/answer", [HERE, HERE_ORIGIN, HERE_FORM], b"12345")
    assert (answered.status, answered.body) == (200, b"owner None 5\n")


def test_a_program_may_change_things_with_a_bearer_token():
    assert ask(guard(), "POST", "/api/answer", [HOST, BEARER], b"{}").status == 200


def test_the_page_gets_its_form_token():
    async def tell(scope, receive, send):
        await Answer(200, scope["state"]["form_token"]).send(send)

    assert ask(guard(tell), headers=[HOST, COOKIE]).body.decode().strip() == FORM[1]


ATTACKS = {
    "no token": ("GET", "/", [HOST], 401),
    "no token, a page": ("GET", "/", [HOST, ("accept", "text/html,*/*")], 303),
    "no token, a change": ("POST", "/api/answer", [HOST, ORIGIN], 401),
    "a token that was never made": ("GET", "/", [HOST, ("authorization", f"Bearer {make_token().token}")], 401),
    "the digest as a token": ("GET", "/", [HOST, ("authorization", f"Bearer {NEW.digest}")], 401),
    "a token cut short": ("GET", "/", [HOST, ("authorization", f"Bearer {NEW.token[:-1]}")], 401),
    "a token in other letters": ("GET", "/", [HOST, ("authorization", f"Bearer {NEW.token.swapcase()}")], 401),
    "an empty token": ("GET", "/", [HOST, ("authorization", "Bearer ")], 401),
    "another scheme": ("GET", "/", [HOST, ("authorization", f"Basic {NEW.token}")], 401),
    "the cookie of another site": ("GET", "/", [HOST, ("cookie", f"slatewise-0={NEW.token}")], 401),
    "a cookie without its prefix": ("GET", "/", [HOST, ("cookie", f"{NAME.removeprefix('__Host-')}={NEW.token}")], 401),
    "csrf: no form token": ("POST", "/api/answer", [HOST, ORIGIN, COOKIE], 403),
    "csrf: form token of another": (
        "POST", "/api/answer", [HOST, ORIGIN, COOKIE, ("x-form-token", form_token(SECRET, OTHER.token))], 403),
    "csrf: form token of nobody": (
        "POST", "/api/answer", [HOST, ORIGIN, COOKIE, ("x-form-token", form_token(SECRET, ""))], 403),
    "csrf: form token that is no ascii": ("POST", "/api/answer", [HOST, ORIGIN, COOKIE, ("x-form-token", "\xe9")], 403),
    "csrf: no origin": ("POST", "/api/answer", [HOST, COOKIE, FORM], 403),
    "csrf: origin null": ("POST", "/api/answer", [HOST, ("origin", "null"), COOKIE, FORM], 403),
    "csrf: origin of another": ("POST", "/api/answer", [HOST, ("origin", "https://evil.example"), COOKIE, FORM], 403),
    "csrf: origin that starts alike": (
        "POST", "/api/answer", [HOST, ("origin", "https://label.example.org.evil.example"), COOKIE, FORM], 403),
    "csrf: origin unencrypted": (
        "POST", "/api/answer", [HOST, ("origin", "http://label.example.org"), COOKIE, FORM], 403),
    "csrf: origin with another port": (
        "POST", "/api/answer", [HOST, ("origin", "https://label.example.org:8443"), COOKIE, FORM], 403),
    "csrf: two origins": ("POST", "/api/answer", [HOST, ORIGIN, ORIGIN, COOKIE, FORM], 400),
    "csrf by DELETE": ("DELETE", "/api/answer", [HOST, COOKIE], 403),
    "a method nobody knows": ("TRACE", "/", [HOST, COOKIE], 405),
    "a method in small letters": ("post", "/", [HOST, COOKIE], 405),
    "a page of others asks": ("GET", "/api", [HOST, COOKIE, ("sec-fetch-site", "cross-site")], 403),
    "a page of others embeds": (
        "GET", "/", [HOST, COOKIE, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"),
                     ("sec-fetch-dest", "iframe")], 403),
    "a neighbour asks": ("GET", "/api", [HOST, COOKIE, ("sec-fetch-site", "same-site")], 403),
    "another host": ("GET", "/", [("host", "evil.example"), COOKIE], 421),
    "no host": ("GET", "/", [COOKIE], 421),
    "a host with a user": ("GET", "/", [("host", "label.example.org@evil.example"), COOKIE], 421),
    "two hosts": ("GET", "/", [HOST, ("host", "evil.example"), COOKIE], 400),
    "a forwarded host": ("GET", "/", [("host", "evil.example"), ("x-forwarded-host", HOST[1]), COOKIE], 421),
    "two cookies": ("GET", "/", [HOST, COOKIE, ("cookie", "a=b")], 400),
    "two lengths": ("POST", "/", [HOST, BEARER, ("content-length", "1"), ("content-length", "2")], 400),
    "a length that is no number": ("POST", "/", [HOST, BEARER, ("content-length", "-1")], 400),
    "a length in words": ("POST", "/", [HOST, BEARER, ("content-length", "1e9")], 400),
    "a path up": ("GET", "/static/../secret", [HOST, COOKIE], 400),
    "a path with two slashes": ("GET", "//evil.example/", [HOST, COOKIE], 400),
    "a path with a backslash": ("GET", "/static\\..\\secret", [HOST, COOKIE], 400),
    "a path with a zero": ("GET", "/a\0.png", [HOST, COOKIE], 400),
    "a path with a line end": ("GET", "/a\r\nset-cookie: x=y", [HOST, COOKIE], 400),
    "a path encoded twice": ("GET", "/%2e%2e/secret", [HOST, COOKIE], 400, b"/%252e%252e/secret"),
    "a slash that is encoded": ("GET", "/a/b", [HOST, COOKIE], 400, b"/a%2Fb"),
    "a long path": ("GET", "/" + "a" * 5000, [HOST, COOKIE], 400),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_are_refused(attack):
    method, path, headers, status, *raw = ATTACKS[attack]

    async def never(scope, receive, send):
        raise AssertionError("the application must not see this")

    answered = ask(guard(never), method, path, headers, raw_path=raw[0] if raw else None)
    assert answered.status == status
    assert answered.headers["content-security-policy"] == POLICY
    assert NEW.token.encode() not in answered.body


LOCAL_ATTACKS = {
    "rebinding: another name for this machine": ("GET", [("host", "evil.example:8000")], 421),
    "rebinding: another port": ("GET", [("host", "localhost:9000")], 421),
    "csrf from another page": ("POST", [HERE, ("origin", "https://evil.example"), HERE_FORM], 403),
    "csrf from another port": ("POST", [HERE, ("origin", "http://localhost:9000"), HERE_FORM], 403),
    "csrf without the form token": ("POST", [HERE, HERE_ORIGIN], 403),
    "a wrong bearer token": ("GET", [HERE, ("authorization", f"Bearer {make_token().token}")], 401),
    "a proxy passes on what others ask": ("GET", [HERE, ("x-forwarded-for", "203.0.113.7")], 421),
    "a proxy that says it otherwise": ("GET", [HERE, ("forwarded", "for=203.0.113.7;host=label.example.org")], 421),
}


@pytest.mark.parametrize("attack", LOCAL_ATTACKS)
def test_a_machine_of_ones_own_is_guarded_too(attack):
    method, headers, status = LOCAL_ATTACKS[attack]
    assert ask(guard(site=LOCAL), method, "/", headers).status == status


def test_a_cookie_from_before_is_no_matter_on_a_machine_of_ones_own():
    name = TokenCookie(LOCAL, SECRET).name
    answered = ask(guard(site=LOCAL), headers=[HERE, ("cookie", f"{name}={make_token().token}")])
    assert answered.body == b"owner None 0\n"


def test_another_page_may_lead_a_person_here():
    leads = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")]
    assert ask(guard(), headers=[HOST, COOKIE, *leads]).status == 200


def test_public_paths_need_nobody():
    rules = {"public": ("/enter", "/static/")}
    assert ask(guard(**rules), path="/enter").body == b"nobody  0\n"
    assert ask(guard(**rules), path="/static/page.css").status == 200
    assert ask(guard(**rules), path="/staticky").status == 401
    assert ask(guard(**rules), "POST", "/static/page.css", [HOST, ORIGIN]).status == 403


def test_a_token_is_changed_for_a_cookie_and_back():
    told = []
    entered = guard(audit=lambda what, client, visitor: told.append((what, visitor.role)))
    answered = ask(entered, "POST", "/enter", [HOST, ORIGIN], f"token={NEW.token}".encode())
    assert (answered.status, answered.headers["location"]) == (303, "/")
    value, *attributes = answered.headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Secure", "Path=/"} <= set(attributes)
    assert value.startswith("__Host-")
    assert ask(entered, headers=[HOST, ("cookie", value)]).status == 200
    left = ask(entered, "POST", "/leave", [HOST, ORIGIN, ("cookie", value), FORM])
    assert left.status == 303
    assert "Max-Age=0" in left.headers["set-cookie"]
    assert told == [("enter", "annotator"), ("leave", "annotator")]


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ([HOST, ORIGIN], b"token=wrong", 401),
        ([HOST, ORIGIN], b"", 401),
        ([HOST, ORIGIN], b"\xff\xfe=1", 401),
        ([HOST, ORIGIN], b"token=" + b"a" * 5000, 413),
        ([HOST], f"token={NEW.token}".encode(), 403),
        ([HOST, ("origin", "https://evil.example")], f"token={NEW.token}".encode(), 403),
    ],
    ids=["wrong", "empty", "no text", "too long", "no origin", "another origin"],
)
def test_enter_is_closed_without_tokens(headers, body, status):
    answered = ask(guard(), "POST", "/enter", headers, body)
    assert answered.status == status
    assert "set-cookie" not in answered.headers


def test_who_guesses_is_not_heard_even_when_right():
    seconds = [0.0]
    wrong = WrongTokens(most=3, seconds=60.0, clock=lambda: seconds[0])
    guarded = guard(wrong_tokens=wrong)
    guesser, other = ("203.0.113.7", 1), ("203.0.113.8", 1)
    for _ in range(3):
        assert ask(guarded, headers=[HOST, ("authorization", "Bearer x")], client=guesser).status == 401
    for method, path, headers, body in (
        ("GET", "/", [HOST, BEARER], b""),
        ("GET", "/", [HOST, COOKIE], b""),
        ("POST", "/enter", [HOST, ORIGIN], f"token={NEW.token}".encode()),
    ):
        answered = ask(guarded, method, path, headers, body, client=guesser)
        assert answered.status == 429
        assert 0 < int(answered.headers["retry-after"]) <= 61
    assert ask(guarded, headers=[HOST, BEARER], client=other).status == 200
    seconds[0] += 61
    assert ask(guarded, headers=[HOST, BEARER], client=guesser).status == 200


def test_what_is_remembered_of_guessers_is_bounded():
    wrong = WrongTokens(most=2)
    for number in range(20_000):
        wrong.add(f"client {number}")
    assert len(wrong._times) == 10_000
    for _ in range(100):
        wrong.add("one")
    assert len(wrong._times["one"]) == 2


SMALL, SHORT = {"body": BodyLimits(bytes=10, seconds=1000)}, {"body": BodyLimits(bytes=10, seconds=0.05)}


@pytest.mark.parametrize(
    ("limits", "options", "status"),
    [
        (SMALL, {"body": b"1234567890"}, 200),
        (SMALL, {"body": b"12345678901"}, 413),
        (SMALL, {"body": b"", "headers": [HOST, BEARER, ("content-length", "11")]}, 413),
        (SMALL, {"parts": [b"123456", b"123456", b"1"]}, 413),
        (SHORT, {"parts": [b"1"] * 10, "wait": 0.02}, 408),
        (SHORT, {"parts": [b"1"], "wait": 0.2}, 408),
    ],
)
def test_a_body_has_its_limits(limits, options, status):
    answered = ask(guard(**limits), "POST", "/", **{"headers": [HOST, BEARER]} | options)
    assert answered.status == status


def test_the_guard_answers_even_where_the_application_swallows_the_refusal():
    async def careless(scope, receive, send):
        try:
            await receive()
        except Exception:
            await Answer(200, "all is well").send(send)

    answered = ask(guard(careless, **SMALL), "POST", "/", [HOST, BEARER], b"12345678901")
    assert (answered.status, answered.body) == (413, b"body: expected at most 10 bytes, found more\n")


def test_a_failure_says_nothing_of_the_inside(caplog):
    async def fails(scope, receive, send):
        raise RuntimeError("the password is swordfish")

    with caplog.at_level(logging.ERROR, "slatewise.web"):
        answered = ask(guard(fails), headers=[HOST, COOKIE])
    assert (answered.status, answered.body) == (500, b"the server failed; its log says why\n")
    assert "swordfish" in caplog.text


def test_headers_of_the_application_come_first():
    async def own(scope, receive, send):
        await Answer(200, "x", (("content-security-policy", "default-src 'none'"),)).send(send)

    answered = ask(guard(own), headers=[HOST, COOKIE])
    assert answered.headers["content-security-policy"] == "default-src 'none'"
    assert answered.headers["x-content-type-options"] == "nosniff"
    assert answered.headers["cache-control"] == "no-store"
    assert "strict-transport-security" in answered.headers
    assert "strict-transport-security" not in ask(guard(site=LOCAL), headers=[HERE]).headers


def test_the_policy_lets_nothing_inline_and_nothing_from_elsewhere():
    assert "unsafe" not in POLICY
    assert "*" not in POLICY
    assert "http" not in POLICY
    assert POLICY.startswith("default-src 'none'")


def test_other_protocols_are_refused_and_the_start_of_the_server_is_not():
    seen, sent = [], []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    async def send(message):
        sent.append(message)

    for kind in ("websocket", "lifespan"):
        asyncio.run(guard(app)({**scope_of(), "type": kind}, None, send))
    assert (seen, sent) == (["lifespan"], [{"type": "websocket.close", "code": 1008}])


PROGRAMS = {"only_answers": True, "public": ("/health",)}


@pytest.mark.parametrize(
    ("site", "method", "path", "headers", "status"),
    [
        (LOCAL, "POST", "/rank", [HERE], 200),
        (LOCAL, "POST", "/rank", [HERE, HERE_ORIGIN], 200),
        (LOCAL, "POST", "/rank", [HERE, ("origin", "https://evil.example")], 403),
        (LOCAL, "POST", "/rank", [HERE, ("sec-fetch-site", "cross-site")], 403),
        (LOCAL, "POST", "/rank", [("host", "evil.example:8000")], 421),
        (SITE, "POST", "/rank", [HOST], 401),
        (SITE, "GET", "/rank", [HOST, ("accept", "text/html")], 401),
        (SITE, "POST", "/rank", [HOST, BEARER], 200),
        (Site.of_programs(), "POST", "/rank", [("host", "10.0.0.7:8000"), BEARER], 200),
        (Site.of_programs(), "POST", "/rank", [("host", "10.0.0.7:8000")], 401),
        (Site.of_programs(), "POST", "/rank", [HOST, BEARER, ORIGIN], 403),
        (Site.of_programs(), "GET", "/health", [("host", "10.0.0.7:8000")], 200),
        (Site.of_programs(), "POST", "/enter", [HOST, ORIGIN], 401),
    ],
)
def test_where_nothing_changes_programs_need_no_page(site, method, path, headers, status):
    answered = ask(guard(site=site, **PROGRAMS), method, path, headers, f"token={NEW.token}".encode())
    assert answered.status == status
    assert "set-cookie" not in answered.headers


def test_a_short_secret_is_refused():
    with pytest.raises(ValueError, match="secret: expected at least 16 bytes, found 5"):
        Guard(echo, SITE, KEYS, b"short")
