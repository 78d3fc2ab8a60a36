"""Which measures of reports count something: the schema of the kind says it to those who print tables."""

from __future__ import annotations

import schemas
from evaluator.argue.scoring.measures import COUNTS, NEGATION_COUNTS, STRICT_COUNTS, parse_measure


def test_the_schema_names_every_count() -> None:
    named = schemas.schema("kinds/report")["x-counts"]
    assert named == [*COUNTS, *STRICT_COUNTS, *NEGATION_COUNTS, "character_count@max"]
    assert {parse_measure(name).join for name in named} == {"sum", "max"}
