"""Options of a kind: checked by its schema, completed by its defaults."""

from __future__ import annotations

import pytest

import schemas
from evaluator import registry
from evaluator.errors import EvaluatorError
from evaluator.kinds.options import checked_options


@pytest.mark.parametrize("kind", registry.built_in())
def test_every_default_of_the_schema_is_there(kind: str) -> None:
    schema = schemas.schema(f"kinds/{kind}")
    needed = {
        "meta": {"form": "judgments"},
        "diversity": {"split": {"d": "dev"}, "scenarios": {"s": {"queries": "baseline"}}},
        "records": {"outputs": [{"path": "answers.jsonl", "schema": "answer.json"}]},
    }
    found = checked_options(kind, needed.get(kind, {}))
    for key, node in schema["properties"].items():
        if "default" in node:
            assert found[key] == node["default"]


def test_objects_that_need_nothing_are_there_with_their_defaults() -> None:
    assert checked_options("debate", {})["labels"] == {"least": 1}
    assert "judge" not in checked_options("debate", {})  # it needs a model
    assert checked_options("debate", {"judge": {"model": "m"}})["judge"]["arguments"] == 20
    judge = {"type": "lexical", "labels": "judgments", "folder": "nli"}
    assert checked_options("report", {})["judge"] == judge


def test_what_is_given_stays_and_is_not_changed() -> None:
    given = {"interval": False, "judge": {"model": "m", "canaries": 0}}
    found = checked_options("debate", given)
    assert found["interval"] is False and found["judge"]["canaries"] == 0
    assert given == {"interval": False, "judge": {"model": "m", "canaries": 0}}


def test_every_wrong_option_is_named_with_its_place() -> None:
    with pytest.raises(EvaluatorError) as caught:
        checked_options("debate", {"turns": 0, "labels": {"least": 2}, "colour": 1})
    assert all(place in caught.value.why for place in ("turns: ", "labels.least: ", "colour: "))
