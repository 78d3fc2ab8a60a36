"""Judges as servers: what they are asked, what is written, and that a bad judgment is one judgment."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import schemas
from tests.worlds.standins import Asked, Room, debate, reply

CRITERIA = ["Quantity", "Quality", "Relation", "Manner"]


def simulation(turns: int, words: str = "x") -> dict[str, Any]:
    answer = f"system says {words}"
    response = {"content": answer, "arguments": [{"id": "1.2", "text": "y"}]}
    system = {"utterance": answer, "response": response, "milliseconds": 5291.567591}
    turn = {"utterance": f"user says {words}", "systemResponse": system}
    configuration = {"topic": {"description": words}}
    return {"configuration": configuration, "userTurns": [turn] * turns, "milliseconds": 1}


def ready(room: Room, *lines: Any) -> None:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (room.folder / "debates.jsonl").write_text(text)


async def fair(asked: Asked, writer: asyncio.StreamWriter) -> Any:
    if "userTurnIndex" not in asked.data:
        return {"score": None}
    return {"score": 0.25 * asked.data["userTurnIndex"], "explanation": asked.path}


def test_the_output_has_the_structure_of_genirsim(room: Room) -> None:
    one, two = simulation(2, "one"), simulation(3, "two")
    ready(room, {"simulation": one}, {"simulation": two})
    report, software, _ = debate(room, fair, mode="judge")
    assert (report.part, report.debates, report.turns, report.failed) == (None, 2, 4 * 3 + 4 * 4, 0)
    first, second = room.lines("evaluations.jsonl")
    keys = ["userTurnsEvaluations", "overallEvaluations", "millisecondsEvaluation"]
    assert list(first) == ["configuration", "simulation", *keys]
    manner = {"class": "ApiBasedEvaluator", "url": "http://127.0.0.1:8080/manner"}
    assert first["configuration"]["evaluators"]["Manner"] == manner
    assert first["simulation"] == one and second["simulation"] == two
    turns = second["userTurnsEvaluations"]
    assert [list(turn) for turn in turns] == [[*CRITERIA, "milliseconds"]] * 3
    assert [turn["Relation"]["score"] for turn in turns] == [0.0, 0.25, 0.5]
    assert turns[0]["Quality"]["explanation"] == "/quality" and turns[0]["Quality"]["milliseconds"] > 0
    assert list(second["overallEvaluations"]) == ["milliseconds"]  # it judges no whole debate

    counts = Counter(asked.path for asked in software.asked)
    assert counts == {f"/{name.lower()}": 3 + 4 for name in CRITERIA}
    mine = [a for a in software.asked if a.data["simulation"] == two and a.path == "/manner"]
    # Every request holds the whole debate; the index is absent, not null, for the debate as a whole.
    assert [a.data.get("userTurnIndex", "absent") for a in mine] == [0, 1, 2, "absent"]
    assert all(set(a.data) <= {"simulation", "userTurnIndex"} for a in software.asked)


def test_a_failed_judgment_is_left_out_and_the_rest_counts(room: Room) -> None:
    bad: dict[tuple[str, int], Any] = {
        ("/quantity", 0): {"score": "0.7"},
        ("/quality", 0): reply(b"<p>sorry"),
        ("/relation", 0): {"verdict": "yes"},
        ("/manner", 1): reply(b"", 500),
        ("/quality", 1): {"score": 1.5},
        ("/quantity", 1): None,
    }

    async def moody(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        key = (asked.path, asked.data.get("userTurnIndex", 9))
        return bad.get(key, {"score": 1})

    ready(room, {"simulation": simulation(2)})
    report, _, _ = debate(room, moody, mode="judge")
    assert (report.part, report.turns, report.failed) == (None, 12, 6)
    one, two = room.lines("evaluations.jsonl")[0]["userTurnsEvaluations"]
    assert list(one) == ["Manner", "milliseconds"] and list(two) == ["Relation", "milliseconds"]
    assert room.classes[:8] == [
        "wrong-type", "not-json", "no-content", None,
        "connection", "wrong-type", None, "status",
    ]  # fmt: skip


def test_records_and_debates_that_failed_or_have_no_configuration(room: Room) -> None:
    bare = {"userTurns": simulation(1)["userTurns"]}
    ready(room, {}, {"simulation": bare})
    report, _, _ = debate(room, fair, mode="judge")
    first, second = room.lines("evaluations.jsonl")
    assert first == {} and second["simulation"] == bare
    assert report.debates == 2 and {record["debate"] for record in room.turns} == {2}
    assert [(r["turn"], r["criterion"], r["score"]) for r in room.turns] == [
        *((1, name, 0.0) for name in CRITERIA),
        *((None, name, None) for name in CRITERIA),
    ]
    for record in room.turns:
        assert schemas.validate(record, "turn") == []
        assert record["outcome"] == "answered"


def test_debates_that_cannot_be_used(room: Room) -> None:
    for line in ({"simulation": {}}, {"simulation": {"userTurns": [1]}}, {"debate": []}):
        ready(room, line)
        report, software, _ = debate(room, fair, mode="judge")
        assert report.part == "input" and report.message.startswith("debates.jsonl:1: ")
        assert software.asked == []


def test_judgments_have_their_share_of_the_output(room: Room) -> None:
    async def wordy(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        return {"score": 1, "explanation": "x" * 1000}

    ready(room, {"simulation": simulation(1)})
    debate(room, wordy, mode="judge", output_bytes=3500)
    assert room.classes == [None] * 3 + ["too-large"] * 5
