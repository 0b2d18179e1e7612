"""A client of ``slatewise serve``: the standard library alone, and nothing of this package.

The file can be copied to where slatewise is not installed.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote, urlsplit

_AGAIN = (429, 503)
"""Answers that say: later."""
_LONGEST_WAIT = 60.0
_URL = "url: expected http://host:port or https://host"


class ServiceError(Exception):
    """The service refused or failed: ``status`` (0: it could not be reached), ``place`` and what was expected."""

    def __init__(self, status: int, place: str, message: str) -> None:
        super().__init__(message)
        self.status, self.place = status, place


@dataclass(frozen=True)
class Answer:
    """What a model says: one answer per query, the version that gave it, and what it warns of."""

    model: str
    version: str
    answers: list[dict[str, Any]]
    warnings: list[str]


class Client:
    """Asks a service; connections stay open, one per thread.

    Parameters
    ----------
    url
        Where the service is, as ``http://127.0.0.1:8000``.
    token
        Shown with every request, where the service needs one.
    timeout
        Seconds that one try waits for the service to say something.
    retries
        How often a request is repeated when the service is full, not ready, or the connection broke: the questions
        change nothing, so that asking twice does no harm. It waits as long as the service says, up to a minute, else a
        little longer each time.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8000", timeout=1.0, retries=2)
    >>> client.rank("songs", [17, 4], k=5)  # doctest: +SKIP
    Answer(model='songs', version='ab27e214cbbe', answers=[{'query': 17, 'ids': [...], ...
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 30.0, retries: int = 3) -> None:
        try:
            parts = urlsplit(url)
            scheme, host, port = parts.scheme, parts.hostname, parts.port
        except ValueError:  # of a port that is none
            raise ValueError(f"{_URL}, found {url!r}") from None
        if scheme not in ("http", "https") or not host:
            raise ValueError(f"{_URL}, found {url!r}")
        if token is not None and not (token.isascii() and token.isprintable()):
            raise ValueError("token: expected one line of ASCII letters, found others")  # a secret: it is not shown
        if not timeout > 0 or retries < 0:
            raise ValueError(f"timeout, retries: expected > 0 and >= 0, found {timeout} and {retries}")
        self._kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
        self._host, self._port, self._path = host, port, parts.path.rstrip("/")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout, self._retries = timeout, retries
        self._local = threading.local()

    def __enter__(self) -> Client:
        """Use it for a while."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rank(self, model: str, queries: Sequence[Any], **switches: Any) -> Answer:
        """Ask for the best items of each query; switches are those of the model, as ``k=10``, ``exclude=[[3], []]``."""
        return self.ask(model, "rank", queries, **switches)

    def scores(self, model: str, queries: Sequence[Any], **switches: Any) -> Answer:
        """Ask for scores: of ``items=[...]`` where the model has a catalogue, of all labels or rows elsewhere."""
        return self.ask(model, "scores", queries, **switches)

    def explain(self, model: str, queries: Sequence[Any], **switches: Any) -> Answer:
        """Ask for the parts of scores."""
        return self.ask(model, "explain", queries, **switches)

    def next_question(
        self, model: str, queries: Sequence[Any], known: Sequence[Mapping[str, int]], **switches: Any
    ) -> Answer:
        """Ask which label to ask next, given answers."""
        return self.ask(model, "next_question", queries, known=known, **switches)

    def models(self) -> list[dict[str, Any]]:
        """Describe all models."""
        return self._request("GET", "/v1/models", ("models",))["models"]

    def model(self, name: str) -> dict[str, Any]:
        """Describe a model."""
        return self._request("GET", f"/v1/models/{quote(name, safe='')}", ("name", "ready"))

    def ready(self) -> bool:
        """Whether the service is there and takes requests."""
        try:
            return self._once("GET", "/ready", None)[0] == 200
        except (OSError, http.client.HTTPException):
            self.close()
            return False

    def ask(self, model: str, question: str, queries: Sequence[Any], **fields: Any) -> Answer:
        """Ask a model anything; lists may be arrays of NumPy."""
        path = f"/v1/models/{quote(model, safe='')}/{question}"
        wanted = ("model", "version", "answers", "warnings")
        found = self._request("POST", path, wanted, {"queries": queries, **fields})
        return Answer(*(found[name] for name in wanted))

    def close(self) -> None:
        """Close the connection of this thread."""
        connection = cast("http.client.HTTPConnection | None", getattr(self._local, "connection", None))
        if connection is not None:
            connection.close()
            self._local.connection = None

    def _request(self, method: str, path: str, wanted: Sequence[str], value: Any = None) -> dict[str, Any]:
        """Return the answer, an object with the fields that are wanted."""
        body = None if value is None else _written(value)
        for tried in range(self._retries + 1):
            wait: float = min(0.1 * 2**tried, 5.0)
            try:
                status, headers, answer = self._once(method, path, body)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                failure = ServiceError(0, "connection", f"{self._host}: {error or type(error).__name__}")
            else:
                if 200 <= status < 300:
                    return _read(status, answer, wanted)
                failure = _failure(status, answer)
                if status not in _AGAIN:
                    raise failure
                later = headers.get("Retry-After", "")
                wait = min(float(later), _LONGEST_WAIT) if later.isascii() and later.isdigit() else wait
            if tried == self._retries:
                raise failure
            time.sleep(wait * (0.75 + 0.5 * random.random()))  # clients that were refused together part here
        raise AssertionError("a request ends with an answer or an error")

    def _once(self, method: str, path: str, body: bytes | None) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = cast("http.client.HTTPConnection | None", getattr(self._local, "connection", None))
        if connection is None:
            connection = self._kind(self._host, self._port, timeout=self._timeout)
            self._local.connection = connection
        connection.request(method, self._path + path, body, self._headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()


def _written(value: Any) -> bytes:
    """Return JSON; arrays of NumPy, which this file does not import, are written as lists."""

    def plain(one: Any) -> Any:
        try:
            return one.tolist()
        except AttributeError:
            raise TypeError(f"expected numbers, texts, lists or arrays, found {type(one).__name__}") from None

    return json.dumps(value, separators=(",", ":"), allow_nan=False, default=plain).encode()


def _read(status: int, body: bytes, wanted: Sequence[str]) -> dict[str, Any]:
    """Return the object that a body holds; the page of a proxy, or another service, is no answer."""
    with suppress(ValueError):
        found = json.loads(body)
        if isinstance(found, dict) and all(name in found for name in wanted):
            return cast("dict[str, Any]", found)
    raise ServiceError(status, "body", f"body: expected an answer of slatewise serve, found {_shown(body)!r}")


def _failure(status: int, body: bytes) -> ServiceError:
    try:
        found = json.loads(body)
        return ServiceError(status, str(found["place"]), str(found["message"]))
    except (ValueError, KeyError, TypeError):  # the guard, or a proxy, answers in plain text
        return ServiceError(status, "request", _shown(body) or f"expected an answer, found status {status}")


def _shown(body: bytes) -> str:
    return body.decode("utf-8", "replace").strip()[:300]
