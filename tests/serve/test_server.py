"""The service as it is started: signals under load, workers that are killed, tokens, bad arguments."""

import hashlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pytest

from slatewise.cli.main import main
from slatewise.serve.metrics import SHARED_FOLDER, Metrics
from slatewise.serve.settings import TokenFile, add_token
from slatewise.serve.supervisor import own_folder
from slatewise.web.server import bind
from slatewise.web.tokens import make_token
from tests.serve.conftest import make_asking
from tests.serve.real import Load, running


@pytest.fixture(scope="module")
def right(files, asking):
    version = hashlib.sha256(files["plays"].read_bytes()).hexdigest()[:12]
    return {version: asking.rank("plays", queries=[1, 2, 3], k=5)[1]["answers"]}


def test_a_stop_under_load_loses_nothing(files, right):
    """``python -m tests.serve.endurance stops`` does 200."""
    with running(files["plays"]) as served:
        load = Load(served.port, right)
        with load.of(4):
            while load.answered < 40:
                time.sleep(0.005)
            with closing(socket.create_connection(("127.0.0.1", served.port))) as strange:
                strange.sendall(b"no HTTP at all\r\n\r\n")
                strange.recv(1000)
            assert served.stop() == 0
        assert (load.lost, load.wrong) == ([], [])
        assert len(served.events("Invalid HTTP request received.")) == 1  # of uvicorn
        (ready,) = served.events("ready")
        assert ready["models"] == ["plays"]
    assert all(json.loads(line)["process"] for line in served.lines)  # every line of the log is JSON


@pytest.mark.parametrize("workers", [1, 2])
def test_the_address_is_printed_when_all_models_answer(files, tmp_path, workers):
    """Not while one is loaded or refused; what listens meanwhile says when to come back."""
    other = tmp_path / "other.safetensors"
    other.write_text("no model")
    with running(files["plays"], other, "--workers", workers, ready=False) as served:
        while len(served.events("model refused")) < workers:
            time.sleep(0.02)
        with closing(served.connect()) as connection:
            connection.request("GET", "/ready")
            answered = connection.getresponse()
            assert (answered.status, answered.headers["Retry-After"]) == (503, "1")
            answered.read()
        assert select.select([served.process.stdout], [], [], 0)[0] == []
        shutil.copy(files["near"], tmp_path / "new")
        os.replace(tmp_path / "new", other)
        served.wait_until_ready()


def test_workers_are_replaced_and_end_with_who_started_them(files, right):
    """Requests on the connections of a killed worker break, others are answered, and all answers are right."""
    with running(files["plays"], "--workers", 2) as served:
        load = Load(served.port, right)
        with load.of(3):
            while load.answered < 30:
                time.sleep(0.005)
            victim = served.workers()[0]
            os.kill(victim, signal.SIGKILL)
            while len(served.events("model")) < 3:
                time.sleep(0.02)
            before = load.answered
            while load.answered < before + 30:
                time.sleep(0.005)
        assert load.wrong == []
        (death,) = served.events("worker died")
        assert (death["worker"], death["code"]) == (victim, -signal.SIGKILL)
        status, figures = served.get("/metrics")
        assert status == 200
        assert b"slatewise_answers_total" in figures
        workers = served.workers()[1:]
        maps = [Path(f"/proc/{worker}/maps").read_text() for worker in workers]
        places = [{line.split()[4] for line in text.splitlines() if "plays@" in line} for text in maps]
        assert len(places) == 2  # both map the one file
        assert places[0] == places[1] != set()
        served.process.kill()
        served.process.wait(60)
        for _ in range(3000):
            if not any(map(_is_alive, workers)):
                break
            time.sleep(0.02)
        else:
            raise AssertionError("workers outlive their supervisor")
    assert all(json.loads(line)["process"] for line in served.lines)


