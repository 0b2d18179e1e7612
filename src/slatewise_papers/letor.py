"""LETOR's official figures for its own runs: RankSVM and RankBoost on OHSUMED, five folds.

The package prints P@1..16, MAP and NDCG@1..16 for the scores it ships. Measuring the same scores under
``preset("letor")`` must give the same figures: gain 2^r - 1, discount 1 at ranks 1 and 2 and then 1/log2(rank),
ties in file order.
"""

from __future__ import annotations

from slatewise import datasets, metrics
from slatewise_papers.framework.reproduction import Reproduction, Row

DEPTHS = range(1, 17)


def run(data: str | None = None, quick: bool = False) -> Reproduction:
    """Measure the ten official runs; ``quick`` takes the first fold's two."""
    name = data or "ohsumed25"
    preset = metrics.preset("letor")
    measures = {
        **{f"P@{k}": preset.Precision(k) for k in DEPTHS},
        "MAP": preset.AP(),
        **{f"NDCG@{k}": preset.NDCG(k) for k in DEPTHS},
    }
    rows: list[Row] = []
    for official in datasets.load_official_runs(name)[: 2 if quick else None]:
        values = metrics.evaluate(measures.values(), official.relevance, official.scores, official.qid)
        rows.append(Row(official.name, dict(zip(measures, values.values(), strict=True)), dict(official.figures)))
    return Reproduction("LETOR 1.0 official runs", name, rows)
