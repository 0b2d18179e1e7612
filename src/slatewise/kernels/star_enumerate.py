"""The best list of a c-star model by walking all 2^C core settings as a tree.

    best over a of  const(a) + top_r(v + sum_c a_c G_c),    top_r(x) <= r theta + sum_i max(x_i - theta, 0)  for any theta

A node at depth c fixes core items 0..c-1. Its "out" child shares the parent's values, its "in" child adds one row: one
addition of rows a setting, as with a Gray code, and no rounding that builds up. At a leaf the right-hand side, a few
instructions an item, skips nearly every selection once theta and the first list are good.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slatewise.kernels._kernel import kernel, loose_sums
from slatewise.kernels.star_instance import (
    Bytes,
    Floats,
    Instance,
    Ints,
    Pair,
    choose,
    drop_hopeless,
    new_instance,
    nth_largest,
    reduce_list,
    write_list,
)


class Tree(NamedTuple):
    """Work space of the walk, one row or entry a depth."""

    values: Floats
    row: Ints
    const: Floats
    left: Ints
    """How many items the node still has to choose."""
    tried: Ints
    setting: Bytes
    first: Bytes
    """The child to visit first: a good list, so that the bound bites from the start."""
    best: Bytes
    theta: Floats
    """The last threshold met for each number of other items."""
    top: Floats


@kernel
def new_tree(n_core: int, n_rest: int) -> Tree:
    """Allocate the work space."""
    return Tree(
        np.empty((n_core + 1, n_rest)),
        np.zeros(n_core + 1, np.int64),
        np.empty(n_core + 1),
        np.empty(n_core + 1, np.int64),
        np.empty(n_core + 1, np.int64),
        np.zeros(n_core, np.int8),
        np.zeros(n_core, np.int8),
        np.zeros(n_core, np.int8),
        np.empty(n_rest + 1),
        np.empty(n_rest),
    )


@loose_sums
def excess(values: Floats, size: int, theta: float) -> float:
    """Return sum_i max(values_i - theta, 0)."""
    total = 0.0
    for i in range(size):
        above = values[i] - theta
        total += above if above > 0.0 else 0.0
    return total


@kernel
def add_rows(left: Floats, right: Floats, size: int, out: Floats) -> None:
    """Fill ``out`` with the sum of two rows."""
    for i in range(size):
        out[i] = left[i] + right[i]


@kernel
def top_sum(values: Floats, size: int, r: int, theta: float, top: Floats) -> tuple[float, float]:
    """Return the sum of the r largest values and the r-th of them; a good ``theta`` leaves few to select from."""
    count = 0
    for i in range(size):
        top[count] = values[i]
        count += values[i] > theta  # at most size, reached after the last one only
    if count < r:
        count = size
        top[:size] = values[:size]
    threshold = nth_largest(top, count, r)
    total = 0.0
    for i in range(r):
        total += top[i]
    return total, threshold


@kernel
def first_setting(work: Instance, n_core: int, n_rest: int, r: int, tree: Tree) -> None:
    """Guess a good setting: the best r items by score alone, then twice the best core items given the others."""
    h, v, outer, first = work.h, work.v, work.outer, tree.first
    total = n_core + n_rest
    keys = np.empty(total)
    first[:n_core] = 0
    if r <= 0 or total == 0:
        return
    for c in range(n_core):
        keys[c] = h[c]
    keys[n_core:] = v[:n_rest]
    for _ in range(2):
        threshold = nth_largest(keys.copy(), total, min(r, total))
        for c in range(n_core):
            gain = h[c]
            for d in range(n_core):
                if d != c and keys[d] >= threshold:
                    gain += work.inner[c, d]
            for i in range(n_rest):
                if keys[n_core + i] >= threshold:
                    gain += outer[c, i]
            first[c] = gain >= threshold
        for c in range(n_core):
            keys[c] = np.inf if first[c] else -np.inf
        keys[n_core:] = v[:n_rest]
        for c in range(n_core):
            if first[c]:
                for i in range(n_rest):
                    keys[n_core + i] += outer[c, i]


@kernel
def plant(work: Instance, n_rest: int, r: int, tree: Tree) -> None:
    """Put the root of a reduced list into the tree."""
    tree.values[0, :n_rest] = work.v[:n_rest]
    tree.theta[: n_rest + 1] = np.nan
    tree.row[0], tree.const[0], tree.left[0], tree.tried[0] = 0, 0.0, r, 0


@kernel
def next_leaf(work: Instance, n_core: int, n_rest: int, tree: Tree, depth: int) -> int:
    """Walk on from a node at ``depth`` to the next leaf with a possible list; return its depth, -1 after the last."""
    row, const, left, tried, setting = tree.row, tree.const, tree.left, tree.tried, tree.setting
    while depth >= 0:
        if tried[depth] == 2:
            depth -= 1
            continue
        bit = tree.first[depth] ^ tried[depth]
        tried[depth] += 1
        need = left[depth] - bit
        if need < 0 or need > n_rest + n_core - depth - 1:
            continue
        setting[depth] = bit
        gain = 0.0
        row[depth + 1] = row[depth]
        if bit:
            gain = work.h[depth]
            for c in range(depth):
                if setting[c]:
                    gain += work.inner[depth, c]
            add_rows(tree.values[row[depth]], work.outer[depth], n_rest, tree.values[depth + 1])
            row[depth + 1] = depth + 1
        const[depth + 1] = const[depth] + gain
        depth += 1
        left[depth], tried[depth] = need, 0
        if depth == n_core:
            return depth
    return -1


@kernel
def walk(work: Instance, n_core: int, n_rest: int, r: int, tree: Tree) -> float:
    """Return the best score of the reduced list; ``tree.best`` gets its core setting."""
    plant(work, n_rest, r, tree)
    theta = tree.theta
    best = -np.inf
    depth = next_leaf(work, n_core, n_rest, tree, 0) if n_core else 0
    while depth >= 0:
        need, score = tree.left[depth], tree.const[depth]
        if need > 0:
            values, guess = tree.values[tree.row[depth]], theta[need]
            if score + need * guess + excess(values, n_rest, guess) <= best:  # false while the guess is NaN
                score = -np.inf
            else:
                total, theta[need] = top_sum(values, n_rest, need, guess, tree.top)
                score += total
        if score > best:
            best = score
            tree.best[:n_core] = tree.setting[:n_core]
        depth = next_leaf(work, n_core, n_rest, tree, depth - 1)
    return best


@kernel
def best_lists(s: Floats, known: Bytes, warm: Ints, pair: Pair, k: Ints, selected: Ints, score: Floats) -> None:
    """Fill ``selected`` (ascending items, -1 after the last) and ``score`` for each list."""
    n_core, n_rest = pair.outer.shape
    work, tree = new_instance(pair), new_tree(n_core, n_rest)
    taken = np.zeros(n_core + n_rest, np.int8)
    nothing = np.empty(0, np.int8)
    keys = np.empty(n_rest)
    for number in range(len(s)):
        forced = known[number] if len(known) else nothing
        free_core, free_rest, n_in, _ = reduce_list(s[number], forced, pair, work)
        r = k[number] - n_in
        if free_rest > 16 * (r + free_core):  # dropping costs a selection, and pays where few of many are taken
            free_rest = drop_hopeless(work, free_core, free_rest, r, keys)
        if len(warm):
            for c in range(free_core):
                tree.first[c] = 0
                for item in warm[number]:
                    tree.first[c] |= item == pair.core[work.core[c]]
        else:
            first_setting(work, free_core, free_rest, r, tree)
        walk(work, free_core, free_rest, r, tree)
        choose(work, free_core, free_rest, r, tree.best, forced, pair, taken)
        score[number] = write_list(s[number], pair, taken, selected[number])
