"""Several measures at once, on arrays or on a run against judgments; and a measure as a scikit-learn scorer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Bools, Floats, Ints
from slatewise.metrics.conventions import Array
from slatewise.metrics.lists import Scored, read_lists
from slatewise.metrics.measure import Measure, list_values, mean
from slatewise.metrics.presets import parse
from slatewise.metrics.runs import Missing, QrelsInput, RunInput, continued, read_run
from slatewise.metrics.standings import Engine


def evaluate(
    measures: Iterable[Measure | str],
    relevance: ArrayLike,
    scores: ArrayLike,
    qid: ArrayLike | None = None,
    ids: ArrayLike | None = None,
    *,
    group: ArrayLike | None = None,
    engine: Engine = "auto",
) -> dict[str, float]:
    """Return the mean over lists of several measures; scores are sorted once.

    Parameters
    ----------
    measures : iterable of Measure or str
        Objects, or names for :func:`slatewise.metrics.parse`.
    relevance, scores, qid, ids, group, engine
        As in :meth:`Measure.per_list`.

    Examples
    --------
    >>> evaluate(["ndcg@2", "map"], [[1, 0, 1]], [[0.9, 0.5, 0.1]])
    {'ndcg@2': 0.613..., 'map': 0.833...}
    """
    chosen = _named(measures)
    values = list_values(list(chosen.values()), read_lists(relevance, scores, qid, ids, group), engine)
    return {name: mean(value) for name, value in zip(chosen, values, strict=True)}


@dataclass(frozen=True, eq=False)
class PerQuery:
    """One value per query and measure: ``values[name][i]`` belongs to query ``qid[i]``."""

    qid: Array
    values: dict[str, Floats]


def evaluate_run(
    measures: Iterable[Measure | str],
    run: RunInput,
    qrels: QrelsInput,
    *,
    missing: Missing = "skip",
    engine: Engine = "auto",
) -> dict[str, float]:
    """Return the mean over queries of several measures of a run against judgements.

    A retrieved item without a judgment has relevance 0. A relevant item that was not retrieved has no rank: it counts
    in recall's, AP's and break-even's R and in NDCG's best order; AUC and mean rank refuse it. Queries of the run that
    have no judgments are left out; how many were left out of either side is a
    :class:`~slatewise.core.errors.DataWarning`.

    Parameters
    ----------
    measures : iterable of Measure or str
        Objects, or names for :func:`slatewise.metrics.parse`.
    run : what a system retrieved
        ``{qid: {document: score}}``; or an object with arrays ``qid``, ``doc_ids`` and ``scores``; or a tuple of these
        three arrays; or arrays by name, or a pandas, polars or Arrow frame: a column ``qid`` (or ``query_id``,
        ``query``), one ``doc_id`` (``doc_ids``, ``docno``, ``item``) and one ``score`` (``scores``).
    qrels : the judgments
        In the same forms, with ``relevance`` (``rel``, ``label``) for the scores.
    missing : {"skip", "zero"}
        A judged query that the run lacks is left out (trec_eval), or stands for an empty answer (trec_eval -c), which
        is 0 for every measure of a query with relevant items. With "zero" the run may be empty.
    engine : {"auto", "numpy", "compiled"}
        As in :meth:`Measure.per_list`.

    Examples
    --------
    >>> evaluate_run(["recall@5"], {"q": {"a": 0.9, "b": 0.3}}, {"q": {"a": 1, "z": 1}})
    {'recall@5': 0.5}
    """
    found = evaluate_queries(measures, run, qrels, missing=missing, engine=engine)
    return {name: mean(value) for name, value in found.values.items()}


def evaluate_queries(
    measures: Iterable[Measure | str],
    run: RunInput,
    qrels: QrelsInput,
    *,
    missing: Missing = "skip",
    engine: Engine = "auto",
) -> PerQuery:
    """Measure every query of a run; parameters as in :func:`evaluate_run`.

    Examples
    --------
    >>> found = evaluate_queries(["mrr"], {"q": {"a": 0.9, "b": 0.3}}, {"q": {"b": 1}})
    >>> found.qid.tolist(), found.values["mrr"].tolist()
    (['q'], [0.5])
    """
    return _of_queries(measures, run, qrels, missing, engine)[0]


@dataclass(frozen=True, eq=False)
class Ends:
    """Where the lists of a run end, and what lies behind that."""

    lengths: Ints
    """Documents of each list; 0 where a query has none."""
    n_missing: Ints
    """Relevant documents that each list lacks."""
    too_early: dict[str, Bools]
    """By measure, the lists that would get another value if what they lack came right after their ends."""


def evaluate_with_ends(
    measures: Iterable[Measure | str], run: RunInput, qrels: QrelsInput, missing: Missing
) -> tuple[PerQuery, Ends]:
    """Measure every query as :func:`evaluate_queries` does, and find the lists that end too early for a measure."""
    found, chosen, scored = _of_queries(measures, run, qrels, missing, "auto")
    longer, n_missing = continued(scored)
    others = zip(chosen, list_values(list(chosen.values()), longer, "auto"), strict=True)
    too_early = {
        name: ~np.isclose(found.values[name], values, rtol=1e-12, atol=0.0, equal_nan=True) for name, values in others
    }
    return found, Ends(scored.lengths, n_missing, too_early)


def _of_queries(
    measures: Iterable[Measure | str], run: RunInput, qrels: QrelsInput, missing: Missing, engine: Engine
) -> tuple[PerQuery, dict[str, Measure], Scored]:
    chosen = _named(measures)
    qid, scored = read_run(run, qrels, missing)
    values = list_values(list(chosen.values()), scored, engine)
    return PerQuery(qid, dict(zip(chosen, values, strict=True))), chosen, scored


def _named(measures: Iterable[Measure | str]) -> dict[str, Measure]:
    if isinstance(measures, str | Measure):
        raise TypeError(f"measures: expected several, such as [{measures!r}], found {measures!r}")
    pairs: Sequence[tuple[str, Measure]] = [
        (found, parse(found)) if isinstance(found, str) else (found.name, found) for found in measures
    ]
    chosen = dict(pairs)
    if len(chosen) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"measures: expected different names, found {twice!r} twice; evaluate them in two calls")
    return chosen


class Predictor(Protocol):
    """What a scorer needs of an estimator."""

    def predict(self, X: ArrayLike, /) -> ArrayLike:
        """Return one score per row."""
        ...


@dataclass(frozen=True)
class ListScorer:
    """Call as ``scorer(estimator, X, y, qid=qid)``; larger is better, so mean rank is negated."""

    measure: Measure
    sign: float = 1.0

    def __call__(
        self,
        estimator: Predictor,
        X: ArrayLike,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> float:
        """Score the predictions of an estimator list by list, by ``qid`` or the sizes of the lists."""
        if qid is None and group is None:
            raise ValueError(
                f"qid: the {self.measure.name} scorer needs the list of every row; pass qid, and under GridSearchCV "
                "and its like first call sklearn.set_config(enable_metadata_routing=True)"
            )
        return self.sign * self.measure(y, estimator.predict(X), qid, group=group)

    def get_metadata_routing(self) -> object:
        """Tell scikit-learn that ``qid`` belongs to this scorer."""
        # scikit-learn takes most of a second to import, and only its users get here.
        from sklearn.utils.metadata_routing import MetadataRequest

        request: Any = MetadataRequest(owner=self)  # its methods carry no types
        request.score.add_request(param="qid", alias=True)
        return request


def scorer(measure: Measure | str) -> ListScorer:
    """Make a scikit-learn scorer from a measure or its name.

    Examples
    --------
    >>> class Identity:
    ...     def predict(self, X):
    ...         return [row[0] for row in X]
    >>> scorer("mrr")(Identity(), [[3.0], [2.0], [1.0]], [0, 1, 0], qid=[7, 7, 7])
    0.5
    """
    chosen = parse(measure) if isinstance(measure, str) else measure
    return ListScorer(chosen, -1.0 if chosen.smaller_is_better else 1.0)
