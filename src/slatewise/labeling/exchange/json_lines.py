"""Answers as JSON lines: an object per item, ``{"item": "a.jpg", "answers": [{"label": "sky", "answer": "yes"}]}``.

The answers have the fields of :mod:`slatewise.labeling.exchange.statements`. Items without answers are there too;
``kind`` and ``content`` describe an item and are not read. JSON of strangers is parsed strictly (:func:`parsed`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from os import PathLike
from typing import Any, NoReturn, cast

from slatewise.core.errors import DataError
from slatewise.core.files import atomic_file
from slatewise.core.rules import short_repr
from slatewise.data.reading import PathOrFile, open_source
from slatewise.labeling.exchange.statements import Names, Statement, as_fields, project_statements, statement
from slatewise.labeling.store.project import Project

_KEYS = {"item", "kind", "content", "answers"}


def write_json_lines(project: Project, path: str | PathLike[str]) -> None:
    """Write an object per item."""
    labels, items = project.labels.names(), project.items.all()
    found: list[list[dict[str, Any]]] = [[] for _ in items]
    for one in project_statements(project):
        found[one.item].append(as_fields(one, labels))
    with atomic_file(path) as file:
        for item, answers in zip(items, found, strict=True):
            row = {"item": item.id, "kind": item.kind, "content": item.content, "answers": answers}
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def read_json_lines(path: PathOrFile, names: Names, annotator: str) -> list[Statement]:
    """Read an object per line."""
    found: list[Statement] = []
    with open_source(path) as source:
        for number, text in source.text_lines():
            if not text.strip():
                continue
            row = parsed(source.name, number, text)

            def fault(expected: str, found: object, number: int = number) -> DataError:
                return DataError(source.name, number, 1, expected, short_repr(found))

            fields = as_object(row)
            if fields is None or not set(fields) <= _KEYS:
                raise fault(f"an object with no other keys than {', '.join(sorted(_KEYS))}", row)
            name, answers = fields.get("item"), as_objects(fields.get("answers", []))
            if not isinstance(name, str) or name not in names.items:
                raise fault("item: the id of an item of the project", name)
            if answers is None:
                raise fault("answers: a list of objects", fields["answers"])
            for place, answer in enumerate(answers):
                found.append(read_object(answer, names.items[name], names, annotator, f"answers[{place}]", fault))
    return found


def read_object(
    fields: dict[str, Any],
    item: int,
    names: Names,
    annotator: str,
    place: str,
    fault: Callable[[str, object], DataError],
) -> Statement:
    """Read one statement of an object."""

    def of_field(name: str, expected: str) -> DataError:
        return fault(f"{place}.{name}: {expected}", fields.get(name))

    return statement(fields, item, names.labels, annotator, of_field)


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
