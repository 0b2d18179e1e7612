"""Session files: one session per line, its item ids in order."""

from __future__ import annotations

import os
import re
from itertools import pairwise

import numpy as np

from slatewise.core.errors import DataError
from slatewise.core.files import atomic_file
from slatewise.data._delimited import Blanks, Plain, Splitter, check_delimiter, check_id, guess_delimiter
from slatewise.data._lines import Line, clean_lines, header_line, warn_of_header
from slatewise.data._source import MAX_LINE, OnError, PathOrFile, Problems, open_source
from slatewise.data._tokens import as_ids, check_word, is_numeral, name_columns, words
from slatewise.data.pairs import IF_HEADER
from slatewise.data.records import Sessions

_DELIMITER_OR_QUOTE = re.compile(r'[,;|"]')


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
    path : str, path or binary file
        Plain, gzip or xz.
    delimiter : {"\\t", ",", ";", "|", " "}, optional
        By default tab, comma or semicolon, by the first line that has one; blanks if none has. ``" "`` stands for
        runs of blanks and tabs.
    min_length : int
        Shorter sessions are left out, as the caller's choice: they do not count in ``skipped``.
    header : bool, optional
        Whether the first line names columns. By default it does where all of it are well-known names of columns
        ("session", "items", "song_id", ..), which is a warning; otherwise it is a session, and an error if it looks
        like names: no number in it, and integers in all others.
    on_error : {"raise", "skip"}
        Whether a bad line stops the reading, or is left out and counted in ``skipped``.
    max_line : int
        Most bytes a line may have; a longer one stops the reading, whatever ``on_error`` says.

    Raises
    ------
    DataError
        At the first bad line, with file:line:column and what was expected.

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
    splitter = _splitter(delimiter or _first_delimiter(lines))
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
        if offsets[1:2] == [len(own)] and _are_names_above_integers(own, items[len(own) :]):
            problems.add(line.fault(0, f"integer ids as in all other lines ({IF_HEADER})", repr(own[0])))
            items, offsets = items[len(own) :], [end - len(own) for end in offsets[1:]]
    return Sessions(as_ids(items), np.array(offsets, dtype=np.int64), problems.report())


def _are_names_above_integers(first: list[str], others: list[str]) -> bool:
    return bool(others) and not any(map(is_numeral, first)) and as_ids(others).dtype.kind == "i"


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
    _check_sessions(sessions)
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
            check_id(splitter, line, index, field)
    return fields


def _splitter(delimiter: str) -> Splitter:
    return Blanks() if delimiter == " " else Plain(delimiter)


def _first_delimiter(lines: list[tuple[int, bytes]]) -> str:
    guesses = (guess_delimiter(raw.decode(errors="replace")) for _, raw in lines)
    return next((guess for guess in guesses if guess is not None), " ")


def _check_sessions(sessions: Sessions) -> None:
    if sessions.items.dtype.kind not in "iuU":
        raise ValueError(f"sessions.items: expected integer or string ids, found dtype {sessions.items.dtype}")
    empty = np.flatnonzero(np.diff(sessions.offsets) < 1)
    if len(empty):
        raise ValueError(f"sessions.offsets: expected at least one item a session, found none in session {empty[0]}")
