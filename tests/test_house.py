"""The house keeps its rules where import-linter cannot look: names built at run time, functions written twice."""

import ast
from collections import Counter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "slatewise"
BY_NAME = {
    "_registry.py": {"estimator_class"},
    "_lazy.py": {"lazy_getattr"},
    "cli/main.py": {"of_the_clone"},
    "__init__.py": {"__getattr__"},
}
"""Functions that may import what a table or an argument says."""


def functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_name_is_built_at_run_time(path):
    text, allowed = path.read_text(), BY_NAME.get(str(path.relative_to(SOURCE)), set())
    if "import_module" not in text and "__import__" not in text:
        return
    tree = ast.parse(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in allowed):
        inside = set(ast.walk(function))
        calls = [call for call in calls if call not in inside]
    for call in calls:
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        assert name != "__import__"
        assert name != "import_module" or isinstance(call.args[0], ast.Constant)


def test_few_functions_are_written_twice():
    bodies = Counter(
        ast.dump(ast.Module(body=_without_docstring(function), type_ignores=[]))
        for path in SOURCE.rglob("*.py")
        for function in functions(path)
    )
    again = {body: n for body, n in bodies.items() if n > 1 and len(body) > 400}
    assert sum(n * (n - 1) // 2 for n in again.values()) < 10


def _without_docstring(function: ast.FunctionDef) -> list[ast.stmt]:
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return function.body[1:] if documented else function.body
