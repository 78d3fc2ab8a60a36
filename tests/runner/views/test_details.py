"""Details by audience: over every kind, nobody sees a word or a number that the table does not open to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import schemas
from runner.model.task import Task
from runner.model.verdict import read_verdict
from runner.records.store import run_detail
from runner.views.audience import ORGANISER, PUBLIC, Audience, open_fields, visible
from runner.views.leaderboard.export import FORMATS, export
from runner.views.leaderboard.table import build
from runner.views.redact import redact_run
from schemas.details import CODES, CREDITS, KINDS, TYPES, Detail, fields_of, noted, notes_of_kinds, read
from tests.worlds import records
from tests.worlds.records import World

OPEN_FIELDS = open_fields()
EVERY = (*KINDS, *notes_of_kinds())
ALPHA, BETA = Audience("team", "alpha"), Audience("team", "beta")
NUMBERS = ("7917", "7,917", "8117", "8317")  # as the canaries show in words; 8117 MiB and 8317 s


def canary(kind: str, name: str) -> Any:
    """A value for a field of a kind that shows wherever it comes out."""
    open_ = name in OPEN_FIELDS.get(kind, ())  # what everybody may read is another number
    number = {"int": 6007 if open_ else 7917, "mebibytes": 8117 * 2**20, "seconds": 8317.0}
    values: dict[str, Any] = {
        "text": f"CANARY-{name}",
        "more": f"CANARY-{name}",
        "end": {"code": 7917, "memory": False, "outside": None},
        "counts": {"CANARY-class": 7917},
        "credit": "citation",
    }
    type_ = fields_of(kind)[name]
    return number.get(type_, values.get(type_, 7917))


def shown(kind: str) -> Detail:
    return Detail(kind, **{name: canary(kind, name) for name in fields_of(kind)})


def words(value: Any) -> list[str]:
    """Which canaries are in what an audience gets."""
    text = json.dumps(value, default=dict)
    return [c for c in ("CANARY", *NUMBERS) if c in text]


@pytest.mark.parametrize("kind", sorted(EVERY))
def test_without_free_text_only_open_fields_come_out(kind: str) -> None:
    detail = shown(kind)
    assert visible([detail], free_text=True) == (detail,)
    seen = visible([detail], free_text=False)
    assert len(seen) == (kind in OPEN_FIELDS)
    for one in seen:
        for name in detail.fields:
            alone = str(detail.only([name]))
            bare = str(detail.only([]))
            assert (one.fields[name] == detail.fields[name]) == (name in OPEN_FIELDS[kind])
            assert alone != bare, "the canary of this field would not be seen"
        assert words(str(one)) == words(str(detail.only(OPEN_FIELDS[kind])))
        if not OPEN_FIELDS[kind]:
            assert words(str(one)) == [] and "CANARY" not in str(one)


def test_only_notes_that_our_evaluator_makes_are_open_and_none_of_a_verdict() -> None:
    """What decides a verdict or warns of a run is the software's doing: its team sees the sentence of the verdict alone."""
    notes = EVERY[EVERY.index("nothing-judged") :]
    # That anything was not judged, though every topic has a report, would tell that topics lack nuggets.
    assert set(OPEN_FIELDS) == set(notes) - {"reports-not-judged"}
    assert all(fields_of(kind).keys() >= fields for kind, fields in OPEN_FIELDS.items())


def test_notes_of_kinds_are_templates_with_names_of_their_own() -> None:
    of_kinds = [
        name for kind in schemas.kinds() for name in schemas.schema(f"kinds/{kind}").get("x-notes", ())
    ]
    assert sorted(of_kinds) == sorted(notes_of_kinds()) and not {*of_kinds} & {*KINDS}
    some = {"records-not-kept", "report-rules", "same-value", "own-times", "no-subtopics"}
    assert {*notes_of_kinds()} >= some
    assert {type_ for name in of_kinds for type_ in fields_of(name).values()} <= {*TYPES}


@pytest.mark.slow
@pytest.mark.parametrize("scores", ["organiser", "public"])
def test_every_audience_at_every_kind(world: World, scores: str) -> None:
    """Every kind as reason, warning and note of runs on open and on hidden data, as views and as boards."""
    task = records.task(scores=scores, baseline=None)
    everything = [shown(kind) for kind in EVERY]
    for n, detail in enumerate(everything):
        for place in ("dev", "test"):
            id = world.register("alpha", f"s{n}{place}")
            good, bad = detail.kind in OPEN_FIELDS, detail.kind not in OPEN_FIELDS
            ended = {"verdict": "run-error", "detail": detail} if bad else {"verdict": "ok"}
            attempt = world.attempt(id, dataset=place, warnings=[detail], **ended)  # type: ignore[arg-type]
            if good:
                more = {"notes": [str(detail)], "note_details": [detail.as_dict()]}
                more["judge"] = {"name": "rules", **noted(detail)}  # type: ignore[assignment]
                made = world.evaluation(attempt, {"ndcg": {"q": 0.5}, "rr": {"q": 0.5}}, more=more)
                assert not schemas.validate(made.result(), "result")
            look(world, task, f"{id}.{place}", place, detail)
    for audience in (PUBLIC, ALPHA, BETA):
        if scores == "public":
            board = "".join(export(build(world.store, task, None, audience), name) for name in FORMATS)
            allowed = {name for fields in OPEN_FIELDS.values() for name in fields}
            found = {f"CANARY-{n}" for kind in EVERY for n in fields_of(kind) if f"CANARY-{n}" in board}
            assert found <= {f"CANARY-{name}" for name in allowed}
            assert not any(number in board for number in NUMBERS)
    assert "7,917" in export(build(world.store, task, None, ORGANISER), "json")


