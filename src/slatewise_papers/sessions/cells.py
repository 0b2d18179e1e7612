"""All trials and methods of ``slatewise reproduce sessions`` by many processes at once, into the folder of ``--keep``.

A cell is one trial of one method on one problem (or those that share a fit), or its result, which waits for its trials.
Cells that use a GPU go to ``--gpu`` processes, the others to ``--cpu`` of ``--threads`` each, the longest first.
What is there already is not run again. After ``--seconds`` everything is stopped; what was finished is there.

    python -m slatewise_papers.sessions.cells --keep kept --cpu 14 --gpu 3 --seconds 540
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

from slatewise_papers.sessions.data import LASTFM, PUBLISHED, Part, SessionProblem, load_problems
from slatewise_papers.sessions.methods import METHODS, Method
from slatewise_papers.sessions.peers import forget, gpu
from slatewise_papers.sessions.tables import SEED, folder, kept_result, kept_trial, methods, result_file, trial_file

FEW_LARGE = 2
"""GPU processes that may hold EASE's matrix of all items by all items."""


class Cell(NamedTuple):
    """What is to be done: some trials, or, where there are none, the result."""

    data: str
    problem: str
    method: str
    trials: tuple[int, ...]
    on_gpu: bool
    cost: float

    def __str__(self) -> str:
        return f"{self.problem}: {self.method}" + (f" {list(self.trials)}" if self.trials else "")


class Task(NamedTuple):
    """Where cells are kept, and how they are run."""

    keep: Path
    seed: int
    quick: bool


@cache
def _problems(data: str, seed: int, quick: bool) -> dict[str, tuple[SessionProblem, Part]]:
    return {problem.name: (problem, problem.testing) for problem in load_problems(data, seed, quick)}


def _is_done(task: Task, cell: Cell) -> bool:
    path = result_file(folder(task.keep, task.seed, task.quick, cell.problem), cell.method)
    assert path is not None
    return path.exists() or (bool(cell.trials) and all(trial_file(path, trial).exists() for trial in cell.trials))


def _cells(task: Task, chosen: Sequence[str], names: Sequence[str], parts: Sequence[str]) -> list[Cell]:
    """Return what is still to be done, the longest first; what cannot be run here is printed."""
    found: list[Cell] = []
    for data in names:
        for problem, _ in _problems(data, task.seed, task.quick).values():
            if not _named(problem.name, parts):
                continue
            size = len(problem.train.items) * problem.n_items
            for name, method in ((name, methods(task.quick)[name]) for name in chosen):
                missing = method.missing(problem.n_items)
                if missing is not None:
                    print(f"not run: {problem.name}: {name}: {missing}", flush=True)
                else:
                    about = Cell(data, problem.name, name, (), method.on_gpu, size * method.cost)
                    found += [about, *(about._replace(trials=trials) for trials in _groups(method))]
    left = [cell for cell in found if not _is_done(task, cell)]
    return sorted(left, key=lambda cell: -cell.cost)


def _groups(method: Method) -> list[tuple[int, ...]]:
    numbers = tuple(range(len(method.grid))) if len(method.grid) > 1 else ()
    return [numbers[first : first + method.shared] for first in range(0, len(numbers), method.shared)]


def _work(task: Task, threads: int, orders: Any) -> None:
    """Do one cell after the other."""
    os.environ["SLATEWISE_THREADS"] = str(threads)
    while (cell := orders.recv()) is not None:
        start = time.monotonic()
        try:
            _do(task, cell)
            outcome = f"{time.monotonic() - start:.0f} s"
        except Exception:
            outcome = f"failed\n{traceback.format_exc()}"
        orders.send(outcome)


