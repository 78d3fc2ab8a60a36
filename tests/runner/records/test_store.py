"""The store: f(events, archive), and nothing else; the same in SQLite and in PostgreSQL."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from runner.model.clock import FixedClock
from runner.model.errors import RunnerError
from runner.model.task import Cell, Quota, Task
from runner.records.commit import commit, commit_orphans
from runner.records.store import charges, connect, queries, results, run_detail, tables
from runner.views.audience import ORGANISER
from runner.views.leaderboard.export import FORMATS, export
from runner.views.leaderboard.rounds import board, freeze
from runner.views.leaderboard.table import build
from tests.worlds import records
from tests.worlds.records import TASK, World

pytestmark = pytest.mark.usefixtures("either")


def busy(world: World) -> None:
    """A bit of everything."""
    world.scored("baselines", "bm25", mean=0.5)
    world.scored("alpha", "x", mean=0.7, tag="=1+1")
    old = world.register("beta", "y")
    world.commit("submission-withdrawn", submission=old, reason="mistake")
    lost = world.scored("beta", "lost", mean=0.1)
    world.commit("submission-withdrawn", submission=lost, reason="image lost", uncharged=True)
    bad = world.register("beta", "y", version=2)
    world.attempt(bad, verdict="platform-error", detail="disk full")
    world.attempt(bad, verdict="run-error", detail="exit code 3")
    broken = world.register("gamma", "z")
    attempt = world.attempt(broken)
    world.evaluation(attempt, status="error", message="exit code 9")
    world.evaluation(attempt, status="invalid", codes={"F012": ("error", 2), "F020": ("warning", 1)})
    cancelled = world.register("delta", "w")
    place = {"task": TASK, "dataset": "test", "scenario": "default"}
    world.commit("run-cancelled", run=f"{cancelled}.test", submission=cancelled, **place)
    world.commit("submission-chosen", submission=cancelled)
    world.commit("quota-extended", task=TASK, team="beta", submissions=2)
    world.commit("dataset-published", task=TASK, dataset="test")
    world.commit("dataset-unpublished", task=TASK, dataset="test", reason="wrong judgments")
    world.commit("dataset-published", task=TASK, dataset="test")
    world.commit("key-drawn", task=TASK, key="5e" * 32)
    world.commit("names-opened", task=TASK, until="2026-02-01 23:59 AoE")
    world.commit("deadline-extended", task=TASK, team="beta", until="2026-02-01 23:59 AoE")
    limits = {"wall_clock": 7200.0, "memory": 8 * 1024**3}
    world.commit("limits-extended", task=TASK, team="beta", **limits, reason="ill")
    world.commit("dataset-paused", task=TASK, dataset="dev", reason="a topic is wrong")
    labels = {"file": "labels/labels.jsonl", "sha256": "0" * 64, "count": 7}
    world.commit("labels-imported", task=TASK, dataset="test", **labels)
    freeze(world.config, world.store, in_rounds(), "final", clock=FixedClock(world.clock.at), anyway=True)


def in_rounds() -> Task:
    """The toy task with a round that was over soon."""
    rounds = [{"id": "final", "at": "2026-01-05 23:59 UTC"}]
    return replace(records.task(), definition={"rounds": rounds})


def dump(world: World) -> list[str]:
    """Every row of the store."""
    every = tables.metadata.sorted_tables
    with world.store.read() as connection:
        rows = [(table.name, *row) for table in every for row in connection.execute(sa.select(table))]
    return sorted(map(repr, rows))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path)


def exports(world: World) -> dict[str, str]:
    table = build(world.store, records.task(), "main", ORGANISER)
    frozen = board(world.store, in_rounds(), "final", None, ORGANISER)
    return {name: export(table, name) + export(frozen, name) for name in FORMATS}


def test_rebuilding_gives_the_same_rows_and_byte_identical_exports(world: World) -> None:
    busy(world)
    rows, before = dump(world), exports(world)
    position = connect.rebuild(world.config)
    assert position == world.store.log.end()
    assert exports(world) == before  # through the connection that was open all the time
    assert dump(world) == rows
    world.store.close()
    records.remove_store(world.config)
    world.store = connect.open_store(world.config)
    assert exports(world) == before
    assert not list(world.config.home.glob("*.rebuild-*"))


def test_rebuilding_replaces_a_damaged_database(world: World) -> None:
    busy(world)
    before = exports(world)
    world.store.close()
    records.damage_store(world.config)
    with pytest.raises(RunnerError) as caught:
        connect.open_store(world.config)
    assert caught.value.code == "E306"
    assert "rebuild" in caught.value.fix
    connect.rebuild(world.config)
    world.store = connect.open_store(world.config)
    assert exports(world) == before


def test_a_store_behind_the_log_catches_up_when_it_is_opened(world: World) -> None:
    world.scored("alpha", "x")
    world.store.close()
    # As after a crash between the two: the event is in the log, the store never heard of it.
    data = {"submission": "beta.y.00000000", "task": TASK, "team": "beta", "software": "y"}
    world.store.log.append("submission-registered", data, actor="organiser")
    with connect.open_store(world.config) as store:
        assert [s.team for s in queries.submissions(store)] == ["alpha", "beta"]


def test_applying_twice_or_late_changes_nothing(world: World) -> None:
    world.scored("alpha", "x")
    rows = dump(world)
    for _ in range(2):
        world.store.catch_up()
    assert dump(world) == rows


def test_two_processes_worth_of_stores_commit_side_by_side(world: World) -> None:
    others = [connect.open_store(world.config) for _ in range(2)]

    def work(store: connect.Store, name: str) -> None:
        for n in range(10):
            data = {"submission": f"{name}.s{n}.0", "task": TASK, "team": name, "software": f"s{n}"}
            store.commit("submission-registered", data, actor="organiser")

    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(work, others, ("team0", "team1"))] == [None, None]
    assert len(queries.submissions(world.store)) == 20
    assert world.store.catch_up().seq == 20


def test_a_shorter_log_is_noticed(world: World) -> None:
    world.scored("alpha", "x")
    lines = world.config.events.read_bytes().splitlines(keepends=True)
    world.store.close()
    world.config.events.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(RunnerError, check=lambda error: error.code == "E307"):
        connect.open_store(world.config)
    with pytest.raises(RunnerError, check=lambda error: error.code == "E307"):
        connect.rebuild(world.config)
    connect.rebuild(world.config, accept_loss=True)
    connect.open_store(world.config).close()


def test_log_and_archive_that_contradict_each_other_are_e307(world: World) -> None:
    submission = world.register("alpha", "x")
    attempt = world.attempt(submission, commit=False)
    rows = dump(world)
    wrong = [
        ("attempt-committed", {"task": TASK, "run": attempt.run_id, "attempt": 1, "manifest": "0" * 64}),
        ("attempt-committed", {"task": TASK, "run": attempt.run_id, "attempt": 2, "manifest": "0" * 64}),
        ("attempt-committed", {"task": TASK}),
        ("submission-withdrawn", {"submission": "nobody"}),
        ("submission-registered", {"submission": submission, "task": TASK, "team": "alpha", "software": "x"}),
    ]
    before = world.config.events.read_bytes()
    for kind, data in wrong:
        with pytest.raises(RunnerError) as caught:
            world.store.commit(kind, data, actor="organiser")
        assert caught.value.code == "E307", kind
        assert dump(world) == rows
        assert world.config.events.read_bytes() == before, "what the store refuses is not written down"


@pytest.mark.parametrize(
    "wrong",
    [
        {"resources": {"memory_peak": 10**30}},
        {"resources": {"memory_peak": "much"}},
        {"resources": {"wall_seconds": 10**400}},
        {"started": None},
        {"finished": ["now"]},
        {"verdict": {"name": "nobody knows"}},
        {"verdict": {"details": {"reason": {"kind": "wall-clock", "limit": 10**400}, "warnings": []}}},
    ],
    ids=["memory", "text", "time", "none", "list", "verdict", "detail"],
)
def test_an_unstorable_attempt_is_refused_alone(world: World, wrong: dict[str, Any]) -> None:
    good = world.attempt(world.register("alpha", "x"), commit=False)
    bad = world.attempt(world.register("beta", "y"), commit=False, verdict="time-limit", detail="too long")
    record = json.loads((bad.path / "run.json").read_text())
    for key, value in wrong.items():
        record[key] = {**record[key], **value} if isinstance(value, dict) else value
    (bad.path / "run.json").write_text(json.dumps(record))
    before = world.config.events.read_bytes()
    with pytest.raises(connect.Refused):
        commit(world.store, good, bad)
    assert world.config.events.read_bytes() == before
    world.store.close()
    with connect.open_store(world.config) as store:
        assert commit_orphans(store) == 1
    with connect.open_store(world.config) as store:
        (run,) = queries.runs(store)
        assert (run.id, run.outcome.todo) == (good.run_id, "evaluate")


def test_a_process_killed_between_log_and_store_is_caught_up_with_by_the_next_commit(world: World) -> None:
    data = {"task": TASK, "team": "beta", "submissions": 1}
    world.store.log.append("quota-extended", data, actor="organiser")
    world.scored("alpha", "x")
    assert world.store.head() == world.store.log.end()
    rows = dump(world)
    world.store.replay()
    assert dump(world) == rows


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("result.json", b"[]"),
        ("result.json", b'{"status": "valid"}'),
        ("result.json", b'{"status": "invalid", "measures": {}, "findings": {}}'),
        ("scores.jsonl", b"not json\n"),
        ("scores.jsonl", b'{"measure": "ndcg", "topic": "1", "value": NaN}\n'),
        ("scores.jsonl", b'{"measure": "ndcg", "topic": "1", "value": 1e999}\n'),
        ("scores.jsonl", b'{"measure": "ndcg", "topic": "\\ud800", "value": 1}\n'),
        ("scores.jsonl", b'{"measure": "ndcg", "topic": "1", "value": 1}\n' * 2),
        ("scores.jsonl", b'{"measure": "ndcg", "topic": "1", "value": true}\n'),
        ("scores.jsonl", b'{"topic": "1"}\n'),
    ],
)
def test_an_unreadable_result_is_an_error_of_its_run(world: World, file: str, content: bytes) -> None:
    attempt = world.attempt(world.register("alpha", "x"))
    staging = world.archive.begin_evaluation(attempt)
    result: dict[str, Any] = {"status": "valid", "evaluator": {}}
    result["measures"] = {"ndcg": {"value": 1, "topics": 1, "covered": 1}}
    result["findings"] = {"error": 0, "defect": 0, "warning": 0, "codes": {}}
    (staging.path / "result.json").write_text(json.dumps(result))
    (staging.path / file).write_bytes(content)
    record = {"run_id": attempt.run_id, "attempt": 1, "evaluation": 1, "status": "valid"}
    record |= {"started": "", "finished": "", "exit": {"code": 0}}
    world.commit_evaluation(world.archive.add_evaluation(attempt, staging, record))
    run = queries.find_run(world.store, attempt.run_id)
    assert run.outcome.name == "held"
    assert results.measures(world.store, run) == {}
    world.scored("beta", "y")  # the store goes on


def test_a_store_of_an_earlier_program_is_made_anew(world: World) -> None:
    """With other tables; what is not the store's stays."""
    world.scored("alpha", "x")
    world.store.close()
    records.sql(
        world.config,
        "UPDATE meta SET value = '3' WHERE key = 'rules'",
        "UPDATE submissions SET tag = 'of older rules'",
        "ALTER TABLE submissions DROP COLUMN cells",
        "CREATE TABLE of_somebody_else (x TEXT)",
    )
    with connect.open_store(world.config) as store:
        (submission,) = queries.submissions(store)
        assert (submission.cells, submission.tag) == (None, "x")
        assert [run.outcome.name for run in queries.runs(store)] == ["scored"]
        with store.read() as connection:
            names = set(sa.inspect(connection).get_table_names())
    assert "of_somebody_else" in names


