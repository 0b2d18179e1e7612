"""The best set: the k items of a list with the highest score, and max-marginals.

    f(t) = sum_i s_i t_i + sum over unordered pairs G_ij t_i t_j,    t in {0, 1}^N,  |t| = k        (Mensink et al.)

G is zero unless i or j is one of C core items, and all lists share it. Given the core items, the others no longer
interact: add the chosen core items' rows of G to the scores and take the largest. Few core items: walk all 2^C
settings (``kernels/enumerate.py``). Many: branch and bound (``kernels/branch.py``).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import whole_number
from slatewise.core.groups import blocks
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.inference.model import StarLists, checked_warm_start

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Method: TypeAlias = Literal["auto", "enumerate", "branch"]

FEW = 12
"""Up to this many core items "auto" walks all settings for the best list ..."""
FEW_FOR_MARGINALS = 16
"""... and up to this many for max-marginals, which otherwise take one branch and bound per item."""
MOST_ENUMERATED = 24
"""The walk over 2^C settings is refused beyond this many core items."""
NODE_LIMIT = 20_000
"""The maximum number of nodes of branch and bound for one list, in all its searches, ..."""
NODE_LIMIT_OF_MARGINALS = 50_000
"""... and the same for its max-marginals, one search per item."""


@dataclass(frozen=True, eq=False)
class StarResult:
    """The best list of each row of scores."""

    selected: Ints | list[Ints]
    """(n, k), best first: by how much the best score falls without the item. A list of arrays if k differs."""
    score: Floats
    """(n,) their scores f."""
    upper_bound: Floats
    """(n,) no list scores higher; equal to ``score`` where that is proven best."""
    nodes: Ints
    """(n,) the number of nodes of branch and bound, to find the list and put it in order; 0 where it was not used."""


@dataclass(frozen=True, eq=False)
class StarMarginals:
    """The best score of each list with an item in, and with it out."""

    inside: Floats
    """(n, N), -inf where no list of k items has the item."""
    outside: Floats
    """(n, N), -inf where every list of k items has the item."""
    inside_bound: Floats
    """(n, N) no list with the item scores higher; equal to ``inside`` where that is proven best."""
    outside_bound: Floats
    """(n, N) no list without the item scores higher; equal to ``outside`` where that is proven best."""
    nodes: Ints
    """(n,) the number of nodes of branch and bound; 0 where it was not used."""

    @property
    def proven(self) -> NDArray[np.bool_]:
        """(n, N) where both are the best, and not only the best found within the node limit."""
        return (self.inside == self.inside_bound) & (self.outside == self.outside_bound)


class UnprovenWarning(UserWarning):
    """Some lists or max-marginals are the best found within the node limit, not proven best."""


class Argmax(NamedTuple):
    """The best lists of a block, for learners."""

    selected: Ints
    """(n, largest k) items in ascending order, -1 after the last."""
    score: Floats
    upper_bound: Floats
    nodes: Ints


def star_top_k(
    s: ArrayLike,
    pair: ArrayLike,
    core: ArrayLike,
    k: ArrayLike,
    method: Method = "auto",
    known: ArrayLike | None = None,
    node_limit: int = NODE_LIMIT,
    warm_start: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> StarResult:
    """Return the k items with the highest f, for each list.

    Parameters
    ----------
    s : (n, N) or (N,)
        Scores of the items; one row is one list.
    pair : (C, N)
        Row a holds G[core[a], :]. Core-core entries must agree and count once.
    core : (C,)
        The core items.
    k : int or (n,)
        The number of items to select.
    method : {"auto", "enumerate", "branch"}
        "enumerate" walks all settings of the core, "branch" prunes them by bounds; "auto" chooses by the size of the
        core. The answer is the same.
    known : (n, N), optional
        1 where an item must be in, 0 where it must be out, -1 elsewhere.
    node_limit : int
        The maximum number of nodes that "branch" opens for one list. Beyond 16 core items those that the best list
        leaves are shared by the searches that put it in order. Where they do not suffice, the list is the best found,
        ``upper_bound`` exceeds ``score``, and an :class:`UnprovenWarning` says how many lists that are.
    warm_start : (n, k), optional
        Items of a good list, to start from (-1 fills up shorter rows).
    n_jobs : int, optional
        Threads over lists; the result has the same bits with any number.

    Examples
    --------
    Alone, items 1 and 2 are best; the pair of 0 and 3 is better.

    >>> result = star_top_k([0.0, 1.0, 1.0, 0.5], pair=[[0.0, 0.0, 0.0, 2.0]], core=[0], k=2)
    >>> result.selected, result.score
    (array([[0, 3]]), array([2.5]))
    """
    lists = StarLists.of(s, pair, core, k, known)
    warm, node_limit = checked_warm_start(warm_start, lists.s), whole_number("node_limit", node_limit, 1)
    _check_method(method, lists.pair.n_core)
    best = best_first(lists, warm, method, node_limit, Executor.of(n_jobs))
    selected = best.items if np.ndim(k) == 0 else [row[:n] for row, n in zip(best.items, lists.k, strict=True)]
    return StarResult(selected, best.found.score, best.found.upper_bound, best.nodes)


class BestFirst(NamedTuple):
    """The best list of each row, in the order of what its score loses without an item."""

    items: Ints
    """(n, largest k), -1 after the last."""
    loss: Floats
    """(n, largest k), falling; inf where no list is without the item."""
    found: Argmax
    nodes: Ints


def best_first(
    lists: StarLists,
    warm: Ints | None = None,
    method: Method = "auto",
    node_limit: int = NODE_LIMIT,
    executor: Executor = ONE_THREAD,
) -> BestFirst:
    """Return the best list of each row in order; warn of what is not proven."""
    found = argmax_block(lists, warm, method, node_limit, executor)
    nodes, n_guessed, score = found.nodes, 0, found.score
    if lists.pair.n_core <= FEW_FOR_MARGINALS:
        walked = _walked_marginals(lists, executor)
        without = np.take_along_axis(walked.outside, np.maximum(found.selected, 0), axis=1)
        score = walked.inside.max(axis=1, initial=-np.inf)  # the same, added in the order of what it is compared with
    else:
        other = _other_side(lists, found, found.selected, node_limit, executor)
        without, nodes = other.score, nodes + other.nodes
        n_guessed = int((other.upper_bound > other.score).any(axis=1).sum())
    n_open = int((found.upper_bound > found.score).sum())
    if n_open or n_guessed:
        warnings.warn(
            f"{n_open} of {len(lists.s)} lists are not proven best within {node_limit} nodes, see their bounds, "
            f"and the order of {n_guessed} rests on the best found",
            UnprovenWarning,
            stacklevel=3,
        )
    without[found.selected < 0] = np.inf
    order = np.argsort(without, axis=1, kind="stable")
    items, without = np.take_along_axis(found.selected, order, axis=1), np.take_along_axis(without, order, axis=1)
    return BestFirst(items, score[:, None] - without, found, nodes)


def star_max_marginals(
    s: ArrayLike,
    pair: ArrayLike,
    core: ArrayLike,
    k: ArrayLike,
    known: ArrayLike | None = None,
    node_limit: int = NODE_LIMIT_OF_MARGINALS,
    n_jobs: int | None = None,
) -> StarMarginals:
    """Return, for each list and item, the best score with the item in and the best with it out.

    The parameters are those of :func:`star_top_k`. Up to 16 core items all settings are walked and everything is exact.
    Beyond, each item takes a branch and bound, and those of one list open at most ``node_limit`` nodes together:
    where that was not enough, ``proven`` is false, the values are the best found, ``inside_bound`` and
    ``outside_bound`` say how much better they could be, and an :class:`UnprovenWarning` says how many.

    Examples
    --------
    >>> marginals = star_max_marginals([0.0, 1.0, 1.0, 0.5], pair=[[0.0, 0.0, 0.0, 2.0]], core=[0], k=2)
    >>> marginals.inside
    array([[2.5, 2. , 2. , 2.5]])
    >>> marginals.outside
    array([[2. , 2.5, 2.5, 2. ]])
    """
    lists = StarLists.of(s, pair, core, k, known)
    return max_marginals(lists, whole_number("node_limit", node_limit, 1), Executor.of(n_jobs))


def max_marginals(
    lists: StarLists, node_limit: int = NODE_LIMIT_OF_MARGINALS, executor: Executor = ONE_THREAD
) -> StarMarginals:
    """Return both best scores of each item; warn of what is not proven."""
    if lists.pair.n_core <= FEW_FOR_MARGINALS:
        return _walked_marginals(lists, executor)
    best = argmax_block(lists, node_limit=node_limit, executor=executor)
    items = np.broadcast_to(np.arange(lists.pair.n_items), lists.s.shape)
    other = _other_side(lists, best, items, node_limit, executor)
    is_in = _marked(best.selected, lists.pair.n_items)
    score, bound = best.score[:, None], best.upper_bound[:, None]
    marginals = StarMarginals(
        np.where(is_in, score, other.score),
        np.where(is_in, other.score, score),
        np.where(is_in, bound, other.upper_bound),
        np.where(is_in, other.upper_bound, bound),
        best.nodes + other.nodes,
    )
    n_open = int((~marginals.proven).sum())
    if n_open:
        warnings.warn(
            f"{n_open} of {lists.s.size} max-marginals are not proven best within {node_limit} nodes: see their bounds",
            UnprovenWarning,
            stacklevel=3,
        )
    return marginals


def star_margins(
    s: ArrayLike,
    pair: ArrayLike,
    core: ArrayLike,
    k: ArrayLike,
    known: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Floats:
    """Return, for each list and item, the best score with the item in minus the best with it out."""
    return margins(StarLists.of(s, pair, core, k, known), Executor.of(n_jobs))


def margins(lists: StarLists, executor: Executor = ONE_THREAD) -> Floats:
    """Return the best score with an item in minus the best with it out."""
    best = max_marginals(lists, executor=executor)
    return best.inside - best.outside


def argmax_block(
    lists: StarLists,
    warm: Ints | None = None,
    method: Method = "auto",
    node_limit: int = NODE_LIMIT,
    executor: Executor = ONE_THREAD,
) -> Argmax:
    """Return the best list of each row of a block; the input is trusted.

    Parameters
    ----------
    lists
        A block of lists.
    warm : (n, any) int64, optional
        Items of a good list, -1 elsewhere: what this function returned last time.
    method, node_limit
        As in :func:`star_top_k`.
    executor
        Which threads do the work.
    """
    s, pair, k = lists.s, lists.pair, lists.k
    n_lists, n_items = s.shape
    selected = np.empty((n_lists, int(k.max(initial=0))), dtype=np.int64)
    score, upper_bound, nodes = np.empty(n_lists), np.empty(n_lists), np.zeros(n_lists, dtype=np.int64)
    forced = np.empty((0, n_items), dtype=np.int8) if lists.known is None else lists.known
    start = np.empty((0, 0), dtype=np.int64) if warm is None else warm

    from slatewise.cstar.kernels.branch import best_lists_by_branching
    from slatewise.cstar.kernels.enumerate import best_lists

    def walk(rows: slice) -> None:
        best_lists(s[rows], forced[rows], start[rows], pair.arrays, k[rows], selected[rows], score[rows])

    def branch(rows: slice) -> None:
        best_lists_by_branching(
            s[rows],
            forced[rows],
            start[rows],
            pair.arrays,
            k[rows],
            min(node_limit, 1 << 62),
            selected[rows],
            score[rows],
            upper_bound[rows],
            nodes[rows],
        )

    if method == "branch" or (method == "auto" and pair.n_core > FEW):
        executor.fill_blocks(branch, _blocks(s))
        return Argmax(selected, score, upper_bound, nodes)
    executor.fill_blocks(walk, _blocks(s))
    return Argmax(selected, score, score.copy(), nodes)


def _check_method(method: Method, n_core: int) -> None:
    if method not in get_args(Method):
        raise ValueError(f"method: expected one of {', '.join(get_args(Method))}, found {method!r}")
    if method == "enumerate" and n_core > MOST_ENUMERATED:
        raise ValueError(f"method: expected 'branch' for more than {MOST_ENUMERATED} core items, found {method!r}")


def _walked_marginals(lists: StarLists, executor: Executor) -> StarMarginals:
    s, k, arrays = lists.s, lists.k, lists.pair.arrays
    inside, outside = np.empty(s.shape), np.empty(s.shape)
    forced = np.empty((0, s.shape[1]), dtype=np.int8) if lists.known is None else lists.known

    from slatewise.cstar.kernels.marginals import max_marginals as walk

    def fill(rows: slice) -> None:
        walk(s[rows], forced[rows], arrays, k[rows], inside[rows], outside[rows])

    executor.fill_blocks(fill, _blocks(s))
    return StarMarginals(inside, outside, inside, outside, np.zeros(len(s), dtype=np.int64))


class _Other(NamedTuple):
    """For each item the best score, and its bound, on the side opposite to the best list."""

    score: Floats
    upper_bound: Floats
    nodes: Ints
    """(n,) of all searches of a list."""


def _other_side(lists: StarLists, best: Argmax, items: Ints, node_limit: int, executor: Executor) -> _Other:
    """Return the best score with each of ``items`` out if it is selected, in if it is not; -inf where impossible.

    A list has ``node_limit`` nodes in all. Those that its best list left are shared evenly by the remaining items:
    nodes that one item does not need go to the later ones; an item without nodes gets a greedy score without a bound.
    """
    other = _Other(np.full(items.shape, -np.inf), np.full(items.shape, -np.inf), np.zeros(len(items), dtype=np.int64))
    k, known, is_in = lists.k, lists.known, _marked(best.selected, lists.pair.n_items)

    def fill(number: int) -> None:
        row = items[number]
        now = np.full(lists.pair.n_items, -1, dtype=np.int8) if known is None else known[number]
        can_leave, can_enter = bool(np.sum(now != 0) > k[number]), bool(np.sum(now == 1) < k[number])
        leaves = is_in[number, row]
        possible = np.flatnonzero((row >= 0) & (now[row] < 0) & ((leaves & can_leave) | (~leaves & can_enter)))
        one, left = slice(number, number + 1), node_limit - int(best.nodes[number])
        for done, place in enumerate(possible):
            forced = now[None].copy()
            forced[0, row[place]] = not leaves[place]
            share = left // (len(possible) - done)
            changed = StarLists(lists.s[one], lists.pair, k[one], forced)
            found = argmax_block(changed, best.selected[one], node_limit=share)
            other.score[number, place], other.upper_bound[number, place] = found.score[0], found.upper_bound[0]
            left -= int(found.nodes[0])
        other.nodes[number] = node_limit - int(best.nodes[number]) - left

    executor.fill_blocks(fill, range(len(items)))
    return other


def _marked(selected: Ints, n_items: int) -> NDArray[np.bool_]:
    marked = np.zeros((len(selected), n_items + 1), dtype=np.bool_)
    np.put_along_axis(marked, selected, True, axis=1)  # -1 marks the extra column
    return marked[:, :n_items]


def _blocks(s: Floats) -> list[slice]:
    n_lists, n_items = s.shape
    # Small enough for several threads to share a few hundred lists; the blocks depend on the data only.
    return blocks(n_lists, max(1, min(64, 16_384 // max(n_items, 1))))
