"""Runs too long for the suite, each one line of JSON: ``python -m tests.serve.endurance swaps|stops|memory [n]``.

``swaps``: a model file is replaced n times (200) under load, by turns renamed into place and copied over.
``stops``: a service is stopped by SIGTERM n times (200) under load.
``memory``: resident memory of a worker after a tenth of n requests (1,000,000) and after all of them.
"""

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from slatewise import load as load_model
from tests.serve.real import PATH, RANK, Load, running


def right_answers(*paths):
    """Return what models answer to the request of the load, by version, from the library itself."""
    right = {}
    for path in paths:
        found = load_model(path).rank([1, 2, 3], 5)
        parts = zip([1, 2, 3], found.lists(), found.scores, strict=True)
        right[hashlib.sha256(path.read_bytes()).hexdigest()[:12]] = [
            {"query": query, "ids": ids.tolist(), "scores": scores.tolist(), "unknown": 0}
            for query, ids, scores in parts
        ]
    return right


def figures(load):
    return {
        "answered": load.answered,
        "lost": len(load.lost),
        "wrong or mixed": len(load.wrong),
        "closed between requests": load.between,
        "reset before they were taken": load.reset,
        "refused": load.refused,
    }


def swaps(models, n):
    served_file = models[0].parent / "plays.safetensors"
    shutil.copy(models[0], served_file)
    with running(served_file) as served:
        load = Load(served.port, right_answers(*models))
        with load.of(4):
            for number in range(n):
                source = models[(number + 1) % 2]
                version = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
                if number % 3 == 2:
                    shutil.copy(source, served_file)
                else:
                    shutil.copy(source, served_file.with_suffix(".new"))
                    os.replace(served_file.with_suffix(".new"), served_file)
                while json.loads(served.get("/v1/models/plays")[1])["version"] != version:
                    time.sleep(0.05)
        taken = len(served.events("model")) - 1
    return {"swaps": taken, **figures(load)}


def stops(models, n):
    total = {}
    for number in range(n):
        with running(models[0], *(["--workers", 2] if number % 10 == 9 else [])) as served:
            load = Load(served.port, right_answers(models[0]))
            with load.of(4):
                while load.answered < 50:
                    time.sleep(0.002)
                time.sleep(0.001 * (number % 50))
                assert served.stop() == 0
        for name, value in figures(load).items():
            total[name] = total.get(name, 0) + value
    return {"stops": n, **total}


def resident(process):
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


def memory(models, n):
    import http.client

    bodies = [RANK, json.dumps({"queries": [4], "k": 3, "exclude": [[1, 2]]}).encode(), b'{"queries": [1], "k": 0}']
    with running(models[0]) as served:
        connection = http.client.HTTPConnection("127.0.0.1", served.port)
        early = 0
        for number in range(n):
            connection.request("POST", PATH, bodies[number % 3], {"Content-Type": "application/json"})
            connection.getresponse().read()
            if number + 1 == n // 10:
                early = resident(served.process.pid)
        late = resident(served.process.pid)
        connection.close()
    return {"requests": n, "KiB after a tenth": early, "KiB after all": late, "grown by": late / early - 1}


def main(what, n):
    from tests.serve.conftest import fit_plays

    with tempfile.TemporaryDirectory() as folder:
        models = [Path(folder, "a.safetensors"), Path(folder, "b.safetensors")]
        for seed, path in enumerate(models, 1):
            fit_plays(seed).save(path)
        if what != "swaps":
            shutil.copy(models[0], Path(folder, "plays.safetensors"))
            models[0] = Path(folder, "plays.safetensors")
        print(json.dumps({"swaps": swaps, "stops": stops, "memory": memory}[what](models, n)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000 if sys.argv[1] == "memory" else 200)
