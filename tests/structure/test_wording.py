"""Wording is pinned by a few golden files, and by no assertion."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
SENTENCE = re.compile(r"(?:[A-Za-z’']+[,;:]? ){4,}[A-Za-z’']+")
ARTICLES = {"a", "an", "the", "is", "are", "was", "not", "no", "has", "of"}
MAX_GOLDEN_FILES = 40
MAX_SENTENCES = 12  # data that tests write themselves


def sentences(tree: ast.AST) -> Iterator[str]:
    """Yield the English sentences in the conditions of asserts, and in patterns that messages of errors must match."""
    for node in ast.walk(tree):
        conditions: list[ast.AST] = []
        if isinstance(node, ast.Assert):
            conditions = [node.test]
        elif isinstance(node, ast.Call):
            conditions = [keyword.value for keyword in node.keywords if keyword.arg == "match"]
        for part in (part for condition in conditions for part in ast.walk(condition)):
            text = part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""
            found = SENTENCE.search(text)
            if found and ARTICLES & set(found.group().lower().split()):
                yield text


def test_a_sentence_in_an_assertion_is_found() -> None:
    found = sentences(ast.parse("assert 'the file has no line' in said\nassert x == 'F001 file:1'"))
    assert list(found) == ["the file has no line"]


def test_assertions_pin_no_wording() -> None:
    found = [
        (path.name, text)
        for path in TESTS.rglob("test_*.py")
        for text in sentences(ast.parse(path.read_text("utf-8")))
    ]
    assert len(found) <= MAX_SENTENCES, found


def test_few_golden_files_pin_wording() -> None:
    assert len([*(TESTS / "golden" / "texts").iterdir()]) <= MAX_GOLDEN_FILES
