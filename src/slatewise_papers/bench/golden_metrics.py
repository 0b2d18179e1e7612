"""Ask the real tools for their values, so that tests can hold the presets to them without installing the tools.

``python -m slatewise_papers.bench.golden_metrics tests/metrics/golden`` writes one JSON file a tool: its version, and
for each case the input and, for each measure, the value, null where the tool says NaN, or "error" where it refuses.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from slatewise import metrics
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.framework.running import installed

Value: TypeAlias = float | Literal["error"] | None


@dataclass(frozen=True)
class Case:
    """Lists given to a tool; ``qid`` is contiguous."""

    name: str
    relevance: list[float]
    scores: list[float]
    qid: list[int]
    ids: list[str]

    @property
    def sizes(self) -> list[int]:
        """Items of each list."""
        return np.bincount(self.qid).tolist()


def _case(name: str, *lists: tuple[Sequence[float], Sequence[float]]) -> Case:
    relevance = [float(value) for labels, _ in lists for value in labels]
    scores = [float(value) for _, scores in lists for value in scores]
    qid = [number for number, (labels, _) in enumerate(lists) for _ in labels]
    # Not in row order, and "d10" < "d9" as text.
    ids = [f"d{(7 * row + 3) % 11}" if len(relevance) <= 11 else f"d{row * 37 % 1009}" for row in range(len(relevance))]
    return Case(name, relevance, scores, qid, ids)


def cases() -> list[Case]:
    """Return the corners where tools differ, then seeded random lists."""
    made = [
        _case("binary", ([1, 0, 1, 1], [4, 3, 2, 1])),
        _case("graded", ([1, 0, 3, 2, 0], [0.1, 0.5, 0.3, 0.2, 0.4])),
        _case("ties, binary", ([1, 1, 0, 0, 1], [1, 1, 1, 2, 0])),
        _case("ties, graded", ([1, 0, 2, 0, 3], [1, 1, 1, 2, 2])),
        _case("all tied", ([1, 0, 0, 1], [1, 1, 1, 1])),
        _case("tied in float32 only", ([0, 1, 1], [1, 1 + 1e-9, 1 - 1e-9])),
        _case("no relevant item", ([0, 0, 0], [1, 2, 3])),
        _case("all relevant", ([1, 1, 1], [1, 2, 3])),
        _case("short list", ([0, 1], [2, 1])),
        _case("one relevant item", ([1], [0.5])),
        _case("one irrelevant item", ([0], [0.5])),
        _case("one graded item", ([3], [0.5])),
        _case("negative", ([1, 0, -1], [1, 2, 3])),
        _case("negative, tied", ([2, 0, -1], [1, 1, 1])),
        _case("negative only", ([-1, -2], [2, 1])),
        _case("negative ideal", ([-1, -1, 1], [3, 2, 1])),
        _case("signs", ([1, -1, 1, -1], [1, 2, 3, 4])),
        _case("fractions", ([0.5, 0, 1], [1, 2, 3])),
        _case("large grade", ([30, 0, 1], [1, 2, 3])),
        _case("grade 31", ([31, 0, 1], [1, 2, 3])),
        _case("grade 32", ([32, 0, 1], [1, 2, 3])),
        _case("three lists", ([1, 0, 2], [1, 2, 3]), ([0, 0], [1, 2]), ([1], [1])),
        _case("three binary lists", ([1, 0, 1], [1, 2, 3]), ([0, 0], [1, 2]), ([1], [1])),
    ]
    rng = np.random.default_rng(20260101)
    for number in range(40):
        size = int(rng.integers(2, 26))
        relevance = rng.integers(0, 2 if number % 2 else 5, size=size)
        scores = np.round(rng.normal(size=size), 1 if number % 4 < 2 else 6)
        made.append(_case(f"random {number}", (relevance.tolist(), scores.tolist())))
    return made


def _cutoff(measure: str, whole: int) -> int:
    return int(measure.partition("@")[2] or whole)


def _lightgbm(case: Case, measure: str) -> Value:
    lightgbm: Any = import_module("lightgbm")
    options = {
        "objective": "lambdarank",
        "metric": measure.partition("@")[0],
        "eval_at": [_cutoff(measure, 10_000)],
        "verbosity": -1,
        "feature_pre_filter": False,
        "num_threads": 1,  # lists of a few items: threads would only wait for each other
    }
    # No tree is grown: the initial scores are what the metric sees.
    blank = np.zeros((len(case.scores), 1))
    train = lightgbm.Dataset(blank, label=np.zeros(len(case.scores)), group=case.sizes, params=options)
    shown: dict[str, Any] = {"group": case.sizes, "init_score": case.scores, "params": options}
    try:
        booster = lightgbm.Booster(options, train)
        booster.add_valid(lightgbm.Dataset(blank, label=case.relevance, reference=train, **shown), "shown")
        return float(booster.eval_valid()[0][2])
    except lightgbm.basic.LightGBMError:
        return "error"


def _xgboost(case: Case, measure: str) -> Value:
    xgboost: Any = import_module("xgboost")
    blank = xgboost.DMatrix(np.zeros((2, 1)), label=[0, 1], group=[2])
    metric = f"pre{measure[1:]}" if measure.startswith("p@") else measure
    options = {"objective": "rank:ndcg", "eval_metric": metric, "verbosity": 0, "base_score": 0.0, "nthread": 1}
    # No round is trained: the margins are what the metric sees.
    booster = xgboost.train(options, blank, num_boost_round=0)
    shown = xgboost.DMatrix(
        np.zeros((len(case.scores), 1)), label=case.relevance, base_margin=case.scores, group=case.sizes
    )
    try:
        return float(str(booster.eval(shown)).rpartition(":")[2])
    except xgboost.core.XGBoostError:
        return "error"


def _catboost(case: Case, measure: str) -> Value:
    catboost: Any = import_module("catboost")
    utils: Any = import_module("catboost.utils")
    kind = {"ndcg": "NDCG", "map": "MAP", "p": "PrecisionAt", "recall": "RecallAt", "mrr": "MRR", "auc": "QueryAUC"}
    name, _, k = measure.partition("@")
    metric = kind[name] + (f":top={k}" if k else "")
    try:
        return float(utils.eval_metric(case.relevance, case.scores, metric, group_id=case.qid, thread_count=1)[0])
    except catboost.CatBoostError:
        return "error"


def _sklearn(case: Case, measure: str) -> Value:
    peer: Any = import_module("sklearn.metrics")
    relevance, scores = np.array(case.relevance), np.array(case.scores)
    name, _, k = measure.partition("@")
    ask: dict[str, Callable[[], float]] = {
        "ndcg": lambda: float(peer.ndcg_score([relevance], [scores], k=int(k) if k else None)),
        "map": lambda: float(peer.average_precision_score(relevance, scores)),
        "auc": lambda: float(peer.roc_auc_score(relevance, scores)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a list lacks a class is what the value says
        try:
            value = ask[name]()
        except ValueError:
            return "error"
    return None if np.isnan(value) else value


def _trec_eval(case: Case, measure: str) -> Value:
    peer: Any = import_module("pytrec_eval")
    kind = {"ndcg": "ndcg", "map": "map", "p": "P", "recall": "recall", "mrr": "recip_rank", "bep": "Rprec"}
    name, _, k = measure.partition("@")
    family = kind[name] + ("_cut" if k and name in ("ndcg", "map") else "")
    # The tool takes "ndcg_cut.5" and answers "ndcg_cut_5".
    name_in, name_out = (f"{family}.{k}", f"{family}_{k}") if k else (family, family)
    qrels: dict[str, dict[str, float]] = {}
    run: dict[str, dict[str, float]] = {}
    for qid, doc, relevance, score in zip(case.qid, case.ids, case.relevance, case.scores, strict=True):
        qrels.setdefault(str(qid), {})[doc] = int(relevance) if relevance == int(relevance) else relevance
        run.setdefault(str(qid), {})[doc] = score
    try:
        found = peer.RelevanceEvaluator(qrels, {name_in}).evaluate(run)
    except TypeError:
        return "error"
    return float(np.mean([values[name_out] for values in found.values()]))


@dataclass(frozen=True)
class Tool:
    """A tool, the package whose version counts, and what to ask it."""

    preset: str
    module: str
    package: str
    measures: tuple[str, ...]
    ask: Callable[[Case, str], Value]
    one_list: bool = False
    """Whether the tool takes one list at a time, so that a mean over lists would be ours."""


_NDCG = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "ndcg")
_MAP = ("map@1", "map@3", "map@10", "map")
TOOLS = (
    Tool("lightgbm", "lightgbm", "lightgbm", (*_NDCG, *_MAP), _lightgbm),
    Tool("xgboost", "xgboost", "xgboost-cpu", (*_NDCG, *_MAP, "p@1", "p@3", "p@10"), _xgboost),
    Tool(
        "catboost",
        "catboost",
        "catboost",
        (*_NDCG, *_MAP, "p@1", "p@3", "p@10", "recall@1", "recall@3", "recall@10", "mrr", "mrr@2", "auc"),
        _catboost,
    ),
    Tool("sklearn", "sklearn", "scikit-learn", (*_NDCG, "map", "auc"), _sklearn, one_list=True),
    Tool(
        "trec_eval",
        "pytrec_eval",
        "pytrec-eval-terrier",
        (*_NDCG, *_MAP, "p@1", "p@3", "p@10", "recall@1", "recall@3", "recall@10", "mrr", "bep"),
        _trec_eval,
    ),
)


def golden(tool: Tool) -> dict[str, Any]:
    """Return the tool's version and its values for every case it can take."""
    return {
        "tool": tool.preset,
        "version": version(tool.package),
        "cases": [
            asdict(case) | {"values": {measure: tool.ask(case, measure) for measure in tool.measures}}
            for case in cases()
            if not (tool.one_list and len(case.sizes) > 1)
        ],
    }


