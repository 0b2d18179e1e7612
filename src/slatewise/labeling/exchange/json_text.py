"""JSON of strangers: parsed strictly, and looked at with types."""

from __future__ import annotations

import json
from typing import Any, NoReturn, cast

from slatewise.core.errors import DataError


def as_object(value: Any) -> dict[str, Any] | None:
    """Return a value that is an object, None otherwise."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: Any) -> list[Any] | None:
    """Return a value that is a list, None otherwise."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def as_objects(value: Any) -> list[dict[str, Any]] | None:
    """Return a value that is a list of objects, None otherwise."""
    found = as_list(value)
    return found if found is not None and all(isinstance(one, dict) for one in found) else None


def as_texts(value: Any) -> list[str] | None:
    """Return a value that is a list of texts, None otherwise."""
    found = as_list(value)
    return found if found is not None and all(isinstance(one, str) for one in found) else None


def parsed(name: str, line: int, text: str) -> Any:
    """Parse JSON as RFC 8259 has it: every key once, finite numbers, nothing that Unicode cannot say."""

    def fault(at: int, expected: str, found: str) -> DataError:
        before = text[:at]
        return DataError(name, line + before.count("\n"), len(before.rpartition("\n")[2].encode()) + 1, expected, found)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise fault(0, "every key once in an object", "one again")
        return dict(pairs)

    def refused(constant: str) -> NoReturn:
        raise fault(0, "finite numbers", constant)

    try:
        found = json.loads(text, object_pairs_hook=once, parse_constant=refused)
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    except json.JSONDecodeError as error:
        raise fault(error.pos, "JSON", error.msg) from None
    except DataError:
        raise
    except (RecursionError, ValueError) as error:
        raise fault(0, "JSON that is not nested deeply, of text and finite numbers", str(error)) from None
    return found
