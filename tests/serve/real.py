"""A real service in processes of its own, for tests and for the runs of ``tests.serve.endurance``."""

import http.client
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
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
    port: int
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
        for _ in range(3000):
            assert self.process.poll() is None, self.lines
            try:
                if self.get("/ready")[0] == 200:
                    return self
            except OSError:
                pass
            time.sleep(0.02)
        raise AssertionError("not ready within a minute")

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
    """Run ``slatewise serve`` on a free port."""
    command = [sys.executable, "-m", "slatewise", "serve", *map(str, arguments), "--port", "0"]
    environment = {**os.environ, "SLATEWISE_THREADS": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    said = process.stdout.readline()
    if not said:
        raise AssertionError(process.communicate()[1])
    served = Real(process, int(said.split()[1].rpartition(":")[2]))
    reader = threading.Thread(target=lambda: served.lines.extend(process.stderr), daemon=True)
    reader.start()
    try:
        yield served.wait_until_ready() if ready else served
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
