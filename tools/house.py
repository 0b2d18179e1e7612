"""The size and shape of the code base: lines, files, short functions, single importers, repeats, retired words.

    python -m tools.house [--list] [--only FOLDER ...] [--source SRC]

Reports and never fails a build. ``--list`` prints what each figure counts; ``--only`` limits figures and lists to
packages (``--only factors latent``), where "used once" and "one importer" still look at the whole of ``slatewise``.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
RETIRED = (
    "hearing|crew|told|said|asked|unsaid|whoever|game|visit|desk|seat|spool|judge"
    "|honest share|former answers|loose sums|learnt|so many|as it comes|but for"
)
"""The retired words that the glossary has counted."""
GENERATED = ("kernels", "gpu")
"""Folders of compiled units, where repeats and short functions are allowed."""
LARGE = ("kernels", "metrics", "datasets", "data")
"""Folders that may hold more than ``MOST_FILES`` modules: families of readers, measures and kernels."""
MOST_FILES = 12
SHORT_BODY, SHORT_MODULE, REPEAT = 3, 80, 6

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = Function | ast.ClassDef | ast.Module


@dataclass(frozen=True)
class Source:
    """A module, parsed once."""

    path: Path
    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the file."""
        return self.text.splitlines()

    @cached_property
    def docstrings(self) -> set[int]:
        """The numbers of the lines in docstrings of modules, classes and functions."""
        found = set[int]()
        for node in ast.walk(self.tree):
            if isinstance(node, Documented) and (text := docstring(node)) is not None:
                found.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
        return found

    @cached_property
    def imports(self) -> set[int]:
        """The numbers of the lines in import statements."""
        statements = (node for node in ast.walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom))
        return {line for node in statements for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}

    @cached_property
    def code(self) -> list[int]:
        """The numbers of the lines of code: not blank, no comment, no import, no docstring."""
        skipped = self.docstrings | self.imports
        return [
            number
            for number, line in enumerate(self.lines, 1)
            if line.strip() and not line.lstrip().startswith("#") and number not in skipped
        ]

    @cached_property
    def functions(self) -> list[tuple[Function, bool]]:
        """Every function, with whether it stands in a module or class rather than in another function."""
        found: list[tuple[Function, bool]] = []

        def visit(node: ast.AST, at_top: bool) -> None:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, Function):
                    found.append((child, at_top))
                    visit(child, False)
                else:
                    visit(child, at_top)

        visit(self.tree, True)
        return found

    @property
    def is_compiled(self) -> bool:
        """Whether the module is a compiled unit."""
        return any(part in GENERATED for part in self.path.parts)


def docstring(node: Documented) -> ast.Expr | None:
    """Return the docstring of a node as an expression."""
    first = node.body[0] if node.body else None
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return first if is_text and isinstance(first, ast.Expr) else None


def read(folder: Path) -> list[Source]:
    """Parse every module of a package."""
    return [
        Source(path, ".".join(path.relative_to(folder.parent).with_suffix("").parts), path.read_text())
        for path in sorted(folder.rglob("*.py"))
    ]


def body_length(function: Function) -> int:
    """Return the lines of a function's body without its docstring."""
    body = function.body[1:] if docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def loads(sources: list[Source]) -> Counter[str]:
    """Return how often each name is loaded, as a name or as an attribute."""
    found = Counter[str]()
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found[node.id] += 1
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found[node.attr] += 1
    return found


def short_used_once(sources: list[Source], used: Counter[str]) -> list[str]:
    """Return the undecorated short functions, of a module or private, whose name is loaded exactly once."""
    found: list[str] = []
    for source in sources:
        if source.is_compiled:
            continue
        of_module = {id(node) for node in source.tree.body}
        for function, _ in source.functions:
            name = function.name
            is_special = (name.startswith("__") and name.endswith("__")) or bool(function.decorator_list)
            if is_special or not (id(function) in of_module or name.startswith("_")):
                continue
            if body_length(function) <= SHORT_BODY and used[name] == 1:
                found.append(f"{source.path.name}:{function.lineno} {source.name}:{name}")
    return found


