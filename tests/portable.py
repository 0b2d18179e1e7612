"""The suite as other processors run it: ``make portable``, or ``python -m tests.portable [NAME ...] [--tests ...]``.

Numba, OpenBLAS and NumPy are told to use the instructions of another processor: sums are then fused or added in another
order, and the last bits differ. A test that holds on one processor only is a defect. That the check can fail is checked
first: ``tests/knife_edge.py`` has a test of one seed without a margin, which must fail under another processor.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy._core import _multiarray_umath as _numpy

ROOT = Path(__file__).parent.parent
LEVELS = ("X86_V3", "X86_V4", "AVX512_ICL", "AVX512_SPR")
"""What NumPy chooses from when it is loaded, from the least on."""


@dataclass(frozen=True)
class Processor:
    """A processor to be imitated."""

    numba: str
    openblas: str
    numpy: str
    """The first level that it does not have."""
    needs: tuple[str, ...]
    """Flags of /proc/cpuinfo without which it cannot be imitated."""

    def environment(self) -> dict[str, str]:
        """Return the variables that make libraries take it for the machine's own."""
        beyond = LEVELS[LEVELS.index(self.numpy) :] if self.numpy in LEVELS else ()
        here: dict[str, Any] = _numpy.__cpu_features__
        disabled = " ".join(name for name in beyond if name in _numpy.__cpu_dispatch__ and here[name])
        names = {"NUMBA_CPU_NAME": self.numba, "OPENBLAS_CORETYPE": self.openblas}
        return names | ({"NPY_DISABLE_CPU_FEATURES": disabled} if disabled else {})


PROCESSORS = {
    "native": None,
    "generic": Processor("generic", "Haswell", "X86_V4", ("avx2", "fma")),
    "nehalem": Processor("nehalem", "Nehalem", "X86_V3", ("sse4_2",)),
    "zen": Processor("znver3", "Zen", "X86_V4", ("avx2", "fma", "sse4a", "clzero")),
    "skylake-x": Processor("skylake-avx512", "SkylakeX", "AVX512_ICL", ("avx512f", "avx512dq", "avx512bw", "avx512vl")),
}


def run(name: str, words: list[str], **further: str) -> tuple[str, str]:
    """Run pytest as a processor does; return what it printed and its last line."""
    processor = PROCESSORS[name]
    environment = os.environ | ({} if processor is None else processor.environment()) | further
    command = [sys.executable, "-m", "pytest", *words]
    ended = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    lines = ended.stdout.strip().splitlines()
    return ended.stdout, lines[-1] if ended.returncode in (0, 1) and lines else f"pytest ended with {ended.returncode}"


SHORT = (
    "tests/test_readme.py",
    "tests/test_examples.py",
    "tests/cli/test_sessions.py",
    "tests/factors/test_learner.py",
)
"""Tests that have depended on a processor before."""


def check_can_fail(names: list[str]) -> bool:
    """Run the knife-edged test as each processor; say whether it fails under one of them, as it must."""
    found = re.search(r"knife edge: (.+)", run("native", ["-n", "0", "-s", "tests/knife_edge.py"])[0])
    if found is None:
        raise RuntimeError("tests/knife_edge.py printed nothing to compare with")
    given = {"KNIFE_EDGE": found[1]}
    caught = [name for name in names if not is_green(run(name, ["-n", "0", "tests/knife_edge.py"], **given)[1])]
    print(f"knife-edged test: fails under {', '.join(caught) or 'no other processor'}", flush=True)
    return bool(caught) or not names


def is_green(last: str) -> bool:
    """Say whether nothing failed."""
    return "passed" in last and re.search(r"\d+ (failed|error)", last) is None


def main() -> int:
    """Run the suite under every processor that this one can imitate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"from {', '.join(PROCESSORS)}; all of them")
    parser.add_argument("--tests", nargs="+", default=["tests", "src"], help="files or folders; the whole suite")
    parser.add_argument("--short", action="store_true", help="only the tests that have depended on a processor before")
    options = parser.parse_args()
    paths = SHORT if options.short else options.tests
    flags = set(Path("/proc/cpuinfo").read_text().split())
    names = options.names or list(PROCESSORS)
    if unknown := [name for name in names if name not in PROCESSORS]:
        parser.error(f"expected names from {', '.join(PROCESSORS)}, got {', '.join(unknown)}")
    able = [name for name in names if (one := PROCESSORS[name]) is None or flags.issuperset(one.needs)]
    for name in names:
        if name not in able:
            print(f"{name}: left out, this processor cannot imitate it")

    failed = not check_can_fail([name for name in able if name != "native"])
    rows = []
    for name in able:
        start = time.perf_counter()
        printed, last = run(name, ["-n", "auto", "--dist", "worksteal", *paths])
        if not is_green(last):
            failed = True
            print(printed)
        rows.append(f"{name:10s} {time.perf_counter() - start:5.0f} s   {last}")
        print(rows[-1], flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
