"""The simulator of rounds against what can be reckoned by hand."""

import pytest

from slatewise_papers.scale import WORKERS, Learner, Machine, likelihood, margin, metric, n_subtrees, predicted

FREE = Machine(0.0, 0.0, 0.0, first=0.0)


@pytest.mark.parametrize("n_workers", WORKERS)
def test_work_alone_is_divided_by_the_workers(n_workers):
    found = predicted(Learner("even", 1 << 14, 1e-3, 0.0, 0, 0), n_workers, FREE)
    assert found.seconds >= 16.384 / n_workers - 1e-12
    assert found.efficiency > 0.85


def test_what_is_not_divided_is_paid_by_everybody():
    asks = predicted(Learner("nothing", 100, 0.0, 0.0, 1000, 500), 10, Machine(1.0, 0.1, 0.0, first=3.0))
    assert asks.seconds == pytest.approx(3.0 + 10 * 1.0 + 10 * 0.1)
    assert asks.bytes >= 10 * 1000 + 10 * 500
    begins = predicted(Learner("begin", 100, 0.0, 5.0, 0, 0), 10, FREE)
    assert begins.seconds == pytest.approx(5.0)
    assert predicted(Learner("begin", 100, 0.0, 5.0, 0, 0), 10, Machine(0.0, 0.0, 0.0, 2, 0.0)).seconds == 25.0


def test_there_are_never_more_blocks_at_work_than_there_are():
    assert predicted(Learner("one block", 1, 2.0, 0.0, 0, 0), 50, FREE).seconds == pytest.approx(2.0)


def test_runs_are_few_subtrees():
    assert [n_subtrees(0, last) for last in (1, 2, 3, 4, 7, 8)] == [1, 1, 2, 1, 3, 1]


@pytest.mark.parametrize("learner", [margin(10**6), likelihood(64_000), metric(60_000, 60_000, 512, 100)])
def test_learners_gain_from_a_few_workers(learner):
    one, two, ten = (predicted(learner, n).seconds for n in (1, 2, 10))
    assert ten < two < one
