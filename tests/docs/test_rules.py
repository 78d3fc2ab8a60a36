"""The page of the rules of a campaign has every rule of the schema with an example, and the examples are right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

import schemas
from runner.model.errors import RunnerError
from runner.tasks.load import load_task
from runner.views.overview.facts import overview
from runner.views.overview.screen import lines
from tests.worlds.definitions import project

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "rules.md"
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text("utf-8"), re.S | re.M)
# What task.yaml says beside rules: what the task is, its data, its measures, and how it is computed.
NO_RULES = {
    "": {
        "schema_version", "id", "title", "description", "kind", "workflow", "interaction", "services", "shared", "uploads", "demo",
        "output", "datasets", "scenarios", "measures", "tables", "evaluator", "score_precision", "options", "severities",
        "exceptions", "models",
    },
    "datasets": {"id", "visibility", "inputs", "truths", "topics", "corpus", "description", "sources", "from"},
    "measures": {"id", "measure", "truths", "options"},
    "tables": {"id", "title", "description", "cells", "measures", "aggregate", "per_cell", "baseline"},
}  # fmt: skip
Made = dict[str, Any]
BASE: Made = {
    "schema_version": 1,
    "id": "toy",
    "title": "Toy",
    "kind": "adhoc",
    "datasets": [{"id": "dev", "visibility": "public"}, {"id": "test", "visibility": "blinded"}],
    "measures": [
        {"id": "ndcg_10", "measure": "nDCG@10", "truths": "qrels.txt"},
        {"id": "ap", "measure": "AP", "truths": "qrels.txt"},
    ],
    "tables": [{"id": "main", "cells": "all", "rank_by": "ndcg_10"}],
}


def rules() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each rule's key, with what the schema says of it."""
    top = schemas.schema("task")["properties"]
    for place, left_out in NO_RULES.items():
        found = top[place]["items"]["properties"] if place else top
        assert left_out <= found.keys(), "the schema has no such key any more"
        for key, of in found.items():
            if key not in left_out:
                yield key, of


def keys(data: Any) -> Iterator[str]:
    for value in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from keys(value)
    if isinstance(data, dict):
        yield from data


@pytest.mark.parametrize(("key", "of"), [pytest.param(key, of, id=key) for key, of in rules()])
def test_every_rule_stands_on_the_page_with_an_example(key: str, of: Mapping[str, Any]) -> None:
    shown = {one for text in EXAMPLES for one in keys(yaml.safe_load(text))}
    missing = f"write a sentence on {key} and an example into {PAGE.name}"
    assert key in shown and f"`{key}" in PAGE.read_text("utf-8"), missing
    inner = (
        of.get("items", of).get("properties", {}) if key != "limits" else {}
    )  # these stand in the reference
    assert set(inner) <= shown, f"{missing}: {', '.join(sorted(set(inner) - shown))}"


@pytest.fixture
def shown(tmp_path: Path) -> Callable[[Made], str]:
    """What ``runner task show`` says of a definition. Raises E401 for one that is wrong."""
    config = project(tmp_path / "root", truths=tmp_path / "truths")
    (config.tasks / "toy").mkdir(parents=True)
    (config.tasks / "toy" / "terms.txt").write_text(
        "The data are for this task alone."
    )  # an example names it

    def said(definition: Made) -> str:
        (config.tasks / "toy" / "task.yaml").write_text(yaml.safe_dump(definition))
        return "\n".join(lines(overview(load_task(config, "toy"))))

    return said


def whole(example: str) -> Made:
    """A definition with the rules of an example."""
    said: Made = yaml.safe_load(example)
    own = {one["id"]: one for one in said.get("datasets", [])}
    datasets = [{**one, **own.pop(one["id"], {})} for one in BASE["datasets"]]
    assert not own, "examples are about dev and test"
    return {**BASE, **said, "datasets": datasets}


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_every_example_is_right(number: int, shown: Callable[[Made], str]) -> None:
    assert shown(whole(EXAMPLES[number]))


def without(definition: Made, key: str) -> Iterator[Made]:
    """The definition without the rule ``key``, at each place that has it."""
    if key in definition:
        yield {name: value for name, value in definition.items() if name != key}
    for place in ("datasets", "measures", "tables"):
        for n, row in enumerate(definition[place]):
            if key in row:
                rest = {name: value for name, value in row.items() if name != key}
                yield {**definition, place: [*definition[place][:n], rest, *definition[place][n + 1 :]]}


# What single teams were given they see themselves (--as team:NAME); the budget is the organiser's.
NOT_FOR_ALL = {"extensions", "budget"}


@pytest.mark.parametrize("key", sorted({key for key, _ in rules()} - NOT_FOR_ALL))
def test_task_show_says_every_rule(key: str, shown: Callable[[Made], str]) -> None:
    """Without the rule it says something else."""
    says = []
    for definition in map(whole, EXAMPLES):
        for other in without(definition, key):
            with suppress(RunnerError):  # another rule needs it, or a task has to have it
                says.append(shown(other) != shown(definition))
    assert any(says) or key == "rank_by"
