"""The labeling page in a process of its own, and people who use it by its own HTTP: for benchmarks and long tests."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit


class PageServer:
    """``slatewise label serve`` of a project, until the end of the block."""

    def __init__(self, project: str | os.PathLike[str], *, port: int = 0) -> None:
        command = [sys.executable, "-m", "slatewise", "label", "serve", os.fspath(project), "--port", str(port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if "http://" not in line:
            errors = "" if self._process.stderr is None else self._process.stderr.read()
            self.kill()
            raise RuntimeError(f"the server did not start: {line}{errors}")
        self.address = line[line.index("http://") :].split()[0]

    @property
    def number(self) -> int:
        """Of the process."""
        return self._process.pid

    def peak_megabytes(self) -> float:
        """Return the most memory that the server had so far."""
        status = Path(f"/proc/{self.number}/status").read_text()
        kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
        return int(kilobytes) / 1024.0

    def kill(self) -> None:
        """End it as a failure of power does."""
        self._process.kill()
        self._ended()

    def stop(self) -> int:
        """Ask it to end; return its exit code."""
        self._process.send_signal(signal.SIGINT)
        return self._ended()

    def _ended(self) -> int:
        self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        return self._process.returncode

    def __enter__(self) -> PageServer:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        if self._process.poll() is None:
            self.stop()


class Reply(NamedTuple):
    """What came back, and after how long."""

    status: int
    body: Any
    seconds: float


class PageClient:
    """One person's browser; used by one thread."""

    def __init__(self, address: str, annotator: str) -> None:
        self._address, self.annotator = address, annotator
        place = urlsplit(address)
        self._connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60.0)
        self._headers = {"Origin": address, "Content-Type": "application/json"}
        self.me = self.ask("GET", "/api/me").body
        self._headers["X-Form-Token"] = self.me["form_token"]

    def ask(self, method: str, path: str, body: object = None) -> Reply:
        """Send a request; connections that were closed meanwhile are made again."""
        joint = "&" if "?" in path else "?"
        where = f"{path}{joint}annotator={quote(self.annotator)}"
        content = None if body is None else json.dumps(body).encode()
        start = time.perf_counter()
        try:
            self._connection.request(method, where, content, self._headers)
            answer = self._connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError):  # the server ends connections that rest
            self._connection.close()
            self._connection.request(method, where, content, self._headers)
            answer = self._connection.getresponse()
        text = answer.read()
        seconds = time.perf_counter() - start
        is_json = (answer.getheader("content-type") or "").startswith("application/json")
        return Reply(answer.status, json.loads(text) if is_json else text.decode(errors="replace"), seconds)

    def post(self, path: str, body: object = None) -> Any:
        """Send what must be taken; return the body of the reply."""
        reply = self.ask("POST", path, {} if body is None else body)
        if reply.status != 200:
            raise RuntimeError(f"{path}: {reply.status} {reply.body}")
        return reply.body

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@dataclass
class Turn:
    """Where a person stands: the last reply, in the few words that a program needs."""

    body: Any

    @property
    def item(self) -> int | None:
        """The number of the open item."""
        return None if self.body["item"] is None else int(self.body["item"]["number"])

    @property
    def question(self) -> int | None:
        """The label of the question."""
        view = self.body["view"]
        return None if view is None or view["question"] is None else int(view["question"]["label"])

    def answer(self, label: int, word: str, milliseconds: int | None = None) -> dict[str, Any]:
        """Return the body that answers."""
        return {
            "item": self.item,
            "label": label,
            "answer": word,
            "turn": self.body["turn"],
            "milliseconds": milliseconds,
        }

    def done(self, **more: object) -> dict[str, Any]:
        """Return the body that ends the item."""
        return {"item": self.item, "turn": self.body["turn"], **more}