def look(world: World, task: Task, id: str, place: str, detail: Detail) -> None:
    found, dataset = run_detail.detail(world.store, id, [task]), task.datasets[place]
    full = redact_run(found, ORGANISER, dataset)
    assert str(detail) in (full["verdict"]["detail"], *full["verdict"]["warnings"])
    view = redact_run(found, ALPHA, dataset)
    said = (view["verdict"]["detail"], *view["verdict"]["warnings"])
    if place == "dev":
        assert str(detail) in said and view["outcome"]["reason"] == full["outcome"]["reason"]
        return
    assert not any(said if detail.kind not in OPEN_FIELDS else said[:1]) and view["outcome"]["reason"] == ""
    open_ = [str(one) for one in visible([detail], free_text=False)]
    got = {k: view[k] for k in ("verdict", "notes", "judge", "outcome")}
    assert set(words(got)) <= set(words(open_))


# --- archives from before there were details ---------------------------------------------------------------------


def test_a_verdict_of_before_is_text_that_a_blinded_team_never_sees(tmp_path: Path) -> None:
    world, task = World.make(tmp_path), records.task(scores="public")
    id = world.register("alpha", "x")
    told = ["exit code 17", "the log was cut"]
    attempt = world.attempt(id, verdict="run-error", detail=told[0], warnings=told[1:])
    assert "details" not in attempt.record()["verdict"]
    found = run_detail.detail(world.store, f"{id}.test", [task])
    view = redact_run(found, ORGANISER, task.datasets["test"])
    assert [view["verdict"]["detail"], *view["verdict"]["warnings"]] == told
    assert view["outcome"]["reason"] == f"run-error: {told[0]}"
    view = redact_run(found, ALPHA, task.datasets["test"])
    assert (view["verdict"]["detail"], view["verdict"]["warnings"], view["outcome"]["reason"]) == ("", [], "")


def test_notes_of_before_stay_with_those_who_see_the_words(tmp_path: Path) -> None:
    world, task = World.make(tmp_path), records.task(scores="public", baseline=None)
    id = world.register("alpha", "x")
    more = {
        "notes": ["3 of 60 turns have no answer and count 0"],
        "judge": {"name": "people", "note": "2 annotators"},
    }
    world.evaluation(world.attempt(id), {"ndcg": {"q": 0.5}, "rr": {"q": 0.5}}, more=more)
    assert build(world.store, task, None, ORGANISER).notes[0] == more["notes"][0]
    board = build(world.store, task, None, PUBLIC)
    assert board.notes == () and [judge.note for judge in board.judges] == [""]


@pytest.mark.parametrize("code", sorted(set(CODES.values())))
def test_an_old_failure_that_only_the_organiser_can_correct_keeps_its_code(code: str) -> None:
    old = {"name": "platform-error", "blame": "platform", "detail": f"{code}: no key", "warnings": []}
    verdict = read_verdict(old)
    assert verdict.detail is not None and verdict.detail.code == code
    assert str(verdict.detail) == old["detail"]
    retried = read(None, "E301: the engine is gone")
    assert retried.code == ""


# --- details themselves --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(EVERY))
def test_what_is_written_is_read_again(kind: str) -> None:
    detail = shown(kind)
    again = read(json.loads(json.dumps(detail.as_dict())))
    assert again == detail and str(again) == str(detail)


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        {"kind": "exit-code"},
        {"kind": "exit-code", "code": "17"},
        {"kind": "exit-code", "code": True},
        {"kind": "exit-code", "code": 1, "more": 2},
        {"kind": "new-kind", "x": 1},
        {"kind": 7},
        {"kind": "report-rules", "rules": "r", "credit": ["a"]},
        {"kind": "server-ended", "code": {"a": 1}},
    ],
)
def test_what_is_no_detail_is_read_as_text(stored: Any) -> None:
    assert read(stored, "17 words") == Detail("text", text="17 words")


@pytest.mark.parametrize(
    ("kind", "fields"),
    [("nothing", {}), ("exit-code", {}), ("exit-code", {"code": "x"}), ("log-cut", {"x": 1})],
)
def test_a_detail_has_the_fields_of_its_kind(kind: str, fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Detail(kind, **fields)
    assert set(CREDITS) == {"citation", "sentence", "none"}
