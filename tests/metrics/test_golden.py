"""Each preset against the tool it is named after: stored values of the real tools."""

import json
from pathlib import Path

import numpy as np
import pytest

from slatewise.metrics import preset

FILES = sorted((Path(__file__).parent / "golden").glob("*.json"))
# Binary measures of labels that are not binary: the tool answers something, the preset refuses.
REFUSED = {
    ("catboost", "fractions", "auc"),
    ("sklearn", "one graded item", "map"),
    ("sklearn", "one graded item", "auc"),
    ("sklearn", "negative only", "auc"),
    ("sklearn", "random 12", "auc"),
    ("sklearn", "random 38", "map"),
    ("sklearn", "random 38", "auc"),
}


def test_every_tool_has_its_values():
    assert [file.stem for file in FILES] == ["catboost", "lightgbm", "sklearn", "trec_eval", "xgboost"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_preset_reproduces_its_tool(file):
    golden = json.loads(file.read_text(encoding="utf-8"))
    tool = preset(golden["tool"])
    for case in golden["cases"]:
        inputs = case["relevance"], case["scores"], case["qid"], case["ids"]
        for name, value in case["values"].items():
            measure = tool.parse(name)
            where = (tool.tool, case["name"], name)
            if value == "error" or where in REFUSED:
                with pytest.raises(ValueError, match=r"relevance: expected|lists of at least"):
                    measure(*inputs)
            elif value is None:
                assert np.isnan(measure(*inputs)), where
            else:
                assert measure(*inputs) == pytest.approx(value, rel=0, abs=1e-12), where
