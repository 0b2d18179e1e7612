"""Files that change: taken when they are good, refused when they are not, and no request hears of it."""

import asyncio
import os
import shutil
import threading
from pathlib import Path

import httpx
import pytest

from slatewise.serve import models
from slatewise.serve.models import ModelCache, Models
from slatewise.serve.settings import Limits, ModelFile, Settings
from slatewise.serve.worker import make_service
from tests.serve.conftest import fit_plays, make_asking
from tests.serve.real import are_alike


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two models of the same data that rank differently."""
    folder = tmp_path_factory.mktemp("two")
    for seed in (1, 2):
        fit_plays(seed).save(folder / f"{seed}.safetensors")
    return [folder / "1.safetensors", folder / "2.safetensors"]


@pytest.fixture
def served(two, tmp_path):
    (tmp_path / "spool").mkdir()
    shutil.copy(two[0], tmp_path / "plays.safetensors")
    asked = make_asking({"plays": tmp_path / "plays.safetensors"}, tmp_path / "spool", n_jobs=1)
    yield asked, tmp_path / "plays.safetensors"
    asked.service.close()


def version_of(asked):
    return asked.get("/v1/models/plays")[1].get("version")


def replace_by(path, source):
    shutil.copy(source, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def test_nothing_is_answered_before_the_model_is_there(served):
    asked, _ = served
    assert asked.get("/ready") == (503, {"status": "starting", "waits_for": ["1 of 1 models"]})
    assert asked.raw("GET", "/ready").headers["retry-after"] == "1"
    assert asked.get("/health")[0] == 200
    answered = asked.raw("POST", "/v1/models/plays/rank", b'{"queries": [1]}')
    assert (answered.status, answered.headers["retry-after"]) == (503, "1")
    assert asked.get("/v1/models/plays")[1] == {"name": "plays", "ready": False, "refused": None}
    asked.service.models.look()
    assert asked.get("/ready")[0] == 200
    assert "retry-after" not in asked.raw("GET", "/ready").headers
    assert asked.rank("plays", queries=[1])[0] == 200


def test_ready_waits_for_all_workers(two, tmp_path):
    """A client cannot choose its worker; one that takes the place of a dead one is not waited for: it is not asked."""
    for name in ("spool", "warm"):
        (tmp_path / name).mkdir()
    shared = {"n_jobs": 1, "workers": 2, "ready_folder": str(tmp_path / "warm")}
    first, second, later = (make_asking({"plays": two[0]}, tmp_path / "spool", place, **shared) for place in (0, 1, 1))
    first.service.models.look()
    assert first.rank("plays", queries=[1])[0] == 200
    assert first.get("/ready") == (503, {"status": "starting", "waits_for": ["1 of 2 workers"]})
    waits_for = ["1 of 1 models", "1 of 2 workers"]
    assert second.get("/ready") == (503, {"status": "starting", "waits_for": waits_for})
    second.service.models.look()
    for one in (first, second):
        assert one.get("/ready") == (200, {"status": "ready", "waits_for": []})
    assert later.get("/ready") == (503, {"status": "starting", "waits_for": ["1 of 1 models"]})
    for one in (first, second, later):
        one.service.close()


@pytest.mark.parametrize("put", [replace_by, lambda path, source: shutil.copy(source, path)], ids=["renamed", "copied"])
def test_a_new_file_is_taken(served, two, put):
    """Also one that is copied over the old one, whose mapped arrays nobody may change."""
    asked, path = served
    asked.service.models.look()
    before, answer = version_of(asked), asked.rank("plays", queries=[1, 2, 3])
    put(path, two[1])
    assert asked.rank("plays", queries=[1, 2, 3]) == answer
    asked.service.models.look()
    assert version_of(asked) != before
    assert asked.rank("plays", queries=[1, 2, 3]) != answer
    assert len(list((path.parent / "spool").iterdir())) == 1
    put(path, two[0])
    asked.service.models.look()
    assert asked.rank("plays", queries=[1, 2, 3]) == answer


def cut(path, files):
    path.write_bytes(path.read_bytes()[:-100])


def flipped(path, files):
    content = bytearray(path.read_bytes())
    content[-50] ^= 1
    path.write_bytes(bytes(content))


BAD = {
    "cut": (cut, "plays.safetensors: tensor"),
    "a bit flipped": (flipped, "does not match its checksum"),
    "empty": (lambda path, files: path.write_bytes(b""), "expected"),
    "no model": (lambda path, files: path.write_text("hello " * 100), "expected"),
    "another class": (
        lambda path, files: shutil.copy(files["near"], path),
        "expected a LatentRanker, found a MetricRan",
    ),
    "gone": (lambda path, files: path.unlink(), "No such file"),
    "a folder": (lambda path, files: (path.unlink(), path.mkdir()), "found a folder or device"),
    "a pipe": (lambda path, files: (path.unlink(), os.mkfifo(path)), "found a folder or device"),
    "without an end": (lambda path, files: (path.unlink(), path.symlink_to("/dev/zero")), "found a folder or device"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_file_is_refused_and_the_old_one_stays(served, two, files, bad):
    asked, path = served
    asked.service.models.look()
    before, answer = version_of(asked), asked.rank("plays", queries=[1, 2, 3])
    BAD[bad][0](path, files)
    for _ in range(2):
        asked.service.models.look()
    assert version_of(asked) == before
    assert asked.rank("plays", queries=[1, 2, 3]) == answer
    assert BAD[bad][1] in asked.get("/v1/models/plays")[1]["refused"]
    refused = 'slatewise_swaps_total{model="plays",result="refused"} 1.0'
    assert refused in asked.raw("GET", "/metrics").body.decode()
    if path.is_dir():
        path.rmdir()
    replace_by(path, two[1])
    asked.service.models.look()
    assert version_of(asked) != before
    assert asked.get("/v1/models/plays")[1]["refused"] is None


def test_a_link_that_is_led_elsewhere_is_a_new_model(two, tmp_path):
    link, spool = tmp_path / "plays.safetensors", tmp_path / "spool"
    spool.mkdir()
    link.symlink_to(two[0])
    (started,) = Settings((str(link),)).check().files()
    asked = make_asking({started.name: started.path}, spool, n_jobs=1)
    asked.service.models.look()
    before = version_of(asked)
    link.unlink()
    link.symlink_to(two[1])
    asked.service.models.look()
    assert version_of(asked) not in (before, None)
    asked.service.close()


def test_a_service_that_ends_leaves_off_warming_up(served, monkeypatch):
    """A stop does not wait for all that is still to be compiled, and calls no model bad for it."""
    asked, _ = served
    warmed = []
    monkeypatch.setattr(models, "_answer", lambda endpoint, request: (warmed.append(request), asked.service.close()))
    asked.service.models.look()
    assert len(warmed) == 1
    assert asked.service.models.about("plays") == {"name": "plays", "ready": False, "refused": None}
    assert list(Path(asked.settings.cache_folder).iterdir()) == []


REASONS = {
    "model: expected one of A, B, found C": lambda copy: ValueError("model: expected one of A, B, found C"),
    "tensor 'a': expected 3, found 2": lambda copy: ValueError(f"{copy}: tensor 'a': expected 3, found 2"),
    "Too many open files": lambda copy: OSError(24, "Too many open files", str(copy)),
    "MemoryError": lambda copy: MemoryError(),
    "KeyError: 'rows'": lambda copy: KeyError("rows"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_a_refusal_names_the_file_that_was_given(served, monkeypatch, reason):
    """Whatever is wrong with it, and not the copy, which nobody finds."""
    asked, path = served

    def fails(copy, **_):
        raise REASONS[reason](copy)

    monkeypatch.setattr("slatewise.serve.models.load", fails)
    asked.service.models.look()
    assert asked.get("/v1/models")[1]["models"] == [{"name": "plays", "ready": False, "refused": f"{path}: {reason}"}]


def test_on_ready_is_called_once(two, tmp_path):
    (tmp_path / "spool").mkdir()
    called, files = [], [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    shutil.copy(two[0], files[0])
    files[1].write_text("no model")
    settings = Settings(tuple(map(str, files)), cache_folder=str(tmp_path / "spool"), n_jobs=1)
    service = make_service(settings, on_ready=lambda: called.append(service.state))
    for source in (None, two[0], two[1]):
        if source is not None:
            replace_by(files[1], source)
        assert called == ([] if source in (None, two[0]) else ["ready"])
        service.models.look()
    assert called == ["ready"]
    service.close()


def test_what_nobody_foresaw_is_a_refusal_too(served, two, monkeypatch, caplog):
    asked, path = served
    asked.service.models.look()
    before = version_of(asked)

    def fails(*_, **__):
        raise KeyError("rows")

    replace_by(path, two[1])
    with monkeypatch.context() as changed, caplog.at_level("ERROR", "slatewise.serve"):
        changed.setattr("slatewise.serve.models.load", fails)
        asked.service.models.look()
    assert version_of(asked) == before
    assert "KeyError: 'rows'" in asked.get("/v1/models/plays")[1]["refused"]
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("bad", ["cut", "gone"])
def test_a_worker_that_starts_beside_a_bad_file_answers_as_the_others(served, bad):
    asked, path = served
    asked.service.models.look()
    answer = asked.rank("plays", queries=[1, 2, 3])
    BAD[bad][0](path, {})
    later = make_asking({"plays": path}, path.parent / "spool", n_jobs=1)
    later.service.models.look()
    assert later.service.state == "ready"
    assert later.rank("plays", queries=[1, 2, 3]) == answer
    assert BAD[bad][1] in later.get("/v1/models/plays")[1]["refused"]
    later.service.close()


def test_a_file_that_is_touched_is_no_new_version(served):
    asked, path = served
    asked.service.models.look()
    version = asked.service.models.get("plays")
    os.utime(path, ns=(1, 1))
    asked.service.models.look()
    assert asked.service.models.get("plays") is version


def test_swaps_under_load(served, two):
    """Every answer is whole and of one version, and none is lost. ``python -m tests.serve.endurance`` does 200."""
    asked, path = served
    asked.service.models.look()
    right = {}
    for source in (two[1], two[0]):
        replace_by(path, source)
        asked.service.models.look()
        right[version_of(asked)] = asked.rank("plays", queries=[1, 2, 3])[1]["answers"]
    done = threading.Event()

    def swap():
        for number in range(10):
            replace_by(path, two[(number + 1) % 2])
            asked.service.models.look()
        done.set()

    async def client(session):
        seen = set()
        while not done.is_set():
            answered = await session.post("/v1/models/plays/rank", json={"queries": [1, 2, 3]})
            assert answered.status_code == 200
            body = answered.json()
            assert are_alike(body["answers"], right[body["version"]])
            seen.add(body["version"])
        return seen

    async def work():
        transport = httpx.ASGITransport(asked.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as session:
            swapping = asyncio.to_thread(swap)
            return (await asyncio.gather(swapping, *(client(session) for _ in range(4))))[1:]

    assert set.union(*asyncio.run(work())) == set(right)


def test_workers_share_one_copy(two, tmp_path):
    spool = ModelCache(tmp_path)
    one, version = spool.copy("plays", two[0])
    other, _ = spool.copy("plays", two[0])
    assert one == other
    assert os.stat(one).st_ino == os.stat(other).st_ino
    newer, second = spool.copy("plays", two[1])
    spool.copy("plays-2", two[0])
    spool.keep_only("plays", second)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([f"plays-2@{version}.safetensors", newer.name])


@pytest.mark.parametrize("text", ["a b.safetensors", "=x.safetensors", ".safetensors", "ä.safetensors"])
def test_names_that_no_path_has(text):
    with pytest.raises(ValueError, match="model: expected a name of letters"):
        ModelFile.parse(text)


def test_two_of_a_name_and_none():
    with pytest.raises(ValueError, match="'a' twice: name one by NAME=PATH"):
        Models([ModelFile.parse("a.safetensors"), ModelFile.parse("b/a.safetensors")], ModelCache("."), Limits())
    with pytest.raises(ValueError, match="model: expected one or more"):
        Models([], ModelCache("."), Limits())
