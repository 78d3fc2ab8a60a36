"""Topics of a dataset in a public and a private part: no view shows a figure of the private one before it is published."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from evaluator.measures.records.base import PerRecord
from evaluator.measures.records.named import known
from runner.execution.coordinator import EvaluationRequest, Silent, coordinating
from runner.records.deadlines import draw_keys
from runner.records.split import Split
from runner.tasks.load import load_task
from runner.views.audience import ORGANISER
from schemas.measures import mean_of_topics
from tests.worlds.looking import ALPHA, EVERYBODY, PUBLIC, Views

KEY = "5e" * 32
TOPICS = [str(n) for n in range(1, 41)]
SHARES = {"test": 0.3}


def part(name: str) -> Split:
    return Split(KEY, SHARES, {"test": name})  # type: ignore[dict-item]


PUBLIC_TOPICS = list(part("public").topics("test", dict.fromkeys(TOPICS, 0.0)))


def scores(public: float, private: float) -> dict[str, float]:
    """Values by topic whose means over the parts are ``public`` and ``private``."""
    step = {
        topic: (-1) ** n * 0.0101
        for names in (PUBLIC_TOPICS, private_topics())
        for n, topic in enumerate(names)
    }
    odd = {names[-1] for names in (PUBLIC_TOPICS, private_topics()) if len(names) % 2}
    return {t: (public if t in PUBLIC_TOPICS else private) + (0 if t in odd else step[t]) for t in TOPICS}


def private_topics() -> list[str]:
    return [topic for topic in TOPICS if topic not in PUBLIC_TOPICS]


# What is better on the public topics is worse on the private ones.
MEANS = {"alpha": (0.8123, 0.2345), "beta": (0.6123, 0.5345), "baselines": (0.4123, 0.4345)}
FIGURES = {team: {"public": f"{a:.4f}", "private": f"{b:.4f}"} for team, (a, b) in MEANS.items()}


def whole(team: str) -> str:
    values = scores(*MEANS[team]).values()
    return f"{sum(values) / len(values):.4f}"


def views_of(root: Path, rule: str = "public", **more: object) -> Views:
    """Three teams on a dataset of which 30 % of the topics are public, by a key that is known here."""
    by_topic = {team: scores(*MEANS[team]) for team in MEANS}
    views = Views(root, rule, by_topic=by_topic, public_topics="30%", **more)  # type: ignore[arg-type]
    views.world.commit("key-drawn", task="toy", key=KEY)
    return views


def ranks(views: Views, audience: str, *more: str) -> list[str]:
    """The teams of a board, the best first."""
    board = json.loads(views.command("leaderboard", "toy", "--json", "--as", audience, *more))
    return [row["team"] for row in board["rows"]]


@pytest.mark.slow
def test_before_they_are_published_scores_are_over_the_public_topics(tmp_path: Path) -> None:
    views = views_of(tmp_path)
    hidden = [text for team in MEANS for text in (FIGURES[team]["private"], whole(team))] + [KEY]
    organisers = views.all(str(ORGANISER))
    assert all(text in organisers for text in hidden[:-1]), "they would be seen"
    for audience in EVERYBODY:
        text = views.all(audience)
        assert not [one for one in hidden if one in text], audience
        assert all(FIGURES[team]["public"] in text for team in MEANS)
    assert KEY not in organisers
    assert ranks(views, PUBLIC) == ["alpha", "beta", "baselines"]
    for wanted in ("private", "all"):
        assert "E103" in views.command("leaderboard", "toy", "--as", PUBLIC, "--topics", wanted)


def test_once_they_are_published_the_private_topics_decide(tmp_path: Path) -> None:
    views = views_of(tmp_path)
    assert ranks(views, "organiser") == ["beta", "baselines", "alpha"]
    views.command("publish", "toy", "test")
    for audience in (ALPHA, PUBLIC):
        assert ranks(views, audience) == ["beta", "baselines", "alpha"]
        assert ranks(views, audience, "--topics", "public") == ["alpha", "beta", "baselines"]
    assert whole("alpha") in views.command("leaderboard", "toy", "--as", PUBLIC, "--topics", "all")
    shown = views.command("show", views.runs[0], "--as", ALPHA)
    assert FIGURES["alpha"]["private"] in shown and FIGURES["alpha"]["public"] not in shown
    views.command("unpublish", "toy", "test")
    assert ranks(views, PUBLIC) == ["alpha", "beta", "baselines"]


def test_a_team_sees_its_own_scores_over_the_public_topics(tmp_path: Path) -> None:
    views = views_of(tmp_path, "team")
    shown = views.command("show", views.runs[0], "--as", ALPHA)
    assert FIGURES["alpha"]["public"] in shown and "30%" in shown
    assert FIGURES["alpha"]["private"] not in shown and whole("alpha") not in shown
    assert "E103" in views.command("leaderboard", "toy", "--as", ALPHA)


def test_every_export_says_which_topics_it_is_over(tmp_path: Path) -> None:
    views = views_of(tmp_path)
    board = json.loads(views.command("leaderboard", "toy", "--json", "--as", PUBLIC))
    assert board["parts"] == {"test": "public"} and board["topics"] == len(PUBLIC_TOPICS)
    assert board["rows"][0]["covered"] is None
    for form, mark in (
        ("table", "30%"),
        ("markdown", "30%"),
        ("latex", r"30\%"),
        ("html", "30%"),
        ("csv", "test=public"),
    ):
        assert mark in views.command("leaderboard", "toy", "--as", PUBLIC, "--format", form), form


def test_values_by_topic_beside_a_mean_are_those_that_it_is_over(tmp_path: Path) -> None:
    views = views_of(tmp_path)
    for name, topics in (("public", PUBLIC_TOPICS), ("private", private_topics())):
        lines = views.command("leaderboard", "toy", "--format", "jsonl", "--topics", name).splitlines()
        values = [json.loads(line) for line in lines]
        ours = [v for v in values if v["measure"] == "ndcg" and v["run_id"] == values[0]["run_id"]]
        by_topic = {v["topic_id"]: v["value"] for v in ours}
        assert set(by_topic) == {*topics, "all"}
        mean = by_topic.pop("all")
        assert mean == pytest.approx(sum(by_topic.values()) / len(by_topic))


def test_significance_is_over_the_same_topics(tmp_path: Path) -> None:
    table = {"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ndcg", "baseline": "baselines/x"}
    views = views_of(tmp_path, task={"tables": [table]})
    for place, (audience, topics) in enumerate(((PUBLIC, PUBLIC_TOPICS), ("organiser", private_topics()))):
        board = json.loads(views.command("leaderboard", "toy", "--json", "--as", audience))
        tested = {row["team"]: row["comparison"] for row in board["rows"] if row["comparison"]}
        difference = MEANS["alpha"][place] - MEANS["baselines"][place]
        assert tested["alpha"]["topics"] == len(topics)
        assert tested["alpha"]["difference"] == pytest.approx(difference)


def test_the_best_of_a_team_is_best_on_the_public_topics(tmp_path: Path) -> None:
    views = views_of(tmp_path)
    second = views.world.scored("alpha", "x", version=2, scores=scores(0.1234, 0.9876))
    for audience in ("organiser", PUBLIC):
        board = json.loads(views.command("leaderboard", "toy", "--json", "--pick", "best", "--as", audience))
        assert second not in [row["submission"] for row in board["rows"]]


def test_a_frozen_round_has_both_parts(tmp_path: Path) -> None:
    views = views_of(tmp_path, task={"rounds": [{"id": "first", "at": "2026-02-01 12:00 UTC"}]})
    views.command("round", "freeze", "toy", "first")
    assert ranks(views, PUBLIC, "--round", "first") == ["alpha", "beta", "baselines"]
    assert ranks(views, "organiser", "--round", "first") == ["beta", "baselines", "alpha"]
    words = ("leaderboard", "toy", "--round", "first", "--as", ALPHA, "--format")
    text = "".join(views.command(*words, form) for form in ("table", "json", "csv"))
    assert FIGURES["alpha"]["public"] in text and FIGURES["alpha"]["private"] not in text
    views.command("publish", "toy", "test")
    assert ranks(views, PUBLIC, "--round", "first") == ["beta", "baselines", "alpha"]


def test_a_round_that_is_frozen_before_the_key_was_drawn_draws_it(tmp_path: Path) -> None:
    rounds = {"rounds": [{"id": "first", "at": "2026-02-01 12:00 UTC"}]}
    views = Views(tmp_path, "public", task=rounds, public_topics="30%")
    views.command("round", "freeze", "toy", "first")
    frozen = json.loads(views.command("round", "show", "toy", "first", "--json"))["snapshot"]
    assert frozen["tables"]["main"]["parts"] == {"test": "private"}
    assert frozen["public_tables"]["main"]["parts"] == {"test": "public"}


def test_without_a_key_scores_are_closed_until_the_coordinator_draws_one(tmp_path: Path) -> None:
    views = Views(tmp_path, "public", public_topics="30%")
    assert "E103" in views.command("leaderboard", "toy", "--as", PUBLIC)
    shown = views.command("show", views.runs[0], "--as", ALPHA)
    assert "0.4242" not in shown
    with coordinating(views.world.config, Silent()) as coordinator:
        coordinator.plan(EvaluationRequest(only_evaluate=True))
        assert draw_keys(coordinator.store, [load_task(views.world.config, "toy")]) == []  # once
    events = [json.loads(line) for line in views.world.config.events.read_text().splitlines()]
    (drawn,) = [event for event in events if event["type"] == "key-drawn"]
    assert len(bytes.fromhex(drawn["data"]["key"])) == 32 and drawn["actor"] == "runner"
    assert drawn["data"]["key"] not in views.command("events") + views.command("events", "--json")
    before = views.command("leaderboard", "toy", "--json", "--as", PUBLIC)
    views.command("store", "rebuild")
    assert views.command("leaderboard", "toy", "--json", "--as", PUBLIC) == before


def test_a_date_opens_the_private_topics_by_an_event(tmp_path: Path) -> None:
    views = views_of(tmp_path, publish_at="2026-02-01 12:00 UTC")
    assert ranks(views, PUBLIC)[0] == "alpha"
    assert views.publish_due("2026-02-01T11:59:59+00:00") == []
    assert views.publish_due("2026-02-01T12:00:00+00:00") == ["test"]
    assert datetime.fromisoformat("2026-02-01T12:00:00+00:00") == views.world.clock.at
    assert ranks(views, PUBLIC)[0] == "beta"


def test_how_many_topics_were_answered_is_over_the_same_part(tmp_path: Path) -> None:
    views = views_of(tmp_path)
    submission = views.world.register("gamma", "x")
    missing = {*PUBLIC_TOPICS[:2], *private_topics()[:7]}
    values = {topic: 0.0 if topic in missing else 0.5 for topic in TOPICS}
    attempt = views.world.attempt(submission)
    views.world.evaluation(attempt, {"ndcg": values, "rr": values}, unanswered=missing)
    sizes = {"public": len(PUBLIC_TOPICS), "private": len(private_topics()), "all": len(TOPICS)}
    absent = {"public": 2, "private": 7, "all": 9}

    def answered(audience: str, *more: str) -> tuple[int, int]:
        board = json.loads(views.command("leaderboard", "toy", "--json", "--as", audience, *more))
        (row,) = [row for row in board["rows"] if row["team"] == "gamma"]
        return row["covered"], row["topics"]

    for name, size in sizes.items():
        assert answered("organiser", "--topics", name) == (size - absent[name], size)
    for audience in (PUBLIC, ALPHA, "team:gamma"):
        assert answered(audience) == (sizes["public"] - 2, sizes["public"])
    shown = views.command("show", f"{submission}.test", "--as", "team:gamma")
    assert f"{sizes['public'] - 2} of {sizes['public']}" in shown and f"of {len(TOPICS)}" not in shown


@pytest.mark.parametrize(
    ("measure", "fine"),
    [
        ("Accuracy(x)", True),
        ("Number(x, range=[0, 1], rule=mean)", True),
        ("F1(x)", False),
        ("Accuracy(x, macro=g)", False),
        ("Number(x, range=[0, 1], rule=median)", False),
    ],
)
def test_of_records_what_is_a_mean_over_them_can_be_split(measure: str, fine: bool) -> None:
    assert mean_of_topics("records", measure) is fine


def test_every_measure_of_records_says_rightly_whether_it_is_a_mean() -> None:
    for name, one in known().items():
        is_mean = issubclass(one, PerRecord) and one.rules[0] == "mean"
        assert mean_of_topics("records", f"{name}(x)") is is_mean, name


def test_a_part_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    views = views_of(tmp_path)
    assert "E101" in views.command("leaderboard", "toy", "--topics", "most")
    other = Views(tmp_path / "other", "public")
    assert "E101" in other.command("leaderboard", "toy", "--topics", "public")
