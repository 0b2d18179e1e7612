"""Counts of a small project, by hand."""

import numpy as np
import pytest

from slatewise.labeling import Item, ItemData, Plan, ProgressReport, Project
from slatewise.labeling.store.records import Act, Given


@pytest.fixture
def project(tmp_path):
    items = [Item(f"text {number}", "text", "Waves.") for number in range(6)]
    with Project.create(tmp_path / "tags.db", ["sea", "sky", "tree", "sand"], items) as made:
        Plan(share=0.0).keep(made)
        yield made


@pytest.fixture
def scored(project):
    ItemData.of(project, np.zeros((6, 4)), "log-odds").attach(project)
    return project


def test_before_there_is_a_model_it_saves_nothing(project):
    ann = project.people.number("Ann")
    project.answer(0, 0, 1, ann)
    project.done(0, ann)
    report = ProgressReport.of(project)
    assert (report.finished, report.saved) == (1, 0)
    assert np.isnan(report.questions)
    version = project.models.add("", note="given")
    project.answer(1, 0, 1, ann, model=version)
    project.done(1, ann, model=version)
    report = ProgressReport.of(project)
    assert (report.questions, report.saved) == (1.0, 3)


def test_counts_pace_and_questions_saved(scored):
    project = scored
    ann, bob = project.people.number("Ann"), project.people.number("Bob")

    def answer(item, who, label, value, seconds, how="question"):
        return Act("answer", item, who, (Given(label, value, how),), seconds * 1000, 2000)

    closed = Act("done", 0, ann, (Given(2, 0, "closed"), Given(3, 0, "closed")), 20_000)
    project.record(
        [
            answer(0, ann, 0, 1, 0),
            answer(0, ann, 1, -1, 10),
            closed,
            answer(1, ann, 0, 0, 10_000),  # after a pause
            answer(1, ann, 3, 1, 10_010, "volunteered"),
            Act("done", 1, ann, (), 10_020_000),
            answer(2, bob, 0, 1, 5),
            Act("skip", 2, bob, (), 6000),
        ]
    )
    report = ProgressReport.of(project)
    assert (report.items, report.finished, report.begun) == (6, 2, 3)
    assert report.labels[0] == ("sea", 2, 1, 0)
    assert report.labels[1] == ("sky", 0, 0, 1)
    assert report.labels[3] == ("sand", 1, 1, 0)
    first, second = report.people
    assert first[:6] == (ann, "Ann", 4, 3, 2, 0)
    assert first.seconds_per_answer == 2.0
    assert first.items_per_hour == pytest.approx(2 / (40 / 3600))
    assert second[:6] == (bob, "Bob", 1, 1, 0, 1)
    assert second.items_per_hour == 0.0
    assert (report.questions, report.labels_without_model, report.saved) == (1.5, 4, 2 * 4 - 3)
    assert report.hours_left == pytest.approx(4 / first.items_per_hour)
    assert str(report) == "2 of 6 items, 1.5 questions instead of 4"


def test_the_share_without_the_model_saves_nothing(project):
    Plan(share=1.0).keep(project)
    project.done(0, project.people.number("Ann"))
    report = ProgressReport.of(project)
    assert (report.calibration_done, report.calibration_items, report.saved) == (1, 6, 0)
    assert np.isnan(report.questions)


def test_an_item_of_two_people_is_finished_by_the_second(project):
    Plan(share=0.0, overlap=2).keep(project)
    for name, finished in (("Ann", 0), ("Bob", 1)):
        project.done(3, project.people.number(name))
        assert ProgressReport.of(project).finished == finished


def test_nothing_done_yet(project):
    report = ProgressReport.of(project)
    assert (report.finished, report.begun, report.saved, report.people) == (0, 0, 0, ())
    assert np.isnan(report.hours_left)
    assert str(report) == "0 of 6 items"
