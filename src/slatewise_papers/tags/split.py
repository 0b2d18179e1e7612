"""One split of one data set: every system fitted, ranked and questioned, one line of figures per test row.

"Known" and "unknown" say whether a model knows how many labels of a test row are right; precision is always taken at
that number. c-star asks by its margin rule; all others by uncertainty sampling, which is that rule without pairs.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from slatewise import metrics
from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.progress import track
from slatewise.cstar.ranker import CStarRanker
from slatewise.labeling import GivenLogOdds, LabelRanker, LabelRows, simulate
from slatewise_papers.cstar.data import LabelProblem
from slatewise_papers.cstar.likelihood import LikelihoodGivenK
from slatewise_papers.framework.arrays import dense
from slatewise_papers.framework.running import installed
from slatewise_papers.tags.peers import Found, Part, boosted_trees, chains, mlknn, timed, tuned_logistic

FIGURES = ("Q0", "Q1", "Q5", "Q10", "MAP")
"""Break-even precision after this number of questions, and average precision before any, of every test row."""
CSTAR, BASE, PRETRAINED = "c-star", "own base", "pretrained likelihood as it was"
LOGISTIC, CHAINS, MLKNN, TREES = "tuned logistic", "ten chains on the own base", "ML-kNN", "LightGBM"
NETWORK, ON_NETWORK = "network alone", "c-star on the network"
MANY_LABELS = 100
"""With more, one classifier of trees per label takes its time."""
BASE_SETTINGS, CSTAR_SETTINGS, PRETRAINED_SETTINGS = 8, 17, 11
"""At most: strengths of the base; with as it is, 3 strengths without a core, 2 cores of 5 labels, one of 8, and 2 other
strengths; of the pretrained 5 of its logistic, 2 cores, as it is and 3 strengths."""


class Measured(NamedTuple):
    """What a system came to on one split."""

    figures: Floats
    """(test rows, FIGURES)"""
    n_settings: int
    seconds: float


@dataclass(frozen=True, eq=False)
class SplitResult:
    """All systems on the same test rows."""

    rows: Ints
    """Numbers of the test rows in the data set; those without any label are left out."""
    systems: dict[str, Measured]


@dataclass(frozen=True, eq=False)
class _Scored:
    """A fitted ranker whose label scores are there already, so that features, sparse or not, are read once."""

    ranker: LabelRanker

    @property
    def core_(self) -> Ints:
        return self.ranker.core_

    @property
    def pair_(self) -> Floats:
        return self.ranker.pair_

    def label_scores(self, X: ArrayLike) -> Floats:
        return np.asarray(X, dtype=np.float64)

    @property
    def label_margins(self) -> Callable[..., Floats]:
        return self.ranker.label_margins

    @property
    def needs_count(self) -> bool:
        return self.ranker.needs_count


Systems: TypeAlias = Iterator[tuple[str, Measured]]


def run_split(
    problem: LabelProblem, seed: int, systems: Callable[[LabelProblem, Part, Floats], Systems]
) -> SplitResult:
    """Fit all systems on the training rows of a split and measure them on its test rows."""
    train, test = problem.split(seed)
    test = test[problem.Y[test].any(axis=1)]
    part = Part(problem.X[train], problem.Y[train], problem.X[test])
    return SplitResult(test, dict(track(systems(problem, part, problem.Y[test]), "system")))


def all_systems(problem: LabelProblem, part: Part, truth: Floats, *, few: bool = False, first: bool = True) -> Systems:
    """c-star, its base and its peers; ``few``: only the two cheapest, ``first``: the split where trees always run."""
    yield from _star_systems(CSTAR, BASE, CSTAR_SETTINGS, BASE_SETTINGS, CStarRanker(random_state=0), part, truth)
    ways = {LOGISTIC: tuned_logistic, MLKNN: mlknn}
    if not few:
        ways |= {CHAINS: chains}
    if not few and (first or truth.shape[1] <= MANY_LABELS) and installed("lightgbm"):
        ways |= {TREES: boosted_trees}
    for name, way in ways.items():
        yield from _both(name, timed(way, part), truth)
    if not few:
        yield f"{PRETRAINED}, known", _pretrained(problem, part, truth)


def network_systems(problem: LabelProblem, part: Part, truth: Floats) -> Systems:
    """c-star on its own base and on a small network, and both bases alone."""
    yield from _star_systems(CSTAR, BASE, CSTAR_SETTINGS, BASE_SETTINGS, CStarRanker(random_state=0), part, truth)
    on_network = CStarRanker(random_state=0, base=network())
    part = Part(dense(part.X), part.Y, dense(part.X_test))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", import_module("sklearn.exceptions").ConvergenceWarning)  # epochs are a setting
        systems = _star_systems(ON_NETWORK, NETWORK, CSTAR_SETTINGS - BASE_SETTINGS, 1, on_network, part, truth)
        found = list(systems)
    yield from found


def network() -> Any:
    """Return the stronger base: one hidden layer on standardized features, chosen on a split of seed 17."""
    make_pipeline, scaler = import_module("sklearn.pipeline").make_pipeline, import_module("sklearn.preprocessing")
    layers: Any = import_module("sklearn.neural_network")
    return make_pipeline(
        scaler.StandardScaler(),
        layers.MLPClassifier((500,), alpha=3.0, learning_rate_init=1e-3, batch_size=64, max_iter=30, random_state=0),
    )


def _star_systems(
    name: str, base_name: str, n_settings: int, n_base: int, ranker: CStarRanker, part: Part, truth: Floats
) -> Systems:
    start = time.process_time()
    ranker.fit(part.X, part.Y)
    seconds = time.process_time() - start
    scores = ranker.label_scores(part.X_test)
    for known in (False, True):
        figures = measure(_Scored(ranker), scores, truth, known)
        yield _named(name, known), Measured(figures, n_settings, seconds)
    # The base is fitted within; its share of the time is not measured.
    yield from _both(base_name, Found(ranker.base_scores(part.X_test), n_base, seconds), truth)


def _both(name: str, found: Found, truth: Floats) -> Systems:
    for known in (False, True):
        figures = measure(GivenLogOdds(truth.shape[1]), found.log_odds, truth, known)
        yield _named(name, known), Measured(figures, found.n_settings, found.seconds)


def _pretrained(problem: LabelProblem, part: Part, truth: Floats) -> Measured:
    """The configuration that used to win, and that needs the number of labels."""
    start = time.process_time()
    base = problem.scorer.cross_fit(dense(part.X), part.Y, dense(part.X_test))
    ranker = LikelihoodGivenK().fit(base.train, part.Y)
    seconds = time.process_time() - start
    return Measured(measure(ranker, base.test, truth, known=True), PRETRAINED_SETTINGS, seconds)


def measure(ranker: LabelRanker, X: Floats, truth: Floats, known: bool) -> Floats:
    """Return FIGURES of every row."""
    played = simulate(ranker, X, truth, count_known=known, random_state=0)
    rows = LabelRows.of(ranker, X, truth.sum(axis=1) if known else None)
    margins = rows.margins(np.full(truth.shape, -1, dtype=np.int8))
    return np.column_stack([played.per_list, metrics.AP().per_list(truth, margins)])


def _named(name: str, known: bool) -> str:
    return f"{name}, {'known' if known else 'unknown'}"
