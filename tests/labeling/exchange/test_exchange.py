"""What goes out comes in again as it was."""

import shutil
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slatewise.cli.main import main
from slatewise.core.errors import DataError, DataWarning
from slatewise.data import read_multilabel_svmlight, read_npz
from slatewise.labeling import Item, Project, export_answers, import_answers
from slatewise.labeling.exchange.statements import project_statements, time_of, time_text
from slatewise.labeling.store.records import Act, Given

KEEPS_ALL = {"long": "out.csv", "jsonl": "out.jsonl.gz", "label-studio": "out.json"}


def statements_of(project):
    """All that a file could tell, whatever the order in which different people or items came."""
    return sorted(map(repr, project_statements(project)))


@pytest.mark.parametrize("format", KEEPS_ALL)
def test_what_goes_out_comes_in_again(project, make, tmp_path, format):
    other = make()
    export_answers(project, tmp_path / KEEPS_ALL[format], format)
    taken = import_answers(other, tmp_path / KEEPS_ALL[format], format)
    assert statements_of(other) == statements_of(project)
    assert taken == (len(statements_of(project)), 3, 2)
    for before, after in ((project.known(), other.known()),):
        assert (after.values == before.values).all()
        assert (after.answered == before.answered).all()
        assert (after.disputed == before.disputed).all()
    export_answers(other, tmp_path / f"again-{KEEPS_ALL[format]}", format)
    assert (tmp_path / f"again-{KEEPS_ALL[format]}").read_bytes() == (tmp_path / KEEPS_ALL[format]).read_bytes()
    assert [line.what for line in other.audit.all()] == ["import"]


def test_a_done_that_was_imported_is_undone_as_one(project, make, tmp_path):
    other = make()
    export_answers(project, tmp_path / "out.jsonl")
    import_answers(other, tmp_path / "out.jsonl")
    bob = other.people.number("Bob, the second")
    assert other.undo(bob, item=2).kind == "answer"
    assert other.undo(bob, item=2)[1:] == ("done", 2, (0, 2))


WHEN = st.integers(0, 253402300799999)
GIVEN = st.builds(
    Given,
    st.integers(0, 3),
    st.integers(-1, 1),
    st.sampled_from(["question", "volunteered", "closed", "confirmed", "reviewed"]),
    st.none() | st.floats(0, 1),
)
ACT = st.builds(
    Act,
    st.just("answer"),
    st.integers(0, 3),
    st.integers(1, 3),
    st.lists(GIVEN, min_size=1, max_size=3, unique_by=lambda one: one.label).map(tuple),
    WHEN,
    st.none() | st.integers(0, 10**9),
    st.none() | st.integers(1, 2),
)
MARK = st.builds(
    Act, st.sampled_from(["done", "skip"]), st.integers(0, 3), st.integers(1, 3), st.just(()), WHEN, st.none()
)
NAME = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=st.lists(ACT | MARK, max_size=8), people=st.lists(NAME, min_size=3, max_size=3, unique=True))
def test_whatever_goes_out_comes_in_again(empty_file, tmp_path_factory, acts, people):
    folder = tmp_path_factory.mktemp("one")
    for name in ("from", *KEEPS_ALL):
        shutil.copy(empty_file, folder / f"{name}.db")
    with Project.open(folder / "from.db") as project:
        project._database._writer.execute("PRAGMA synchronous = OFF")
        for name in people:
            project.people.number(name)
        for _ in range(2):
            project.models.add("model")
        project.record(acts)
        for format, file in KEEPS_ALL.items():
            export_answers(project, folder / file, format)
            with Project.open(folder / f"{format}.db") as other:
                other._database._writer.execute("PRAGMA synchronous = OFF")
                import_answers(other, folder / file, format)
                assert statements_of(other) == statements_of(project)
                assert (other.known().values == project.known().values).all()


@pytest.mark.parametrize("format", KEEPS_ALL)
def test_of_two_reviewers_the_last_is_right_in_every_file(make, tmp_path, format):
    one, other = make(), make()
    for name in ("first to open", "second"):
        one.people.number(name)
    for value, person in ((1, 1), (1, 2), (0, 1)):  # the one whose answers stand first in a file speaks last
        one.record([Act("answer", 0, person, (Given(0, value, "reviewed"),))])
    export_answers(one, tmp_path / KEEPS_ALL[format], format)
    import_answers(other, tmp_path / KEEPS_ALL[format], format)
    assert other.known().values[0, 0] == one.known().values[0, 0] == 0


@pytest.mark.parametrize("milliseconds", [0, 1, 999, 1_700_000_000_123, 253402300799999])
def test_times_are_kept_to_the_millisecond(milliseconds):
    assert time_of(time_text(milliseconds)) == milliseconds