def _is_alive(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_end_of_an_answer_does_not_wait_for_the_client():
    """Asyncio switches Nagle's algorithm off for sockets whose protocol is named, and leaves 40 ms to others."""
    with bind("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP


def test_tokens_are_needed_where_others_can_reach_it(files, tmp_path, capsys, caplog):
    tokens = tmp_path / "tokens.txt"
    with pytest.raises(SystemExit, match="0"):
        main(["serve", "--make-token", str(tokens)])
    token = capsys.readouterr().out.strip()
    assert token not in tokens.read_text()
    assert tokens.stat().st_mode & 0o077 == 0
    served = make_asking({"plays": files["plays"]}, tmp_path, host="0.0.0.0", token_file=str(tokens))
    served.service.models.look()

    def status(path, *shown):
        return served.raw("GET", path, headers=[("authorization", f"Bearer {one}") for one in shown]).status

    for path in ("/metrics", "/openapi.json", "/v1/models", "/v1/models/plays", "/v1/models/plays/rank"):
        assert status(path) == 401
        assert status(path, token) in (200, 405)
    assert status("/v1/models", make_token().token) == 401
    assert (status("/health"), status("/ready")) == (200, 200)
    other = make_token()
    tokens.write_text(f"# new ones\n\n{other.token} of Ann\n{make_token().digest}\n")
    assert (status("/v1/models", token), status("/v1/models", other.token)) == (401, 200)
    with caplog.at_level("INFO", "slatewise.serve"):
        caplog.clear()
        tokens.write_text("password\n")
        assert status("/v1/models", other.token) == status("/v1/models", token) == 401
        tokens.write_bytes(b"\xff\xfe")
        assert status("/v1/models", other.token) == 401
        tokens.unlink()
        assert status("/v1/models", other.token) == 401
        tokens.write_text(other.token)
        assert status("/v1/models", other.token) == 200
    said = [record.fields.get("reason", record.fields.get("tokens")) for record in caplog.records]
    assert [one if one == 1 else one.removeprefix(f"{tokens}:")[:20] for one in said] == [
        "1:1: expected a toke", " expected text in UT", "[Errno 2] No such fi", 1
    ]  # fmt: skip
    served.service.close()


def test_a_token_file_that_opens_nothing_ends_no_service(files, tmp_path):
    """Neither one that runs, which a pipe must not keep waiting, nor a worker that takes the place of a dead one."""
    tokens, new = tmp_path / "tokens.txt", make_token()
    tokens.write_text("# all of them were taken out\n")
    served = make_asking({"plays": files["plays"]}, tmp_path, host="0.0.0.0", token_file=str(tokens))

    def status(path):
        return served.raw("GET", path, headers=[("authorization", f"Bearer {new.token}")]).status

    assert (status("/v1/models"), served.raw("GET", "/health").status) == (401, 200)
    tokens.write_text(new.token)
    assert status("/v1/models") == 200
    tokens.unlink()
    os.mkfifo(tokens)
    assert status("/v1/models") == 401
    with pytest.raises(ValueError, match=r"tokens.txt: expected a plain file, found a folder or device"):
        add_token(tokens)
    served.service.close()


def test_a_token_is_seen_to_be_another_whatever_the_clock_says(tmp_path):
    tokens, old, new = tmp_path / "tokens.txt", make_token(), make_token()
    tokens.write_text(old.token)
    keys = TokenFile(tokens).keys
    assert keys.find(old.token) is not None
    then = tokens.stat().st_mtime_ns
    time.sleep(0.02)  # longer than the clock of a file system waits
    tokens.write_text(new.token)
    os.utime(tokens, ns=(then, then))
    assert keys.find(old.token) is None
    assert keys.find(new.token) is not None


def test_a_new_token_has_a_line_of_its_own(tmp_path):
    tokens, old = tmp_path / "tokens.txt", make_token()
    tokens.write_text(old.token)  # as printf writes it, without an end of the line
    new = [add_token(tokens), add_token(tokens)]
    assert [TokenFile(tokens).keys.find(token).who for token in (old.token, *new)] == [1, 2, 3]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not take room before")
def test_workers_have_the_room_of_their_figures_before_a_disk_is_full(tmp_path, monkeypatch):
    """Prometheus' files are mapped and have holes; to write into one where there is no room kills a process."""
    monkeypatch.setenv(SHARED_FOLDER, str(tmp_path))
    Metrics()
    taken = {path.name.rpartition("_")[0]: path.stat().st_blocks * 512 for path in tmp_path.iterdir()}
    assert set(taken) == {"counter", "histogram", "gauge_livemax", "gauge_livesum"}
    assert min(taken.values()) >= 1 << 20


def test_what_a_killed_service_left_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, foreign = tmp_path / "slatewise-serve-left", tmp_path / "slatewise-serve-other"
    for folder in (left, foreign):
        folder.mkdir()
        (folder / "model").write_text("large")
    (left / "lock").touch()
    with own_folder() as (first, _), own_folder() as (second, _):
        assert set(tmp_path.iterdir()) == {foreign, first, second}
    assert list(tmp_path.iterdir()) == [foreign]


WRONG = {
    "strangers without tokens": (["--host", "0.0.0.0"], "--token-file: expected where others can reach the service"),
    "a model twice": (["old/plays.safetensors", "--workers", "2"], "found 'plays' twice: name one by NAME=PATH"),
    "no file": (["nothing.safetensors"], "nothing.safetensors: expected a model file"),
    "no tokens": (["--token-file", "EMPTY"], "expected at least one token, found none"),
    "no token": (["--token-file", "WORDS"], "WORDS:1:1: expected a token (slw_...) or its sha256, found another word"),
    "a strange origin": (["--origin", "x", "--token-file", "TOKENS"], "origin: expected an address"),
    "a port that is taken": (
        ["--host", "256.0.0.1"],
        "256.0.0.1:0: expected an address of this machine and a free port",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_arguments_end_with_one_line(files, tmp_path, monkeypatch, capsys, wrong):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "TOKENS").write_text(make_token().token)
    (tmp_path / "WORDS").write_text("password")
    (tmp_path / "EMPTY").touch()
    arguments, message = WRONG[wrong]
    with pytest.raises(SystemExit, match="2"):
        main(["serve", str(files["plays"]), "--port", "0", *arguments])
    assert_told(capsys, message)


def assert_told(capsys, message):
    """One line says what is wrong, and no address was announced before."""
    said = capsys.readouterr()
    assert message in said.err
    assert (len(said.err.strip().splitlines()), said.out) == (1, "")


def test_a_service_without_room_for_copies(files, monkeypatch, capsys):
    def full():
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", full)
    with pytest.raises(SystemExit, match="2"):
        main(["serve", str(files["plays"]), "--port", "0"])
    assert_told(capsys, "No usable temporary directory found")


def test_a_service_without_a_model(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["serve", "--port", "0"])
    assert_told(capsys, "model: expected one or more, each with a name of its own, found none")


def test_without_the_extra_the_command_says_what_to_install(files, monkeypatch, capsys):
    monkeypatch.setattr("slatewise.cli.main.find_spec", lambda name: None if name == "msgspec" else name)
    with pytest.raises(SystemExit, match="2"):
        main(["serve", str(files["plays"])])
    assert capsys.readouterr().err.strip() == (
        "slatewise: serve: expected msgspec to be installed: pip install 'slatewise[serve]'"
    )
