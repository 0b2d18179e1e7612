"""Sums in the shape of a tree: the same for every way to deal the blocks out, and what they were before up to three."""

from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise.core.running.block_sums import BlockSum, Subtree, Tree, add_value_and_slope
from slatewise.core.running.executor import Executor, on_cluster, refuse_on_cluster


def in_brackets(one, other):
    return f"({one}{other})"


def slow_tree(leaves):
    """Add neighbours, then neighbouring sums, until one is left; an odd one waits for the last round."""
    levels, left_over = list(leaves), []
    while len(levels) > 1:
        if len(levels) % 2:
            left_over.append(levels.pop())
        levels = [in_brackets(*levels[at : at + 2]) for at in range(0, len(levels), 2)]
    return reduce(lambda last, before: in_brackets(before, last), [*left_over, *levels])


@given(st.integers(1, 70), st.lists(st.integers(0, 70), max_size=6))
def test_the_tree_does_not_depend_on_who_adds_what(n_blocks, cuts):
    leaves = [f"<{number}>" for number in range(n_blocks)]
    ends = sorted({0, n_blocks, *(cut for cut in cuts if cut < n_blocks)})
    whole = Tree(in_brackets)
    for first, last in pairwise(ends):
        part = Tree(in_brackets)
        for number in range(first, last):
            part.push(Subtree(0, number, leaves[number]))
        assert len(part.subtrees) <= 2 * n_blocks.bit_length()
        for subtree in part.subtrees:
            whole.push(subtree)
    assert whole.total() == slow_tree(leaves)


@pytest.mark.parametrize("n_blocks", [1, 2, 3])
def test_few_blocks_are_added_in_their_order(n_blocks):
    leaves = "abc"[:n_blocks]
    assert slow_tree(leaves) == reduce(in_brackets, leaves)


def scaled(scale, at):
    return scale * at


def gram(at, block):
    return at, block.T @ block


GRAM = BlockSum(scaled, gram, add_value_and_slope)


def test_held_blocks_have_the_same_sum_at_any_number_of_threads():
    rng = np.random.default_rng(0)
    blocks = [rng.normal(size=(50, 7)) * 10.0 ** rng.integers(-8, 8) for _ in range(41)]
    sums = [Executor(n_jobs).place_blocks(blocks, 2.0).sum(GRAM, 0.5) for n_jobs in (1, 2, 3)]
    assert {total.tobytes() for _, total in sums} == {sums[0][1].tobytes()}
    assert sums[0][0] == 41.0
    np.testing.assert_allclose(sums[0][1], sum(block.T @ block for block in blocks))


def test_only_functions_of_a_module_can_be_told_by_name():
    with pytest.raises(TypeError, match="expected a function of a module, found test_only"):
        BlockSum(lambda shared, at: at, pow, add)


class Elsewhere:
    def place_blocks(self, blocks, shared):
        return f"{len(blocks)} blocks and {shared}"


def test_an_executor_made_on_a_cluster_holds_there_and_its_threads_stay_here():
    assert refuse_on_cluster("this", "that") is None
    with on_cluster(Elsewhere()):
        executor = Executor.of(2)
        with pytest.raises(ValueError, match="cluster: expected that, found this, which trains on one machine"):
            refuse_on_cluster("this", "that")
    assert executor.place_blocks([1, 2], "more") == "2 blocks and more"
    assert executor.local == Executor(2)
    assert Executor.of(2).cluster is None


def test_threads_work_inside_a_single_block():
    assert Executor(3).inside(1) == Executor(3)
    assert Executor(3).inside(2) == Executor(1)
