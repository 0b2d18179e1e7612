"""The addresses of a server, as browsers know them, and whether it needs tokens."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from slatewise.core.rules import short_repr
from slatewise.web.asgi import Scope, values

_ORIGIN = re.compile(r"(https?)://([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(:[0-9]{1,5})?")
_PORTS = {"http": ":80", "https": ":443"}


@dataclass(frozen=True)
class Site:
    """The addresses of a server, and what follows from them for requests."""

    origins: frozenset[str]
    """As browsers send them: ``https://label.example.org`` without a slash; empty for a site of programs only."""
    needs_token: bool
    """Whether a visitor needs a token."""
    behind_proxy: bool = False
    """Whether a proxy on this machine forwards requests and names their clients."""

    @classmethod
    def local(cls, port: int) -> Site:
        """Return a site of this machine alone, which needs no tokens.

        Examples
        --------
        >>> sorted(Site.local(8000).origins)
        ['http://127.0.0.1:8000', 'http://[::1]:8000', 'http://localhost:8000']
        """
        ending = "" if port == 80 else f":{port}"
        return cls(frozenset(f"http://{name}{ending}" for name in ("127.0.0.1", "localhost", "[::1]")), False)

    @classmethod
    def public(cls, origin: str, *, behind_proxy: bool = False) -> Site:
        """Return a site that others can reach at this address, with a token.

        Examples
        --------
        >>> Site.public("https://Label.example.org/").origins
        frozenset({'https://label.example.org'})
        """
        plain = origin.lower().removesuffix("/")
        match = _ORIGIN.fullmatch(plain)
        if match is None:
            raise ValueError(f"origin: expected an address as https://label.example.org, found {short_repr(origin)}")
        return cls(frozenset({plain.removesuffix(_PORTS[match[1]])}), True, behind_proxy)

    @classmethod
    def of_programs(cls, *, behind_proxy: bool = False) -> Site:
        """Return a site that programs reach under any host name, with a token.

        Browsers have no token for it, so another site that sends them here under its own name gains nothing.

        Examples
        --------
        >>> Site.of_programs().needs_token
        True
        """
        return cls(frozenset(), True, behind_proxy)

    @property
    def secure(self) -> bool:
        """Whether all addresses are encrypted, so that cookies are sent over HTTPS only."""
        return bool(self.origins) and all(origin.startswith("https://") for origin in self.origins)

    @property
    def hosts(self) -> frozenset[str]:
        """The allowed values of the header ``Host``."""
        return frozenset(origin.partition("://")[2] for origin in self.origins)

    def client(self, scope: Scope) -> str:
        """Return the address of the client (IPv6: its network); behind a proxy, the last one that the proxy names."""
        direct = str((scope.get("client") or ("unknown", 0))[0])
        forwarded = values(scope, "x-forwarded-for")
        address = (
            forwarded[-1].rpartition(",")[2].strip()
            if self.behind_proxy and forwarded and _is_loopback(direct)
            else direct
        )
        try:
            known = ipaddress.ip_address(address)
        except ValueError:
            return direct
        return str(known) if known.version == 4 else str(ipaddress.ip_network(f"{known}/64", strict=False))


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
