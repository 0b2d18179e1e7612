"""Names and presets make the measures they promise."""

from dataclasses import replace

import pytest

from slatewise.metrics import AP, AUC, NDCG, RR, BreakEven, MeanNDCG, MeanRank, Precision, Recall, parse, preset
from slatewise.metrics.presets import PRESETS


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("ndcg@10", NDCG(10)),
        ("ndcg", NDCG()),
        ("MAP", AP()),
        ("map@5", AP(5)),
        ("p@5", Precision(5)),
        ("precision@5", Precision(5)),
        ("recall@20", Recall(20)),
        ("mrr", RR()),
        ("mrr@10", RR(10)),
        ("auc", AUC()),
        ("bep", BreakEven()),
        ("mean_rank", MeanRank()),
        ("mean_ndcg", MeanNDCG()),
    ],
)
def test_parse(name, measure):
    assert parse(name) == measure
    assert parse(measure.name) == measure


def test_presets_differ_in_conventions_only():
    assert preset("slatewise").NDCG(10) == NDCG(10)
    assert preset("letor").NDCG(10) == NDCG(10, ties="input", discount="letor")
    assert preset("letor4").NDCG(10) == NDCG(10, ties="input", discount="letor", short="zero")
    assert parse("ndcg@10", preset("letor")) == preset("letor").NDCG(10)
    assert replace(preset("catboost").NDCG(3), gain="exp2").k == 3


@pytest.mark.parametrize("tool", PRESETS)
def test_every_measure_of_a_preset_can_be_made(tool):
    chosen = preset(tool)
    at_k = {"Precision": "p@3", "Recall": "recall@3", "AP": "map@3", "NDCG": "ndcg@3", "RR": "mrr@3"}
    whole = {"AUC": "auc", "BreakEven": "bep", "MeanRank": "mean_rank", "MeanNDCG": "mean_ndcg"}
    for label, name in (at_k | whole).items():
        if label in chosen.measures:
            assert chosen.parse(name).name == name
        else:
            with pytest.raises(ValueError, match=f"preset '{tool}': expected one of"):
                chosen.parse(name)
