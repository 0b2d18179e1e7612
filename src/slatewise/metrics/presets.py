"""Presets: the conventions of one tool, chosen together."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from slatewise.metrics.auc import AUC as _AUC
from slatewise.metrics.auc import MeanRank as _MeanRank
from slatewise.metrics.average_precision import AP as _AP
from slatewise.metrics.conventions import check_choice, grades
from slatewise.metrics.measure import Measure
from slatewise.metrics.ndcg import NDCG as _NDCG
from slatewise.metrics.ndcg import MeanNDCG as _MeanNDCG
from slatewise.metrics.precision import BreakEven as _BreakEven
from slatewise.metrics.precision import Precision as _Precision
from slatewise.metrics.precision import Recall as _Recall
from slatewise.metrics.reciprocal_rank import RR as _RR

M = TypeVar("M", bound=Measure)


@dataclass(frozen=True)
class Preset:
    """Measures as one tool computes them; asking for one that it does not have is an error.

    Change a single convention with :func:`dataclasses.replace` on the measure.

    Examples
    --------
    >>> preset("lightgbm").NDCG(10)([[0, 0]], [[1, 2]]), preset("trec_eval").NDCG(10)([[0, 0]], [[1, 2]])
    (1.0, 0.0)
    """

    tool: str
    conventions: tuple[Measure, ...]
    """One measure of each kind that the tool has."""

    def Precision(self, k: int | None = None) -> _Precision:
        """Precision at k."""
        return replace(self._of(_Precision), k=k)

    def Recall(self, k: int | None = None) -> _Recall:
        """Recall at k."""
        return replace(self._of(_Recall), k=k)

    def AP(self, k: int | None = None) -> _AP:
        """Average precision at k."""
        return replace(self._of(_AP), k=k)

    def NDCG(self, k: int | None = None) -> _NDCG:
        """NDCG at k."""
        return replace(self._of(_NDCG), k=k)

    def RR(self, k: int | None = None) -> _RR:
        """Reciprocal rank at k."""
        return replace(self._of(_RR), k=k)

    def AUC(self) -> _AUC:
        """Area under the ROC curve."""
        return self._of(_AUC)

    def BreakEven(self) -> _BreakEven:
        """Break-even precision."""
        return self._of(_BreakEven)

    def MeanRank(self) -> _MeanRank:
        """Mean rank of the relevant items."""
        return self._of(_MeanRank)

    def MeanNDCG(self) -> _MeanNDCG:
        """Mean of NDCG over all cut-offs."""
        return self._of(_MeanNDCG)

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures the tool has."""
        return tuple(type(measure).__name__ for measure in self.conventions)

    def parse(self, name: str) -> Measure:
        """Read a name such as ``"ndcg@10"``; see :func:`parse`."""
        match = re.fullmatch(r"([a-z_]+)(?:@([0-9]{1,18}))?", str(name).strip().lower())
        if match is None or match[1] not in _KINDS:
            known = ", ".join(f"{key}@k" if hasattr(kind, "k") else key for key, kind in _KINDS.items())
            raise ValueError(f"measure: expected one of {known} (k: a whole number, @k optional), found {name!r}")
        measure = self._of(_KINDS[match[1]])
        if match[2] is not None and not hasattr(measure, "k"):
            raise ValueError(f"measure: expected {match[1]!r} without a cut-off, found {name!r}")
        return measure if match[2] is None else replace(measure, k=int(match[2]))

    def _of(self, kind: type[M]) -> M:
        for measure in self.conventions:
            if isinstance(measure, kind):
                return measure
        raise ValueError(f"preset {self.tool!r}: expected one of {', '.join(self.measures)}, found {kind.__name__}")


_KINDS: dict[str, type[Measure]] = {
    "ndcg": _NDCG,
    "map": _AP,
    "ap": _AP,
    "p": _Precision,
    "precision": _Precision,
    "recall": _Recall,
    "r": _Recall,
    "mrr": _RR,
    "rr": _RR,
    "auc": _AUC,
    "bep": _BreakEven,
    "mean_rank": _MeanRank,
    "mean_ndcg": _MeanNDCG,
}

