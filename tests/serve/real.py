"""A real service in processes of its own, for tests and for the runs of ``tests.serve.endurance``."""

import http.client
import json
import math
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

RANK = json.dumps({"queries": [1, 2, 3], "k": 5}).encode()
PATH = "/v1/models/plays/rank"


def are_alike(answers, right):
    """Whether answers are right: a batch adds up in another order than a single request, which the scores may show."""
    plain = [{**one, "scores": None} for one in answers]
    return plain == [{**one, "scores": None} for one in right] and all(
        math.isclose(a, b, rel_tol=1e-5)
        for one, other in zip(answers, right, strict=True)
        for a, b in zip(one["scores"], other["scores"], strict=True)
    )


@dataclass
class Real:
    """A service that runs."""

    process: subprocess.Popen
    port: int = 0
    lines: list = field(default_factory=list)
    asked: int = 0
    """How many answers :meth:`get` has had."""

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)

    def get(self, path):
        with closing(self.connect()) as connection:
            connection.request("GET", path)
            answered = connection.getresponse()
            status, body = answered.status, answered.read()
            self.asked += 1
            return status, body

    def wait_until_ready(self):
        """Wait for the line with the address, after which every request is answered."""
        line = self.process.stdout.readline()
        assert line, self.lines
        self.port = int(line.split()[1].rpartition(":")[2])
        status, body = self.get("/ready")
        assert status == 200, body
        return self

    def wait_until_listening(self):
        while not self.events("starting"):
            assert self.process.poll() is None, self.lines
            time.sleep(0.02)
        self.port = int(self.events("starting")[0]["address"].rpartition(":")[2])
        return self

    def events(self, name):
        found = [json.loads(line) for line in list(self.lines) if line.startswith("{")]
        return [one for one in found if one["event"] == name]

    def workers(self):
        """Return the processes that answer."""
        return [one["worker"] for one in self.events("worker")]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(600)  # a machine that does much else is slow, and a test never times


@contextmanager
def running(*arguments, ready=True):
    """Run ``slatewise serve`` on a free port; wait until it prints its address, or only until it listens."""
    command = [sys.executable, "-m", "slatewise", "serve", *map(str, arguments), "--port", "0"]
    environment = {**os.environ, "SLATEWISE_THREADS": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    served = Real(process)
    reader = threading.Thread(target=lambda: served.lines.extend(process.stderr), daemon=True)
    reader.start()
    try:
        yield served.wait_until_ready() if ready else served.wait_until_listening()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
        reader.join(5)
        process.stdout.close()
        process.stderr.close()


@dataclass
class Load:
    """Clients that keep connections open and ask again and again; what became of every request is counted.

    A request is *lost* when its connection was taken and ended without an answer. A connection that is kept may be
    closed between two requests (``between``), as HTTP says. A new one may be reset by the system while it waits at a
    socket that closes (``reset``): the service has never seen it.
    """

    port: int
    right: dict
    """The answers by version; one that is in none is wrong."""
    answered: int = 0
    refused: int = 0
    """Told to come later (429, 503)."""
    unreached: int = 0
    """Connections that nobody took."""
    between: int = 0
    reset: int = 0
    lost: list = field(default_factory=list)
    wrong: list = field(default_factory=list)
    end: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def of(self, n_clients):
        threads = [threading.Thread(target=self._client) for _ in range(n_clients)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self.end.set()
            for thread in threads:
                thread.join()

    def _client(self):
        connection = None
        while not self.end.is_set():
            fresh = connection is None
            try:
                if fresh:
                    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
                    connection.connect()
            except OSError:
                connection = None
                with self.lock:
                    self.unreached += 1
                time.sleep(0.01)
                continue
            try:
                connection.request("POST", PATH, RANK, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                status, body = answer.status, answer.read()
            except (OSError, http.client.HTTPException) as error:
                with self.lock:
                    self._gone(fresh, error)
                connection.close()
                connection = None
                continue
            with self.lock:
                self._count(status, body)
            if answer.will_close:
                connection.close()
                connection = None

    def _gone(self, fresh, error):
        if not fresh and isinstance(error, ConnectionError):
            self.between += 1
        elif isinstance(error, ConnectionError) and not isinstance(error, http.client.RemoteDisconnected):
            self.reset += 1
        else:
            self.lost.append(repr(error))

    def _count(self, status, body):
        if status in (429, 503):
            self.refused += 1
            return
        found = json.loads(body)
        self.answered += 1
        if status != 200 or not are_alike(found["answers"], self.right.get(found["version"], [])):
            self.wrong.append((status, found))


WRONG = [
    None, True, -1, 1.5, 1 << 70, 1e300, "", "x", "x" * 2000, {}, {"x": 1}, [], [None], [[1]], [["x" * 2000]],
    list(range(20_000)), [[]] * 2000, [1],
]  # fmt: skip
PATHS = [PATH, "/v1/models/plays/scores", "/v1/models/nobody/rank", "/v1/models", "/v1/models/plays", "/nothing"]


def break_off(port, n_requests, seed):
    """Send requests of wrong types, some malformed, and break most of them off, by a reset or otherwise."""
    rng = random.Random(seed)
    for _ in range(n_requests):
        request = _wrong_request(rng, port)
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=600) as client:
            end = rng.choice([len(request), rng.randrange(len(request)), request.index(b"\r\n\r\n") + 4])
            middle = rng.randrange(end + 1)
            for part in (request[:middle], request[middle:end]):
                client.sendall(part)
                time.sleep(rng.choice([0, 0.001]))
            how = rng.choice(["reset", "reset", "close", "half close", "read"])
            if how == "half close":
                client.shutdown(socket.SHUT_WR)
            if how == "reset":
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if how == "read":
                client.settimeout(0.05)
                client.recv(100)


def _wrong_request(rng, port):
    body = json.dumps({rng.choice(["k", "exclude", "x"]): rng.choice(WRONG), "queries": rng.choice(WRONG)}).encode()
    content_type = rng.choice(["application/json", "application/msgpack", "text/html"])
    head = [
        f"{rng.choice(['POST', 'POST', 'POST', 'HEAD', 'PUT', 'GET'])} {rng.choice(PATHS)} HTTP/1.1",
        f"Host: {rng.choice(['localhost', 'localhost', 'localhost', 'evil'])}:{port}",
        f"Content-Type: {content_type}",
        *rng.choice([[], [], ["Connection: close"], ["Expect: 100-continue"]]),
    ]
    framing = rng.choice(["right", "more to come", "too long", "chunked", "bad chunk"])
    if "chunk" in framing:
        head.append("Transfer-Encoding: chunked")
        chunks = [body[place : place + 5000] for place in range(0, len(body), 5000)]
        body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
        if framing == "bad chunk":
            place = rng.randrange(len(body))
            body = body[:place] + b"no size\r\n" + body[place:]
    else:
        head.append(f"Content-Length: {len(body) + {'right': 0, 'more to come': 100, 'too long': -1}[framing]}")
    return "\r\n".join([*head, "", ""]).encode() + body
