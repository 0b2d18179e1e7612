"""A fit has the same bits on one thread, on two, and on any number of workers."""

import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold
from tests.cluster.fits import BLOCKS, FITS, learned
from tests.cluster.pretend import PretendWorkers

from slatewise import CStarMarginRanker, LatentRanker, MarginRanker, MetricRanker, datasets
from slatewise.core.running.executor import on_cluster

QUIETLY = pytest.mark.filterwarnings("ignore::UserWarning")  # rough fits of little data, and what they warn of


@pytest.fixture
def many_blocks(monkeypatch):
    for name, value in BLOCKS.items():
        monkeypatch.setattr(name, value)


@QUIETLY
@pytest.mark.parametrize("name", FITS)
def test_workers_change_no_bit(many_blocks, name):
    found = {n_jobs: learned(FITS[name](n_jobs=n_jobs)) for n_jobs in (1, 2)}
    for n_workers in (2, 3, 8):
        workers = PretendWorkers(n_workers)
        with on_cluster(workers):
            found[f"{n_workers} workers"] = learned(FITS[name]())
        assert workers.rounds > 0
        assert workers.sent >= n_workers * workers.rounds / 2  # most workers had blocks
    assert len(set(found.values())) == 1, found


def test_what_trains_on_one_machine_is_refused_by_name():
    with on_cluster(PretendWorkers(2)):
        with pytest.raises(ValueError, match=r"cluster: expected solver='bundle', .* found solver='bcfw', which"):
            CStarMarginRanker().fit([[0.0], [1.0]], [[0, 1], [1, 0]])
        with pytest.raises(ValueError, match=r"cluster: expected a ranker that was fitted before .* WARP training"):
            LatentRanker().fit([0, 1, 2], [0, 1, 1])
        with pytest.raises(ValueError, match=r"cluster: expected device=None, .* found device='cuda', which trains on"):
            MetricRanker(device="cuda").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])


@QUIETLY
def test_a_search_inside_a_cluster_sums_on_its_workers_and_finds_the_same(many_blocks):
    queries = datasets.make_queries(n_queries=30, random_state=5)

    def chosen():
        with config_context(enable_metadata_routing=True):
            search = GridSearchCV(MarginRanker(tol=1e-2), {"C": [0.1, 10.0]}, cv=GroupKFold(2))
            search.fit(queries.X, queries.y, qid=queries.qid, groups=queries.qid)
        automatic = MarginRanker(C="auto", tol=1e-2).fit(queries.X, queries.y, qid=queries.qid)
        return search.best_params_, search.cv_results_["mean_test_score"].tolist(), learned(automatic)

    workers = PretendWorkers(2)
    with on_cluster(workers):
        found = chosen()
    assert workers.rounds > 0
    assert found == chosen()


class Killed(BaseException):
    """What nobody catches."""


@QUIETLY
@pytest.mark.parametrize("name", ["margin map", "cstar", "matching slates", "metric map"])
def test_a_driver_that_was_killed_goes_on_with_other_workers(many_blocks, tmp_path, name):
    def kill(found):
        if found.round == 3:
            raise Killed

    with on_cluster(PretendWorkers(3)), pytest.raises(Killed):
        FITS[name](checkpoint=tmp_path / "fit.ckpt", callbacks=[kill])
    assert (tmp_path / "fit.ckpt").exists()
    workers = PretendWorkers(5)
    with on_cluster(workers):
        again = learned(FITS[name](checkpoint=tmp_path / "fit.ckpt"))
    whole = PretendWorkers(2)
    with on_cluster(whole):
        assert again == learned(FITS[name]())
    assert workers.rounds < whole.rounds
