"""Who sees mean scores on a blinded dataset, and when: every view is walked through with a score that stands for itself."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from runner.model.errors import RunnerError
from runner.tasks.load import load_task
from runner.views.audience import ORGANISER
from tests.worlds.definitions import project, write_task
from tests.worlds.looking import ALPHA, BETA, DUE, EVERYBODY, OF_ALPHA, OF_BETA, PUBLIC, Views

# Scores by topic, which are the bounds of the intervals, too.
BOUNDS = ("0.3242", "0.5242", "0.6373", "0.8373")


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
    assert "runner show RUN" in views.command("leaderboard", "toy", "--as", ALPHA)
    assert "runner show RUN" not in views.command("leaderboard", "toy", "--as", PUBLIC)
    shown = views.command("show", views.runs[0], "--as", ALPHA)
    assert OF_ALPHA in shown and "not shown to team:alpha" in shown


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
    assert "closed until runner publish toy test" in views.command(
        "unpublish", "toy", "test", "--reason", "wrong"
    )
    assert "are not published" in views.command("unpublish", "toy", "test")
    views.command("store", "rebuild")
    assert not views.open()
    assert "E307" not in views.command("store", "verify")


def test_what_is_always_open_cannot_be_closed(tmp_path: Path) -> None:
    views = Views(tmp_path, "public")
    assert "write scores: organiser" in views.command("unpublish", "toy", "test")
    assert "E101" in views.command("unpublish", "toy", "dev")


@pytest.mark.parametrize(
    ("dataset", "says"),
    [
        ({"visibility": "public", "publish_at": DUE}, "the dataset is public"),
        (
            {"visibility": "blinded", "scores": "public", "publish_at": DUE},
            "scores: public opens them at once",
        ),
        ({"visibility": "blinded", "publish_at": "2026-02-01 12:00"}, "zone is missing"),
        ({"visibility": "public", "scores": "team"}, "scores on a public dataset cannot be closed"),
    ],
)
def test_rules_that_contradict_each_other_are_refused(
    tmp_path: Path, dataset: dict[str, str], says: str
) -> None:
    config = project(tmp_path)
    write_task(config, datasets=[{"id": "dev", "visibility": "public"}, {"id": "test", **dataset}])
    with pytest.raises(RunnerError) as refused:
        load_task(config, "toy")
    assert refused.value.code == "E401"
    assert says in "".join(problem.what for problem in refused.value.problems)


@pytest.mark.parametrize(
    ("more", "until"), [({"publish_at": DUE}, "1 February 2026, 12:00 UTC"), ({}, "the organiser opens them")]
)
def test_the_page_of_a_run_says_until_when_its_scores_are_closed(
    tmp_path: Path, more: dict[str, str], until: str
) -> None:
    views = Views(tmp_path, "organiser", **more)
    for audience, closed in ((ALPHA, True), ("organiser", False)):
        file = tmp_path / f"{closed}.html"
        views.command("show", views.runs[0], "--as", audience, "--html", str(file))
        assert (f"The scores on test are closed until {until}." in file.read_text()) is closed
