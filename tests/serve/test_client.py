"""The client against a server: answers, errors with their place, retries; and ``slatewise rank --url``."""

import ast
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import slatewise.client
from slatewise.cli.main import main
from slatewise.cli.remote import _parts
from slatewise.client import Client, ServiceError
from tests.serve.conftest import make_asking


@pytest.fixture(scope="module")
def url(asking):
    with asking.over_http() as address:
        yield address


def test_the_client_needs_nothing_but_the_standard_library():
    tree = ast.parse(Path(slatewise.client.__file__).read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names)


def test_questions(url, direct):
    client = Client(url)
    assert client.ready()
    assert [one["name"] for one in client.models()] == list(direct)
    answer = client.rank("plays", [3, 1], k=4)
    expected = direct["plays"].rank([3, 1], 4)
    assert [one["ids"] for one in answer.answers] == expected.ids.tolist()
    assert answer.version == client.model("plays")["version"]
    assert client.scores("plays", [3], items=[1]).answers[0]["ids"] == [1]
    assert client.explain("plays", [3], k=2).answers[0]["items"][0]["id"] == expected.ids[0, 0]
    assert client.next_question("tags", [[0.0] * 8], [{"tag 1": 1}]).answers[0]["label"].startswith("tag")
    client.close()


def test_arrays_are_lists(url, direct):
    with Client(url) as client:
        answer = client.rank("plays", np.array([3, 1]), k=4)
        assert [one["ids"] for one in answer.answers] == direct["plays"].rank([3, 1], 4).ids.tolist()
        with pytest.raises(TypeError, match="expected numbers, texts, lists or arrays, found set"):
            client.rank("plays", {1})


def test_refusals_have_their_place(url):
    client = Client(url)
    for ask, status, place in (
        (lambda: client.rank("plays", [1], k=0), 422, "k"),
        (lambda: client.rank("nobody/../x", [1]), 400, "request"),
        (lambda: client.rank("nobody", [1]), 404, "name"),
    ):
        with pytest.raises(ServiceError, match="expected") as refused:
            ask()
        assert (refused.value.status, refused.value.place) == (status, place)
    client.close()
    for wrong in ("localhost:8000", "ftp://x", "http://", "http://x:99999", "http://x:a", "http://[::1"):
        with pytest.raises(ValueError, match="url: expected http"):
            Client(wrong)


class Moody(BaseHTTPRequestHandler):
    """Full, not ready, gone, and then in order; or always full."""

    protocol_version = "HTTP/1.1"
    moods: ClassVar[list] = []

    def do_GET(self):
        self.do_POST()

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        mood = self.moods.pop(0) if self.moods else 200
        if mood == "gone":
            self.close_connection = True
            return
        body = {"place": "queue", "message": "queue: expected room"}
        if mood == 200:
            body = {"model": "m", "version": "1", "answers": [], "warnings": []}
        text = json.dumps(body).encode()
        self.send_response(mood)
        self.send_header("Content-Length", str(len(text)))
        if mood == 429:
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *arguments):
        pass


def test_requests_to_a_full_service_are_repeated():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Moody)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    client = Client(address, timeout=10)
    Moody.moods = [429, 503, "gone"]
    assert client.rank("m", [1]).version == "1"
    Moody.moods = [429] * 10
    with Client(address, retries=2) as patient, pytest.raises(ServiceError, match="expected room") as full:
        patient.rank("m", [1])
    assert (full.value.status, len(Moody.moods)) == (429, 7)
    Moody.moods = [500]
    with pytest.raises(ServiceError):
        client.rank("m", [1])
    Moody.moods = ["gone"]
    assert not client.ready()
    assert client.rank("m", [1]).version == "1"  # on a connection that is new
    client.close()
    server.shutdown()
    server.server_close()
    with Client(address, timeout=1, retries=0) as hasty, pytest.raises(ServiceError) as gone:
        hasty.rank("m", [1])
    assert gone.value.status == 0
    with Client(address) as nobody:
        assert not nobody.ready()


class Strange(BaseHTTPRequestHandler):
    """No service of ours."""

    status, body, later = 200, b"", "0"

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.send_header("Retry-After", self.later)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()
        self.wfile.write(self.body)

    do_GET = do_POST

    def log_message(self, *arguments):
        pass


