"""Two people never get the same item unless the overlap says so."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from slatewise.labeling import Project
from slatewise.labeling.store import leases


@pytest.fixture
def clock(monkeypatch):
    """Seconds of both clocks, to be set."""
    seconds = {"wall": 1e9, "steady": 50.0}
    monkeypatch.setattr(leases, "wall_clock", lambda: seconds["wall"])
    monkeypatch.setattr(leases, "steady_clock", lambda: seconds["steady"])
    return seconds


def test_an_item_is_one_persons_until_the_lease_expires(clock, project, ann, bob):
    leases = project.leases
    assert leases.claim(0, ann, seconds=10)
    assert not leases.claim(0, bob)
    assert leases.free(bob).tolist() == [1, 2, 3]
    assert leases.free(ann).tolist() == [0, 1, 2, 3]
    clock["steady"] += 9
    assert leases.claim(0, ann, seconds=10)  # longer
    clock["steady"] += 9
    assert not leases.claim(0, bob)
    clock["steady"] += 2
    assert leases.claim(0, bob)
    assert not leases.claim(0, ann)


def test_an_item_given_back_is_free(project, ann, bob):
    project.leases.claim(0, ann)
    project.leases.release(0, ann)
    project.leases.release(0, ann)
    assert project.leases.claim(0, bob)


def test_done_keeps_an_item_and_skipping_does_not(project, ann, bob):
    project.done(0, ann)
    project.skip(1, ann)
    assert project.leases.free(bob).tolist() == [1, 2, 3]
    assert project.leases.free(bob, overlap=2).tolist() == [0, 1, 2, 3]
    assert project.leases.free(ann, overlap=2).tolist() == [2, 3]
    assert not project.leases.claim(0, bob)
    assert project.leases.claim(0, bob, overlap=2)
    project.undo(ann, item=0)
    assert project.leases.free(ann).tolist() == [2, 3]  # Bob has it


def test_a_clock_set_back_gives_nothing_twice(clock, project, ann, bob):
    project.leases.claim(0, ann, seconds=10)
    clock["wall"] -= 86400.0
    clock["steady"] += 5.0
    assert not project.leases.claim(0, bob)
    clock["steady"] += 6.0
    assert project.leases.claim(0, bob)


def test_a_lease_from_before_the_clock_was_set_back_ends_with_the_next_server(clock, project, ann, bob):
    project.leases.claim(0, ann)
    project.close()
    clock["wall"] -= 86400.0
    with Project.open(project.path, serve=True) as again:
        assert again.leases.claim(0, bob)


def test_of_many_at_once_one_gets_it(project):
    people = [project.people.number(f"person {number}") for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        got = list(threads.map(lambda who: project.leases.claim(2, who), people))
    assert sum(got) == 1


@pytest.mark.parametrize("wrong", [{"overlap": 0}, {"overlap": 1.5}, {"seconds": 0}, {"seconds": 1e9}])
def test_wrong_leases_are_refused(project, ann, wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}: expected"):
        project.leases.claim(0, ann, **wrong)
