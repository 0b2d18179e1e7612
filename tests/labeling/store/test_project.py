"""What people did and what stands of it, judged by a slow reading of the list of acts."""

import sqlite3

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slatewise.core.errors import ProjectError
from slatewise.labeling import Item, Project
from slatewise.labeling.store import leases
from slatewise.labeling.store.records import Act, Given

WHO = st.integers(1, 2)
ITEM, LABEL, VALUES = st.integers(0, 1), st.integers(0, 2), st.integers(-1, 1)
STEP = st.one_of(
    st.tuples(st.just("answer"), WHO, ITEM, LABEL, VALUES, st.sampled_from(["question", "volunteered", "reviewed"])),
    st.tuples(st.just("done"), WHO, ITEM, st.sets(LABEL)),
    st.tuples(st.just("skip"), WHO, ITEM),
    st.tuples(st.just("undo"), WHO, st.none() | ITEM),
)


class Slow:
    """A list of what stands: (who, item, {label: (value, how)}, kind)."""

    def __init__(self):
        self.acts = []

    def values(self, who, item):
        found = {}
        for act_who, act_item, given_, _ in self.acts:
            if (act_who, act_item) == (who, item):
                found.update(given_)
        return found

    def take(self, step):
        kind, who, item, *rest = step
        if kind == "undo":
            mine = [act for act in self.acts if act[0] == who and item in (None, act[1])]
            if mine:
                last = max(index for index, act in enumerate(self.acts) if act is mine[-1])
                del self.acts[last]
            return
        given_ = {}
        if kind == "answer":
            given_ = {rest[0]: (rest[1], rest[2])}
        if kind == "done":
            before = self.values(who, item)
            given_ = {label: (0, "closed") for label in rest[0] if label not in before}
            volunteered = {
                label: value for label, (value, how) in before.items() if how == "volunteered" and value >= 0
            }
            given_ |= {label: (value, "confirmed") for label, value in volunteered.items() if label in rest[0]}
        self.acts.append([who, item, given_, kind])

    def known(self, item, label):
        """(value, answered, disputed)."""
        all_values = [self.values(who, item).get(label) for who in (1, 2)]
        reviews = [
            value
            for who, act_item, given_, _ in self.acts
            if act_item == item and label in given_ and self.values(who, item)[label][1] == "reviewed"
            for value, how in [given_[label]]
            if how == "reviewed"
        ]
        votes = [value for value, how in filter(None, all_values) if how != "reviewed" and value >= 0]
        value = votes[0] if len(set(votes)) == 1 else -1
        value = reviews[-1] if reviews else value
        shown = any(value >= 0 and how != "volunteered" for value, how in filter(None, all_values))
        return value, shown and value >= 0, len(set(votes)) == 2 and not reviews


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, max_size=12))
def test_what_stands_is_what_a_slow_reading_finds(project, ann, bob, steps):
    project._database._writer.execute("PRAGMA synchronous = OFF")  # a disk that flushes is not what is tested here
    while project.undo(ann) or project.undo(bob):
        pass
    slow = Slow()
    for step in steps:
        kind, who, item, *rest = step
        slow.take(step)
        if kind == "answer":
            project.answer(item, rest[0], rest[1], who, how=rest[2])
        elif kind == "done":
            project.done(item, who, sorted(rest[0]))
        elif kind == "skip":
            project.skip(item, who)
        else:
            project.undo(who, item)
    known = project.known()
    stands = {(a.annotator, a.item, a.label): (a.value, a.how) for a in project.answers()}
    for item in (0, 1):
        for who in (ann, bob):
            expected = slow.values(who, item)
            state = project.state(item, who)
            assert {label: stands[who, item, label] for label in range(3) if (who, item, label) in stands} == expected
            assert state.values.tolist() == [expected.get(label, (-1, ""))[0] for label in range(3)]
            assert state.answered.tolist() == [label in expected for label in range(3)]
            marks = [kind for a, i, _, kind in slow.acts if (a, i) == (who, item) and kind in ("done", "skip")]
            assert state.mark == (marks[-1] if marks else "open")
        for label in range(3):
            found = known.values[item, label], known.answered[item, label], known.disputed[item, label]
            assert found == slow.known(item, label)
    assert (known.values[2:] == -1).all()


