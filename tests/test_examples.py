"""Every example runs, and says something."""

import runpy
from contextlib import chdir, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import sklearn

import slatewise

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@cache
def ran(name):
    """Names and output of an example, run as a script in an empty folder."""
    example = EXAMPLES[0].parent / f"{name}.py"
    told = StringIO()
    with TemporaryDirectory() as folder, chdir(folder), redirect_stdout(told), sklearn.config_context():
        names = runpy.run_path(str(example), run_name="__main__")
    return names, told.getvalue()


@pytest.mark.parametrize("name", [example.stem for example in EXAMPLES])
def test_example(name):
    assert ran(name)[1]


def test_slates_are_searched_in_the_unit_of_the_stage():
    example, _ = ran("rerank_any_scorer")
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
