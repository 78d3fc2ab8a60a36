"""The organiser's JSON Schema: what is wrong with it, and the validator that is made of it.

The validator is ``jsonschema-rs`` (numbers: benchmarks/README.md), whose patterns run in time that grows with the text only. What it
cannot compile so (look-around, back references) is refused, and so is all that ``jsonschema`` takes to mean something else, leads
out of the file, or lets a small record cost hours: the table in ``docs/how-to/records.md`` has the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.kinds.records.bounds import Pointer, subschemas, too_much
from schemas import render_pointer, show

DRAFT = "https://json-schema.org/draft/2020-12/schema"
MAX_DEPTH = 32
MAX_SUBSCHEMAS = 2_000
# Keywords that other drafts know, and this one does not: they would be passed over in silence.
_OLD = {
    "definitions": "$defs",
    "dependencies": "dependentRequired or dependentSchemas",
    "additionalItems": "items, beside prefixItems",
    "$recursiveRef": "$ref",
    "$recursiveAnchor": "$anchor",
}
_CLOSED = {
    "$dynamicRef": "write $ref: in one file it means the same",
    "$dynamicAnchor": "write $anchor, and $ref to it",
    "$vocabulary": "leave it out",
}


class SchemaProblem(NamedTuple):
    """What is wrong with a schema at a place, and how that is corrected."""

    pointer: Pointer
    what: str
    fix: str

    def __str__(self) -> str:
        place = render_pointer(self.pointer) or "the schema"
        return f"{place}: {self.what}"


def problems(schema: Any) -> list[SchemaProblem]:
    """Everything that is wrong with a schema; empty when records can be validated with it.

    Args:
        schema: JSON data. It is read as draft 2020-12.
    """
    if not isinstance(schema, dict):
        return [SchemaProblem((), "it is no object", 'write {"type": "object", "properties": {…}}')]
    if (found := _too_large(schema)) is not None:
        return [found]
    every = [*_draft(schema), *_metaschema(schema)]
    targets: dict[Pointer, Pointer] = {}
    known = _known(schema)
    for place, one in subschemas(schema):
        if isinstance(one, dict):
            every += _keywords(place, one)
            every += _reference(schema, place, one, known, targets)
    if not every and (work := too_much(schema, targets)) is not None:
        fix = "write it with fewer references, or as an enum or a type"
        every.append(SchemaProblem(*work, fix))
    return sorted(every, key=lambda one: [str(step) for step in one.pointer])


def _too_large(schema: Any) -> SchemaProblem | None:
    level, depth = [schema], 0
    while level:
        if depth > 2 * MAX_DEPTH:  # a subschema lies below its keyword
            return SchemaProblem(
                (), f"it is nested more than {MAX_DEPTH} subschemas deep", "use $defs and $ref"
            )
        level = [
            v
            for one in level
            for v in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
        ]
        depth += 1
    if sum(1 for _ in subschemas(schema)) > MAX_SUBSCHEMAS:
        return SchemaProblem(
            (), f"it has more than {MAX_SUBSCHEMAS:,} subschemas", "use patternProperties, or $defs and $ref"
        )
    return None


def _draft(schema: Mapping[str, Any]) -> Iterator[SchemaProblem]:
    given = schema.get("$schema", DRAFT)
    if given != DRAFT:
        yield SchemaProblem(
            ("$schema",), f"it is written for {show(str(given))}", f"write {DRAFT}, or leave it out"
        )


def _metaschema(schema: Mapping[str, Any]) -> Iterator[SchemaProblem]:
    """Keywords of a wrong form. Patterns are tried elsewhere."""
    import jsonschema

    meta = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
    for error in meta.iter_errors(schema):
        said = error.message if len(error.message) < 120 else f"{error.validator} is broken"
        yield SchemaProblem(tuple(error.absolute_path), show(said, 160), "see json-schema.org/draft/2020-12")


def _keywords(place: Pointer, one: Mapping[str, Any]) -> Iterator[SchemaProblem]:
    for key in one:
        if key in _OLD:
            yield SchemaProblem((*place, key), f"{key} belongs to another draft", f"write {_OLD[key]}")
        elif key in _CLOSED:
            yield SchemaProblem((*place, key), f"{key} is not taken", _CLOSED[key])
        elif key == "$id" and place:
            yield SchemaProblem(
                (*place, key), "only the whole schema may have an $id", "leave it out, or write $anchor"
            )
    for pointer, pattern in _patterns(place, one):
        if why := _refused(pattern):
            yield SchemaProblem(
                pointer,
                f"the pattern {show(pattern)} {why}",
                "write it without look-around and back references; brackets and quantifiers as in ECMA 262",
            )


def _patterns(place: Pointer, one: Mapping[str, Any]) -> Iterator[tuple[Pointer, str]]:
    if isinstance(pattern := one.get("pattern"), str):
        yield (*place, "pattern"), pattern
    keys = one.get("patternProperties")
    yield from (((*place, "patternProperties", key), key) for key in (keys if isinstance(keys, dict) else ()))


def _refused(pattern: str) -> str:
    try:
        _made({"pattern": pattern})
    except ValueError:
        return "cannot be matched in time that grows with the text only, or is broken"
    return ""


def _reference(
    schema: Any,
    place: Pointer,
    one: Mapping[str, Any],
    known: Mapping[Pointer, Pointer],
    targets: dict[Pointer, Pointer],
) -> Iterator[SchemaProblem]:
    """Note where ``$ref`` leads to in ``targets``: a place in the same file, or nowhere."""
    ref = one.get("$ref")
    if not isinstance(ref, str):
        return
    here = (*place, "$ref")
    ref = ref.removeprefix(str(schema.get("$id", "")).partition("#")[0]) if "#" in ref else ref
    if not ref.startswith("#"):
        yield SchemaProblem(
            here,
            f"{show(ref)} leads out of the file",
            "put what it means under $defs, and write #/$defs/NAME",
        )
        return
    target = known.get(_place(schema, ref[1:]))
    if target is None:
        yield SchemaProblem(here, f"there is no subschema {show(ref)}", "correct the reference")
    else:
        targets[place] = target


def _known(schema: Any) -> dict[Pointer, Pointer]:
    """All subschemas by their places, and by their anchors."""
    found: dict[Pointer, Pointer] = {}
    for place, one in subschemas(schema):
        found[place] = place
        if isinstance(one, dict) and isinstance(one.get("$anchor"), str):
            found["#", one["$anchor"]] = place
    return found


def _place(schema: Any, fragment: str) -> Pointer:
    """The place that a fragment names: a JSON pointer, percent-encoded, or an anchor."""
    from urllib.parse import unquote

    if fragment and not fragment.startswith("/"):
        return ("#", fragment)
    found: list[str | int] = []
    node = schema
    for step in unquote(fragment).split("/")[1:]:
        key: str | int = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and str(key).isdigit() and int(key) < len(node):
            key = int(key)
        try:
            node = node[key]
        except (KeyError, IndexError, TypeError):
            return ("#", "")
        found.append(key)
    return tuple(found)


def _made(schema: Any) -> Any:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(
        schema,
        mask="the value",
        pattern_options=jsonschema_rs.RegexOptions(),
        validate_formats=False,
        offline=True,
    )


class _WholeNumbers:
    """The validator of a schema with ``uniqueItems``, for which whole numbers have at most 64 bits.

    jsonschema-rs finds equal entries by hashes, but all larger whole numbers have the same one: a record of some MiB would take
    hours. Such a number is an error of the kind ``int64``.
    """

    def __init__(self, made: Any) -> None:
        self._made = made

    def is_valid(self, value: Any) -> bool:
        """Whether a value fits the schema."""
        return _beyond_64_bits(value) is None and bool(self._made.is_valid(value))

    def iter_errors(self, value: Any) -> Iterator[Any]:
        """What a value breaks; only the number where there is one that is too large."""
        large = _beyond_64_bits(value)
        return iter([large]) if large is not None else self._made.iter_errors(value)


class _Large(NamedTuple):
    """An error with the attributes of those of jsonschema-rs."""

    instance_path: Pointer
    instance: int
    kind: Any = SimpleNamespace(name="int64")
    message: str = "the value is a whole number of more than 64 bits beside uniqueItems"
    schema_path: Pointer = ()


def _beyond_64_bits(value: Any) -> _Large | None:
    left: list[tuple[Pointer, Any]] = [((), value)]
    while left:
        place, one = left.pop()
        if isinstance(one, dict):
            left += [((*place, key), below) for key, below in one.items()]
        elif isinstance(one, list):
            left += [((*place, i), below) for i, below in enumerate(one)]
        elif type(one) is int and not -(1 << 63) <= one < 1 << 63:
            return _Large(place, one)
    return None


def validator(schema: Any, name: str) -> Any:
    """The validator of a schema: an object with ``is_valid`` and ``iter_errors`` as those of jsonschema-rs.

    Raises:
        EvaluatorError: It has problems; ``name`` is what the error calls it.
    """
    if found := problems(schema):
        more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
        raise EvaluatorError(f"the schema {show(name)} cannot be used", f"{found[0]}{more}", found[0].fix)
    try:
        made = _made(schema)
    except ValueError as error:  # what the rules above leave
        raise EvaluatorError(f"the schema {show(name)} cannot be used", show(str(error), 200)) from None
    unique = any(isinstance(one, dict) and one.get("uniqueItems") is True for _, one in subschemas(schema))
    return _WholeNumbers(made) if unique else made
