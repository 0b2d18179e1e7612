"""Tables 4 and 5 of Weston and Blitzer (2012): labels of images, with features instead of artists as queries.

Recall at 1, 5 and 10 (in percent), mean average precision and mean rank, all labels ranked, means over rows; settings
of every method are chosen on the validation rows by the mean of the three recalls. WSABIE is LaSR's stage t=0, and a
stage after it is taken only if it is better there. Each has the paper's S'S once, and once S'T, which can say that two
labels do not go together. "Cross-fitted": a stage that learns on scores of models that did not see the row; otherwise
only its lists are from such models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise import metrics
from slatewise.estimators.latent import LatentRanker
from slatewise.estimators.structured_reranker import StructuredReranker
from slatewise.papers._reproduction import Row
from slatewise.papers.cstar_scores import folds
from slatewise.papers.lasr_baselines import one_vs_rest, rank_svm
from slatewise.papers.lasr_labels import AnnotationProblem, LabelledPart, load_annotation
from slatewise.progress import tell, track

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Orders: TypeAlias = Callable[[Floats], Ints]
"""From rows of features to all labels, best first."""
Settings: TypeAlias = dict[str, Any]

PairName: TypeAlias = Literal["gram", "bilinear"]

OVR, SVM, WSABIE, LASR = "One-vs-Rest", "Rank SVM", "WSABIE", "LaSR (t=1)"
STAGES: Mapping[PairName, str] = {"gram": LASR, "bilinear": "LaSR (t=1), S'T"}
CROSS_FITTED: Mapping[PairName, str] = {
    "gram": "LaSR (t=1), cross-fitted, S'S",
    "bilinear": "LaSR (t=1), cross-fitted, S'T",
}
TABLE_5: Mapping[str, Mapping[str, float]] = {
    OVR: {"r@1": 2.83, "r@5": 8.48, "r@10": 13.2, "MAP": 0.065, "mean rank": 667},
    SVM: {"r@1": 5.35, "r@5": 14.1, "r@10": 19.3, "MAP": 0.102, "mean rank": 804},
    WSABIE: {"r@1": 8.39, "r@5": 19.6, "r@10": 26.3, "MAP": 0.144, "mean rank": 626},
    LASR: {"r@1": 9.45, "r@5": 22.1, "r@10": 29.1, "MAP": 0.161, "mean rank": 523},
}
DEPTHS = (1, 5, 10)
EXAMPLES, SHOWN, LIST_LENGTH = 8, 10, 20
_MEASURES = {
    **{f"r@{k}": metrics.Recall(k) for k in DEPTHS},
    "MAP": metrics.AP(),
    "mean rank": metrics.MeanRank(),
}


@dataclass(frozen=True)
class Effort:
    """How much of everything is tried."""

    features: int
    n_components: int
    strengths: tuple[float, ...]
    steps: tuple[float, ...]
    norms: tuple[float, ...]
    stage_steps: tuple[float, ...]
    stage_norms: tuple[float, ...]
    scales: tuple[float, ...]
    """Of a base under a stage."""
    epochs: int


FULL = Effort(
    1024, 100, (3.0, 10.0, 30.0, 100.0), (0.03, 0.1), (2.0, 4.0, 8.0), (0.03, 0.1), (1.0, 2.0), (2.0, 4.0), 30
)
QUICK = Effort(40, 8, (10.0,), (0.1,), (4.0,), (0.1,), (1.0,), (4.0,), 4)


def annotation_tables(name: str, quick: bool, seed: int) -> list[Row]:
    """Load the rows, run Table 5 and show Table 4's examples."""
    effort = QUICK if quick else FULL
    return table_5(load_annotation(name, effort.features, quick, seed), effort, seed)


