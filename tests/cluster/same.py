"""Fit every learner serially, on threads, on workers and through two nodes, and compare hashes: takes a minute or two.

    python -m tests.cluster.same

Workers are real processes of Ray, two and four of them. Nodes are two ``ray start`` on this machine, each with its own
processes and object store. Prints one line per setting, with the hash that all have in common, or all that were found.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest
from tests.cluster.fits import BLOCKS, FITS, learned

from slatewise import cluster

_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1"}


def fitted(**settings: object) -> dict[str, str]:
    """Return the hash of every fit, of data in many blocks."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        for name, value in BLOCKS.items():
            patch.setattr(name, value)
        return {name: learned(fit(**settings)) for name, fit in FITS.items()}


def on_nodes(port: int, folder: str) -> dict[str, str]:
    """Fit on a cluster of two nodes that were started by ``ray start``."""
    start = [str(Path(sys.executable).with_name("ray")), "start", "--num-cpus=1", "--disable-usage-stats"]
    nodes = [
        [*start, "--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}", "--block"],
        [*start, f"--address=127.0.0.1:{port}", "--block"],
    ]
    environment = {**os.environ, **_ENVIRONMENT}
    started: list[subprocess.Popen[bytes]] = []
    try:
        for node in nodes:
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            started.append(subprocess.Popen(node, env=environment, **quiet))
            _wait_for(len(started), port)
        with cluster.ray(f"127.0.0.1:{port}", workers=2):
            return fitted()
    finally:
        for node in reversed(started):
            node.terminate()
            node.wait(60)


def _wait_for(n_nodes: int, port: int) -> None:
    """Wait until so many nodes are there: each has one CPU."""
    asked = f"import ray; ray.init('127.0.0.1:{port}', log_to_driver=False); print(ray.cluster_resources()['CPU'])"
    for _ in range(30):
        found = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
        if found.returncode == 0 and float(found.stdout.split()[-1]) == n_nodes:
            return
    raise RuntimeError(f"expected {n_nodes} nodes, found {found.stdout} {found.stderr[-2000:]}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.same", description=__doc__)
    parser.add_argument("--port", type=int, default=6390, help="of the cluster of two nodes")
    port = parser.parse_args().port
    found = {"one thread": fitted(n_jobs=1), "two threads": fitted(n_jobs=2)}
    for n_workers in (2, 4):
        with cluster.ray(workers=n_workers):
            found[f"{n_workers} workers"] = fitted()
    with tempfile.TemporaryDirectory() as folder:
        found["two nodes"] = on_nodes(port, folder)
    wrong = 0
    for name in FITS:
        hashes = {way: hashed[name] for way, hashed in found.items()}
        same = len(set(hashes.values())) == 1
        wrong += not same
        print(f"{name:28}", next(iter(hashes.values())) if same else hashes, flush=True)
    print(f"{len(FITS)} settings on {', '.join(found)}: {wrong} differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
