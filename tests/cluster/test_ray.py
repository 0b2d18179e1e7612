"""A real Ray on this machine: the same bits, workers that are killed, and what goes wrong by name."""

import os
import signal
import threading
import time

import pytest
from tests.cluster.doings import fails, hungry, leaves, same
from tests.cluster.fits import BLOCKS, FITS, documents, learned

from slatewise import MarginRanker, cluster
from slatewise.cluster.workers import Workers, _raise
from slatewise.core.running.block_sums import BlockSum, add_value_and_slope
from slatewise.core.running.executor import Executor
from slatewise.errors import ClusterError

pytest.importorskip("ray", reason="Ray is not installed: pip install 'slatewise[ray]'")
pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore::UserWarning")]


LEARNERS = ("margin map", "cstar", "cstar margin, bundle", "metric map", "matching slates", "graph exact")
"""One fit of each learner; all settings are tried without Ray."""


@pytest.fixture(scope="module")
def opened():
    """Three workers, which all tests here share: a start takes seconds."""
    with cluster.ray(workers=3) as workers:
        yield workers


@pytest.fixture(scope="module")
def many_blocks():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in BLOCKS.items():
            patch.setattr(name, value)
        yield


@pytest.mark.parametrize("name", LEARNERS)
def test_workers_change_no_bit(many_blocks, opened, name):
    on_workers = learned(FITS[name]())
    found = threading.Thread(target=lambda: here.append(learned(FITS[name](n_jobs=1))))
    here: list[str] = []
    found.start()  # a thread of its own is on no cluster
    found.join()
    assert [on_workers] == here


def test_many_parameters_are_put_where_all_workers_look(many_blocks, opened, monkeypatch):
    fit = documents(MarginRanker, tol=1e-1)
    travelled = learned(fit())
    monkeypatch.setattr("slatewise.cluster.workers._TRAVELS", -1)
    assert learned(fit()) == travelled


def pids(opened):
    import ray

    return [one.pid for one in ray.get([actor.about.remote() for actor in opened.actors])]


def test_a_worker_that_is_killed_loads_its_blocks_again_and_changes_no_bit(many_blocks, opened):
    victims = pids(opened)
    killed = []

    def kill(found):
        if found.round == 2:
            killed.append(victims.pop())
            os.kill(killed[-1], signal.SIGKILL)

    fit = documents(MarginRanker, tol=1e-2)
    assert learned(fit(callbacks=[kill])) == learned(fit())
    assert len(killed) == 1
    assert not {*killed} & {*pids(opened)}


def test_callbacks_stay_here_and_need_not_travel(many_blocks, opened):
    rounds, lock = [], threading.Lock()

    def tell(found):
        with lock:  # which nothing can pickle
            rounds.append(found)

    documents(MarginRanker, tol=1e-2)(callbacks=[tell])
    assert rounds


def test_what_a_worker_raises_is_raised_here(opened):
    held = Executor.of(1).place_blocks([1, 2, 3], None)
    with pytest.raises(ValueError, match="block: expected another one than 2"):
        held.sum(BlockSum(same, fails, add_value_and_slope), 2)
    assert held.sum(BlockSum(same, fails, add_value_and_slope), 4) == (0.0, 6)


def test_a_worker_without_memory_is_named(opened):
    held = Executor.of(1).place_blocks([1], None)
    with pytest.raises(ClusterError, match="a worker ran out of memory: use more machines"):
        held.sum(BlockSum(same, hungry, add_value_and_slope), 0)


def test_workers_that_are_lost_for_good_are_named():
    from ray import exceptions

    for error, message in {
        exceptions.ActorDiedError(): "found one that died in each of 4 attempts at a round",
        exceptions.OutOfMemoryError("as Ray puts it"): "its machine ran out of memory: use more machines",
        exceptions.ObjectLostError("0" * 56, None, ""): "expected every worker to answer, found",
    }.items():
        with pytest.raises(ClusterError, match=message):
            _raise(error)


def test_a_cluster_that_is_open_is_not_opened_elsewhere(opened):
    with (
        pytest.raises(ClusterError, match="address: expected None where Ray was started before, found 'auto'"),
        cluster.ray("auto"),
    ):
        pass
    with pytest.raises(ClusterError, match="workers: expected at most the 0 free CPUs"), cluster.ray(workers=1):
        pass
    with pytest.raises(ClusterError, match=r"workers: expected at most the 0 free CPUs .* found 1"), cluster.ray():
        pass


def test_after_an_error_nobody_works_on_and_ray_prints_nothing(opened, tmp_path, capfd):
    paths = [tmp_path / str(number) for number in range(12)]
    with pytest.raises(ValueError, match="path: expected another one than"):
        opened.gather(leaves, paths[0], paths)
    there = sorted(tmp_path.iterdir())
    held = Executor.of(1).place_blocks([2, 2, 2], None)
    with pytest.raises(ValueError, match="block: expected another one than 2"):
        held.sum(BlockSum(same, fails, add_value_and_slope), 2)
    time.sleep(1.0)
    assert sorted(tmp_path.iterdir()) == there
    assert "Unhandled error" not in "".join(capfd.readouterr())


def test_workers_of_a_cluster_that_was_closed_are_named(opened, tmp_path):
    closed = Workers(opened.actors)
    closed.closed.set()
    for ask in (
        lambda: cluster.rank(closed, "m.safetensors", "rows.parquet", tmp_path / "out"),
        lambda: cluster.evaluate(closed, "m.safetensors", "rows.parquet", []),
    ):
        with pytest.raises(ClusterError, match="workers: expected those of an open cluster, found one that was closed"):
            ask()
    assert not (tmp_path / "out").exists()