# CatBoost and LightGBM call a label relevant when it is larger than one half, not at it.
_ABOVE_HALF = float(np.nextafter(0.5, 1.0))

_ALL = (
    Preset(
        "slatewise", (_Precision(), _Recall(), _AP(), _NDCG(), _RR(), _AUC(), _BreakEven(), _MeanRank(), _MeanNDCG())
    ),
    Preset(
        "trec_eval",
        (
            _Precision(ties="id", score_type="float32", labels="whole", short="k"),
            _Recall(ties="id", score_type="float32", labels="whole"),
            _AP(ties="id", score_type="float32", labels="whole", norm="relevant"),
            _NDCG(ties="id", score_type="float32", labels="whole", gain="positive"),
            _RR(ties="id", score_type="float32", labels="whole"),
            _BreakEven(ties="id", score_type="float32", labels="whole"),
        ),
    ),
    Preset(
        "sklearn",
        (
            _AP(ties="together", labels="two-valued"),
            _NDCG(ties="average", gain="linear", at_least=2),
            _AUC(ties="average", labels="two-valued"),
        ),
    ),
    Preset(
        "lightgbm",
        (
            _AP(ties="input", empty=1, threshold=_ABOVE_HALF, norm="reachable"),
            _NDCG(ties="input", empty=1, labels=grades(30)),
        ),
    ),
    Preset(
        "xgboost",
        (
            _Precision(ties="input", score_type="float32", labels="binary", short="n"),
            _AP(ties="input", score_type="float32", labels="binary", empty=1, norm="reachable"),
            _NDCG(ties="input", score_type="float32", labels=grades(31), empty=1),
        ),
    ),
    Preset(
        "catboost",
        (
            _Precision(ties="worst", threshold=_ABOVE_HALF, short="n"),
            _Recall(ties="worst", threshold=_ABOVE_HALF, empty=1),
            _AP(ties="worst", threshold=_ABOVE_HALF, norm="reachable"),
            _NDCG(ties="worst", gain="linear", labels="any", empty=1),
            _RR(ties="worst", threshold=_ABOVE_HALF),
            _AUC(ties="average", labels="binary", empty=0),
        ),
    ),
    Preset(
        "letor",
        (
            _Precision(ties="input", short="k"),
            _AP(ties="input"),
            _NDCG(ties="input", discount="letor"),
        ),
    ),
    Preset(
        "letor4",
        (
            _Precision(ties="input", short="k"),
            _AP(ties="input"),
            _NDCG(ties="input", discount="letor", short="zero"),
            _MeanNDCG(ties="input", discount="letor"),
        ),
    ),
)
PRESETS = {found.tool: found for found in _ALL}


def preset(tool: str) -> Preset:
    """Return the conventions of a tool.

    Parameters
    ----------
    tool : {"slatewise", "trec_eval", "sklearn", "lightgbm", "xgboost", "catboost", "letor", "letor4"}
        ``"slatewise"`` is what the constructors do without arguments. ``"letor"`` is the tool of LETOR 1.0 to 3.0
        (OHSUMED, TREC), ``"letor4"`` that of LETOR 4.0 (MQ2007, MQ2008), where a list of fewer than k documents has
        NDCG@k = 0 and NDCG is also averaged over all cut-offs.

    Examples
    --------
    >>> preset("xgboost").measures
    ('Precision', 'AP', 'NDCG')
    """
    check_choice("preset", tool, PRESETS)
    return PRESETS[tool]


def parse(name: str, preset: Preset | None = None) -> Measure:
    """Make a measure from its name.

    Parameters
    ----------
    name : str
        ``ndcg@k``, ``map@k``, ``p@k``, ``recall@k``, ``mrr@k`` (each also without ``@k``: the whole list), ``auc``,
        ``bep``, ``mean_rank``, ``mean_ndcg``.
    preset : Preset, optional
        Whose conventions; the library's own by default.

    Examples
    --------
    >>> parse("ndcg@10").name
    'ndcg@10'
    """
    return (preset or PRESETS["slatewise"]).parse(name)
