"""The guard before an application of Starlette that reads bodies by types of msgspec, as pages and services do."""

import msgspec
import pytest

pytest.importorskip("starlette", reason="the extra serve is not installed")

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from slatewise.web.codec import RequestError, codec_of_answer, codec_of_request
from slatewise.web.guard import Guard, Rules
from slatewise.web.requests import BodyLimits
from slatewise.web.site import Site
from slatewise.web.tokens import Digests, Visitor, make_token
from tests.web.asking import HOST, ask

NEW = make_token()


class Numbers(msgspec.Struct, forbid_unknown_fields=True):
    numbers: list[int]


@pytest.fixture(scope="module")
def guarded():
    async def me(request):
        return JSONResponse({"role": request.state.visitor.role, "who": request.state.visitor.who})

    async def total(request):
        try:
            body = codec_of_request(request.headers.get("content-type")).read(await request.body(), Numbers)
        except RequestError as error:
            return JSONResponse({"place": error.place, "message": str(error)}, error.status)
        return JSONResponse(sum(body.numbers))

    app = Starlette(routes=[Route("/me", me), Route("/sum", total, methods=["POST"])])
    keys = Digests(lambda: [(NEW.digest, Visitor("reviewer", 3))])
    site = Site.public("https://label.example.org")
    return Guard(app, site, keys, b"sixteen bytes at least", Rules(body=BodyLimits(bytes=100)))


HEADERS = [HOST, ("authorization", f"Bearer {NEW.token}"), ("content-type", "application/json")]


def test_the_application_sees_the_visitor(guarded):
    assert ask(guarded, path="/me", headers=HEADERS).body == b'{"role":"reviewer","who":3}'
    assert ask(guarded, path="/me").status == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"numbers": [1, 2, 3]}', 200),
        (b'{"numbers": [' + b"1," * 500 + b"1]}", 413),
        (b"{", 400),
        (b'{"numbers": ["1"]}', 422),
        (b'{"numbers": [], "other": 1}', 422),
    ],
)
def test_bodies_within_limits_are_read(guarded, body, status):
    assert ask(guarded, "POST", "/sum", HEADERS, parts=[body[:5], body[5:]]).status == status


def test_errors_name_the_place_and_what_was_expected():
    with pytest.raises(RequestError, match=r"numbers\[1\]: expected int, found str") as caught:
        codec_of_answer(None).read(b'{"numbers": [1, "2"]}', Numbers)
    assert (caught.value.place, caught.value.status) == ("numbers[1]", 422)
