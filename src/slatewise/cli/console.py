"""What the commands print and write: tables, progress bars, and checks of output files."""

from __future__ import annotations

import math
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager


def working(what: str) -> AbstractContextManager[None]:
    """Show progress on stderr if it is a terminal."""
    from slatewise.core.running.progress import progress_bars

    return progress_bars(what, patience=0.0)


def when(milliseconds: int) -> str:
    """Return a time, in milliseconds since 1970, as text for a table."""
    return datetime.fromtimestamp(milliseconds / 1000.0, UTC).strftime("%Y-%m-%d %H:%M UTC")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: drawn for a person, tab-separated into a pipe."""
    if not sys.stdout.isatty():
        for row in [columns, *rows]:
            print("\t".join(row))
        return
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    # Without vertical lines, and with headings that wrap before they widen a column, most tables fit 80 columns. Cells
    # of those that do not are folded: none is cut.
    table = Table(
        title=escape(title),
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    for place, heading in enumerate(columns):
        widest = max(map(cell_len, [*heading.split(), *(row[place] for row in rows)]), default=1)
        table.add_column(escape(heading), max_width=widest, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)


def check_target(option: str, path: Path | None, *others: Path | str | None) -> None:
    """Refuse, before the work, a file that cannot be written, or that the command also reads or writes."""
    if path is None:
        return
    from slatewise.core.files import check_target as check_place

    check_place(path)
    for other in others:
        if other is not None and _same_file(path, Path(other)):
            raise ValueError(f"{option}: expected another file than {other}, found {path}, which is the same")


def _same_file(one: Path, other: Path) -> bool:
    """Return whether two paths lead to the same file, or will."""
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there yet
        return one.resolve() == other.resolve()


def without_nan(value: Any) -> Any:
    """Return a value for JSON, which has no NaN: the mean over no lists is null."""
    match value:
        case dict():
            return {key: without_nan(part) for key, part in cast("dict[str, Any]", value).items()}
        case list():
            return [without_nan(part) for part in cast("list[Any]", value)]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value


def as_options(text: str) -> str:
    """Return a message of a reader with options instead of arguments."""
    return text.replace("header=True", "--header").replace("header=False", "--no-header")
