"""Who may see what. A canary stands in everything that the software or the evaluator wrote."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from runner.model.errors import RunnerError
from runner.model.outcome import derive
from runner.model.task import Dataset
from runner.records.store import run_detail
from runner.views.audience import ORGANISER, PUBLIC, Audience, escape, may_export, permissions_for
from runner.views.logs import log_lines
from runner.views.redact import RunView, redact_row, redact_run
from tests.worlds import records
from tests.worlds.records import World, with_scores

CANARY = "CANARY"
ALPHA, BETA = Audience("team", "alpha"), Audience("team", "beta")


def canary_run(
    world: World, dataset: str, *, verdict: str = "ok", default: bool = False
) -> run_detail.RunDetail:
    submission = world.register("alpha", "x")
    attempt = world.attempt(
        submission,
        dataset=dataset,
        verdict=verdict,
        detail=f"run.txt is not usable: {CANARY}" if verdict != "ok" else "",
        warnings=[f"new kind of warning {CANARY}"],
        refused=[(f"{CANARY}.txt", "a link"), ("b.txt", CANARY)],
        log=f"{CANARY} \x1b[31mq17\n".encode() * 100,
    )
    if verdict == "ok":
        world.evaluation(
            attempt,
            {"ndcg": {CANARY: 0.5, "q2": 1.0}, "rr": {CANARY: 0.5, "q2": 1.0}},
            codes={"F012": ("warning", 3)},
            findings=[
                {"code": "F012", "severity": "warning", "file": "run.txt", "line": 3}
                | {"message": f'unknown topic "{CANARY}\x1b[2J"', "fix": CANARY, "topic": CANARY}
            ],
            message=f"note {CANARY}",
            default=default,
        )
    return run_detail.detail(world.store, f"{submission}.{dataset}")


def text(view: RunView) -> str:
    return json.dumps(dict(view), ensure_ascii=False)


def test_audiences_are_named_as_on_the_command_line() -> None:
    assert Audience.parse("organiser") == ORGANISER
    assert Audience.parse("public") == PUBLIC
    assert Audience.parse("team:alpha") == ALPHA
    assert [str(a) for a in (ORGANISER, PUBLIC, ALPHA)] == ["organiser", "public", "team:alpha"]
    for bad in ("", "team:", "team", "team:-A", "team:a b", "Organiser", "team:alpha\n", "x\x1b[31m"):
        with pytest.raises(RunnerError) as caught:
            Audience.parse(bad)
        assert caught.value.code == "E101"
        assert "\x1b" not in caught.value.what


def test_a_view_cannot_be_made_without_an_audience() -> None:
    with pytest.raises(TypeError):
        RunView({"run": "x"}, ORGANISER, made_by=None)


def test_the_team_sees_nothing_of_its_own_words_on_a_blinded_dataset(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    detail = canary_run(world, "test")
    dataset = records.task().datasets["test"]
    view = redact_run(detail, ALPHA, dataset)
    assert CANARY not in text(view) and "secret-host" not in text(view)
    assert view["outcome"]["name"] == "scored"
    assert set(view["resources"].values()) == {None, "none"}
    assert view["steps"] == {"time": "under 1 min", "memory": "under 256 MiB", "size": "under 64 KiB"}
    assert view["findings"]["codes"] == {  # of another evaluator than ours
        "finding": {"severity": "warning", "count": None, "amount": "few", "title": ""}
    }
    assert not any(
        (view["findings"]["lines"], view["log"], view["topic_scores"], view["verdict"]["warnings"])
    )
    assert view["run_tag"] is None and view["output"] is None and "logs" in view["hidden"]
    assert view["scores"]["ndcg"]["value"] == 0.75

    view = redact_run(canary_run(World.make(tmp_path / "ours"), "test", default=True), ALPHA, dataset)
    assert view["findings"]["codes"]["F012"]["title"] == "title of F012" and CANARY not in text(view)


def test_a_failed_run_on_a_blinded_dataset_tells_what_happened_in_our_words(tmp_path: Path) -> None:
    detail = canary_run(World.make(tmp_path), "test", verdict="no-output")
    view = redact_run(detail, ALPHA, records.task().datasets["test"])
    assert CANARY not in text(view)
    assert view["verdict"]["detail"] == "" and view["verdict"]["name"] == "no-output"
    assert "$outputDir" in view["outcome"]["next"]
    assert view["outcome"]["blame"] == "participant"


def test_reading_the_log_is_advised_only_to_those_who_may(tmp_path: Path) -> None:
    datasets = records.task().datasets
    for dataset, who, may in (("dev", ALPHA, True), ("test", ALPHA, False), ("test", ORGANISER, True)):
        detail = canary_run(World.make(tmp_path / f"{dataset}-{who.kind}"), dataset, verdict="run-error")
        view = redact_run(detail, who, datasets[dataset])
        for advice in (view["outcome"]["next"], view["verdict"]["next"]):
            assert (" log " in advice) is may and "runner try" in advice
        running = replace(detail, run=replace(detail.run, outcome=derive([], running=True)))
        advice = redact_run(running, who, datasets[dataset])["outcome"]["next"]
        assert ("--follow" in advice) is may and advice


def test_scores_of_a_blinded_dataset_are_hidden_until_they_are_published(world: World) -> None:
    detail = canary_run(world, "test")
    closed = with_scores(records.task(), "test", "organiser").datasets["test"]
    view = redact_run(detail, ALPHA, closed)
    assert view["scores"] == {}
    assert "scores" in view["hidden"]
    assert redact_run(replace(detail, published=True), ALPHA, closed)["scores"] != {}
    world.commit("dataset-published", task=records.TASK, dataset="test")
    assert run_detail.detail(world.store, detail.run.id).published


def test_the_team_sees_everything_on_a_public_dataset_escaped(tmp_path: Path) -> None:
    detail = canary_run(World.make(tmp_path), "dev")
    view = redact_run(detail, ALPHA, records.task().datasets["dev"])
    assert view["hidden"] == []
    assert len(view["log"]["stdout"]) == 50
    assert view["log"]["stdout"][0] == f"{CANARY} \\x1b[31mq17" and "inside" not in view
    assert view["findings"]["lines"][0]["message"] == f'unknown topic "{CANARY}\\x1b[2J"'
    assert view["topic_scores"]["ndcg"][CANARY] == 0.5
    assert "\x1b" not in text(view) and "\\u001b" not in text(view)
    assert "secret-host" not in text(view)


def test_the_organiser_sees_all_of_it(tmp_path: Path) -> None:
    detail = canary_run(World.make(tmp_path), "test")
    view = redact_run(detail, ORGANISER, records.task().datasets["test"])
    assert view["hidden"] == []
    assert view["inside"]["host"] == "secret-host"
    assert view["inside"]["evaluations"][0]["message"] == f"note {CANARY}"
    assert "\x1b" not in text(view) and "\\u001b" not in text(view)


@pytest.mark.parametrize("audience", [BETA, PUBLIC])
@pytest.mark.parametrize("dataset", ["test", "dev"])
def test_others_see_nothing_of_a_run(tmp_path: Path, audience: Audience, dataset: str) -> None:
    detail = canary_run(World.make(tmp_path), dataset)
    where = records.task().datasets[dataset]
    for call in (
        lambda: redact_run(detail, audience, where),
        lambda: list(log_lines(detail, audience, where)),
        lambda: may_export(detail, audience, where),
    ):
        with pytest.raises(RunnerError) as caught:
            call()
        assert caught.value.code == "E103"
    assert redact_row(detail.run, audience, where) is None


def test_rows_are_redacted_like_runs(tmp_path: Path) -> None:
    detail = canary_run(World.make(tmp_path), "test", verdict="run-error")
    dataset = records.task().datasets["test"]
    mine = redact_row(detail.run, ALPHA, dataset)
    assert mine is not None
    assert CANARY not in text(mine)
    theirs = redact_row(detail.run, ORGANISER, dataset)
    assert theirs is not None
    assert CANARY in theirs["outcome"]["reason"]


def test_logs_and_files_follow_the_same_rule(world: World) -> None:
    task = records.task()
    blinded, open_ = canary_run(world, "test"), None
    with pytest.raises(RunnerError):
        log_lines(blinded, ALPHA, task.datasets["test"])
    with pytest.raises(RunnerError):
        may_export(blinded, ALPHA, task.datasets["test"])
    submission = blinded.run.submission.id
    world.attempt(submission, dataset="dev", log=b"one\x1b[0m\r\ntwo")
    open_ = run_detail.detail(world.store, f"{submission}.dev")
    assert list(log_lines(open_, ALPHA, task.datasets["dev"])) == ["one\\x1b[0m", "two"]
    may_export(open_, ALPHA, task.datasets["dev"])
    for audience in (ALPHA, PUBLIC):
        with pytest.raises(RunnerError):
            log_lines(blinded, audience, task.datasets["test"], evaluator=True)
    assert list(log_lines(blinded, ORGANISER, task.datasets["test"], "stderr", evaluator=True)) == [
        "evaluator"
    ]


@pytest.mark.parametrize("visibility", ["public", "blinded"])
@pytest.mark.parametrize("scores", ["public", "organiser"])
@pytest.mark.parametrize("published", [True, False])
def test_nobody_sees_more_than_the_organiser_and_the_public_sees_no_run(
    visibility: str, scores: str, published: bool
) -> None:
    dataset = Dataset("d", visibility, Path(), Path(), scores=scores)  # type: ignore[arg-type]
    own = permissions_for(ALPHA, "alpha", dataset, published)
    public = permissions_for(PUBLIC, "alpha", dataset, published)
    assert not (public.run or public.free_text or public.topics or public.platform or own.platform)
    assert own.free_text == own.topics == (visibility == "public")
    assert own.scores == public.scores == (visibility == "public" or scores == "public" or published)
    assert permissions_for(BETA, "alpha", dataset, published) == public


def test_a_released_run_is_open_to_its_team_and_nobody_else_until_that_is_undone(tmp_path: Path) -> None:
    world, task = World.make(tmp_path), records.task(scores="organiser")
    submission = canary_run(world, "test", default=True).run.submission.id
    place, id = task.datasets["test"], f"{submission}.test"

    def seen(audience: Audience = ALPHA) -> RunView:
        return redact_run(run_detail.detail(world.store, id), audience, place)

    closed = dict(seen())
    world.commit("run-released", task=records.TASK, run=id, attempt=1, reason="a look")
    view = seen()
    assert view["log"]["stdout"] and view["findings"]["codes"]["F012"]["count"] == 3
    assert view["resources"]["wall_seconds"] == 1.5 and view["steps"] is None and view["attempt"] == 1
    assert list(log_lines(run_detail.detail(world.store, id), ALPHA, place))
    row = redact_row(run_detail.detail(world.store, id).run, ALPHA, place)
    assert row is not None and row["resources"]["wall_seconds"] == 1.5
    # Truths stay where they are, with the files that hold scores by topic.
    assert view["scores"] == {} and view["topic_scores"] == {}
    assert {"scores", "per-topic scores"} == set(view["hidden"])
    with pytest.raises(RunnerError):
        may_export(run_detail.detail(world.store, id), ALPHA, place)
    for audience in (BETA, PUBLIC):
        with pytest.raises(RunnerError):
            seen(audience)
    # It was this attempt that the organiser looked at, not the next one.
    world.attempt(submission, log=b"the next one\n")
    assert CANARY not in text(seen()) and seen()["log"] == {}
    assert redact_run(run_detail.detail(world.store, id, attempt=1), ALPHA, place)["log"]
    world.commit("run-closed", task=records.TASK, run=id, attempt=1)
    assert not redact_run(run_detail.detail(world.store, id, attempt=1), ALPHA, place)["log"]
    assert closed["findings"]["codes"]["F012"]["amount"] == "few"


def test_only_attempts_that_are_there_are_released(world: World) -> None:
    id = f"{canary_run(world, 'test').run.submission.id}.test"
    for type, attempt in (("run-released", 7), ("run-closed", 1)):
        with pytest.raises(RunnerError) as caught:
            world.commit(type, task=records.TASK, run=id, attempt=attempt)
        assert caught.value.code == "E307"
        # The log keeps it: such an event is never written by a command.
        world.config.events.write_text("".join(world.config.events.read_text().splitlines(True)[:-1]))


def test_escaping_leaves_nothing_that_moves_a_cursor_or_turns_text_around() -> None:
    evil = "a\x1b[31m\r\n\t\x00\x9b\u202e\u2028\u200b\ud800b"
    shown = escape(evil)
    assert shown.startswith("a") and shown.endswith("b")
    assert shown.isprintable()
    assert len(escape("x" * 10_000, 20)) == 20
