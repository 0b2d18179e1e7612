"""Finding data sets: a folder, SLATEWISE_DATA, the cache, scikit-learn, a checked download; or a clear error."""

import gzip
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from slatewise import datasets
from slatewise.datasets import loading
from slatewise.datasets.loading import fetch
from slatewise.datasets.records import Download, LabelledSet, RankingSet
from slatewise.datasets.table import TABLE


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No data set on this machine."""
    monkeypatch.delenv("SLATEWISE_DATA", raising=False)
    monkeypatch.setattr(loading, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path


def put_wine(folder):
    (folder / "uci-wine").mkdir(parents=True)
    (folder / "uci-wine" / "wine.csv").write_text("1,2,3\n4,5,1\n")


def test_the_folder_given_comes_first(nowhere, monkeypatch):
    put_wine(nowhere / "given")
    monkeypatch.setenv("SLATEWISE_DATA", str(nowhere / "elsewhere"))
    wine = datasets.load("uci-wine", LabelledSet, folder=nowhere / "given")
    assert wine.X.tolist() == [[1, 2], [4, 5]]
    assert wine.class_names[wine.y].tolist() == ["3", "1"]


def test_the_environment_comes_before_the_cache(nowhere, monkeypatch):
    put_wine(nowhere / "cache")
    assert len(datasets.load("uci-wine", LabelledSet).y) == 2
    (nowhere / "named" / "uci-wine").mkdir(parents=True)
    (nowhere / "named" / "uci-wine" / "wine.csv").write_text("1,2,3\n")
    monkeypatch.setenv("SLATEWISE_DATA", str(nowhere / "named"))
    assert len(datasets.load("uci-wine", LabelledSet).y) == 1


@pytest.mark.parametrize(
    ("name", "shape", "counts"),
    [
        ("uci-wine", (178, 13), [59, 71, 48]),
        ("uci-wdbc", (569, 30), [212, 357]),
        ("digits", (1797, 64), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]),
    ],
)
def test_scikit_learn_fills_in(nowhere, name, shape, counts):
    data = datasets.load(name, LabelledSet)
    assert data.X.shape == shape
    assert np.bincount(data.y).tolist() == counts
    assert len(data.class_names) == len(counts)
    assert data.name == name
    assert datasets.describe(name).present


@pytest.mark.parametrize("name", [name for name, entry in TABLE.items() if not (entry.builtin or entry.download)])
def test_what_is_missing_is_an_error_that_says_where_to_get_it(nowhere, name):
    assert not datasets.describe(name).present
    with pytest.raises(datasets.DatasetNotFound) as caught:
        datasets.load(name)
    message = str(caught.value)
    assert message.startswith(f"{name}: expected a folder {TABLE[name].folder_name} with {TABLE[name].files[0]}")
    assert str(nowhere / "cache") in message
    assert "get it from" in message
    assert "SLATEWISE_DATA" in message


def test_an_explicit_folder_is_never_answered_by_a_download(nowhere):
    with pytest.raises(datasets.DatasetNotFound, match="aotm_bigrams: expected a folder"):
        datasets.load("aotm_bigrams", folder=nowhere)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"name: expected one of aotm_bigrams, .*uci-wine, found 'wine'"):
        datasets.load("wine")
    with pytest.raises(ValueError, match="name: expected one of"):
        datasets.describe("wine")


def test_another_kind_is_an_error():
    with pytest.raises(ValueError, match=r"digits: expected a RankingSet, found a LabelledSet \(labelled\)"):
        datasets.load("digits", RankingSet)
    with pytest.raises(ValueError, match="digits: expected a RankingSet"):
        datasets.load_official_runs("digits")


def test_every_set_says_what_it_is():
    for name in datasets.names():
        told = datasets.describe(name)
        assert told.name == name
        for text in (told.kind, told.size, told.terms, told.source):
            assert text
            assert "\n" not in text


@pytest.fixture
def server():
    """A web server on this machine that hands out one gzipped text at /good."""
    body = gzip.compress(b"one,two\nthree,four\n")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/good" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


CONTENT = hashlib.sha256(b"one,two\nthree,four\n").hexdigest()


def test_a_download_is_checked_and_kept(server, tmp_path):
    fetch(Download(f"{server}/good", "pairs.csv.gz", CONTENT), tmp_path / "set")
    assert gzip.decompress((tmp_path / "set" / "pairs.csv.gz").read_bytes()) == b"one,two\nthree,four\n"
    assert [path.name for path in (tmp_path / "set").iterdir()] == ["pairs.csv.gz"]


@pytest.mark.parametrize(
    ("page", "sha256", "message"), [("good", "0" * 64, "expected SHA-256"), ("bad", CONTENT, "404")]
)
def test_a_bad_download_leaves_nothing_behind(server, tmp_path, page, sha256, message):
    with pytest.raises(datasets.DatasetNotFound, match=message):
        fetch(Download(f"{server}/{page}", "pairs.csv.gz", sha256), tmp_path)
    assert list(tmp_path.iterdir()) == []
