"""The description of the API (OpenAPI 3.1), made of the rules of its routes and of the schemas: there is no second truth."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any

import schemas
from runner.web.problems import MEDIA
from runner.web.rules import Operation, Rule

SHARED = ("api-problem", "inbox-answer")
TITLE = "Proctor"
SAYS = (
    "What was published of a shared task, for programs: the objects that commands print with --json, for whoever asks. "
    "Tokens go in the header Authorization. Later versions may add keys."
)
PAGES = {
    "limit": "Entries of a page, at most 500.",
    "after": "Begin behind the entry of this id: `next` of a page has it.",
}
_STATUS = {
    "206": "The range that was asked for.",
    "304": "What the client has (If-None-Match) is what there is.",
    "400": "The request cannot be understood.",
    "401": "A token is needed, or the one that was sent opens nothing.",
    "403": "Not open to this role, or to the scopes of this token.",
    "404": "Not there, or not for whoever asks: there is no telling which.",
    "409": "The upload is at another offset, or has another size.",
    "413": "What was sent is too large.",
    "415": "The content is of another type.",
    "416": "The file has no such range.",
    "422": "The content has another digest than the address says, and was removed.",
    "423": "Another request is sending, checking or submitting the upload: Retry-After says when to try again.",
    "429": "That was too often: Retry-After says in how many seconds to try again.",
    "507": "What was sent could not be kept, and was not taken.",
}
_EMPTY = ("206", "416")  # statuses without a problem in JSON


def document(rules: Iterable[Rule]) -> dict[str, Any]:
    """The OpenAPI document of the rules that have an operation."""
    described = [rule for rule in rules if rule.operation]
    paths: dict[str, Any] = {}
    for rule in described:
        paths.setdefault(re.sub(r":path\b", "", rule.path), {})[rule.method.lower()] = _operation(rule)
    used = {
        name for rule in described if rule.operation for name in (rule.operation.gives, rule.operation.takes)
    }
    bearer = {"type": "http", "scheme": "bearer", "description": "A token, as the organiser gave it."}
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": "1", "description": SAYS},
        "paths": paths,
        "components": {
            "schemas": {name: component(name) for name in sorted({*used, *SHARED} - {""})},
            "securitySchemes": {"token": bearer},
        },
    }


def component(name: str) -> dict[str, Any]:
    """A schema of ``schemas/`` as a component: what it refers to in itself is looked up there."""
    made: dict[str, Any] = _moved(schemas.schema(name), f"#/components/schemas/{name}")
    return {key: value for key, value in made.items() if key != "$schema"}


def _moved(node: Any, to: str) -> Any:
    if isinstance(node, Mapping):
        if name := node.get("x-schema"):
            return {"oneOf": [_named(name), {"type": "null"}], "description": node["description"]}
        return {
            key: to + value.removeprefix("#") if key == "$ref" else _moved(value, to)
            for key, value in node.items()
        }
    return [_moved(one, to) for one in node] if isinstance(node, list | tuple) else node


def _operation(rule: Rule) -> dict[str, Any]:
    of = rule.operation
    assert of is not None
    gives = of.gives or of.media_given
    good: dict[str, Any] = {"description": "What was asked for." if gives else "It is so, or done."}
    if of.gives:
        schema = _page(of.gives) if of.paged else _named(of.gives)
        good["content"] = {"application/json": {"schema": schema}}
    elif of.media_given:
        good["content"] = {of.media_given: {}}
    wrong = (
        {"400", "401", "404", "429"} if rule.method == "GET" else {"400", "401", "404", "413", "429", "507"}
    )
    if "public" not in rule.may or rule.scope != "read":
        wrong.add("403")
    wrong |= {*of.also}
    tells = {**of.tells, **({"ETag": "Names what is shown."} if rule.method == "GET" else {})}
    if tells:
        good["headers"] = {
            name: {"description": says, "schema": {"type": "string"}} for name, says in tells.items()
        }
    said = inspect.getdoc(rule.answer) or ""
    made: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "-", f"{rule.method} {rule.path}".lower()).strip("-"),
        "summary": " ".join(said.split("\n\n")[0].split()),
        "description": f"Roles: {', '.join(rule.may)}. Scope: {rule.scope}.",
        "parameters": [*_parameters(rule), *_sent(of)],
        "responses": {
            str(of.status): good,
            **({"304": {"description": _STATUS["304"]}} if rule.method == "GET" else {}),
            **{status: _problem(status) for status in sorted(wrong)},
        },
        "security": [{"token": []}] if "public" not in rule.may else [{}, {"token": []}],
    }
    if of.takes:
        made["requestBody"] = _form(of.takes)
    elif of.media:
        made["requestBody"] = {"required": True, "content": {of.media: {}}}
    return made


def _parameters(rule: Rule) -> Iterable[dict[str, Any]]:
    of = rule.operation
    assert of is not None
    for name in re.findall(r"\{(\w+)[^}]*\}", rule.path):
        noun = re.sub(r".*/(\w+)s/\{id\}.*", r"\1", rule.path) if name == "id" else name
        says = f"Id of the {noun}."
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": says,
            "schema": {"type": "string"},
        }
    for name, says in {**(PAGES if of.paged else {}), **of.query}.items():
        kind: dict[str, Any] = {"type": "string"}
        if name == "limit":
            kind = {"type": "integer", "minimum": 1, "maximum": 500, "default": 100}
        yield {"name": name, "in": "query", "description": says, "schema": kind}


def _sent(of: Operation) -> Iterable[dict[str, Any]]:
    """The headers of a request."""
    for needed, headers in ((True, of.sends), (False, of.may_send)):
        for name, says in headers.items():
            kind = {"type": "string"}
            yield {"name": name, "in": "header", "required": needed, "description": says, "schema": kind}


def _named(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _page(name: str) -> dict[str, Any]:
    then = {"type": ["string", "null"], "description": "Address of the next page; null: this is the last."}
    items = {"type": "array", "items": _named(name), "description": "The entries."}
    return {"type": "object", "required": ["items", "next"], "properties": {"items": items, "next": then}}


def _problem(status: str) -> dict[str, Any]:
    says = _STATUS[status]
    if status in _EMPTY:
        return {"description": says}
    return {"description": says, "content": {MEDIA: {"schema": _named("api-problem")}}}


def _form(name: str) -> dict[str, Any]:
    """A form with a file, and the fields of a schema beside it; the task stands in the address."""
    of = schemas.schema(name)
    known = {key: _moved(value, f"#/components/schemas/{name}") for key, value in of["properties"].items()}
    fields = {key: value for key, value in known.items() if key not in ("task", "file")}
    file = {"type": "string", "contentMediaType": "application/octet-stream", "description": "The file."}
    needed = ["file", *(key for key in of["required"] if key in fields)]
    form = {"type": "object", "required": needed, "properties": {"file": file, **fields}}
    return {"required": True, "content": {"multipart/form-data": {"schema": form}}}
