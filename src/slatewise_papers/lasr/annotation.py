"""Tables 4 and 5 of Weston and Blitzer (2012): labels of images, with features instead of artists as queries.

Recall at 1, 5 and 10 (in percent), mean average precision and mean rank, all labels ranked, means over rows. Every
method is fitted to the training rows. Its settings, which stand in its row, are chosen on the validation rows by the
mean of the three recalls, one after the other: a setting begins at the first value of its grid and tries the others
while the rest stay. Epochs are among them, for WSABIE and the stages on it those after which recall at 5 is best.
Fixed are the width n, the lists of 20 labels and their weights 1/j.

WSABIE is LaSR's stage t=0. A stage t=1 adds S, so WSABIE of twice the width stands beside it (with the narrower one's
step, the norm chosen anew). Each stage has the paper's S'S once, and once S'T, which can say that two labels do not go
together; one more row is the best of all stages on the validation rows. "Cross-fitted": a stage that learns on scores
of models that did not see the row; otherwise only its lists are from such models. Where ``kept`` is 0 no such stage was
better than WSABIE on the validation rows by more than a standard error, and WSABIE's figures stand there. A row "A
minus B" is a difference in points, ``_relative`` in percent of B, with p values of a randomization test over rows, or
over the drawers of omniglot901.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeAlias, TypeVar

import numpy as np

from slatewise import metrics
from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.progress import tell, track
from slatewise.factors.pair_terms import Bilinear, Semidefinite
from slatewise.factors.settings import Stages
from slatewise.latent.reranker import StructuredReranker
from slatewise_papers.framework.arrays import Scorer
from slatewise_papers.framework.reproduction import Published, Row
from slatewise_papers.framework.statistics import compared, sums_of_groups
from slatewise_papers.lasr.baselines import one_vs_rest, rank_svm
from slatewise_papers.lasr.labels import AnnotationProblem, LabelledPart
from slatewise_papers.lasr.stages import LIST_LENGTH
from slatewise_papers.lasr.wsabie import Annotator, best_labels, first_stage, next_stage, out_of_fold

Grids: TypeAlias = Mapping[str, tuple[float, ...]]
Settings: TypeAlias = dict[str, float]
PairName: TypeAlias = Literal["semidefinite", "bilinear"]
T = TypeVar("T")

OVR, SVM, WSABIE, LASR = "One-vs-Rest", "Rank SVM", "WSABIE", "LaSR (t=1)"
CHOSEN = "LaSR (t=1), chosen on validation"
STAGES: Mapping[PairName, str] = {"semidefinite": LASR, "bilinear": "LaSR (t=1), S'T"}
CROSS_FITTED: Mapping[PairName, str] = {
    "semidefinite": "LaSR (t=1), cross-fitted, S'S",
    "bilinear": "LaSR (t=1), cross-fitted, S'T",
}
TERMS = {"semidefinite": Semidefinite, "bilinear": Bilinear}
TABLE_5 = Published(
    ("r@1", "r@5", "r@10", "MAP", "mean rank"),
    {
        OVR: (2.83, 8.48, 13.2, 0.065, 667),
        SVM: (5.35, 14.1, 19.3, 0.102, 804),
        WSABIE: (8.39, 19.6, 26.3, 0.144, 626),
        LASR: (9.45, 22.1, 29.1, 0.161, 523),
    },
    digits=3,
)
DEPTHS = (1, 5, 10)
EXAMPLES, SHOWN = 8, 10
_RECALLS = {f"r@{k}": metrics.Recall(k) for k in DEPTHS}
_MEASURES = {**_RECALLS, "MAP": metrics.AP(), "mean rank": metrics.MeanRank()}


@dataclass(frozen=True)
class Effort:
    """How much of everything is tried; grids in the order in which they are gone through."""

    features: int
    n_components: int
    epochs: int
    """At most."""
    regression: Grids
    machine: Grids
    wsabie: Grids
    stage: Grids
    on_base: Grids
    """Of a stage on cross-fitted scores."""


FULL = Effort(
    1024,
    100,
    30,
    {"strength": (3.0, 0.5, 10.0, 30.0)},
    {"step": (0.03, 0.01, 0.1), "norm": (8.0, 4.0, 16.0, 32.0), "epochs": (15.0, 5.0, 30.0)},
    {"step": (0.1, 0.03, 0.3, 1.0), "norm": (2.0, 1.0, 4.0, 8.0)},
    {"step": (0.1, 0.03, 0.3), "norm": (1.0, 0.5, 2.0)},
    {"scale": (4.0, 2.0, 8.0), "step": (0.1, 0.03), "norm": (1.0, 0.5, 2.0), "epochs": (4.0, 2.0, 8.0)},
)
QUICK = Effort(
    40,
    8,
    4,
    {"strength": (10.0,)},
    {"step": (0.1,), "norm": (4.0,), "epochs": (4.0,)},
    {"step": (0.1,), "norm": (4.0,)},
    {"step": (0.1,), "norm": (1.0,)},
    {"scale": (4.0,), "step": (0.1,), "norm": (1.0,), "epochs": (2.0,)},
)


@dataclass(frozen=True, eq=False)
class Trial(Generic[T]):
    """Something fitted, and how good it is on each of the validation rows."""

    settings: Settings
    fitted: T
    recalls: Floats

    @property
    def quality(self) -> float:
        """What is chosen by."""
        return float(self.recalls.mean())


@dataclass(frozen=True, eq=False)
class _System:
    """A row of Table 5: scores of the test rows, recall on each of the validation rows, notes."""

    scores: Floats
    recalls: Floats
    notes: Mapping[str, float] = field(default_factory=dict[str, float])


def table_5(problem: AnnotationProblem, effort: Effort, seed: int) -> list[Row]:
    """Fit every method, compare the stages with WSABIE, and show Table 4's examples."""
    test, n = problem.test, effort.n_components
    wsabie = _wsabie(problem, effort, n, effort.wsabie, seed)
    wide = f"{WSABIE}, n={2 * n}"
    grids = {"step": (wsabie.settings["step"],), "norm": effort.wsabie["norm"]}
    systems = {
        OVR: _linear(problem, _regression(problem, effort)),
        SVM: _linear(problem, _machine(problem, effort, seed)),
        WSABIE: _latent(problem, wsabie),
        wide: _latent(problem, _wsabie(problem, effort, 2 * n, grids, seed)),
    }
    base = (
        out_of_fold(problem, wsabie.fitted, seed),
        *(wsabie.fitted.scores(part.X) for part in (problem.validation, test)),
    )
    before = systems[WSABIE]
    tried = {STAGES[pair]: _stage(problem, effort, wsabie.fitted, base, pair, seed) for pair in STAGES}
    systems |= {name: _kept(_latent(problem, trial), before) for name, trial in tried.items()}
    systems |= {name: _kept(_on_base(problem, effort, base, pair, seed), before) for pair, name in CROSS_FITTED.items()}
    later = (*STAGES.values(), *CROSS_FITTED.values())
    systems[CHOSEN] = max((systems[name] for name in later), key=lambda system: system.recalls.mean())
    orders = {name: best_labels(system.scores) for name, system in systems.items()}
    values = {name: per_row(of, test.Y) for name, of in orders.items()}
    rows = [
        Row(
            name,
            {of: float(found.mean()) for of, found in values[name].items()} | dict(system.notes),
            TABLE_5.of(name),
        )
        for name, system in systems.items()
    ]
    pairs = [*((name, WSABIE) for name in (*later, CHOSEN)), (LASR, wide), (WSABIE, SVM)]
    rows += [_difference(one, other, values, test.group) for one, other in pairs]
    shown = LASR if systems[LASR].notes["kept"] else f"{LASR} though not kept"
    lists = {WSABIE: orders[WSABIE], shown: best_labels(tried[LASR].fitted.scores(test.X))}
    return rows + examples(problem, lists)


