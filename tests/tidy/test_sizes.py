"""Functions and files stay small: 40 and 400 lines are the aim, 60 and 500 the end."""

from __future__ import annotations

import ast
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
PACKAGE = REPO / "lloom_gitops"
FUNCTION, FUNCTION_STOP = 40, 60
FILE, FILE_STOP = 400, 500

OVER_THE_AIM: set[str] = set()
"""What is over the aim and under the end. The list only gets shorter."""


def functions_of(source: str) -> dict[str, int]:
    """Lines of each function without its docstring, by qualified name."""
    found: dict[str, int] = {}

    def visit(node: ast.AST, path: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                name = (*path, child.name)
                found[".".join(name)] = _lines(child)
                visit(child, name)
            elif isinstance(child, ast.ClassDef):
                visit(child, (*path, child.name))
            else:
                visit(child, path)

    visit(ast.parse(source), ())
    return found


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    whole = (function.end_lineno or 0) - function.lineno + 1
    first = function.body[0]
    text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    return whole - ((first.end_lineno or 0) - first.lineno + 1 if text else 0)


def over(function_limit: int, file_limit: int) -> set[str]:
    """Functions (`file::name`) and files (`file`) of the package above the limits."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        source, name = path.read_text("utf-8"), path.relative_to(REPO).as_posix()
        if len(source.splitlines()) > file_limit:
            found.add(name)
        found |= {f"{name}::{each}" for each, lines in functions_of(source).items() if lines > function_limit}
    return found


def test_nothing_is_over_the_end() -> None:
    assert over(FUNCTION_STOP, FILE_STOP) == set()


def test_what_is_over_the_aim_is_known_and_gets_less() -> None:
    assert over(FUNCTION, FILE) == OVER_THE_AIM


def test_sizes_are_counted_without_docstrings() -> None:
    planted = (
        'class A:\n    def f(self):\n        """One.\n\n        Two.\n        """\n        a = 1\n        return a\n'
    )
    assert functions_of(planted) == {"A.f": 3}
    nested = "def f():\n    def g():\n        pass\n    return g\n"
    assert functions_of(nested) == {"f": 4, "f.g": 2}