def test_a_wide_table_keeps_what_is_known(project, make, tmp_path):
    other = make()
    export_answers(project, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines() == [
        'item,sea,"sky, blue","a ""tree""",Straße 👍',
        "a.jpg,0,0,,1",
        '"b, c",,,,',
        '"d""e",0,1,0,',
        "item,,,,",
    ]
    import_answers(other, tmp_path / "out.csv", annotator="a spreadsheet")
    assert (other.known().values == project.known().values).all()
    assert {person.name for person in other.people.all()} == {"a spreadsheet"}
    assert other.known().answered.sum() == (project.known().values >= 0).sum()


def test_labels_are_understood_by_former_names_and_by_what_the_caller_says(make, tmp_path):
    project = make()
    project.labels.rename("sea", "ocean")
    (tmp_path / "in.csv").write_text("item\tsea\tHimmel\na.jpg\t1\t0\n")
    import_answers(project, tmp_path / "in.csv", labels={"Himmel": "sky, blue"})
    assert project.known().values[0].tolist() == [1, 0, -1, -1]
    with pytest.raises(ValueError, match="labels: expected names of labels as values, found 'heaven'"):
        import_answers(project, tmp_path / "in.csv", labels={"Himmel": "heaven"})


def test_versions_of_models_are_put_behind_those_that_are_there(project, make, tmp_path):
    other = make()
    other.models.add("own.safetensors")
    export_answers(project, tmp_path / "out.jsonl")
    import_answers(other, tmp_path / "out.jsonl")
    assert [(model.number, model.note) for model in other.models.all()] == [
        (1, ""), (2, "import of jsonl"), (3, "import of jsonl")
    ]  # fmt: skip
    assert {answer.model for answer in other.answers()} == {None, 2, 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item,lake\na.jpg,1\n", r"in.csv:1:6: expected the name of a label of the project; or .*, found 'lake'"),
        ("item,sea,sea\n", r"in.csv:1:1: expected every column once, found 'sea' again"),
        ("item,sea,ocean\na.jpg,1,1\n", r"in.csv:1:10: expected every label once, found 'ocean'"),
        ("item,sea\nz.jpg,1\n", r"in.csv:2:1: expected the id of an item of the project, found 'z.jpg'"),
        ("item,sea\na.jpg,2\n", r"in.csv:2:7: expected 1, 0 or nothing, found '2'"),
        ("item,sea\na.jpg,1,1\n", r"in.csv:2:9: expected 2 fields as in the first line, found 3"),
        ("", "in.csv:1:1: expected a line that names the columns, found an empty file"),
        ("item,label,answer,mood\n", r"in.csv:1:19: expected no other columns than item, label, answer, "),
        (
            "item,label,answer\na.jpg,lake,yes\n",
            r"in.csv:2:7: expected the name of a label of the project, found 'lake'",
        ),
        (
            "item,label,answer\na.jpg,sea,maybe\n",
            r"in.csv:2:11: expected one of yes, no, don't know, 1, 0, \?, found 'm",
        ),
        ("item,label,answer\na.jpg,,yes\n", r"in.csv:2:8: expected done or skip, .*, found 'yes'"),
        ("item,label,answer,time\na.jpg,sea,no,now\n", r"in.csv:2:14: expected a time such as .*, found 'now'"),
        (
            "item,label,answer,how\na.jpg,sea,no,so\n",
            r"in.csv:2:14: expected one of question, volunteered, .*, found 'so'",
        ),
        ("item,label,answer,model\na.jpg,sea,no,0\n", r"in.csv:2:14: expected a whole number from 1 to"),
        ("item,label,answer,milliseconds\na.jpg,sea,no,1.5\n", r"in.csv:2:14: expected a whole number from 0 to"),
        ("item,label,answer,probability\na.jpg,sea,no,2\n", r"in.csv:2:14: expected a number from 0 to 1, found '2'"),
        ("item,label,answer,annotator\na.jpg,sea,no, x\n", r"in.csv:2:14: expected a name, without blanks"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(make, tmp_path, text, message):
    project = make()
    (tmp_path / "in.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        import_answers(project, tmp_path / "in.csv", labels={"ocean": "sea"})
    assert project.last_act() == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", r"in.jsonl:1:1: expected an object with no other keys than answers, content, item, kind, found \[\]"),
        ('{"item": "a.jpg", "tags": []}', "expected an object with no other keys"),
        ('{"item": "z"}', "in.jsonl:1:1: expected item: the id of an item of the project, found 'z'"),
        ('{"item": "a.jpg", "answers": {}}', "expected answers: a list of objects"),
        ('{"item": "a.jpg", "answers": [1]}', "expected answers: a list of objects"),
        ('{"item": "a.jpg", "answers": [{"label": "sea", "answer": 1}]}', r"expected answers\[0\].answer: one of yes"),
        ('{"item": "a.jpg", "answers": [{"label": 7, "answer": "no"}]}', r"expected answers\[0\].label: the name of"),
        ('{"item": "a.jpg", "answers": [{"answer": "done", "how": "question"}]}', "neither how nor probability"),
        ('{"item": "a.jpg", "answers": [{"label": "sea", "answer": "no", "model": true}]}', r"\.model: a whole number"),
        ('{"item": "a.jpg", "answers": [{"label": "sea", "answer": "no", "mood": 1}]}', "no other fields than"),
        ('{"item": "a.jpg", "item": "a.jpg"}', "expected every key once in an object"),
        ('{"item": "a.jpg"', r"in.jsonl:1:17: expected JSON, found Expecting ',' delimiter"),
        ('{"item": NaN}', "expected finite numbers, found NaN"),
        ('{"item": "\\ud800"}', "of text and finite numbers"),
        ("[" * 100_000, "not nested deeply"),
        (
            '\n\n{"item": "a.jpg", "answers": [{"label": "sea", "answer": "no", "time": 5}]}',
            "in.jsonl:3:1: .*time: a time",
        ),
    ],
)
def test_wrong_json_lines_are_refused_with_their_place(make, tmp_path, text, message):
    project = make()
    (tmp_path / "in.jsonl").write_text(text)
    with pytest.raises(DataError, match=message):
        import_answers(project, tmp_path / "in.jsonl")
    assert project.last_act() == 0


def test_a_format_is_given_or_follows_from_the_ending(project, tmp_path):
    with pytest.raises(ValueError, match=r"out.doc: expected a format, or a name that ends with one of .csv, "):
        export_answers(project, tmp_path / "out.doc")
    with pytest.raises(ValueError, match="format: expected one of wide, long, jsonl"):
        export_answers(project, tmp_path / "out.csv", "xml")
    with pytest.raises(ValueError, match="format: expected one with names"):
        import_answers(project, tmp_path / "out.svm")
    with pytest.raises(ValueError, match="X: expected the features of the items, which this format needs"):
        export_answers(project, tmp_path / "out.npz")
    with pytest.raises(ValueError, match="X: expected a row per item, 4, found 3"):
        export_answers(project, tmp_path / "out.npz", X=np.ones((3, 2)))


def test_npz_keeps_unknown_labels_and_answers_to_questions(project, make, tmp_path):
    X = np.arange(8.0).reshape(4, 2)
    export_answers(project, tmp_path / "out.npz", X=X)
    rows, known = read_npz(tmp_path / "out.npz"), project.known()
    assert (rows.X == X).all()
    assert (np.where(rows.known, rows.Y.toarray(), -1) == known.values).all()
    assert (rows.answered == known.answered).all()
    other = make()
    import_answers(other, tmp_path / "out.npz")
    assert (other.known().values == known.values).all()
    assert (other.known().answered == known.answered).all()


def test_svmlight_says_what_it_cannot_keep(project, tmp_path):
    X = np.arange(1.0, 9.0).reshape(4, 2)
    with pytest.warns(DataWarning, match="10 of 16 labels are not known and count as no; npz keeps them apart"):
        export_answers(project, tmp_path / "out.svm", X=X)
    rows = read_multilabel_svmlight(tmp_path / "out.svm", n_labels=4)
    assert (rows.X.toarray() == X).all()
    assert (rows.Y.toarray() == (project.known().values == 1)).all()


@pytest.fixture(scope="module")
def labeled(tmp_path_factory):
    """A project of which nearly all labels of 40 rows are known, and its features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    folder = tmp_path_factory.mktemp("labeled")
    items = [Item(f"row {number}", "text", "x") for number in range(40)]
    project = Project.create(folder / "rows.db", ["one", "two", "three"], items)
    ann = project.people.number("Ann")
    acts = [
        Act("answer", row, ann, tuple(Given(label, int(X[row, label] > 0)) for label in range(3) if row + label > 3))
        for row in range(40)
    ]
    project.record(acts)
    yield project, X, folder
    project.close()


@pytest.mark.filterwarnings("ignore:y. .* labels are not known")
@pytest.mark.parametrize("ending", ["npz", "svm"])
def test_slatewise_fit_reads_what_goes_out(labeled, ending, tmp_path, capsys):
    project, X, _ = labeled
    with pytest.warns(DataWarning) if ending == "svm" else nullcontext():
        export_answers(project, tmp_path / f"rows.{ending}", X=X)
    arguments = ["fit", "cstar", str(tmp_path / f"rows.{ending}"), "--out", str(tmp_path / "model.safetensors")]
    assert _run([*arguments, "--param", "core=1", "--param", "C=1.0"]) == 0
    assert Path(tmp_path / "model.safetensors").exists()


def test_rows_that_are_partly_known_are_not_taken_for_known(labeled, tmp_path, capsys):
    project, X, _ = labeled
    export_answers(project, tmp_path / "rows.npz", X=X)
    assert (
        _run(["fit", "latent-features", str(tmp_path / "rows.npz"), "--out", str(tmp_path / "model.safetensors")]) == 2
    )
    assert "expected labels that are all known, found 9 that are not: only cstar learns" in capsys.readouterr().err


def _run(arguments):
    try:
        main(arguments)
    except SystemExit as end:
        return end.code or 0
    return 0