def test_an_answer_keeps_all_that_is_known_of_it(project, ann, monkeypatch):
    monkeypatch.setattr(leases, "wall_clock", lambda: 1234.567)
    version = project.models.add("model.safetensors", note="first")
    act = project.answer(2, 1, 1, ann, how="volunteered", milliseconds=1500, model=version, probability=0.25)
    (answer,) = project.answers()
    assert answer == (2, ann, 1, 1, "volunteered", 0.25, 1234567, 1500, version, act, False)
    assert list(project.answers(item=1)) == list(project.answers(annotator=ann + 1)) == []


def test_every_answer_ever_given_can_be_read(project, ann):
    project.answer(0, 0, 1, ann)
    project.answer(0, 0, 0, ann)
    project.undo(ann)
    project.answer(0, 0, -1, ann)
    assert [(answer.value, answer.undone) for answer in project.answers(every=True)] == [
        (1, False),
        (0, True),
        (-1, False),
    ]


def test_what_an_undo_took_back_is_told(project, ann):
    assert project.undo(ann) is None
    project.answer(1, 2, 1, ann)
    act = project.done(1, ann, [0, 1, 2])
    assert project.undo(ann) == (act, "done", 1, (0, 1))
    assert project.state(1, ann).mark == "open"
    assert project.undo(ann, item=0) is None


def test_done_takes_beliefs(project, ann):
    project.done(0, ann, {0: 0.9, 2: 0.125})
    assert [(a.label, a.value, a.how, a.probability) for a in project.answers()] == [
        (0, 0, "closed", 0.9),
        (2, 0, "closed", 0.125),
    ]


@pytest.mark.parametrize("table", ["acts", "answers", "audit", "model_uses"])
@pytest.mark.parametrize("change", ["DELETE FROM {0}", "UPDATE {0} SET {1} = 0", "REPLACE INTO {0} SELECT * FROM {0}"])
def test_acts_are_only_ever_added(project, ann, table, change):
    project.answer(0, 0, 1, ann)
    project.models.use(project.models.add("model"))
    column = {"acts": "milliseconds", "answers": "value", "audit": "time", "model_uses": "time"}[table]
    with pytest.raises(ProjectError, match="only ever added"), project._database.write() as connection:
        connection.execute(change.format(table, column))
    assert project.known().values[0, 0] == 1


def test_nobody_undoes_what_another_did(project, ann, bob):
    act = project.answer(0, 0, 1, ann)
    with pytest.raises(ProjectError, match="ones own"), project._database.write() as connection:
        connection.execute(
            "INSERT INTO acts (kind, item, annotator, time, undoes) VALUES ('undo', 0, ?, 0, ?)", (bob, act)
        )


def test_a_clock_that_goes_back_changes_no_order(project, ann, monkeypatch):
    for seconds, value in ((5000.0, 1), (100.0, 0)):
        monkeypatch.setattr(leases, "wall_clock", lambda seconds=seconds: seconds)
        project.answer(0, 0, value, ann)
    assert project.known().values[0, 0] == 0
    assert project.undo(ann).labels == (0,)
    assert project.known().values[0, 0] == 1


def test_acts_are_recorded_all_or_none(project, ann):
    good, bad = Act("answer", 0, ann, (Given(0, 1),)), Act("answer", 0, ann, (Given(9, 1),))
    with pytest.raises(ValueError, match="label: expected the number of one that is there, found 9"):
        project.record([good, bad])
    assert not list(project.answers())
    assert project.last_act() == 0
    assert project.record([good, good]) == [1, 2]
    assert project.last_act() == 2