def choose(grids: Grids, fit: Callable[[Settings], T], recalls: Callable[[T], Floats], what: str = "") -> Trial[T]:
    """Go through the grids one after the other, from the first value of each; of equals the first is kept."""

    def attempt(settings: Settings) -> Trial[T]:
        fitted = fit(settings)
        return Trial(settings, fitted, recalls(fitted))

    best = attempt({name: values[0] for name, values in grids.items()})
    for name, value in track([(name, value) for name, values in grids.items() for value in values[1:]], what):
        trial = attempt(best.settings | {name: value})
        best = trial if trial.quality > best.quality else best
    return best


def per_row(orders: Ints, Y: Floats) -> dict[str, Floats]:
    """Return every measure of every row."""
    scores = np.empty(orders.shape)
    np.put_along_axis(scores, orders, -np.arange(orders.shape[1], dtype=np.float64)[None], axis=1)
    scale = {name: 100.0 if name in _RECALLS else 1.0 for name in _MEASURES}
    return {name: scale[name] * measure.per_list(Y, scores) for name, measure in _MEASURES.items()}


def mean_recall(scores: Floats, part: LabelledPart) -> Floats:
    """Return, of each row, what everything is chosen by."""
    return 100.0 * np.mean([measure.per_list(part.Y, scores) for measure in _RECALLS.values()], axis=0)


def examples(problem: AnnotationProblem, orders: Mapping[str, Ints]) -> list[Row]:
    """Show the first labels of two stages, rows where these differ first; right labels stand in brackets."""
    Y = problem.test.Y
    lists = {name: of[:, :SHOWN] for name, of in orders.items()}
    one, other = (np.sort(of, axis=1) for of in lists.values())
    rows: list[Row] = []
    for row in np.argsort((one == other).all(axis=1), kind="stable")[:EXAMPLES].tolist():
        for name, of in lists.items():
            labels = [_shown(problem.label_names[int(label)], bool(Y[row, label])) for label in of[row]]
            right = {"right": float(Y[row, of[row]].sum()), "labels": float(Y[row].sum())}
            rows.append(Row(f"Table 4, test row {row}, {name}", right, None, tuple(labels)))
    return rows