def importers(sources: list[Source]) -> dict[str, set[str]]:
    """Return, by module, the modules that import it or a name from it."""
    names = {source.name.removesuffix(".__init__") for source in sources}
    found: dict[str, set[str]] = defaultdict(set)
    for source in sources:
        here = source.name.removesuffix(".__init__")
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                inside = [f"{node.module}.{alias.name}" for alias in node.names]
                targets = [one if one in names else node.module for one in inside]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names:
                targets = [node.value]  # tables of modules that load on first use
            else:
                continue
            for target in targets:
                if target in names and target != here:
                    found[target].add(here)
    return found


def small_with_one_importer(sources: list[Source], users: dict[str, set[str]]) -> list[str]:
    """Return the modules of few lines that one other module imports, compiled units left out."""
    return [
        f"{source.name} ({len(source.lines)}) <- {next(iter(users[source.name]))}"
        for source in sources
        if not source.is_compiled and source.path.name != "__init__.py"
        if len(source.lines) < SHORT_MODULE and len(users[source.name]) == 1
    ]


def repeats(sources: list[Source]) -> list[str]:
    """Return the pairs of places that share ``REPEAT`` or more lines, blank lines and imports left out."""
    texts: list[tuple[Source, list[tuple[int, str]]]] = []
    starts: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for source in sources:
        if source.is_compiled:
            continue
        lines = [
            (n, line.strip()) for n, line in enumerate(source.lines, 1) if line.strip() and n not in source.imports
        ]
        for at in range(len(lines) - REPEAT + 1):
            starts[tuple(line for _, line in lines[at : at + REPEAT])].append((len(texts), at))
        texts.append((source, lines))
    same = {
        (one, two)
        for places in starts.values()
        for index, one in enumerate(places)
        for two in places[index + 1 :]
        if one[0] != two[0] or two[1] - one[1] >= REPEAT
    }
    found: list[str] = []
    for (file, at), (other, there) in sorted(same):
        if ((file, at - 1), (other, there - 1)) in same:
            continue  # the run began a line earlier
        length = REPEAT
        while ((file, at + length - REPEAT + 1), (other, there + length - REPEAT + 1)) in same:
            length += 1
        places = [f"{texts[each][0].name}:{texts[each][1][line][0]}" for each, line in ((file, at), (other, there))]
        found.append(f"{length} lines: {' = '.join(places)}")
    return found


def words_of(identifier: str) -> str:
    """Return an identifier as words: ``so_many``, ``SoMany`` and ``so many`` are one."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_+", " ", identifier).strip().lower()


def retired_names(sources: list[Source]) -> list[str]:
    """Return the names of modules, definitions, arguments, variables and attributes that hold a retired word."""
    pattern, found = re.compile(rf"\b(?:{RETIRED})\b"), set[str]()
    for source in sources:
        names = set(source.name.split(".")[1:])
        for node in ast.walk(source.tree):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    names.add(name)
                case ast.arg(arg=name):
                    names.add(name)
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    names.add(name)
                case _:
                    pass
        found |= {f"{source.name}: {name}" for name in names if pattern.search(words_of(name))}
    return sorted(found)


def prose(source: Source) -> Iterator[tuple[int, str]]:
    """Yield comments and strings of a module with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            for offset, line in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, line


def retired_prose(sources: list[Source], pages: list[Path]) -> list[str]:
    """Return the lines of comments, strings and pages that hold a retired word."""
    pattern = re.compile(rf"\b(?:{RETIRED.replace(' ', chr(92) + 's+')})\b", re.IGNORECASE)
    found = [
        f"{source.name}:{number}: {line.strip()[:110]}"
        for source in sources
        for number, line in prose(source)
        if pattern.search(line)
    ]
    for page in pages:
        for number, line in enumerate(page.read_text().splitlines(), 1):
            if pattern.search(line):
                found.append(f"{page.name}:{number}: {line.strip()[:110]}")
    return found


