"""Restricted YAML: what is read, what is refused with its line, and that nothing at all gives a traceback."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas


def refusals(text: str | bytes) -> list[str]:
    return [str(p) for p in schemas.load_yaml(text, "f.yaml").problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"), ("yes", "yes"), ("on", "on"), ("12:30", "12:30"), ("0o7", "0o7"), ("0x1f", "0x1f"),
        ("007", "007"), ("2026-01-31", "2026-01-31"), ("1_000", "1_000"), (".inf", ".inf"), (".nan", ".nan"),
        ("true", True), ("FALSE", False), ("~", None), ("null", None), ("12", 12), ("-3", -3), ("+3", 3),
        ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5), ("'12'", "12"), ('"true"', "true"), ("=", "="), ("1e", "1e"),
    ],
)  # fmt: skip
def test_scalars_are_those_of_yaml_1_2_core(text: str, value: object) -> None:
    doc = schemas.load_yaml(f"a: {text}\n")
    assert doc.problems == []
    assert doc.data == {"a": value}
    assert type(doc.data["a"]) is type(value)


# A file -> the lines of its problems; None for the whole file.
REFUSED: dict[str | bytes, list[int | None]] = {
    "a: 1\nb: *x\n": [2],
    "a: &x 1\n": [1],
    "a:\n  - !!python/object/apply:os.system [x]\n": [2],
    "a: !custom 1\n": [1],
    "x: {}\n<<: {a: 1}\n": [2],
    "a: 1\nb: 2\na: 3\n": [3],
    "a:\n  1: x\n": [2],
    "true: x\n": [1],
    "? [a, b]\n: x\n": [1],
    "%YAML 1.1\n---\na: 1\n": [1],
    "a: 1\n---\nb: 1\n": [2],
    "a: 1\n\tb: 2\n": [2],
    "a: b: c\n": [1],
    'a: "\\e[2J"\n': [1],
    'a: "\\ud800"\n': [1],
    "ok: 1\na: \x1b[2J\n": [2],
    "a: 1" + "0" * 30 + "\n": [1],
    "a: 1e999\n": [1],
    b"a: 1\nb: \xff\n": [2],
    "# nothing\n": [None],
    "": [None],
    "a: *x\nb: &y 1\nb: 2\n1: c\n<<: {}\nd: !t x\n": [1, 2, 3, 4, 5, 6],
}
BOMB = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 12))
FOREIGN = {
    'l0: &l0 ["lol"]\n' + BOMB: 5,
    "a: &x [*x]\n": 1,
    "a: *x\n": 1,
    "a: &x {b: 1}\nc: {<<: *x}\n": 2,
    "a: !t x\n": 1,
}


@pytest.mark.parametrize("text", REFUSED)
def test_every_problem_is_found_with_its_line(text: str | bytes) -> None:
    places = ["f.yaml" if line is None else f"f.yaml:{line}" for line in REFUSED[text]]
    assert [problem.partition(": ")[0] for problem in refusals(text)] == places


@pytest.mark.parametrize("text", FOREIGN)
def test_what_is_refused_of_other_programs(text: str) -> None:
    (problem,) = schemas.load_yaml(text, "f.yaml", foreign=True).problems
    assert str(problem).startswith(f"f.yaml:{FOREIGN[text]}: ")


def test_wording_of_problems(golden: Callable[[str, str], None]) -> None:
    """The wording names what is refused and how to write it."""
    shown = [line for text in REFUSED for line in refusals(text)]
    for text in FOREIGN:
        shown += map(str, schemas.load_yaml(text, "foreign.yaml", foreign=True).problems)
    golden("yaml-problems.txt", "\n".join(shown) + "\n")


def test_an_alias_bomb_is_refused_without_being_expanded() -> None:
    started = time.monotonic()
    doc = schemas.load_yaml('l0: &l0 ["lol"]\n' + BOMB)
    assert doc.problems
    assert len(repr(doc.data)) < 64 * 1024
    assert sum(len(str(p)) for p in doc.problems) < 64 * 1024
    assert time.monotonic() - started < 10


def test_files_of_other_programs_may_repeat_values_and_have_numbers_as_keys() -> None:
    text = "a: &x {b: [1, 2]}\nc: *x\n1: &y word\nd: [*y, *y]\n"
    doc = schemas.load_yaml(text, foreign=True)
    assert doc.problems == [] and doc.data["c"] == {"b": [1, 2]} and doc.data["1"] == "word"
    assert doc.data["d"] == ["word", "word"]


@pytest.mark.parametrize(
    "text",
    ["[" * 60000, "{a: " * 15000, "- " * 30000, "? " * 30000, "a: " + "'" * 60001, "&" * 60000,
     "%YAML 1." + "9" * 60000 + "\n---\n", 'a: "\\UFFFFFFFF"', "a: " + "9" * 60000, "[" + "a," * 30000 + "]",
     ("k" * 300 + ":\n") + "".join("  " * n + "k" * 300 + ":\n" for n in range(1, 15)) + "".join(" " * 32 + f"- {n}\n" for n in range(1000))],
)  # fmt: skip
def test_large_and_deep_input_ends_quickly(text: str) -> None:
    started = time.monotonic()
    doc = schemas.load_yaml(text, "f.yaml")
    problems = schemas.validate(doc, "task")
    assert problems
    assert sum(len(str(p)) for p in problems) < 64 * 1024
    assert time.monotonic() - started < 20


def test_more_than_64_kib_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "big.yaml"
    file.write_text("a: " + "x" * schemas.YAML_BYTES)
    for problem in (schemas.load_yaml(file).problems[0], refusals(file.read_text())[0]):
        assert "64 KiB" in str(problem)


def test_what_is_no_regular_file_is_a_problem_and_never_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("pipe", ".", "absent", "loop"):
        doc = schemas.load_yaml(tmp_path / name, name)
        assert str(doc.problems[0]).startswith(f"{name}: ")
        assert schemas.validate(doc, "task")


def test_lines_are_known_for_every_value() -> None:
    doc = schemas.load_yaml("a: 1\nb:\n  - x\n  - y: 2\n    z/w: 3\n")
    assert doc.line("/a") == 1
    assert doc.line("/b") == 2
    assert doc.line("/b/0") == 3
    assert doc.line(("b", 1, "z/w")) == 5
    assert doc.line("/b/1/z~1w") == 5
    assert doc.line("/b/9") == 2
    assert doc.where("/b/1/y") == "input:4"


SIGNS = [
    r"a",
    r"b",
    r"[",
    r"]",
    r"{",
    r"}",
    r",",
    r"&x",
    r"*x",
    r"!!t",
    r"'",
    r"|",
    r">",
    r"#",
    r"?",
    r"<<",
    r"1",
    r"~",
    r"---",
    r"...",
    r"%",
    r"\U",
    r"FFFFFFFF",
    r"task",
    r"id",
    r"datasets",
]
BLANKS = [": ", "- ", "\n", "  ", '"', "\t", "\r", "\ufeff", "\x85"]
YAMLISH = st.lists(st.sampled_from(SIGNS + BLANKS), max_size=60).map("".join)


@settings(max_examples=250, deadline=None)
@given(
    st.one_of(YAMLISH, st.text(max_size=300), st.binary(max_size=300)),
    st.sampled_from(["task", "submission"]),
)
def test_any_input_gives_data_or_problems(text: str | bytes, name: str) -> None:
    doc = schemas.load_yaml(text, "f.yaml")
    problems = schemas.validate(doc, name)
    assert doc.problems == problems[: len(doc.problems)] or problems
    words = "".join(str(p) for p in problems)
    assert len(words.encode("utf-8")) < 64 * 1024  # and so no half surrogates
    assert words.isprintable()
    if doc.data is not None and not doc.problems:
        schemas.canonical(doc.data)


TASKS = Path(__file__).parents[2] / "tasks"
PIECES = ("\n", "\n\n", " ", "  ", "\t", ":", ": ", "- ", "#", " #", "'", '"', "\\", "|\n", ">-\n", "{", "}", "[", "]", ",", "?", "&a ", "*a", "!t ", "%",
          "---\n", "...\n", "\ufeff", "\x85", "\u2028", "\r", "\xa0", "~", "<<: ", "\\x41", "\\/", "0x", "é", "\U0001f600", "@", "`")  # fmt: skip


@pytest.mark.parametrize("path", sorted(TASKS.glob("*/task.yaml")), ids=lambda path: path.parent.name)
def test_both_readers_of_yaml_find_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, rng = path.read_text("utf-8"), random.Random(path.parent.name)
    accepted = 0
    for _ in range(60):
        start = rng.randrange(len(whole))
        text = whole[start : start + rng.choice((40, 200, 400))]
        for _ in range(rng.randrange(4)):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(PIECES) + text[at + rng.randrange(2) :]
        found = schemas.load_yaml(text, "f.yaml")
        with monkeypatch.context() as patch:
            patch.setattr(yaml, "__with_libyaml__", False)
            other = schemas.load_yaml(text, "f.yaml")
        assert (found.data, found.lines, found.problems) == (other.data, other.lines, other.problems), text
        accepted += not found.problems
    assert accepted
