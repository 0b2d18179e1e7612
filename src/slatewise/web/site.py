"""Where a server stands: the addresses that browsers know it by, and whether strangers can reach them."""

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
    """The addresses of a server, and what follows from them."""

    origins: frozenset[str]
    """As browsers send them: ``https://label.example.org``, no slash at the end; none where only programs come."""
    needs_token: bool
    """Whether a visitor must show a token."""
    behind_proxy: bool = False
    """Whether a proxy on this machine passes requests on, and tells whose they are."""

    @classmethod
    def local(cls, port: int) -> Site:
        """Return the site of this machine alone: whoever sits at it may enter.

        Examples
        --------
        >>> sorted(Site.local(8000).origins)
        ['http://127.0.0.1:8000', 'http://[::1]:8000', 'http://localhost:8000']
        """
        ending = "" if port == 80 else f":{port}"
        return cls(frozenset(f"http://{name}{ending}" for name in ("127.0.0.1", "localhost", "[::1]")), False)

    @classmethod
    def public(cls, origin: str, *, behind_proxy: bool = False) -> Site:
        """Return a site that others can reach at this address: they need a token.

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
        """Return a site that programs reach under any name, each with a token.

        No browser holds one, so that a page of others which leads a browser here under its own name gains nothing.

        Examples
        --------
        >>> Site.of_programs().needs_token
        True
        """
        return cls(frozenset(), True, behind_proxy)

    @property
    def secure(self) -> bool:
        """Whether browsers reach it encrypted, so that cookies never travel otherwise."""
        return bool(self.origins) and all(origin.startswith("https://") for origin in self.origins)

    @property
    def hosts(self) -> frozenset[str]:
        """What the header ``Host`` may say."""
        return frozenset(origin.partition("://")[2] for origin in self.origins)

    def client(self, scope: Scope) -> str:
        """Return whose request it is: an address, of IPv6 the network; behind a proxy what that says last."""
        direct = str((scope.get("client") or ("unknown", 0))[0])
        told = values(scope, "x-forwarded-for")
        address = told[-1].rpartition(",")[2].strip() if self.behind_proxy and told and _is_here(direct) else direct
        try:
            known = ipaddress.ip_address(address)
        except ValueError:
            return direct
        return str(known) if known.version == 4 else str(ipaddress.ip_network(f"{known}/64", strict=False))


def _is_here(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
