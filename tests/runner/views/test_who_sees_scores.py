"""Who sees mean scores on a blinded dataset, and when: every view is walked through with a score that stands for itself."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from runner.model.errors import RunnerError
from runner.tasks.load import load_task
from runner.views.audience import ORGANISER
from schemas.documents import Problem
from tests.worlds.definitions import project, write_task
from tests.worlds.looking import ALPHA, BETA, DUE, EVERYBODY, OF_ALPHA, OF_BETA, PUBLIC, Views

# Scores by topic, which are the bounds of the intervals, too.
BOUNDS = ("0.3242", "0.5242", "0.6373", "0.8373")


@pytest.mark.slow
@pytest.mark.parametrize("scores", ["organiser", "team"])
def test_closed_scores_are_in_no_view(tmp_path: Path, scores: str) -> None:
    views = Views(tmp_path, scores)
    organisers = views.all(str(ORGANISER))
    assert all(figure in organisers for figure in (OF_ALPHA, OF_BETA, *BOUNDS)), "it would be seen"
    seen = {audience: views.all(audience) for audience in EVERYBODY}
    own = {ALPHA: {OF_ALPHA, *BOUNDS[:2]}, BETA: {OF_BETA, *BOUNDS[2:]}} if scores == "team" else {}
    for audience, text in seen.items():
        found = {figure for figure in (OF_ALPHA, OF_BETA, *BOUNDS) if figure in text}
        assert found == own.get(audience, set()), audience
        assert "E103" in text


@pytest.mark.slow
def test_values_in_resamples_are_seen_like_values_by_topic(tmp_path: Path) -> None:
    """Of a blinded dataset by the organiser alone, also once the scores are published."""
    views = Views(tmp_path, "team")
    canary, world = 0.123456789, views.world
    found = {"value": 0.5, "topics": 30, "covered": 30, "interval": [0.4, 0.6]}
    sampled = found | {"resamples": {"drawn": "d" * 64, "values": [canary] * 200}}
    submission = world.register("alpha", "f1")
    world.evaluation(world.attempt(submission), more={"measures": {"ndcg": sampled, "rr": sampled}})
    views.runs.append(f"{submission}.test")
    for _ in ("closed", "published"):
        assert str(canary) in views.all(str(ORGANISER)), "it would be seen"
        assert not any(str(canary) in views.all(audience) for audience in EVERYBODY)
        views.command("publish", "toy", "test")


def test_a_team_whose_own_scores_are_open_is_told_where_they_are(tmp_path: Path) -> None:
    views = Views(tmp_path, "team")
    boards = [views.command("leaderboard", "toy", "--as", audience) for audience in (ALPHA, PUBLIC)]
    assert ["runner show" in board for board in boards] == [True, False]
    assert OF_ALPHA in views.command("show", views.runs[0], "--as", ALPHA)
    assert "scores" not in json.loads(views.command("show", views.runs[0], "--as", ALPHA, "--json"))["hidden"]


@pytest.mark.slow
def test_published_scores_are_everybodys(tmp_path: Path) -> None:
    views = Views(tmp_path, "team")
    views.command("publish", "toy", "test")
    for audience in EVERYBODY:
        boards = views.boards(audience)
        assert OF_ALPHA in boards and OF_BETA in boards


@pytest.mark.parametrize("left", ["task.yaml", "dataset", "nothing"])
def test_published_scores_of_a_task_whose_rules_are_gone_are_the_organisers(
    tmp_path: Path, left: str
) -> None:
    views = Views(tmp_path, "public", task={"precision": 1}, public_topics="50%")
    views.world.commit("key-drawn", task="toy", key="5e" * 32)
    views.command("publish", "toy", "test")
    file = tmp_path / "tasks" / "toy" / "task.yaml"
    data = json.loads(file.read_text())
    only_dev = {"datasets": data["datasets"][:1], "tables": []}
    text = {"task.yaml": "broken: [", "dataset": json.dumps({**data, **only_dev}), "nothing": ""}[left]
    file.write_text(text) if text else file.unlink()
    for words in (("show", views.runs[0]), ("show", views.runs[0], "--json"), ("runs", "--json")):
        assert OF_ALPHA in views.command(*words) or words[0] == "runs"
        assert "0.4" not in views.command(*words, "--as", ALPHA)


UNPUBLISHED = {"task": "toy", "dataset": "test", "reason": ""}
BEFORE, AT, AFTER = "2026-02-01T11:59:59+00:00", "2026-02-01T12:00:00+00:00", "2026-03-01T00:00:00+00:00"


@pytest.mark.slow
def test_what_is_due_is_closed_until_the_coordinator_has_written_it(tmp_path: Path) -> None:
    views = Views(tmp_path, "organiser", publish_at=DUE)
    # This machine's clock is beyond the date.
    assert not any(figure in views.all(audience) for audience in EVERYBODY for figure in (OF_ALPHA, OF_BETA))
    assert views.publish_due(BEFORE) == [] and not views.open()
    assert views.publish_due(AT) == ["test"] and views.open()
    assert views.publish_due(AT) == []  # once
    assert (
        views.publish_due("2020-01-01T00:00:00+00:00") == [] and views.open()
    )  # a clock that goes wrong closes nothing
    events = [json.loads(line) for line in views.world.config.events.read_text().splitlines()]
    (published,) = [event for event in events if event["type"] == "dataset-published"]
    assert published["time"] == "2026-02-01T12:00:00Z" and published["actor"] == "runner"
    assert published["data"] == {"task": "toy", "dataset": "test", "publish_at": DUE}


def test_scores_that_were_closed_at_their_date_or_later_stay_closed(tmp_path: Path) -> None:
    views = Views(tmp_path, "organiser", publish_at=DUE)
    assert views.publish_due(AT) == ["test"]
    views.world.store.commit("dataset-unpublished", UNPUBLISHED, actor="organiser")
    assert not views.open()
    assert views.publish_due(AFTER) == [] and not views.open()
    views.command("publish", "toy", "test")
    assert views.open()


def test_scores_that_were_published_early_and_closed_wait_for_their_date(tmp_path: Path) -> None:
    views = Views(tmp_path, "organiser", publish_at=DUE)
    views.world.clock.at = datetime.fromisoformat(BEFORE)
    views.world.store.commit("dataset-published", {"task": "toy", "dataset": "test"}, actor="organiser")
    views.world.store.commit("dataset-unpublished", UNPUBLISHED, actor="organiser")
    assert views.publish_due(BEFORE) == [] and not views.open()
    assert views.publish_due(AFTER) == ["test"] and views.open()


def test_a_store_that_is_made_anew_knows_what_was_closed(tmp_path: Path) -> None:
    views = Views(tmp_path, "organiser")
    views.command("publish", "toy", "test")
    assert views.open()
    views.command("unpublish", "toy", "test", "--reason", "wrong")
    views.command("unpublish", "toy", "test")  # again, which changes nothing
    assert "dataset-unpublished" in views.world.config.events.read_text().splitlines()[-1]
    views.command("store", "rebuild")
    assert not views.open()
    assert "E307" not in views.command("store", "verify")


def test_what_is_always_open_cannot_be_closed(tmp_path: Path) -> None:
    views = Views(tmp_path, "public")
    for dataset in ("test", "dev"):
        assert "E101" in views.command("unpublish", "toy", dataset)


AP, DATES = {"id": "ap", "truths": "q"}, ("2026-02-01 12:00", "soon", 3)
SPLIT = {"visibility": "blinded", "scores": "public", "public_topics": "30%"}


@pytest.mark.parametrize(
    ("dataset", "pointer", "value"),
    [
        ({"visibility": "public", "publish_at": DUE}, "publish_at", "public"),
        ({"visibility": "blinded", "scores": "public", "publish_at": DUE}, "publish_at", "scores: public"),
        ({"visibility": "blinded", "publish_at": "2026-02-01 12:00"}, "publish_at", '"2026-02-01 12:00"'),
        ({"visibility": "public", "scores": "team"}, "scores", "public"),
        ({"visibility": "public", "public_topics": "30%"}, "public_topics", "public"),
        ({"visibility": "blinded", "public_topics": "30%"}, "public_topics", "organiser"),
        (SPLIT | {"public_topics": "0%"}, "public_topics", '"0%"'),
        (SPLIT | {"public_topics": "100%"}, "public_topics", '"100%"'),
    ],
)
def test_datasets_with_contradicting_rules_are_refused(
    tmp_path: Path, dataset: dict[str, str], pointer: str, value: str
) -> None:
    problem = refused(tmp_path, datasets=[{"id": "dev", "visibility": "public"}, {"id": "test", **dataset}])
    assert problem.pointer == f"/datasets/1/{pointer}" and value in problem.what


@pytest.mark.parametrize(
    ("change", "pointer", "value"),
    [
        ({"measures": [AP | {"measure": "NumRet"}]}, "/datasets/0/public_topics", "NumRet"),
        ({"kind": "report", "measures": [AP | {"measure": "f1"}]}, "/datasets/0/public_topics", "f1"),
        ({"evaluator": {"image": "ours:1"}}, "/datasets/0/public_topics", "evaluator"),
        *(({"anonymous": {"until": date}}, "/anonymous/until", str(date)) for date in DATES),
        *(({"precision": decimals}, "/precision", str(decimals)) for decimals in (-1, 11, "3", 2.5)),
    ],
)
def test_wrong_rules_of_scores_and_names_are_refused(
    tmp_path: Path, change: dict[str, Any], pointer: str, value: str
) -> None:
    problem = refused(tmp_path, **{"datasets": [{"id": "test", **SPLIT}], **change})
    assert problem.pointer == pointer and value in problem.what


def refused(tmp_path: Path, **definition: Any) -> Problem:
    """Return the problem of a definition that cannot be loaded."""
    config = project(tmp_path)
    write_task(config, **definition)
    with pytest.raises(RunnerError) as caught:
        load_task(config, "toy")
    assert caught.value.code == "E401" and len(caught.value.problems) == 1, caught.value.problems
    return caught.value.problems[0]


@pytest.mark.parametrize(
    ("more", "until"), [({"publish_at": DUE}, "1 February 2026, 12:00 UTC"), ({}, "organiser")]
)
def test_the_page_of_a_run_says_until_when_its_scores_are_closed(
    tmp_path: Path, more: dict[str, str], until: str
) -> None:
    views = Views(tmp_path, "organiser", **more)
    for audience, closed in ((ALPHA, True), ("organiser", False)):
        file = tmp_path / f"{closed}.html"
        views.command("show", views.runs[0], "--as", audience, "--html", str(file))
        scores = file.read_text().partition('<h2 id="scores">')[2].partition("<h2")[0]
        assert (until in scores) is closed and (OF_ALPHA in scores) is not closed