def test_numbers_of_numpy_are_numbers(project, ann):
    project.answer(np.int64(1), np.int32(2), np.int8(1), np.int64(ann), probability=np.float32(0.5))
    assert project.state(np.int64(1), ann).values[2] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"item": 4}, "item: expected the number of one that is there, found 4"),
        ({"item": -1}, "item: expected the number"),
        ({"label": 3}, "label: expected the number"),
        ({"label": "sea"}, "label: expected a whole number, found 'sea'"),
        ({"annotator": 7}, "annotator: expected the number"),
        ({"value": 2}, "value: expected 1 for yes"),
        ({"value": True}, "value: expected a whole number"),
        ({"how": "closed "}, "how: expected one of"),
        ({"milliseconds": -1}, "milliseconds: expected milliseconds from 0"),
        ({"model": 1}, "model: expected the number"),
        ({"probability": 1.5}, "probability: expected a number from 0 to 1"),
        ({"probability": float("nan")}, "probability: expected a number from 0 to 1"),
    ],
)
def test_a_wrong_answer_is_refused_in_words(project, ann, arguments, message):
    with pytest.raises(ValueError, match=message):
        project.answer(**{"item": 0, "label": 0, "value": 1, "annotator": ann} | arguments)
    assert project.last_act() == 0


def test_a_label_is_renamed_and_keeps_its_answers(project, ann):
    project.answer(0, 1, 1, ann)
    project.labels.rename("sky", "heaven")
    assert project.labels.names() == ["sea", "heaven", "tree"]
    assert project.labels.number("heaven") == project.labels.number("sky") == 1
    project.labels.rename("sky", "clouds")
    project.labels.rename("clouds", "sky")  # back again
    assert project.labels.names()[1] == "sky"
    assert project.known().values[0].tolist() == [-1, 1, -1]
    assert [line.detail["new"] for line in project.audit.all()] == ["heaven", "clouds", "sky"]
    project.labels.add(["moon"])
    assert project.known().values.shape == (4, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda labels: labels.rename("sea", "sky"), "label: expected every label once, found 'sky' again"),
        (lambda labels: labels.rename("lake", "pond"), "label: expected the name of a label, found 'lake'"),
        (lambda labels: labels.add(["moon", "moon"]), "found 'moon' again"),
        (lambda labels: labels.add(["sun", " moon"]), "without blanks around it"),
        (lambda labels: labels.add([""]), "not empty"),
        (lambda labels: labels.add(["a\nb"]), "printable"),
    ],
)
def test_a_name_that_is_there_or_is_none_is_refused(project, change, message):
    with pytest.raises(ValueError, match=message):
        change(project.labels)
    assert project.labels.names() == ["sea", "sky", "tree"]


def test_a_former_name_is_not_given_to_another_label(project):
    project.labels.rename("sea", "ocean")
    with pytest.raises(ValueError, match="no other label had before"):
        project.labels.rename("sky", "sea")
    with pytest.raises(ValueError, match="no other label had before"):
        project.labels.add(["sea"])


def test_items_are_read_as_they_were_added(project, tmp_path):
    (tmp_path / "photos" / "deep").mkdir(parents=True)
    photos = tmp_path / "photos"
    new = [
        Item("a photo", "image", "deep/a.jpg", photos),
        Item("a sound", "audio", "b.ogg", photos),
        Item("a link", "link", "https://example.org/?a=1"),
    ]
    project.items.add(new)
    assert len(project.items) == 7
    assert project.items.all()[4:] == new
    assert project.items[project.items.number("a photo")].path == photos / "deep" / "a.jpg"
    assert project.items.folders() == [photos]
    with pytest.raises(IndexError, match="found 7"):
        project.items[7]


