"""Threads over blocks: order, failures, bounded flight, and the same bits at any number of threads."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from slatewise.parallel import map_blocks, one_blas_thread, sum_blocks, thread_count


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_in_block_order(n_threads):
    later = threading.Event()

    def wait_for_the_second(block: int) -> int:
        if block == 0 and n_threads > 1:
            assert later.wait(timeout=30)  # block 0 ends after block 1 has, and still comes first
        later.set()
        return block * block

    assert list(map_blocks(wait_for_the_second, range(9), n_threads)) == [block * block for block in range(9)]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_failure_reaches_the_caller(n_threads):
    def fail_at_four(block: int) -> int:
        if block == 4:
            raise RuntimeError("block 4")
        return block

    results = map_blocks(fail_at_four, range(100), n_threads)
    assert [next(results) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="block 4"):
        next(results)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_few_blocks_are_in_flight(n_threads):
    made = []

    def blocks():
        for block in range(50):
            made.append(block)
            yield block

    for taken, _ in enumerate(map_blocks(lambda block: block, blocks(), n_threads), start=1):
        assert len(made) - taken < 2 * n_threads


def test_stopping_early_starts_no_more_blocks():
    ran = []
    results = map_blocks(ran.append, range(1000), 2)
    next(results)
    results.close()
    assert len(ran) <= 5


def test_no_blocks_give_no_results():
    assert list(map_blocks(abs, [], 2)) == []


def test_sums_have_the_same_bits_at_any_number_of_threads():
    rng = np.random.default_rng(0)
    blocks = [rng.normal(size=(50, 7)) * 10.0 ** rng.integers(-8, 8) for _ in range(40)]
    sums = [sum_blocks(lambda block: block.T @ block, blocks, np.add, n_threads) for n_threads in (1, 2, 3)]
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


@pytest.mark.parametrize("n_threads", [0, -2])
def test_a_bad_number_is_named(n_threads):
    with pytest.raises(ValueError, match="n_threads: expected None or -1 for all cores or a whole number from 1"):
        thread_count(n_threads)
