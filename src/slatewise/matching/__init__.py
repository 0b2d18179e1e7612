"""Exact sums over matchings: RankMatch, graph matching, permanents (Petterson et al. 2009).

:class:`Slates`, :class:`AllSlates` and :class:`WholeQueries` are the ``slates`` of :class:`slatewise.MatchingRanker`;
:class:`Likelihood` is the ``surrogate`` of :class:`slatewise.GraphMatcher`, and :class:`Sample` its ``inference``.
Names load on first use.

In reading order: ``sums/`` has sums over all matchings of a matrix, and random matchings; ``kernels/`` and ``gpu/``
compute them. ``slates/`` ranks documents by matchings with positions (:class:`slatewise.MatchingRanker`), and
``graphs/`` matches the points of two graphs (:class:`slatewise.GraphMatcher`); both go from checked data to blocks, to
a risk over blocks, to a fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slatewise._lazy import lazy_getattr

if TYPE_CHECKING:
    from slatewise.matching.graphs.fit import Likelihood
    from slatewise.matching.graphs.inference import Sample
    from slatewise.matching.slates.slates import AllSlates, Slates, WholeQueries

__all__ = ["AllSlates", "Likelihood", "Sample", "Slates", "WholeQueries"]

_HOMES = {
    "AllSlates": "slatewise.matching.slates.slates",
    "Likelihood": "slatewise.matching.graphs.fit",
    "Sample": "slatewise.matching.graphs.inference",
    "Slates": "slatewise.matching.slates.slates",
    "WholeQueries": "slatewise.matching.slates.slates",
}

__getattr__ = lazy_getattr(globals(), _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
