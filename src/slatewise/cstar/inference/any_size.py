"""Sums over sets of any size: how likely labels are if their number is unknown, and what a question is worth.

    p(t) = exp f(t) / Z ,      f(t) = sum_i s_i t_i + sum over unordered pairs G_ij t_i t_j,    t in {0, 1}^N

    log Z = logsumexp over core settings z of [ s_core.z + pairs(z) + sum over the others of softplus(s_i + z.G_i) ]

All 2^N sets in 2^C terms, exactly (``kernels/subsets.py``). Marginals are the gradient of log Z. A known label is
fixed: one that is in brings its score instead of a softplus, one that is out nothing.

The probability that no label of A is in, so that nothing is missed if A is left out, is a ratio of two such sums:

    P(none of A | known) = Z(known, every label of A out) / Z(known)

Once a label i of A is known to be out, it grows to P(none of A) / P(i is out): a "no" takes ``-log P(i is out)`` off
the doubt ``-log P(none of A)``, whatever the other labels are.

Information, in nats, is how uncertain labels are, and how much of that bears on the others:

    H(y_i)       gained by asking for label i: the whole set is that much less uncertain
    I(y_i; z)    of it, what label i says about the setting z of the core: given z the others do not depend on label i,
                 so for a label outside the core this is all it says about all other labels together
    H(y)         of the whole row: H(z) + sum over the others of H(y_i | z)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from slatewise.core.arrays import Bools, Bytes, Floats
from slatewise.core.groups import blocks
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.inference.model import StarPair, checked_known, checked_model
from slatewise.cstar.kernels.subset_layout import KNOWN_IN, SubsetPair, SubsetTerms, summed_bits

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MOST_CORE = 12
"""All 2^C settings are summed: more core labels than this are refused."""
_ROWS, _TERMS = 256, 1 << 22  # of a block, at most; settings times labels
_LEAST_CHANCE = 1e-290  # below, products with a tame number could leave the normal range, where arithmetic is slow


@dataclass(frozen=True, eq=False)
class SubsetRows:
    """Rows of label scores, the pair terms all rows share, and what is known of each row.

    The constructor trusts its arrays; arguments of users are checked by :meth:`of`.
    """

    s: Floats
    """(n, N) C-contiguous."""
    pair: StarPair
    known: Bytes | None = None
    """(n, N) 1 where a label is in, 0 where it is out, -1 where that is unknown."""

    @classmethod
    def of(cls, s: ArrayLike, pair: ArrayLike, core: ArrayLike, known: ArrayLike | None = None) -> SubsetRows:
        """Check arguments of users, see :func:`slatewise.inference.subset_marginals`."""
        scores, star = checked_model(s, pair, core)
        if star.n_core > MOST_CORE:
            raise ValueError(f"core: expected at most {MOST_CORE} items to sum over all settings, found {star.n_core}")
        return cls(scores, star, checked_known(known, scores.shape))

    @property
    def answers(self) -> Bytes:
        """``known`` as the kernels take it: without rows if it is None."""
        return np.empty((0, self.pair.n_items), dtype=np.int8) if self.known is None else self.known

    def cut(self, rows: slice) -> SubsetRows:
        """Return some of the rows."""
        return SubsetRows(self.s[rows], self.pair, None if self.known is None else self.known[rows])

    def blocks(self) -> list[slice]:
        """Cut the rows by their size alone."""
        n_rows = min(max(_TERMS // max(self.pair.n_items << summed_bits(self.pair.n_core), 1), 1), _ROWS)
        return blocks(len(self.s), n_rows)


class CoreChances(NamedTuple):
    """How likely settings of the core are, of a block of rows; bit c of a setting's number stands for core label c."""

    terms: SubsetTerms
    log_z: Floats
    """(n,)."""
    log_chance: Floats
    """(n, S)."""
    chance: Floats
    """(n, S), 0 where it is next to that."""


def core_settings(star: SubsetPair, rows: SubsetRows) -> CoreChances:
    """Sum over the sets of each row with each setting of the core."""
    from slatewise.cstar.kernels.subsets import score_settings

    terms, log_z = SubsetTerms.of(rows.s, rows.answers, rows.pair.arrays, star)
    score = np.empty((len(rows.s), 1 << len(star.inner)))
    score_settings(star, terms, score, log_z)
    total = _log_sum(score)
    score -= total[:, None]
    chance = np.exp(score)
    chance[chance < _LEAST_CHANCE] = 0.0
    return CoreChances(terms, log_z + total, score, chance)


