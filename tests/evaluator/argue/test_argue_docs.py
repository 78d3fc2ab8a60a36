"""The page about judging reports shows the fields that the schemas have, and names every measure."""

from __future__ import annotations

from pathlib import Path

import pytest

import schemas
from evaluator.argue.formats.tracks import names
from evaluator.argue.scoring.measures import Options
from evaluator.argue.scoring.output import FORMATS
from evaluator.argue.scoring.runs import topic_measures

PAGE = (Path(__file__).resolve().parents[3] / "docs/reference/argue.md").read_text("utf-8")


@pytest.mark.parametrize(
    "name", ["argue-report", "argue-nuggets", "argue-judgments", "argue-prompts", "argue-track"]
)
def test_the_tables_are_those_of_the_schemas(name: str) -> None:
    from tools import docs

    assert docs.table(schemas.schema(name)).strip() in PAGE


def test_every_measure_format_and_track_is_named() -> None:
    shares = ("sentence_support_negation", "nugget_coverage_negation", "nugget_coverage_strict")
    for name in (*topic_measures(Options()), *FORMATS, *names(), *shares, "f1_negation", "f1_strict"):
        assert f"`{name}`" in PAGE
