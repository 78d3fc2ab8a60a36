"""What fits quickly fits."""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Iterator
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from schemas import fits, fitting

TASKS = Path(__file__).parents[2] / "tasks"
RESULT: dict[str, Any] = {
    "schema_version": 1,
    "status": "valid",
    "evaluator": {"name": "fake", "version": "1"},
    "measures": {"p_10": {"value": 1.0, "topics": 3, "covered": 3, "interval": None}},
    "findings": {"error": 0, "defect": 0, "warning": 0, "codes": {}},
    "run_tag": None,
    "message": "",
}
ANY = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.just(1.0), st.just([]), st.just((1,)))  # fmt: skip


@given(st.sampled_from([(), ("evaluator",), ("measures", "p_10"), ("findings",)]), st.data())
@settings(max_examples=300, deadline=None)
def test_what_is_found_to_fit_quickly_has_no_problem(place: tuple[str, ...], data: st.DataObject) -> None:
    assert fits(RESULT, "result")
    changed = copy.deepcopy(RESULT)
    holder = reduce(getitem, place, changed)
    holder[data.draw(st.sampled_from([*holder, "more"]))] = data.draw(ANY)
    if fits(changed, "result"):
        assert schemas.validate(changed, "result") == []


def test_where_what_looks_quickly_is_not_installed_the_other_one_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where participants check runs of kinds that need no more than jsonschema and jiter."""
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    fitting.quick_look.cache_clear()
    try:
        assert not fits(RESULT, "result") and schemas.validate(RESULT, "result") == []
    finally:
        fitting.quick_look.cache_clear()


def test_a_whole_number_that_is_written_with_a_point_does_not_fit() -> None:
    result = {**RESULT, "findings": {**RESULT["findings"], "error": 0.0}}
    assert not fits(result, "result") and schemas.validate(result, "result")


ENDS = ("\n", "\r", "\u2028", "\x85", "/..", "/..\n", "..", "/", "\0", "é", "\u0661", " ")
DEFINITIONS = {path.parent.name: schemas.load_yaml(path).data for path in TASKS.glob("*/task.yaml")}


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where values stand in data."""
    yield at
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*at, key))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_definition_of_a_task_that_fits_quickly_has_no_problem(name: str) -> None:
    definition = DEFINITIONS[name]
    assert fits(definition, "task") and schemas.validate(definition, "task") == []
    rng = random.Random(name)
    others: list[Any] = [1.0, True, None, [], {}, -1, "", "x"]
    spots = [at for at in places(definition) if at]
    refused = 0
    for at in rng.choices(spots, k=150):
        changed = copy.deepcopy(definition)
        holder = reduce(getitem, at[:-1], changed)
        old = holder[at[-1]]
        holder[at[-1]] = rng.choice(
            [old + rng.choice(ENDS), rng.choice(ENDS) + old, *others] if isinstance(old, str) else others
        )
        if fits(changed, "task"):
            assert schemas.validate(changed, "task") == [], (at, holder[at[-1]])
        else:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize("path", ["../x", "..", "..\n", "a/..", "a/..\n", "a\r/..", "a\n/.."])
def test_what_leaves_a_folder_does_not_fit(path: str) -> None:
    definition = copy.deepcopy(DEFINITIONS["vaswani"])
    definition["measures"][0]["truths"] = path
    assert fits(definition, "task") == (schemas.validate(definition, "task") == [])
    if "\n" not in path and "\r" not in path:
        assert not fits(definition, "task")


PATTERNS = {
    "class": ("^[A-Z$]+$", "A$"),
    "class of three": ("^[a$b]$", "$"),
    "all others": ("^[^$]$", "a"),
    "bracket escaped": (r"^[\]$]$", "$"),
    "bracket first": ("^[]$]$", None),  # not taken by the quick one
    "escaped": (r"^a\$b$", "a$b"),
    "escaped at the end": (r"^a\$", "a$"),
    "behind a backslash": (r"^(a\\$|b)$", "a\\"),
    "inside": ("^(a$|b)$", "a"),
    "last of a line": ("^(a$\n|b)$", "b"),
}


@pytest.mark.parametrize("case", PATTERNS)
def test_a_dollar_in_a_pattern_is_read_alike_by_both(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern, fitting = PATTERNS[case]
    for module in ("checking", "fitting"):
        monkeypatch.setattr(f"schemas.{module}.schema", lambda _: {"pattern": pattern})
    for text in ("", *"(?=)\n$ab]", "a\n", "b\n", "$\n", "a$", "A$", "a$b", "a\\", "a\\Z"):
        good = schemas.validate(text, case) == []
        assert fits(text, case) == (good and fitting is not None), text
    if fitting is not None:
        assert fits(fitting, case)
