"""What a token of a text file may be: a word, a whole number, a number, an id.

A number is ``[+-]?(digits[.digits?]|.digits)([eE][+-]?digits)?`` in ASCII and finite as a float64: no ``nan``, no
``inf``, no hexadecimal, no underscores. A whole number is ``[+-]?digits`` within int64.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import isfinite

import numpy as np

from slatewise.core.errors import DataError
from slatewise.data.reading import Line
from slatewise.data.records import Ids

_WORD = re.compile(r"[^ \t]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"([+-]?)0*([0-9]{1,19})")
# Lone surrogates have no UTF-8, and a byte order mark would be taken for one at the start of a file.
_UNSAFE = re.compile(r"[\x00-\x20\x7f\ud800-\udfff\ufeff]")
_INT64 = np.iinfo(np.int64)


def words(text: str, most: int | None = None) -> list[str]:
    r"""Split at runs of blanks and tabs; ``most``: stop with one word more than these, which may be all the rest.

    Examples
    --------
    >>> words(" 7 Q0\tdoc-1 ")
    ['7', 'Q0', 'doc-1']
    """
    # str.split is faster but takes other scripts' blanks for blanks.
    if text.isascii():
        return text.split(None, -1 if most is None else most)
    return [match[0] for match in islice(_WORD.finditer(text), None if most is None else most + 1)]


def word_offset(text: str, index: int) -> int:
    """Return where word ``index`` starts, or the end of the last word where there are fewer."""
    end = 0
    for number, match in enumerate(_WORD.finditer(text)):
        if number == index:
            return match.start()
        end = match.end()
    return end


def number(text: str) -> float | None:
    """Return the finite number the text spells, or None.

    Examples
    --------
    >>> number("-1.5e3"), number("nan"), number("1e999"), number("1_0")
    (-1500.0, None, None, None)
    """
    if _NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    return value if isfinite(value) else None


def is_numeral(text: str) -> bool:
    """Whether the text is written as a number is, also as one too large for a float64.

    Examples
    --------
    >>> is_numeral("-1.5e3"), is_numeral("1e999"), is_numeral("nan")
    (True, True, False)
    """
    return _NUMBER.fullmatch(text) is not None


def whole(text: str) -> int | None:
    """Return the int64 the text spells, or None.

    Examples
    --------
    >>> whole("-07"), whole("9223372036854775808"), whole("1.0")
    (-7, None, None)
    """
    if len(text) < 19 and text.isascii() and text.isdigit():  # nearly always
        return int(text)
    match = _WHOLE.fullmatch(text)
    if match is None:
        return None
    value = int(match[1] + match[2])
    return value if _INT64.min <= value <= _INT64.max else None


def is_plain_integer(text: str) -> bool:
    """Whether the text is an int64 as ``str`` would write it: no plus, no leading zeros."""
    value = whole(text)
    return value is not None and str(value) == text


def as_ids(texts: Sequence[str]) -> Ids:
    """Return a column of ids: int64 if every text is an integer as ``str`` would write it, otherwise strings.

    ``007`` and ``+7`` stay strings, so that the ids that come out can be looked up as they stood in the file.

    Examples
    --------
    >>> as_ids(["12", "7"]), as_ids(["12", "007"])
    (array([12,  7]), array(['12', '007'], dtype='<U3'))
    """
    try:
        values = [int(text) for text in texts]
        if [str(value) for value in values] == texts:
            return np.array(values, dtype=np.int64)
    except (ValueError, OverflowError):  # not an integer, or one beyond int64
        pass
    return np.array(texts, dtype=np.str_)


# What columns of ids are called: by what an id is for (hardly anything is called so itself), by who takes, by what is
# taken; and other columns of such a file.
_ROLES = frozenset({"user", "item", "query", "session", "id", "qid", "docno"})
_WHO = frozenset(
    words(
        "account basket buyer cart client customer household invoice listener member order person playlist profile "
        "reader shopper transaction viewer visitor"
    )
)
_WHAT = frozenset(
    words(
        "ad album app article artist asin book brand category content doc document event film game hotel isbn label "
        "movie news page paper place poi product recipe restaurant sku song tag track url venue video"
    )
)
_HOW = frozenset(
    words(
        "clicks count date datetime playcount plays position price qty quantity rank rating relevance score time "
        "timestamp value views weight when"
    )
)
_KNOWN = _ROLES | _WHO | _WHAT | _HOW
_KINDS = ("id", "ids", "name", "no", "number", "key", "code")
"""What may follow such a word."""
_BETWEEN_WORDS = re.compile(r"[ _.-]+")


def name_columns(fields: Sequence[str], others: Sequence[str] = ()) -> bool:
    """Whether the ids of a first line surely are no ids but the names of their columns, and no number is beside them.

    All of them are words that columns are called by, and one says that it is a name: "user", "item", "song_id"; or one
    names who takes and another what is taken, as "customer" and "product" do. Letter case does not count.

    Examples
    --------
    >>> name_columns(["userID", "artistID"], ["weight"]), name_columns(["Customer", "Product"]), name_columns(["item"])
    (True, True, True)
    >>> name_columns(["session_items"]), name_columns(["user 1", "item 1"])
    (True, False)
    >>> name_columns(["user1", "item1"]), name_columns(["song", "movie"]), name_columns(["user", "tea"])
    (False, False, False)
    """
    if not fields or any(is_numeral(text.strip()) for text in others):
        return False
    words = [word for text in fields for word in _BETWEEN_WORDS.split(text.casefold())]
    stems = [_stem(word) for word in words]
    if not all(stems):
        return False
    is_name = any(stem in _ROLES or word.endswith(("id", "ids")) for stem, word in zip(stems, words, strict=True))
    return is_name or not (_WHO.isdisjoint(stems) or _WHAT.isdisjoint(stems))


def _stem(word: str) -> str | None:
    """Return the known word of which a column's name, or a part of it, is made; None where there is none."""
    if word in _KINDS:
        return word
    stems = (word.removesuffix(ending) for ending in ("", "s", *_KINDS) if word.endswith(ending))
    return next((stem for stem in stems if stem in _KNOWN), None)


