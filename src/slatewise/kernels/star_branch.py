"""The best list of a c-star model with many core items: branch and bound over groups of five core items.

A node fixes the settings of some groups. Its bound (:mod:`slatewise.kernels.star_bound`) starts from its parent's
split and takes a few steps; then the first free group is fixed to each setting left in its domain, best first. The core
items with the largest pair terms share the first groups, so that the upper nodes settle most of the interaction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slatewise.kernels._kernel import kernel
from slatewise.kernels.star_bound import (
    SIZE,
    WIDTH,
    Groups,
    Scratch,
    Split,
    bound,
    improve_split,
    new_groups,
    new_scratch,
    shrink,
)
from slatewise.kernels.star_enumerate import first_setting, new_tree, top_sum
from slatewise.kernels.star_instance import (
    Bytes,
    Floats,
    Instance,
    Ints,
    Pair,
    choose,
    drop_hopeless,
    new_instance,
    reduce_list,
    write_list,
)

_ROOT_STEPS = 60
_NODE_STEPS = 15
_PATIENCE = 5
# Bounds are sums of hundreds of numbers: a list that is better by less than this is not looked for.
_ROUNDING = 1e-12


class Nodes(NamedTuple):
    """The path from the root to the current node, one entry or row a level."""

    share: Floats
    theta: Floats
    domain: Ints
    n_domain: Ints
    free: Ints
    left: Ints
    const: Floats
    h: Floats
    v: Floats
    child: Ints
    child_bound: Floats
    n_child: Ints
    at: Ints
    fixed: Ints
    """The setting of each group on the path."""


class Best(NamedTuple):
    """The best list so far: its core setting and its score, and room to select in."""

    setting: Bytes
    score: Floats
    trial: Bytes
    values: Floats
    top: Floats


@kernel
def new_nodes(n_groups: int, n_core: int, n_rest: int) -> Nodes:
    """Allocate the path."""
    levels = n_groups + 1
    return Nodes(
        np.empty((levels, n_groups, n_rest + n_core)),
        np.empty((levels, 1)),
        np.empty((levels, n_groups, WIDTH), np.int64),
        np.empty((levels, n_groups), np.int64),
        np.empty((levels, n_groups), np.int64),
        np.empty(levels, np.int64),
        np.zeros(levels),
        np.empty((levels, n_core)),
        np.empty((levels, n_rest)),
        np.empty((levels, WIDTH), np.int64),
        np.empty((levels, WIDTH)),
        np.zeros(levels, np.int64),
        np.zeros(levels, np.int64),
        np.zeros(n_groups, np.int64),
    )


@kernel
def split_at(nodes: Nodes, level: int) -> Split:
    """Return the split of the node at ``level``."""
    return Split(
        nodes.share[level], nodes.theta[level], nodes.domain[level], nodes.n_domain[level], nodes.free[level]
    )


@kernel
def order_core(work: Instance, n_core: int, n_rest: int) -> None:
    """Put the core items with the largest pair terms first."""
    weight = np.zeros(n_core)
    for c in range(n_core):
        for i in range(n_rest):
            weight[c] += abs(work.outer[c, i])
        for d in range(n_core):
            weight[c] += abs(work.inner[c, d])
    order = np.argsort(-weight, kind="mergesort")
    core, h = work.core[:n_core].copy(), work.h[:n_core].copy()
    inner, outer = work.inner[:n_core, :n_core].copy(), work.outer[:n_core, :n_rest].copy()
    for a in range(n_core):
        work.core[a], work.h[a] = core[order[a]], h[order[a]]
        work.outer[a, :n_rest] = outer[order[a]]
        for b in range(n_core):
            work.inner[a, b] = inner[order[a], order[b]]


@kernel
def score_of(work: Instance, n_core: int, n_rest: int, r: int, setting: Bytes, best: Best) -> tuple[float, float]:
    """Return the best score with a core setting, and the threshold of its last item."""
    values = best.values
    values[:n_rest] = work.v[:n_rest]
    score = 0.0
    for c in range(n_core):
        if setting[c]:
            r -= 1
            score += work.h[c]
            for d in range(c):
                if setting[d]:
                    score += work.inner[c, d]
            row = work.outer[c]
            for i in range(n_rest):
                values[i] += row[i]
    if r < 0 or r > n_rest:
        return -np.inf, 0.0
    if r == 0:
        return score, np.max(values[:n_rest]) if n_rest else 0.0
    total, threshold = top_sum(values, n_rest, r, np.nan, best.top)
    return score + total, threshold


@kernel
def try_setting(work: Instance, n_core: int, n_rest: int, r: int, best: Best) -> None:
    """Keep ``best.trial`` if it is better."""
    score, _ = score_of(work, n_core, n_rest, r, best.trial, best)
    if score > best.score[0]:
        best.score[0] = score
        best.setting[:n_core] = best.trial[:n_core]


@kernel
def climb(work: Instance, n_core: int, n_rest: int, r: int, best: Best) -> None:
    """Flip one core item at a time while that helps."""
    last = -np.inf
    while best.score[0] > last:
        last = best.score[0]
        for c in range(n_core):
            best.trial[:n_core] = best.setting[:n_core]
            best.trial[c] = 1 - best.trial[c]
            try_setting(work, n_core, n_rest, r, best)


@kernel
def plant_root(work: Instance, n_core: int, n_rest: int, r: int, groups: Groups, best: Best, nodes: Nodes) -> None:
    """Start from the split that is tight at the best list so far, with all settings possible."""
    n_groups = len(groups.rows)
    share, setting = nodes.share[0], best.setting
    _, theta = score_of(work, n_core, n_rest, r, setting, best)
    nodes.theta[0, 0], nodes.left[0], nodes.const[0] = theta, r, 0.0
    nodes.h[0], nodes.v[0] = work.h[:n_core], work.v[:n_rest]
    picked = np.zeros(n_groups, np.int64)
    for c in range(n_core):
        picked[c // SIZE] |= setting[c] << (c % SIZE)
    for m in range(n_groups):
        nodes.free[0, m] = m
        nodes.n_domain[0, m] = 1 << min(SIZE, n_core - m * SIZE)
        nodes.domain[0, m] = np.arange(WIDTH)
    for i in range(n_rest + n_core):
        alone = (work.v[i] if i < n_rest else work.h[i - n_rest]) - theta
        owner = -1 if i < n_rest else (i - n_rest) // SIZE
        total = alone
        for m in range(n_groups):
            if m != owner:
                total += groups.rows[m, picked[m], i]
        rest = alone
        for m in range(n_groups):
            if m != owner:
                share[m, i] = total / n_groups - groups.rows[m, picked[m], i]
                rest -= share[m, i]
        if owner >= 0:
            share[owner, i] = rest


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
    scratch.slope[:] = 0.0
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
                scratch.best_share[split.free[f]] = split.share[split.free[f]]
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
        split.share[split.free[f]] = scratch.best_share[split.free[f]]
    return nodes.const[level] + bound(groups, n_core, split, n_free, left, scratch)


@kernel
def list_children(nodes: Nodes, level: int, total: float, scratch: Scratch) -> None:
    """List the settings of the first free group, the largest bound first."""
    m = nodes.free[level, 0]
    child, child_bound = nodes.child[level], nodes.child_bound[level]
    for a in range(nodes.n_domain[level, m]):
        setting = nodes.domain[level, m, a]
        value = min(total, total - scratch.largest[m] + scratch.value[m, setting])
        j = a
        while j > 0 and child_bound[j - 1] < value:
            child_bound[j], child[j] = child_bound[j - 1], child[j - 1]
            j -= 1
        child_bound[j], child[j] = value, setting
    nodes.n_child[level], nodes.at[level] = nodes.n_domain[level, m], 0


@kernel
def descend(work: Instance, n_core: int, n_rest: int, groups: Groups, nodes: Nodes, level: int, setting: int) -> bool:
    """Fix the first free group of a node; return whether a list of the right length is left."""
    m, below = nodes.free[level, 0], level + 1
    n_free = len(groups.rows) - below
    row, first = groups.rows[m, setting], m * SIZE
    nodes.left[below] = nodes.left[level] - groups.count[setting]
    if nodes.left[below] < 0:
        return False
    nodes.fixed[m] = setting
    nodes.const[below] = nodes.const[level] + groups.inner[m, setting]
    nodes.theta[below], nodes.h[below] = nodes.theta[level], nodes.h[level]
    nodes.v[below] = nodes.v[level] + row[:n_rest]
    spread = (nodes.share[level, m] + row) / n_free
    for f in range(n_free):
        other = nodes.free[level, f + 1]
        nodes.free[below, f] = other
        nodes.n_domain[below, other] = nodes.n_domain[level, other]
        nodes.domain[below, other] = nodes.domain[level, other]
        nodes.share[below, other] = nodes.share[level, other] + spread
        nodes.share[below, other, n_rest + first : n_rest + min(first + SIZE, n_core)] = -np.inf
    for b in range(SIZE):
        if (setting >> b) & 1:
            nodes.const[below] += nodes.h[level, first + b]
            pairs = work.inner[first + b]
            for c in range(n_core):
                nodes.h[below, c] += pairs[c]
            for f in range(n_free):  # the half that the other group saw comes home to the item's own group
                other = nodes.free[below, f]
                for c in range(other * SIZE, min(other * SIZE + SIZE, n_core)):
                    nodes.share[below, other, n_rest + c] += 0.5 * pairs[c]
    return True


@kernel
def finish(n_core: int, n_rest: int, groups: Groups, nodes: Nodes, level: int, best: Best) -> None:
    """Score every setting of the last free group exactly."""
    m = nodes.free[level, 0]
    for a in range(nodes.n_domain[level, m]):
        setting = nodes.domain[level, m, a]
        r = nodes.left[level] - groups.count[setting]
        if r < 0 or r > n_rest:
            continue
        score = nodes.const[level] + groups.inner[m, setting]
        for b in range(SIZE):
            if (setting >> b) & 1:
                score += nodes.h[level, m * SIZE + b]
        if r > 0:
            row = groups.rows[m, setting]
            for i in range(n_rest):
                best.values[i] = nodes.v[level, i] + row[i]
            total, _ = top_sum(best.values, n_rest, r, nodes.theta[level, 0], best.top)
            score += total
        if score > best.score[0]:
            best.score[0] = score
            nodes.fixed[m] = setting
            for c in range(n_core):
                best.setting[c] = (nodes.fixed[c // SIZE] >> (c % SIZE)) & 1


@kernel
def search(work: Instance, n_core: int, n_rest: int, r: int, node_limit: int, best: Best) -> float:
    """Improve ``best`` until it is proven, or ``node_limit`` nodes are bounded; return the upper bound."""
    groups = new_groups(work, n_core, n_rest)
    n_groups = len(groups.rows)
    nodes, scratch = new_nodes(n_groups, n_core, n_rest), new_scratch(n_groups, n_rest + n_core)
    plant_root(work, n_core, n_rest, r, groups, best, nodes)
    level, visited, arrived, total = 0, 0, True, np.inf
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
    upper = best.score[0]
    if level > 0:  # stopped before this node, and before later children of the nodes above it
        upper = max(upper, nodes.child_bound[level - 1, nodes.at[level - 1] - 1])
    for above in range(level):
        if nodes.at[above] < nodes.n_child[above]:
            upper = max(upper, nodes.child_bound[above, nodes.at[above]])
    return upper


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
) -> None:
    """Fill ``selected`` (ascending items, -1 after the last), ``score`` and ``upper_bound`` for each list."""
    n_core, n_rest = pair.outer.shape
    work, tree = new_instance(pair), new_tree(n_core, 1)
    best = Best(
        np.zeros(n_core, np.int8), np.empty(1), np.zeros(n_core, np.int8), np.empty(n_rest), np.empty(n_rest + 1)
    )
    taken = np.zeros(n_core + n_rest, np.int8)
    in_warm = np.zeros(n_core + n_rest, np.bool_)
    nothing, keys = np.empty(0, np.int8), np.empty(n_rest)
    for number in range(len(s)):
        forced = known[number] if len(known) else nothing
        free_core, free_rest, n_in, const = reduce_list(s[number], forced, pair, work)
        r = k[number] - n_in
        if free_rest > 16 * (r + free_core):
            free_rest = drop_hopeless(work, free_core, free_rest, r, keys)
        order_core(work, free_core, free_rest)
        best.score[0] = -np.inf
        first_setting(work, free_core, free_rest, r, tree)
        best.trial[:free_core] = tree.first[:free_core]
        try_setting(work, free_core, free_rest, r, best)
        if len(warm):
            in_warm[:] = False
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
        if free_core and r:
            climb(work, free_core, free_rest, r, best)
            upper = search(work, free_core, free_rest, r, node_limit, best)
        choose(work, free_core, free_rest, r, best.setting, forced, pair, taken)
        score[number] = write_list(s[number], pair, taken, selected[number])
        proven = upper <= best.score[0]
        upper_bound[number] = score[number] if proven else max(const + upper, score[number])
