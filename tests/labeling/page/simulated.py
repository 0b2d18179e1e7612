"""A simulated annotator at the page, by its own HTTP, gives the figures of ``labeling.simulate``, row for row.

``python -m tests.labeling.page.simulated mulan_yeast corel5k_tagprop``: of each set a fifth of the rows are items, a
model is fitted on the others, and every item gets ten questions. A row may differ from the first question on whose
two best candidates differ by less than 1e-9 relative: rounding then decides, and the page computes one row at a time.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from slatewise import CStarRanker
from slatewise.labeling import Item, ItemData, LabelRows, MarginRule, Plan, Project, keep_model, simulate
from slatewise_papers.label_page import PageClient, PageServer, Turn

QUESTIONS = (0, 1, 5, 10)
NEAR = 1e-9
WORDS = ("no", "yes")


class Compared(NamedTuple):
    """What the page did beside what the simulation did."""

    rows: int
    same: int
    near_ties: int
    """Rows that differ from a question on that rounding decides."""
    different: list[int]
    """Rows that differ without that excuse."""
    page: dict[int, float]
    simulation: dict[int, float]
    requests: int


def at_the_page(client, Y, questions=QUESTIONS):
    """Answer every item truly; return the labels of the questions, and the break-even precision along the way."""
    most, n_requests = questions[-1], 0
    labels, precision = np.full((len(Y), most), -1), np.full((len(Y), len(questions)), np.nan)
    turn = Turn(client.post("/api/next"))
    while (item := turn.item) is not None:
        for count in range(most + 1):
            if count in questions:
                k, listed = int(Y[item].sum()), [one["label"] for one in turn.body["view"]["listed"]]
                precision[item, questions.index(count)] = Y[item, listed[:k]].sum() / k if k else np.nan
            if count < most and turn.question is not None:
                labels[item, count] = turn.question
                turn = Turn(client.post("/api/answer", turn.answer(turn.question, WORDS[int(Y[item, turn.question])])))
                n_requests += 1
        turn = Turn(client.post("/api/done", turn.done(shown=[])))
        n_requests += 1
    return labels, precision, n_requests


def make_project(path, ranker, X, Y):
    names = [str(name) for name in ranker.label_names_]
    items = [Item(f"row {number}", "text", f"Row {number}.") for number in range(len(X))]
    with Project.create(path, names, items) as project:
        plan = Plan(order="file order", policy="margin rule", share=0.0, retrain_every=0, list_length=Y.shape[1])
        plan.keep(project)
        ItemData.of(project, X).attach(project)
        keep_model(project, ranker)
    return path


def compare(ranker, X, Y, folder, questions=QUESTIONS):
    """Simulate the same questions twice."""
    expected = simulate(ranker, X, Y, MarginRule(), questions=questions)
    with PageServer(make_project(Path(folder, "simulated.db"), ranker, X, Y)) as server:
        client = PageClient(server.address, "a program")
        labels, precision, n_requests = at_the_page(client, Y, questions)
        client.close()
    same = (labels == expected.labels).all(axis=1)
    same &= ((precision == expected.per_list) | np.isnan(expected.per_list)).all(axis=1)
    excused = [
        row for row in np.flatnonzero(~same) if is_near_tie(ranker, X, Y, row, labels[row], expected.labels[row])
    ]
    different = sorted(set(np.flatnonzero(~same).tolist()) - set(excused))
    measured = precision[~np.isnan(precision[:, 0])]
    page = dict(zip(questions, measured.mean(axis=0).tolist(), strict=True))
    return Compared(len(Y), int(same.sum()), len(excused), different, page, expected.mean(), n_requests)


def is_near_tie(ranker, X, Y, row, labels, expected):
    """Whether the first question that differs is one that rounding decides."""
    at = np.flatnonzero(np.asarray(labels) != expected)
    if not len(at):
        return False
    known = np.full((1, Y.shape[1]), -1, dtype=np.int8)
    known[0, expected[: at[0]]] = Y[row, expected[: at[0]]]
    margins = np.abs(LabelRows.of(ranker, X[[row]], None).margins(known)[0])
    best, second = np.sort(margins[np.isfinite(margins) & (known[0] < 0)])[:2]
    return bool(second - best <= NEAR * second)


def of_data(name, seed=0):
    """Return a fitted ranker, and the rows that are to be labeled."""
    from slatewise_papers.cstar.data import load_problem

    problem = load_problem(name)
    order = np.random.default_rng(seed).permutation(len(problem.X))
    new, train = np.split(order, [len(order) // 5])
    names = [f"label {number}" for number in range(problem.Y.shape[1])]
    ranker = CStarRanker(random_state=0).fit(problem.X[train], problem.Y[train], label_names=names)
    return ranker, problem.X[new], problem.Y[new].astype(np.int8)


def main():
    """Compare on the sets that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", default=["mulan_yeast", "corel5k_tagprop"])
    failed = False
    for name in parser.parse_args().data:
        ranker, X, Y = of_data(name)
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found = compare(ranker, X, Y, folder)
        seconds = time.monotonic() - start
        print(
            f"{name}: {found.rows} rows x {Y.shape[1]} labels, {found.same} the same, {found.near_ties} from a near "
            f"tie on, {len(found.different)} different; {found.requests} requests in {seconds:.0f} s"
        )
        print("  simulate:", *(f"Q{count} {value:.6f}" for count, value in found.simulation.items()))
        print("  the page:", *(f"Q{count} {value:.6f}" for count, value in found.page.items()), flush=True)
        failed |= bool(found.different) or found.near_ties >= 0.01 * found.rows
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
