"""Debates as they should go: what is asked, what is written, and that it comes out the same again."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import schemas
from schemas.debates import digest_of_lines, parse, transcript
from tests.worlds.standins import Asked, Room, debate, good


def test_the_output_has_the_structure_of_genirsim(room: Room) -> None:
    report, _, _ = debate(room)
    counts = {"debates": 2, "turns": 6, "failed": 0}
    ready = {"ready": True, "ready_ms": report.data()["ready_ms"]}
    assert report.data() == {"schema_version": 1, "failure": None, **ready, **counts}
    assert json.loads((room.folder / "out" / "driver.json").read_text()) == report.data()
    assert schemas.validate(report.data(), "driver-report") == []
    files = {path.name for path in (room.folder / "out").iterdir()}
    assert files == {"simulations.jsonl", "turns.jsonl", "driver.json"}
    first, second = room.lines("simulations.jsonl")
    # The order of the keys too: this is the line of a real run with its values replaced.
    simulation = first["simulation"]
    assert list(first) == ["simulation"]
    assert list(simulation) == ["configuration", "userTurns", "milliseconds"]
    assert simulation["configuration"] == {
        "topic": {"description": "Cars are bad", "id": "c1"},
        "user": {
            "class": "Touche25RADUser",
            "url": "http://127.0.0.1/user-sim/api/chat",
            "model": "base-user",
        },
        "system": {"class": "BasicChatSystem", "url": "http://127.0.0.1:8080"},
        "maxTurns": 3,
    }
    assert list(simulation["configuration"]) == ["topic", "user", "system", "maxTurns"]
    turn = simulation["userTurns"][0]
    assert list(turn) == ["utterance", "systemResponse"]
    assert list(turn["systemResponse"]) == ["utterance", "response", "milliseconds"]
    assert turn["utterance"] == "I think: Cars are bad"
    assert turn["systemResponse"]["response"] == {
        "content": "On the contrary: I think: Cars are bad",
        "arguments": [{"id": "1.2", "text": "A reason.", "key": 1}],
    }
    assert turn["systemResponse"]["utterance"] == turn["systemResponse"]["response"]["content"]
    assert second["simulation"]["configuration"]["topic"]["id"] == "c2"
    spent = [t["systemResponse"]["milliseconds"] for t in simulation["userTurns"]]
    assert simulation["milliseconds"] >= sum(spent) > 0


def test_the_records_of_the_turns(room: Room) -> None:
    debate(room)
    assert [(t["debate"], t["id"], t["turn"]) for t in room.turns] == [
        (d, f"c{d}", t) for d in (1, 2) for t in (1, 2, 3)
    ]
    for turn in room.turns:
        assert schemas.validate(turn, "turn") == []
    first, second, third = room.turns[:3]
    assert (first["target"], second["target"], third["target"]) == (None, 1, 2)
    assert (first["outcome"], first["failure"], first["status"]) == ("answered", None, 200)
    assert (first["words"], first["arguments"], first["argument_ids"]) == (8, 1, ["1.2"])
    assert first["bytes"] > 60 and first["system_ms"] > 0 and first["user_ms"] > 0


def test_every_request_holds_the_whole_dialogue_and_nothing_else(room: Room) -> None:
    _, software, user = debate(room, turns=5, concurrency=1)
    one = software.asked[:5]
    assert [asked.path for asked in one] == ["/"] * 5
    assert {asked.headers["content-type"] for asked in one} == {"application/json"}
    assert {asked.headers["host"] for asked in one} == {"127.0.0.1:8080"}
    assert [len(line["simulation"]["userTurns"]) for line in room.lines("simulations.jsonl")] == [5, 5]
    for turn, asked in enumerate(one, 1):
        messages = asked.data["messages"]
        assert list(asked.data) == ["messages"] and len(messages) == 2 * turn - 1
        assert [m["role"] for m in messages] == (["user", "assistant"] * turn)[:-1]
        assert all(list(m) == ["role", "content"] for m in messages)
    assert one[4].data["messages"][:-2] == one[3].data["messages"]

    # The simulated user sees the same talk with the roles exchanged, and gets its own messages back as they were.
    first, second, third = [asked.data for asked in user.asked if asked.path != "/healthz"][:3]
    assert first == {"model": "base-user", "options": {"claim": "Cars are bad"}}
    assert [m["role"] for m in second["messages"]] == ["assistant", "user"]
    assert third["messages"][2]["mood"] == "cross"
    assert [m["content"] for m in third["messages"]] == [m["content"] for m in one[2].data["messages"][:-1]]


def test_debates_run_at_the_same_time_within_the_limit(room: Room) -> None:
    room.claims(*[f"Claim {n}" for n in range(8)])

    async def uneven(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        await asyncio.sleep(0.2 if "Claim 0" in asked.data["messages"][0]["content"] else 0.05)
        return await good(asked, writer)

    _, software, _ = debate(room, uneven, concurrency=3)
    assert software.most == 3
    opening = [n for n, asked in enumerate(software.asked) if asked.turn == 1]
    assert opening != [0, 3, 6, 9, 12, 15, 18, 21]  # not one debate after the other
    # The files are in the order of the claims, although the first debate does not end first.
    topics = [line["simulation"]["configuration"]["topic"]["id"] for line in room.lines("simulations.jsonl")]
    assert topics == [f"c{n}" for n in range(1, 9)]
    assert [turn["id"] for turn in room.turns] == [name for name in topics for _ in range(3)]


def test_two_debates_on_one_claim_are_two_debates(room: Room) -> None:
    room.claims("The same", "The same")
    debate(room)
    one, two = room.lines("simulations.jsonl")
    said = [transcript(found) for line in (one, two) if (found := parse(line)[0]) is not None]
    assert said[0] == said[1] and len(said[0]) == 3


def test_the_same_software_gives_the_same_transcript(room: Room) -> None:
    digests = []
    for concurrency in (1, 4):
        debate(room, concurrency=concurrency)
        digests.append(digest_of_lines(room.lines("simulations.jsonl")))
    assert digests[0] == digests[1]

    async def other(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        return {**await good(asked, writer), "arguments": [{"id": "1.3", "text": "A reason."}]}

    debate(room, other)
    assert digest_of_lines(room.lines("simulations.jsonl")) != digests[0]


def test_other_keys_and_long_answers_are_kept_as_they_are(room: Room) -> None:
    extra = {"ключ": [1, 2.5, None, True, "\x00\x1b"]}
    answer = {"score": 1e-7, "content": "wörter \u2028 " * 100, "arguments": [], "extra": extra}

    async def odd(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        return answer

    debate(room, odd)
    response = room.lines("simulations.jsonl")[0]["simulation"]["userTurns"][0]["systemResponse"]["response"]
    assert response == answer and list(response) == list(answer)
    assert room.turns[0]["words"] == 100  # flagged by its count, never cut
    raw = (room.folder / "out" / "simulations.jsonl").read_bytes()
    assert "ключ".encode() in raw and b"\x1b" not in raw and raw.count(b"\n") == 2


def test_the_user_is_not_shown_more_than_it_can_take(room: Room) -> None:
    async def long(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        return {"content": "x" * 100_000}

    _, software, user = debate(room, long)
    shown = [
        asked.data["messages"][1]["content"] for asked in user.asked if (asked.data or {}).get("messages")
    ]
    assert {len(text) for text in shown} == {4000}
    assert len(software.asked[-1].data["messages"][1]["content"]) == 100_000
