"""One pass over SVMlight text: ``label qid:Q index:value ... # comment``, a row per line.

The text is whole lines: its last byte is a newline. A bad row leaves its position and a code, and the pass goes on
with the next line: what to do about it is the caller's choice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints, Words
from slatewise.core.running.kernel import kernel
from slatewise.data.kernels.decimal import GOOD, HARD, MALFORMED, OVERFLOW, Bytes, decimal
from slatewise.data.kernels.text import at_line_end, at_token_end, invalid_utf8, next_line, skip_blanks, whole

LABEL, LABEL_OVERFLOW, QID, QID_OVERFLOW, INDEX, INDEX_RANGE, INDEX_ORDER, VALUE, VALUE_OVERFLOW = range(1, 10)
NUL, UTF8, LONG_ID, LABEL_SET, LABEL_RANGE, LABEL_REPEATED, SPLIT_QUERY, NO_QID, STRAY_QID = range(10, 19)

MAX_ID = 255
_MAX_QID = np.uint64((1 << 63) - 1)


class Rules(NamedTuple):
    """What a row must obey."""

    first_index: int
    end_index: int
    needs_qid: bool
    keeps_ids: bool


class Hard(NamedTuple):
    """Numbers whose rounding 19 digits do not settle: Python rounds them between two passes over the text."""

    found: Ints
    """Where they start,"""
    n_found: Ints
    """and how many there are (one element)."""
    known: Ints
    """Where those that an earlier pass found start, ascending,"""
    values: Floats
    """and what Python makes of them."""


class Entries(NamedTuple):
    """Where the features of all rows go, and what reading their values takes."""

    indices: NDArray[np.int32]
    values: Floats
    powers: Words
    hard: Hard


class RankingRows(NamedTuple):
    """One element per row; ``qids`` is -1 where the row has none, ``lengths`` counts its entries, the rest is where."""

    labels: Floats
    qids: Ints
    lengths: Ints
    starts: Ints
    id_starts: Ints
    id_ends: Ints


class Errors(NamedTuple):
    """Position in the text and code of each bad row."""

    positions: Ints
    codes: Ints


@kernel
def rounded_by_python(start: int, hard: Hard) -> tuple[float, int]:
    """Return (value, status) of the hard number that starts here; one not known yet is noted and counts as 0."""
    place = np.searchsorted(hard.known, start)
    if place < len(hard.known) and hard.known[place] == start:
        value = hard.values[place]
        return value, GOOD if np.isfinite(value) else OVERFLOW
    hard.found[hard.n_found[0]] = start
    hard.n_found[0] += 1
    return 0.0, GOOD


@kernel
def features(text: Bytes, at: int, size: int, rules: Rules, entries: Entries) -> tuple[int, int, int]:
    """Read ``index:value`` up to the comment or line end; return (position, entries written so far, code)."""
    # Out of their tuples once: inside the loop each access would touch a reference count, and cost twice the time.
    first, end_index = rules.first_index, rules.end_index
    indices, values, powers, hard = entries.indices, entries.values, entries.powers, entries.hard
    previous = first - 1
    while True:
        at = skip_blanks(text, at)
        if text[at] == 35 or at_line_end(text, at):
            return at, size, GOOD
        digits, end = whole(text, at)
        if end == at or text[end] != 58:
            return at, size, INDEX
        if digits < np.uint64(first) or digits >= np.uint64(end_index):
            return at, size, INDEX_RANGE
        index = np.int64(digits)
        if index <= previous:
            return at, size, INDEX_ORDER
        previous = index
        start = end + 1
        value, at, status = decimal(text, start, powers)
        if not at_token_end(text, at):
            status = MALFORMED
        if status == HARD:
            value, status = rounded_by_python(start, hard)
        if status != GOOD:
            return start, size, VALUE if status == MALFORMED else VALUE_OVERFLOW
        indices[size] = index - first
        values[size] = value
        size += 1


@kernel
def comment(text: Bytes, at: int) -> tuple[int, int, int, int]:
    """Check the comment whose ``#`` is here; return (first byte, end without blanks, position, code).

    The position is the line feed, or the offending byte.
    """
    end = at
    plain = True
    while text[end] != 10:
        if text[end] == 0:
            return at, at, end, NUL
        plain = plain and text[end] < 0x80
        end += 1
    if not plain:
        wrong = invalid_utf8(text, at, end)
        if wrong >= 0:
            return at, at, wrong, UTF8
    start, stop = at + 1, end
    while start < stop and (text[start] == 32 or text[start] == 9 or text[start] == 13):
        start += 1
    while stop > start and (text[stop - 1] == 32 or text[stop - 1] == 9 or text[stop - 1] == 13):
        stop -= 1
    return start, stop, end, GOOD


@kernel
def document_id(text: Bytes, start: int, stop: int) -> tuple[int, int]:
    """Return where the id lies in a comment: X of ``docid = X ...``, otherwise the whole comment."""
    at = start
    for letter in (100, 111, 99, 105, 100):  # "docid"
        if text[at] != letter:
            return start, stop
        at += 1
    at = skip_blanks(text, at)
    if text[at] != 61:
        return start, stop
    at = skip_blanks(text, at + 1)
    if at >= stop:
        return start, stop
    end = at
    while end < stop and text[end] != 32 and text[end] != 9:
        end += 1
    return at, end


@kernel
def _ranking_row(
    text: Bytes, at: int, row: int, size: int, rules: Rules, entries: Entries, rows: RankingRows
) -> tuple[int, int, int]:
    start = at
    label, at, status = decimal(text, start, entries.powers)
    if not at_token_end(text, at):
        status = MALFORMED
    if status == HARD:
        label, status = rounded_by_python(start, entries.hard)
    if status != GOOD:
        return start, size, LABEL if status == MALFORMED else LABEL_OVERFLOW
    rows.labels[row], rows.qids[row] = label, -1
    at = skip_blanks(text, at)
    if text[at] == 113 and text[at + 1] == 105 and text[at + 2] == 100 and text[at + 3] == 58:  # "qid:"
        qid, end = whole(text, at + 4)
        if end == at + 4 or not at_token_end(text, end):
            return at, size, QID
        if qid > _MAX_QID:
            return at, size, QID_OVERFLOW
        rows.qids[row] = np.int64(qid)
        at = end
    elif rules.needs_qid:
        return at, size, NO_QID
    before = size
    at, size, code = features(text, at, size, rules, entries)
    rows.lengths[row] = size - before
    rows.id_starts[row], rows.id_ends[row] = at, at
    if code == GOOD and text[at] == 35:
        begin, stop, at, code = comment(text, at)
        if code == GOOD and rules.keeps_ids:
            begin, stop = document_id(text, begin, stop)
            if stop - begin > MAX_ID:
                return begin, size, LONG_ID
            rows.id_starts[row], rows.id_ends[row] = begin, stop
    return at, size, code


@kernel
def ranking_rows(
    text: Bytes, rules: Rules, entries: Entries, rows: RankingRows, errors: Errors
) -> tuple[int, int, int]:
    """Fill ``entries``, ``rows`` and ``errors``; return how many of each."""
    at = row = size = wrong = 0
    while at < len(text):
        at = skip_blanks(text, at)
        if at_line_end(text, at):
            at = next_line(text, at)
            continue
        code, new_size = GOOD, size
        if text[at] == 35:
            _, _, at, code = comment(text, at)
        else:
            rows.starts[row] = at
            at, new_size, code = _ranking_row(text, at, row, size, rules, entries, rows)
            if code == GOOD:
                row += 1
                size = new_size
        if code != GOOD:
            errors.positions[wrong], errors.codes[wrong] = at, code
            wrong += 1
        at = next_line(text, at)
    return size, row, wrong