def write(path: str | Path) -> list[Path]:
    """Write one JSON file for each tool that is installed; return the files."""
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for tool in TOOLS:
        if installed(tool.module):
            target = folder / f"{tool.preset}.json"
            found = golden(tool)
            lines = ",\n".join(json.dumps(case) for case in found.pop("cases"))
            target.write_text(json.dumps(found)[:-1] + ', "cases": [\n' + lines + "\n]}\n", encoding="utf-8")
            written.append(target)
    return written


def run(quick: bool = False) -> Table:
    """Print how far each preset stands from its tool on the golden cases; ``quick`` asks the fast tools only."""
    rows: list[Row] = []
    left_out: list[str] = []
    for tool in TOOLS:
        if not installed(tool.module):
            left_out.append(tool.module)
        elif not quick or tool.module in ("sklearn", "pytrec_eval"):
            found = golden(tool)
            answered = [
                (_ours(tool, case, measure), value)
                for case in found["cases"]
                for measure, value in case["values"].items()
                if value is not None and value != "error"
            ]
            distances = [abs(ours - theirs) for ours, theirs in answered if ours is not None]
            refused = len(answered) - len(distances)
            what = f"{tool.preset} {found['version']}: largest difference of {len(distances)} values"
            rows.append(Row(f"{what}, {refused} refused" if refused else what, max(distances), unit=""))
    return Table("golden", rows, left_out, ["python -m slatewise_papers.bench.golden_metrics FOLDER writes the values"])


def _ours(tool: Tool, case: dict[str, Any], measure: str) -> float | None:
    """Return the preset's value, or None where it refuses labels that the tool takes."""
    chosen = metrics.preset(tool.preset).parse(measure)
    try:
        return chosen(case["relevance"], case["scores"], case["qid"], case["ids"])
    except ValueError:
        return None


if __name__ == "__main__":
    for file in write(sys.argv[1]):
        print(file)
