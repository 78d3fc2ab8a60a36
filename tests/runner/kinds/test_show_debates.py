"""What is shown of a run's debates: everything, with marks that agree with the evaluator, and to whom."""

from __future__ import annotations

import gzip
import json
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import schemas
from evaluator.formats.dialogue import read_served
from evaluator.measures import debate as measures
from runner.kinds.debate import presenter as debating
from runner.kinds.debate.arguments import MOST_SERVED, same_text, served_ids
from runner.model.errors import Problem, RunnerError
from runner.records.store import run_detail
from runner.tasks.transcripts import LOOKED_AT, Most, json_lines
from runner.views.audience import ORGANISER, PUBLIC, Audience
from runner.views.show.contents import Inside, inside
from runner.views.text import shown
from tests.worlds.records import World
from tests.worlds.shown import HOSTILE, INDEX, debate, debated, record, taken_out, task

ALPHA, BETA = Audience("team", "alpha"), Audience("team", "beta")
GOOD = {"id": "1.1", "text": "Bees  make honey."}
CHANGED = {"id": "1.2", "text": "Ants make war."}
UNKNOWN = {"id": "9.9", "text": "Made up."}
LINES = [
    debate(
        "c1", "Insects\nare good", ("Why?", "They work.\n\nHard.", [GOOD, CHANGED, UNKNOWN]), ("So?", "", [])
    ),
    {},
    debate("c3", HOSTILE, (HOSTILE, HOSTILE, [{"id": HOSTILE, "text": HOSTILE}])),
]
TURNS = [
    record(1, 1),
    record(1, 2, ("timeout", f"no answer in 60 s {HOSTILE}"), target=1),
    record(3, 1),
]
SCORES = [
    {"measure": "quality", "topic": "c1", "value": 0.5},
    {"measure": "quality", "topic": "c1", "value": 1.0, "facets": {"turn": 1}},
    {"measure": "words", "topic": "c1", "value": 3, "facets": {"turn": 1}},
]


def shown_run(tmp_path: Path, dataset: str = "dev", audience: Audience = ORGANISER) -> Inside:
    world = World.make(tmp_path)
    made = task(tmp_path, index=INDEX)
    found = debated(world, made, LINES, TURNS, served=["1.1", "9.9"], dataset=dataset, scores=SCORES)
    return inside(found, made, audience, made.datasets[dataset])


def debates_of(run: Inside) -> Any:
    """The debates that are shown of a run."""
    found = run.contents
    assert isinstance(found, debating.Debates) and found.pieces is not None
    return found


def text_of(one: Inside, debate: str | None = None) -> str:
    return "\n".join(one.choose(debate).lines())


def test_a_debate_is_shown_with_all_that_is_known(tmp_path: Path) -> None:
    found = debates_of(shown_run(tmp_path))
    assert found.counts == {"debates": 3, "turns": 3, "answered": 2, "failed": 1, "failures": {"timeout": 1}}
    first = found.pieces[0]
    assert (first.id, first.claim) == ("c1", "Insects\nare good")
    assert (first.answered, first.scores) == (1, {"quality": 0.5})
    one, two = first.turns
    assert (one.answer, one.words, one.system_ms, one.user_ms) == ("They work.\n\nHard.", 3, 1234.0, 3.0)
    assert one.scores == {"quality": 1.0}  # words stand there already
    assert [(a.id, a.found, a.altered, a.served) for a in one.arguments] == [
        ("1.1", True, False, True),
        ("1.2", True, True, False),
        ("9.9", False, None, True),
    ]
    assert (two.failed, two.failure, two.target) == (True, "timeout", 1)
    assert found.pieces[1].turns == ()
    assert found.notes == ()


def test_records_that_a_participant_wrote_are_no_records(tmp_path: Path) -> None:
    """A software of the batch workflow may leave files of these names: they prove nothing, and count nothing."""
    made = task(tmp_path, index=INDEX)
    forged = [record(1, 1, ("timeout", "made up")), *(record(1, n, ("status", "x")) for n in range(2, 99))]
    found = debated(World.make(tmp_path), made, LINES, forged, served=["1.1", "9.9"], workflow="batch")
    debates = debates_of(inside(found, made, ORGANISER, made.datasets["dev"]))
    assert debates.counts["failures"] == {} and debates.pieces[0].turns[0].system_ms != 1234.0
    assert {a.served for a in debates.pieces[0].turns[0].arguments} == {None}
    assert len(debates.notes) == 1


