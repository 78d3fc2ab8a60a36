"""``evaluator debate --transcript``: what was said, readable, harmless and of bounded length."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluator.__main__ import main

EVIL = "\x1b]0;owned\x07\u202e=1+1\r\nPASS\n"


def turn(user: str, answer: str, arguments: list[Any] | None = None) -> dict[str, Any]:
    response = {"content": answer, "arguments": arguments or []}
    return {"utterance": user, "systemResponse": {"utterance": answer, "response": response}}


def written(folder: Path, turns: list[dict[str, Any]], records: list[dict[str, Any]]) -> Path:
    topic = {"topic": {"description": "Cats are better."}}
    line = {"simulation": {"configuration": topic, "userTurns": turns}}
    (folder / "turns.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    path = folder / "simulations.jsonl"
    path.write_text(json.dumps(line) + "\n")
    return path


def record(number: int, target: int | None, failure: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "debate": 1, "id": "c1", "turn": number, "target": target,
        "outcome": "failed" if failure else "answered", "failure": failure, "system_ms": 12.4,
    }  # fmt: skip


def test_the_transcript_of_a_debate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]
) -> None:
    turns = [
        turn("Cats are better.", "Dogs help people.", [{"id": "7.1", "text": "Dogs help people."}]),
        turn("No.", ""),
        turn("Still cats.", "word " * 61),
    ]
    failure = {"class": "status", "detail": "status 500"}
    path = written(tmp_path, turns, [record(1, None), record(2, 1, failure), record(3, 1)])
    assert main(["debate", str(path), "--transcript"]) == 0
    said = capsys.readouterr().out
    transcript, _, measures = said.partition("\n\n")
    assert "within-word-limit" in measures and "status 500" in transcript
    path.write_text("{}\n")
    assert main(["debate", str(path), "--transcript"]) == 0
    text = (said + capsys.readouterr().out).replace(f"{tmp_path}/", "")
    golden("debate-transcript.txt", text)


def test_nothing_that_a_terminal_obeys_and_no_flood(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [{"id": EVIL, "text": EVIL + "x" * 100_000}] * 200
    path = written(tmp_path, [turn(EVIL, EVIL + "y" * 100_000, arguments)], [record(1, None)])
    assert main(["debate", str(path), "--transcript"]) == 0
    said = capsys.readouterr().out
    assert not any(c in said for c in "\x1b\x07\u202e\r")
    assert "\nPASS" not in said
    assert " 195 " in said and len(said) < 40_000
