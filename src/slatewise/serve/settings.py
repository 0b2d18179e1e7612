"""What a service is started with: model files, limits and tokens. Plain values, which another process can receive."""

from __future__ import annotations

import json
import logging
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from slatewise.core.errors import printable
from slatewise.core.rules import short_repr
from slatewise.web.guard import Rules
from slatewise.web.requests import BodyLimits
from slatewise.web.site import Site
from slatewise.web.tokens import Digests, Visitor, digest_of, make_token

LOCAL = ("127.0.0.1", "localhost", "::1")
_log = logging.getLogger("slatewise.serve")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TOKEN = re.compile(r"slw_[A-Za-z0-9_-]{43}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Limits:
    """Limits of a service, all of which its OpenAPI document states.

    Attributes
    ----------
    queries
        Queries of one request.
    k
        Length of a list.
    numbers
        Scores of one answer: queries times list length, or times items.
    ids
        Ids of one list: a session, excluded items, candidates, items to score.
    body_bytes
        Bytes of a body.
    seconds
        Time from the arrival of a request to its answer.
    waiting
        Requests for one model that wait for a thread; one more gets 429.
    large
        Requests with bodies of 32 KiB or more, for all models, from the end of the body to the answer; one more gets
        429. Bodies that are still arriving hold at most this number of times ``body_bytes`` together.
    batch
        Queries of several requests that are answered together.
    at_once
        Batches of one model that run at the same time, so that short ones pass a long one.
    """

    queries: int = 1024
    k: int = 1000
    numbers: int = 200_000
    ids: int = 10_000
    body_bytes: int = 4 << 20
    seconds: float = 30.0
    waiting: int = 512
    large: int = 32
    batch: int = 256
    at_once: int = 2


@dataclass(frozen=True)
class ModelFile:
    """The name of a model, and its file."""

    name: str
    path: Path

    @classmethod
    def parse(cls, text: str) -> ModelFile:
        """Read ``path`` or ``name=path``; the default name is that of the file.

        Examples
        --------
        >>> ModelFile.parse("models/songs.safetensors").name, ModelFile.parse("best=songs.safetensors").name
        ('songs', 'best')
        """
        name, equals, path = text.partition("=")
        if not equals or "/" in name:
            name, path = Path(text).name.removesuffix(".safetensors"), text
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"model: expected a name of letters, digits, '.', '_' and '-', found {short_repr(name)}")
        return cls(name, Path(path))


