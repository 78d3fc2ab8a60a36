"""Reading debates in every form, and records beside them; nothing a participant can write raises."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.formats.dialogue import (
    Claim,
    index_file,
    place,
    read_claims,
    read_debates,
    read_index,
    read_served,
    read_turns,
    unplaced,
)
from schemas.debates import Debate, parse, transcript_digest
from schemas.debates import digest_of_lines as of_lines
from tests.worlds.debate_runs import REAL, debate, turn, write

MESSAGES = [
    {"role": "user", "content": "U1", "arguments": None},
    {"role": "assistant", "content": "S1", "arguments": [{"id": "1.1", "text": "t"}]},
    {"role": "user", "content": "U2", "arguments": [{"id": "9.9", "text": "the user's own"}]},
    {"role": "assistant", "content": "S2", "arguments": []},
]


def read(path: Path) -> tuple[list[Debate], Log]:
    log = Log(path.name)
    return [r.debate for r in read_debates(path, log)], log


def one(data: Any) -> Debate:
    found, _ = parse(data)
    assert found is not None
    return found


def test_real_debates_in_plain_and_packed_form(tmp_path: Path) -> None:
    debates, log = read(REAL)
    assert not log.counts and log.lines == 2
    assert [(d.claim.split()[-1], len(d.turns), d.planned) for d in debates] == [
        ("bad", 3, 3),
        ("good", 3, 3),
    ]
    first = debates[0].turns[0]
    assert first.arguments[0].id == "15434.15367" and first.answer == first.arguments[0].text
    assert first.milliseconds is not None and round(first.milliseconds) == 5292
    packed = tmp_path / "simulations.jsonl.gz"
    packed.write_bytes(gzip.compress(REAL.read_bytes()))
    assert read(packed)[0] == debates
    for line in REAL.read_text().splitlines():
        assert schemas.validate(json.loads(line), "debate-simulation") == []


def test_the_forms_in_circulation_are_the_same_debate() -> None:
    turns = (turn("S1", ("1.1", "t"), user="U1"), turn("S2", user="U2"))
    full = debate(*turns, id="x", claim="C")
    training = one({"id": "x", "claim": "C", "description": "long", "debate": MESSAGES})
    converted = one({"simulation": {"userTurns": debate(*turns)["simulation"]["userTurns"]}})
    annotated = one({"id": "x", "claim": "C", "simulated_debate": MESSAGES})
    judged = one({"configuration": {}, **full, "userTurnsEvaluations": []})
    assert len({transcript_digest([d]) for d in (one(full), training, annotated, converted, judged)}) == 1
    assert (training.id, training.claim, converted.id, converted.claim) == ("x", "C", "", "")
    assert [len(t.arguments) for t in training.turns] == [1, 0]  # not those of the user


def test_the_digest_is_the_one_of_the_lines() -> None:
    lines = [json.loads(line) for line in REAL.read_text().splitlines()]
    lines += [{}, debate(turn("", user="U"), turn("a", ("1", None)))]
    assert transcript_digest([one(line) for line in lines]) == of_lines(lines)
    changed = debate(turn("", user="U"), turn("b", ("1", None)))
    assert of_lines([*lines[:-1], changed]) != of_lines(lines)
    slower = debate(turn("", user="U", ms=9), turn("a", ("1", None), ms=8))
    assert of_lines([*lines[:-1], slower]) == of_lines(lines)


def test_users_without_an_answer_are_failed_turns() -> None:
    turns = one({"debate": [MESSAGES[0], *MESSAGES[2:], MESSAGES[0]]}).turns
    expected = [("U1", "", True), ("U2", "S2", False), ("U1", "", True)]
    assert [(t.user, t.answer, t.failed) for t in turns] == expected
    assert one({}).failed and one(debate(turn("  "))).turns[0].failed


@pytest.mark.parametrize(
    ("line", "code", "key"),
    [
        ("{", "F101", ""),
        ("[" * 100_000, "F101", ""),
        ("[1]", "F214", ""),
        ('{"id": 3}', "F214", "userTurns"),
        ('{"simulation": 1}', "F214", "simulation"),
        ('{"simulation": {"userTurns": {}}}', "F214", "userTurns"),
        ('{"debate": "x"}', "F214", "debate"),
    ],
)
def test_lines_that_are_no_debate(tmp_path: Path, line: str, code: str, key: str) -> None:
    debates, log = read(write(tmp_path / "s.jsonl", [debate(turn("a")), line]))
    assert len(debates) == 1 and log.invalid
    (finding,) = log.sorted()
    assert (finding.code, finding.line) == (code, 2) and key in finding.message


def test_everything_wrong_in_a_file_is_said_at_once(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{}\n\n\xff\n{"simulation"\n{}\r\n')
    debates, log = read(path)
    assert len(debates) == 2
    assert [(f.code, f.line) for f in log.sorted()] == [("F005", 3), ("F101", 4), ("F118", 1)]


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bad.gz").write_bytes(gzip.compress(REAL.read_bytes())[:-9])
    (tmp_path / "link").symlink_to(REAL)
    assert set(read(tmp_path / "empty")[1].counts) == {"F001"}
    assert set(read(tmp_path / "bad.gz")[1].counts) == {"F003"}
    assert set(read(tmp_path / "link")[1].counts) == {"F002"}
    log = Log("x")
    read_debates(REAL, log, max_bytes=100)
    assert set(log.counts) == {"F004"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["simulation", "userTurns", "utterance", "systemResponse", "response", "content", "arguments", "id", "text",
                         "debate", "role", "configuration", "topic", "description", "maxTurns", "milliseconds", "user"]), inner, max_size=4),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(JSON)
def test_nothing_raises(data: Any) -> None:
    found, faults = parse(data)
    assert found is not None or any(f.kind == "form" for f in faults)
    if found is not None:
        transcript_digest([found]).encode()
        assert all(len(t.arguments) == t.cited for t in found.turns)


def test_lone_surrogates_are_replaced() -> None:
    found = one(json.loads(json.dumps(debate(turn("b\udfff", user="a\ud800")))))
    assert found.turns[0].user == "a\ufffd" and found.turns[0].answer == "b\ufffd"


def claims(*names: str) -> list[Claim]:
    return [Claim(f"{n}#{k}" if k else n, n, f"claim {n}") for k, n in enumerate(names)]


def placed(tmp_path: Path, rows: list[Any], wanted: list[Claim]) -> tuple[list[int | None], Log]:
    log = Log("s.jsonl")
    reads = read_debates(write(tmp_path / "s.jsonl", rows), log)
    return [None if h.read is None else h.read.line for h in place(reads, wanted, log)], log


def test_debates_find_their_claims(tmp_path: Path) -> None:
    a, b = debate(turn("x"), id="a"), debate(turn("y"), id="b")
    wanted = claims("a", "b", "c")
    assert placed(tmp_path, [a, b, {}], wanted)[0] == [1, 2, 3]
    lines, log = placed(tmp_path, [b, a], wanted)
    assert lines == [2, 1, None] and log.counts == {"F206": 1, "F203": 1} and not log.invalid
    lines, log = placed(tmp_path, [a, a, debate(turn("z"), id="zzz")], wanted)
    assert lines == [1, None, None] and log.invalid and log.counts == {"F205": 1, "F204": 1, "F203": 2}
    # By the claim's words, and by nothing but the place.
    by_text = debate(turn("y"), claim="claim  b")
    assert placed(tmp_path, [debate(turn("x")), by_text], wanted)[0] == [1, 2, None]
    assert placed(tmp_path, [by_text, debate(turn("x"))], wanted)[0] == [None, 1, None]


def test_two_debates_on_one_claim(tmp_path: Path) -> None:
    rows = [{"id": "a", "claim": "C"}, {"id": "a", "claim": "C"}, {"claim": "C"}]
    wanted = read_claims(write(tmp_path / "claims.jsonl", rows))
    assert [c.topic for c in wanted] == ["a", "a#2", "3"]
    same = debate(turn("x"), id="a", claim="C")
    lines, log = placed(tmp_path, [same, same, debate(turn("x"), claim="C")], wanted)
    assert lines == [1, 2, 3] and not log.counts


def test_topics_of_a_file_by_itself(tmp_path: Path) -> None:
    same = debate(turn("x"), id="a")
    reads = read_debates(write(tmp_path / "s.jsonl", [same, same, {}]), Log("s"))
    assert [h.claim.topic for h in unplaced(reads)] == ["a", "a#2", "3"]


def test_claims_that_are_wrong(tmp_path: Path) -> None:
    for rows in ([{"id": "a"}], ["nonsense"], []):
        with pytest.raises(EvaluatorError):
            read_claims(write(tmp_path / "claims.jsonl", rows))
    with pytest.raises(EvaluatorError):
        read_claims(tmp_path / "nothing.jsonl")


def test_records(tmp_path: Path) -> None:
    failure = {"class": "timeout", "detail": "d"}
    rows = [
        {"debate": 1, "turn": 1, "outcome": "answered", "system_ms": 5},
        {"debate": 1, "turn": 2, "outcome": "failed", "failure": failure, "system_ms": None},
        "rubbish",
        {"debate": "1"},
    ]
    log = Log("s")
    found = read_turns(write(tmp_path / "turns.jsonl", rows), log)
    assert found[1, 1].system_ms == 5 and found[1, 1].answered and found[1, 2].failure == "timeout"
    assert log.counts == {"F221": 1}
    assert read_turns(tmp_path / "none", log) == {}
    served = read_served(write(tmp_path / "served.jsonl", [{"hits": ["1.1", 3]}, {"hits": ["1.2"]}]))
    assert served is not None and served.ids == {"1.1", "1.2"} and not served.cut
    cut = read_served(write(tmp_path / "served.jsonl", [{"hits": ["1.1"]}, {"truncated": True}]))
    assert cut is not None and cut.cut
    assert read_served(tmp_path / "none") is None


def test_only_wanted_arguments_are_kept(tmp_path: Path) -> None:
    rows = [{"id": "1", "text": "a"}, {"text": "b", "id": "2"}, '{"id": "3\\u0031", "text": "c"}']
    write(tmp_path / "arguments.jsonl", [*rows, {"id": "4", "text": "d"}])
    path = index_file(tmp_path)
    assert path is not None and read_index(path, {"1", "2", "31", "99"}) == {"1": "a", "2": "b", "31": "c"}
    with pytest.raises(EvaluatorError) as caught:
        read_index(write(tmp_path / "arguments.jsonl", [{"id": "1"}]), {"1"})
    assert "arguments.jsonl" in "".join(caught.value.lines())
