"""Run the harness: every format, or one, on all cores; the exit code is 1 if anything failed."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from slatewise.core.running.executor import thread_count
from tests.fuzz import Format, collect
from tests.fuzz.engine import batch

_BATCH = 500
_SHOWN = 20


def _formats(name: str | None) -> list[Format]:
    formats = collect()
    chosen = [form for form in formats if name in (None, form.name)]
    if not chosen:
        sys.exit(f"--format: expected one of {', '.join(form.name for form in formats)}, found {name}")
    return chosen


def main() -> int:
    """Parse the command line, spread the batches over processes, print what failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    files = "mutated files a format, fewer of slow ones (default: %(default)s)"
    parser.add_argument("--files", type=int, default=5000, help=files)
    parser.add_argument("--format", help="only this format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    arguments = parser.parse_args()
    formats = _formats(arguments.format)
    console = Console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    n_failures = 0
    with (
        Progress(*columns, console=console, disable=not console.is_terminal) as progress,
        ProcessPoolExecutor(thread_count(), get_context("spawn")) as pool,
    ):
        for form in formats:
            n_files = -(-arguments.files // form.slow)
            bar = progress.add_task(form.name, total=n_files)
            end = arguments.first + n_files
            sizes = {first: min(_BATCH, end - first) for first in range(arguments.first, end, _BATCH)}
            pending = {
                pool.submit(batch, form.name, arguments.seed, first, size): first for first, size in sizes.items()
            }
            accepted, failures = 0, list[str]()
            try:
                for future in as_completed(pending):
                    batch_accepted, batch_failures = future.result()
                    accepted += batch_accepted
                    failures += batch_failures
                    progress.advance(bar, sizes[pending.pop(future)])
            except BrokenProcessPool:
                first = min(pending.values())
                console.print(f"{form.name}: a case hung or crashed the process, near --first {first}", style="red")
                return 1
            console.print(f"{form.name}: {n_files} files, {accepted} accepted, {len(failures)} failures")
            for failure in failures[:_SHOWN]:
                console.print(failure, markup=False, highlight=False)
            n_failures += len(failures)
    return 1 if n_failures else 0


if __name__ == "__main__":
    sys.exit(main())
