"""Ask an ASGI application without a server: one request, its parts as they are given, one answer."""

import asyncio
from dataclasses import dataclass, field

LOCAL = ("127.0.0.1", 50_000)
HOST = ("host", "label.example.org")
ORIGIN = ("origin", "https://label.example.org")


@dataclass
class Answered:
    status: int = 0
    headers: dict = field(default_factory=dict)
    body: bytes = b""


def scope_of(method="GET", path="/", headers=(HOST,), client=LOCAL, raw_path=None, query=b""):
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode() if raw_path is None else raw_path,
        "query_string": query,
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        "client": client,
    }


def ask(
    app,
    method="GET",
    path="/",
    headers=(HOST,),
    body=b"",
    client=LOCAL,
    raw_path=None,
    parts=None,
    wait=0.0,
    query=b"",
):
    """``parts`` are chunks of a body; ``wait`` seconds pass before each."""
    chunks = [body] if parts is None else list(parts)
    answered = Answered()

    async def receive():
        await asyncio.sleep(wait)
        if not chunks:
            return {"type": "http.disconnect"}
        chunk = chunks.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(chunks)}

    async def send(message):
        if message["type"] == "http.response.start":
            assert answered.status == 0, "an answer starts once"
            answered.status = message["status"]
            answered.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            answered.all_headers = [(name.decode(), value.decode()) for name, value in message["headers"]]
        else:
            answered.body += message.get("body", b"")

    asyncio.run(app(scope_of(method, path, headers, client, raw_path, query), receive, send))
    return answered
