"""What a target of the Makefile runs is in the extra that it installs: a fresh clone has nothing else.

Nothing is installed here. ``make -n`` prints what a target would install and run where no environment is; a process
that sees no distribution but those that its extras require then loads what would run: one for all targets with the same
extras.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()

SANDBOX = """
import contextlib, io, json, re, sys, traceback
from importlib.machinery import PathFinder

hidden, installed, commands = json.load(sys.stdin)

class OfTheExtras(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in hidden else super().find_spec(name, path, target)

    @classmethod
    def find_distributions(cls, *arguments, **options):
        for one in super().find_distributions(*arguments, **options):
            if re.sub("[-_.]+", "-", one.name).lower() in installed:
                yield one

sys.meta_path[sys.meta_path.index(PathFinder)] = OfTheExtras
failures = []
for code, *arguments in commands:
    sys.argv[1:] = arguments
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            exec(compile(code, "what the target runs", "exec"), {"__name__": "__main__"})
            failed = False
        except BaseException as error:
            failed = not isinstance(error, SystemExit) or error.code not in (None, 0)
            if failed:
                traceback.print_exc()
    failures.append(printed.getvalue() or "failed" if failed else None)
json.dump(failures, sys.stdout)
"""

COLLECT = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"

DOCUMENTED = """
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from runpy import run_path

found = {
    match
    for page in Path("docs").rglob("*.rst")
    for match in re.findall(r"^\\.\\. auto(module|class|function):: (\\S+)$", page.read_text(), re.MULTILINE)
}
assert len(found) > 50
for kind, name in sorted(found):
    if kind == "module":
        module = import_module(name)
        for member in getattr(module, "__all__", ()):
            getattr(module, member)
    else:
        resolve_name(name)
if find_spec("sphinx"):
    settings = run_path("docs/conf.py")
    for name in (*settings["extensions"], settings["html_theme"]):
        import_module(name)
"""

COMMANDS = {
    "demo": """
from slatewise.cli.demo import Demo, DemoRow
row = DemoRow("MetricRanker", "wine", "map", 0.8, 0.9, None, "", "<svg></svg>", "")
assert "<svg" in Demo([row]).overview()
""",
    "label": """
import uvicorn
from slatewise.labeling.page import make_app, serve
from slatewise.labeling.setup.demo import make_demo_folder
""",
    "bench": """
from importlib import import_module
import re
from slatewise_papers.bench import BENCHMARKS
names = re.search(r"for name in (.*); do .* bench", open("Makefile").read())[1].split()
for name in names:
    import_module(BENCHMARKS[name])
""",
}
"""What loads what a command of ``slatewise`` needs, by its first word."""


@cache
def installed_with(extras: frozenset[str]) -> tuple[set[str], set[str]]:
    """Return the distributions that an installation with these extras brings, and those of them that are not here."""
    asked, missing, seen = {("slatewise", extra) for extra in {"", *extras}}, set(), set()
    while asked:
        name, extra = one = asked.pop()
        seen.add(one)
        if name == "slatewise":  # as it is written now, not as it was when it was installed here
            texts = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
        else:
            try:
                texts = distribution(name).requires or []
            except PackageNotFoundError:
                missing.add(name)
                continue
        for needed in map(Requirement, texts):
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                asked |= {(canonicalize_name(needed.name), more) for more in {"", *needed.extras}} - seen
    return {name for name, _ in seen}, missing


@cache
def modules() -> dict[str, set[str]]:
    """The names that can be imported here, and the distributions they are of."""
    ours = {"slatewise", "slatewise_papers", "tests"}
    found = packages_distributions()
    return {name: set(map(canonicalize_name, found[name])) for name in found.keys() - ours}


Command = tuple[str, ...]
"""Code, and the arguments that it is run with."""


def failures(extras: frozenset[str], *commands: Command) -> list[str | None]:
    """Run code in one process that has nothing but the extras; return what each command printed if it failed."""
    installed, _ = installed_with(extras)
    hidden = sorted(name for name, owners in modules().items() if not owners & installed)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "MAKE"))}
    done = subprocess.run(
        [sys.executable, "-c", SANDBOX],
        input=json.dumps([hidden, sorted(installed), commands]),
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def assert_success(extras: frozenset[str], failure: str | None) -> None:
    """Fail, unless the reason is that a distribution of the extras is not installed here."""
    absent = re.search(r"No module named '(\w+)", failure or "")
    if absent is not None and absent[1] not in modules() and installed_with(extras)[1]:
        pytest.skip(f"{absent[1]} is not installed here")
    assert failure is None, failure


@cache
def would_run(target: str) -> list[tuple[frozenset[str], str, list[str]]]:
    """Return what a target runs where no environment is: the extras installed by then, the program, its arguments."""
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "-n", "VENV=nowhere/venv", target, "COMMIT=HEAD"]
    said = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    found, extras = [], {}
    for folder, program, rest in re.findall(r"(nowhere/venv\S*)/bin/(\S+)(.*)", said):
        words = shlex.split(rest.split(" || ")[0])
        if words[:3] == ["-m", "pip", "install"]:
            extra = re.fullmatch(r"\.(?:\[(.*)\])?", words[-1])[1]
            extras.setdefault(folder, set()).update({extra} if extra else set())
        else:
            found.append((frozenset(extras[folder]), program, words))
    return found


def scripts(name: str) -> set[str]:
    """The programs that a distribution brings."""
    one = distribution(name)
    entries = {entry.name for entry in one.entry_points if entry.group == "console_scripts"}
    return entries | {path.name for path in one.files or [] if path.parent.name == "bin"}


def is_collected_here(extras: frozenset[str], config: pytest.Config) -> bool:
    """Return whether this process has collected the whole suite without anything that the extras do not bring."""
    installed, _ = installed_with(extras)
    hidden = {name for name, owners in modules().items() if not owners & installed} - {"_distutils_hack"}  # of site
    whole = {config.rootpath / path for path in config.args} == {ROOT / path for path in config.getini("testpaths")}
    return whole and not hidden & {name.partition(".")[0] for name in sys.modules}


def is_part_of_the_suite(extras: frozenset[str], words: list[str]) -> bool:
    ((whole, _, _),) = would_run("test")
    paths = [word for word in words[2:] if word.startswith("tests/")]
    return extras == whole and paths != []


def command_of(extras: frozenset[str], program: str, words: list[str], config: pytest.Config) -> Command | None:
    """Return what loads what a program would, if anything needs to be loaded."""
    if program == "python" and words[:2] == ["-m", "pytest"]:
        # The target "test" collects a part too, and it may be what runs here: once is enough.
        if is_part_of_the_suite(extras, words) or is_collected_here(extras, config):
            return None
        return COLLECT, *words[2:], "--collect-only", "-q", "-p", "no:cacheprovider"
    if program == "python":
        assert words[0] == "-m"
        return f"import runpy; runpy.run_module({words[1]!r}, run_name='__main__')", "--help"
    if program == "slatewise":
        return (COMMANDS[words[0]],)
    return (DOCUMENTED,) if program == "sphinx-build" else None


@pytest.fixture(scope="module")
def failure_of(pytestconfig):
    """Return what a command of a target printed if it failed; all commands with the same extras are run at once."""

    @cache
    def failures_with(extras: frozenset[str]) -> dict[Command, str | None]:
        given = {
            command
            for target in RUNNING
            for theirs, program, words in would_run(target)
            if theirs == extras and (command := command_of(extras, program, words, pytestconfig))
        }
        given = sorted(given, key=lambda command: (command[0] == COLLECT, command))  # pytest last: it loads the most
        return dict(zip(given, failures(extras, *given), strict=True))

    return lambda extras, command: failures_with(extras)[command]


RUNNING = [target for target in TARGETS if target != "clean"]


@pytest.mark.parametrize("target", RUNNING)
def test_a_target_installs_what_it_runs(target, pytestconfig, failure_of):
    commands = would_run(target)
    assert commands
    for extras, program, words in commands:
        if command := command_of(extras, program, words, pytestconfig):
            assert_success(extras, failure_of(extras, command))
        if program not in ("python", "slatewise"):
            installed, missing = installed_with(extras)
            brought = any(program in scripts(name) for name in installed - missing - {"slatewise"})
            if missing and not brought:
                pytest.skip(f"not installed here: {', '.join(sorted(missing))}")
            assert brought, program


def test_what_no_extra_brings_is_hidden():
    code = """
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
assert find_spec("numpy")
assert distribution("numpy")
assert find_spec("pytest") is None
try:
    distribution("pytest")
except PackageNotFoundError:
    pass
else:
    raise AssertionError
"""
    assert failures(frozenset(), (code,)) == [None]


def test_an_extra_that_counts_as_installed_with_another_is_inside_it():
    inside = re.findall(r"^INSIDE_(\w+) := (.*)$", MAKEFILE, re.MULTILINE)
    assert inside
    for extra, others in inside:
        for other in others.split():
            assert installed_with(frozenset({other}))[0] <= installed_with(frozenset({extra}))[0], (extra, other)