def check_names(files: Iterable[ModelFile]) -> list[ModelFile]:
    """Return the files; ValueError if there is none, or two have the same name."""
    found = list(files)
    names = [file.name for file in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if not names or twice is not None:
        shown_names = "none" if twice is None else f"{twice!r} twice: name one by NAME=PATH"
        raise ValueError(f"model: expected one or more, each with a name of its own, found {shown_names}")
    return found


@dataclass(frozen=True)
class Settings:
    """The settings of one service.

    Attributes
    ----------
    models
        ``path`` or ``name=path`` of each model.
    n_jobs
        Threads of each worker.
    cache_folder
        Folder for copies of models; the supervisor makes it.
    workers
        Number of processes on the socket.
    ready_folder
        Folder where workers mark that they can answer; the supervisor makes it.
    drain_seconds
        How long a stopping service still accepts connections while it answers that it is not ready.
    look_every
        Seconds between looks for changed model files.
    """

    models: tuple[str, ...]
    host: str = "127.0.0.1"
    port: int = 8000
    token_file: str | None = None
    origin: str | None = None
    behind_proxy: bool = False
    n_jobs: int | None = None
    limits: Limits = field(default_factory=Limits)
    cache_folder: str = ""
    workers: int = 1
    ready_folder: str = ""
    drain_seconds: float = 0.3
    look_every: float = 1.0

    def check(self) -> Settings:
        """Return the settings with absolute paths; refuse files, addresses and tokens that cannot be served."""
        files = self.files()
        for file in files:
            if not file.path.is_file():
                raise FileNotFoundError(2, "expected a model file", str(file.path))
        self.site()
        if self.token_file is not None and not read_tokens(Path(self.token_file)):
            raise ValueError(f"{self.token_file}: expected at least one token, found none: make one with --make-token")
        # Absolute, but not resolved: a link that is changed to another file is a new model.
        return replace(self, models=tuple(f"{file.name}={file.path.absolute()}" for file in files))

    def files(self) -> list[ModelFile]:
        """Return the model files, each with a name of its own."""
        return check_names(ModelFile.parse(text) for text in self.models)

    @property
    def address(self) -> str:
        """The address for programs."""
        return self.origin or f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def site(self) -> Site:
        """Return the addresses of the service; others can only reach a service that has tokens."""
        if self.token_file is None:
            if self.host not in LOCAL or self.origin is not None:
                raise ValueError(
                    f"--token-file: expected where others can reach the service (--host {self.host}), found none"
                )
            return Site.local(self.port)
        if self.origin is not None:
            return Site.public(self.origin, behind_proxy=self.behind_proxy)
        return Site.of_programs(behind_proxy=self.behind_proxy)

    def rules(self, public: tuple[str, ...]) -> Rules:
        """Return the rules of the guard."""
        limits = BodyLimits(self.limits.body_bytes, 20.0)
        return Rules(public=public, any_name=public, body=limits, only_answers=True)

    def to_json(self) -> str:
        """Return JSON for another process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Return the settings that :meth:`to_json` wrote."""
        values: dict[str, Any] = json.loads(text)
        values["models"], values["limits"] = tuple(values["models"]), Limits(**values["limits"])
        return cls(**values)


class TokenFile:
    """The tokens of a file, read again when it changes, so that removing a token takes effect at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._now: tuple[tuple[int, ...], list[tuple[str, Visitor]]] = (), []
        self._refused: str | None = None
        self.keys = Digests(self.stored)

    def stored(self) -> list[tuple[str, Visitor]]:
        """Return the digests; a file that cannot be read has none, and the log says why."""
        before, stored = self._now
        try:
            seen = identity(self._path)
            if seen == before:
                return stored
            stored, refused = read_tokens(self._path), None
        except (OSError, ValueError) as error:
            stored, refused, seen = list[tuple[str, Visitor]](), printable(str(error), 400), (0,)
        if refused is None and before:
            _log.info("tokens", extra={"fields": {"file": str(self._path), "tokens": len(stored)}})
        elif refused != self._refused:
            _log.error("tokens refused", extra={"fields": {"file": str(self._path), "reason": refused}})
        self._refused = refused
        self._now = seen, stored  # in one assignment: another thread must not see the identity of another content
        return stored


def read_tokens(path: Path) -> list[tuple[str, Visitor]]:
    """Read the digests of a file: a token or its digest is the first word of a line; lines with # are comments."""
    digests: list[tuple[str, Visitor]] = []
    try:
        with open(path, encoding="utf-8", opener=open_plain) as file:
            lines = file.read().splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path}: expected text in UTF-8, found other bytes") from None
    for number, line in enumerate(lines, 1):
        word = line.split()[0] if line.split() else "#"
        if word.startswith("#"):
            continue
        if not _TOKEN.fullmatch(word) and not _DIGEST.fullmatch(word):
            raise ValueError(f"{path}:{number}:1: expected a token (slw_...) or its sha256, found another word")
        digests.append((digest_of(word) if word.startswith("slw_") else word, Visitor("annotator", number)))
    return digests


def add_token(path: Path) -> str:
    """Make a token, add its digest to a file that only its owner can read, and return the token."""
    new = make_token()
    with open(path, "a+b", opener=open_plain) as file:
        file.seek(max(file.tell() - 1, 0))
        before = "" if file.read() in (b"", b"\n") else "\n"  # the last line may have no end
        file.write(f"{before}{new.digest}\n".encode())
    return new.token


def open_plain(path: str, flags: int) -> int:
    """Open a plain file, as an ``opener`` of :func:`open`: devices and pipes could have no end, or block the reader.

    A new file can be read by its owner only.
    """
    number = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise ValueError(f"{path}: expected a plain file, found a folder or device")
    return number


def identity(path: Path) -> tuple[int, ...]:
    """Return what changes with the content of a file."""
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
