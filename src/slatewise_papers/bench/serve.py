"""A service under load: an open-loop generator, one query of 176,948 items, and batches against the library's own call.

The generator sends requests at fixed times, whether earlier ones were answered or not, and measures from the time a
request was *due*: a service that falls behind shows it. It runs in a process of its own, on the same machine. Peers
have the same factors: implicit's ``recommend`` behind a plain FastAPI route, and LitServe with our own ranker inside,
with the same generator in the same run: requests at fixed times, and from several clients that wait for their answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from slatewise import LatentRanker, load
from slatewise.client import Client
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.framework.running import installed

N_COMPONENTS, K, BATCH = 64, 20, 256
PATH = "/v1/models/songs/rank"
CLIENTS = (1, 8, 32)
PEERS = {"implicit": "implicit behind a FastAPI route", "litserve": "LitServe with our ranker"}


def run(quick: bool = False) -> Table:
    """Measure; ``quick``: a tenth of the items and of the seconds."""
    n_items, seconds = (17_695, 3.0) if quick else (176_948, 20.0)
    rates = (50, 200)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "songs.safetensors")
        model_of(n_items).save(path)
        rows: list[Row] = []
        load_before = os.getloadavg()[0]
        with served(path) as port:
            for rate in rates:
                found = requested(port, PATH, n_items, "rate", rate, seconds)
                what = f"one query of {n_items} items, {rate}/s{found.without_answer}"
                rows.append(Row(f"{what}, p50", found.ms(0.5), unit="ms"))
                rows.append(Row(f"{what}, p99", found.ms(0.99), unit="ms", bar="<= 10 ms" if rate == 50 else ""))
            rows += _against_direct(path, port, n_items, quick)
        left_out = [name for name in PEERS if not installed(name)]
        for name, what in PEERS.items():
            if name not in left_out:
                rows += _against_peer(name, what, path, n_items, seconds)
    remarks = [
        f"{os.cpu_count()} cores; the generator in a process of its own on the same machine; load before the run "
        f"{load_before:.1f}",
        "direct: the library's own call in a process of its own, with as many threads",
    ]
    return Table("serve", rows, left_out, remarks)


def model_of(n_items: int) -> LatentRanker:
    """Return a ranker of random factors: what it costs does not depend on what it learned."""
    rng = np.random.default_rng(0)
    ranker = LatentRanker(n_components=N_COMPONENTS, epochs=1, validation_fraction=0, learning_rate=0.3, max_norm=1.5)
    ranker.fit(np.arange(2), np.arange(2))
    width = ranker.item_factors_.shape[2]
    factors = np.zeros((2, 1, n_items, width), dtype=np.float32)
    factors[:, 0, :, : N_COMPONENTS + 1] = rng.normal(size=(2, n_items, N_COMPONENTS + 1))
    factors[0, 0, :, N_COMPONENTS] = 1.0
    ranker.query_factors_, ranker.item_factors_ = factors[0], factors[1]
    ranker.query_ids_ = ranker.item_ids_ = np.arange(n_items)
    ranker.query_steps_, ranker.item_steps_ = np.ones((n_items, 1), np.float32), np.ones((n_items, 2), np.float32)
    return ranker


@contextmanager
def served(path: Path) -> Generator[int]:
    """Run the service, and yield its port when it is ready."""
    command = [sys.executable, "-m", "slatewise", "serve", str(path), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        printed = process.stdout.readline() if process.stdout is not None else ""
        port = int(printed.split()[1].rpartition(":")[2])
        _wait(port, "/ready")
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(300)


def requested(port: int, path: str, n_items: int, kind: str, number: float, seconds: float) -> Times:
    """Run the generator in a process of its own; return what became of its requests."""
    words = (port, path, n_items, kind, number, seconds)
    command = [sys.executable, "-m", "slatewise_papers.bench.serve", *map(str, words)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    taken: list[float | None] = json.loads(found.stdout)
    answered = [one for one in taken if one is not None]
    return Times(answered, len(taken) - len(answered))


@dataclass(frozen=True)
class Times:
    """The seconds that answers took, and how many requests had none."""

    seconds: list[float]
    unanswered: int

    def ms(self, share: float) -> float:
        """Return a quantile."""
        return 1e3 * float(np.quantile(self.seconds, share))

    @property
    def without_answer(self) -> str:
        """Text on requests without an answer."""
        return f", {self.unanswered} unanswered" if self.unanswered else ""


def _against_direct(path: Path, port: int, n_items: int, quick: bool) -> list[Row]:
    """Compare requests one after the other with calls one after the other; medians, in turn."""
    ranker, client = load(path), Client(f"http://127.0.0.1:{port}")
    rng = np.random.default_rng(1)
    rows: list[Row] = []
    for size, n_calls in ((1, 100), (BATCH, 5 if quick else 15)):
        http: list[float] = []
        direct: list[float] = []
        for _ in range(n_calls + 2):
            queries = rng.integers(0, n_items, size)
            began = time.perf_counter()
            client.rank("songs", queries.tolist(), k=K)
            between = time.perf_counter()
            ranker.rank(queries, K)
            http.append(between - began)
            direct.append(time.perf_counter() - between)
        ours, own = float(np.median(http[2:])), float(np.median(direct[2:]))
        bar = "ratio >= 0.8" if size == BATCH else ""
        rows.append(Row(f"batch {size}, k = {K}, n = {N_COMPONENTS}, JSON", 1e3 * ours, "direct", 1e3 * own, "ms", bar))
    client.close()
    return rows


def _against_peer(name: str, what: str, path: Path, n_items: int, seconds: float) -> list[Row]:
    """Ask ours, then theirs, each alone on the machine: a server that only waits may still wake up all the time."""
    with served(path) as port:
        ours = _requested_every_way(port, PATH, n_items, seconds)
    with peer(name, path) as port:
        theirs = _requested_every_way(port, "/predict", n_items, seconds)
    rows: list[Row] = []
    for label, (own, unanswered) in ours.items():
        other, failed = theirs[label]
        rows.append(Row(label + unanswered, own, what + failed, other, "ms", "ratio >= 1"))
    return rows


def _requested_every_way(port: int, path: str, n_items: int, seconds: float) -> dict[str, tuple[float, str]]:
    """Return a figure in ms for each way to ask, and what to say of requests without an answer."""
    found: dict[str, tuple[float, str]] = {}
    for rate in (10, 50):  # more than that, and a plain route falls behind for good
        times = requested(port, path, n_items, "rate", rate, seconds)
        for share in (0.5, 0.99):
            found[f"one query, {rate}/s, p{100 * share:g}"] = times.ms(share), times.without_answer
    for clients in CLIENTS:
        times = requested(port, path, n_items, "clients", clients, seconds / 2)
        each = 1e3 * seconds / 2 / max(len(times.seconds), 1)
        found[f"one query, {clients} at once, per answer"] = each, times.without_answer
    return found


@contextmanager
def peer(name: str, path: Path) -> Generator[int]:
    """Run a peer's server, and yield its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [sys.executable, "-m", "slatewise_papers.bench.serve_peers", name, str(path), str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        _wait(port, "/health")
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # LitServe has processes of its own
        process.wait(60)


