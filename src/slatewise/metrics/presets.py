"""Presets: the conventions of one tool, chosen together."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from slatewise.metrics.auc import AUC as _AUC
from slatewise.metrics.average_precision import AP as _AP
from slatewise.metrics.break_even import BreakEven as _BreakEven
from slatewise.metrics.conventions import check_choice, grades
from slatewise.metrics.mean_ndcg import MeanNDCG as _MeanNDCG
from slatewise.metrics.mean_rank import MeanRank as _MeanRank
from slatewise.metrics.measure import Measure
from slatewise.metrics.ndcg import NDCG as _NDCG
from slatewise.metrics.precision import Precision as _Precision
from slatewise.metrics.recall import Recall as _Recall
from slatewise.metrics.reciprocal_rank import RR as _RR

M = TypeVar("M", bound=Measure)


@dataclass(frozen=True)
class Preset:
    """Measures as one tool computes them; None where the tool has no such measure of a list.

    Change a single convention with :func:`dataclasses.replace` on the measure.

    Examples
    --------
    >>> preset("lightgbm").NDCG(10)([[0, 0]], [[1, 2]]), preset("trec_eval").NDCG(10)([[0, 0]], [[1, 2]])
    (1.0, 0.0)
    """

    tool: str
    precision: _Precision | None = None
    recall: _Recall | None = None
    ap: _AP | None = None
    ndcg: _NDCG | None = None
    rr: _RR | None = None
    auc: _AUC | None = None
    break_even: _BreakEven | None = None
    mean_rank: _MeanRank | None = None
    mean_ndcg: _MeanNDCG | None = None

    def Precision(self, k: int | None = None) -> _Precision:
        """Precision at k."""
        return replace(self._has(self.precision, "Precision"), k=k)

    def Recall(self, k: int | None = None) -> _Recall:
        """Recall at k."""
        return replace(self._has(self.recall, "Recall"), k=k)

    def AP(self, k: int | None = None) -> _AP:
        """Average precision at k."""
        return replace(self._has(self.ap, "AP"), k=k)

    def NDCG(self, k: int | None = None) -> _NDCG:
        """NDCG at k."""
        return replace(self._has(self.ndcg, "NDCG"), k=k)

    def RR(self, k: int | None = None) -> _RR:
        """Reciprocal rank at k."""
        return replace(self._has(self.rr, "RR"), k=k)

    def AUC(self) -> _AUC:
        """Area under the ROC curve."""
        return self._has(self.auc, "AUC")

    def BreakEven(self) -> _BreakEven:
        """Break-even precision."""
        return self._has(self.break_even, "BreakEven")

    def MeanRank(self) -> _MeanRank:
        """Mean rank of the relevant items."""
        return self._has(self.mean_rank, "MeanRank")

    def MeanNDCG(self) -> _MeanNDCG:
        """Mean of NDCG over all cut-offs."""
        return self._has(self.mean_ndcg, "MeanNDCG")

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures the tool has."""
        held = {
            "Precision": self.precision,
            "Recall": self.recall,
            "AP": self.ap,
            "NDCG": self.ndcg,
            "RR": self.rr,
            "AUC": self.auc,
            "BreakEven": self.break_even,
            "MeanRank": self.mean_rank,
            "MeanNDCG": self.mean_ndcg,
        }
        return tuple(name for name, measure in held.items() if measure is not None)

    def parse(self, name: str) -> Measure:
        """Read a name such as ``"ndcg@10"``; see :func:`parse`."""
        match = re.fullmatch(r"([a-z_]+)(?:@([0-9]{1,18}))?", str(name).strip().lower())
        if match is None or match[1] not in {*_AT_K, *_WHOLE}:
            known = ", ".join([*(f"{key}@k" for key in _AT_K), *_WHOLE])
            raise ValueError(f"measure: expected one of {known} (k: a whole number, @k optional), found {name!r}")
        if match[2] is None:
            return _WHOLE[match[1]](self) if match[1] in _WHOLE else _AT_K[match[1]](self, None)
        if match[1] in _WHOLE:
            raise ValueError(f"measure: expected {match[1]!r} without a cut-off, found {name!r}")
        return _AT_K[match[1]](self, int(match[2]))

    def _has(self, measure: M | None, name: str) -> M:
        if measure is None:
            raise ValueError(f"preset {self.tool!r}: expected one of {', '.join(self.measures)}, found {name}")
        return measure


