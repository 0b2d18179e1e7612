"""Rows with tags from CSV, JSON lines and Parquet: one content, every form; and every fault has its place."""

import gzip
import io
import json

import numpy as np
import polars as pl
import pytest

from slatewise.core.errors import DataError, DataWarning
from slatewise.data import MultiLabel, read_arff, read_npz, read_tags, write_npz

X = [[0.5, -2.0], [1e3, 0.0], [3.0, 7.25]]
TAGS = [["sea", "sky"], [], ["sky"]]
IDS = ["a.jpg", "b.jpg", "c.jpg"]
LABELS = ["sea", "sky"]
ROWS = list(zip(IDS, X, TAGS, strict=True))
BY_TAGS = {"tags": "tags", "separator": "|", "id": "photo"}


def file(content, name="photos.csv"):
    opened = io.BytesIO(content if isinstance(content, bytes) else content.encode())
    opened.name = name
    return opened


def parquet(columns):
    opened = file(b"", "photos.parquet")
    pl.DataFrame(columns).write_parquet(opened)
    opened.seek(0)
    return opened


def columns():
    return {"photo": IDS, "f0": [row[0] for row in X], "f1": [row[1] for row in X]}


FLAGS = {f"is:{label}": [int(label in tags) for tags in TAGS] for label in LABELS}
FORMS = {
    "a column of tags": lambda: (
        file("photo,f0,f1,tags\na.jpg,0.5,-2,sea|sky\nb.jpg,1e3,0,\nc.jpg,3,7.25,sky\n"),
        BY_TAGS,
    ),
    "quotes": lambda: (
        file('tags;f0;"photo";f1\n"sky|sea";0.5;"a.jpg";-2\n"";1e3;b.jpg;0\nsky;3;c.jpg;7.25\n'),
        BY_TAGS,
    ),
    "tabs, packed": lambda: (
        file(gzip.compress(b"photo\tf0\tf1\ttags\na.jpg\t.5\t-2\tsea sky\nb.jpg\t1e3\t0\t\nc.jpg\t3\t7.25\tsky\n")),
        {**BY_TAGS, "separator": " "},
    ),
    "label columns by prefix": lambda: (
        file("is:sea,f0,f1,photo,is:sky\n1,0.5,-2,a.jpg,1\n0,1e3,0,b.jpg,0\n0,3,7.25,c.jpg,1\n"),
        {"labels": "is:", "id": "photo"},
    ),
    "label columns by name": lambda: (
        file("sky,f0,f1,photo,sea\nTrue,0.5,-2,a.jpg,true\nfalse,1e3,0,b.jpg,False\n1,3,7.25,c.jpg,0\n"),
        {"labels": ["sea", "sky"], "id": "photo"},
    ),
    "some columns": lambda: (
        file("photo,f0,title,f1,tags\na.jpg,0.5,A,-2,sea|sky\nb.jpg,1e3,B,0,\nc.jpg,3,C,7.25,sky\n"),
        {**BY_TAGS, "features": "f"},
    ),
    "some columns by name": lambda: (
        file("photo,f1,title,f0,tags\na.jpg,-2,A,.5,sea|sky\nb.jpg,0,B,1e3,\nc.jpg,7.25,C,3,sky\n"),
        {**BY_TAGS, "features": ["f0", "f1"]},
    ),
    "JSON by place": lambda: (
        file("\n".join(json.dumps({"photo": i, "features": x, "tags": t}) for i, x, t in ROWS)),
        {"id": "photo", "features": ["f0", "f1"]},
    ),
    "JSON by name": lambda: (
        file(
            '{"id": "a.jpg", "features": {"f1": -2, "f0": 0.5}, "tags": ["sky", "sea"]}\n\n'
            '{"tags": [], "features": {"f0": 1e3}, "id": "b.jpg"}\n'
            '{"id": "c.jpg", "features": {"f0": 3, "f1": 7.25}, "tags": ["\\u0073ky"]}\n'
        ),
        {},
    ),
    "Parquet, lists": lambda: (parquet({**columns(), "tags": TAGS}), {"tags": "tags", "id": "photo"}),
    "Parquet, texts": lambda: (parquet({**columns(), "tags": ["|".join(row) for row in TAGS]}), BY_TAGS),
    "Parquet, columns": lambda: (parquet({**columns(), **FLAGS}), {"labels": "is:", "id": "photo"}),
    "Parquet, booleans": lambda: (
        parquet({**columns(), **{name: [bool(flag) for flag in flags] for name, flags in FLAGS.items()}}),
        {"labels": "is:", "id": "photo"},
    ),
}  # fmt: skip


