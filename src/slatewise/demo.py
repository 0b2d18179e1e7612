"""``slatewise demo``: what there is to win on embedded data, in one table and one page.

Every problem here is generated, so the best possible ranking is known: the table shows how far a ranking that scores
each item by itself stays below it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slatewise import metrics
from slatewise.data.records import Float
from slatewise.datasets import make_interacting_lists, make_label_scenes, make_queries
from slatewise.estimators.best_feature import BestFeatureRanker
from slatewise.report import Page, bars

COLUMNS = ["problem", "measure", "each item by itself", "best possible"]


@dataclass(frozen=True)
class DemoRow:
    """One problem: the measure of a ranking of single items, and of the known best ranking."""

    problem: str
    measure: str
    independent: float
    best: float
    story: str


@dataclass(frozen=True)
class Demo:
    """The demo's table, as cells and as a page."""

    rows: list[DemoRow]

    def cells(self) -> list[list[str]]:
        """Return the table's rows as text."""
        return [[row.problem, row.measure, f"{row.independent:.3f}", f"{row.best:.3f}"] for row in self.rows]

    def page(self) -> Page:
        """Return the report."""
        page = Page("slatewise demo")
        page.paragraph("How much a list is worth more than its items: generated problems with a known best ranking.")
        page.table("Mean over lists", COLUMNS, self.cells())
        page.figure(
            bars(
                [row.problem for row in self.rows],
                {COLUMNS[2]: [row.independent for row in self.rows], COLUMNS[3]: [row.best for row in self.rows]},
                "mean over lists",
            ),
            "The gap is what learning the structure of a list can win.",
        )
        for row in self.rows:
            page.heading(row.problem)
            page.paragraph(row.story)
        return page


def run_demo(random_state: int = 0) -> Demo:
    """Generate, train, measure; a few seconds."""
    return Demo([_interacting(random_state), _scenes(random_state), _queries(random_state)])


def _interacting(seed: int) -> DemoRow:
    lists = make_interacting_lists(n_lists=1000, random_state=seed)
    return DemoRow(
        "interacting items",
        f"p@{lists.k}",
        metrics.Precision(lists.k)(lists.Y, lists.s),
        1.0,
        "A few core items attract or repel others. Even the true item scores, sorted, miss the best selection; "
        "trying every subset of the core finds it exactly.",
    )


def _scenes(seed: int) -> DemoRow:
    scenes = make_label_scenes(n_rows=2000, random_state=seed)
    train, test = slice(0, 1000), slice(1000, None)
    one_by_one = _linear_scores(scenes.X[train], scenes.Y[train], scenes.X[test])
    measure = metrics.BreakEven()
    return DemoRow(
        "tags of a scene",
        "break-even precision",
        measure(scenes.Y[test], one_by_one),
        measure(scenes.Y[test], scenes.marginals(scenes.X[test])),
        "Tags that come together or exclude each other: a linear scorer for every tag by itself against the true "
        "probability of every tag.",
    )


def _queries(seed: int) -> DemoRow:
    queries = make_queries(n_queries=400, random_state=seed)
    train, test = queries.qid < 200, queries.qid >= 200
    measure = metrics.NDCG(k=10)
    ranker = BestFeatureRanker().fit(queries.X[train], queries.y[train], qid=queries.qid[train])
    return DemoRow(
        "documents of a query",
        "ndcg@10",
        measure(queries.y[test], ranker.predict(queries.X[test]), queries.qid[test]),
        measure(queries.y[test], queries.scores[test], queries.qid[test]),
        "Graded documents whose hidden scorer multiplies features: the best single feature against that scorer.",
    )


def _linear_scores(X: Float, Y: NDArray[np.int8], X_test: Float) -> Float:
    """Score every tag by least squares on its own."""
    design = np.column_stack([X, np.ones(len(X))])
    weights = np.linalg.lstsq(design, Y.astype(np.float64), rcond=None)[0]
    return np.column_stack([X_test, np.ones(len(X_test))]) @ weights
