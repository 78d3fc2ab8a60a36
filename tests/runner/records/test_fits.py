"""What fits quickly fits."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from runner.records.fits import fits

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
    changed = json.loads(json.dumps(RESULT))
    holder = changed
    for key in place:
        holder = holder[key]
    holder[data.draw(st.sampled_from([*holder, "more"]))] = data.draw(ANY)
    if fits(changed, "result"):
        assert schemas.validate(changed, "result") == []


def test_a_whole_number_that_is_written_with_a_point_does_not_fit() -> None:
    assert not fits({**RESULT, "findings": {**RESULT["findings"], "error": 0.0}}, "result")
    assert schemas.validate({**RESULT, "findings": {**RESULT["findings"], "error": 0.0}}, "result")
