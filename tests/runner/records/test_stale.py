"""A score means what was computed: changed definitions and failed evaluations make it stale, wherever it is shown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import schemas
from runner.execution.plan import Plan, Planned, Skipped
from runner.execution.reevaluation import changed_ranks, changed_values, picture
from runner.model.pins import Pins, changes, of_task
from runner.model.run import Run
from runner.model.task import Measure, Task
from runner.records.store import connect, queries, results, run_detail
from runner.views.audience import ORGANISER, PUBLIC, Audience
from runner.views.leaderboard.export import FORMATS, as_dict, export, from_dict, to_prototext
from runner.views.leaderboard.formats import terminal
from runner.views.leaderboard.formats.trec import to_trec
from runner.views.leaderboard.rows import LeaderboardTable
from runner.views.leaderboard.table import build
from runner.views.logs import log_lines
from runner.views.redact import redact_row, redact_run
from tests.worlds import records
from tests.worlds.records import World, per_topic


def with_measure(task: Task, id: str, **changed: object) -> Task:
    one = replace(task.measures[id], **changed)  # type: ignore[arg-type]
    return replace(task, measures={**task.measures, id: one})


def board(world: World, task: Task, audience: Audience = ORGANISER) -> LeaderboardTable:
    return build(world.store, task, "main", audience)


def other(task: Task) -> list[tuple[str, Task, set[str]]]:
    """Changed definitions, and the measures whose values they make nameless."""
    return [
        ("another measure", with_measure(task, "ndcg", measure="AP"), {"ndcg"}),
        ("another cut-off", with_measure(task, "rr", measure="RR@5"), {"rr"}),
        ("other truths", with_measure(task, "ndcg", truths="quality.txt"), {"ndcg"}),
        ("options of a measure", with_measure(task, "ndcg", options={"k": 3}), {"ndcg"}),
        ("options of the task", replace(task, options={"depth": 5}), set()),
        ("severities", replace(task, severities={"F013": "warning"}), set()),
        ("precision", replace(task, score_precision="double"), set()),
        ("kind", replace(task, kind="diversity"), set()),
    ]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path)


@pytest.mark.parametrize("n", range(8))
def test_every_changed_definition_makes_old_scores_stale(world: World, n: int) -> None:
    world.scored("alpha", "x")
    task = records.task(baseline=None)
    _, changed, nameless = other(task)[n]
    (run,) = queries.runs(world.store, [changed])
    assert run.stale
    assert run.changed == nameless
    (before,) = queries.runs(world.store, [task])
    assert (before.stale, before.changed) == ((), frozenset())
    for name in nameless:
        assert name not in results.measures(world.store, run)
        assert results.topic_scores(world.store, run, name) == {}
    view = redact_row(run, Audience("team", "alpha"), task.datasets["test"])
    assert view is not None and view["stale"] == list(run.stale)


def test_what_does_not_change_a_value_makes_nothing_stale(world: World) -> None:
    world.scored("alpha", "x")
    task = records.task(baseline=None)
    turned = with_measure(task, "rr", direction="lower")
    added = replace(task, measures={**task.measures, "p": Measure("p", "P@10", "qrels.txt")})
    for same in (turned, added, replace(task, title="Another", digest="1" * 64)):
        assert queries.runs(world.store, [same])[0].stale == ()


def test_an_old_value_is_never_shown_under_a_new_name(world: World) -> None:
    world.scored("alpha", "x", scores=per_topic("a", 30, 0.4321))
    world.scored("beta", "y")
    task = with_measure(records.task(baseline=None), "ndcg", measure="AP")
    old = board(world, records.task(baseline=None)).rows[0].values["ndcg"].mean
    table = board(world, task)
    assert table.rows == ()
    assert all(name in table.unranked[0].reason for name in ("ndcg", "nDCG@10", "AP"))
    assert all(f"{old:.4f}" not in export(table, form) for form in FORMATS)
    # A measure that does not rank leaves its column empty, and the row says so.
    task = with_measure(records.task(baseline=None), "rr", measure="RR@5")
    table = board(world, task)
    assert [set(row.values) for row in table.rows] == [{"ndcg"}, {"ndcg"}]
    assert any("RR@5" in note for note in table.notes)
    assert to_trec(table, "ir_measures").count(" rr ") == 0


def marks(table: LeaderboardTable, row: str) -> None:
    """A stale row is marked in every format."""
    for form in ("table", "markdown", "latex", "html"):
        text = export(table, form).replace("\\", "").replace("<wbr>", "")
        assert f"{row} (stale)" in text, form
        assert "Stale: " in export(table, form), form
    assert f"{row} (stale)" in terminal.text(table, 40)
    lines = csv.DictReader(io.StringIO(export(table, "csv")))
    assert [bool(one["stale"]) for one in lines if f"{one['team']}/{one['software']}" == row] == [True]
    data = json.loads(export(table, "json"))
    assert schemas.validate(data, "leaderboard") == []
    assert next(r["stale"] for r in data["rows"] if f"{r['team']}/{r['software']}" == row)
    assert from_dict(as_dict(table), str(ORGANISER)).rows == table.rows


def test_changed_options_and_severities_mark_the_rows(world: World) -> None:
    world.scored("alpha", "x")
    task = replace(records.task(baseline=None), severities={"F013": "ignore"}, options={"depth": 3})
    table = board(world, task)
    marks(table, "alpha/x")
    assert any("options" in note and "severities" in note for note in table.notes)
    assert "stale" not in export(board(world, records.task(baseline=None)), "csv")


def test_a_failed_evaluation_after_a_good_one(world: World) -> None:
    attempt = world.attempt(world.register("alpha", "x"))
    world.evaluation(attempt, {"ndcg": {"1": 0.5}, "rr": {"1": 0.5}})
    world.evaluation(attempt, status="error", message="qrels.txt:3: secret grade", fault="organiser")
    task = records.task(baseline=None)
    (run,) = queries.runs(world.store, [task])
    assert (run.outcome.name, run.outcome.evaluation, run.outcome.fault) == ("scored", 1, "organiser")
    assert run.outcome.old and "secret grade" in run.outcome.reason
    table = board(world, task)
    marks(table, "alpha/x")
    for audience in (PUBLIC, Audience("team", "alpha")):
        shown = "".join(export(board(world, task, audience), form) for form in FORMATS)
        assert "(stale)" in shown and "secret" not in shown
    detail = run_detail.detail(world.store, run.id, [task])
    view = redact_run(detail, Audience("team", "alpha"), task.datasets["test"])
    assert "secret" not in json.dumps(dict(view))
    assert detail.evaluation is not None and detail.newest is not None
    assert (detail.evaluation.number, detail.newest.number) == (1, 2)
    # Mended by the next one that says something.
    world.evaluation(attempt, {"ndcg": {"1": 0.6}, "rr": {"1": 0.5}})
    (run,) = queries.runs(world.store, [task])
    assert (run.outcome.fault, run.stale, run.outcome.old) == ("", (), False)
    assert board(world, task).rows[0].stale == ()


def test_an_invalid_run_whose_evaluation_failed_later(world: World) -> None:
    attempt = world.attempt(world.register("alpha", "x"))
    world.evaluation(attempt, status="invalid", codes={"F012": ("error", 2)})
    world.evaluation(attempt, status="error", message="killed", exit={"code": 137})
    task = records.task(baseline=None)
    (run,) = queries.runs(world.store, [task])
    assert (run.outcome.name, run.outcome.fault) == ("invalid", "platform")
    assert run.outcome.old and len(board(world, task).unranked) == 1


def test_the_evaluators_log_is_the_newest(world: World) -> None:
    attempt = world.attempt(world.register("alpha", "x"))
    world.evaluation(attempt, {"ndcg": {"1": 0.5}, "rr": {"1": 0.5}})
    staging = world.archive.begin_evaluation(attempt)
    (staging.path / "logs").mkdir()
    (staging.path / "logs" / "stderr.log").write_bytes(b"qrels.txt:3 is damaged\n")
    good = attempt.evaluations()[0].record(check=False)
    record = {**good, "evaluation": staging.number, "status": "error", "message": "x"}
    world.commit_evaluation(world.archive.add_evaluation(attempt, staging, record))
    task = records.task()
    detail = run_detail.detail(world.store, attempt.run_id, [task])
    lines = log_lines(detail, ORGANISER, task.datasets["test"], "stderr", evaluator=True)
    assert list(lines) == ["qrels.txt:3 is damaged"]


@pytest.mark.parametrize(
    ("exit_code", "fault", "expected"),
    [
        (0, None, "organiser"),
        (1, None, "platform"),
        (0, "platform", "platform"),
        (1, "organiser", "organiser"),
    ],
)
def test_fault_of_an_evaluation(world: World, exit_code: int, fault: str | None, expected: str) -> None:
    attempt = world.attempt(world.register("alpha", "x"))
    world.evaluation(attempt, {"ndcg": {"1": 0.5}, "rr": {"1": 0.5}})
    world.evaluation(attempt, status="error", exit={"code": exit_code}, fault=fault)
    assert queries.runs(world.store, [records.task()])[0].outcome.fault == expected


def test_archives_of_before_are_read_and_said_not_to_be_pinned(world: World) -> None:
    attempt = world.attempt(world.register("alpha", "x"))
    world.evaluation(attempt, {"ndcg": {"1": 0.5}, "rr": {"1": 0.5}}, pinned=False)
    task = with_measure(records.task(baseline=None), "ndcg", measure="AP")
    table = board(world, task)
    assert table.rows[0].stale == ()
    assert any(note.startswith("1 of 1 ") for note in table.notes)


def test_pins_survive_the_store_and_a_rebuild(world: World) -> None:
    world.scored("alpha", "x")
    task = records.task()
    (run,) = queries.runs(world.store, [task])
    assert run.pins == Pins.made(of_task(task)) == Pins.read(Pins.made(of_task(task)).text())
    changed = with_measure(task, "ndcg", measure="AP")
    says = changes(changed, run.pins).says
    connect.rebuild(world.config)
    assert queries.runs(world.store, [changed])[0].stale == says


def test_exports_of_a_run_name_what_was_computed(world: World) -> None:
    submission = world.scored("alpha", "x")
    task = with_measure(records.task(), "ndcg", measure="AP")
    detail = run_detail.detail(world.store, f"{submission}.test", [task])
    view = redact_run(detail, ORGANISER, task.datasets["test"])
    text = to_prototext(view, {name: m.measure for name, m in task.measures.items()})
    assert 'key: "nDCG@10"' in text and "AP" not in text
    assert view["scores"]["ndcg"]["measure"] == "nDCG@10"


def test_what_evaluating_again_changed(world: World) -> None:
    task = records.task(baseline=None)
    x = world.attempt(world.register("alpha", "x"))
    y = world.attempt(world.register("beta", "y"))
    world.evaluation(x, {"ndcg": {"1": 0.5}, "rr": {"1": 0.25}})
    world.evaluation(y, {"ndcg": {"1": 0.4}, "rr": {"1": 0.5}})

    def runs() -> list[Run]:
        return queries.runs(world.store, [task])

    teams = {run.id: run.submission.team for run in runs()}
    before = picture(world.store, [task], runs())
    world.evaluation(y, {"ndcg": {"1": 0.75}, "rr": {"1": 0.5}})
    by = with_measure(task, "rr", measure="RR@5")
    world.evaluation(x, {"ndcg": {"1": 0.5}, "rr": {"1": 0.125}}, by=by)
    after = picture(world.store, [task], runs())
    found = {(teams[v.run], v.measure): v for v in changed_values(before, after, [x.run_id, y.run_id])}
    assert found["beta", "ndcg"].difference == pytest.approx(0.35)
    assert found["alpha", "ndcg"].difference == 0
    assert (found["alpha", "rr"].of, found["alpha", "rr"].difference) == ("RR", None)
    ranks = [(r.software, r.old, r.new) for r in changed_ranks(before, after)]
    assert ranks == [("alpha/x", 1, 2), ("beta/y", 2, 1)]


def plan_of(runs: Sequence[Run]) -> Plan:
    one, two = runs
    return Plan((Planned(one, "execute", "w", changed="limits.memory"), Planned(two, "execute", "new")), ())


def test_a_plan_can_keep_what_is_settled(world: World) -> None:
    world.scored("alpha", "x")
    world.register("beta", "y")
    todo = plan_of(queries.runs(world.store, [records.task()]))
    assert [p.run.submission.team for p in todo.again] == ["alpha"]
    kept = todo.keeping()
    assert [p.run.submission.team for p in kept.work] == ["beta"]
    (left,) = kept.skipped
    assert isinstance(left, Skipped) and left.stale and "limits.memory" in left.why