def check_word(argument: str, text: str) -> None:
    """Raise ValueError unless the text, written between blanks, reads back as it is."""
    if not text or _UNSAFE.search(text):
        raise ValueError(f"{argument}: expected a word without blanks or control characters, found {text!r}")


_DELIMITERS = "\t,;| "
_QUOTED = re.compile(r'"([^"]*(?:""[^"]*)*)"')


@dataclass(frozen=True)
class Splitter:
    """Cuts lines into fields, and finds a field again if a message must point to it."""

    delimiter: str
    """A blank stands for runs of blanks and tabs."""
    quotes: bool = False
    """Whether a field in double quotes may contain the delimiter, and a double quote as two of them (RFC 4180).

    A quoted field ends on its own line.
    """

    @classmethod
    def of(cls, delimiter: str | None, line: Line, default: str = " ") -> Splitter:
        """Take the delimiter of the caller, or guess it from the first line."""
        delimiter = delimiter or guess_delimiter(line.text) or default
        # The registered type text/tab-separated-values has no quotes, and titles in such files often start with one.
        return cls(delimiter, quotes=delimiter not in " \t")

    def split(self, line: Line, width: int | None = None) -> list[str]:
        """Return the fields, ``width`` of them unless it is None."""
        if self.delimiter == " ":
            fields = words(line.text)
        elif self.quotes and '"' in line.text:
            fields = [field for _, field in self._scan(line)]
        else:
            fields = line.text.split(self.delimiter)
        if width is not None and len(fields) != width:
            raise self.fault(line, width, f"{width} fields as in the first line", f"{len(fields)}")
        return fields

    def fault(self, line: Line, index: int, expected: str, found: str) -> DataError:
        """Return the error for field ``index``; it points to the end of the line if there are fewer."""
        if self.delimiter == " ":
            return line.fault(word_offset(line.text, index), expected, found)
        if self.quotes:
            starts = [start for start, _ in self._scan(line)]
            return line.fault(starts[index] if index < len(starts) else len(line.text), expected, found)
        before = line.text.split(self.delimiter)[:index]
        return line.fault(min(sum(len(field) + 1 for field in before), len(line.text)), expected, found)

    def check_id(self, line: Line, index: int, text: str) -> None:
        """Raise DataError unless field ``index`` is an id: not empty, no blanks at its ends."""
        if not text.strip(" \t"):
            raise self.fault(line, index, "an id", repr(text))
        if text[0] in " \t" or text[-1] in " \t":
            raise self.fault(line, index, "an id without blanks around it", repr(text))

    def _scan(self, line: Line) -> list[tuple[int, str]]:
        text, fields, start = line.text, list[tuple[int, str]](), 0
        while True:
            if text.startswith('"', start):
                quoted = _QUOTED.match(text, start)
                if quoted is None:
                    raise line.fault(start, "a closing double quote on the same line", repr(text[start:]))
                field, end = quoted[1].replace('""', '"'), quoted.end()
                if end < len(text) and text[end] != self.delimiter:
                    raise line.fault(end, f"{self.delimiter!r} or the line's end after a quoted field", repr(text[end]))
            else:
                end = text.find(self.delimiter, start)
                end = len(text) if end < 0 else end
                field = text[start:end]
                if '"' in field:
                    raise line.fault(start + field.index('"'), "double quotes around a whole field", repr(field))
            fields.append((start, field))
            if end == len(text):
                return fields
            start = end + 1


def check_delimiter(delimiter: str | None) -> None:
    """Raise ValueError unless the argument is one of the known delimiters or None."""
    if delimiter is not None and (len(delimiter) != 1 or delimiter not in _DELIMITERS):
        raise ValueError(f"delimiter: expected one of {', '.join(map(repr, _DELIMITERS))} or None, found {delimiter!r}")


def guess_delimiter(text: str) -> str | None:
    """Return the first of tab, comma and semicolon that the line has, or None."""
    return next((delimiter for delimiter in "\t,;" if delimiter in text), None)
