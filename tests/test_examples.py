"""Every example runs, and says something."""

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import slatewise

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, tmp_path):
    done = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_slates_are_searched_in_the_unit_of_the_stage():
    example = runpy.run_path(str(EXAMPLES[0].parent / "rerank_any_scorer.py"))
    reranker = example["reranker"]
    assert reranker.n_stages_ == 1
    found = reranker.rank([25], k=len(reranker.item_ids_), stage=0)
    ids, scores = found.ids, found.scores
    np.testing.assert_allclose(example["scores"][0][np.searchsorted(reranker.item_ids_, ids[0])], scores[0], atol=1e-5)


def test_a_stage_that_did_not_help_is_not_searched(monkeypatch, capsys):
    class WithoutStages(slatewise.StructuredReranker):
        def fit(self, queries, items):
            self.set_params(epochs=1)
            super().fit(queries, items)
            self.n_stages_, self.pair_factors_ = 0, self.pair_factors_[:0]
            return self

    monkeypatch.setattr(slatewise, "StructuredReranker", WithoutStages, raising=False)
    runpy.run_path(str(EXAMPLES[0].parent / "rerank_any_scorer.py"))
    assert "slates" not in capsys.readouterr().out
