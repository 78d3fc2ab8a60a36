"""Schemas of organisers: what is refused, and that validation agrees with jsonschema and with the official suite."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluator.errors import EvaluatorError
from evaluator.kinds.records.schema import problems, validator
from evaluator.kinds.records.words import violations

SUITE = Path(__file__).parents[3] / "worlds/json_schema_suite/draft2020-12.json.gz"
# Here jsonschema uses Python's regular expressions, in which \d and \w take letters of all scripts, and \p and \c are unknown.
OTHER_PATTERNS = "optional/ecmascript-regex.json"


def cases() -> list[tuple[str, Any, list[dict[str, Any]]]]:
    files = json.loads(gzip.decompress(SUITE.read_bytes()))
    return [
        (f"{name}: {one['description']}", one["schema"], one["tests"])
        for name, group in files.items()
        for one in group
    ]


def test_what_is_taken_of_the_official_suite_is_validated_as_it_says_and_as_jsonschema_does() -> None:
    taken = differ = 0
    wrong = []
    for name, schema, tests in cases():
        if problems(schema):
            continue
        made = validator(schema, name)
        for one in tests:
            taken += 1
            if made.is_valid(one["data"]) is not one["valid"]:
                wrong.append((name, one["description"]))
            if not name.startswith(OTHER_PATTERNS):
                oracle = jsonschema.Draft202012Validator(schema).is_valid(one["data"])
                differ += oracle is not one["valid"]
    assert wrong == [] and differ == 0
    # Of 1,433; the others need what is refused: other files, other drafts, $dynamicRef, $id inside.
    assert taken == 1224


def places(schema: Any) -> set[str]:
    """Return the places of the schema's problems."""
    return {str(problem).partition(": ")[0] for problem in problems(schema)}


def test_what_is_refused_of_the_official_suite_stands_under_a_refused_keyword() -> None:
    refused = {place.rpartition("/")[2] for _, schema, _ in cases() for place in places(schema)}
    references = {"$ref", "$id", "$schema", "$dynamicRef", "$dynamicAnchor"}
    assert refused <= references | {"dependencies", "the schema"}


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from([0.5, 1.0, 2.5])
    | st.sampled_from(["", "a", "ab", "b1"])
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])


def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    small = st.integers(0, 3)
    keywords = {
        "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=1),
        "additionalProperties": inner, "unevaluatedProperties": inner, "propertyNames": inner,
        "items": inner, "prefixItems": st.lists(inner, min_size=1, max_size=2), "contains": inner, "unevaluatedItems": inner,
        "minContains": small, "maxContains": small, "uniqueItems": st.booleans(),
        "allOf": st.lists(inner, min_size=1, max_size=2), "anyOf": st.lists(inner, min_size=1, max_size=2),
        "oneOf": st.lists(inner, min_size=1, max_size=2), "not": inner, "if": inner, "then": inner, "else": inner,
        "dependentSchemas": st.dictionaries(st.sampled_from("ab"), inner, max_size=1),
    }  # fmt: skip
    return st.fixed_dictionaries({}, optional=keywords)


SCHEMAS = st.recursive(
    st.booleans()
    | st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
            "enum": st.lists(DATA, min_size=1, max_size=3),
            "const": DATA,
            "minimum": st.integers(-3, 3),
            "exclusiveMaximum": st.integers(-3, 3),
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "minLength": st.integers(0, 2),
            "maxLength": st.integers(0, 2),
            "pattern": st.sampled_from(["^a", "b$", "[0-9]+", "^a?b+$"]),
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
            "maxProperties": st.integers(0, 2),
            "dependentRequired": st.just({"a": ["b"]}),
        },
    ),
    deeper,
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(SCHEMAS.filter(lambda s: isinstance(s, dict)), st.lists(DATA, min_size=1, max_size=5))
def test_generated_schemas_agree_with_jsonschema(schema: dict[str, Any], data: list[Any]) -> None:
    assert problems(schema) == []
    made, oracle = validator(schema, "generated"), jsonschema.Draft202012Validator(schema)
    for one in data:
        assert made.is_valid(one) is oracle.is_valid(one) is (next(made.iter_errors(one), None) is None)