def test_a_store_that_is_made_anew_still_knows_how_far_the_log_was(world: World) -> None:
    world.scored("alpha", "x")
    world.store.close()
    records.sql(world.config, "UPDATE meta SET value = '3' WHERE key = 'rules'")
    lines = world.config.events.read_bytes().splitlines(keepends=True)
    world.config.events.write_bytes(b"".join(lines[:-1]))
    for _ in range(2):
        with pytest.raises(RunnerError, check=lambda error: error.code == "E307"):
            connect.open_store(world.config)


def test_a_store_of_a_newer_program_is_refused_with_a_way_out(world: World) -> None:
    world.store.close()
    records.sql(world.config, "UPDATE meta SET value = '9999' WHERE key = 'rules'")
    with pytest.raises(RunnerError, check=lambda error: error.code == "E306"):
        connect.open_store(world.config)
    connect.rebuild(world.config)
    connect.open_store(world.config).close()


def test_runs_lists_what_is_still_to_do_and_what_is_running(world: World) -> None:
    task = records.task(cells=(Cell("test"), Cell("dev")))
    submission = world.register("alpha", "x")
    world.attempt(submission)
    found = {r.id: r.outcome for r in queries.runs(world.store, [task])}
    assert {id: (o.name, o.todo) for id, o in found.items()} == {
        f"{submission}.test": ("pending", "evaluate"),
        f"{submission}.dev": ("pending", "run"),
    }
    running = queries.runs(world.store, [task], running={f"{submission}.dev"})
    assert [r.outcome.name for r in running] == ["pending", "running"]
    assert queries.runs(world.store, [task], team="nobody") == []
    assert len(queries.runs(world.store, [task], submission=submission)) == 2
    with pytest.raises(RunnerError, check=lambda error: error.code == "E102"):
        queries.find_run(world.store, "no.such.run")