_AT_K = {
    "ndcg": Preset.NDCG,
    "map": Preset.AP,
    "ap": Preset.AP,
    "p": Preset.Precision,
    "precision": Preset.Precision,
    "recall": Preset.Recall,
    "r": Preset.Recall,
    "mrr": Preset.RR,
    "rr": Preset.RR,
}
_WHOLE = {
    "auc": Preset.AUC,
    "bep": Preset.BreakEven,
    "mean_rank": Preset.MeanRank,
    "mean_ndcg": Preset.MeanNDCG,
}

# CatBoost and LightGBM call a label relevant when it is larger than one half, not at it.
_ABOVE_HALF = float(np.nextafter(0.5, 1.0))

_SLATEWISE = Preset(
    "slatewise", _Precision(), _Recall(), _AP(), _NDCG(), _RR(), _AUC(), _BreakEven(), _MeanRank(), _MeanNDCG()
)  # fmt: skip
_TREC_EVAL = Preset(
    "trec_eval",
    precision=_Precision(ties="id", score_type="float32", labels="whole", short="k"),
    recall=_Recall(ties="id", score_type="float32", labels="whole"),
    ap=_AP(ties="id", score_type="float32", labels="whole", norm="relevant"),
    ndcg=_NDCG(ties="id", score_type="float32", labels="whole", gain="positive"),
    rr=_RR(ties="id", score_type="float32", labels="whole"),
    break_even=_BreakEven(ties="id", score_type="float32", labels="whole"),
)
_SKLEARN = Preset(
    "sklearn",
    ap=_AP(ties="together", labels="two-valued"),
    ndcg=_NDCG(ties="average", gain="linear", at_least=2),
    auc=_AUC(ties="average", labels="two-valued"),
)
_LIGHTGBM = Preset(
    "lightgbm",
    ap=_AP(ties="input", empty=1, threshold=_ABOVE_HALF, norm="reachable"),
    ndcg=_NDCG(ties="input", empty=1, labels=grades(30)),
)
_XGBOOST = Preset(
    "xgboost",
    precision=_Precision(ties="input", score_type="float32", labels="binary", short="n"),
    ap=_AP(ties="input", score_type="float32", labels="binary", empty=1, norm="reachable"),
    ndcg=_NDCG(ties="input", score_type="float32", labels=grades(31), empty=1),
)
_CATBOOST = Preset(
    "catboost",
    precision=_Precision(ties="worst", threshold=_ABOVE_HALF, short="n"),
    recall=_Recall(ties="worst", threshold=_ABOVE_HALF, empty=1),
    ap=_AP(ties="worst", threshold=_ABOVE_HALF, norm="reachable"),
    ndcg=_NDCG(ties="worst", gain="linear", labels="any", empty=1),
    rr=_RR(ties="worst", threshold=_ABOVE_HALF),
    auc=_AUC(ties="average", labels="binary", empty=0),
)
_LETOR = Preset(
    "letor",
    precision=_Precision(ties="input", short="k"),
    ap=_AP(ties="input"),
    ndcg=_NDCG(ties="input", discount="letor"),
)
_LETOR4 = Preset(
    "letor4",
    precision=_Precision(ties="input", short="k"),
    ap=_AP(ties="input"),
    ndcg=_NDCG(ties="input", discount="letor", short="zero"),
    mean_ndcg=_MeanNDCG(ties="input", discount="letor"),
)
_ALL = (_SLATEWISE, _TREC_EVAL, _SKLEARN, _LIGHTGBM, _XGBOOST, _CATBOOST, _LETOR, _LETOR4)
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
    return (preset or _SLATEWISE).parse(name)
