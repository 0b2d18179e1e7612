"""Threads over blocks: order, failures, bounded flight, and the same bits at any number of threads."""

import os
import threading
from contextlib import nullcontext, suppress
from functools import partial
from itertools import permutations

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from slatewise import CStarRanker
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import Executor, thread_count
from slatewise.datasets import make_label_scenes


def _square_after_the_second(later: threading.Event, block: int) -> int:
    if block == 0:
        assert later.wait(timeout=30)  # block 0 ends after block 1 has, and still comes first
    later.set()
    return block * block


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_results_come_in_block_order(n_jobs):
    later = threading.Event()
    if n_jobs == 1:
        later.set()
    results = Executor(n_jobs).map_blocks(_square_after_the_second, later, range(9))
    assert list(results) == [block * block for block in range(9)]


def _fail_at(block_that_fails: int, block: int) -> int:
    if block == block_that_fails:
        raise RuntimeError(f"block {block}")
    return block


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_failure_reaches_the_caller(n_jobs):
    results = Executor(n_jobs).map_blocks(_fail_at, 4, range(100))
    assert [next(results) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="block 4"):
        next(results)
    with pytest.raises(RuntimeError, match="block 4"):
        Executor(n_jobs).fill_blocks(lambda block: _fail_at(4, block) and None, range(100))


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_few_blocks_are_in_flight(n_jobs):
    made = []

    def blocks():
        for block in range(50):
            made.append(block)
            yield block

    for taken, _ in enumerate(Executor(n_jobs).map_blocks(_fail_at, -1, blocks()), start=1):
        assert len(made) - taken < 2 * n_jobs


def test_stopping_early_starts_no_more_blocks():
    ran: list[int] = []
    results = Executor(2).map_blocks(list.append, ran, range(1000))
    next(results)
    results.close()
    assert len(ran) <= 5


def test_no_blocks_give_no_results():
    assert list(Executor(2).map_blocks(pow, 2, [])) == []


def _gram(scale: float, block: np.ndarray) -> np.ndarray:
    return scale * (block.T @ block)


def test_sums_have_the_same_bits_at_any_number_of_threads():
    rng = np.random.default_rng(0)
    blocks = [rng.normal(size=(50, 7)) * 10.0 ** rng.integers(-8, 8) for _ in range(40)]
    sums = [Executor(n_jobs).sum_blocks(_gram, 1.0, blocks, np.add) for n_jobs in (1, 2, 3)]
    assert sums[0].tobytes() == sums[1].tobytes() == sums[2].tobytes()
    np.testing.assert_allclose(sums[0], sum(block.T @ block for block in blocks))


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_one_blas_thread_inside_and_the_old_number_after():
    with one_blas_thread():
        pass  # the first use loads SciPy's own BLAS
    before = blas_threads()
    assert before
    with one_blas_thread():
        assert set(blas_threads()) == {1}
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert blas_threads() == before
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert blas_threads() == before


def set_blas_threads(number: int) -> None:
    # From a thread that ends: newer threadpoolctl lets no other set the number while the thread that did is alive.
    thread = threading.Thread(target=threadpool_limits, args=(number, "blas"))
    thread.start()
    thread.join()


@pytest.fixture
def two_blas_threads():
    with one_blas_thread():
        pass
    before = blas_threads()
    set_blas_threads(2)
    yield
    set_blas_threads(before[0])


