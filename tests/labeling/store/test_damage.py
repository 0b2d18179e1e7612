"""Files of projects that were damaged, or written past the rules: one plain error, whatever is called."""

import shutil
from contextlib import closing

import pytest
from tests.labeling.store.damage import attack, columns, faults, limited, make_project, put

from slatewise.core.errors import ProjectError
from slatewise.labeling import Agreement, ProgressReport, Project, export_answers, qualities


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return make_project(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def file(tmp_path, sound):
    shutil.copytree(sound.parent, tmp_path / "copy")
    return tmp_path / "copy" / sound.name


def test_every_table_has_a_row_to_damage_and_a_sound_project_has_no_fault(tmp_path, file):
    assert all(count for _, _, count in columns(file))
    assert limited(faults, file, tmp_path) == []


def test_whatever_is_damaged_ends_in_one_plain_error(tmp_path):
    done, found = attack(tmp_path, range(6), seed=1)
    assert done >= 5
    assert found == []


CALLS = {
    "votes": Project.votes,
    "known": Project.known,
    "progress": ProgressReport.of,
    "agreement": Agreement.of,
    "export": lambda project: export_answers(project, project.path.with_name("out.csv"), "long"),
}
OF_ANSWERS = {
    "no answer": ("answers", "value", 0, None),
    "no such answer": ("answers", "value", 0, 7),
    "a text": ("answers", "value", 0, "yes"),
    "no reason": ("answers", "how", 0, None),
    "no such label": ("answers", "label", 2, 77),
    "no such item": ("acts", "item", 0, 2**40),
    "no item": ("acts", "item", 0, None),
    "no such person": ("acts", "annotator", 0, 9),
    "no time": ("acts", "time", 0, 2**62),
}


@pytest.mark.parametrize("case", OF_ANSWERS)
@pytest.mark.parametrize("name", CALLS)
def test_invalid_answers_are_reported_as_damage(file, case, name):
    assert put(file, *OF_ANSWERS[case])
    found = r"project.db: expected .* found a damaged one: take a backup \(\w+ "
    with Project.open(file, readonly=True) as project, pytest.raises(ProjectError, match=found):
        CALLS[name](project)


@pytest.mark.parametrize(
    ("place", "call"),
    [
        (("items", "number", 3, 2**40), lambda project: len(project.items)),
        (("items", "number", 3, 2**40), lambda project: project.leases.free(1)),
        (("items", "number", 3, 2**40), Project.known),
        (("items", "kind", 1, "image"), lambda project: project.items.all()),
        (("items", "content", 1, None), lambda project: project.items[1]),
        (("labels", "number", 2, 2**62), lambda project: project.state(0, 1)),
        (("labels", "number", 2, 5), lambda project: project.labels.names()),
        (("former_names", "label", 0, 44), lambda project: project.labels.by_name()),
        (("annotators", "pseudonym", 0, None), lambda project: project.people.all()),
        (("tokens", "role", 0, "king"), lambda project: project.tokens.all()),
        (("models", "created", 0, "then"), lambda project: project.models.all()),
        (("model_uses", "model", 1, 12), lambda project: project.models.current()),
        (("leases", "item", 0, 5), lambda project: project.leases.free(1)),
        (("settings", "value", 0, "[1"), lambda project: project.settings.get("item data")),
        (("audit", "detail", 0, "[]"), lambda project: project.audit.all()),
        (("audit", "time", 0, -1), lambda project: project.audit.all()),
    ],
)
def test_invalid_rows_are_reported_as_damage(file, place, call):
    assert put(file, *place)
    with Project.open(file, readonly=True) as project, pytest.raises(ProjectError, match="found a damaged one"):
        call(project)


@pytest.mark.parametrize("value", ['{"a": 1}', "[7]", "[{}]", "[null]", '[{"version": 1, "more": 2}]', "3"])
def test_invalid_figures_are_an_error(file, value):
    with closing(Project.open(file)) as project, project._database.write() as connection:
        connection.execute("UPDATE settings SET value = ? WHERE name = 'quality'", (value,))
    with Project.open(file) as project, pytest.raises(ProjectError, match="expected figures of versions of the model"):
        qualities(project)
