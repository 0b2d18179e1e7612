"""Attacks on the page itself, guard, routes and project together: all are refused, and nothing changes."""

import json
import os
import socket
import threading
import time

import pytest
import uvicorn
from tests.web.asking import HOST, ORIGIN, ask

from slatewise.labeling import Item, Plan, Project
from slatewise.labeling.page import make_app
from slatewise.labeling.page.access_tokens import new_token, project_secret
from slatewise.web.server import server_config
from slatewise.web.site import Site
from slatewise.web.tokens import TokenCookie, form_token, make_token

SITE = Site.public("https://label.example.org")
SCRIPT = "<script>alert(1)</script>"
JSON = ("content-type", "application/json")
ANSWER = b'{"item": 0, "label": 0, "answer": "yes"}'


class Page:
    """The page of a project that others can reach, and what an annotator, an owner and a thief have."""

    def __init__(self, folder):
        files = folder / "files"
        files.mkdir()
        (files / "a.svg").write_text(f"<svg xmlns='http://www.w3.org/2000/svg'>{SCRIPT}</svg>")
        (files / "b.html").write_text(SCRIPT)
        (folder / "secret.png").write_text("secret")
        (files / "out.png").symlink_to(folder / "secret.png")
        (files / "swap.png").write_text("harmless")
        (files / "pipe.png").mkdir()
        items = [
            Item("a", "image", "a.svg", files),
            Item("out", "image", "out.png", files),
            Item("swap", "image", "swap.png", files),
            Item("pipe", "image", "pipe.png", files),
            Item("html", "image", "b.html", files),
            Item(SCRIPT, "text", f"{SCRIPT}<img src=x onerror=alert(1)>"),
            Item("link", "link", "https://example.org/?q='\"><script>"),
        ]
        self.path, self.folder = folder / "attacked.db", folder
        with Project.create(self.path, [SCRIPT, "sky"], items) as project:
            Plan(share=0.0, order="file order", retrain_every=0).keep(project)
            self.token, self.owner = new_token(project, "Ann"), new_token(project, "Zoe", "owner")
            self.revoked = new_token(project, "Eve")
            project.tokens.revoke(3)
            secret = project_secret(project)
        (files / "swap.png").unlink()
        (files / "swap.png").symlink_to("/etc/hostname")
        self.app = make_app(self.path, site=SITE)
        self.page_state = self.app._app.state.page_state
        self.bearer = ("authorization", f"Bearer {self.token}")
        self.owner_bearer = ("authorization", f"Bearer {self.owner}")
        self.cookie = ("cookie", f"{TokenCookie(SITE, secret).name}={self.token}")
        self.form = ("x-form-token", form_token(secret, self.token))
        self.other_form = ("x-form-token", form_token(secret, self.owner))

    def ask(self, method, path, headers=(), body=b"", **more):
        return ask(self.app, method, path, [HOST, *headers], body, **more)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    opened = Page(tmp_path_factory.mktemp("attacked"))
    yield opened
    opened.page_state.close()


def without(page, *_):
    return []


