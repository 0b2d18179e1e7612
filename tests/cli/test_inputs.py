"""What the command line reads: parts of named data sets, files of pairs and what is said of them, rows with labels."""

import gzip

import numpy as np
import pytest
from scipy.sparse import csr_array

from slatewise import data, datasets
from slatewise.cli.inputs import (
    Part,
    has_labels,
    read_classes,
    read_grades,
    read_interactions,
    read_labels,
    read_rows_to_rank,
    read_session_log,
)
from slatewise.cli.options import DataOptions
from slatewise.core.errors import DataError
from slatewise.data.records import MultiLabel, Sessions
from slatewise.datasets.records import About, LabelledSet, MultiLabelSet, RankingSet, SessionSet
from slatewise.datasets.splits import Split

ABOUT = About("nowplaying_sessions", "any", "small", "none", "here")
X, IS_TRAIN = np.arange(6.0).reshape(6, 1), np.array([True, False, True, True, False, True])


@pytest.fixture
def named(monkeypatch):
    """Make a name stand for a data set that is given."""

    def name_it(loaded):
        monkeypatch.setattr(datasets, "load", lambda name, kind: loaded)
        return ABOUT.name

    return name_it


def test_sessions_have_a_part_to_fit_and_one_to_measure(named):
    train, test = Sessions(np.array([1, 2, 3]), np.array([0, 3])), Sessions(np.array([3, 1]), np.array([0, 2]))
    name = named(SessionSet(ABOUT, train, test))
    assert read_interactions(name, part=Part.TRAIN).queries.tolist() == [1, 2]
    assert read_interactions(name, part=Part.TEST).queries.tolist() == [3]


def test_rows_with_labels_have_parts(named):
    Y = csr_array(np.eye(6))
    name = named(MultiLabelSet(ABOUT, X, Y, np.array(list("abcdef")), None, IS_TRAIN))
    assert read_labels(name, part=Part.TRAIN).X.ravel().tolist() == [0, 2, 3, 5]
    test = read_labels(name, part=Part.TEST)
    assert test.X.ravel().tolist() == [1, 4]
    np.testing.assert_array_equal(test.Y.toarray(), np.eye(6)[[1, 4]])
    assert len(read_labels(name).X) == 6


def test_rows_with_classes_have_parts(named):
    name = named(LabelledSet(ABOUT, X, np.arange(6) % 2, np.array(["no", "yes"]), IS_TRAIN))
    assert read_classes(name, part=Part.TRAIN).y.tolist() == ["no", "no", "yes", "yes"]
    assert read_classes(name, part=Part.TEST).X.ravel().tolist() == [1, 4]


def test_the_first_fold_of_documents_is_taken(named):
    folds = tuple(Split(np.array([0, 1]), np.array([2, 3]), np.array([4, 5])) for _ in range(2))
    doc_ids = np.array(list("abcdef"))
    name = named(RankingSet(ABOUT, X, np.arange(6.0), np.array([1, 1, 2, 2, 3, 3]), doc_ids, folds))
    assert read_rows_to_rank(name, part=Part.TRAIN).qid.tolist() == [1, 1]
    test = read_rows_to_rank(name, part=Part.TEST)
    assert test.X.ravel().tolist() == [4, 5]  # dense, as the set has it
    assert (test.y.tolist(), test.doc_ids.tolist()) == ([4, 5], ["e", "f"])
    assert read_grades(name).doc_ids.tolist() == ["e", "f"]
    assert len(read_rows_to_rank(name).y) == 6


def test_a_set_without_parts_is_read_whole_and_says_so(named):
    name = named(LabelledSet(ABOUT, X, np.zeros(6, dtype=int), np.array(["no"])))
    assert len(read_classes(name, part=Part.TRAIN).y) == 6
    with pytest.warns(UserWarning, match=f"{name}: has no test part of its own"):
        assert len(read_classes(name, part=Part.TEST).y) == 6


