"""The official figures of ten LETOR runs on OHSUMED, to the four decimals that were published."""

import lzma

import numpy as np
import pytest

from slatewise.metrics import evaluate, preset

pytestmark = pytest.mark.data


def read_part(path):
    with lzma.open(path, "rt") as file:
        fields = [line.split(maxsplit=2)[:2] for line in file]
    return np.array([float(label) for label, _ in fields]), np.array([qid for _, qid in fields])


def read_performance(path):
    """Lines ``name: value value ...``."""
    lines = (line.split(":") for line in path.read_text().splitlines() if ":" in line)
    return {name.strip(): [float(value) for value in values.split()] for name, values in lines}


@pytest.mark.parametrize("fold", range(1, 6))
@pytest.mark.parametrize("system", ["RankSVM", "RankBoost"])
def test_official_run(shared_data, system, fold):
    folder = shared_data / "ohsumed25"
    relevance, qid = read_part(folder / f"part{fold}.txt.xz")
    with lzma.open(folder / "official_runs" / f"{system}_fold{fold}_scores.txt.xz", "rt") as file:
        scores = np.array([float(line) for line in file])
    official = read_performance(folder / "official_runs" / f"{system}_fold{fold}_perf.txt")
    letor = preset("letor")
    measures = [letor.AP(), *map(letor.Precision, range(1, 17)), *map(letor.NDCG, range(1, 17))]
    found = list(evaluate(measures, relevance, scores, qid).values())
    expected = [*official["MAP"], *official["precision"], *official["NDCG"]]
    assert len(expected) == 33
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-5)
