"""The one cookie: it holds a token, scripts cannot read it, and pages of others cannot make a browser send it."""

from __future__ import annotations

import hashlib
import re

from slatewise.web.asgi import Scope, header
from slatewise.web.site import Site

_VALUE = re.compile(r"[A-Za-z0-9_-]+")
_YEAR = 31_536_000


class TokenCookie:
    """The cookie of one site; ``secret`` names it, because browsers share cookies between ports of a machine."""

    def __init__(self, site: Site, secret: bytes) -> None:
        name = f"slatewise-{hashlib.sha256(b'cookie:' + secret).hexdigest()[:8]}"
        self.name = f"__Host-{name}" if site.secure else name
        self._attributes = "Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if site.secure else "")

    def read(self, scope: Scope) -> str | None:
        """Return the token that a request brings."""
        for part in (header(scope, "cookie") or "").split(";"):
            name, _, value = part.strip().partition("=")
            if name == self.name:
                return value
        return None

    def written(self, token: str) -> tuple[str, str]:
        """Return the header that makes a browser keep a token."""
        if _VALUE.fullmatch(token) is None:
            raise ValueError("token: expected letters, digits, - and _")
        return "set-cookie", f"{self.name}={token}; Max-Age={_YEAR}; {self._attributes}"

    def removed(self) -> tuple[str, str]:
        """Return the header that makes a browser forget it."""
        return "set-cookie", f"{self.name}=; Max-Age=0; {self._attributes}"
