"""The path of a branch and bound from the root to the current node; a node fixes the settings of some groups."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slatewise.core.running.kernel import kernel
from slatewise.cstar.kernels.bound import SIZE, WIDTH, Groups, Scratch, Split
from slatewise.cstar.kernels.incumbent import Best, score_of
from slatewise.cstar.kernels.instance import Floats, Instance, Ints, copy, top_sum


class Nodes(NamedTuple):
    """The path from the root to the current node, one entry or row per level."""

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
    return Split(nodes.share[level], nodes.theta[level], nodes.domain[level], nodes.n_domain[level], nodes.free[level])


@kernel
def plant_root(work: Instance, n_core: int, n_rest: int, r: int, groups: Groups, best: Best, nodes: Nodes) -> None:
    """Start from the split that is tight at the best list so far, with all settings possible."""
    n_groups = len(groups.rows)
    share, setting = nodes.share[0], best.setting
    _, theta = score_of(work, n_core, n_rest, r, setting, best)
    nodes.theta[0, 0], nodes.left[0], nodes.const[0] = theta, r, 0.0
    copy(work.h, n_core, nodes.h[0])
    copy(work.v, n_rest, nodes.v[0])
    picked = np.zeros(n_groups, np.int64)
    for c in range(n_core):
        picked[c // SIZE] |= setting[c] << (c % SIZE)
    for m in range(n_groups):
        nodes.free[0, m] = m
        nodes.n_domain[0, m] = 1 << min(SIZE, n_core - m * SIZE)
        for a in range(WIDTH):
            nodes.domain[0, m, a] = a
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
    nodes.left[below] = nodes.left[level] - groups.n_inside[setting]
    if nodes.left[below] < 0:
        return False
    nodes.fixed[m] = setting
    nodes.const[below] = nodes.const[level] + groups.inner[m, setting]
    nodes.theta[below, 0] = nodes.theta[level, 0]
    copy(nodes.h[level], n_core, nodes.h[below])
    for i in range(n_rest):
        nodes.v[below, i] = nodes.v[level, i] + row[i]
    fixed_share = nodes.share[level, m]
    for f in range(n_free):
        other = nodes.free[level, f + 1]
        nodes.free[below, f] = other
        nodes.n_domain[below, other] = nodes.n_domain[level, other]
        for a in range(nodes.n_domain[level, other]):
            nodes.domain[below, other, a] = nodes.domain[level, other, a]
        share, old = nodes.share[below, other], nodes.share[level, other]
        for i in range(n_rest + n_core):
            share[i] = old[i] + (fixed_share[i] + row[i]) / n_free
        for c in range(first, min(first + SIZE, n_core)):
            share[n_rest + c] = -np.inf
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
        r = nodes.left[level] - groups.n_inside[setting]
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