def test_a_project_moves_with_its_folder(tmp_path):
    home = tmp_path / "here"
    (home / "photos").mkdir(parents=True)
    Project.create(home / "tags.db", ["sea"], [Item("a", "image", "a.jpg", home / "photos")]).close()
    home.rename(tmp_path / "there")
    with Project.open(tmp_path / "there" / "tags.db") as moved:
        assert moved.items[0].path == tmp_path / "there" / "photos" / "a.jpg"


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (Item("text 0", "text", "x"), "id: expected every item once, found 'text 0' again"),
        (Item("", "text", "x"), "id: expected a text"),
        (Item("v", "video", "x"), "kind: expected one of"),
        (Item("i", "image", "a.jpg"), "folder: expected the folder of a file, found None"),
        (Item("l", "link", "javascript:alert(1)"), "content: expected an address that starts with http"),
        (Item("t", "text", "a\0b"), "content: expected text that UTF-8 can say"),
        (Item("t", "text", "\ud800"), "content: expected text that UTF-8 can say"),
    ],
)
def test_a_wrong_item_is_refused(project, item, message):
    with pytest.raises(ValueError, match=message):
        project.items.add([Item("good", "text", "x"), item])
    assert len(project.items) == 4


@pytest.mark.parametrize("path", ["../a.jpg", "/etc/passwd", "a/../../b", "", "C:x", "a\\..\\b"])
def test_a_path_that_leads_out_is_refused(project, tmp_path, path):
    with pytest.raises(ValueError, match="content: expected a path inside the folder"):
        project.items.add([Item("i", "image", path, tmp_path)])


def test_a_failed_start_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="'sea' again"):
        Project.create(tmp_path / "tags.db", ["sea", "sea"])
    assert list(tmp_path.iterdir()) == []


def test_a_name_is_removed_and_its_answers_stay(project, ann, bob, tmp_path):
    secret = "Annabelle Featherstone-Haugh"
    who = project.people.number(secret)
    project.answer(0, 0, 1, who)
    project.tokens.add("digest", "annotator", who)
    pseudonym = project.people.forget(who)
    assert [person.shown for person in project.people.all()] == ["Ann", "Bob", pseudonym]
    assert [answer.annotator for answer in project.answers()] == [who]
    assert project.tokens.all()[0].revoked is not None
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes()
    assert project.people.number(secret) != who


def test_versions_of_the_model_are_kept_and_rolled_back(project):
    assert project.models.current() is None
    first, second = project.models.add("1.safetensors", last_act=3), project.models.add("2.safetensors", note="better")
    for number in (first, second, first):
        project.models.use(number)
        assert project.models.current().number == number
    assert [(model.path, model.note, model.last_act) for model in project.models.all()] == [
        ("1.safetensors", "", 3),
        ("2.safetensors", "better", 0),
    ]
    project.models.use(None)
    assert project.models.current() is None
    with pytest.raises(ValueError, match="model: expected the number"):
        project.models.use(3)


def test_tokens_have_roles_and_end(project, ann):
    number = project.tokens.add("digest", "reviewer", ann)
    (token,) = project.tokens.all()
    assert (token.number, token.digest, token.role, token.annotator, token.revoked) == (
        number,
        "digest",
        "reviewer",
        ann,
        None,
    )
    project.tokens.revoke(number)
    assert project.tokens.all()[0].revoked is not None
    with pytest.raises(ValueError, match="role: expected one of"):
        project.tokens.add("other", "king", ann)
    with pytest.raises(ValueError, match="token: expected the number"):
        project.tokens.revoke(9)


def test_settings_and_the_log(project, ann):
    assert project.settings.get("overlap", 1) == 1
    project.settings.set("overlap", 2)
    project.settings.set("next", {"by": "least sure", "share": 0.05})
    assert (project.settings.get("overlap"), project.settings.get("next")["share"]) == (2, 0.05)
    project.audit.add("export", ann, format="csv")
    (line,) = project.audit.all()
    assert (line.annotator, line.what, line.detail) == (ann, "export", {"format": "csv"})


def test_the_view_and_the_count_of_votes_agree_with_plain_sql(project, ann, bob):
    """The view is part of the file: other programs may read it."""
    project.answer(0, 0, 1, ann)
    project.answer(0, 0, 0, ann)
    project.answer(0, 0, 1, bob)
    with sqlite3.connect(project.path) as other:
        assert other.execute("SELECT annotator, value FROM state ORDER BY annotator").fetchall() == [(ann, 0), (bob, 1)]
    other.close()
    assert project.known().disputed[0, 0]
