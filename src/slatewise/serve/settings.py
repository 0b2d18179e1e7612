"""What a service is started with: plain values, so that they can be handed to another process."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from slatewise.serve.limits import Limits
from slatewise.serve.model_file import ModelFile, check_names
from slatewise.serve.token_file import check_tokens
from slatewise.web.guard import Rules
from slatewise.web.requests import BodyLimits
from slatewise.web.site import Site

LOCAL = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Settings:
    """Of one service."""

    models: tuple[str, ...]
    """``path`` or ``name=path`` of each."""
    host: str = "127.0.0.1"
    port: int = 8000
    token_file: str | None = None
    origin: str | None = None
    behind_proxy: bool = False
    n_jobs: int | None = None
    """Of each worker."""
    limits: Limits = field(default_factory=Limits)
    spool: str = ""
    """The folder of copies of models; the one who starts makes it."""
    workers: int = 1
    """How many processes share the socket."""
    warm: str = ""
    """The folder where they say that they can answer; the one who starts makes it."""
    drain_seconds: float = 0.3
    """How long a service that is told to stop goes on to take new connections, while it says that it is not ready."""
    look_every: float = 1.0

    def check(self) -> Settings:
        """Refuse what cannot be served."""
        files = check_names(self.files())
        for file in files:
            if not file.path.is_file():
                raise FileNotFoundError(2, "expected a model file", str(file.path))
        self.site()
        if self.token_file is not None:
            check_tokens(Path(self.token_file))
        # As named, not where links lead now: a link that is led elsewhere is a new model.
        return replace(self, models=tuple(f"{file.name}={file.path.absolute()}" for file in files))

    def files(self) -> list[ModelFile]:
        """Return the model files."""
        return [ModelFile.parse(text) for text in self.models]

    @property
    def address(self) -> str:
        """Where programs find it."""
        return self.origin or f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def site(self) -> Site:
        """Return where the service stands; strangers can only reach one that has tokens."""
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
        """Return what the guard allows."""
        limits = BodyLimits(self.limits.body_bytes, 20.0)
        return Rules(public=public, any_name=public, body=limits, only_answers=True)

    def written(self) -> str:
        """Return JSON for another process."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Settings:
        """Return what :meth:`written` wrote."""
        values: dict[str, Any] = json.loads(text)
        values["models"], values["limits"] = tuple(values["models"]), Limits(**values["limits"])
        return cls(**values)