def _wait(port: int, path: str) -> None:
    import http.client

    for _ in range(1200):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.1)
    raise RuntimeError(f"port {port}: expected a server within two minutes, found none")


# --- the generator ----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Asking:
    """Asks for one query at a time over connections that are kept; remembers how long each answer took since due."""

    port: int
    path: str
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=list[Any])
    taken: list[float | None] = field(default_factory=list[Any])
    """None where there was no answer, or a refusal."""

    async def one(self, due: float, query: int) -> None:
        """Ask, and wait for the answer."""
        try:
            is_right = await self._request(json.dumps({"queries": [query], "k": K}).encode())
        except (OSError, asyncio.IncompleteReadError):
            is_right = False
        self.taken.append(asyncio.get_running_loop().time() - due if is_right else None)

    async def _request(self, body: bytes) -> bool:
        while self.idle and self.idle[-1][0].at_eof():  # a peer closes what is idle for seconds
            self.idle.pop()[1].close()
        kept = self.idle.pop() if self.idle else await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = kept
        head = f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
        writer.write(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        self.idle.append(kept)
        return b" 200 " in answer.split(b"\r\n", 1)[0]


async def generate(port: int, path: str, n_items: int, kind: str, number: float, seconds: float) -> list[float | None]:
    """Send requests for ``seconds``: ``number`` per second at fixed times, or from ``number`` waiting clients.

    Returns how long each answer took since it was due, None where there was none.
    """
    rng, loop, asking = np.random.default_rng(2), asyncio.get_running_loop(), Asking(port, path)
    for _ in range(20):
        await asking.one(loop.time(), int(rng.integers(n_items)))
    asking.taken.clear()
    start = loop.time() + 0.1
    if kind == "clients":

        async def client(own: np.random.Generator) -> None:
            while (now := loop.time()) < start + seconds:
                await asking.one(now, int(own.integers(n_items)))

        await asyncio.gather(*(client(own) for own in rng.spawn(int(number))))
        return asking.taken
    tasks: list[asyncio.Task[None]] = []
    for place, query in enumerate(rng.integers(0, n_items, int(number * seconds)).tolist()):
        due = start + place / number
        await asyncio.sleep(max(due - loop.time(), 0.0))
        tasks.append(asyncio.create_task(asking.one(due, query)))
    await asyncio.gather(*tasks)
    return asking.taken


if __name__ == "__main__":
    at, where, how_many, which, amount, lasting = sys.argv[1:]
    found = asyncio.run(generate(int(at), where, int(how_many), which, float(amount), float(lasting)))
    print(json.dumps(found))
