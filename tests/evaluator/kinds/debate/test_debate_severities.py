"""Debates count as the documentation says, for every code and every severity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from evaluator.codes import CODES
from evaluator.findings import SEVERITIES
from tests.worlds.debate_runs import World, debate, turn

GOOD = turn("Night buses do not run.", "1.1")
FIRST, SECOND = debate(GOOD, id="c1"), debate(GOOD, id="c2")


class Case(NamedTuple):
    """A run with one finding; the share of answered turns where it is no error; whether it is about a debate or turn."""

    rows: Sequence[Any]
    answered: float
    topic: bool = True
    world: Mapping[str, Any] = MappingProxyType({})
    options: Mapping[str, Any] = MappingProxyType({})


def of(answer: dict[str, Any], **more: Any) -> Case:
    """The second debate has this answer, and nothing is lost by it."""
    return Case([FIRST, debate(answer, id="c2")], 1.0, **more)


def arguments(*listed: Any) -> dict[str, Any]:
    made = turn("Night buses do not run.")
    made["systemResponse"]["response"]["arguments"] = list(listed)
    return made


ANOTHER = turn("Night buses do not run.")
ANOTHER["systemResponse"]["utterance"] = "Something else."
CASES: dict[str, Case] = {
    "F201": Case([FIRST, debate(id="c2")], 0.5),
    "F202": Case([FIRST, debate(turn(""), id="c2")], 0.5),
    "F203": Case([FIRST], 0.5),
    "F204": Case([FIRST, debate(GOOD, id="c9"), SECOND], 1.0, topic=False),
    "F205": Case([FIRST, debate(turn(""), id="c1"), SECOND], 1.0, topic=False),
    "F206": Case([SECOND, FIRST], 1.0, topic=False),
    "F207": of(turn("word " * 61)),
    "F208": of(turn("Yes.", "9.9")),
    "F209": of(turn("Yes.", ("1.1", "other"))),
    "F210": of(turn("Yes.", "1.3"), world={"served": ["1.1"]}),
    "F211": of(turn("Yes.", ("1.1", None))),
    "F212": of(turn("Yes.", "1.1", "1.2"), options={"max_arguments": 1}),
    "F213": of(arguments("x")),
    "F214": Case([FIRST, [1], SECOND], 1.0, topic=False),
    "F215": Case([FIRST, "x" * (33 << 20), SECOND], 1.0, topic=False),
    "F216": of(arguments(*({"id": "1.1", "text": "x"} for _ in range(20_001)))),
    "F217": Case([FIRST, debate(GOOD, id="c2")], 0.5, options={"turns": 2}),
    "F218": Case([FIRST, debate(GOOD, turn(""), id="c2")], 1.0, options={"turns": 1}),
    "F219": of(ANOTHER),
    "F220": of(GOOD, topic=False),
    "F221": of(GOOD, topic=False, world={"turns": ["no record"]}),
    "F222": of(turn("Yes.", "1.1", "1.1")),
    "F225": of(turn("word," * 50)),
    "F101": Case([FIRST, "{broken", SECOND], 1.0, topic=False),
    "F118": Case(["\ufeff" + '{"id": "c1", "simulation": {"userTurns": []}}', SECOND], 0.5, topic=False),
}


def test_every_code_has_its_case() -> None:
    asked = {"F223", "F224", "F226", "F227"}  # of judges: see test_debate_judge.py
    assert {c for c in CODES if "F200" < c < "F231"} <= set(CASES) | asked


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("code", CASES)
def test_debates_count_as_documented(code: str, severity: str, tmp_path: Path) -> None:
    case = CASES[code]
    world = World(tmp_path)
    world.run(case.rows, **case.world)
    if code == "F220":
        (tmp_path / "run" / "served.jsonl").write_text("[]\n")
    along = dict.fromkeys(("F208", "F209", "F210", "F222", "F212", "F201", "F217"), "ignore")
    sink = world.evaluate(["answered"], {**along, code: severity}, **case.options)
    log = sink.findings
    heavy = severity == "error" or (severity == "defect" and not case.topic)
    assert log.invalid == heavy, [str(f) for f in log.sorted()[:5]]
    assert (code in log.counts) == (severity != "ignore")
    if heavy:
        assert not sink.aggregates
    else:
        wanted = min(case.answered, 0.5) if severity == "defect" else case.answered
        if code == "F217":
            wanted = 0.5  # each debate lacks one of two turns
        assert sink.aggregates["answered"]["value"] == wanted


def test_a_line_that_is_left_out_keeps_its_place(tmp_path: Path) -> None:
    """The debate behind it names no claim: it is about the claim in its place, not about the one before."""
    world = World(tmp_path)
    for broken in ("{broken", "[1]", "x" * (33 << 20)):
        world.run([broken, debate(turn("Yes.", "1.1"))])
        tolerant = dict.fromkeys(("F101", "F214", "F215"), "warning")
        sink = world.evaluate(["answered"], tolerant)
        values = {t: v for m, t, v, facets in sink.scores() if "turn" not in facets}
        assert values == {"c1": 0.0, "c2": 1.0}
