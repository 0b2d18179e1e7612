"""The routes of the service, as an ASGI application; who may ask is the guard's business, before it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from slatewise.serve.batching import Batcher, QueueFull
from slatewise.serve.crew import Crew
from slatewise.serve.door import Asked, Door
from slatewise.serve.limits import Limits
from slatewise.serve.measures import Measures
from slatewise.serve.models import Models, Version
from slatewise.serve.openapi import QUESTIONS, document
from slatewise.web.codec import JSON, Codec, RequestError, codec_of_answer, codec_of_request, error_of_library
from slatewise.web.requests import BodyRefused

_log = logging.getLogger("slatewise.serve")
_LARGE = 1 << 15
"""Bytes from which on a body is large: decoding it is work for a thread, and the memory of all of them is bounded."""
COUNTED = "counted"
"""Marks requests, in the state of their scope, whose answer ``Service.ask`` has counted."""
PUBLIC = ("/health", "/ready")
"""Paths for those who watch over processes: without a token."""
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Service:
    """All that the routes share."""

    def __init__(
        self, models: Models, limits: Limits, measures: Measures, crew: Crew | None = None, *, look_every: float = 1.0
    ) -> None:
        self.models, self.limits, self.measures, self.crew = models, limits, measures, crew
        self.stopping = False
        self.taken = self.answered = self._n_large = self._arriving = 0
        self._look_every = look_every
        n_threads = limits.at_once * len(models.names)
        self.pool = ThreadPoolExecutor(n_threads, thread_name_prefix="answer")
        self.doorkeeper = ThreadPoolExecutor(1, thread_name_prefix="door")
        self.looker = ThreadPoolExecutor(1, thread_name_prefix="look")
        self.batchers = {name: Batcher(self.pool, limits, partial(self._count_batch, name)) for name in models.names}

    @property
    def state(self) -> str:
        """Whether requests are welcome: starting, ready or stopping."""
        return "stopping" if self.stopping else "starting" if self.waits_for else "ready"

    @property
    def waits_for(self) -> list[str]:
        """What is missing before requests are welcome, in numbers: who asks for it shows no token."""
        missing = {"models": (self.models.missing, len(self.models.names))}
        if self.crew is not None:
            missing["workers"] = self.crew.missing, self.crew.size
        return [f"{n} of {total} {what}" for what, (n, total) in missing.items() if n]

    async def load(self) -> None:
        """Load all models and warm them up."""
        began = time.monotonic()
        await asyncio.get_running_loop().run_in_executor(self.looker, self.models.look)
        fields = {"seconds": round(time.monotonic() - began, 3), "models": self.models.names}
        _log.info("ready" if self.models.ready else "not ready", extra={"fields": fields})

    async def run(self) -> None:
        """Load the models, then watch their files."""
        if not self.models.ready:
            await self.load()
        await self.models.watch(self._look_every, self.looker)

    def stop(self) -> None:
        """Answer that the service is not ready from now on; requests are answered all the same."""
        self.stopping = True

    def close(self) -> None:
        """End the threads."""
        self.models.end()
        for pool in (self.pool, self.doorkeeper, self.looker):
            pool.shutdown(wait=False, cancel_futures=True)

    async def ask(self, question: str, request: Request) -> Response:
        """Answer a question of a model."""
        began, name = time.monotonic(), str(request.path_params["name"])
        answer = codec_of_answer(request.headers.get("accept"))
        known = name if name in self.batchers else ""
        try:
            version, door = self._door(name, question)
            async with asyncio.timeout(self.limits.seconds):
                codec = codec_of_request(request.headers.get("content-type"), request.headers.get("content-encoding"))
                content = await self._content(request)
                with self._place(len(content)):
                    asked = await self._asked(codec, content, door)
                    body = await self.batchers[name].answer(door, asked, partial(_body, answer, version))
            response = Response(body, media_type=answer.media_type)
        except BodyRefused:  # the guard answers in our place
            raise
        except ClientDisconnect:
            response = self._refusal(answer, RequestError("body", "expected a whole one", 400))
        except Exception as error:
            response = self._refusal(answer, error, model=known, route=question)
        request.scope["state"][COUNTED] = True
        self.measures.answers.labels(known, question, response.status_code).inc()
        self.measures.seconds.labels(known, question).observe(time.monotonic() - began)
        return response

    def _door(self, name: str, question: str) -> tuple[Version, Door]:
        if name not in self.batchers:
            raise RequestError("name", f"expected one of {', '.join(self.models.names)}, found {name[:100]!r}", 404)
        version = self.models.get(name)
        if version is None:
            raise _Later("model", "expected one that is loaded, found one that is not yet", 1)
        if question not in version.doors:
            able = " or ".join(version.doors)
            raise RequestError("path", f"expected {able} of a {version.estimator}, found {question}", 404)
        return version, version.doors[question]

    async def _content(self, request: Request) -> bytes:
        """Return the body of a request; refuse it where the large ones that are arriving hold too much memory.

        They count with the bytes that have arrived, and take no place yet: a client that trickles a large body, or does
        not send what it announced, keeps nobody else out.
        """
        content, counted = bytearray(), 0
        try:
            async for part in request.stream():
                content += part
                if len(content) >= _LARGE:
                    self._arriving += len(content) - counted
                    counted = len(content)
                    if self._arriving > self.limits.large * self.limits.body_bytes:
                        raise QueueFull(1)
            return bytes(content)
        finally:
            self._arriving -= counted

    @contextmanager
    def _place(self, size: int) -> Generator[None]:
        """Hold a place for a large body that is there until it is answered; refuse it where all are taken."""
        if size < _LARGE:
            yield
            return
        if self._n_large >= self.limits.large:
            raise QueueFull(1)
        self._n_large += 1
        try:
            yield
        finally:
            self._n_large -= 1

    async def _asked(self, codec: Codec, body: bytes, door: Door) -> Asked:
        if len(body) < _LARGE:
            return _read(codec, body, door)
        return await asyncio.get_running_loop().run_in_executor(self.doorkeeper, _read, codec, body, door)

    def _count_batch(self, name: str, question: str, n_requests: int, n_queries: int) -> None:
        self.measures.batch.labels(name, question).observe(n_queries)
        self.measures.waiting.labels(name).set(len(self.batchers[name].waiting))

    def _refusal(self, codec: Codec, error: Exception, **about: str) -> Response:
        headers: dict[str, str] = {}
        match error:
            case QueueFull():
                place, message, status, kind = "queue", f"queue: {error}", 429, "queue full"
                headers["retry-after"] = str(error.seconds)
            case _Later():
                place, message, status, kind = error.place, str(error), 503, "not ready"
                headers["retry-after"] = str(error.seconds)
            case RequestError():
                place, message, status, kind = error.place, str(error), error.status, "refused"
            case TimeoutError():
                seconds = f"{self.limits.seconds:g} s"
                place, status, kind = "time", 504, "time"
                message = f"time: expected an answer within {seconds}, found none: ask for less, or try again later"
            case ValueError():
                refused = error_of_library(error)
                place, message, status, kind = refused.place, str(refused), 422, "refused"
            case _:
                _log.error("failed", exc_info=error, extra={"fields": about})
                place, message, status, kind = "server", "the server failed; its log says why", 500, "failed"
        self.measures.errors.labels(kind).inc()
        body = codec.encode({"place": place, "message": message})
        return Response(body, status, headers, codec.media_type)


class _Later(RequestError):
    """Not now."""

    def __init__(self, place: str, message: str, seconds: int) -> None:
        super().__init__(place, message, 503)
        self.seconds = seconds


def _read(codec: Codec, body: bytes, door: Door) -> Asked:
    return door.check(codec.read(body, door.request))


def _body(codec: Codec, version: Version, parts: list[Any], warnings: tuple[str, ...]) -> bytes:
    return codec.encode({"model": version.name, "version": version.version, "answers": parts, "warnings": warnings})


def make_routes(service: Service, address: str) -> Starlette:
    """Return the application."""

    def written(request: Request, value: Any, status: int = 200) -> Response:
        codec = codec_of_answer(request.headers.get("accept"))
        return Response(codec.encode(value), status, media_type=codec.media_type)

    async def health(request: Request) -> Response:
        return written(request, {"status": "alive"})

    async def ready(request: Request) -> Response:
        state = service.state
        response = written(request, {"status": state, "waits_for": service.waits_for}, 200 if state == "ready" else 503)
        if state != "ready":
            response.headers["retry-after"] = "1"
        return response

    async def metrics(_: Request) -> Response:
        return Response(await asyncio.to_thread(service.measures.text), media_type=_TEXT)

    async def models(request: Request) -> Response:
        return written(request, {"models": [service.models.about(name) for name in service.models.names]})

    async def model(request: Request) -> Response:
        name = str(request.path_params["name"])
        if name not in service.models.names:
            message = f"name: expected one of {', '.join(service.models.names)}, found {name[:100]!r}"
            return written(request, {"place": "name", "message": message}, 404)
        return written(request, service.models.about(name))

    async def openapi(_: Request) -> Response:
        written = await asyncio.to_thread(document, service.models, service.limits, address)
        return Response(codec_of_answer(None).encode(written), media_type=JSON)

    async def refused(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        headers: dict[str, str] = dict(getattr(error, "headers", None) or ())
        place = {404: "path", 405: "method"}.get(status, "request")
        expected = f"{headers['Allow']}, found {request.method}" if status == 405 else "one that /openapi.json has"
        response = written(request, {"place": place, "message": f"{place}: expected {expected}"}, status)
        response.headers.update(headers)
        return response

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        running = asyncio.create_task(service.run())
        yield
        running.cancel()
        service.close()

    routes = [
        Route("/health", health),
        Route("/ready", ready),
        Route("/metrics", metrics),
        Route("/openapi.json", openapi),
        Route("/v1/models", models),
        Route("/v1/models/{name}", model),
        *(Route(f"/v1/models/{{name}}/{one}", partial(service.ask, one), methods=["POST"]) for one in QUESTIONS),
    ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: refused})
    app.router.redirect_slashes = False  # a path that is not there is not there
    return app
