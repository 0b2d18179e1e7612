"""Runs too long for the suite, each one line of JSON: ``python -m tests.serve.endurance NAME [n]``.

``swaps``: a model file is replaced n times (200) under load, by turns renamed into place and copied over.
``stops``: a service is stopped by SIGTERM n times (200) under load, each tenth time one of two workers, later after the
first answers each time; a second number says how many were done before.
``kills``: one of two workers is killed (SIGKILL) n times (30) under load.
``memory``: resident memory of a worker after a tenth of n requests (1,000,000) and after all of them.
``fuzz``: n requests (100,000) that schemathesis makes from the document, to models of every kind; a second number is
the first seed, for several runs beside each other.
``resets``: n requests (4,000) of wrong types, most of them broken off in the middle.
``warm``: what is compiled or read from a cache of compiled kernels after readiness said yes.
"""

import gc
import hashlib
import http.client
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from slatewise import load as load_model
from tests.serve.real import PATH, RANK, Load, break_off, running

MALFORMED = "Invalid HTTP request received."


def right_answers(*paths):
    """Return what models answer to the request of the load, by version, from the library itself."""
    right = {}
    for path in paths:
        found = load_model(path).rank([1, 2, 3], 5)
        parts = zip([1, 2, 3], found.lists(), found.scores, strict=True)
        right[version_of(path)] = [
            {"query": query, "ids": ids.tolist(), "scores": scores.tolist(), "unknown": 0, "nothing_known": False}
            for query, ids, scores in parts
        ]
    return right


def version_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def figures(load):
    return {
        "answered": load.answered,
        "lost": len(load.lost),
        "wrong or mixed": len(load.wrong),
        "closed between requests": load.between,
        "reset before they were taken": load.reset,
        "told to come later": load.refused,
        "connections that nobody took": load.unreached,
    }


def resident(process):
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