def dense(rows):
    return rows.X.tolist() if isinstance(rows.X, np.ndarray) else rows.X.toarray().tolist()


@pytest.mark.parametrize("form", FORMS)
def test_one_content_in_every_form(form):
    opened, told = FORMS[form]()
    rows = read_tags(opened, **told)
    assert dense(rows) == X
    assert rows.Y.toarray().tolist() == [[1, 1], [0, 0], [0, 1]]
    assert rows.label_names.tolist() == LABELS
    assert rows.feature_names.tolist() == ["f0", "f1"]
    assert rows.ids.tolist() == IDS


def test_names_that_are_known_order_the_labels():
    for form in ("a column of tags", "label columns by prefix", "JSON by name", "Parquet, lists", "Parquet, columns"):
        opened, told = FORMS[form]()
        assert read_tags(opened, **told, label_names=["sky", "sea"]).Y.toarray().tolist() == [[1, 1], [0, 0], [1, 0]]
    for form in ("a column of tags", "JSON by name", "Parquet, lists"):
        opened, told = FORMS[form]()
        assert read_tags(opened, **told, label_names=["sea", "sky", "tree"]).Y.shape == (3, 3)
        opened, told = FORMS[form]()
        with pytest.raises(DataError, match="expected a tag that is known, found 's"):
            read_tags(opened, **told, label_names=["tree", "sun"])
    opened, told = FORMS["label columns by prefix"]()
    with pytest.raises(DataError, match="csv:1:1: expected columns of the labels 'sea', found those of 'sea', 'sky'"):
        read_tags(opened, **told, label_names=["sea"])


def test_rows_without_labels_where_none_are_needed():
    bare = "f0,f1\n0.5,-2\n"
    for told in ({}, {"labels": "is:"}, {"labels": ["sea"]}, {"tags": "tags", "separator": "|"}):
        rows = read_tags(file(bare), **told, require_labels=False)
        assert (rows.X.tolist(), rows.Y.shape, rows.ids) == ([[0.5, -2.0]], (1, 0), None)
    assert read_tags(file('{"features": [1]}'), require_labels=False).Y.shape == (1, 0)
    assert read_tags(parquet({"f0": [1.0]}), tags="tags", require_labels=False).Y.shape == (1, 0)
    assert read_tags(file("a,tags\n"), tags="tags", separator="|").X.shape == (0, 1)  # a header alone


def test_whole_ids_are_numbers():
    assert read_tags(file("i,a,t\n7,1,x\n12,2,y\n"), id="i", tags="t", separator="|").ids.tolist() == [7, 12]
    assert read_tags(file("i,a,t\n007,1,x\n"), id="i", tags="t", separator="|").ids.tolist() == ["007"]
    assert read_tags(file('{"features":[1],"tags":[],"id":7}\n')).ids.tolist() == [7]