def _log_sum(values: Floats) -> Floats:
    """Return the logarithms of the sums of exponentials of each row; -inf where all are."""
    best = values.max(axis=1)
    best[best == -np.inf] = 0.0
    with np.errstate(divide="ignore", under="ignore"):
        return best + np.log(np.exp(values - best[:, None]).sum(axis=1))


class SubsetOdds(NamedTuple):
    """Log Z and log-odds of rows."""

    log_z: Floats
    """(n,)."""
    log_odds: Floats
    """(n, N) that a label is in: finite, +inf and -inf where it is known."""


class SubsetSums(NamedTuple):
    """Log Z and its gradient."""

    log_z: Floats
    """(n,)."""
    item: Floats
    """(n, N) the probability that a label is in."""
    joint: Floats
    """(C, N) summed over rows by weight, the probability that a core label and another are in; a pair of core labels
    stands once, in the row of the one that comes first."""


def subset_odds(rows: SubsetRows, executor: Executor = ONE_THREAD) -> SubsetOdds:
    """Return log Z and log-odds; the input is trusted."""
    star, core, rest = SubsetPair.of(rows.pair.arrays), rows.pair.arrays.core, rows.pair.arrays.rest
    log_z, log_odds = np.empty(len(rows.s)), np.empty(rows.s.shape)

    def fill(cut: slice) -> None:
        from slatewise.cstar.kernels.subsets import fill_log_odds

        found = core_settings(star, rows.cut(cut))
        others = np.where(found.terms.kind == KNOWN_IN, np.inf, -np.inf)
        fill_log_odds(star, found.terms, found.log_chance, found.chance, others)
        log_z[cut], log_odds[cut, rest] = found.log_z, others
        for c, label in enumerate(core):
            by_bit = found.log_chance.reshape(len(found.log_chance), -1, 2, 1 << c)
            without, with_c = (by_bit[:, :, bit].reshape(len(by_bit), -1) for bit in (0, 1))
            log_odds[cut, label] = _log_sum(with_c) - _log_sum(without)

    executor.fill_blocks(fill, rows.blocks())
    return SubsetOdds(log_z, log_odds)


def log_partition(rows: SubsetRows, executor: Executor = ONE_THREAD) -> Floats:
    """Return log Z alone, (n,)."""
    star, log_z = SubsetPair.of(rows.pair.arrays), np.empty(len(rows.s))

    def fill(cut: slice) -> None:
        log_z[cut] = core_settings(star, rows.cut(cut)).log_z

    executor.fill_blocks(fill, rows.blocks())
    return log_z


class _Block(NamedTuple):
    rows: SubsetRows
    weight: Floats


def subset_sums(rows: SubsetRows, weight: Floats, executor: Executor = ONE_THREAD) -> SubsetSums:
    """Sum over the sets of each row.

    Examples
    --------
    Four sets of two labels; that of both counts e times.

    >>> rows = SubsetRows.of([0.0, 0.0], pair=[[0.0, 1.0]], core=[0])
    >>> sums = subset_sums(rows, np.ones(1))
    >>> bool(np.isclose(sums.log_z[0], np.log(3 + np.e))), bool(np.isclose(sums.joint[0, 1], np.e / (3 + np.e)))
    (True, True)
    """
    cuts = rows.blocks()
    parts = [_Block(rows.cut(cut), weight[cut]) for cut in cuts]
    log_z, item = np.empty(len(rows.s)), np.empty(rows.s.shape)
    joint = np.zeros((rows.pair.n_core, rows.pair.n_items))
    found = executor.map_blocks(_block_sums, SubsetPair.of(rows.pair.arrays), parts)
    for cut, part in zip(cuts, found, strict=True):
        log_z[cut], item[cut] = part.log_z, part.item
        joint += part.joint
    return SubsetSums(log_z, item, joint)


def _block_sums(star: SubsetPair, block: _Block) -> SubsetSums:
    from slatewise.cstar.kernels.subsets import fill_gradient

    rows, pair = block.rows, block.rows.pair.arrays
    found = core_settings(star, rows)
    others, with_core = np.empty(found.terms.v.shape), np.empty(star.outer.shape)
    fill_gradient(star, found.terms, found.chance, block.weight, others, with_core)
    item, joint = np.empty(rows.s.shape), np.zeros(pair.full.shape)
    item[:, pair.rest], joint[:, pair.rest] = others, with_core[:, : len(pair.core)].T
    bits = (np.arange(1 << summed_bits(len(pair.core))) >> np.arange(len(pair.core))[:, None]) & 1
    inside = bits.astype(np.float64)  # (C, S) which core labels a setting has
    item[:, pair.core] = found.chance @ inside.T
    joint[:, pair.core] = np.triu((inside * (block.weight @ found.chance)) @ inside.T, 1)
    return SubsetSums(found.log_z, item, joint)


