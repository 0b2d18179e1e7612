"""Multi-label ARFF: SciPy's reader and plain arithmetic as judges, labels by every way, and where errors point."""

import io
from pathlib import Path

import numpy as np
import pytest
import scipy.io.arff
from hypothesis import given
from hypothesis import strategies as st

from slatewise.core.errors import DataError, DataWarning
from slatewise.data import read_arff
from tests.data.strategies import finite, named

HEADER = b"@relation r\n@attribute a numeric\n@attribute b {x,y}\n@attribute p {0,1}\n@attribute q {1,0}\n@data\n"


@given(st.lists(st.tuples(finite, st.sampled_from(["x", "y", "z"]), st.integers(0, 1), st.integers(0, 1)), min_size=1))
def test_scipy_reads_the_same(rows) -> None:
    text = "@relation r\n@attribute a real\n@attribute b {x,y,z}\n@attribute p {0,1}\n@attribute q numeric\n@data\n"
    text += "".join(f"{a!r},{b},{p},{q}\n" for a, b, p, q in rows)
    theirs, _ = scipy.io.arff.loadarff(io.StringIO(text))
    ours = read_arff(named(text.encode()), labels=2)
    assert isinstance(ours.X, np.ndarray)
    assert ours.X[:, 0].tobytes() == theirs["a"].tobytes()
    assert ["xyz"[int(code)].encode() for code in ours.X[:, 1]] == theirs["b"].tolist()
    assert ours.Y.toarray().tolist() == [[int(p), int(q)] for p, q in zip(theirs["p"], theirs["q"], strict=True)]


@given(st.lists(st.lists(st.sampled_from([0.0, 0.0, 1.0, -2.5]), min_size=4, max_size=4)))
def test_sparse_rows_mean_the_same_as_dense_ones(rows) -> None:
    header = b"@relation r\n" + b"".join(b"@attribute f%d numeric\n" % place for place in range(4))
    header += b"@attribute l {0,1}\n@data\n"
    dense = "".join(",".join(map(repr, row)) + ",1\n" for row in rows)
    entries = ([f"{place} {value!r}" for place, value in enumerate(row) if value] for row in rows)
    sparse = "".join("{" + ",".join([*entry, "4 1"]) + "}\n" for entry in entries)
    expected = read_arff(named(header + dense.encode()), labels=1)
    found = read_arff(named(header + sparse.encode()), labels=1)
    assert isinstance(expected.X, np.ndarray)
    X = found.X if isinstance(found.X, np.ndarray) else found.X.toarray()
    assert X.tolist() == expected.X.tolist() == rows
    assert found.Y.toarray().tolist() == expected.Y.toarray().tolist()


def test_quotes_comments_cases_and_first_values() -> None:
    text = (
        b'% comment\n@RELATION \'a b\'\r\n\n@Attribute "c\\"d" REAL % more\n@attribute e{\'f, g\' , "?", h}\n'
        b"@attribute n {5,7}\n@attribute p integer\n@attribute 'q\\\\' {0}\n@DATA\n"
        b"0.5, 'f, g' ,5,1,0 % end\n% comment\n'3',\"?\",7,0,0\n{3 1}\n"
    )
    found = read_arff(named(text), labels=2)
    assert found.feature_names is not None
    assert found.feature_names.tolist() == ['c"d', "e", "n"]
    assert found.label_names.tolist() == ["p", "q\\"]
    assert not isinstance(found.X, np.ndarray)
    # What the last row leaves out is 0 for a number, and the first value for a list: place 0, number 5.
    assert found.X.toarray().tolist() == [[0.5, 0, 5], [3, 1, 7], [0, 0, 5]]
    assert found.Y.toarray().tolist() == [[1, 0], [0, 0], [1, 0]]
    assert found.Y.nnz == 2


