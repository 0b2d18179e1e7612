"""Counting which artist followed which, alone and added to latent factors: only two numbers are learned.

    c(q, d) = log(1 + n(q, d) + r n(d, q) + p(d)),    f(q, d) = g c(q, d) + the latent score

n(q, d) is how often d came next after q, and p(d) the popularity of d, which ranks the artists never seen with q. What
a pair is worth in the other direction (r) and g are chosen on the validation pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.executor import Executor
from slatewise.factors.queries import ZeroQueries
from slatewise.factors.scoring import Cascade, Factors
from slatewise.factors.tables import Table
from slatewise_papers.lasr.data import ArtistPairs, MusicProblem
from slatewise_papers.lasr.lists import Lists
from slatewise_papers.lasr.stages import quality

REVERSED = (0.0, 0.3, 0.5, 1.0)
STRENGTHS = (0.5, 1.0, 2.0, 4.0)
FactorsOf: TypeAlias = Callable[[Ints], Factors]
"""From query numbers to factors in which the queries are numbered by their places."""


@dataclass(frozen=True, eq=False)
class Counts:
    """c(q, d) for all artists."""

    above: csr_array
    """What c has beyond ``popularity``, where q and d were seen together."""
    popularity: Singles
    """log(1 + p(d))."""

    @classmethod
    def of(cls, pairs: ArtistPairs, n_artists: int, reverse: float) -> Counts:
        """Count; ``reverse`` is r."""
        shape = (n_artists, n_artists)
        share = np.bincount(pairs.items, minlength=n_artists) / len(pairs)
        forward = csr_array((np.ones(len(pairs)), (pairs.queries, pairs.items)), shape=shape)
        both = csr_array(forward + reverse * forward.T)
        both.sum_duplicates()
        own = share[both.indices]
        both.data = np.log1p(both.data + own) - np.log1p(own)
        return cls(both.astype(np.float32), np.log1p(share).astype(np.float32))

    def lists(self, numbers: Ints, k: int) -> Ints:
        """Rank by the counts alone."""
        return self.with_factors(self._alone, 1.0)(numbers, k)

    def with_factors(self, factors_of: FactorsOf, strength: float) -> Lists:
        """Rank by the counts, times ``strength`` (g), and the factors together."""

        def lists(numbers: Ints, k: int) -> Ints:
            base = _Counted(self, np.float32(strength), numbers)
            cascade = Cascade((replace(factors_of(numbers), base=base),))
            length = min(k, len(self.popularity))
            return cascade.top(np.arange(len(numbers)), length, executor=Executor.of(None)).items

        return lists

    def _alone(self, numbers: Ints) -> Factors:
        return Factors(ZeroQueries(0), Table.zeros(len(self.popularity), 0, ()))


def choose_counts(problem: MusicProblem) -> float:
    """Return r with the best lists for the validation pairs."""
    counted = {reverse: Counts.of(problem.train, problem.n_artists, reverse) for reverse in REVERSED}
    return max(REVERSED, key=lambda reverse: quality(problem, counted[reverse].lists))


def choose_strength(problem: MusicProblem, reverse: float, factors_of: FactorsOf) -> float:
    """Return g with the best lists for the validation pairs, over factors of the training pairs."""
    counts = Counts.of(problem.train, problem.n_artists, reverse)
    return max(STRENGTHS, key=lambda strength: quality(problem, counts.with_factors(factors_of, strength)))


@dataclass(frozen=True, eq=False)
class _Counted:
    """Counts of some queries, by their places."""

    counts: Counts
    strength: np.float32
    numbers: Ints

    def rows(self, queries: Ints) -> Singles:
        scores = self.counts.above[self.numbers[queries]].toarray()
        scores += self.counts.popularity
        scores *= self.strength
        return scores
