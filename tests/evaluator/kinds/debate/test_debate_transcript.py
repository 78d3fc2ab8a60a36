"""``evaluator debate --transcript``: what was said, readable, harmless and of bounded length."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluator.__main__ import main

EVIL = "\x1b]0;owned\x07\u202e=1+1\r\nPASS\n"


def turn(user: str, answer: str, arguments: list[Any] | None = None) -> dict[str, Any]:
    return {
        "utterance": user,
        "systemResponse": {
            "utterance": answer,
            "response": {"content": answer, "arguments": arguments or []},
        },
    }


def written(folder: Path, turns: list[dict[str, Any]], records: list[dict[str, Any]]) -> Path:
    line = {
        "simulation": {"configuration": {"topic": {"description": "Cats are better."}}, "userTurns": turns}
    }
    (folder / "turns.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    path = folder / "simulations.jsonl"
    path.write_text(json.dumps(line) + "\n")
    return path


def record(number: int, target: int | None, failure: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "debate": 1, "id": "c1", "turn": number, "target": target,
        "outcome": "failed" if failure else "answered", "failure": failure, "system_ms": 12.4,
    }  # fmt: skip


def test_who_said_what_and_what_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turns = [
        turn("Cats are better.", "Dogs help people.", [{"id": "7.1", "text": "Dogs help people."}]),
        turn("No.", ""),
        turn("Still cats.", "word " * 61),
    ]
    failure = {"class": "status", "detail": "status 500"}
    path = written(tmp_path, turns, [record(1, None), record(2, 1, failure), record(3, 1)])
    assert main(["debate", str(path), "--transcript"]) == 0
    said = capsys.readouterr().out
    for line in (
        "Debate 1 of 1,",
        "  1 user: Cats are better.",
        "    software: Dogs help people.",
        "      [3 words, 12 ms, 1 argument]",
        "      7.1: Dogs help people.",
        "  2 user (attacks answer 1): No.",
        "    software: (no answer: status 500)",
        "      [61 words (TOO MANY), 12 ms, 0 arguments]",
    ):
        assert line in said
    assert said.index("Debate 1") < said.index("within-word-limit"), "measures follow"


def test_nothing_that_a_terminal_obeys_and_no_flood(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [{"id": EVIL, "text": EVIL + "x" * 100_000}] * 200
    path = written(tmp_path, [turn(EVIL, EVIL + "y" * 100_000, arguments)], [record(1, None)])
    assert main(["debate", str(path), "--transcript"]) == 0
    said = capsys.readouterr().out
    assert not any(c in said for c in "\x1b\x07\u202e\r")
    assert "\nPASS" not in said
    assert "... and 195 more" in said and len(said) < 40_000


def test_a_debate_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "simulations.jsonl"
    path.write_text("{}\n")
    main(["debate", str(path), "--transcript"])
    assert "(there is none)" in capsys.readouterr().out