def test_labels_by_count_by_name_and_by_xml(tmp_path: Path) -> None:
    text = b"@relation r\n@attribute l1 {0,1}\n@attribute l2 {0,1}\n@attribute x real\n@data\n1,0,7\n0,1,8\n"
    xml = tmp_path / "labels.xml"
    xml.write_text(
        '<?xml version="1.0"?><labels xmlns="http://mulan.sourceforge.net/labels">'
        '<label name="l2"><label name="l1"></label></label></labels>'
    )
    first = read_arff(named(text), labels=-2)
    assert first.label_names.tolist() == ["l1", "l2"]
    assert first.Y.toarray().tolist() == [[1, 0], [0, 1]]
    for labels in (["l2", "l1"], xml, str(xml)):
        found = read_arff(named(text), labels=labels)
        assert found.label_names.tolist() == ["l2", "l1"]
        assert found.Y.toarray().tolist() == [[0, 1], [1, 0]]
        assert np.asarray(found.X).tolist() == [[7.0], [8.0]]
    xml.write_text("<labels>\n<label name='a'></labels>")
    with pytest.raises(DataError, match=r"labels.xml:2:\d+: expected well-formed XML"):
        read_arff(named(text), labels=xml)
    xml.write_text("<labels><label/></labels>")
    with pytest.raises(DataError, match="elements, each with a name"):
        read_arff(named(text), labels=xml)
    for labels in (0, [], ["l1", "l1"]):
        with pytest.raises(ValueError, match="labels: expected a count that is not 0, or names, each once"):
            read_arff(named(text), labels=labels)


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [
        (HEADER + b"1,x,0\n", 7, 6, "4 values, one an attribute, found 3"),
        (HEADER + b"1,x,0,1,5\n", 7, 9, "4 values, one an attribute, found 5"),
        (HEADER + b"1, ?,0,1\n", 7, 4, "one of the attribute's values (missing values are not understood), found '?'"),
        (HEADER + b"nan,x,0,1\n", 7, 1, "a finite number, found 'nan'"),
        (HEADER + b"1,z,0,1\n", 7, 3, "one of the attribute's values, found 'z'"),
        (HEADER + b"1,x,2,1\n", 7, 5, "a label, 0 or 1, found '2'"),
        (HEADER + b"1,x y,0,1\n", 7, 3, "one word, or one in quotes, found 'x y'"),
        (HEADER + b"1,'x,0,1\n", 7, 3, 'a closing quote on the same line, found "\'x,0,1"'),
        (HEADER + b"1,'\\x',0,1\n", 7, 4, "a backslash before a quote, backslash or %, found '\\\\x'"),
        (HEADER + b"{0 1, 0 2}\n", 7, 7, "an index from 1 to 3, a blank and a value, found '0 2'"),
        (HEADER + b"{4 1}\n", 7, 2, "an index from 0 to 3, a blank and a value, found '4 1'"),
        (HEADER + b"{0 1\n", 7, 1, "a sparse row that ends with '}', found '{0 1'"),
        (b"@attribute a real\n", 1, 1, "@relation, found '@attribute a real'"),
        (
            b"@relation r\n@attribute a string\n",
            2,
            14,
            "a type: numeric, real, integer or {value, ...}, found 'string'",
        ),
        (
            b"@relation r\n@attribute d date 'yyyy'\n",
            2,
            14,
            "a type: numeric, real, integer or {value, ...}, found \"date 'yyyy'\"",
        ),
        (b"@relation r\n@attribute a real\n@attribute  a real\n", 3, 13, "every attribute once, found 'a' again"),
        (b"@relation r\n@attribute a {x, x}\n", 2, 18, "every value once, found 'x' again"),
        (b"@relation r\n@data\n", 2, 1, "@attribute, found '@data'"),
        (b"@relation r\n@attribute a real", 2, 18, "@data, found the end of the file"),
        (
            b"@relation r\n@attribute a real\n@attribute b real\n@data\n",
            4,
            1,
            "more than 2 attributes, for labels=2, found 2",
        ),
        (HEADER.replace(b"{1,0}", b"{n,y}"), 5, 1, "a label with the values 0 and 1, found attribute 'q'"),
        (b"", 1, 1, "@data, found the end of the file"),
    ],
)
def test_a_bad_line_is_refused_at_its_place(text: bytes, line: int, column: int, expected: str) -> None:
    with pytest.raises(DataError) as caught:
        read_arff(named(text), labels=2)
    assert str(caught.value) == f"file.txt:{line}:{column}: expected {expected}"


def test_skipping_leaves_out_rows_but_never_a_header() -> None:
    with pytest.warns(DataWarning, match=r"left out 2 rows; the first: file.txt:7:1"):
        found = read_arff(named(HEADER + b"nan,x,0,1\n1,x,0,1\n{9 9}\n"), labels=2, on_error="skip")
    assert np.asarray(found.X).tolist() == [[1.0, 0.0]]
    assert found.skipped.count == 2
    with pytest.raises(DataError, match="'w'"):
        read_arff(named(HEADER), labels=["w"], on_error="skip")
    with pytest.raises(DataError, match=":3:"):
        read_arff(named(HEADER.replace(b"{x,y}", b"string")), labels=2, on_error="skip")


def test_no_rows() -> None:
    found = read_arff(named(HEADER), labels=2)
    assert found.X.shape == (0, 2)
    assert found.Y.shape == (0, 2)
