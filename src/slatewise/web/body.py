"""How much a request may bring, and how long it may take to."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from slatewise.web.asgi import Answer, Message, Receive, Scope, header

GONE = Answer(400, "body: expected a whole one", (("connection", "close"),))


@dataclass(frozen=True)
class BodyLimits:
    """Of one request."""

    bytes: int = 1 << 20
    seconds: float = 20.0

    @property
    def too_large(self) -> Answer:
        """Return the answer to more bytes."""
        return Answer(413, f"body: expected at most {self.bytes} bytes, found more", (("connection", "close"),))

    @property
    def too_slow(self) -> Answer:
        """Return the answer to who takes longer."""
        return Answer(408, f"body: expected all of it within {self.seconds:g} s", (("connection", "close"),))


class BodyRefused(Exception):
    """Raised to an application that reads a body beyond the limits; the guard answers in its place."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.text)
        self.answer = answer


class LimitedBody:
    """A ``receive`` that ends where the limits are; ``refusal`` then says why."""

    def __init__(self, scope: Scope, receive: Receive, limits: BodyLimits) -> None:
        self._receive, self._limits = receive, limits
        self._read, self._whole = 0, False
        self._deadline = time.monotonic() + limits.seconds
        length = header(scope, "content-length")
        self.refusal: Answer | None = None
        if length is not None and int(length) > limits.bytes:
            self.refusal = limits.too_large

    async def __call__(self) -> Message:
        """Receive the next part."""
        if self._whole:  # what comes now is that the client goes away, which may take as long as it likes
            return await self._receive()
        if self.refusal is not None:
            raise BodyRefused(self.refusal)
        try:
            message = await asyncio.wait_for(self._receive(), max(self._deadline - time.monotonic(), 0.0))
        except TimeoutError:
            raise self._refused(self._limits.too_slow) from None
        if message["type"] == "http.request":
            self._read += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            if self._read > self._limits.bytes:
                raise self._refused(self._limits.too_large)
        return message

    def _refused(self, answer: Answer) -> BodyRefused:
        self.refusal = answer
        return BodyRefused(answer)
