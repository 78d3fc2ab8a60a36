"""Restricted YAML: what is read, what is refused with its line, and that nothing at all gives a traceback."""

from __future__ import annotations

import os
import random
import time
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


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: *x\n", 2, "alias"),
        ("a: &x 1\n", 1, "anchor"),
        ("a:\n  - !!python/object/apply:os.system [x]\n", 2, "tag"),
        ("a: !custom 1\n", 1, "tag"),
        ("x: {}\n<<: {a: 1}\n", 2, "merge key"),
        ("a: 1\nb: 2\na: 3\n", 3, '"a" twice (first at line 1)'),
        ("a:\n  1: x\n", 2, "not text"),
        ("true: x\n", 1, "not text"),
        ("? [a, b]\n: x\n", 1, "not text"),
        ("%YAML 1.1\n---\na: 1\n", 1, "directive"),
        ("a: 1\n---\nb: 1\n", 2, "more than one YAML document"),
        ("a: 1\n\tb: 2\n", 2, "tabs"),
        ("a: b: c\n", 1, "quotes"),
        ('a: "\\e[2J"\n', 1, "\\x1b"),
        ('a: "\\ud800"\n', 1, "\\ud800"),
        ("ok: 1\na: \x1b[2J\n", 2, "control character"),
        ("a: 1" + "0" * 30 + "\n", 1, "18 digits"),
        ("a: 1e999\n", 1, "too large"),
        (b"a: 1\nb: \xff\n", 2, "UTF-8"),
        ("# nothing\n", None, "empty"),
        ("", None, "empty"),
    ],
)
def test_what_is_refused_is_named_with_its_line(text: str | bytes, line: int | None, words: str) -> None:
    found = refusals(text)
    assert any(words in one for one in found), found
    where = "f.yaml" if line is None else f"f.yaml:{line}"
    assert any(one.startswith(where + ":") for one in found), found


def test_all_problems_are_reported_at_once() -> None:
    found = refusals("a: *x\nb: &y 1\nb: 2\n1: c\n<<: {}\nd: !t x\n")
    assert [one.split(":")[1] for one in found] == ["1", "2", "3", "4", "5", "6"]


def test_an_alias_bomb_is_refused_without_being_expanded() -> None:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 12))
    started = time.monotonic()
    doc = schemas.load_yaml('l0: &l0 ["lol"]\n' + levels)
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
    ("text", "words"),
    [
        ('l0: &l0 ["lol"]\n' + "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 12)), "by aliases"),
        ("a: &x [*x]\n", "alias of what has not ended"),
        ("a: *x\n", "alias of what has not ended"),
        ("a: &x {b: 1}\nc: {<<: *x}\n", "merge key"),
        ("a: !t x\n", "tag"),
    ],
)  # fmt: skip
def test_what_is_refused_of_other_programs(text: str, words: str) -> None:
    found = schemas.load_yaml(text, "f.yaml", foreign=True).problems
    assert words in str(found[0]) and len(found) == 1


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
    assert "larger than 64 KiB" in str(schemas.load_yaml(file).problems[0])
    assert "larger than 64 KiB" in refusals("a: " + "x" * schemas.YAML_BYTES)[0]


def test_what_is_no_regular_file_is_a_problem_and_never_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name, words in (
        ("pipe", "regular"),
        (".", "regular"),
        ("absent", "no such file"),
        ("loop", "cannot be read"),
    ):
        doc = schemas.load_yaml(tmp_path / name, name)
        assert words in str(doc.problems[0])
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


YAMLISH = st.lists(
    st.sampled_from(
        [
            "a",
            "b",
            ": ",
            "- ",
            "\n",
            "  ",
            "[",
            "]",
            "{",
            "}",
            ",",
            "&x ",
            "*x",
            "!!t ",
            "'",
            '"',
            "|",
            ">",
            "#",
            "?",
            "<<",
            "1",
            "~",
            "\t",
            "---",
            "...",
            "%",
            "\\U",
            "FFFFFFFF",
            "task",
            "id",
            "datasets",
            "\r",
            "\ufeff",
            "\x85",
        ]
    ),
    max_size=60,
).map("".join)


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
