"""Rules for code: short modules and functions, no private names in tests, no exception without a reason."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("runner", "evaluator", "sidecars", "schemas")
PATCHED = re.compile(rf"(?:^(?:{'|'.join(PACKAGES)})\..*\._[a-z])|^_[a-z]")


def private(source: str) -> Iterator[str]:
    """The private names of ours that a module uses: imported, as attributes of what it imports, or replaced."""
    tree = ast.parse(source)
    imported = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
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


@pytest.mark.slow
def test_no_test_uses_a_private_name_of_ours() -> None:
    used = {
        path.relative_to(ROOT).as_posix(): names
        for path in (ROOT / "tests").rglob("*.py")
        if (names := [*private(path.read_text("utf-8"))])
    }
    assert used == {}


MODULE, FUNCTION = 400, 60

LONG_MODULES = {}
LONG_FUNCTIONS = {
    "evaluator/formats/blocks.py:cut": "masks over one block of bytes: no step makes sense alone",
    "evaluator/formats/blocks.py:regroup": "masks over one block of bytes: no step makes sense alone",
}


def test_modules_and_functions_stay_short() -> None:
    modules, functions = set(), set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            name, text = path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
            modules |= {name} if text.count("\n") > MODULE else set()
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    lines = (node.end_lineno or 0) - node.lineno + 1
                    functions |= {f"{name}:{node.name}"} if lines > FUNCTION else set()
    assert modules - LONG_MODULES.keys() == set(), "split it, or give a reason"
    assert functions - LONG_FUNCTIONS.keys() == set(), "split it, or give a reason"
    assert LONG_MODULES.keys() - modules == set(), "no longer needed: take it from the list"
    assert LONG_FUNCTIONS.keys() - functions == set(), "no longer needed: take it from the list"


def test_no_two_test_modules_have_one_name() -> None:
    """They are collected by their names alone: of two with one name pytest reads one, and an error stands for the other."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_no_exception_to_the_rules_of_ruff_is_kept_that_is_not_needed() -> None:
    """Those that pyproject.toml lists for single files: too many branches or statements, printing."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["ruff"]["lint"]
    listed = {
        (file, code)
        for file, codes in settings["per-file-ignores"].items()
        if "*" not in file
        for code in codes
    }
    limits = {
        "lint.mccabe.max-complexity": settings["mccabe"]["max-complexity"],
        "lint.pylint.max-statements": settings["pylint"]["max-statements"],
    }
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--output-format", "json"]
    options = [f"--config={name}={value}" for name, value in limits.items()]
    files = sorted({file for file, _ in listed if (ROOT / file).is_file()})
    codes = ",".join(sorted({code for _, code in listed}))
    ended = subprocess.run(
        [*ruff, "--select", codes, *options, *files], cwd=ROOT, capture_output=True, text=True
    )
    assert ended.returncode in (0, 1), ended.stderr
    found = {
        (Path(one["filename"]).relative_to(ROOT).as_posix(), one["code"]) for one in json.loads(ended.stdout)
    }
    found |= {(file, "T20") for file, code in found if code.startswith("T20")}
    assert listed - found == set(), "no longer needed: take it from pyproject.toml"