def table_5(problem: AnnotationProblem, effort: Effort, seed: int) -> list[Row]:
    """Fit every method, compare the stages with WSABIE, and show some rows."""
    first = [{"learning_rate": step, "max_norm": norm} for step in effort.steps for norm in effort.norms]
    wsabie, settings = _best_latent(problem, _latent(problem, effort, seed, 1, first))
    systems = {
        OVR: _best(problem, _regressions(problem, effort)),
        SVM: _best(problem, _machines(problem, effort, seed)),
        WSABIE: _orders(wsabie),
        **{name: _on_top(problem, effort, seed, wsabie, settings, pair) for pair, name in STAGES.items()},
    }
    test = problem.test
    orders = {system: of(test.X) for system, of in systems.items()}
    base = cross_fitted(problem, effort, seed, wsabie, settings)
    orders |= {name: _reranked(problem, effort, seed, base, pair) for pair, name in CROSS_FITTED.items()}
    values = {system: per_row(of, test.Y) for system, of in orders.items()}
    rows = [
        Row(system, {name: float(of.mean()) for name, of in found.items()}, TABLE_5.get(system))
        for system, found in values.items()
    ]
    pairs = [*((name, WSABIE) for name in (*STAGES.values(), *CROSS_FITTED.values())), (WSABIE, SVM)]
    rows += [_difference(one, other, values) for one, other in pairs]
    return rows + examples(problem, orders)


def cross_fitted(
    problem: AnnotationProblem, effort: Effort, seed: int, wsabie: LatentRanker, settings: Settings
) -> Floats:
    """Return scores of the training rows by models that did not see them, then of validation and test rows."""
    X, Y = problem.train.X, problem.train.Y
    scores = np.empty(Y.shape)
    for kept, left_out in track(list(folds(len(X), seed=seed)), "folds"):
        part = AnnotationProblem(
            problem.name, LabelledPart(X[kept], Y[kept]), problem.validation, problem.test, problem.label_names
        )
        ranker, _ = next(_latent(part, effort, seed, 1, [settings]))
        scores[left_out] = _scores(ranker, X[left_out])
    return np.vstack([scores, _scores(wsabie, problem.validation.X), _scores(wsabie, problem.test.X)])


def per_row(orders: Ints, Y: Floats) -> dict[str, Floats]:
    """Return every measure of every row."""
    scores = np.empty(orders.shape)
    np.put_along_axis(scores, orders, -np.arange(orders.shape[1], dtype=np.float64)[None], axis=1)
    scale = {name: 100.0 if name.startswith("r@") else 1.0 for name in _MEASURES}
    return {name: scale[name] * measure.per_list(Y, scores) for name, measure in _MEASURES.items()}


def examples(problem: AnnotationProblem, orders: Mapping[str, Ints]) -> list[Row]:
    """Show the first labels of both stages for rows where these differ; right labels stand in brackets."""
    Y = problem.test.Y
    lists = {name: orders[name][:, :SHOWN] for name in (WSABIE, LASR)}
    differ = [row for row in range(len(Y)) if set(lists[WSABIE][row]) != set(lists[LASR][row])]
    rows: list[Row] = []
    for row in differ[:EXAMPLES]:
        for name, of in lists.items():
            labels = [_shown(problem.label_names[int(label)], bool(Y[row, label])) for label in of[row]]
            right = {"right": float(Y[row, of[row]].sum()), "labels": float(Y[row].sum())}
            rows.append(Row(f"Table 4, test row {row}, {name}", right, None, tuple(labels)))
    return rows


def _shown(label: str, right: bool) -> str:
    return f"[{label}]" if right else label


def _regressions(problem: AnnotationProblem, effort: Effort) -> Iterator[Orders]:
    for strength in track(effort.strengths, "one-vs-rest"):
        yield _sorted_by(one_vs_rest(problem.train.X, problem.train.Y, strength))


def _machines(problem: AnnotationProblem, effort: Effort, seed: int) -> Iterator[Orders]:
    for step in track(effort.steps, "rank SVM"):
        for norm in effort.norms:
            yield _sorted_by(rank_svm(problem.train.X, problem.train.Y, step, norm, effort.epochs, seed))