class Visitor(threading.Thread):
    """A thread that enters and leaves the limit when it is told to, and may leave by an exception."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__(daemon=True)
        self.fails, self.steps = fails, {name: threading.Event() for name in ("enter", "inside", "leave")}
        self.start()

    def run(self) -> None:
        self.steps["enter"].wait(30)
        with suppress(KeyError), one_blas_thread():
            self.steps["inside"].set()
            self.steps["leave"].wait(30)
            if self.fails:
                raise KeyError

    def enter(self) -> None:
        self.steps["enter"].set()
        assert self.steps["inside"].wait(30)

    def leave(self) -> None:
        self.steps["leave"].set()
        self.join(30)
        assert not self.is_alive()


ORDERS = [order for order in sorted(set(permutations("aabbcc"))) if list(dict.fromkeys(order)) == ["a", "b", "c"]]
"""All ways in which three may overlap: a name enters where it first stands, and leaves where it stands again."""


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("order", ORDERS, ids="".join)
def test_overlapping_users_leave_the_number_they_found(two_blas_threads, order, fails):
    visitors = {name: Visitor(fails and name != "b") for name in "abc"}
    inside = set()
    for name in order:
        visitors[name].leave() if name in inside else visitors[name].enter()
        inside ^= {name}
        assert set(blas_threads()) == ({1} if inside else {2})


def test_a_limit_of_the_users_own_is_there_again_afterwards(two_blas_threads):
    visitor = Visitor()
    with threadpool_limits(3, user_api="blas"):
        visitor.enter()
        assert set(blas_threads()) == {1}
        visitor.leave()
        assert set(blas_threads()) == {3}
    assert set(blas_threads()) == {2}


def test_many_threads_at_once_leave_the_number_they_found(two_blas_threads):
    wrong = []

    def visit() -> None:
        for _ in range(5):
            with one_blas_thread(), one_blas_thread():
                if set(blas_threads()) != {1}:
                    wrong.append(threading.get_ident())

    threads = [threading.Thread(target=visit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert set(blas_threads()) == {2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("own", [False, True])
def test_a_forked_child_keeps_only_the_contexts_of_the_thread_that_forked(two_blas_threads, own):
    other = Visitor()
    other.enter()
    with one_blas_thread() if own else nullcontext():
        child = os.fork()
        if child == 0:  # judge and end at once: pytest belongs to the parent
            right = set(blas_threads()) == ({1} if own else {2})
            with one_blas_thread():
                right = right and set(blas_threads()) == {1}
            os._exit(0 if right and set(blas_threads()) == ({1} if own else {2}) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert set(blas_threads()) == {1}
    other.leave()
    assert set(blas_threads()) == {2}


def test_overlapping_fits_leave_the_number_they_found(two_blas_threads):
    scenes = make_label_scenes(60, n_labels=4, n_groups=1, random_state=0)
    second_began, first_ended = threading.Event(), threading.Event()

    def first(_: object) -> None:
        assert second_began.wait(60)

    def second(_: object) -> None:
        second_began.set()
        assert first_ended.wait(60)

    fits = [
        threading.Thread(target=partial(CStarRanker(core=1).fit, callbacks=[callback]), args=(scenes.X, scenes.Y))
        for callback in (first, second)
    ]
    for fit in fits:
        fit.start()
    fits[0].join(60)
    first_ended.set()
    fits[1].join(60)
    assert set(blas_threads()) == {2}


def test_thread_count_comes_from_the_argument_then_the_environment(monkeypatch):
    monkeypatch.setenv("SLATEWISE_THREADS", "3")
    assert thread_count() == 3
    assert thread_count(2) == 2
    monkeypatch.setenv("SLATEWISE_THREADS", "")
    assert thread_count() >= 1


@pytest.mark.parametrize("text", ["two", "-1", "1.5", "²"])
def test_a_bad_environment_is_named(monkeypatch, text):
    monkeypatch.setenv("SLATEWISE_THREADS", text)
    with pytest.raises(ValueError, match=r"SLATEWISE_THREADS: expected a whole number of threads >= 1"):
        thread_count()


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all"])
def test_a_bad_number_is_named(n_jobs):
    with pytest.raises(ValueError, match="n_jobs: expected None or a whole number from 1 to 4096 or "):
        thread_count(n_jobs)


def test_negative_numbers_count_back_from_all_cores():
    assert thread_count(-1) == thread_count()
    assert thread_count(-4096) == 1


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_a_worker_of_joblib_takes_one_thread_unless_told_otherwise(backend):
    calls = [joblib.delayed(thread_count)(n_jobs) for n_jobs in (None, None, 3)]
    assert joblib.Parallel(n_jobs=2, backend=backend)(calls) == [1, 1, 3]


def test_blocks_are_mapped_summed_and_filled_in_order_at_any_number_of_threads():
    blocks = [*range(20)]
    for n_jobs in (1, 2, 5, 50):
        executor = Executor(n_jobs)
        assert list(executor.map_blocks(pow, 3, blocks)) == [3**block for block in blocks]
        assert executor.sum_blocks(_word, "b", iter(blocks), str.__add__) == "".join(f"b{block}" for block in blocks)
        filled: set[int] = set()
        executor.fill_blocks(filled.add, blocks)
        assert filled == set(blocks)


def test_only_functions_of_a_module_are_mapped():
    with pytest.raises(TypeError, match="expected a function of a module"):
        Executor(1).map_blocks(lambda _, block: block, None, [1])


def _word(letter, block):
    return f"{letter}{block}"
