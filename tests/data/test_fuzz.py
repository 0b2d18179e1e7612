"""Some hundred mutated files per format; ``make fuzz`` runs many more."""

from __future__ import annotations

import pytest

from slatewise.core.errors import DataError
from tests.fuzz import Format, Rejected, collect
from tests.fuzz.engine import batch, judge


@pytest.mark.parametrize("form", collect(), ids=lambda form: form.name)
def test_reader_and_reference_agree(form: Format) -> None:
    accepted, failures = batch(form.name, 0, 0, 300)
    assert not failures, "\n".join(failures[:3])
    assert accepted > 30, "hardly any mutated file is still valid: the accepting side goes unchecked"


def _first_line(line: int):
    def reference(data: bytes) -> object:
        raise Rejected(line)

    return reference


def _refuse(name: str, line: int, column: int):
    def read(file: object) -> object:
        raise DataError(name, line, column, "something", "something else")

    return read


def _crash(file: object) -> object:
    raise IndexError


@pytest.mark.parametrize(
    ("read", "reference", "failure"),
    [
        (lambda file: 1, lambda data: 2, "read 1, expected 2"),
        (lambda file: 1, _first_line(3), "expected line 3 to be refused"),
        (_crash, lambda data: 1, "raised IndexError()"),
        (_crash, _first_line(1), "raised IndexError()"),
        (_refuse("mutated.txt", 1, 1), lambda data: 1, "expected to be accepted"),
        (_refuse("mutated.txt", 1, 1), _first_line(2), "expected line 2"),
        (_refuse("mutated.txt", 1, 0), _first_line(1), "expected a place"),
        (_refuse("<stream>", 1, 1), _first_line(1), "expected a place"),
    ],
)
def test_the_judge_notices(read, reference, failure: str) -> None:
    outcome = judge(Format("bad", (b"x",), read, reference), b"x")
    assert outcome.failure is not None
    assert failure in outcome.failure