def test_detail_gives_the_attempt_that_decides_or_the_one_asked_for(world: World) -> None:
    submission = world.register("alpha", "x")
    world.attempt(submission, verdict="run-error", detail="exit code 1")
    world.evaluation(world.attempt(submission), {"ndcg": {"1": 0.5, "2": 1.0}, "rr": {"1": 1.0, "2": 0.0}})
    run = f"{submission}.test"
    detail = run_detail.detail(world.store, run)
    assert detail.attempt is not None
    assert detail.attempt.number == 2
    assert detail.measures["ndcg"].value == 0.75
    assert detail.topics == {"ndcg": {"1": 0.5, "2": 1.0}, "rr": {"1": 1.0, "2": 0.0}}
    first = run_detail.detail(world.store, f"{run}#1")
    assert first.record["verdict"]["name"] == "run-error"
    assert first.measures == {}
    with pytest.raises(RunnerError, check=lambda error: error.code == "E102"):
        run_detail.detail(world.store, f"{run}#7")
    # What is no number of an attempt is not taken for one, also when Python would call it a digit.
    for odd in ("²", "9" * 5000, "-1"):
        assert run_detail.detail(world.store, f"{run}#{odd}").attempt == detail.attempt


def test_quota_counts_what_costs_and_what_still_may(world: World) -> None:
    task = records.task(quota=Quota(submissions=5, teams={"beta": 9}))
    use = charges.quota(world.store, task, "alpha")
    assert (use.limit, use.used, use.open) == (5, 0, 0)
    world.scored("alpha", "x", version=1)
    world.attempt(world.register("alpha", "x", version=2), verdict="time-limit")
    held = world.register("alpha", "x", version=3)
    use = charges.quota(world.store, task, "alpha")
    assert (use.limit, use.used, use.open) == (5, 2, 1)
    for _ in range(3):
        world.attempt(held, verdict="platform-error")
    use = charges.quota(world.store, task, "alpha")
    assert (use.used, use.open, use.left) == (2, 0, 3)
    world.commit("quota-extended", task=TASK, team="alpha", submissions=4)
    assert charges.quota(world.store, task, "alpha").limit == 9
    assert charges.quota(world.store, task, "beta").limit == 9
    assert charges.quota(world.store, replace(task, id="other"), "alpha").used == 0


def test_scores_by_facet_are_in_the_archive_alone(world: World) -> None:
    """Nothing asks the database for them, and there can be many times as many as topics."""
    attempt = world.attempt(world.register("alpha", "x"))
    scores = {"ndcg": {"1": 0.5, "2": 0.25}, "rr": {"1": 0.5, "2": 1.0}}
    facets = [{"measure": "rr", "topic": "1", "value": n / 9, "facets": {"turn": n}} for n in range(9)]
    evaluation = world.evaluation(attempt, scores, by_facet=facets)
    with world.store.read() as connection:
        rows = connection.execute(sa.select(tables.topic_scores)).all()
    assert len(rows) == 4
    assert run_detail.detail(world.store, attempt.run_id).topics == scores
    assert len(list(evaluation.scores())) == 4 + 9