# What is sent: method, path, headers by what the attacker has, body, and the status of the refusal.
ATTACKS = {
    "no token": ("GET", "/api/me", without, b"", 401),
    "no token, a file": ("GET", "/api/items/0/file", without, b"", 401),
    "no token, the schema": ("GET", "/openapi.json", without, b"", 401),
    "no token, everything as a file": ("GET", "/api/export", without, b"", 401),
    "no token, a change": ("POST", "/api/answer", lambda p: [ORIGIN, JSON], ANSWER, 401),
    "a revoked token": ("GET", "/api/me", lambda p: [("authorization", f"Bearer {p.revoked}")], b"", 401),
    "a token in the address": ("GET", "/api/me?token=slw_x", without, b"", 401),
    "csrf: a form of another page": (
        "POST",
        "/api/answer",
        lambda p: [p.cookie, ("origin", "https://evil.example")],
        ANSWER,
        403,
    ),
    "csrf: no origin": ("POST", "/api/answer", lambda p: [p.cookie, p.form, JSON], ANSWER, 403),
    "csrf: no form token": ("POST", "/api/answer", lambda p: [p.cookie, ORIGIN, JSON], ANSWER, 403),
    "csrf: the form token of another": (
        "POST",
        "/api/answer",
        lambda p: [p.cookie, ORIGIN, p.other_form, JSON],
        ANSWER,
        403,
    ),
    "csrf: a change by GET": ("GET", "/api/answer", lambda p: [p.cookie], b"", 405),
    "csrf: a change by HEAD": ("HEAD", "/api/done", lambda p: [p.cookie], b"", 405),
    "csrf: a method that is overridden": (
        "GET",
        "/api/undo",
        lambda p: [p.cookie, ("x-http-method-override", "POST")],
        b"",
        405,
    ),
    "csrf: a body of a form": (
        "POST",
        "/api/answer",
        lambda p: [p.bearer, ("content-type", "application/x-www-form-urlencoded")],
        b"item=0&label=0&answer=yes",
        422,
    ),
    "csrf: a body of plain text": (
        "POST",
        "/api/answer",
        lambda p: [p.bearer, ("content-type", "text/plain")],
        ANSWER,
        422,
    ),
    "another page reads": ("GET", "/api/me", lambda p: [p.cookie, ("sec-fetch-site", "cross-site")], b"", 403),
    "another page shows a picture of ours": (
        "GET",
        "/api/items/0/file",
        lambda p: [p.cookie, ("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "image")],
        b"",
        403,
    ),
    "a preflight of another page": (
        "OPTIONS",
        "/api/answer",
        lambda p: [p.bearer, ("origin", "https://evil.example"), ("access-control-request-method", "POST")],
        b"",
        405,
    ),
    "an annotator takes everything along": ("GET", "/api/export", lambda p: [p.bearer], b"", 403),
    "an annotator reviews": ("POST", "/api/review", lambda p: [p.bearer, JSON], ANSWER, 403),
    "an annotator sees the review": ("GET", "/api/review", lambda p: [p.bearer], b"", 403),
    "an annotator trains": ("POST", "/api/models/train", lambda p: [p.bearer, JSON], b"{}", 403),
    "an annotator rolls back": ("POST", "/api/models/use", lambda p: [p.bearer, JSON], b'{"version": null}', 403),
    "an annotator answers as another": (
        "POST",
        "/api/answer",
        lambda p: [p.bearer, JSON],
        ANSWER,
        403,
        b"annotator=Zoe",
    ),
    "a role in a header": (
        "GET",
        "/api/export",
        lambda p: [p.bearer, ("x-role", "owner"), ("x-forwarded-user", "Zoe")],
        b"",
        403,
    ),
    "a path up": ("GET", "/static/../app.py", lambda p: [p.bearer], b"", 400),
    "a path up, encoded": (
        "GET",
        "/static/../../app.py",
        lambda p: [p.bearer],
        b"",
        400,
        b"",
        b"/static/%2e%2e/%2e%2e/app.py",
    ),
    "a path up, encoded twice": (
        "GET",
        "/static/%2e%2e/app.py",
        lambda p: [p.bearer],
        b"",
        400,
        b"",
        b"/static/%252e%252e/app.py",
    ),
    "a path with a backslash": ("GET", "/static/..\\app.py", lambda p: [p.bearer], b"", 400),
    "a path with a zero": ("GET", "/static/page.css\0.html", lambda p: [p.bearer], b"", 400),
    "the source of the page": ("GET", "/static/app.py", lambda p: [p.bearer], b"", 404),
    "the database": ("GET", "/attacked.db", lambda p: [p.bearer], b"", 404),
    "an item that is a path": ("GET", "/api/items/..", lambda p: [p.bearer], b"", 400),
    "an item below zero": ("GET", "/api/items/-1/file", lambda p: [p.bearer], b"", 422),
    "an item as large as can be": ("GET", f"/api/items/{'9' * 400}/file", lambda p: [p.bearer], b"", 422),
    "a link out of the folder": ("GET", "/api/items/1/file", lambda p: [p.bearer], b"", 404),
    "a file that became a link": ("GET", "/api/items/2/file", lambda p: [p.bearer], b"", 404),
    "a folder as a file": ("GET", "/api/items/3/file", lambda p: [p.bearer], b"", 404),
    "a file of a text": ("GET", "/api/items/5/file", lambda p: [p.bearer], b"", 404),
    "a body of two megabytes": ("POST", "/api/answer", lambda p: [p.bearer, JSON], b" " * (2 << 20), 413),
    "a length of a petabyte": (
        "POST",
        "/api/answer",
        lambda p: [p.bearer, JSON, ("content-length", "1" + "0" * 15)],
        b"",
        400,
    ),
    "a length of a terabyte": (
        "POST",
        "/api/answer",
        lambda p: [p.bearer, JSON, ("content-length", "1" + "0" * 12)],
        b"",
        413,
    ),
    "JSON that is nested deeply": ("POST", "/api/answer", lambda p: [p.bearer, JSON], b"[" * 100_000, 400),
    "a number of 10,000 digits": (
        "POST",
        "/api/answer",
        lambda p: [p.bearer, JSON],
        b'{"item": ' + b"9" * 10_000 + b"}",
        400,
    ),
    "not a number": (
        "POST",
        "/api/answer",
        lambda p: [p.bearer, JSON],
        b'{"item": NaN, "label": 0, "answer": "yes"}',
        422,
    ),
    "text that no UTF-8 says": ("POST", "/api/answer", lambda p: [p.bearer, JSON], b'{"item": "\xff\xfe"}', 400),
    "a name of a million labels": (
        "POST",
        "/api/done",
        lambda p: [p.bearer, JSON],
        b'{"item": 0, "shown": [' + b"0," * 200_000 + b"0]}",
        422,
    ),
    "names that are not known": (
        "POST",
        "/api/answer",
        lambda p: [p.bearer, JSON],
        b'{"__proto__": {}, "item": 0, "label": 0, "answer": "yes"}',
        422,
    ),
    "SQL as a label": (
        "POST",
        "/api/answer",
        lambda p: [p.bearer, JSON],
        b'{"item": 0, "label": "0; DROP TABLE acts", "answer": "yes"}',
        422,
    ),
    "SQL as a name": ("GET", "/api/me", lambda p: [p.owner_bearer], b"", 403, b"annotator=x%27%20OR%201=1--"),
    "a name with a line end": (
        "GET",
        "/api/me",
        lambda p: [p.owner_bearer],
        b"",
        403,
        b"annotator=a%0d%0aset-cookie:%20x",
    ),
    "a format that is a path": ("GET", "/api/export", lambda p: [p.owner_bearer], b"", 422, b"format=../../etc"),
    "another host": ("GET", "/api/me", lambda p: [("host", "evil.example"), p.bearer], b"", 400),
    "two lengths": (
        "POST",
        "/api/answer",
        lambda p: [p.bearer, ("content-length", "1"), ("content-length", "38")],
        ANSWER,
        400,
    ),
    "a length and chunks": (
        "POST",
        "/api/answer",
        lambda p: [p.bearer, ("transfer-encoding", "chunked"), ("transfer-encoding", "x")],
        ANSWER,
        400,
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_are_refused(page, attack):
    method, path, headers, body, status, *raw = ATTACKS[attack]
    path, _, query = path.partition("?")
    before = page.page_state.project.last_act()
    more = {"query": raw[0] if raw else query.encode(), "raw_path": raw[1] if len(raw) > 1 else None}
    answered = page.ask(method, path, headers(page), body, **more)
    assert answered.status == status, answered.body
    assert page.page_state.project.last_act() == before
    assert b"secret" not in answered.body
    assert b"Traceback" not in answered.body
    assert "default-src 'none'" in answered.headers["content-security-policy"]
    assert "access-control-allow-origin" not in answered.headers
    for token in (page.token, page.owner, page.revoked):
        assert token.encode() not in answered.body


def test_what_they_imitate_passes(page):
    answered = page.ask("GET", "/api/me", [page.bearer])
    assert answered.status == 200
    headers = [page.cookie, ORIGIN, page.form, JSON]
    assert page.ask("POST", "/api/answer", headers, ANSWER).status == 200
    assert page.ask("POST", "/api/undo", headers, b"{}").status == 200


def test_stored_script_is_text_and_never_runs(page):
    text = page.ask("GET", "/api/items/5", [page.bearer])
    assert text.headers["content-type"] == "application/json"
    assert json.loads(text.body)["text"].startswith(SCRIPT)
    assert text.headers["x-content-type-options"] == "nosniff"
    picture = page.ask("GET", "/api/items/0/file", [page.bearer])
    assert picture.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in picture.headers["content-security-policy"]
    assert "default-src 'none'" in picture.headers["content-security-policy"]
    other = page.ask("GET", "/api/items/4/file", [page.bearer])  # a page among the files is never shown
    assert (other.headers["content-type"], other.headers["content-disposition"]) == (
        "application/octet-stream",
        "attachment",
    )
    for part in ("/", "/enter"):
        shown = page.ask("GET", part, [page.bearer])
        assert SCRIPT.encode() not in shown.body
        assert "script-src 'self'" in shown.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in shown.headers["content-security-policy"]


def test_guessed_tokens_are_slowed_down_and_logged(tmp_path):
    with Project.create(tmp_path / "guessed.db", ["sea"]) as project:
        token = new_token(project, "Ann")
    app = make_app(tmp_path / "guessed.db", site=SITE)
    page_state, client = app._app.state.page_state, ("203.0.113.7", 1)
    try:
        statuses = []
        for _ in range(40):
            wrong = ("authorization", f"Bearer {make_token().token}")
            statuses.append(ask(app, "GET", "/api/me", [HOST, wrong], client=client).status)
        assert statuses[0] == 401
        assert statuses[-1] == 429
        right = [HOST, ("authorization", f"Bearer {token}")]
        assert ask(app, "GET", "/api/me", right, client=client).status == 429  # not even the right one, for a while
        assert ask(app, "GET", "/api/me", right, client=("198.51.100.1", 1)).status == 200  # others go on
        logged = [line for line in page_state.project.audit.all() if line.what == "wrong token"]
        assert len(logged) == statuses.count(401)
        assert all(line.detail == {"client": "203.0.113.7"} for line in logged)
        assert token not in str(page_state.project.audit.all())
        form = [HOST, ORIGIN, ("content-type", "application/x-www-form-urlencoded")]
        assert ask(app, "POST", "/enter", form, f"token={token}".encode(), client=("198.51.100.1", 1)).status == 303
        last = page_state.project.audit.all()[-1]
        assert (last.what, last.annotator, last.detail) == ("enter", 1, {})
    finally:
        page_state.close()


def test_a_token_is_nowhere_in_the_files_of_a_project(page):
    for name in os.listdir(page.folder):
        if (page.folder / name).is_file():
            content = (page.folder / name).read_bytes()
            assert page.token.encode() not in content
            assert page.owner.encode() not in content


def test_slow_clients_harm_only_themselves(tmp_path):
    with Project.create(tmp_path / "slow.db", ["sea"], [Item("a", "text", "A.")]):
        pass
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = make_app(tmp_path / "slow.db", site=Site.local(port))
    server = uvicorn.Server(server_config(app, "127.0.0.1", port, head_seconds=0.5))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        slow = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(50)]
        for connection in slow:
            connection.sendall(b"GET /api/me HTTP/1.1\r\nHost: loc")  # and nothing more
        with socket.create_connection(("127.0.0.1", port), timeout=30) as quick:
            quick.sendall(f"GET /api/me HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode())
            assert quick.recv(1 << 16).startswith(b"HTTP/1.1 200")
        for connection in slow:
            assert connection.recv(100) == b""  # the server ends what does not come
            connection.close()
    finally:
        server.should_exit = True
        thread.join()
