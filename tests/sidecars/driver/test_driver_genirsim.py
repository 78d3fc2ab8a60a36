"""The driver does what GenIRSim did: recorded requests and files of the real client are its oracle (genirsim/README.md)."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from schemas.debates import digest_of_lines
from tests.worlds.standins import Asked, Room, debate, reply

RECORDED = Path(__file__).parent / "genirsim"
PORTS = {"software": 18081, "judge": 18099}


def lines(name: str) -> list[str]:
    return (RECORDED / name).read_text(encoding="utf-8").rstrip("\n").split("\n")


SIMULATIONS = [json.loads(line)["simulation"] for line in lines("simulations.jsonl")]
EVALUATIONS = [json.loads(line) for line in lines("evaluations.jsonl")]
NAMES = [simulation["configuration"]["topic"]["description"] for simulation in SIMULATIONS]


def timeless(line: str) -> str:
    """A line as it would be if nothing took time, and the user had no port."""
    line = re.sub(r'("milliseconds(?:Evaluation)?"):[0-9.e+-]+', r"\1:0", line)
    return line.replace("127.0.0.1:18300", "127.0.0.1")


def sent(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def about(text: str) -> dict[str, Any]:
    """The debate that an utterance of the user belongs to."""
    [found] = [s for s, name in zip(SIMULATIONS, NAMES, strict=True) if name in text]
    return found


async def user(asked: Asked, writer: asyncio.StreamWriter) -> Any:
    if asked.path == "/healthz":
        return {"ok": True}
    messages = asked.data.get("messages", [])
    found = about(messages[0]["content"] if messages else asked.data["options"]["claim"])
    content = found["userTurns"][len(messages) // 2]["utterance"]
    return {"model": "any-user", "message": {"role": "assistant", "content": content}}


async def software(asked: Asked, writer: asyncio.StreamWriter) -> Any:
    found = about(asked.data["messages"][0]["content"])
    return found["userTurns"][asked.turn - 1]["systemResponse"]["response"]


def claims(room: Room) -> None:
    topics = [simulation["configuration"]["topic"] for simulation in SIMULATIONS]
    rows = [json.dumps({"id": topic["id"], "claim": topic["description"]}) for topic in topics]
    (room.folder / "claims.jsonl").write_text("\n".join(rows) + "\n")


def test_debates_are_held_and_written_as_by_genirsim(room: Room) -> None:
    claims(room)
    debating = {"turns": 3, "port": PORTS["software"], "user_model": "any-user"}
    report, system, simulator = debate(room, software, user, **debating)
    assert (report.part, report.failed) == (None, 0)
    written = (room.folder / "out" / "simulations.jsonl").read_text(encoding="utf-8")
    assert [timeless(line) for line in written.rstrip("\n").split("\n")] == [
        timeless(line) for line in lines("simulations.jsonl")
    ]
    recorded = [json.loads(line) for line in lines("requests.jsonl")]
    for name, server in (("system", system), ("user", simulator)):
        asked = Counter(sent(one.data) for one in server.asked if one.path != "/healthz")
        assert asked == Counter(one["body"] for one in recorded if one["to"] == name)


def test_judgments_are_asked_for_and_written_as_by_genirsim(room: Room) -> None:
    (room.folder / "debates.jsonl").write_bytes((RECORDED / "simulations.jsonl").read_bytes())

    async def judge(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        criterion = asked.path.removeprefix("/").capitalize()
        place = SIMULATIONS.index(asked.data["simulation"])
        index = asked.data.get("userTurnIndex")
        if index is None:
            return {"score": None}
        score = EVALUATIONS[place]["userTurnsEvaluations"][index][criterion]["score"]
        return {"score": float(score)}  # as a judge in Python would say it: 1.0

    report, server, _ = debate(room, judge, None, mode="judge", port=PORTS["judge"])
    assert (report.part, report.failed) == (None, 0)
    written = (room.folder / "out" / "evaluations.jsonl").read_text(encoding="utf-8")
    assert [timeless(line) for line in written.rstrip("\n").split("\n")] == [
        timeless(line) for line in lines("evaluations.jsonl")
    ]
    assert len(server.asked) == 32
    assert {tuple(one.data) for one in server.asked} == {("simulation", "userTurnIndex"), ("simulation",)}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("27.0", "27"),
        ("1e2", "100"),
        ("-0.0", "0"),
        ("1.50", "1.5"),
        ("9007199254740992.0", "9007199254740992"),
        ("12345678901234567890", "12345678901234567890"),  # JavaScript would round it
    ],
)
def test_numbers_are_written_as_javascript_does(room: Room, theirs: str, ours: str) -> None:
    async def scored(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        return reply(f'{{"content":"No.","score":{theirs}}}'.encode())

    debate(room, scored)
    written = (room.folder / "out" / "simulations.jsonl").read_text(encoding="utf-8")
    assert f'"response":{{"content":"No.","score":{ours}}}' in written


def test_a_debate_of_genirsim_with_half_a_character_can_be_judged(room: Room) -> None:
    """GenIRSim passes on what a software says, halves of surrogate pairs too; our files cannot hold them."""
    line = lines("simulations.jsonl")[0]
    words = "with little money gain most"
    assert line.count(words) > 1
    broken = line.replace(words, "with \\ud83d, \\\\ud83d and \\ud83d\\ude00 gain most")
    (room.folder / "debates.jsonl").write_text(broken + "\n", encoding="utf-8")

    async def judge(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        return {"score": 1}

    report, server, _ = debate(room, judge, None, mode="judge")
    assert (report.part, report.failed) == (None, 0)
    shown = server.asked[0].data["simulation"]["userTurns"][0]["systemResponse"]["utterance"]
    assert "with \ufffd, \\ud83d and \U0001f600 gain most" in shown
    [written] = room.lines("evaluations.jsonl")
    # The judgments are about the same words as the file that was judged, for whoever compares them.
    assert digest_of_lines([written]) == digest_of_lines([json.loads(broken)])