WHOLE = "the schema"
REFUSED = {
    "an address": ({"$ref": "https://example.org/schema.json"}, "/$ref"),
    "a file": ({"$ref": "file:///etc/passwd"}, "/$ref"),
    "a neighbour": ({"properties": {"a": {"$ref": "other.json#/a"}}}, "/properties/a/$ref"),
    "nothing": ({"$ref": "#/$defs/none"}, "/$ref"),
    "look-ahead": ({"properties": {"a": {"pattern": "^(?=a)"}}}, "/properties/a/pattern"),
    "back reference": ({"patternProperties": {r"(a)\1": True}}, r"/patternProperties/(a)\1"),
    "broken pattern": ({"pattern": "["}, "/pattern"),
    "large pattern": ({"pattern": "(a{1000}){1000}"}, "/pattern"),
    "another draft": ({"$schema": "http://json-schema.org/draft-07/schema#"}, "/$schema"),
    "old keyword": ({"definitions": {}}, "/definitions"),
    "dynamic": ({"$dynamicRef": "#a"}, "/$dynamicRef"),
    "wrong type": ({"type": "text"}, "/type"),
    "wrong form": ({"required": "id"}, "/required"),
    "depth": ({"properties": {"a": 1}, "items": 2}, "/items"),
    "no object": ([], WHOLE),
    "circle": ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, WHOLE),
    "circle by allOf": ({"allOf": [{"$ref": "#"}]}, WHOLE),
    "twice": (
        {"allOf": [{"properties": {"x": {"$ref": "#"}}}, {"additionalProperties": {"$ref": "#"}}, {"patternProperties": {"y": {"$ref": "#"}}}]},
        "/allOf/1/additionalProperties",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_schemas_that_are_refused(name: str) -> None:
    schema, place = REFUSED[name]
    assert place in places(schema)
    with pytest.raises(EvaluatorError):
        validator(schema, "s")


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


def test_depth_size_and_work_are_bounded() -> None:
    assert problems(nested(20)) == []
    assert "32" in problems(nested(5_000))[0].what
    assert "2,000" in problems({"properties": {f"k{i}": {} for i in range(3_000)}})[0].what
    for wrap in (lambda ref: ref, lambda ref: {"properties": {"x": ref}}):
        doubling = {f"a{i}": {"allOf": [wrap({"$ref": f"#/$defs/a{i + 1}"})] * 2} for i in range(30)}
        assert places({"$defs": {**doubling, "a30": {}}, "$ref": "#/$defs/a0"}) == {WHOLE}
    tree = {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "label": {"type": "string"}}}
    formula = {"oneOf": [{"type": "string"}, {"required": ["not"], "properties": {"not": {"$ref": "#"}}},
                         {"required": ["and"], "properties": {"and": {"type": "array", "items": {"$ref": "#"}}}}]}  # fmt: skip
    assert problems(tree) == problems(formula) == []


def test_every_problem_is_found_at_once() -> None:
    properties = {"a": {"pattern": "("}, "b": {"$ref": "x.json"}}
    expected = {"/definitions", "/properties/a/pattern", "/properties/b/$ref", "/type"}
    assert places({"type": "objekt", "properties": properties, "definitions": {}}) == expected


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "(a+)+$"}, "a" * 100_000 + "!"),
        ({"pattern": "(a|a)*b"}, "a" * 100_000),
        ({"uniqueItems": True}, [{"a": i} for i in range(100_000)]),
        ({"uniqueItems": True}, [2**63 + i for i in range(100_000)]),
        ({"items": {"items": {"uniqueItems": True}}}, [[[[-(10**25) - i] for i in range(50_000)]]]),
        ({"uniqueItems": True}, [float(f"{i}e30") for i in range(100_000)]),
        (
            {"$defs": {"t": {"properties": {"l": {"$ref": "#/$defs/t"}}}}, "$ref": "#/$defs/t"},
            {"l": {"l": {"l": {}}}},
        ),
    ],
)
def test_hostile_values_take_no_time(schema: dict[str, Any], value: Any) -> None:
    made = validator(schema, "s")
    start = time.process_time()
    made.is_valid(value)
    assert time.process_time() - start < 5


def test_beside_unique_items_whole_numbers_have_at_most_64_bits() -> None:
    made = validator({"properties": {"l": {"uniqueItems": True}}}, "s")
    assert made.is_valid({"l": [2**63 - 1, -(2**63), 1e30]}) and not made.is_valid({"l": [1, 1.0]})
    ((place, message),) = violations(made.iter_errors({"l": [1, {"a": 2**63}]}), {})
    assert place == ("l", 1, "a") and message.endswith(f" {2**63}")
    assert validator({"type": "integer"}, "s").is_valid(2**64)