def test_debate_lines_and_the_choice_of_debates(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    run = shown_run(tmp_path)
    first = text_of(run)
    assert "1 of 3: c1" in first and "3 of 3: c3" not in first
    everything = text_of(run, "all")
    golden("debates.txt", f"{first}\n\n{everything}\n")
    assert [c for c in everything if not c.isprintable() and c != "\n"] == []
    assert text_of(run, "3").count("3 of 3: c3") == 1
    with pytest.raises(RunnerError) as caught:
        run.choose("4")
    assert caught.value.code == "E102" and "c3" in caught.value.fix
    assert "3 of 3: c3" in "\n".join(run.choose("c3").lines())
    with pytest.raises(RunnerError):
        run.choose("nothing")


def test_words_of_a_participant_never_begin_a_line(tmp_path: Path) -> None:
    made = task(tmp_path)
    forged = "x\n\ndebate 2 of 2: forged\r\n  turn 1\rscores: quality 1"
    found = debated(World.make(tmp_path), made, [debate("c1", forged, (forged, forged, []))])
    text = "\n".join(inside(found, made, ORGANISER, made.datasets["dev"]).lines())
    ours = [line for line in text.splitlines() if "forged" in line]
    assert len(ours) == 3 and all("| debate 2 of 2: forged" in line for line in ours)
    assert not any(line.startswith("scores: quality 1") for line in text.splitlines())


def test_a_failed_answer_is_not_followed_by_zeros(tmp_path: Path) -> None:
    made = task(tmp_path)
    scores = [{"measure": "quality", "topic": "c1", "value": 0, "facets": {"turn": n}} for n in (1, 2)]
    lines = [debate("c1", "C", ("u", "s", []), ("", "", []))]
    turns = [record(1, 1), record(1, 2, ("server-ended", "it has ended before"))]
    found = debated(World.make(tmp_path), made, lines, turns, scores=scores)
    run = inside(found, made, ORGANISER, made.datasets["dev"])
    text = "\n".join(run.lines())
    assert text.count("quality 0") == 1 and text.count("user    |") == 1  # the server was not asked again
    assert run.data()["debates"]["debates"][0]["turns"][1]["scores"] == {"quality": 0.0}


def test_json_has_the_same_and_only_what_was_chosen(tmp_path: Path) -> None:
    run = shown_run(tmp_path)
    data = json.loads(json.dumps(run.data(), allow_nan=False))
    assert [d["number"] for d in data["debates"]["debates"]] == [1, 2, 3]
    assert [d["number"] for d in run.choose("2").data()["debates"]["debates"]] == [2]
    assert data["debates"]["debates"][0]["turns"][0]["arguments"][1] == {
        "id": "1.2", "text": "Ants make war.", "found": True, "altered": True, "served": False,
    }  # fmt: skip


def test_on_a_blinded_dataset_teams_get_no_debates_and_no_counts(tmp_path: Path) -> None:
    """How many turns fail, and how, is up to a software that knows the hidden claims."""
    run = shown_run(tmp_path, "test", ALPHA)
    assert run.data()["debates"] == {"counts": {}, "debates": None, "notes": []}
    text = "\n".join(run.lines())
    assert "timeout" not in text and "Insects" not in text and "They work" not in text and "zebra" not in text
    assert "team:alpha" in text
    for choice in ("1", "c1"):
        with pytest.raises(RunnerError) as caught:
            run.choose(choice)
        assert caught.value.code == "E103" and "c1" not in str(caught.value.fix)


def test_the_organiser_sees_blinded_debates_and_teams_their_public_ones(tmp_path: Path) -> None:
    assert "They work." in text_of(shown_run(tmp_path / "a", "test"))
    assert "They work." in text_of(shown_run(tmp_path / "b", "dev", ALPHA))


@pytest.mark.parametrize("audience", [BETA, PUBLIC])
def test_others_see_nothing(tmp_path: Path, audience: Audience) -> None:
    with pytest.raises(RunnerError, check=lambda error: error.code == "E103"):
        shown_run(tmp_path, "dev", audience)


def test_an_invented_class_of_failure_carries_nothing_out(tmp_path: Path) -> None:
    made = task(tmp_path)
    turns = [record(1, 1, ("the claim is Insects", "x"))]
    found = debated(World.make(tmp_path), made, LINES[:1], turns, dataset="test")
    released = replace(found, released=True)
    seen = inside(released, made, ALPHA, made.datasets["test"]).data()["debates"]
    assert seen["counts"]["failures"] == {"other": 1} and seen["debates"] is None


def test_without_the_index_of_the_evaluation_texts_are_not_compared(tmp_path: Path) -> None:
    made = task(tmp_path, index=INDEX)
    found = debated(World.make(tmp_path), made, LINES, served=["1.1"])
    changed = task(tmp_path, index={**INDEX, "1.1": "Another text."})  # since the evaluation
    shown_ = debating.read(found, changed, ORGANISER, made.datasets["dev"])
    assert shown_ is not None and shown_.pieces is not None
    arguments = shown_.pieces[0].turns[0].arguments
    assert [(a.found, a.altered, a.served) for a in arguments] == [(None, None, n == 0) for n in range(3)]
    assert len(shown_.notes) == 1


def test_damaged_and_foreign_lines_are_left_out_and_said(tmp_path: Path) -> None:
    made = task(tmp_path)
    world = World.make(tmp_path)
    found = debated(world, made, [LINES[0], 5, [1], {"a": 1}, LINES[2]], [5, {"debate": "1"}, {}])
    path = taken_out(found, "simulations.jsonl")
    path.write_text("{broken\n" + path.read_text() + '{"simulation": {"userTurns": [1, null, {}]}}\n')
    run = inside(found, made, ORGANISER, made.datasets["dev"])
    debates = debates_of(run)
    assert [d.id for d in debates.pieces] == ["c1", "c3", "3"]
    assert "simulations.jsonl:1:" in debates.notes[0]
    assert "\n".join(run.choose("all").lines())


def test_nothing_is_shown_of_runs_without_debates(tmp_path: Path) -> None:
    world, made = World.make(tmp_path), task(tmp_path)
    submission = world.register("alpha", "x")
    attempt = world.attempt(submission, dataset="dev", verdict="run-error")
    run = inside(run_detail.detail(world.store, attempt.run_id), made, ORGANISER, made.datasets["dev"])
    assert run.data() == {} and list(run.lines()) == []
    for choice in ("1", "c1"):
        with pytest.raises(RunnerError, check=lambda error: error.code == "E102"):
            run.choose(choice)


@given(st.text(max_size=30), st.text(max_size=30))
def test_texts_are_compared_as_the_evaluator_does(first: str, second: str) -> None:
    for other in (second, first, f" {first}\t", unicodedata.normalize("NFD", first)):
        assert same_text(first, other) == measures.same_text(first, other)


def test_classes_of_failures_and_the_record_of_the_index_are_the_platforms(tmp_path: Path) -> None:
    schema = json.loads((Path(schemas.__file__).parent / "turn.schema.json").read_text())
    assert set(debating.FAILURES) == set(schema["properties"]["failure"]["properties"]["class"]["enum"])
    made = task(tmp_path)
    found = debated(World.make(tmp_path), made, LINES, served=["1.1", "9.9"])
    path = taken_out(found, "served.jsonl")
    for more in ("", '{"truncated": true}\n', "{broken\n", '{"hits": 5}\n', '{"hits": [1, "7"]}\n'):
        path.write_text(path.read_text() + more)
        theirs = read_served(path)
        assert theirs is not None
        assert served_ids(found, {"1.1", "9.9", "7", "1.2"}) == (theirs.ids, theirs.cut), more
        assert served_ids(found, {"1.1", "1.2"}) == ({"1.1"}, theirs.cut), more


def _packed(path: Path, block: bytes, times: int) -> None:
    path.unlink()  # it is read-only
    with gzip.open(path, "wb", 1) as file:
        for _ in range(times):
            file.write(block)


@pytest.mark.parametrize("line", ["[]", "{}", "", '{"userTurns": [1, 2]}'])
def test_a_small_file_that_unpacks_to_millions_of_lines_is_left_early(tmp_path: Path, line: str) -> None:
    made = task(tmp_path)
    found = debated(World.make(tmp_path), made, LINES)
    path = taken_out(found, "simulations.jsonl")
    _packed(path, f"{line}\n".encode() * 100_000, 40)
    problems: list[Problem] = []
    rows = json_lines(path, problems)
    assert all(number <= LOOKED_AT.lines for number, _ in rows)
    assert len(problems) == 1 and "10,000" in problems[0].what
    shown_ = debating.read(found, made, ORGANISER, made.datasets["dev"])
    assert shown_ is not None and shown_.pieces is not None and len(shown_.pieces) <= LOOKED_AT.lines
    assert "10,000" in shown_.notes[0]


def test_no_more_is_unpacked_than_a_page_can_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debating, "LOOKED_AT", Most(1 << 20, LOOKED_AT.line, LOOKED_AT.lines))
    monkeypatch.setattr(debating, "MAX_SHOWN", 20_000)
    made = task(tmp_path)
    found = debated(World.make(tmp_path), made, LINES)
    path = taken_out(found, "simulations.jsonl")
    _packed(path, b"[" + b"[]," * 30_000 + b"[]]\n", 99)
    shown_ = debating.read(found, made, ORGANISER, made.datasets["dev"])
    assert shown_ is not None and shown_.pieces == ()
    assert "1,048,576" in shown_.notes[0]
    entries = b",".join([b'{"id":"ab"}'] * 60)
    turns = b",".join([b'{"utterance":"a","systemResponse":{"arguments":[' + entries + b"]}}"] * 100)
    _packed(path, b'{"userTurns":[' + turns + b"]}\n", 6)
    shown_ = debating.read(found, made, ORGANISER, made.datasets["dev"])
    assert shown_ is not None and shown_.pieces is not None and len(shown_.pieces) == 3  # of 5,100 each
    assert shown_.pieces[0].turns[0].listed == 60 and len(shown_.pieces[0].turns[0].arguments) == 50
    assert "simulations.jsonl:4:" in shown_.notes[0] and "20,000" in shown_.notes[0]


