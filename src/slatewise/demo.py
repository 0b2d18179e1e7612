"""``slatewise demo``: what the structure of a list is worth on embedded data, in one table and one page.

Every problem here is generated, so the best possible ranking is known: the table shows a ranking that scores each item
by itself, one that ranks the list jointly, and that best one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise import metrics
from slatewise.datasets import make_interacting_lists, make_label_scenes, make_queries
from slatewise.estimators.best_feature import BestFeatureRanker
from slatewise.estimators.cstar import CStarRanker
from slatewise.report import Page, bars

Floats: TypeAlias = NDArray[np.float64]
COLUMNS = ["problem", "measure", "each item by itself", "jointly", "best possible"]


@dataclass(frozen=True)
class DemoRow:
    """One problem, measured three ways; ``joint`` is None where no system here ranks that kind of list jointly yet."""

    problem: str
    measure: str
    independent: float
    joint: float | None
    best: float
    story: str


@dataclass(frozen=True)
class Demo:
    """The demo's table, as cells and as a page."""

    rows: list[DemoRow]

    def cells(self) -> list[list[str]]:
        """Return the table's rows as text."""
        return [
            [
                row.problem,
                row.measure,
                f"{row.independent:.3f}",
                "" if row.joint is None else f"{row.joint:.3f}",
                f"{row.best:.3f}",
            ]
            for row in self.rows
        ]

    def page(self) -> Page:
        """Return the report."""
        page = Page("slatewise demo")
        page.paragraph("How much more a list is worth than its items: generated problems with a known best ranking.")
        page.table("Mean over test lists", COLUMNS, self.cells())
        page.figure(
            bars(
                [row.problem for row in self.rows],
                {
                    COLUMNS[2]: [row.independent for row in self.rows],
                    COLUMNS[3]: [np.nan if row.joint is None else row.joint for row in self.rows],
                    COLUMNS[4]: [row.best for row in self.rows],
                },
                "mean over test lists",
            ),
            "The gap between the outer bars is what the structure of a list can win; the middle one is what was won.",
        )
        for row in self.rows:
            page.heading(row.problem)
            page.paragraph(row.story)
        return page


def run_demo(random_state: int = 0) -> Demo:
    """Generate, train, measure; some seconds."""
    return Demo([_interacting(random_state), _scenes(random_state), _queries(random_state)])


def _interacting(seed: int) -> DemoRow:
    lists = make_interacting_lists(n_lists=1500, random_state=seed)
    alone, joint = _alone_and_joint(lists.X, lists.Y, n_train=1000, core=len(lists.core))
    return DemoRow(
        "interacting items",
        f"p@{lists.k}",
        alone,
        joint,
        1.0,
        "A few core items attract or repel others. Scored by themselves, the best items are not the best selection; "
        "trying every subset of the core finds it exactly.",
    )


def _scenes(seed: int) -> DemoRow:
    scenes = make_label_scenes(n_rows=1500, random_state=seed)
    alone, joint = _alone_and_joint(scenes.X, scenes.Y, n_train=1000, core=5)
    return DemoRow(
        "tags of a scene",
        "break-even precision",
        alone,
        joint,
        metrics.BreakEven(empty="skip")(scenes.Y[1000:], scenes.marginals(scenes.X[1000:])),
        "Tags that come together or exclude each other. The best possible ranking sorts by the true probability of "
        "every tag, which the generator knows.",
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
        None,
        measure(queries.y[test], queries.scores[test], queries.qid[test]),
        "Graded documents whose hidden scorer multiplies features: the best single feature against that scorer.",
    )


def _alone_and_joint(X: Floats, Y: NDArray[np.int8], n_train: int, core: int) -> tuple[float, float]:
    """Break-even precision on the rows after ``n_train`` of independent labels, and of ``core`` interacting ones."""
    alone, joint = (CStarRanker(core=size, C=10.0).fit(X[:n_train], Y[:n_train]) for size in (0, core))
    return alone.score(X[n_train:], Y[n_train:]), joint.score(X[n_train:], Y[n_train:])