def swaps(folder, n):
    models = two_models(folder)
    file = folder / "plays.safetensors"
    shutil.copy(models[0], file)
    sizes = []
    with running(file) as served:
        load = Load(served.port, right_answers(*models))
        with load.of(4):
            for number in range(n):
                source = models[(number + 1) % 2]
                if number % 3 == 2:
                    shutil.copy(source, file)
                else:
                    shutil.copy(source, file.with_suffix(".new"))
                    os.replace(file.with_suffix(".new"), file)
                while json.loads(served.get("/v1/models/plays")[1])["version"] != version_of(source):
                    time.sleep(0.05)
                sizes.append(resident(served.process.pid))
        taken = len(served.events("model")) - 1
    size = {"KiB after a tenth": sizes[n // 10], "KiB after all": sizes[-1]}
    return {"swaps": taken, **figures(load), **size}


def stops(folder, n, done=0):
    """Stop again and again; what the service took and answered, by its own log, is what the clients got."""
    file = folder / "plays.safetensors"
    shutil.copy(two_models(folder)[0], file)
    right, total = right_answers(file), {"stops": 0}
    for number in range(done, done + n):
        with running(file, *(["--workers", 2] if number % 10 == 9 else [])) as served:
            load = Load(served.port, right)
            with load.of(4):
                while load.answered < 50:
                    time.sleep(0.002)
                time.sleep(0.001 * (number % 50))
                assert served.stop() == 0
        ends = served.events("stopped")
        own = {
            "taken": sum(one["requests"] for one in ends),
            "answered by the service": sum(one["answered"] for one in ends),
            "answers that clients got": load.answered + load.refused + served.asked,
        }
        for name, value in {"stops": 1, **figures(load), **own}.items():
            total[name] = total.get(name, 0) + value
        if number % 10 == 9:
            print(json.dumps(total), file=sys.stderr, flush=True)
    return total


def kills(folder, n):
    """Kill workers by turns, each when it is old enough that its death is not taken for a fault of the service."""
    file = folder / "plays.safetensors"
    shutil.copy(two_models(folder)[0], file)
    away, quiet = [], []
    with running(file, "--workers", 2) as served:
        load = Load(served.port, right_answers(file))
        with load.of(4):
            for number in range(n):
                time.sleep(6)
                victim, before = served.workers()[number], load.answered
                n_models = len(served.events("model"))
                os.kill(victim, signal.SIGKILL)
                began = time.monotonic()
                while load.answered < before + 20:
                    time.sleep(0.002)
                quiet.append(time.monotonic() - began)
                while len(served.events("model")) == n_models:
                    time.sleep(0.01)
                away.append(time.monotonic() - began)
        deaths = len(served.events("worker died"))
    found = figures(load)
    broken = found.pop("lost") + found.pop("closed between requests") + found.pop("reset before they were taken")
    longest = {"s until 20 more answers": max(quiet), "s until a new worker answers": max(away)}
    return {"kills": deaths, **found, "requests of the killed that broke": broken, **longest}


def memory(folder, n):
    file = folder / "plays.safetensors"
    shutil.copy(two_models(folder)[0], file)
    bodies = [RANK, json.dumps({"queries": [4], "k": 3, "exclude": [[1, 2]]}).encode(), b'{"queries": [1], "k": 0}']
    sizes = {}
    with running(file) as served:
        connection = http.client.HTTPConnection("127.0.0.1", served.port)
        for number in range(1, n + 1):
            connection.request("POST", PATH, bodies[number % 3], {"Content-Type": "application/json"})
            connection.getresponse().read()
            if number % (n // 10) == 0:
                sizes[number] = resident(served.process.pid)
                print(json.dumps({"requests": number, "KiB": sizes[number]}), file=sys.stderr, flush=True)
        connection.close()
    early, late = sizes[n // 10], sizes[n // 10 * 10]
    return {"requests": n, "KiB after a tenth": early, "KiB after all": late, "grown by": late / early - 1}


def resets(folder, n, seed=0):
    file = folder / "plays.safetensors"
    shutil.copy(two_models(folder)[0], file)
    with running(file) as served:
        break_off(served.port, n, seed)
        code = served.stop()
        failures = [one["event"] for one in map(json.loads, served.lines) if one["level"] == "error"]
    return {"requests": n, "exit code": code, "malformed": len(served.events(MALFORMED)), "failures": failures}


def fuzz(folder, n, seed=0):
    from tests.serve.generated import fuzz as made

    return made(folder, n, seed)


def warm(folder, n):
    """Ask all that the tests ask of every kind of model, and count the kernels that were not there at readiness."""
    fresh = multiprocessing.get_context("spawn")
    saving = fresh.Process(target=save_every, args=(folder,))
    saving.start()
    saving.join()
    from slatewise.serve.batching import install_warning_hook
    from tests.serve.conftest import make_asking
    from tests.serve.test_sessions import QUERIES, SWITCHES
    from tests.serve.test_wrong import BASES

    install_warning_hook()
    (folder / "spool").mkdir()
    asking = make_asking({path.stem: path for path in folder.glob("*.safetensors")}, folder / "spool", n_jobs=1)
    began = time.monotonic()
    asking.service.models.look()
    seconds = time.monotonic() - began
    assert asking.service.models.ready
    at_readiness = kernels()
    asked = [(route, body) for route, body in BASES.items()]
    asked += [(f"{name}/rank", {"queries": QUERIES, **more}) for name in ("neighbours", "sums") for more in SWITCHES]
    asked += [("people/rank", {"queries": QUERIES, "query_features": [[0.5, -1.0]] * 3, **more}) for more in SWITCHES]
    asked += [("plays/rank", {"queries": [[1, 2]] * size}) for size in (1, 3, 30)]
    asked += [("plays/rank", {"queries": [1] * size, **more}) for size in (1, 30) for more in ({}, {"stage": 0})]
    asked += [("plays/rank", {"queries": [1], "exclude": [[2]]}), ("plays/explain", {"queries": [[1]], "stage": 0})]
    asked += [(f"tags/{route}", {"queries": [[0.5] * 8], "known": [{"tag 1": 1}]}) for route in ("rank", "explain")]
    statuses = [asking.post(f"/v1/models/{route}", body)[0] for route, body in asked]
    late = sorted({name for name, count in kernels().items() if count != at_readiness.get(name)})
    asking.service.close()
    return {
        "s to readiness": round(seconds, 1),
        "kernels at readiness": sum(at_readiness.values()),
        "requests": len(asked),
        "answered": statuses.count(200),
        "compiled or loaded later": late,
    }


def save_every(folder):
    from tests.serve.conftest import save_models
    from tests.serve.test_sessions import fit_sessions

    save_models(folder)
    for name, model in fit_sessions().items():
        model.save(folder / f"{name}.safetensors")


def kernels():
    """Return how many compiled forms each kernel of this process has."""
    from numba.core.registry import CPUDispatcher

    found = [one for one in gc.get_objects() if type(one) is CPUDispatcher]
    return {f"{one.py_func.__module__}.{one.py_func.__qualname__}": len(one.overloads) for one in found}


def two_models(folder):
    from tests.serve.conftest import fit_plays

    (folder / "made").mkdir()
    paths = [folder / "made" / "a.safetensors", folder / "made" / "b.safetensors"]
    for seed, path in enumerate(paths, 1):
        fit_plays(seed).save(path)
    return paths


RUNS = {
    "swaps": (swaps, 200),
    "stops": (stops, 200),
    "kills": (kills, 30),
    "memory": (memory, 1_000_000),
    "resets": (resets, 4000),
    "fuzz": (fuzz, 100_000),
    "warm": (warm, 1),
}


def main(name, *numbers):
    run, usual = RUNS[name]
    n, *seed = [int(number) for number in numbers] or [usual]
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(run(Path(folder), n, *seed)))


if __name__ == "__main__":
    main(*sys.argv[1:])