TABLES = {
    "no rows, no header": ("", BY_TAGS, "csv:1:1: expected a line that names the columns, or a JSON object"),
    "neither said": ("a,b\n1,2\n", {}, "csv:1:1: expected labels or tags to say where a table has its labels"),
    "no such prefix": ("a,b\n1,2\n", {"labels": "is:"}, "csv:1:1: expected columns whose names start with 'is:'"),
    "no such label": ("a,b\n1,2\n", {"labels": ["b", "c"]}, "csv:1:1: expected a column called 'c', found 'a', 'b'"),
    "no such column": ("a,b\n1,2\n", {"tags": "t", "separator": "|"}, "csv:1:1: expected a column called 't'"),
    "no such id": ("a,b\n1,2\n", {"labels": ["b"], "id": "i"}, "csv:1:1: expected a column called 'i'"),
    "no such feature": ("a,b\n1,2\n", {"labels": ["b"], "features": ["c"]}, "expected a column called 'c'"),
    "a prefix alone": ("a,is:\n1,2\n", {"labels": "is:"}, "csv:1:1: expected a label's name after 'is:'"),
    "a column twice": ("a,b,a\n1,2,3\n", {"labels": ["b"]}, "csv:1:1: expected every column name once, found 'a'"),
    "a column without name": ("a,,b\n1,2,3\n", {"labels": ["b"]}, "csv:1:1: expected names of columns, not empty"),
    "one column for two": ("a,b\n1,2\n", {"labels": ["b"], "id": "b"}, "every column to serve as one thing, found 'b'"),
    "no features": ("b,c\n1,0\n", {"labels": ["b", "c"]}, "csv:1:1: expected at least one column of features"),
    "no separator": ("a,t\n1,x\n", {"tags": "t"}, "separator: expected what stands between two tags in 't'"),
    "a text among features": ("a,t\n1,x\nred,y\n", {"tags": "t", "separator": "|"}, "csv:3:1: expected a finite"),
    "NaN": ("b,a\n1,nan\n", {"labels": ["b"]}, "csv:2:3: expected a finite number"),
    "half a label": ("a,b\n1,0.5\n", {"labels": ["b"]}, "csv:2:3: expected a label, 0 or 1, found '0.5'"),
    "no label": ("a,b\n1,\n", {"labels": ["b"]}, "csv:2:3: expected a label, 0 or 1, found ''"),
    "too few fields": ("a,b\n1\n", {"labels": ["b"]}, "csv:2:2: expected 2 fields as in the first line, found 1"),
    "a tag twice": ("a,t\n1,x|y|x\n", {"tags": "t", "separator": "|"}, "csv:2:3: expected every tag once per row"),
    "an empty tag": ("a,t\n1,x||y\n", {"tags": "t", "separator": "|"}, "csv:2:3: expected a tag, not empty"),
    "blanks around a tag": ("a,t\n1,x | y\n", {"tags": "t", "separator": "|"}, "csv:2:3: expected a tag, not .* 'x '"),
    "an id twice": ("a,t,i\n1,x,7\n2,y,7\n", {"tags": "t", "separator": "|", "id": "i"}, "csv:3:5: expected every"),
    "an empty id": ("i,a,t\n,1,x\n", {"tags": "t", "separator": "|", "id": "i"}, "csv:2:1: expected an id"),
    "both said": ("a,b\n1,2\n", {"labels": "b", "tags": "b"}, "labels, tags: expected one of them, found both"),
    "an empty separator": ("a,b\n", {"tags": "b", "separator": ""}, "separator: expected a text that is not empty"),
    "labels twice": ("a,b\n", {"labels": ["b", "b"]}, "labels: expected a prefix, or names, each once"),
    "no label names": ("a,b\n", {"labels": ["b"], "label_names": []}, "label_names: expected names, each once"),
    "JSON where a table is said": ('{"features": [1]}\n', {"labels": "is:"}, "csv:1:1: expected a line that names"),
}  # fmt: skip


@pytest.mark.parametrize("kind", TABLES)
def test_faults_of_tables(kind):
    content, told, message = TABLES[kind]
    with pytest.raises(ValueError, match=message):
        read_tags(file(content), **told)


