"""Small models of every kind, in files, and a service of them that is asked without a server."""

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pytest
import uvicorn

pytest.importorskip("starlette", reason="the extra serve is not installed")

from slatewise import CStarRanker, LatentFeatureRanker, LatentRanker, MarginRanker, MetricRanker, datasets, load
from slatewise.serve.batching import install_warning_hook
from slatewise.serve.settings import Limits, Settings
from slatewise.serve.worker import make_app, make_service
from slatewise.web.server import bind, server_config
from tests.web.asking import ask

HERE = ("host", "127.0.0.1:8000")
JSON, MESSAGEPACK = "application/json", "application/msgpack"
SMALL = {"n_components": 4, "epochs": 2, "validation_fraction": 0, "learning_rate": 0.3, "max_norm": 1.5}


def fit_plays(seed=0, names=False):
    pairs = datasets.make_sessions(120, 30, random_state=seed).sessions.pairs()
    queries, items = (pairs.queries, pairs.items)
    if names:
        queries, items = (np.array([f"item {number:02}" for number in part]) for part in (queries, items))
    return LatentRanker(**SMALL, stages=1 if names else 2, random_state=seed).fit(queries, items)


def fit_scenes():
    scenes = datasets.make_label_scenes(80, n_labels=6, random_state=0)
    names = [f"tag {number}" for number in range(6)]
    return CStarRanker(core=2, C=1.0).fit(scenes.X, scenes.Y, label_names=names)


@pytest.fixture(autouse=True)
def heard():
    """Warnings go where the service lets them; pytest takes that back after each test."""
    install_warning_hook()


def save_models(folder):
    """Write one file for each kind of model; rankers of sessions are in ``test_sessions.py``."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    models = {
        "plays": fit_plays(),
        "names": fit_plays(names=True),
        "rows": LatentFeatureRanker(**SMALL).fit(X, rng.integers(0, 12, 60)),
        "tags": fit_scenes(),
        "documents": MarginRanker(C=1.0).fit(X, (X[:, 0] > 0).astype(int), qid=np.repeat(np.arange(6), 10)),
        "near": MetricRanker().fit(X, (X[:, 0] > 0).astype(int)),
    }
    for name, model in models.items():
        model.save(folder / f"{name}.safetensors")
    return {name: folder / f"{name}.safetensors" for name in models}


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """One file for each kind of model."""
    return save_models(tmp_path_factory.mktemp("models"))


@dataclass
class Asking:
    """Sends requests to an application, in JSON by default."""

    app: object
    service: object
    settings: Settings

    def raw(self, method, path, body=b"", headers=(), **options):
        return ask(self.app, method, path, [HERE, *headers], body, **options)

    def get(self, path):
        answered = self.raw("GET", path)
        return answered.status, json.loads(answered.body)

    def post(self, path, value, content_type=JSON, accept=JSON):
        encode = msgspec.json.encode if content_type == JSON else msgspec.msgpack.encode
        answered = self.raw("POST", path, encode(value), [("content-type", content_type), ("accept", accept)])
        decode = msgspec.json.decode if accept == JSON else msgspec.msgpack.decode
        return answered.status, decode(answered.body)

    @contextmanager
    def over_http(self):
        """Put it on a socket of its own, in a thread."""
        with bind("127.0.0.1", 0) as listening:
            port = listening.getsockname()[1]
            app = make_app(replace(self.settings, port=port), self.service)
            server = uvicorn.Server(server_config(app, "127.0.0.1", port))
            server.config.lifespan = "off"
            thread = threading.Thread(target=lambda: server.run(sockets=[listening]))
            thread.start()
            while not server.started:
                time.sleep(0.01)
            try:
                yield f"http://127.0.0.1:{port}"
            finally:
                server.should_exit = True
                thread.join()

    def rank(self, name, **fields):
        return self.post(f"/v1/models/{name}/rank", fields)


def make_asking(files, folder, place=0, **settings):
    made = Settings(tuple(f"{name}={path}" for name, path in files.items()), cache_folder=str(folder), **settings)
    service = make_service(made, place)
    return Asking(make_app(made, service), service, made)


@pytest.fixture(scope="session")
def asking(files, tmp_path_factory):
    patient = Limits(seconds=600)  # a machine that does much else is slow, and a test never times
    asked = make_asking(files, tmp_path_factory.mktemp("spool"), n_jobs=1, limits=patient)
    asked.service.models.look()
    assert asked.service.models.ready, [asked.service.models.about(name) for name in files]
    yield asked
    asked.service.close()


@pytest.fixture(scope="session")
def direct(files):
    """The same models, asked without a service."""
    return {name: load(path) for name, path in files.items()}
