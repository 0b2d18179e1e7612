"""The best list of a c-star model with many core items: branch and bound over groups of five core items.

A node fixes the settings of some groups. Its bound (``kernels/bound.py``) starts from its parent's
split and takes a few steps; then the first free group is fixed to each setting left in its domain, best first. The core
items with the largest pair terms share the first groups, so that the upper nodes settle most of the interaction.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Bytes
from slatewise.core.running.kernel import kernel
from slatewise.cstar.kernels.bound import SIZE, Groups, Scratch, bound, improve_split, new_groups, new_scratch, shrink
from slatewise.cstar.kernels.enumerate import first_setting
from slatewise.cstar.kernels.incumbent import Best, climb, order_core, try_setting
from slatewise.cstar.kernels.instance import (
    Floats,
    Instance,
    Ints,
    Pair,
    choose,
    copy,
    drop_hopeless,
    new_instance,
    reduce_list,
    write_list,
)
from slatewise.cstar.kernels.nodes import Nodes, descend, finish, list_children, new_nodes, plant_root, split_at

_ROOT_STEPS = 60
_NODE_STEPS = 15
_PATIENCE = 5
# Bounds are sums of hundreds of numbers: a list that is better by less than this is not looked for.
_ROUNDING = 1e-12


@kernel
def tighten(
    work: Instance,
    n_core: int,
    n_rest: int,
    r: int,
    groups: Groups,
    nodes: Nodes,
    level: int,
    scratch: Scratch,
    best: Best,
) -> float:
    """Improve the split of a node, and drop settings, until it is pruned or progress ends; return its bound."""
    n_free = len(groups.rows) - level
    split, left = split_at(nodes, level), nodes.left[level]
    n_columns = n_rest + n_core
    for m in range(len(groups.rows)):
        for i in range(n_columns):
            scratch.slope[m, i] = 0.0
    smallest, first, slope, factor, waited = np.inf, np.inf, 0.0, 1.0, 0
    theta = split.theta[0]
    steps = _NODE_STEPS if level else _ROOT_STEPS
    if level and nodes.n_child[level - 1] == 1:
        steps = 3  # the parent had one child: nothing new but one group less
    for step in range(steps):
        total = nodes.const[level] + bound(groups, n_core, split, n_free, left, scratch)
        if step == 0:
            first = total
        if step == 0 or level == 0:  # what the groups pick is often a good list
            for m in range(len(groups.rows)):
                setting = nodes.fixed[m]
                for f in range(n_free):
                    if split.free[f] == m:
                        setting = scratch.pick[m]
                for b in range(min(SIZE, n_core - m * SIZE)):
                    best.trial[m * SIZE + b] = (setting >> b) & 1
            try_setting(work, n_core, n_rest, r, best)
        target = best.score[0] + _ROUNDING * (1.0 + abs(best.score[0]))
        if total <= target:
            return total
        shrink(split, n_free, total - target, scratch)
        if step == 0 or total < smallest - 1e-3 * (smallest - target):
            waited = 0
            for f in range(n_free):
                copy(split.share[split.free[f]], n_columns, scratch.best_share[split.free[f]])
            theta = split.theta[0]
        else:
            waited += 1
            if waited == _PATIENCE:
                waited = 0
                factor *= 0.6
        smallest = min(smallest, total)
        if step == steps - 1 or (level and step > 1 and total - target > 0.99 * (first - target)):
            break
        slope = improve_split(groups, n_core, split, n_free, left, slope, factor * (total - target), scratch)
    split.theta[0] = theta
    for f in range(n_free):
        copy(scratch.best_share[split.free[f]], n_columns, split.share[split.free[f]])
    return nodes.const[level] + bound(groups, n_core, split, n_free, left, scratch)


@kernel
def search(work: Instance, n_core: int, n_rest: int, r: int, node_limit: int, best: Best) -> tuple[float, int]:
    """Improve ``best`` until it is proven, or ``node_limit`` nodes are bounded; return the bound and the nodes."""
    groups = new_groups(work, n_core, n_rest)
    n_groups = len(groups.rows)
    nodes, scratch = new_nodes(n_groups, n_core, n_rest), new_scratch(n_groups, n_rest + n_core)
    plant_root(work, n_core, n_rest, r, groups, best, nodes)
    level = int(nodes.at[0])  # zero: a plain 0 is a type of its own, and everything would be compiled twice
    visited, arrived, total = 0, True, np.inf
    while level >= 0:
        target = best.score[0] + _ROUNDING * (1.0 + abs(best.score[0]))
        if arrived:
            arrived = False
            nodes.n_child[level], nodes.at[level] = 0, 0
            if level == n_groups - 1:
                finish(n_core, n_rest, groups, nodes, level, best)
                level -= 1
                continue
            if visited == node_limit:
                break
            visited += 1
            total = tighten(work, n_core, n_rest, r, groups, nodes, level, scratch, best)
            target = best.score[0] + _ROUNDING * (1.0 + abs(best.score[0]))
            if total > target:
                list_children(nodes, level, total, scratch)
        at = nodes.at[level]
        if at == nodes.n_child[level] or nodes.child_bound[level, at] <= target:
            level -= 1
            continue
        nodes.at[level] += 1
        if descend(work, n_core, n_rest, groups, nodes, level, nodes.child[level, at]):
            level += 1
            arrived = True
    upper = best.score[0] if visited or level < 0 else np.inf  # nothing was bounded
    if level > 0:  # stopped before this node, and before later children of the nodes above it
        upper = max(upper, nodes.child_bound[level - 1, nodes.at[level - 1] - 1])
    for above in range(level):
        if nodes.at[above] < nodes.n_child[above]:
            upper = max(upper, nodes.child_bound[above, nodes.at[above]])
    return upper, visited


@kernel
def best_lists_by_branching(
    s: Floats,
    known: Bytes,
    warm: Ints,
    pair: Pair,
    k: Ints,
    node_limit: int,
    selected: Ints,
    score: Floats,
    upper_bound: Floats,
    visited: Ints,
) -> None:
    """Fill ``selected`` (ascending items, -1 after the last), ``score``, its bound and the nodes of each list.

    With a ``node_limit`` of 0 a list is only climbed to, and its bound is inf unless nothing is free.
    """
    n_core, n_rest = pair.outer.shape
    work, buffer = new_instance(pair), np.empty(2 * (n_core + n_rest))
    best = Best(
        np.zeros(n_core, np.int8), np.empty(1), np.zeros(n_core, np.int8), np.empty(n_rest), np.empty(n_rest + 1)
    )
    taken = np.zeros(n_core + n_rest, np.int8)
    in_warm = np.zeros(n_core + n_rest, np.bool_)
    nothing = np.empty(0, np.int8)
    for number in range(len(s)):
        forced = known[number] if len(known) else nothing
        free_core, free_rest, n_in, const = reduce_list(s[number], forced, pair, work)
        r = k[number] - n_in
        if free_rest > 16 * (r + free_core):
            free_rest = drop_hopeless(work, free_core, free_rest, r, buffer)
        order_core(work, free_core, free_rest)
        best.score[0] = -np.inf
        for c in range(free_core):  # a list of the right length at any rate: NaN is never the larger
            best.setting[c] = c < r - free_rest
        first_setting(work, free_core, free_rest, r, best.trial, buffer)
        try_setting(work, free_core, free_rest, r, best)
        if len(warm):
            for item in range(len(in_warm)):
                in_warm[item] = False
            for item in warm[number]:
                if item >= 0:
                    in_warm[item] = True
            for c in range(free_core):
                best.trial[c] = in_warm[pair.core[work.core[c]]]
            try_setting(work, free_core, free_rest, r, best)
        if best.score[0] == -np.inf:  # both have too many or too few core items
            for c in range(free_core):
                best.trial[c] = c < r - free_rest
            try_setting(work, free_core, free_rest, r, best)
        upper = best.score[0]
        visited[number] = 0
        if free_core and r:
            climb(work, free_core, free_rest, r, best)
            upper, visited[number] = search(work, free_core, free_rest, r, node_limit, best)
        choose(work, free_core, free_rest, r, best.setting, np.nan, forced, pair, taken, buffer)
        score[number] = write_list(s[number], pair, taken, selected[number])
        proven = upper <= best.score[0]
        upper_bound[number] = score[number] if proven else max(const + upper, score[number])