@pytest.fixture
def strange():
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Strange,), {}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.RequestHandlerClass, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("body", [b"", b"<html>log in</html>", b"[]", b'{"a": 1}', b"\xff"])
def test_what_is_no_answer_of_ours_is_an_error_that_says_so(strange, body, tmp_path, capsys):
    answers, address = strange
    answers.body = body
    with Client(address, timeout=10) as client:
        for ask in (lambda: client.rank("m", [1]), client.models, lambda: client.model("m")):
            with pytest.raises(ServiceError, match="body: expected an answer of slatewise serve, found") as refused:
                ask()
            assert (refused.value.status, refused.value.place) == (200, "body")
    (tmp_path / "plays.csv").write_text("3,1\n")
    with pytest.raises(SystemExit, match="2"):
        main(["rank", "m", str(tmp_path / "plays.csv"), "--out", str(tmp_path / "x.run"), "--url", address])
    assert "m at the service: body: expected an answer" in capsys.readouterr().err


def test_a_redirection_is_not_followed_and_says_what_it_is(strange):
    answers, address = strange
    answers.status = 302
    expected = pytest.raises(ServiceError, match="expected an answer, found status 302")
    with Client(address, "slw_secret", timeout=10) as client, expected:
        client.rank("m", [1])


@pytest.mark.parametrize(("later", "longest"), [("99999999", 75), ("\u00b2", 1), ("soon", 1)])
def test_waiting_times_are_bounded(strange, later, longest, monkeypatch):
    answers, address = strange
    answers.status, answers.later = 503, later
    waited = []
    monkeypatch.setattr(slatewise.client.time, "sleep", waited.append)
    with Client(address, timeout=10, retries=2) as client, pytest.raises(ServiceError):
        client.rank("m", [1])
    assert len(waited) == 2
    assert max(waited) <= longest


def test_a_token_that_no_header_holds_is_refused_and_not_shown():
    for token in ("slw_secret\n", "slw_secret\u0142", "slw_secret\0"):
        with pytest.raises(ValueError, match="token: expected one line") as refused:
            Client("http://127.0.0.1:8000", token)
        assert "secret" not in str(refused.value)


def test_rank_asks_in_parts_that_a_service_takes():
    few, row = [[0.0] * 3] * 300, [0.25] * 150_000
    assert [len(part) for part in _parts(few)] == [128, 128, 44]
    assert [len(part) for part in _parts([row, row, row[:10], row])] == [3, 1]
    assert list(_parts([])) == []


def test_rank_says_that_a_model_is_not_loaded(files, tmp_path, capsys):
    (tmp_path / "plays.csv").write_text("3,1\n")
    starting = make_asking({"plays": files["plays"]}, tmp_path)
    with starting.over_http() as address, pytest.raises(SystemExit, match="2"):
        main(["rank", "plays", str(tmp_path / "plays.csv"), "--out", str(tmp_path / "x.run"), "--url", address])
    assert "plays at the service: expected a model that is loaded, found one that is not yet" in capsys.readouterr().err
    starting.service.close()


def table_of(path):
    return [line.split(",") for line in path.read_text().splitlines()[1:]]


def test_rank_with_a_service_is_rank_with_the_file(url, files, tmp_path, capsys):
    rng = np.random.default_rng(0)
    (tmp_path / "plays.csv").write_text("3,1\n1,2\n999,1\n")
    rows = [f"qid:{n // 3} " + " ".join(f"{c + 1}:{v:.3f}" for c, v in enumerate(rng.normal(size=3))) for n in range(9)]
    (tmp_path / "documents.txt").write_text("\n".join(rows) + "\n")
    np.savetxt(tmp_path / "near.csv", rng.normal(size=(4, 3)), delimiter=",", fmt="%.3f")
    np.savez(tmp_path / "tags.npz", X=rng.normal(size=(4, 8)))
    for name, data in (
        ("plays", "plays.csv"),
        ("documents", "documents.txt"),
        ("near", "near.csv"),
        ("tags", "tags.npz"),
    ):
        for out, arguments in (("here", [str(files[name])]), ("there", [name, "--url", url])):
            model, *rest = arguments
            words = ["rank", model, str(tmp_path / data), "--top", "4", "--out", str(tmp_path / f"{out}.csv"), *rest]
            with pytest.raises(SystemExit, match="0"):
                main(words)
        here, there = table_of(tmp_path / "here.csv"), table_of(tmp_path / "there.csv")
        assert [line[:3] for line in here] == [line[:3] for line in there], name
        np.testing.assert_allclose([float(line[3]) for line in here], [float(line[3]) for line in there], rtol=1e-5)
    assert capsys.readouterr().err.count("1 of 3 queries") == 2
    with pytest.raises(SystemExit, match="2"):
        main(["rank", "nobody", str(tmp_path / "plays.csv"), "--out", str(tmp_path / "x.run"), "--url", url])
    assert "nobody at the service: name: expected one of plays" in capsys.readouterr().err