def test_of_the_platforms_own_files_no_more_is_read_than_it_writes(tmp_path: Path) -> None:
    made = task(tmp_path)
    found = debated(World.make(tmp_path), made, LINES, TURNS, served=["1.1"])
    turns, served = taken_out(found, "turns.jsonl"), taken_out(found, "served.jsonl")
    turns.write_text('{"debate": 1, "turn": 7}\n' * debating.MOST_RECORDS.lines + turns.read_text())
    shown_ = debating.read(found, made, ORGANISER, made.datasets["dev"])
    assert shown_ is not None and shown_.pieces is not None
    assert not shown_.pieces[0].turns[1].failure and "100,000" in shown_.notes[0]
    served.write_text('{"hits":[]}\n' * MOST_SERVED.lines + served.read_text())
    assert served_ids(found, {"1.1"}) == (frozenset(), True)
    for path, block in (
        (turns, b'{"debate":1,"turn":1,"outcome":"failed"}\n'),
        (served, b'{"hits":["1.1"]}\n'),
    ):
        _packed(path, block, 10)  # nobody packs them
    assert served_ids(found, {"1.1"}) == (frozenset(), True)
    shown_ = debating.read(found, made, ORGANISER, made.datasets["dev"])
    assert shown_ is not None and shown_.counts["failures"] == {}


@given(st.text(max_size=300), st.integers(2, 50))
def test_shown_texts_are_bounded_and_hold_nothing_but_lines(text: str, limit: int) -> None:
    result = shown(text, limit)
    assert len(result) <= limit
    assert all(c.isprintable() or c == "\n" for c in result)
