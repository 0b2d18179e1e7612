"""What a browser may do with our answers: nearly nothing but show them."""

from __future__ import annotations

from slatewise.web.asgi import Headers, Message, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Scripts and styles are files of ours: none inline, none from elsewhere; nothing is embedded or embeds us."""
FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"
"""Of files that users brought: opened by themselves they run nothing (an SVG may hold a script)."""

_ALWAYS: Headers = (
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),  # with no-referrer a form of ours would be sent with "Origin: null"
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ("cache-control", "no-store"),
)
_ENCRYPTED: Headers = (("strict-transport-security", "max-age=31536000"),)


def with_headers(send: Send, *, secure: bool) -> Send:
    """Return a ``send`` that adds these headers to an answer that does not have them already."""
    wanted = [(name.encode(), value.encode()) for name, value in _ALWAYS + (_ENCRYPTED if secure else ())]

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", ()))
            there = {name.lower() for name, _ in own}
            message = {**message, "headers": own + [pair for pair in wanted if pair[0] not in there]}
        await send(message)

    return sending
