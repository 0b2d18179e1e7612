"""Pair files: Python's own csv module as the judge, id types, headers, and where errors point."""

import csv
import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise.core.errors import DataError, DataWarning
from slatewise.data import read_pairs
from tests.data.strategies import finite, named

ids = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=5).filter(
    lambda text: text == text.strip(" ") and not text.startswith("\ufeff")
)


@given(
    rows=st.lists(st.tuples(ids, ids, finite), min_size=1), quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
)
def test_what_the_csv_module_writes_is_read_back(rows, quoting) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=quoting).writerows([("q", "i", "w"), *rows])
    pairs = read_pairs(named(text.getvalue().encode()), delimiter=",", weight="w", columns=("q", "i"), header=True)
    assert [str(query) for query in pairs.queries.tolist()] == [row[0] for row in rows]
    assert [str(item) for item in pairs.items.tolist()] == [row[1] for row in rows]
    assert list(map(repr, pairs.weights.tolist())) == [repr(row[2]) for row in rows]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "-20", "0"], np.int64),
        ([str(2**63 - 1), str(-(2**63))], np.int64),
        (["1", str(2**63)], np.str_),
        (["1", "007"], np.str_),
        (["1", "+7"], np.str_),
        (["1", "-0"], np.str_),
        (["1", "1.0"], np.str_),
        (["1", "1_0"], np.str_),
        (["1", "٣"], np.str_),
        (["1", "9" * 5000], np.str_),
    ],
)
def test_ids_are_integers_only_if_all_are_plain(texts: list[str], expected: type) -> None:
    pairs = read_pairs(named("".join(f"{text},x\n" for text in texts).encode()))
    assert np.issubdtype(pairs.queries.dtype, expected)
    assert [str(query) for query in pairs.queries.tolist()] == texts


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        (b"a\tb,c\n", None),
        (b"a,b;c\n", None),
        (b'a;"b;c"\n', None),
        (b"  a  b \n", None),
        (b"a\t b\n", " "),
        (b"a|b c\n", "|"),
        (b'a\t"b" c\n', None),
    ],
)
def test_delimiters(text: bytes, delimiter: str | None) -> None:
    pairs = read_pairs(named(text), delimiter=delimiter)
    second = {b"a\tb,c\n": "b,c", b"a,b;c\n": "b;c", b'a;"b;c"\n': "b;c", b"a|b c\n": "b c", b'a\t"b" c\n': '"b" c'}
    assert pairs.queries.tolist() == ["a"]
    assert pairs.items.tolist() == [second.get(text, "b")]


def test_columns_by_index_and_by_name() -> None:
    text = b"when,who,what,how\n9,7,x,0.5\n\n9,8,y,2\n"
    by_name = read_pairs(named(text), columns=("who", "what"), weight="how", header=True)
    by_index = read_pairs(named(text), columns=(1, 2), weight=3, header=True)
    for pairs in (by_name, by_index):
        assert pairs.queries.tolist() == [7, 8]
        assert pairs.items.tolist() == ["x", "y"]
        assert pairs.weights is not None
        assert pairs.weights.tolist() == [0.5, 2.0]


