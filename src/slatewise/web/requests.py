"""Is a request one that a page of ours, or an honest program, would send? Each check returns a refusal, or None."""

from __future__ import annotations

import re

from slatewise.web.asgi import SAFE_METHODS, Answer, Scope, header, values
from slatewise.web.site import Site

METHODS = SAFE_METHODS | {"POST", "PUT", "PATCH", "DELETE"}
_ONCE = ("host", "origin", "content-length", "content-type", "cookie", "authorization", "transfer-encoding")
_STRANGE = re.compile(r"[\x00-\x1f\x7f\\]|(^|/)\.\.?(/|$)|//")
_LONGEST_PATH = 2000
_PROXIES = ("x-forwarded-for", "x-forwarded-host", "forwarded")


def refused(scope: Scope, site: Site, *, any_name: bool = False) -> Answer | None:
    """Return why a request is refused whoever sends it, None where it is decent."""
    for check in (_method, _path, _headers):
        if (answer := check(scope)) is not None:
            return answer
    named = None if any_name else _host(scope, site) or _passed_on(scope, site)
    return named or _from_elsewhere(scope)


def refused_change(scope: Scope, site: Site) -> Answer | None:
    """Return why a request that changes something is refused: it must come from a page of ours."""
    origin = header(scope, "origin")
    if origin is None or origin.lower() not in site.origins:
        return Answer(403, "Origin: expected a page of this server")
    return None


def _method(scope: Scope) -> Answer | None:
    if scope["method"] not in METHODS:
        return Answer(405, "method: expected one that is known", (("allow", ", ".join(sorted(METHODS))),))
    return None


def _path(scope: Scope) -> Answer | None:
    """No way up, nothing hidden: an application behind sees paths as they are meant."""
    raw = bytes(scope.get("raw_path") or b"").lower()
    path = str(scope["path"])
    twice_encoded = b"%25" in raw and re.search(r"%(2e|2f|5c|00)", path, re.IGNORECASE) is not None
    if len(path) > _LONGEST_PATH or _STRANGE.search(path) or b"%2f" in raw or twice_encoded:
        return Answer(400, "path: expected a plain one")
    return None


def _headers(scope: Scope) -> Answer | None:
    """What is read by several programs on the way must not be read in two ways."""
    for name in _ONCE:
        if len(values(scope, name)) > 1:
            return Answer(400, f"{name}: expected at most once")
    length = header(scope, "content-length")
    if length is not None and header(scope, "transfer-encoding") is not None:
        return Answer(400, "content-length: expected none beside transfer-encoding", (("connection", "close"),))
    if length is not None and not (length.isascii() and length.isdigit() and len(length) < 16):
        return Answer(400, "content-length: expected a whole number")
    return None


def _host(scope: Scope, site: Site) -> Answer | None:
    """Another name that leads here is somebody's who wants to read answers meant for us (DNS rebinding)."""
    host = header(scope, "host")
    if site.origins and (host is None or host.lower() not in site.hosts):
        return Answer(421, "Host: expected the address of this server")
    return None


def _passed_on(scope: Scope, site: Site) -> Answer | None:
    """Where nobody is asked for a token, a proxy would make everybody who reaches it one who sits at this machine."""
    if not site.needs_token and any(header(scope, name) is not None for name in _PROXIES):
        return Answer(421, "expected a request from this machine, found one of a proxy, for which tokens are needed")
    return None


def _from_elsewhere(scope: Scope) -> Answer | None:
    """Pages of others may lead a person here, and nothing else (https://web.dev/articles/fetch-metadata)."""
    where = header(scope, "sec-fetch-site")
    if where in (None, "same-origin", "none"):
        return None
    leads_here = header(scope, "sec-fetch-mode") == "navigate" and header(scope, "sec-fetch-dest") == "document"
    if scope["method"] == "GET" and leads_here:
        return None
    return Answer(403, "expected a request from a page of this server")
