"""Attack every model, or one, on all cores; the exit code is 1 if anything failed."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from slatewise.core.running.executor import thread_count
from tests.fuzz.models.engine import batch, files

_BATCH = 100
_SHOWN = 30


def main() -> int:
    """Parse the command line, spread the batches over processes, print what failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.models", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="altered files, of all models together")
    parser.add_argument("--model", help="only this model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case of each model")
    parser.add_argument("--rules", action="store_true", help="print how often each rule refused a file")
    arguments = parser.parse_args()
    names = [name for name in files() if arguments.model in (None, name)]
    if not names:
        sys.exit(f"--model: expected one of {', '.join(files())}, found {arguments.model}")
    each = -(-arguments.cases // len(names))
    end = arguments.first + each
    rules, failures = Counter[str](), list[str]()
    workers = thread_count()
    os.environ["SLATEWISE_THREADS"] = "1"  # of each worker
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        pending = {
            pool.submit(batch, name, arguments.seed, first, min(_BATCH, end - first)): (name, first)
            for name in names
            for first in range(arguments.first, end, _BATCH)
        }
        try:
            for future in as_completed(pending):
                refused, failed = future.result()
                rules.update(refused)
                for failure in failed[: max(0, _SHOWN - len(failures))]:
                    print(failure, flush=True)
                failures += failed
                pending.pop(future)
        except BrokenProcessPool:
            name, first = min(pending.values())
            print(f"models: a case hung or crashed the process, near --model {name} --first {first}")
            return 1
    n_cases = each * len(names)
    print(f"models: {n_cases} altered files of {len(names)} models, {rules.total()} refused, {len(failures)} failures")
    if arguments.rules:
        for rule, count in rules.most_common():
            print(f"  {count:6} {rule}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
