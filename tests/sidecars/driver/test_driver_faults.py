"""Whatever a software does costs it that turn, and never ends the run."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gzip
import json
import re
import time
from dataclasses import replace
from typing import Any

import pytest

import schemas
from tests.worlds.standins import Asked, Handler, Room, Server, debate, good, reply, simulated

NO_ANSWER = {"utterance": "", "response": {"content": "", "arguments": []}}


def says(body: bytes, status: int = 200, *headers: str) -> Handler:
    async def handler(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        return reply(body, status, *headers)

    return handler


def sends(data: Any) -> Handler:
    return says(json.dumps(data).encode())


def sends_raw(data: bytes | None) -> Handler:
    """Send these bytes as they are, then close the connection."""

    async def handler(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        return data

    return handler


def drips(head: bytes, piece: bytes, pause: float) -> Handler:
    """Send ``piece`` again and again, without an end."""

    async def handler(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause)

    return handler


async def hangs(asked: Asked, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(30)


async def is_late(asked: Asked, writer: asyncio.StreamWriter) -> Any:
    await asyncio.sleep(1)
    return await good(asked, writer)


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
DEEP = b'{"content": "x", "a": ' + b"[" * 40 + b"]" * 40 + b"}"
BOTTOMLESS = b"[" * 100_000

FAULTS: dict[str, tuple[Handler, str]] = {
    "hangs": (hangs, "timeout"),
    "answers after the limit": (is_late, "timeout"),
    "drips the body": (drips(OK + b"Content-Length: 100000\r\n\r\n", b" ", 0.02), "timeout"),
    "drips the headers": (drips(OK, b"X: y\r\n", 0.02), "timeout"),
    "only ever 100 Continue": (drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, 0.01), "timeout"),
    "closes": (sends_raw(None), "connection"),
    "breaks off": (sends_raw(OK + b'Content-Length: 1000\r\n\r\n{"content": "half'), "connection"),
    "not HTTP": (sends_raw(b"220 smtp.example ESMTP\r\n"), "connection"),
    "huge headers": (says(b"{}", 200, "X: " + "y" * 1_000_000), "connection"),
    "two lengths": (says(b"{}", 200, "Content-Length: 7"), "connection"),
    "status 500 with HTML": (says(b"<h1>Oops</h1>", 500), "status"),
    "status 500 with a good answer": (says(b'{"content": "fine"}', 500), "status"),
    "redirect": (says(b"", 302, "Location: http://127.0.0.1:9200/"), "status"),
    "no content 204": (says(b"", 204), "status"),
    "empty body": (says(b""), "empty"),
    "blank body": (says(b" \n"), "empty"),
    "empty content": (sends({"content": " \n"}), "empty"),
    "ten megabytes": (says(b'{"content": "' + b"x" * 10_000_000 + b'"}'), "too-large"),
    "endless chunks": (drips(CHUNKED, b"10000\r\n" + b"x" * 65536 + b"\r\n", 0), "too-large"),
    "a flood of arguments": (sends({"content": "x", "arguments": [{"id": "1"}] * 50_000}), "too-large"),
    "HTML": (says(b"<!doctype html><p>hello"), "not-json"),
    "broken JSON": (says(b'{"content": "x",}'), "not-json"),
    "two objects": (says(b'{"content": "x"}{}'), "not-json"),
    "NaN": (says(b'{"content": "x", "score": NaN}'), "not-json"),
    "infinite": (says(b'{"content": "x", "score": 1e999}'), "not-json"),
    "a long number": (says(b'{"content": "x", "score": ' + b"1" * 5000 + b"}"), "not-json"),
    "not UTF-8": (says(b'{"content": "\xff"}'), "not-json"),
    "nested": (says(DEEP), "not-json"),
    "nested without end": (says(BOTTOMLESS), "not-json"),
    "compressed": (says(gzip.compress(b'{"content": "x"}'), 200, "Content-Encoding: gzip"), "not-json"),
    "a list": (sends([{"content": "x"}]), "wrong-type"),
    "a text": (sends("x"), "wrong-type"),
    "content is a number": (sends({"content": 7}), "wrong-type"),
    "content is a list": (sends({"content": ["x"]}), "wrong-type"),
    "arguments is an object": (sends({"content": "x", "arguments": {}}), "wrong-type"),
    "an argument is a text": (sends({"content": "x", "arguments": ["1.2"]}), "wrong-type"),
    "an argument without id": (sends({"content": "x", "arguments": [{"text": "y"}]}), "wrong-type"),
    "an id that is a number": (sends({"content": "x", "arguments": [{"id": 1.2}]}), "wrong-type"),
    "a text that is null": (sends({"content": "x", "arguments": [{"id": "1", "text": None}]}), "wrong-type"),
    "no content": (sends({"answer": "x"}), "no-content"),
    "content is null": (sends({"content": None}), "no-content"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_failing_second_turn_is_that_turns_defect(room: Room, name: str) -> None:
    handler, kind = FAULTS[name]

    async def second(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        return await (handler if asked.turn == 2 else good)(asked, writer)

    room.claims("One claim")
    # Only what is meant to be too slow is: a busy machine takes its time for ten megabytes.
    report, software, user = debate(room, second, answer_seconds=0.6 if kind == "timeout" else 20)
    assert room.classes == [None, kind, None]
    assert (report.debates, report.turns, report.failed, report.part) == (1, 3, 1, None)
    turns = room.lines("simulations.jsonl")[0]["simulation"]["userTurns"]
    response = turns[1]["systemResponse"]
    assert response == {**NO_ANSWER, "milliseconds": response["milliseconds"]}
    # The debate goes on: the software sees its silence, and the user attacks what it said before that.
    assert software.asked[-1].data["messages"][3] == {"role": "assistant", "content": ""}
    assert user.asked[-1].data["messages"][3] == {"role": "user", "content": ""}
    assert [turn["target"] for turn in room.turns] == [None, 1, 1]
    for turn in room.turns:
        assert schemas.validate(turn, "turn") == []


def test_details_say_what_was_wrong_in_safe_words(room: Room) -> None:
    async def second(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        if asked.turn == 1:
            return reply(b"\x1b[31m<h1>Oops</h1>\n", 500)
        return reply(b"<html>\x00")

    debate(room, second, turns=2)
    details = [turn["failure"]["detail"] for turn in room.turns[:2]]
    assert details[0] == r"status 500: \x1b[31m<h1>Oops</h1>"
    assert "line 1, column 1" in details[1] and "<html>" in details[1]
    assert all(text.isprintable() for text in details)


def test_half_characters_are_made_whole(room: Room) -> None:
    debate(room, says(rb'{"content": "a \ud800 b", "\udfff": ["\udc00"], "arguments": [{"id": "\ud801"}]}'))
    response = room.lines("simulations.jsonl")[0]["simulation"]["userTurns"][0]["systemResponse"]["response"]
    assert response == {"content": "a � b", "�": ["�"], "arguments": [{"id": "�"}]}
    assert room.turns[0]["argument_ids"] == ["�"]


def test_only_so_many_ids_are_recorded(room: Room) -> None:
    many = [{"id": "x" * 300}] + [{"id": str(n)} for n in range(99)]
    debate(room, sends({"content": "x", "arguments": many}), turns=1)
    assert room.turns[0]["arguments"] == 100 and len(room.turns[0]["argument_ids"]) == 50
    assert len(room.turns[0]["argument_ids"][0]) == 200


def test_answers_without_arguments_are_accepted_and_cookies_are_not_kept(room: Room) -> None:
    room.claims("One")
    _, software, _ = debate(room, says(b'{"content": "x"}', 200, "Set-Cookie: debate=1"))
    assert room.classes == [None] * 3
    assert all("cookie" not in asked.headers for asked in software.asked)


def test_each_debate_has_its_share_of_the_output(room: Room) -> None:
    async def greedy(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        if "bad" in asked.data["messages"][0]["content"]:
            return {"content": "x" * 4000}
        return {"content": "x"}

    debate(room, greedy, output_bytes=20_000)
    assert room.classes == [None, "too-large", "too-large", None, None, None]


def test_a_server_that_dies_in_the_middle(room: Room) -> None:
    """Its socket is gone, and a little later the runner says so."""

    async def dies(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        if asked.turn < 3:
            return await good(asked, writer)
        room.config().software.unlink(missing_ok=True)
        return None

    async def watch() -> None:
        while room.config().software.exists():
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.5)
        room.config().ended.touch()

    room.claims("One", "Two", "Three", "Four")
    report, _, _ = debate(room, dies, then=_after_start(room, watch), turns=5, concurrency=2)
    assert report.part is None and report.failed == 3 + 3 + 5 + 5
    assert room.classes == ([None, None] + ["server-ended"] * 3) * 2 + ["server-ended"] * 10
    turns = room.lines("simulations.jsonl")[3]["simulation"]["userTurns"]
    assert [turn["utterance"] for turn in turns] == [""] * 5  # nobody is asked any more, also not the user


def _after_start(room: Room, then: Any) -> Any:
    async def wait() -> None:
        while not room.config().software.exists():
            await asyncio.sleep(0.01)
        await then()

    return wait


def test_a_server_that_only_refuses_connections_for_a_while_is_asked_again(room: Room) -> None:
    async def moody(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        return None if asked.turn == 2 else await good(asked, writer)

    started = time.monotonic()
    debate(room, moody)
    assert room.classes == [None, "connection", None] * 2
    assert time.monotonic() - started < 3  # it still listens, so nobody waits for the end of its container


def test_the_end_of_the_runs_time(room: Room) -> None:
    report, _, _ = debate(room, hangs, deadline_seconds=1.0, answer_seconds=30, turns=3)
    assert room.classes == ["run-limit"] * 6
    assert (report.part, report.failed) == (None, 6)
    turns = room.lines("simulations.jsonl")[0]["simulation"]["userTurns"]
    assert [turn["utterance"] for turn in turns] == ["I think: Cars are bad", "", ""]


def test_a_server_that_never_listens(room: Room) -> None:
    started = time.monotonic()
    report, _, user = debate(room, None, ready_seconds=0.8)
    assert (report.ready, report.part) == (False, None)
    assert 0.8 <= time.monotonic() - started < 4
    assert not (room.folder / "out" / "simulations.jsonl").exists()
    assert [asked.path for asked in user.asked] == ["/healthz"]  # no claim was shown to anybody
    room.config().ended.touch()  # its container has ended: there is nothing to wait for
    started = time.monotonic()
    report, _, _ = debate(room, good, ready_seconds=30)
    assert report.ready is False and time.monotonic() - started < 5


def test_a_relay_whose_server_does_not_listen_yet_is_not_ready(room: Room) -> None:
    """Every connection to a relay succeeds, and ends at once if the software does not listen."""

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def relay() -> None:
        async with await asyncio.start_unix_server(refuse, room.config().software):
            await asyncio.sleep(60)

    report, _, _ = debate(room, None, then=relay, ready_seconds=1.0)
    assert report.ready is False


def test_a_server_that_becomes_ready_late(room: Room) -> None:
    config = room.config()

    async def late() -> None:
        await asyncio.sleep(0.7)
        async with Server(config.software, good):
            await asyncio.sleep(60)

    report, _, _ = debate(room, None, then=late)
    assert report.ready and report.ready_ms is not None and report.ready_ms >= 700
    assert report.failed == 0


def _user_that(answer: Any, after: int = 0) -> Handler:
    async def handler(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        if asked.path == "/healthz" or asked.number <= after + 1:
            return await simulated(asked, writer)
        return answer

    return handler


# Answers of the user, and the status that the failure names.
USERS: list[tuple[Any, list[str]]] = [
    (reply(b'{"error": "no model"}', 502), ["502"]),
    (reply(b'{"error": "bad"}', 400), ["400"]),
    (reply(b"not json"), []),
    ({"message": {"role": "assistant", "content": ""}}, []),
    (b"", []),
]


def test_a_failure_of_the_user_is_not_the_softwares(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecars.driver.user.PAUSE", 0.01)
    messages = set()
    for number, (answer, status) in enumerate(USERS):
        own = replace(room, folder=room.folder / str(number))
        own.folder.mkdir()
        own.claims(*[f"Claim {n}" for n in range(20)])
        report, software, _ = debate(own, user=_user_that(answer, after=4), concurrency=1, turns=3)
        assert report.part == "user" and re.findall(r"\d+", report.message) == status
        assert report.data()["ready"] is True
        # It stops early; what was finished is kept, in its place.
        assert len(software.asked) == 4
        lines = own.lines("simulations.jsonl")
        assert len(lines) == 20 and lines[0]["simulation"] and lines[1:] == [{}] * 19
        messages.add(report.message)
    assert len(messages) == len(USERS), messages


def test_a_user_that_fails_once_is_asked_again(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecars.driver.user.PAUSE", 0.01)

    async def moody(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        return reply(b"", 503) if asked.number % 2 else await simulated(asked, writer)

    report, _, _ = debate(room, user=moody, concurrency=1)
    assert report.part is None and report.failed == 0


def test_a_user_that_never_becomes_healthy(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecars.driver.user.READY", 0.3)
    report, software, _ = debate(room, user=says(b"", 503))
    assert report.part == "user" and "503" in report.message
    assert software.asked == []


def test_debates_in_the_middle_stop_when_the_user_fails(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecars.driver.user.PAUSE", 0.01)
    room.claims("One", "Two")

    async def picky(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        if asked.path != "/healthz" and "One" in str(asked.data):
            return reply(b"{}", 400)
        return await simulated(asked, writer)

    started = time.monotonic()
    report, _, _ = debate(room, hangs, user=picky, concurrency=2, answer_seconds=20)
    assert report.part == "user" and time.monotonic() - started < 10


# Files of claims, and the line that the failure names. Only two of the reasons are the same.
CLAIMS: list[tuple[str | None, str]] = [
    (None, ""),
    ("", ""),
    ("{}\n", "1"),
    ('{"id": "a", "claim": 7}\n', "1"),
    ('{"id": "a", "claim": "b"}\n\n[]\n', "3"),
    ("nonsense\n", "1"),
]


def test_claims_that_cannot_be_used(room: Room) -> None:
    reasons = set()
    for text, line in CLAIMS:
        (room.folder / "claims.jsonl").unlink(missing_ok=True)
        if text is not None:
            (room.folder / "claims.jsonl").write_text(text)
        report, software, _ = debate(room)
        place = re.match(r"claims\.jsonl(?::(\d+))?", report.message)
        assert report.part == "input" and place is not None and (place[1] or "") == line, report
        assert software.asked == []
        reasons.add(report.message[place.end() :])
    assert len(reasons) == len(CLAIMS) - 1, reasons


def test_a_full_disk_is_the_drivers_failure(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full", "/out/parts/1.line")

    monkeypatch.setattr("sidecars.driver.output.Output.keep", full)
    report, _, _ = debate(room)
    assert report.part == "driver" and "full" in report.message
