"""The loops of a reproduction: data sets, splits of one, and methods fitted on each split."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from slatewise.core.numerics.result import ConvergenceWarning, NothingLearnedWarning
from slatewise.core.running.progress import track
from slatewise_papers.framework.reproduction import Reproduction, Row

Split = TypeVar("Split")
Value = TypeVar("Value")


def over_sets(
    title: str, sets: Sequence[str], data: str | None, rows_of: Callable[[str], Iterable[Row]], what: str = "data set"
) -> Reproduction:
    """Make the rows of all sets, or of the one that ``data`` names."""
    names = sets if data is None else (data,)
    rows = [row for name in track(names, what) for row in rows_of(name)]
    return Reproduction(title, ", ".join(names), rows)


def over_splits(
    splits: Iterable[Split],
    methods: Callable[[Split], Iterable[tuple[str, Value]]],
    what: str,
    total: int | None = None,
) -> dict[str, list[Value]]:
    """Fit all methods on every split; return what each came to, split by split."""
    found: dict[str, list[Value]] = {}
    for split in track(splits, what, total):
        for name, value in methods(split):
            found.setdefault(name, []).append(value)
    return found


@contextmanager
def expected_warnings() -> Generator[None]:
    """Ignore what the table shows: rough fits, weak strengths, lists that are all relevant or all irrelevant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", NothingLearnedWarning)
        warnings.filterwarnings("ignore", message=".*lists are left out")
        yield


def installed(module: str) -> bool:
    """Return whether a peer can be imported, without importing it."""
    return find_spec(module) is not None


def kept_or_made(path: Path | None, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Read the file where there is one; else make what it says, and write it, whole or not at all."""
    if path is None:
        return make()
    if not path.exists():
        text = json.dumps(make())
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".part")
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    return json.loads(path.read_text(encoding="utf-8"))
