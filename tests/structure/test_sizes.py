"""Modules have at most 400 lines, functions 60; exceptions have a reason, and none is kept that is no longer needed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("runner", "evaluator", "sidecars", "schemas")
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