ROW = '{"features": [1], "tags": ["x"]}\n'
LINES = {
    "no features": ('{"tags": []}', "1:13: expected the key 'features', found none"),
    "no tags": ('{"features": [1]}', "1:18: expected the key 'tags', a list of names"),
    "another key": ('{"features": [1], "title": "x"}', "1:19: expected no other keys than 'features', 'tags' and 'id'"),
    "a key twice": ('{"tags": [], "tags": []}', "1:14: expected every key once, found 'tags' again"),
    "a tag twice": ('{"features": [1], "tags": ["x", "x"]}', "1:33: expected every tag once per row"),
    "an empty tag": ('{"features": [1], "tags": ["x", ""]}', "1:33: expected a tag, not empty"),
    "a number as tag": ('{"features": [1], "tags": [3]}', "1:28: expected a text in double quotes"),
    "one text as tags": ('{"features": [1], "tags": "x"}', r"1:27: expected '\['"),
    "null": ('{"features": [1, null], "tags": []}', "1:18: expected a number, found 'null"),
    "NaN": ('{"features": [NaN], "tags": []}', "1:15: expected a number"),
    "beyond float64": ('{"features": [1e999], "tags": []}', "1:15: expected a finite number"),
    "a text as feature": ('{"features": {"a": "1"}, "tags": []}', "1:20: expected a number"),
    "a feature twice": ('{"features": {"a": 1, "a": 2}, "tags": []}', "1:23: expected every feature once"),
    "a comma too many": ('{"features": [1,], "tags": []}', "1:17: expected something after ','"),
    "a list as row": (f"{ROW}[1]", r"2:1: expected '\{'"),
    "more behind": (ROW.strip() + " 7", "1:34: expected the end of the line after an object"),
    "not closed": ('{"features": [1], "tags": ["x"]', "1:32: expected ',' or '}', found the end of the line"),
    "half a pair": ('{"features": [1], "tags": ["\\ud800"]}', "1:28: expected printable text"),
    "a line end in a tag": ('{"features": [1], "tags": ["a\\nb"]}', "1:28: expected printable text"),
    "more features": (ROW + '{"features": [1, 2], "tags": []}', "2:14: expected 1 features, found 2"),
    "by place and name": (ROW + '{"features": {"a": 2}, "tags": []}', "2:14: expected features all by place, or"),
    "an id in one": (ROW + '{"features": [1], "tags": [], "id": 3}', "expected the key 'id' in every row, or in none"),
    "an id twice": ('{"features":[1],"tags":[],"id":3}\n' * 2, "2:32: expected every id once, found '3' again"),
    "a broken id": ('{"features": [1], "tags": [], "id": 3.5}', "1:38: expected ',' or '}'"),
    "an empty id": ('{"features": [1], "tags": [], "id": " "}', "1:37: expected an id, not empty"),
}  # fmt: skip


@pytest.mark.parametrize("kind", LINES)
def test_faults_of_json_lines(kind):
    content, message = LINES[kind]
    with pytest.raises(DataError, match=f"tags.jsonl:.*{message}"):
        read_tags(file(content, "tags.jsonl"))


def test_json_lines_that_must_fit_a_model():
    with pytest.raises(DataError, match=r"jsonl:1:15: expected every feature once, .* and known, found 'b'"):
        read_tags(file('{"features": {"b": 1}, "tags": []}', "x.jsonl"), features=["a"])
    with pytest.raises(DataError, match="expected the key 'photo' in every row, or in none, found none"):
        read_tags(file(ROW, "x.jsonl"), id="photo")


def test_bad_rows_can_be_left_out():
    for content, told in [
        ("i,a,t\n1,x,y\n2,1,z\n2,1,z\n", {"id": "i", "tags": "t", "separator": "|"}),
        (ROW + "{}\n" + "[\n", {}),
    ]:
        with pytest.warns(DataWarning, match="left out 2 rows"):
            rows = read_tags(file(content), **told, on_error="skip")
        assert (rows.X.shape, rows.skipped.count) == ((1, 1), 2)


