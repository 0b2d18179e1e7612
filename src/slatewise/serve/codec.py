"""Bodies in and out: JSON or MessagePack, and errors that say where and what was expected."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from slatewise.core.errors import printable
from slatewise.serve.door import Door, Refused

JSON, MESSAGEPACK = "application/json", "application/msgpack"
_SAME = {"application/x-msgpack": MESSAGEPACK, "application/vnd.msgpack": MESSAGEPACK}
_AT = re.compile(r" - at (`key` in )?`\$\.?(.*)`$")
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.DOTALL)
_LARGE = {
    "Number out of range": "a number that float64 has",
    "Integer value out of range": "a whole number of 64 bits",
}
_MOST_SHOWN = 300


@dataclass(frozen=True)
class Codec:
    """One way to write answers and read requests."""

    media_type: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes, Any], Any]


_CODECS = {
    JSON: Codec(JSON, msgspec.json.Encoder().encode, lambda body, kind: msgspec.json.decode(body, type=kind)),
    MESSAGEPACK: Codec(
        MESSAGEPACK, msgspec.msgpack.Encoder().encode, lambda body, kind: msgspec.msgpack.decode(body, type=kind)
    ),
}


def codec_of_request(content_type: str | None, encoding: str | None = None) -> Codec:
    """Return how a body is written; one without a type is JSON, and none is packed: it could be of any size."""
    if (encoding or "identity").strip().lower() != "identity":
        raise Refused("content-encoding", f"expected none, found {printable(encoding or '', 100)!r}", 415)
    kind = (content_type or JSON).partition(";")[0].strip().lower()
    kind = _SAME.get(kind, kind)
    if kind not in _CODECS:
        raise Refused("content-type", f"expected {' or '.join(_CODECS)}, found {kind[:100]!r}", 415)
    return _CODECS[kind]


def codec_of_answer(accept: str | None) -> Codec:
    """Return how to answer: in MessagePack where that is asked for by name, else in JSON."""
    wanted = (accept or "").lower()
    is_binary = any(kind in wanted for kind in (MESSAGEPACK, *_SAME)) and JSON not in wanted
    return _CODECS[MESSAGEPACK if is_binary else JSON]


def read_request(codec: Codec, body: bytes, door: Door) -> Any:
    """Return the request that a body holds."""
    try:
        return codec.decode(body, door.request)
    except msgspec.ValidationError as error:
        raise _refused(str(error), door.request) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused("body", f"expected {codec.media_type}, found other bytes: {error}"[:_MOST_SHOWN], 400) from None


def refused_by_library(error: ValueError) -> Refused:
    """Return what an estimator refuses, in its words; it calls rows of features X."""
    place, colon, text = str(error).partition(": ")
    if not colon or len(place) > 40:
        return Refused("queries", str(error)[:_MOST_SHOWN])
    return Refused("queries" if place == "X" else place, text[:_MOST_SHOWN])


def _refused(message: str, kind: type[msgspec.Struct]) -> Refused:
    """Put an error of msgspec into the words of the house."""
    at = _AT.search(message)
    place, text = (at[2], message[: at.start()]) if at else ("", message)
    if at is not None and at[1]:
        text += ", as a key"
    field = _FIELD.search(text)
    if field is not None:
        inside = f"{place}.{field[2]}" if place else field[2]
        known = ", ".join(kind.__struct_fields__) if not place else "those of the document"
        if field[1].startswith("missing"):
            return Refused(inside, "expected, found nothing")
        return Refused(printable(inside, _MOST_SHOWN), f"expected one of the fields {known}, found another")
    if text.startswith("Invalid enum value"):
        found = text.removeprefix("Invalid enum value ")
        return Refused(place, f"expected {_allowed(kind, place)}, found {printable(found, 100)}")
    if text in _LARGE:
        return Refused(place or "body", f"expected {_LARGE[text]}, found a larger one")
    text = text.replace("Expected ", "expected ").replace(", got ", ", found ").replace("`", "")
    return Refused(place or "body", text)


def _allowed(kind: type[msgspec.Struct], place: str) -> str:
    """Return the words that a field may be, or the numbers."""
    schema = msgspec.json.schema_components([kind])[1][kind.__name__]["properties"].get(place.partition("[")[0], {})
    return " or ".join(_enums(schema)) or "another value"


def _enums(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [word for part in cast("list[Any]", schema) for word in _enums(part)]
    if not isinstance(schema, dict):
        return []
    parts = cast("dict[str, Any]", schema)
    return [repr(word) for word in parts.get("enum", ())] + _enums(list(parts.values()))
