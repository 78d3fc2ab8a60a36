"""Schema errors in words, canonical form, strict JSON, and that the schemas document themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas

FOLDER = Path(schemas.__file__).parent
NAMES = sorted(
    p.relative_to(FOLDER).as_posix().removesuffix(".schema.json") for p in FOLDER.rglob("*.schema.json")
)
VALID = "task: vaswani\nimage: x\n"


def words(text: str, name: str = "submission") -> list[str]:
    return [str(p) for p in schemas.validate(schemas.load_yaml(text, "s.yaml"), name)]


def test_a_valid_file_has_no_problems() -> None:
    assert words(VALID) == []


# A file -> the places and keys of its problems.
WRONG = {
    "image: x\n": ["s.yaml:1 task"],
    "tsak: vaswani\nimage: x\n": ["s.yaml:1 task", "s.yaml:1 tsak"],
    VALID + "imgae: y\n": ["s.yaml:3 imgae"],
    "task: vaswani\nimgae: y\n": ["s.yaml:1 image", "s.yaml:2 imgae"],
    VALID + "command: 3\n": ["s.yaml:3 command"],
    VALID + "command: [a, 2]\n": ["s.yaml:3 command"],
    VALID + "method: automatc\n": ["s.yaml:3 method"],
    VALID + 'tag: "a b"\n': ["s.yaml:3 tag"],
    VALID + 'tag: "a\\n"\n': ["s.yaml:3 tag"],
    VALID + "scenarios: []\n": ["s.yaml:3 scenarios"],
    VALID + "scenarios: [a, a]\n": ["s.yaml:3 scenarios"],
    VALID + "build: {}\n": ["s.yaml:1 build"],
    "task: vaswani\n": ["s.yaml:1 image"],
    VALID + f"description: {'x' * 5000}\n": ["s.yaml:3 description"],
    VALID + "inputs: {Not A Name: x}\n": ["s.yaml:3 inputs"],
    "- task\n": ["s.yaml:1 file"],
    "task\n": ["s.yaml:1 file"],
    VALID + "method: true\n": ["s.yaml:3 method"],
}
LIMITS = "limits: {cpus: 0, pids: 0, wall_clock: -1, memory: 12 parsecs, gpus: 1.0}\n"


@pytest.mark.parametrize("text", WRONG)
def test_problems_name_their_line_and_key(text: str) -> None:
    found = words(text)
    for place in WRONG[text]:
        line, key = place.split()
        assert any(one.startswith(f"{line}: ") and key in one for one in found), found


def test_numbers_out_of_range() -> None:
    found = words(LIMITS, "task")
    for key in ("cpus", "pids", "wall_clock", "memory", "gpus"):
        assert sum(f'"{key}" ' in one for one in found) == 1, found


def test_wording_of_problems(golden: Callable[[str, str], None]) -> None:
    """The wording names key, value, rule and fix."""
    shown = [line for text in WRONG for line in words(text)]
    shown += [line for line in words(LIMITS, "task") if "limits" in line or "s.yaml:1" in line]
    shown += [str(schemas.load_json(text, "r.json").problems[0]) for text in BROKEN_JSON]
    golden("schema-problems.txt", "\n".join(shown) + "\n")


def test_values_are_shortened_and_control_characters_escaped() -> None:
    found = words("task: " + "A" * 5000 + '\nimage: x\nmethod: "\u202e\\x1b]0;x\\x07"\n')
    assert all(len(one) < 400 for one in found)
    assert "\x1b" not in "".join(found)
    assert "".join(found).isprintable()


def test_many_problems_are_capped_and_counted() -> None:
    found = words(VALID + "".join(f"k{n}: 1\n" for n in range(500)))
    assert len(found) == schemas.MAX_PROBLEMS + 1
    assert re.fullmatch(r"s.yaml: \D*\d+\D*", found[-1]), "it counts the rest and has no line"


def test_show_is_short_and_printable() -> None:
    assert schemas.show("a\x1b[2J\n\u202e") == "a\\x1b[2J\\x0a\\u202e"
    assert len(schemas.show("\x00" * 1000)) == schemas.SHOWN
    assert schemas.show("x" * 60) == "x" * 60


@given(
    st.recursive(
        st.text(st.characters(exclude_categories=())),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_made_harmless_means_the_same_and_prints(data: Any) -> None:
    for indent in (None, 2):
        text = schemas.harmless(json.dumps(data, ensure_ascii=False, indent=indent))
        assert json.loads(text) == data
        assert text.replace("\n", "").isprintable()


def test_canonical_form_does_not_depend_on_order() -> None:
    assert schemas.canonical({"b": [1, 2.5, None], "a": "ä"}) == '{"a":"ä","b":[1,2.5,null]}'.encode()
    assert schemas.digest({"a": 1, "b": (1, 2)}) == schemas.digest({"b": [1, 2], "a": 1})
    with pytest.raises(ValueError):
        schemas.canonical({"a": float("nan")})


BROKEN_JSON = [
    *('{"a": 1, "a": 2}', "[NaN]", "[-Infinity]", "[1e999]", '["\\ud800"]', "{\n1}", ""),
    *("[" * 100_000, "[" * 70 + "]" * 70, "[" + "1" * 5000 + "]"),
]


@pytest.mark.parametrize("text", BROKEN_JSON)
def test_json_is_strict(text: str) -> None:
    doc = schemas.load_json(text, "r.json")
    assert doc.data is None and str(doc.problems[0]).startswith("r.json:")


def test_json_is_read_with_its_cap_and_line(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"a": [1, "x"],\n "b" 2}')
    assert str(schemas.load_json(tmp_path / "r.json", "r.json").problems[0]).startswith("r.json:2: ")
    assert schemas.load_json(tmp_path / "r.json", "r.json", max_bytes=5).problems
    assert schemas.load_json('{"a": [1, 2.5, "ä"]}').data == {"a": [1, 2.5, "ä"]}


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.text(max_size=200), st.binary(max_size=200)))
def test_any_json_gives_data_or_problems(text: str | bytes) -> None:
    doc = schemas.load_json(text)
    assert "".join(str(p) for p in doc.problems).isprintable()
    schemas.canonical(doc.data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["id", "datasets", "limits", "memory", "task", "build", "files", "verdict", "x"]), inner, max_size=5),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(JSON, st.sampled_from(NAMES))
def test_any_data_is_valid_or_has_problems(data: Any, name: str) -> None:
    problems = schemas.validate(data, name)
    strict = jsonschema.Draft202012Validator(schemas.schema(name)).is_valid(data)
    assert strict or problems  # ours may only be stricter
    assert "".join(str(p) for p in problems).isprintable()


def test_what_breaks_the_schema_is_left_out_for_other_checks() -> None:
    text = "id: toy\ntitle: 3\ndatasets:\n  - {id: Dev}\n  - x\n  - {id: test, extra: 1}\nquota: {teams: {Not a name: 3}}\n"
    data = schemas.usable(schemas.load_yaml(text.encode()), "task")
    assert data == {
        "id": "toy", "datasets": [{}, None, {"id": "test", "extra": 1}], "quota": {"teams": {}},
    }  # fmt: skip
    assert schemas.usable(schemas.Document("task.yaml", []), "task") == {}


def test_an_unknown_schema_is_a_key_error() -> None:
    for name in ("nothing", "../task", "kinds/none", ""):
        with pytest.raises(KeyError):
            schemas.schema(name)


def fields(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        properties = node.get("properties")
        if isinstance(properties, dict) and path.rsplit("/", 1)[-1] != "properties":
            for key, child in properties.items():
                yield f"{path}/{key}", child
        for key, child in node.items():
            yield from fields(child, f"{path}/{key}")
    elif isinstance(node, list):
        for i, child in enumerate(node):
            yield from fields(child, f"{path}/{i}")


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_described(name: str) -> None:
    root = json.loads((FOLDER / f"{name}.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(root)
    assert root.get("description")
    described = {
        path: isinstance(child, dict) and child.get("description") for path, child in fields(root, "")
    }
    assert [path for path, description in described.items() if not description] == []
