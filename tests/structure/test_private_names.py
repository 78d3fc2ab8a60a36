"""Tests use the public names of what they test: a name with an underscore may change without a word."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("runner", "evaluator", "sidecars", "schemas")
PATCHED = re.compile(rf"(?:^(?:{'|'.join(OURS)})\..*\._[a-z])|^_[a-z]")


def private(source: str) -> Iterator[str]:
    """The private names of ours that a module uses: imported, as attributes of what it imports, or replaced."""
    tree = ast.parse(source)
    imported = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            imported |= {alias.asname or alias.name for alias in node.names}
            yield from (alias.name for alias in node.names if re.match("_[a-z]", alias.name))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.match("_[A-Za-z]", node.attr):
            root: ast.expr = node.value
            while isinstance(root, ast.Attribute | ast.Call):
                root = root.value if isinstance(root, ast.Attribute) else root.func
            if isinstance(root, ast.Name) and root.id in imported:
                yield ast.unparse(node)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "setattr"
        ):
            yield from (
                argument.value
                for argument in node.args[:2]
                if isinstance(argument, ast.Constant)
                and isinstance(argument.value, str)
                and PATCHED.search(argument.value)
            )


@pytest.mark.parametrize(
    "source",
    ["from runner.api import _x", "from runner import api\napi.a()._b", "m.setattr('runner.api._x', 1)"],
)
def test_what_is_private_is_noticed(source: str) -> None:
    assert [*private(source)]


def test_no_test_uses_a_private_name_of_ours() -> None:
    used = {
        path.relative_to(ROOT).as_posix(): names
        for path in (ROOT / "tests").rglob("*.py")
        if (names := [*private(path.read_text("utf-8"))])
    }
    assert used == {}