def wide_constructors(sources: list[Source]) -> list[str]:
    """Return the classes whose ``__init__`` has more than twelve parameters."""
    return [
        f"{source.name}:{node.name} {n}"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
        for one in node.body
        if isinstance(one, ast.FunctionDef) and one.name == "__init__"
        if (n := len(one.args.args) + len(one.args.kwonlyargs) - 1) > 12
    ]


def main() -> int:
    """Print the report."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument(
        "--source", type=Path, default=ROOT / "src", help="a folder with slatewise and slatewise_papers"
    )
    parser.add_argument("--only", nargs="*", default=[], metavar="FOLDER", help="packages of slatewise; all")
    parser.add_argument("--list", action="store_true", help="print what the figures count")
    arguments = parser.parse_args()
    every = read(arguments.source / "slatewise")
    chosen = [one for one in every if not arguments.only or one.name.split(".")[1] in arguments.only]

    def show(title: str, found: list[str]) -> None:
        print(f"{title}: {len(found)}")
        if arguments.list:
            print("".join(f"    {line}\n" for line in found), end="")

    lines, code = sum(len(one.lines) for one in chosen), sum(len(one.code) for one in chosen)
    documented, imported = sum(len(one.docstrings) for one in chosen), sum(len(one.imports) for one in chosen)
    blank = sum(not line.strip() for one in chosen for line in one.lines)
    print(f"files: {len(chosen)}, median {median(len(one.lines) for one in chosen):.0f} lines")
    print(f"lines: {lines}, code {code}, docstrings {documented}, imports {imported}, blank {blank}")
    lengths = [body_length(function) for one in chosen for function, _ in one.functions]
    short = sum(length <= SHORT_BODY for length in lengths)
    long = sum(length > 50 for length in lengths)
    print(f"functions: {len(lengths)}, body of at most {SHORT_BODY} lines {short}, of more than 50 {long}")
    used = loads(every)
    functions = [function.name for one in chosen for function, _ in one.functions]
    callers = Counter(min(used[name], 3) for name in functions)
    never, once, twice, more = (callers[n] for n in range(4))
    print(f"functions by how often their name is loaded: never {never}, once {once}, twice {twice}, more {more}")
    users = importers(every)
    n_users = Counter(min(len(users[one.name]), 3) for one in chosen if one.path.name != "__init__.py")
    print(f"modules by importers: none {n_users[0]}, one {n_users[1]}, two {n_users[2]}, more {n_users[3]}")
    sizes = Counter[str]()
    folders = Counter[Path]()
    for one in chosen:
        sizes[one.name.split(".")[1]] += len(one.code)
        folders[one.path.parent] += one.path.name != "__init__.py"
    print("packages by lines of code: " + ", ".join(f"{name} {n}" for name, n in sizes.most_common()))
    crowded = [
        f"{folder.relative_to(arguments.source)} {n}"
        for folder, n in folders.items()
        if n > MOST_FILES and not set(folder.parts) & set(LARGE) and folder.name != "slatewise"
    ]
    show(f"folders with more than {MOST_FILES} modules", crowded)
    show(f"short functions used once (body of at most {SHORT_BODY} lines)", short_used_once(chosen, used))
    show(f"modules under {SHORT_MODULE} lines with one importer", small_with_one_importer(chosen, users))
    show(f"pairs of places that share {REPEAT} or more lines", repeats(chosen))
    show("names with a retired word", retired_names(chosen))
    pages = [] if arguments.only else [*sorted((ROOT / "docs").glob("*.rst")), ROOT / "README.md"]
    show("lines of prose with a retired word", retired_prose(chosen, pages))
    show("constructors with more than 12 parameters", wide_constructors(chosen))
    if not arguments.only and (papers := arguments.source / "slatewise_papers").is_dir():
        print(f"slatewise_papers: {sum(len(one.lines) for one in read(papers))} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
