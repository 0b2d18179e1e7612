"""The routes of the service as an ASGI application; the guard before it checks who may send requests."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from slatewise.serve.batching import Batcher, QueueFull
from slatewise.serve.endpoints.base import CheckedRequest, Endpoint
from slatewise.serve.metrics import Metrics
from slatewise.serve.models import Models, Version
from slatewise.serve.openapi import QUESTIONS, document
from slatewise.serve.settings import Limits
from slatewise.web.codec import JSON, Codec, RequestError, codec_of_answer, codec_of_request, error_of_library
from slatewise.web.requests import BodyRefused

if TYPE_CHECKING:
    from slatewise.serve.supervisor import WorkerReadiness

_log = logging.getLogger("slatewise.serve")
_LARGE = 1 << 15
"""Bytes of a large body: it is decoded in a thread, and the memory of all large bodies is bounded."""
COUNTED = "counted"
"""Marks requests, in the state of their scope, whose answer ``Service.answer`` has counted."""
PUBLIC = ("/health", "/ready")
"""Paths for monitors, without a token."""
_ERROR_KINDS = {429: "queue full", 500: "failed", 503: "not ready", 504: "time"}
"""Kinds of errors of models for the metrics, by status; others are refused."""
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Service:
    """Models, limits, metrics and threads that the routes share."""

    def __init__(
        self,
        models: Models,
        limits: Limits,
        metrics: Metrics,
        readiness: WorkerReadiness | None = None,
        *,
        look_every: float = 1.0,
    ) -> None:
        self.models, self.limits, self.metrics, self.readiness = models, limits, metrics, readiness
        self.stopping = False
        self.taken = self.answered = self._n_large = self._arriving = 0
        self._look_every = look_every
        n_threads = limits.at_once * len(models.names)
        self.pool = ThreadPoolExecutor(n_threads, thread_name_prefix="answer")
        self.decoder = ThreadPoolExecutor(1, thread_name_prefix="decode")
        self.loader = ThreadPoolExecutor(1, thread_name_prefix="load")
        self.batchers = {name: Batcher(self.pool, limits, partial(self._count_batch, name)) for name in models.names}

    @property
    def state(self) -> str:
        """The state: starting, ready or stopping."""
        return "stopping" if self.stopping else "starting" if self.waits_for else "ready"

    @property
    def waits_for(self) -> list[str]:
        """What is missing until the service is ready; only numbers, because the route needs no token."""
        missing = {"models": (self.models.missing, len(self.models.names))}
        if self.readiness is not None:
            missing["workers"] = self.readiness.missing, self.readiness.n_workers
        return [f"{n} of {total} {what}" for what, (n, total) in missing.items() if n]

    async def load(self) -> None:
        """Load all models and warm them up."""
        began = time.monotonic()
        await asyncio.get_running_loop().run_in_executor(self.loader, self.models.look)
        fields = {"seconds": round(time.monotonic() - began, 3), "models": self.models.names}
        _log.info("ready" if self.models.ready else "not ready", extra={"fields": fields})

    async def run(self) -> None:
        """Load the models, then watch their files."""
        if not self.models.ready:
            await self.load()
        await self.models.watch(self._look_every, self.loader)

    def stop(self) -> None:
        """Report from now on that the service is not ready; requests are still answered."""
        self.stopping = True

    def log_stop(self) -> None:
        """Log the numbers of requests and answers."""
        _log.info("stopped", extra={"fields": {"requests": self.taken, "answered": self.answered}})

    def close(self) -> None:
        """End the threads."""
        self.models.end()
        for pool in (self.pool, self.decoder, self.loader):
            pool.shutdown(wait=False, cancel_futures=True)

    async def answer(self, route: str, request: Request) -> Response:
        """Answer a request to a route of a model."""
        began, name = time.monotonic(), str(request.path_params["name"])
        out = codec_of_answer(request.headers.get("accept"))
        known = name if name in self.batchers else ""
        try:
            version, endpoint = self._endpoint(name, route)
            async with asyncio.timeout(self.limits.seconds):
                codec = codec_of_request(request.headers.get("content-type"), request.headers.get("content-encoding"))
                content = await self._content(request)
                with self._large_body(len(content)):
                    if len(content) < _LARGE:
                        checked = _read(codec, content, endpoint)
                    else:
                        loop = asyncio.get_running_loop()
                        checked = await loop.run_in_executor(self.decoder, _read, codec, content, endpoint)
                    body = await self.batchers[name].answer(endpoint, checked, partial(_body, out, version))
            response = Response(body, media_type=out.media_type)
        except BodyRefused:  # the guard sends the answer
            raise
        except ClientDisconnect:
            response = self._error(out, RequestError("body", "expected a whole one", 400))
        except Exception as error:
            response = self._error(out, error, model=known, route=route)
        request.scope["state"][COUNTED] = True
        self.metrics.answers.labels(known, route, response.status_code).inc()
        self.metrics.seconds.labels(known, route).observe(time.monotonic() - began)
        return response

    def _endpoint(self, name: str, route: str) -> tuple[Version, Endpoint]:
        if name not in self.batchers:
            raise _unknown_model(name, self.models.names)
        version = self.models.get(name)
        if version is None:
            raise RequestError("model", "expected one that is loaded, found one that is not yet", 503, retry_after=1)
        if route not in version.endpoints:
            able = " or ".join(version.endpoints)
            raise RequestError("path", f"expected {able} of a {version.estimator}, found {route}", 404)
        return version, version.endpoints[route]

    async def _content(self, request: Request) -> bytes:
        """Return the body of a request; refuse it if the large bodies that are arriving hold too much memory.

        Only bytes that have arrived count, so that a client that sends slowly, or less than it announced, does not keep
        others out.
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
    def _large_body(self, size: int) -> Generator[None]:
        """Count a large body until it is answered; refuse it if there are too many."""
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

    def _count_batch(self, name: str, route: str, n_queries: int) -> None:
        self.metrics.batch.labels(name, route).observe(n_queries)
        self.metrics.waiting.labels(name).set(len(self.batchers[name].waiting))

    def _error(self, codec: Codec, error: Exception, **about: str) -> Response:
        if isinstance(error, TimeoutError):
            expected = f"expected an answer within {self.limits.seconds:g} s, found none"
            error = RequestError("time", f"{expected}: ask for less, or try again later", 504)
        elif isinstance(error, ValueError):
            error = error_of_library(error)
        place, message, status, headers = "server", "the server failed; its log says why", 500, dict[str, str]()
        if isinstance(error, RequestError):
            place, message, status = error.place, str(error), error.status
            if error.retry_after is not None:
                headers["retry-after"] = str(error.retry_after)
        else:
            _log.error("failed", exc_info=error, extra={"fields": about})
        self.metrics.errors.labels(_ERROR_KINDS.get(status, "refused")).inc()
        body = codec.encode({"place": place, "message": message})
        return Response(body, status, headers, codec.media_type)


def _read(codec: Codec, body: bytes, endpoint: Endpoint) -> CheckedRequest:
    return endpoint.check(codec.read(body, endpoint.request))


def _unknown_model(name: str, known: list[str]) -> RequestError:
    return RequestError("name", f"expected one of {', '.join(known)}, found {name[:100]!r}", 404)


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
        return Response(await asyncio.to_thread(service.metrics.text), media_type=_TEXT)

    async def models(request: Request) -> Response:
        return written(request, {"models": [service.models.about(name) for name in service.models.names]})

    async def model(request: Request) -> Response:
        name = str(request.path_params["name"])
        if name not in service.models.names:
            error = _unknown_model(name, service.models.names)
            return written(request, {"place": error.place, "message": str(error)}, error.status)
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
        *(Route(f"/v1/models/{{name}}/{one}", partial(service.answer, one), methods=["POST"]) for one in QUESTIONS),
    ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: refused})
    app.router.redirect_slashes = False  # unknown paths are 404
    return app