def _shown(label: str, right: bool) -> str:
    return f"[{label}]" if right else label


def _regression(problem: AnnotationProblem, effort: Effort) -> Trial[Scorer]:
    X, Y = problem.train.X, problem.train.Y
    return choose(effort.regression, lambda at: one_vs_rest(X, Y, at["strength"]), _recalls_of(problem), OVR)


def _machine(problem: AnnotationProblem, effort: Effort, seed: int) -> Trial[Scorer]:
    def fit(at: Settings) -> Scorer:
        return rank_svm(problem.train.X, problem.train.Y, at["step"], at["norm"], int(at["epochs"]), seed)

    return choose(effort.machine, fit, _recalls_of(problem), SVM)


def _wsabie(problem: AnnotationProblem, effort: Effort, width: int, grids: Grids, seed: int) -> Trial[Annotator]:
    def fit(at: Settings) -> Annotator:
        return first_stage(problem, width, at["step"], at["norm"], effort.epochs, seed)

    return choose(grids, fit, lambda fitted: _recalls_of(problem)(fitted.scores), f"WSABIE, n={width}")


def _stage(
    problem: AnnotationProblem, effort: Effort, first: Annotator, base: tuple[Floats, ...], pair: PairName, seed: int
) -> Trial[Annotator]:
    lists = best_labels(np.vstack(base[:2]), LIST_LENGTH)

    def fit(at: Settings) -> Annotator:
        return next_stage(problem, first, lists, TERMS[pair], at["step"], at["norm"], effort.epochs, seed)

    return choose(effort.stage, fit, lambda fitted: _recalls_of(problem)(fitted.scores), STAGES[pair])


def _on_base(
    problem: AnnotationProblem, effort: Effort, base: tuple[Floats, ...], pair: PairName, seed: int
) -> _System:
    """Choose a stage on scores of the training rows by models that did not see them."""
    rows, labels = np.nonzero(problem.train.Y)
    scores = np.vstack(base)
    validation, test = np.split(np.arange(len(scores)), np.cumsum([len(part) for part in base[:2]]))[1:]

    def fit(at: Settings) -> StructuredReranker:
        stages = Stages(k=min(LIST_LENGTH, scores.shape[1]), pair=pair, learning_rate=at["step"], max_norm=at["norm"])
        reranker = StructuredReranker(
            scores,
            n_components=effort.n_components,
            stages=stages,
            base_scale=at["scale"],
            epochs=int(at["epochs"]),
            validation_fraction=0.0,
            random_state=seed,
        )
        return reranker.fit(rows, labels, callbacks=[tell])

    def recalls(fitted: StructuredReranker) -> Floats:
        return mean_recall(_all_scores(fitted, validation), problem.validation)

    trial = choose(effort.on_base, fit, recalls, CROSS_FITTED[pair])
    return _System(_all_scores(trial.fitted, test), trial.recalls, trial.settings)


def _all_scores(reranker: StructuredReranker, rows: Ints) -> Floats:
    return reranker.scores(rows, reranker.item_ids_).astype(np.float64)


def _recalls_of(problem: AnnotationProblem) -> Callable[[Scorer], Floats]:
    return lambda scores: mean_recall(scores(problem.validation.X), problem.validation)


def _linear(problem: AnnotationProblem, trial: Trial[Scorer]) -> _System:
    return _System(trial.fitted(problem.test.X), trial.recalls, trial.settings)


def _latent(problem: AnnotationProblem, trial: Trial[Annotator]) -> _System:
    notes = trial.settings | {"epochs": float(trial.fitted.epochs)}
    return _System(trial.fitted.scores(problem.test.X), trial.recalls, notes)


def _kept(stage: _System, before: _System) -> _System:
    """Return the stage, or the one before where the stage's gain is within a standard error of nothing.

    Its settings were chosen on the same rows, so a gain may be luck.
    """
    gain = stage.recalls - before.recalls
    if gain.mean() > gain.std() / np.sqrt(len(gain)):
        return _System(stage.scores, stage.recalls, {**stage.notes, "kept": 1.0})
    return _System(before.scores, before.recalls, {"kept": 0.0})


def _difference(one: str, other: str, values: Mapping[str, Mapping[str, Floats]], group: Ints) -> Row:
    """Compare, with signs flipped of whole groups of rows, which are alike."""
    ours, theirs = ([sums_of_groups(values[name][of], group) for of in _MEASURES] for name in (one, other))
    measured = compared(_MEASURES, ours, theirs)
    for name in _RECALLS:
        measured[f"{name}_relative"] = 100.0 * measured[name] / max(float(values[other][name].mean()), 1e-12)
    return Row(f"{one} minus {other}", measured, TABLE_5.gain(one, other, (*_RECALLS,)))