def _do(task: Task, cell: Cell) -> None:
    problem, testing = _problems(cell.data, task.seed, task.quick)[cell.problem]
    method, keep = methods(task.quick)[cell.method], folder(task.keep, task.seed, task.quick, cell.problem)
    for trial in cell.trials:
        kept_trial(problem, method, trial, result_file(keep, cell.method))
    if not cell.trials:
        kept_result(problem, testing, cell.method, method, keep)
    forget()
    if cell.on_gpu and gpu() is not None:
        torch: Any = import_module("torch")
        torch.cuda.empty_cache()


@dataclass
class Worker:
    """A process, and the cell it is at."""

    process: Any
    orders: Any
    gpu: int | None
    cell: Cell | None = None

    def may(self, cell: Cell, waiting: set[tuple[str, str]]) -> bool:
        """Say whether this process can take a cell now: results wait for trials."""
        if cell.on_gpu != (self.gpu is not None) or (cell.method.startswith("EASE") and (self.gpu or 0) >= FEW_LARGE):
            return False
        return bool(cell.trials) or (cell.problem, cell.method) not in waiting


def _started(task: Task, n_cpu: int, n_gpu: int, threads: int) -> list[Worker]:
    context = multiprocessing.get_context("spawn")
    workers: list[Worker] = []
    for number in range(n_cpu + n_gpu):
        here, there = context.Pipe()
        process = context.Process(target=_work, args=(task, threads, there), daemon=True)
        process.start()
        workers.append(Worker(process, here, number - n_cpu if number >= n_cpu else None))
    return workers


def _hand_out(left: list[Cell], workers: list[Worker]) -> None:
    waiting = {(cell.problem, cell.method) for cell in left if cell.trials}
    waiting |= {(w.cell.problem, w.cell.method) for w in workers if w.cell is not None and w.cell.trials}
    for worker in workers:
        cell = None if worker.cell is not None else next((cell for cell in left if worker.may(cell, waiting)), None)
        if cell is not None:
            left.remove(cell)
            worker.cell = cell
            worker.orders.send(cell)


def _run_all(task: Task, left: list[Cell], workers: list[Worker], end: float) -> None:
    start, failed = time.monotonic(), set[tuple[str, str]]()
    while time.monotonic() < end:
        left[:] = [cell for cell in left if (cell.problem, cell.method) not in failed]
        _hand_out(left, workers)
        busy = {worker.orders: worker for worker in workers if worker.cell is not None}
        if not busy:
            break
        for orders in wait(list(busy), timeout=min(60.0, max(0.0, end - time.monotonic()))):
            worker = busy[orders]
            cell, worker.cell = worker.cell, None
            try:
                outcome = worker.orders.recv()
            except EOFError:
                outcome = "failed: its process is gone"
                workers.remove(worker)
            if cell is not None and outcome.startswith("failed"):
                failed.add((cell.problem, cell.method))
            print(f"{time.monotonic() - start:4.0f} {cell}: {outcome}", flush=True)
    for worker in workers:
        if worker.cell is not None:
            print(f"stopped: {worker.cell}", flush=True)
        worker.process.kill()


def _named(name: str, words: Sequence[str]) -> bool:
    return any(word in name for word in words)


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--cpu", type=int, default=2)
    parser.add_argument("--gpu", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", nargs="*", default=[*PUBLISHED, LASTFM])
    parser.add_argument("--problems", nargs="*", default=[""], help="parts of names of problems")
    parser.add_argument("--only", nargs="*", default=[], help="parts of names of methods")
    parser.add_argument("--without", nargs="*", default=[], help="parts of names of methods")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    task = Task(options.keep, options.seed, options.quick)
    chosen = [name for name in METHODS if _named(name, options.only or [""]) and not _named(name, options.without)]
    left = _cells(task, chosen, options.data, options.problems)
    print(f"{len(left)} cells to do", flush=True)
    _run_all(task, left, _started(task, options.cpu, options.gpu, options.threads), end)
    print(f"{len(_cells(task, chosen, options.data, options.problems))} cells left", flush=True)


if __name__ == "__main__":
    main()
