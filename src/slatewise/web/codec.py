"""Bodies in and out: JSON or MessagePack, checked by types of msgspec; errors say where and what was expected.

The service and the labeling page both read requests here (extra ``serve`` or ``label``, for msgspec).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from slatewise.core.errors import printable

JSON, MESSAGEPACK = "application/json", "application/msgpack"
_SAME = {"application/x-msgpack": MESSAGEPACK, "application/vnd.msgpack": MESSAGEPACK}
_AT = re.compile(r" - at (`key` in )?`\$\.?(.*)`$")
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.DOTALL)
_LARGE = {
    "Number out of range": "a number that float64 has",
    "Integer value out of range": "a whole number of 64 bits",
}
_MAX_SHOWN = 300


class RequestError(Exception):
    """A request that cannot be answered: where it is wrong, what was expected there, and the status of the answer.

    ``retry_after`` is the number of seconds after which the same request may succeed.
    """

    def __init__(self, place: str, message: str, status: int = 422, retry_after: int | None = None) -> None:
        super().__init__(f"{place}: {message}")
        self.place, self.status, self.retry_after = place, status, retry_after


@dataclass(frozen=True)
class Codec:
    """One way to write answers and read requests."""

    media_type: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes, Any], Any]

    def read(self, body: bytes, kind: type[msgspec.Struct]) -> Any:
        """Return the request that a body holds; raise RequestError unless it is one of this type."""
        try:
            return self.decode(body, kind)
        except msgspec.ValidationError as error:
            raise _invalid(str(error), kind) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            message = f"expected {self.media_type}, found other bytes: {error}"
            raise RequestError("body", message[:_MAX_SHOWN], 400) from None


_CODECS = {
    JSON: Codec(JSON, msgspec.json.Encoder().encode, lambda body, kind: msgspec.json.decode(body, type=kind)),
    MESSAGEPACK: Codec(
        MESSAGEPACK, msgspec.msgpack.Encoder().encode, lambda body, kind: msgspec.msgpack.decode(body, type=kind)
    ),
}


def codec_of_request(content_type: str | None, encoding: str | None = None) -> Codec:
    """Return the codec of a body: JSON without a type; compressed bodies are refused, as they could be of any size."""
    if (encoding or "identity").strip().lower() != "identity":
        raise RequestError("content-encoding", f"expected none, found {printable(encoding or '', 100)!r}", 415)
    kind = (content_type or JSON).partition(";")[0].strip().lower()
    kind = _SAME.get(kind, kind)
    if kind not in _CODECS:
        raise RequestError("content-type", f"expected {' or '.join(_CODECS)}, found {kind[:100]!r}", 415)
    return _CODECS[kind]


def codec_of_answer(accept: str | None) -> Codec:
    """Return MessagePack where the request accepts that alone, else JSON."""
    wanted = (accept or "").lower()
    is_binary = any(kind in wanted for kind in (MESSAGEPACK, *_SAME)) and JSON not in wanted
    return _CODECS[MESSAGEPACK if is_binary else JSON]


def checked(value: Any, kind: type[msgspec.Struct], *, strict: bool = True) -> Any:
    """Return names and values as an instance of a type; raise RequestError unless they are one.

    With ``strict=False`` text may stand for numbers, as in addresses.
    """
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), kind) from None


def error_of_library(error: ValueError) -> RequestError:
    """Return an error of an estimator as one of the request; estimators call rows of features X."""
    place, colon, text = str(error).partition(": ")
    if not colon or len(place) > 40:
        return RequestError("queries", str(error)[:_MAX_SHOWN])
    return RequestError("queries" if place == "X" else place, text[:_MAX_SHOWN])


def _invalid(message: str, kind: type[msgspec.Struct]) -> RequestError:
    """Return an error of msgspec as one of the request."""
    at = _AT.search(message)
    place, text = (at[2], message[: at.start()]) if at else ("", message)
    if at is not None and at[1]:
        text += ", as a key"
    field = _FIELD.search(text)
    if field is not None:
        inside = f"{place}.{field[2]}" if place else field[2]
        if field[1].startswith("missing"):
            return RequestError(inside, "expected, found nothing")
        known = ", ".join(kind.__struct_fields__) if not place else "those of the document"
        return RequestError(printable(inside, _MAX_SHOWN), f"expected one of the fields {known}, found another")
    if text.startswith("Invalid enum value"):
        found = text.removeprefix("Invalid enum value ")
        schema = msgspec.json.schema_components([kind])[1][kind.__name__]["properties"].get(place.partition("[")[0], {})
        expected = " or ".join(_enums(schema)) or "another value"
        return RequestError(place, f"expected {expected}, found {printable(found, 100)}")
    if text in _LARGE:
        return RequestError(place or "body", f"expected {_LARGE[text]}, found a larger one")
    text = text.replace("Expected ", "expected ").replace(", got ", ", found ").replace("`", "")
    return RequestError(place or "body", text)


def _enums(schema: Any) -> list[str]:
    """Return all words and numbers that a schema allows."""
    if isinstance(schema, list):
        return [word for part in cast("list[Any]", schema) for word in _enums(part)]
    if not isinstance(schema, dict):
        return []
    parts = cast("dict[str, Any]", schema)
    return [repr(word) for word in parts.get("enum", ())] + _enums(list(parts.values()))
