"""Session files: one session per line, its item ids in order."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from numbers import Number
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import sparse_rows
from slatewise.core.errors import DataError
from slatewise.core.files import atomic_file
from slatewise.core.groups import group_rows
from slatewise.core.ids import check_ids, require_one_kind
from slatewise.data.fields import (
    Splitter,
    as_ids,
    check_delimiter,
    check_word,
    guess_delimiter,
    is_numeral,
    name_columns,
    words,
)
from slatewise.data.pairs import IF_HEADER
from slatewise.data.reading import (
    MAX_LINE,
    Line,
    OnError,
    PathOrFile,
    Problems,
    clean_lines,
    header_line,
    open_source,
    text_reader,
    warn_of_header,
)
from slatewise.data.records import Ids, Sessions

_DELIMITER_OR_QUOTE = re.compile(r'[,;|"]')


@text_reader
def read_sessions(
    path: PathOrFile,
    *,
    delimiter: str | None = None,
    min_length: int = 1,
    header: bool | None = None,
    on_error: OnError = "raise",
    max_line: int = MAX_LINE,
) -> Sessions:
    r"""Read sessions: ids become int64 if all are integers as ``str`` would write them, otherwise strings.

    An empty line would be a session without items and is an error. There is no quoting: a double quote is an error.

    Parameters
    ----------
    delimiter : {"\\t", ",", ";", "|", " "}, optional
        By default tab, comma or semicolon, by the first line that has one; blanks if none has. ``" "`` stands for
        runs of blanks and tabs.
    min_length : int
        Shorter sessions are left out, as the caller's choice: they do not count in ``skipped``.
    header : bool, optional
        Whether the first line names columns. By default it does where all of it are well-known names of columns
        ("session", "items", "song_id", ..), which is a warning; otherwise it is a session, and an error if it looks
        like names: no number in it, and integers in all others.

    Examples
    --------
    >>> from io import BytesIO
    >>> sessions = read_sessions(BytesIO(b"4,8,15\n16\n23,42\n"), min_length=2)
    >>> sessions.items.tolist(), sessions.offsets.tolist()
    ([4, 8, 15, 23, 42], [0, 3, 5])
    """
    check_delimiter(delimiter)
    if min_length < 1:
        raise ValueError(f"min_length: expected a whole number >= 1, found {min_length}")
    problems = Problems(on_error)
    with open_source(path, max_line) as source:
        lines = list(source.lines())
    if delimiter is None:
        guesses = (guess_delimiter(raw.decode(errors="replace")) for _, raw in lines)
        delimiter = next((guess for guess in guesses if guess is not None), " ")
    splitter = Splitter(delimiter)
    remaining = iter(lines)
    if header:
        header_line(source, remaining)
    items: list[str] = []
    offsets = [0]
    first: tuple[Line, list[str]] | None = None
    for line in clean_lines(source, remaining, problems):
        try:
            session = _session(line, splitter)
        except DataError as error:
            problems.add(error)
            continue
        if first is None and header is None:
            first = line, session
            if name_columns(names := [name for field in session for name in words(field)]):
                warn_of_header(line, names)
                header = True
                continue
        if len(session) >= min_length:
            items += session
            offsets.append(len(items))
    if header is None and first is not None:
        line, own = first
        others = items[len(own) :]
        has_names = bool(others) and not any(map(is_numeral, own)) and as_ids(others).dtype.kind == "i"
        if offsets[1:2] == [len(own)] and has_names:
            problems.add(line.fault(0, f"integer ids as in all other lines ({IF_HEADER})", repr(own[0])))
            items, offsets = others, [end - len(own) for end in offsets[1:]]
    return Sessions(as_ids(items), np.array(offsets, dtype=np.int64), problems.report())


def write_sessions(path: str | os.PathLike[str], sessions: Sessions) -> None:
    """Write sessions, comma-separated; ``.gz`` and ``.xz`` are compressed. The file appears whole or not at all.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_sessions(Path(folder, "s.txt"), Sessions(np.array([4, 8, 15]), np.array([0, 1, 3])))
    ...     print(Path(folder, "s.txt").read_text())
    4
    8,15
    """
    if sessions.items.dtype.kind not in "iuU":
        raise ValueError(f"sessions.items: expected integer or string ids, found dtype {sessions.items.dtype}")
    empty = np.flatnonzero(np.diff(sessions.offsets) < 1)
    if len(empty):
        raise ValueError(f"sessions.offsets: expected at least one item a session, found none in session {empty[0]}")
    first, last = int(sessions.offsets[0]), int(sessions.offsets[-1])
    ids = [str(item) for item in sessions.items[first:last].tolist()]
    for row, text in enumerate(ids, first):
        check_word(f"sessions.items[{row}]", text)
        if _DELIMITER_OR_QUOTE.search(text):
            raise ValueError(f'sessions.items[{row}]: expected an id without any of , ; | ", found {text!r}')
    bounds = (sessions.offsets - first).tolist()
    with atomic_file(path) as file:
        file.writelines(",".join(ids[start:end]).encode() + b"\n" for start, end in pairwise(bounds))


def _session(line: Line, splitter: Splitter) -> list[str]:
    text = line.text
    if line.is_blank:
        raise line.fault(0, "a session with at least one item", "an empty line")
    if '"' in text:
        raise line.fault(text.index('"'), "ids without double quotes", repr('"'))
    fields = splitter.split(line)
    # Most lines are clean as a whole, which is quicker to see than field by field.
    if " " in text or "\t" in text or "" in fields:
        for index, field in enumerate(fields):
            splitter.check_id(line, index, field)
    return fields


def sessions_of(sessions: Any, offsets: Any, session: str, item: str, time: str | None, user: str | None) -> Sessions:
    """Tell the forms apart; what :meth:`slatewise.data.Sessions.of` says."""
    if offsets is not None:
        return Sessions(check_ids("sessions", sessions), np.asarray(offsets))
    if isinstance(sessions, Sessions):
        return sessions
    if is_frame(sessions):
        return _from_frame(sessions, session, item, time, user)
    items, sizes = flat_lists("sessions", sessions)
    return Sessions(items, np.concatenate(([0], np.cumsum(sizes))).astype(np.int64))


def is_frame(values: object) -> bool:
    """Tell data frames, of whatever library, from everything else, without loading any of them."""
    if isinstance(values, np.ndarray | list | tuple | str):
        return False
    from narwhals.dependencies import is_into_dataframe

    return bool(is_into_dataframe(cast("Any", values)))


def flat_lists(name: str, lists: Any) -> tuple[Ids, Ints]:
    """Return the ids of all lists one after the other, and how many each has; an error names the list."""
    kind = cast("type[Any]", type(lists))
    if sparse_rows(name, lists) is not None:
        raise ValueError(f"{name}: expected a list of lists of ids, found a sparse matrix, which has no order")
    if kind is np.ndarray and lists.ndim == 2:
        matrix = cast("NDArray[Any]", lists)
        return check_ids(name, matrix.reshape(-1)), np.full(len(matrix), matrix.shape[1], dtype=np.int64)
    if issubclass(kind, str | bytes | dict) or not _is_iterable(lists):
        raise ValueError(f"{name}: expected a list of lists of ids, found {kind.__name__}")
    rows = [_row(name, number, row) for number, row in enumerate(lists)]
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    parts = [row for row in rows if len(row)]
    if not parts:
        return np.empty(0, dtype=np.int64), sizes
    if all(isinstance(row, np.ndarray) for row in parts):
        arrays = [check_ids(name, row) for row in parts]
        require_one_kind(name, (array[0] for array in arrays))
        return np.concatenate(arrays), sizes
    return check_ids(name, list(chain.from_iterable(parts))), sizes


def _row(name: str, number: int, row: Any) -> NDArray[Any] | Sequence[Any]:
    kind = cast("type[Any]", type(row))
    if kind is np.ndarray and row.ndim == 1:
        return cast("NDArray[Any]", row)
    if issubclass(kind, str | bytes | dict) or not _is_iterable(row):
        raise ValueError(f"{name}: expected a list of ids in each place, found {kind.__name__} in place {number}")
    if not issubclass(kind, set | frozenset):
        return list(row)
    require_one_kind(name, row)
    try:
        return sorted(row)  # a set has no order, and Python's own changes from run to run
    except TypeError:
        raise ValueError(
            f"{name}: expected ids, all whole numbers or all strings, found others in place {number}"
        ) from None


def _is_iterable(values: object) -> bool:
    if not isinstance(values, Iterable):  # a lazy frame would begin, and fail within
        return False
    try:
        iter(cast("Any", values))
    except TypeError:
        return False
    return True


def _from_frame(frame: Any, session: str, item: str, time: str | None, user: str | None) -> Sessions:
    from slatewise.data.frames import ids_of, table_of

    table = table_of(frame, "sessions")
    for name in (session, item, time, user):
        if name is not None and name not in table.columns:
            found = f"the columns {', '.join(map(repr, table.columns))}"
            raise DataError("sessions", 0, 0, f"a column called {name!r}", found)
    time = time if time is not None or "time" not in table.columns else "time"
    user = user if user is not None or "user" not in table.columns else "user"
    names = ids_of(table[session], "sessions", 0)
    users = None if user is None else ids_of(table[user], "sessions", 0)
    times = None if time is None else seconds_of("time", table[time].to_numpy())
    return grouped(names, ids_of(table[item], "sessions", 0), times, users)


def grouped(names: Ids, items: Ids, times: Floats | None, users: Ids | None = None) -> Sessions:
    """Gather events into the sessions they name, in the order of first events; inside by time, then as they stand."""
    groups = group_rows(names, len(names))
    lists = np.repeat(np.arange(len(groups.ids)), np.diff(groups.offsets))
    order = np.arange(len(names)) if groups.order is None else groups.order
    if times is not None:
        order = order[np.lexsort((times[order], lists))]
    owners = None
    if users is not None:
        owners = users[order][groups.offsets[:-1]]
        strange = np.flatnonzero(users[order] != owners[lists])
        if len(strange):
            name = names[order[strange[0]]].item()
            raise ValueError(f"user: expected one per session, found two in session {name!r}, row {order[strange[0]]}")
    ordered = None if times is None else times[order]
    return Sessions(items[order], groups.offsets, ids=groups.ids, users=owners, times=ordered)


def seconds_of(name: str, values: Any) -> Floats:
    """Return times as numbers: seconds since 1970 of dates, numbers as they are; none may be missing."""
    times = np.asarray(values)
    if times.ndim != 1:
        raise ValueError(f"{name}: expected a number or a time per row, found shape {times.shape}")
    if times.dtype.kind == "O" and len(times):
        times = _dates(name, times)
    if times.dtype.kind == "M":
        whole = times.astype("datetime64[us]")
        numbers = np.where(np.isnat(whole), np.nan, whole.astype(np.int64) / 1e6)
    elif times.dtype.kind in "iuf":
        numbers = times.astype(np.float64)
    else:
        raise ValueError(f"{name}: expected numbers or times, found dtype {times.dtype}")
    missing = np.flatnonzero(~np.isfinite(numbers))
    if len(missing):
        row = int(missing[0])
        raise ValueError(f"{name}: expected a time in every row, found {times[row]} in row {row} ({len(missing)} such)")
    return numbers


def _dates(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return Python's dates and datetimes as NumPy's; those of a zone are taken to UTC."""
    from datetime import UTC, date, datetime

    parts = cast("list[object]", values.tolist())
    missing = next((row for row, part in enumerate(parts) if not isinstance(part, date | Number) or part != part), None)
    strange = next((row for row, part in enumerate(parts) if not isinstance(part, date)), None)
    row = strange if missing is None else missing
    if row is not None:
        raise ValueError(f"{name}: expected numbers or times in every row, found {parts[row]!r} in row {row}")
    dates = cast("list[date]", parts)
    return np.array(
        [d.astimezone(UTC).replace(tzinfo=None) if isinstance(d, datetime) and d.tzinfo else d for d in dates],
        "datetime64[us]",
    )
