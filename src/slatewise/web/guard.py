"""The middleware before an application: it checks every request and passes on only those that are allowed.

A visitor sends a token as ``Authorization: Bearer ...`` (programs) or in a cookie (browsers), which ``POST /enter``
with the field ``token`` sets and ``POST /leave`` removes. A local site needs no tokens. A change without a bearer token
must come from a page of this site: the right ``Origin``, and the header ``X-Form-Token`` with the form token of the
page. The application finds ``visitor`` and ``form_token`` in the state of the request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from slatewise.web.asgi import SAFE_METHODS, Answer, App, Message, Receive, Scope, Send, header, with_headers
from slatewise.web.requests import GONE, BodyLimits, BodyRefused, LimitedBody, refused, refused_change
from slatewise.web.site import Site
from slatewise.web.tokens import Keys, TokenCookie, Visitor, WrongTokens, form_token, is_form_token

ENTER, LEAVE = "/enter", "/leave"
_log = logging.getLogger("slatewise.web")
_ENTER_BYTES = 1000


@dataclass(frozen=True)
class Rules:
    """What the guard allows."""

    public: Collection[str] = (ENTER,)
    """Paths that need no token; one that ends with ``/`` includes all paths below it."""
    any_name: Collection[str] = ()
    """Paths that are served under any host name, for monitors that know only the address."""
    body: BodyLimits = field(default_factory=BodyLimits)
    wrong_tokens: WrongTokens = field(default_factory=WrongTokens)
    only_answers: bool = False
    """Whether no request changes anything: programs may then POST without a token on a local site, other sites not."""
    audit: Callable[[str, str, Visitor | None], None] = lambda what, client, visitor: None
    """Called in a thread with "enter", "leave" or "wrong token", the client and the visitor."""


class Guard:
    """An ASGI application before another.

    Parameters
    ----------
    app
        The application to protect.
    site
        Its addresses, and whether it needs tokens.
    keys
        Finds the owner of a token.
    secret
        At least 16 random bytes for form tokens; kept the same, open pages still work after a restart.
    rules
        Limits and public paths.
    """

    def __init__(self, app: App, site: Site, keys: Keys, secret: bytes, rules: Rules | None = None) -> None:
        if len(secret) < 16:
            raise ValueError(f"secret: expected at least 16 bytes, found {len(secret)}")
        self._app, self._site, self._keys, self._secret = app, site, keys, secret
        self._rules = Rules() if rules is None else rules
        self._cookie = TokenCookie(site, secret)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, with_headers(send, secure=self._site.secure))
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = refused(scope, self._site, any_name=scope["path"] in self._rules.any_name)
        if answer is None and scope["path"] == ENTER and scope["method"] == "POST" and ENTER in self._rules.public:
            answer = await self._enter(scope, receive)
        elif answer is None:
            answer = await self._admit(scope)
        if answer is not None:
            await answer.send(send)
        else:
            await _passed_on(self._app, scope, LimitedBody(scope, receive, self._rules.body), send)

    async def _admit(self, scope: Scope) -> Answer | None:
        """Find the visitor; return an error, or None if the request may pass."""
        client = self._site.client(scope)
        kind, _, token = (header(scope, "authorization") or "").partition(" ")
        bearer = token.strip() if kind.lower() == "bearer" else None
        shown = bearer or self._cookie.read(scope)
        wait = self._rules.wrong_tokens.wait(client)
        if wait and (shown is not None or scope["path"] not in self._rules.any_name):
            return _later(wait)  # monitors may share an address with a blocked client
        visitor = None if shown is None else await asyncio.to_thread(self._keys.find, shown)
        if shown is not None and visitor is None and (bearer or self._site.needs_token):
            await self._wrong(client)
            headers = () if bearer else (self._cookie.removed(),)
            return Answer(401, "token: expected one that is valid", headers)
        if visitor is None and not self._site.needs_token:
            visitor, shown = Visitor("owner"), "local"
        if visitor is None and not _is_below(str(scope["path"]), self._rules.public):
            wants_page = ENTER in self._rules.public and "text/html" in (header(scope, "accept") or "")
            if scope["method"] == "GET" and wants_page:
                return Answer(303, "enter first", (("location", ENTER),))
            return Answer(401, "token: expected one", (("www-authenticate", "Bearer"),))
        answer = self._refused_page(scope, shown or "", has_bearer=bearer is not None)
        if answer is not None:
            return answer
        if scope["path"] == LEAVE and scope["method"] == "POST":
            await asyncio.to_thread(self._rules.audit, "leave", client, visitor)
            return Answer(303, "left", (("location", ENTER), self._cookie.removed()))
        state = scope.setdefault("state", {})
        state["visitor"], state["form_token"] = visitor, form_token(self._secret, shown or "")
        return None

    def _refused_page(self, scope: Scope, shown: str, *, has_bearer: bool) -> Answer | None:
        """Return the error of a change from another site or without the form token, or None."""
        if self._rules.only_answers:
            return None if header(scope, "origin") is None else refused_change(scope, self._site)
        if has_bearer or scope["method"] in SAFE_METHODS:
            return None
        answer = refused_change(scope, self._site)
        if answer is None and not is_form_token(self._secret, shown, header(scope, "x-form-token")):
            return Answer(403, "X-Form-Token: expected that of the page")
        return answer

    async def _enter(self, scope: Scope, receive: Receive) -> Answer:
        """Exchange a token in a form for a cookie."""
        client = self._site.client(scope)
        wait = self._rules.wrong_tokens.wait(client)
        answer = _later(wait) if wait else refused_change(scope, self._site)
        if answer is not None:
            return answer
        body = LimitedBody(scope, receive, BodyLimits(_ENTER_BYTES, self._rules.body.seconds))
        try:
            fields = parse_qs((await _whole(body)).decode("ascii"), strict_parsing=True, max_num_fields=5)
        except BodyRefused as refusal:
            return refusal.answer
        except ValueError:
            fields = {}
        token = fields.get("token", [""])[0].strip()
        visitor = await asyncio.to_thread(self._keys.find, token)
        if visitor is None:
            await self._wrong(client)
            return Answer(401, "token: expected one that is valid")
        await asyncio.to_thread(self._rules.audit, "enter", client, visitor)
        return Answer(303, "entered", (("location", "/"), self._cookie.written(token)))

    async def _wrong(self, client: str) -> None:
        self._rules.wrong_tokens.add(client)
        await asyncio.to_thread(self._rules.audit, "wrong token", client, None)


def _is_below(path: str, public: Collection[str]) -> bool:
    return any(path == one or (one.endswith("/") and path.startswith(one)) for one in public)


def _later(seconds: int) -> Answer:
    return Answer(429, "token: too many wrong ones, try later", (("retry-after", str(seconds)),))


async def _whole(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise BodyRefused(GONE)
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def _passed_on(app: App, scope: Scope, body: LimitedBody, send: Send) -> None:
    """Run the application; a body beyond the limits and unexpected errors become answers without details."""
    if body.refusal is not None:
        await body.refusal.send(send)
        return
    started = replaced = False

    async def sending(message: Message) -> None:
        nonlocal started, replaced
        if body.refusal is not None and not started:
            started = replaced = True
            await body.refusal.send(send)
        started = True
        if not replaced:
            await send(message)

    try:
        await app(scope, body, sending)
    except BodyRefused as refusal:
        if not started:
            await refusal.answer.send(send)
    except Exception:
        _log.exception("%s %r failed", scope["method"], scope["path"])
        if started:
            raise
        await Answer(500, "the server failed; its log says why").send(send)
