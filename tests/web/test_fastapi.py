"""The guard before an application of FastAPI, which pages and services are."""

import pytest

from slatewise.web.body import BodyLimits
from slatewise.web.guard import Guard, Rules
from slatewise.web.site import Site
from slatewise.web.tokens import Digests, Visitor, make_token
from tests.web.asking import HOST, ask

fastapi = pytest.importorskip("fastapi", reason="the extra label is not installed")
NEW = make_token()


@pytest.fixture(scope="module")
def guarded():
    app = fastapi.FastAPI()

    @app.get("/me")
    def me(request: fastapi.Request) -> dict:
        return {"role": request.state.visitor.role, "who": request.state.visitor.who}

    @app.post("/sum")
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    keys = Digests(lambda: [(NEW.digest, Visitor("reviewer", 3))])
    site = Site.public("https://label.example.org")
    return Guard(app, site, keys, b"sixteen bytes at least", Rules(body=BodyLimits(bytes=100)))


HEADERS = [HOST, ("authorization", f"Bearer {NEW.token}"), ("content-type", "application/json")]


def test_the_application_knows_who_asks(guarded):
    assert ask(guarded, path="/me", headers=HEADERS).body == b'{"role":"reviewer","who":3}'
    assert ask(guarded, path="/me").status == 401


@pytest.mark.parametrize(("body", "status"), [(b"[1, 2, 3]", 200), (b"[" + b"1," * 500 + b"1]", 413), (b"{", 422)])
def test_bodies_within_limits_are_read(guarded, body, status):
    assert ask(guarded, "POST", "/sum", HEADERS, parts=[body[:5], body[5:]]).status == status