def test_a_likely_header_is_an_error_that_says_so() -> None:
    text = b"kunde,artikel\n1,x\n2,y\n"
    with pytest.raises(DataError, match=r"file.txt:1:1: expected an integer id .*header=True.*found 'kunde'"):
        read_pairs(named(text))
    assert read_pairs(named(text), header=False).queries.tolist() == ["kunde", "1", "2"]
    assert read_pairs(named(text), header=True).queries.tolist() == [1, 2]
    with pytest.raises(DataError, match=r"file.txt:1:7: expected a finite weight \(header=True"):
        read_pairs(named(b"q,was,plays\nu,x,1\n"), weight=2)
    with pytest.warns(DataWarning, match="left out 1 row"):
        assert read_pairs(named(text), on_error="skip").queries.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "options", "line", "column", "expected"),
    [
        (b"a,b\nc,d,e\n", {}, 2, 5, "2 fields as in the first line, found 3"),
        (b"a,b,c\nd,e\n", {}, 2, 4, "3 fields as in the first line, found 2"),
        (b"a\n", {}, 1, 2, "at least 2 fields, found 1"),
        (b"a,b\nc,\n", {}, 2, 3, "an id, found ''"),
        (b"a,b\nc, d\n", {}, 2, 3, "an id without blanks around it, found ' d'"),
        (b'a,"b\n', {}, 1, 3, "a closing double quote on the same line, found '\"b'"),
        (b'"a"b,c\n', {}, 1, 4, "',' or the line's end after a quoted field, found 'b'"),
        (b'\xc3\xa9"a,c\n', {}, 1, 3, "double quotes around a whole field, found 'é\"a'"),
        (b"a,b,1\nc,d,inf\n", {"weight": 2}, 2, 5, "a finite weight, found 'inf'"),
        (b"a,b\n", {"header": True, "weight": "w"}, 1, 1, "one column called 'w', found the columns 'a', 'b'"),
        (
            b"a,b,a\n",
            {"header": True, "columns": ("a", "b")},
            1,
            1,
            "one column called 'a', found the columns 'a', 'b', 'a'",
        ),
        (b"\n", {"header": True}, 1, 1, "a line that names the columns, found an empty file"),
        (b"a,b\nc\x07,d\n", {}, 2, 2, "printable text, found control character 0x07"),
    ],
)
def test_a_bad_line_is_refused_at_its_place(text, options, line, column, expected) -> None:
    with pytest.raises(DataError) as caught:
        read_pairs(named(text), **options)
    assert str(caught.value) == f"file.txt:{line}:{column}: expected {expected}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": "::"}, "delimiter: expected one of"),
        ({"columns": (-1, 0)}, r"columns\[0\]: expected an index >= 0"),
        ({"weight": "w"}, "weight: expected an index, or header=True"),
        ({"on_error": "ignore"}, "on_error: expected 'raise' or 'skip'"),
    ],
)
def test_bad_arguments(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        read_pairs(named(b"a,b\n"), **options)


def test_skipping_never_hides_a_bad_header() -> None:
    with pytest.raises(DataError, match=r"file\.txt:1:1"):
        read_pairs(named(b"\xff\n1,2\n3,4\n"), header=True, on_error="skip")
    with pytest.warns(DataWarning, match="left out 2 rows"):
        pairs = read_pairs(named(b"1,2\n3\n4,5,6\n7,8\n"), on_error="skip")
    assert pairs.queries.tolist() == [1, 7]


def test_an_empty_file_has_no_pairs() -> None:
    pairs = read_pairs(named(gzip.compress(b"")))
    assert len(pairs.queries) == len(pairs.items) == 0


def test_public_data(shared_data: Path) -> None:
    bigrams = read_pairs(shared_data / "aotm_bigrams" / "aotm-bigrams.csv.gz")
    assert len(bigrams.queries) == 66_250
    assert len(np.union1d(bigrams.queries, bigrams.items)) == 26_752
    path = shared_data / "hetrec2011_lastfm_2k" / "user_artists.dat.gz"
    plays = read_pairs(path, columns=("userID", "artistID"), weight="weight", header=True)
    assert (len(np.unique(plays.queries)), len(np.unique(plays.items)), len(plays.queries)) == (1892, 17632, 92834)
    assert plays.queries.dtype == plays.items.dtype == np.int64


def test_two_columns_are_asked_for() -> None:
    with pytest.raises(ValueError, match="columns: expected two"):
        read_pairs(io.BytesIO(b"a,b,3\n"), columns=(0, 1, 2))


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (b"user,item", {}),
        (b"userID\tartistID", {}),
        (b'"Customer";"Product"', {}),
        (b"query_id docno", {}),
        (b"time,user,song_name", {"columns": (1, 2)}),
        (b"user,item,plays", {"weight": 2}),
    ],
)
@pytest.mark.parametrize("ids", [(b"ann", b"tea"), (b"7", b"x"), (b"7", b"8")])
def test_well_known_names_are_a_header_and_no_query(names, options, ids) -> None:
    mark = next(one for one in (b",", b"\t", b";", b" ") if one in names)
    others = [b"5"] * (names.count(mark) - 1)
    line = mark.join([*others, *ids] if "columns" in options else [*ids, *others]) + b"\n"
    text = names + b"\n" + line + line
    with pytest.warns(DataWarning, match=r"^file\.txt:1: .* read as the names of columns, not as ids \(header=False"):
        pairs = read_pairs(named(text), **options)
    same = read_pairs(named(text), header=True, **options)
    assert pairs.queries.tolist() == same.queries.tolist() == [int(ids[0]) if ids[0].isdigit() else ids[0].decode()] * 2
    assert pairs.items.tolist() == same.items.tolist()
    assert pairs.skipped.count == 0


@pytest.mark.parametrize(
    "text",
    [
        *(b"user1,item1\n", b"song,movie\n", b"user,tea\nann,tea\n", b"7,item\n", b"a,b\nuser,item\n"),
        *(b"user,item,5\n", b"user,item,1e400\n"),
    ],
)
def test_a_line_that_may_be_data_is_data(text) -> None:
    assert len(read_pairs(named(text)).items) == text.count(b"\n")