@pytest.fixture
def write(tmp_path):
    def make(text, name="pairs.csv"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return str(path)

    return make


def test_names_above_texts_are_warned_of(write):
    """Above numbers they are an error, which speaks of the option."""
    text = write("kunde,band\nann,abba\nbob,bach\nann,bach\n")
    with pytest.warns(UserWarning, match="pairs.csv:1: 'kunde' and 'band' occur in no other line; --header if"):
        assert read_interactions(text).queries.tolist() == ["kunde", "ann", "bob", "ann"]
    assert read_interactions(text, DataOptions(header=True)).queries.tolist() == ["ann", "bob", "ann"]
    assert len(read_interactions(text, DataOptions(header=False)).queries) == 4
    with pytest.raises(DataError, match=r"csv:1:1: .*\(--header if this line names the columns, --no-header if"):
        read_interactions(write("kunde,band\n1,2\n3,4\n"))


@pytest.mark.parametrize("text", ["ann,abba\n", "ann,abba\nann,bach\n", "a,b\nb,c\n", "1,2\n3,4\n", "1,a\n2,b\n3,c\n"])
def test_no_warning_for_a_first_line_like_the_others(write, text):
    assert len(read_interactions(write(text)).items) == text.count("\n")


def test_weights_are_read_by_number_or_name(write):
    text = write("kunde,artikel,plays\n7,1,3\n8,2,0.5\n")
    for columns in (
        DataOptions(weight="plays"),
        DataOptions(header=True, weight="plays"),
        DataOptions(header=True, weight="2"),
    ):
        assert read_interactions(text, columns).weights.tolist() == [3.0, 0.5]
    bare = write("7\t1\t3\n8\t2\t0.5\n", "bare.tsv.gz")
    assert read_interactions(bare, DataOptions(weight="2")).weights.tolist() == [3.0, 0.5]
    for columns, message in [
        (
            DataOptions(header=False, weight="plays"),
            "--weight: expected a column's number, from 0, with --no-header, found 'plays'",
        ),
        (DataOptions(weight="2"), r"a finite weight \(--header if this line names"),
        (DataOptions(weight="9"), "csv:1:20: expected at least 10 fields, found 3"),
        (DataOptions(weight="often"), "csv:1:1: expected one column called 'often'"),
    ]:
        with pytest.raises(ValueError, match=message):
            read_interactions(text, columns)
    for numbers, found in (("-1", "-1"), ("0", "0")):
        with pytest.raises(ValueError, match=rf"--weight: expected numbers >= 0, and one > 0, .*, found {found}"):
            read_interactions(write(f"7,1,0\n8,2,{numbers}\n"), DataOptions(weight="2"))


def test_columns_that_fit_does_not_read_are_warned_of(write):
    for text in ("7,1,3\n8,2,5\n", '\n7,"a, b",3\n8,c,5\n'):
        with pytest.warns(UserWarning, match="two of 3 columns are read; --weight 2, or a name, if"):
            read_interactions(write(text), part=Part.TRAIN)
        assert len(read_interactions(write(text), part=Part.TEST).items) == 2  # weights do not measure
    assert read_interactions(write('7,"a, b"\n8,c\n'), part=Part.TRAIN).items.tolist() == ["a, b", "c"]


def test_options_of_pairs_want_a_file_of_pairs(write):
    with pytest.raises(ValueError, match=r"--weight: expected a file of pairs, \.csv or \.tsv, found"):
        read_interactions(write("a b\n", "sessions.txt"), DataOptions(weight="2"))
    with pytest.raises(ValueError, match=r"--header: expected a file of pairs or sessions, found nowplaying_sessions"):
        read_interactions("nowplaying_sessions", DataOptions(header=True))
    with pytest.raises(ValueError, match=r"--no-header: expected a file of one session per line, found a table"):
        read_session_log(write("session,item\n1,a\n"), DataOptions(header=False))


def test_rows_with_labels_are_distinguished_from_sessions(write, tmp_path):
    data.write_npz(tmp_path / "tags.npz", MultiLabel(X, csr_array(np.eye(6)), np.array(list("abcdef"))))
    assert has_labels(str(tmp_path / "tags.npz"))
    assert has_labels("mulan_emotions")
    assert has_labels(write("0,3 1:0.5 7:1e-3\n", "rows.txt"))
    for text in ("1 2 3\n", "a:1 b:2\n", "spotify:track:1 spotify:track:2\n", "1 qid:3 1:2\n", ""):
        assert not has_labels(write(text, "rows.txt"))
    assert not has_labels("nowplaying_sessions")
    assert not has_labels("nowhere")