def subset_scores(s: Floats, pair: StarPair, Y: Floats) -> Floats:
    """Return f of one set per row, given as 0/1 (n, N).

    Examples
    --------
    >>> subset_scores(np.array([[1.0, 2.0, 4.0]]), StarPair.of([[0.0, 10.0, 20.0]], core=[0]), np.array([[1.0, 0, 1]]))
    array([25.])
    """
    inside = Y[:, pair.arrays.core]
    among = 0.5 * ((inside @ pair.arrays.inner) * inside).sum(axis=1)
    return (Y * s).sum(axis=1) + among + ((inside @ pair.arrays.outer) * Y[:, pair.arrays.rest]).sum(axis=1)


def chances(log_odds: Floats) -> Floats:
    """Return the probabilities of log-odds: small ones to their last digit, 1 and 0 for known labels.

    Examples
    --------
    >>> chances(np.array([-700.0, 0.0, np.inf]))
    array([9.85967654e-305, 5.00000000e-001, 1.00000000e+000])
    """
    small = np.exp(-np.abs(log_odds))
    return np.where(log_odds >= 0.0, 1.0, small) / (1.0 + small)


def subset_log_partition(
    s: ArrayLike, pair: ArrayLike, core: ArrayLike, known: ArrayLike | None = None, n_jobs: int | None = None
) -> Floats:
    """Return, for each row, the logarithm of the sum of exp f over all sets that agree with what is known.

    The parameters are those of :func:`slatewise.inference.subset_marginals`. What is known has probability
    ``exp(subset_log_partition(..., known) - subset_log_partition(...))``.

    Examples
    --------
    >>> subset_log_partition([0.0, 0.0], pair=[[0.0, 1.0]], core=[0]).round(3)
    array([1.744])
    """
    return log_partition(SubsetRows.of(s, pair, core, known), Executor.of(n_jobs))


def subset_log_odds(
    s: ArrayLike, pair: ArrayLike, core: ArrayLike, known: ArrayLike | None = None, n_jobs: int | None = None
) -> Floats:
    """Return, for each row and label, the log-odds that the label is in: +inf and -inf where that is known.

    The parameters are those of :func:`slatewise.inference.subset_marginals`. Where marginals round to 0 or 1, log-odds
    still tell labels apart.

    Examples
    --------
    >>> subset_log_odds([0.0, -800.0, 0.0], pair=[[0.0, 1.0, 1.0]], core=[0]).round()
    array([[   1., -799.,    1.]])
    """
    return subset_odds(SubsetRows.of(s, pair, core, known), Executor.of(n_jobs)).log_odds


def subset_marginals(
    s: ArrayLike, pair: ArrayLike, core: ArrayLike, known: ArrayLike | None = None, n_jobs: int | None = None
) -> Floats:
    """Return, for each row and label, the probability that the label is in, among sets of any size.

    Parameters
    ----------
    s : array_like (n, N) or (N,)
        The score of each label of each row by itself: log-odds, for a label without pairs.
    pair : array_like (C, N)
        Row a holds G[core[a], :], shared by all rows; between two core labels both rows must agree, and a label has
        0 with itself.
    core : array_like (C,)
        At most 12 core labels.
    known : array_like like s, optional
        1 for labels known to be in, 0 for labels known to be out, -1 elsewhere.
    n_jobs : int, optional
        The number of threads. None: all cores. The answer does not depend on it.

    Returns
    -------
    ndarray (n, N)
        1 and 0 where it is known.

    Examples
    --------
    Label 1 comes with label 0: it is expected once label 0 is known to be in.

    >>> s, pair = [0.0, -1.0, 0.0], [[0.0, 3.0, 0.0]]
    >>> subset_marginals(s, pair, core=[0]).round(3)
    array([[0.86 , 0.795, 0.5  ]])
    >>> subset_marginals(s, pair, core=[0], known=[1, -1, -1]).round(3)
    array([[1.   , 0.881, 0.5  ]])
    """
    return chances(subset_log_odds(s, pair, core, known, n_jobs))


# --- no label of several --------------------------------------------------------------------------------------------


def none_chance(rows: SubsetRows, among: Bools, log_z: Floats, executor: Executor = ONE_THREAD) -> Floats:
    """Return the probability that no label of ``among``, all of them unknown, is in, given log Z of the rows."""
    without = np.where(among, 0, -1 if rows.known is None else rows.known).astype(np.int8)
    rest = log_partition(SubsetRows(rows.s, rows.pair, without), executor)
    return np.where(among.any(axis=1), np.exp(np.minimum(rest - log_z, 0.0)), 1.0)