@pytest.mark.parametrize(
    ("more", "told", "message"),
    [
        ({"t": [["x"], None, []]}, {"tags": "t"}, "column 't', row 1: expected tags, or none of them, found a missing"),
        ({"t": [["x"], ["y", None], []]}, {"tags": "t"}, "column 't', row 1: expected a tag, not empty.*found None"),
        ({"t": [["x"], ["y", "y"], []]}, {"tags": "t"}, "column 't', row 1: expected every tag once per row"),
        ({"t": [1, 2, 3]}, {"tags": "t"}, "column 't', row 0: expected lists of texts, or texts, found a column of"),
        ({"t": ["x|y", "", "y"]}, {"tags": "t"}, "separator: expected with a column of texts, .* 't', found None"),
        ({"t": [["x"], [], []]}, {"tags": "t", "separator": "|"}, "separator: expected None with a column of lists"),
        ({"t": [0, 1, 2]}, {"labels": ["t"]}, "column 't', row 2: expected a label, 0 or 1, found 2"),
        ({"t": [0, 1, None]}, {"labels": ["t"]}, "column 't', row 2: expected a finite number, found a missing value"),
        ({"t": [0, 1, 1], "i": [1, 1, 2]}, {"labels": ["t"], "id": "i"}, "column 'i', row 1: expected every id once"),
        ({"t": [0, 1, 1], "x": ["a"] * 3}, {"labels": ["t"]}, "column 'x', row 0: expected numbers, found a column of"),
        ({"t": [0, 1, 1]}, {"labels": ["t"], "on_error": "skip"}, "on_error: expected 'raise' with a Parquet"),
    ],
)  # fmt: skip
def test_faults_of_parquet(more, told, message):
    with pytest.raises(ValueError, match=message):
        read_tags(parquet({"f0": [1.0, 2.0, 3.0], **more}), **told)


# --- npz and ARFF without names beside them --------------------------------------------------------------------------


def test_npz_without_label_names_and_with_ids(tmp_path):
    path = tmp_path / "tags.npz"
    np.savez(path, X=X, Y=np.eye(3))
    assert read_npz(path).label_names.tolist() == ["0", "1", "2"]
    opened, told = FORMS["a column of tags"]()
    rows = read_tags(opened, **told)
    write_npz(path, rows)
    back = read_npz(path)
    assert isinstance(back, MultiLabel)
    assert (back.ids.tolist(), back.label_names.tolist()) == (IDS, LABELS)
    for ids in (["a", "b"], ["a", "b", "a"], [0.5, 1.5, 2.5]):
        np.savez(path, X=X, Y=np.eye(3), ids=ids)
        with pytest.raises(DataError, match=r"npz\[ids\]: expected 3 strings or integers, each once"):
            read_npz(path)


MEKA = "@relation '{}'\n@attribute a {{0,1}}\n@attribute b {{0,1}}\n@attribute c {{0,1}}\n@data\n1,0,0\n"


@pytest.mark.parametrize(
    ("relation", "labels"),
    [("r: -C 2", ["a", "b"]), ("r:-C 1", ["a"]), ("-C -2 -S 0", ["b", "c"]), ("r -V -C\t-1", ["c"])],
)
def test_arff_says_its_labels_as_meka_does(relation, labels):
    assert read_arff(file(MEKA.format(relation))).label_names.tolist() == labels


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        ("music", "arff:1:1: expected a relation's name with -C and a number of labels, or labels to say which"),
        ("r-C 2", "arff:1:1: expected a relation's name with -C"),
        ("r: -C 2.5", "arff:1:1: expected a relation's name with -C"),
        ("r: -C 0", "arff:1:1: expected a relation's name with -C"),
        ("r: -C 3", "arff:5:1: expected more than 3 attributes"),
    ],
)
def test_arff_that_does_not_say_its_labels(relation, message):
    with pytest.raises(DataError, match=message):
        read_arff(file(MEKA.format(relation), "x.arff"))