def _latent(
    problem: AnnotationProblem, effort: Effort, seed: int, stages: int, choices: list[Settings]
) -> Iterator[tuple[LatentRanker, Settings]]:
    k = min(LIST_LENGTH, problem.train.Y.shape[1])
    for settings in track(choices, f"settings of {stages} stages"):
        ranker = LatentRanker(
            effort.n_components, stages, k, epochs=effort.epochs, callbacks=[tell], random_state=seed, **settings
        )
        yield ranker.fit(problem.train.X, problem.train.Y), settings


def _on_top(
    problem: AnnotationProblem, effort: Effort, seed: int, wsabie: LatentRanker, settings: Settings, pair: PairName
) -> Orders:
    """Return the order by stage t=1, or by t=0 where that is better."""
    choice = {**settings, "pair": pair, "stage_norm": "auto"}
    lasr, _ = next(_latent(problem, effort, seed, 2, [choice]))
    return _best(problem, iter([_orders(wsabie), _orders(lasr)]))


def _reranked(problem: AnnotationProblem, effort: Effort, seed: int, base: Floats, pair: PairName) -> Ints:
    """Return the test rows' labels by the best of several stages on ``base``, or by the base itself."""
    rows, labels = np.nonzero(problem.train.Y)
    n_labels, first = problem.train.Y.shape[1], len(problem.train.X)
    last = first + len(problem.validation.X)
    validation, test = np.arange(first, last), np.arange(last, len(base))
    best, chosen = _mean_recall(_sorted(base[validation]), problem.validation), _sorted(base[test])
    choices = list(product(effort.scales, effort.stage_norms, effort.stage_steps))
    for scale, norm, step in track(choices, f"stages on a base, {pair}"):
        reranker = StructuredReranker(
            base, effort.n_components, pair=pair, k=min(LIST_LENGTH, n_labels), base_scale=scale, learning_rate=step,
            max_norm=norm, epochs=effort.epochs, random_state=seed,
        ).fit(rows, labels)  # fmt: skip
        quality = _mean_recall(reranker.rank(validation, n_labels)[0], problem.validation)
        if quality > best:
            best, chosen = quality, reranker.rank(test, n_labels)[0]
    return chosen


def _best(problem: AnnotationProblem, candidates: Iterator[Orders]) -> Orders:
    return max(candidates, key=lambda orders: _quality(orders, problem.validation))


def _best_latent(
    problem: AnnotationProblem, candidates: Iterator[tuple[LatentRanker, Settings]]
) -> tuple[LatentRanker, Settings]:
    return max(candidates, key=lambda one: _quality(_orders(one[0]), problem.validation))


def _quality(orders: Orders, part: LabelledPart) -> float:
    return _mean_recall(orders(part.X), part)


def _mean_recall(orders: Ints, part: LabelledPart) -> float:
    found = per_row(orders, part.Y)
    return float(np.mean([found[f"r@{k}"].mean() for k in DEPTHS]))


def _orders(ranker: LatentRanker) -> Orders:
    return lambda X: ranker.rank(X, len(ranker.item_ids_))[0]


def _scores(ranker: LatentRanker, X: Floats) -> Floats:
    labels, values = ranker.rank(X, len(ranker.item_ids_))
    scores = np.empty(labels.shape)
    np.put_along_axis(scores, labels, values.astype(np.float64), axis=1)
    return scores


def _sorted_by(scores: Callable[[Floats], Floats]) -> Orders:
    return lambda X: _sorted(scores(X))


def _sorted(scores: Floats) -> Ints:
    return np.argsort(-scores, axis=1, kind="stable")


def _difference(one: str, other: str, values: Mapping[str, Mapping[str, Floats]]) -> Row:
    measured: dict[str, float] = {}
    for name in _MEASURES:
        test = metrics.randomisation_test(values[one][name], values[other][name], random_state=0)
        measured |= {name: test.difference, f"{name}_p": test.p_value}
    known = one in TABLE_5 and other in TABLE_5
    paper = {name: round(TABLE_5[one][name] - TABLE_5[other][name], 3) for name in _MEASURES} if known else None
    return Row(f"{one} minus {other}", measured, paper)