def subset_none(
    s: ArrayLike,
    pair: ArrayLike,
    core: ArrayLike,
    among: ArrayLike,
    known: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Floats:
    """Return, for each row, the probability that no label of ``among`` is in, among sets of any size.

    The other parameters are those of :func:`slatewise.inference.subset_marginals`.

    Parameters
    ----------
    among : array_like like s
        True for the labels in question. One known to be in makes the probability 0; one known to be out is ignored.

    Examples
    --------
    Labels 0 and 1 go together, so that neither is there more often than if they were independent.

    >>> subset_none([0.0, 0.0], pair=[[0.0, 2.0]], core=[0], among=[True, True]).round(3)
    array([0.096])
    >>> subset_none([0.0, 0.0], pair=[[0.0, 2.0]], core=[0], among=[False, True], known=[0, -1]).round(3)
    array([0.5])
    """
    rows, executor = SubsetRows.of(s, pair, core, known), Executor.of(n_jobs)
    chosen = np.atleast_2d(np.asarray(among))
    if chosen.shape != rows.s.shape or chosen.dtype != np.bool_:
        raise ValueError(
            f"among: expected True and False in the shape of s, {rows.s.shape}, found {chosen.dtype} {chosen.shape}"
        )
    unknown = chosen if rows.known is None else chosen & (rows.known < 0)
    chance = none_chance(rows, unknown, log_partition(rows, executor), executor)
    return chance if rows.known is None else np.where((chosen & (rows.known == 1)).any(axis=1), 0.0, chance)


# --- information ----------------------------------------------------------------------------------------------------

_LEAST = -1000.0  # the chance of a setting with a smaller logarithm is 0


class SubsetInformation(NamedTuple):
    """Entropies in nats; 0 for a known label."""

    label: Floats
    """(n, N) of each label: H(y_i)."""
    shared: Floats
    """(n, N) what a label says about the core: I(y_i; z); all it has, for a core label."""
    row: Floats
    """(n,) of the whole set: H(y)."""


def label_entropy(log_odds: Floats) -> Floats:
    """Return the entropy of labels by their log-odds, the cheapest guide for one question.

    Examples
    --------
    >>> label_entropy(np.array([0.0, 3.0, -40.0, np.inf])).round(3)
    array([0.693, 0.191, 0.   , 0.   ])
    """
    distance = np.where(np.isinf(log_odds), 1e300, np.abs(log_odds))
    small = np.exp(-distance)
    return np.log1p(small) + distance * small / (1.0 + small)


def row_information(rows: SubsetRows, executor: Executor = ONE_THREAD) -> SubsetInformation:
    """Return the entropies of rows that were checked."""
    star, rest = SubsetPair.of(rows.pair.arrays), rows.pair.arrays.rest
    given_core, whole = np.zeros(rows.s.shape), np.empty(len(rows.s))

    def fill(cut: slice) -> None:
        from slatewise.cstar.kernels.subset_information import entropies_given_core

        found = core_settings(star, rows.cut(cut))
        entropy = np.empty(found.terms.v.shape)
        entropies_given_core(star, found.terms, found.chance, entropy)
        given_core[cut, rest] = entropy
        of_core = -(found.chance * np.maximum(found.log_chance, _LEAST)).sum(axis=1)
        whole[cut] = of_core + entropy.sum(axis=1)

    executor.fill_blocks(fill, rows.blocks())
    label = label_entropy(subset_odds(rows, executor).log_odds)
    return SubsetInformation(label, np.maximum(label - given_core, 0.0), whole)


def subset_information(
    s: ArrayLike, pair: ArrayLike, core: ArrayLike, known: ArrayLike | None = None, n_jobs: int | None = None
) -> SubsetInformation:
    """Return how uncertain labels and rows are, and what each label says about the core, in nats.

    The parameters are those of :func:`slatewise.inference.subset_marginals`. On average, asking for a label takes its
    entropy off that of the row; the part it shares with the core is what the answer says about other labels.

    Examples
    --------
    Labels 1 and 2 are as uncertain, but label 1 goes with label 0.

    >>> found = subset_information([-1.5, -1.5, 0.0], pair=[[0.0, 3.0, 0.0]], core=[0])
    >>> found.label.round(2), found.shared.round(2), found.row.round(2)
    (array([[0.69, 0.69, 0.69]]), array([[0.69, 0.22, 0.  ]]), array([1.86]))
    """
    return row_information(SubsetRows.of(s, pair, core, known), Executor.of(n_jobs))
