"""What the command line's words mean: data by file or name, estimators by name, runs and judgements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from slatewise import data, metrics
from slatewise.data.records import Qrels, Ranking, Run
from slatewise.errors import DataError
from slatewise.rankings import rank_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slatewise.estimators.query_ranker import QueryRanker

_TABLE_ENDINGS = (".parquet", ".arrow", ".feather")


def make_estimator(system: str, params: Sequence[str]) -> QueryRanker:
    """Build the estimator a command names, with ``name=value`` parameters (JSON values, or plain text)."""
    from slatewise.estimators.best_feature import BestFeatureRanker

    systems: dict[str, type[QueryRanker]] = {"feature": BestFeatureRanker}
    if system not in systems:
        raise ValueError(f"system: expected one of {', '.join(systems)}, found {system!r}")
    chosen = systems[system]()
    for text in params:
        name, equals, value = text.partition("=")
        if not equals or name not in chosen.get_params():
            known = ", ".join(chosen.get_params())
            raise ValueError(f"--param: expected name=value with a name from {known}, found {text!r}")
        chosen.set_params(**{name: _json_or_text(value)})
    return chosen


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def read_ranking(name: str) -> Ranking:
    """Read graded rows: an SVMlight or LETOR file, a Parquet or Arrow file, or a named data set."""
    path = Path(name)
    if path.suffix in _TABLE_ENDINGS:
        return data.read_parquet(path, label="label", qid="qid", doc_id=None)
    if path.exists():
        return data.read_svmlight(path)
    from slatewise import datasets
    from slatewise.datasets.records import RankingSet

    if name not in datasets.names():
        raise ValueError(f"{name}: expected a file or one of the names that `slatewise datasets` lists, found neither")
    loaded = datasets.load(name, RankingSet)
    return Ranking(csr_array(loaded.X), loaded.y, loaded.qid, loaded.doc_ids)


def run_from_model(model: QueryRanker, ranking: Ranking, top: int) -> Run:
    """Rank every list and keep its best rows; documents without an id are named by their row."""
    scores = model.predict(ranking.dense())
    rankings = rank_rows(scores, ranking.qid).top(top)
    qid = np.repeat(rankings.ids, np.diff(rankings.offsets)).astype(str)
    return Run(qid, _doc_ids(ranking)[rankings.order], scores[rankings.order])


def evaluate(system: Path, judgements: str, measures: str, preset: str | None) -> dict[str, float]:
    """Measure a model on rows, or a run against judgements."""
    names = [name.strip() for name in measures.split(",")]
    tool = None if preset is None else metrics.preset(preset)
    parsed = [metrics.parse(name, tool) for name in names]
    if system.suffix == ".safetensors":
        from slatewise import load

        ranking = read_ranking(judgements)
        values = metrics.evaluate(
            parsed, ranking.y, load(system).predict(ranking.dense()), ranking.qid, _doc_ids(ranking)
        )
    else:
        values = metrics.evaluate_run(parsed, data.read_run(system), _read_judgements(judgements))
    return dict(zip(names, values.values(), strict=True))


def _read_judgements(name: str) -> Qrels:
    """Read qrels; a file of rows with ``qid:`` serves too, through its documents' ids."""
    path = Path(name)
    if path.exists() and path.suffix not in _TABLE_ENDINGS and not _has_query_tokens(path):
        return data.read_qrels(path)
    ranking = read_ranking(name)
    whole = ranking.y.astype(np.int64)
    if (whole != ranking.y).any():
        row = int(np.flatnonzero(whole != ranking.y)[0])
        raise ValueError(f"{name}: expected whole numbers as relevance, found {ranking.y[row]} in row {row}")
    return Qrels(ranking.qid.astype(str), _doc_ids(ranking), whole)


def _has_query_tokens(path: Path) -> bool:
    from slatewise.data._source import open_source

    with open_source(path) as source:
        for _, line in source.lines():
            if line.strip() and not line.lstrip().startswith(b"#"):
                return b"qid:" in line
    raise DataError(str(path), 1, 1, "judgements", "an empty file")


def _doc_ids(ranking: Ranking) -> Any:
    return np.arange(len(ranking.y)).astype(str) if ranking.doc_ids is None else ranking.doc_ids
