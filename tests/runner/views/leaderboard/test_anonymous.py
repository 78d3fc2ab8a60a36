"""Made-up names in place of those of other teams: on every view, until an event shows them."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from runner.execution.coordinator import EvaluationRequest, Silent, coordinating
from runner.model.clock import FixedClock
from runner.records.deadlines import open_names_due
from runner.tasks.load import load_task
from runner.views.audience import ORGANISER
from runner.views.leaderboard.anonymous import Names
from tests.worlds.looking import DUE, PUBLIC, Views

KEY, OTHER = "5e" * 32, "a1" * 32
TEAMS = ("zebrafish", "quagga", "axolotl")  # names that no other word holds
SECRETS = {team: (team, f"{team}-soft", f"{team}-tag", f"{team}-words") for team in TEAMS}
TABLE = {"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ndcg", "pick": "chosen"}
TABLES = [TABLE | {"baseline": "baselines/bm25"}]
BEFORE, AT = "2026-02-01T11:59:59+00:00", "2026-02-01T12:00:00+00:00"


def views_of(
    root: Path, *, scores: str = "public", until: str = DUE, key: str | None = KEY, **task: Any
) -> Views:
    """Three teams and a baseline; quagga's first submission fails, and it names it as the one that counts."""
    views = Views(root, scores, by_topic={}, task={"anonymous": {"until": until}, "tables": TABLES, **task})
    world = views.world
    if key is not None:
        world.commit("key-drawn", task="toy", key=key)
    views.runs = []
    for n, team in enumerate((*TEAMS, "baselines")):
        software = "bm25" if team == "baselines" else f"{team}-soft"
        words = f"{team}-words"
        made = world.register(
            team,
            software,
            tag=f"{team}-tag",
            description=words,
            paper=f"https://example.org/{team}",
            affiliation=words,
        )
        values = {str(topic): 0.2 + 0.1 * n + topic / 1000 for topic in range(1, 4)}
        world.evaluation(world.attempt(made), {"ndcg": values, "rr": values})
        views.runs.append(f"{made}.test")
    failed = world.register("quagga", "quagga-soft", version=2, tag="quagga-tag")
    world.attempt(failed, verdict="run-error", detail="exit code 3 quagga-words")
    world.commit("submission-chosen", submission=failed, team="quagga")
    world.commit("display-name-set", team="axolotl", software="axolotl-soft", display_name="axolotl-words!")
    return views


def board(views: Views, audience: str, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(views.command("leaderboard", "toy", "--json", "--as", audience, *more))
    return found


def teams(views: Views, audience: str, *more: str) -> list[str]:
    return [row["team"] for row in board(views, audience, *more)["rows"]]


@pytest.mark.slow
def test_no_view_has_the_name_of_another_team(tmp_path: Path) -> None:
    views = views_of(tmp_path)
    organisers = views.all(str(ORGANISER))
    assert all(word in organisers for words in SECRETS.values() for word in words), "they would be seen"
    for audience, own in (("team:zebrafish", "zebrafish"), (PUBLIC, "")):
        text = _asked(views.all(audience), views)
        found = {word for team, words in SECRETS.items() if team != own for word in words if word in text}
        assert not found, (audience, found)
        assert ("zebrafish-soft" in text) is bool(own)
        assert "baselines/bm25" in text
    assert not any(team in views.boards(PUBLIC) for team in TEAMS)


def _asked(text: str, views: Views) -> str:
    """A text without the true ids of runs that the walk itself asked for: errors repeat them."""
    for run in views.runs:
        text = text.replace(run, "")
    return text


def test_a_board_without_names_is_the_same_but_for_them(tmp_path: Path) -> None:
    views = views_of(tmp_path)
    true, seen = board(views, "organiser"), board(views, PUBLIC)
    assert [row["rank"] for row in seen["rows"]] == [row["rank"] for row in true["rows"]]
    assert [row["scores"] for row in seen["rows"]] == [row["scores"] for row in true["rows"]]
    assert [row["comparison"] for row in seen["rows"]] == [row["comparison"] for row in true["rows"]]
    assert all(
        re.fullmatch(r"team-[a-z2-7]{8}", team) for team in teams(views, PUBLIC) if team != "baselines"
    )
    assert {row["registered"][10:] for row in seen["rows"]} == {"T00:00:00Z"}
    assert [u["outcome"] for u in seen["unranked"]] == ["failed"]
    made_up = {row["team"]: row["submission"] for row in seen["rows"]}
    assert seen["unranked"][0]["team"] in made_up
    # What a note names is named as in the rows.
    assert any(seen["unranked"][0]["submission"] in note for note in seen["notes"])
    assert any(DUE in note for note in seen["notes"])


def test_the_baseline_of_one_table_has_its_name_on_all(tmp_path: Path) -> None:
    second = {**TABLES[0], "id": "second", "baseline": "quagga/quagga-soft"}
    views = views_of(tmp_path, tables=[*TABLES, second])
    for audience in (PUBLIC, "team:axolotl"):
        boards = [board(views, audience, "--table", table)["rows"] for table in ("main", "second")]
        main, other = ([(row["team"], row["software"], row["rank"]) for row in rows] for rows in boards)
        assert main == other, "the same values beside a true and a made-up name tell whose that is"
        assert ("quagga", "quagga-soft", 3) in main


def test_a_round_that_is_frozen_first_of_all_draws_the_key(tmp_path: Path) -> None:
    rounds = [{"id": "first", "at": "2026-02-01 12:00 UTC"}]
    views = views_of(tmp_path, key=None, until="published", rounds=rounds)
    views.command("round", "freeze", "toy", "first", "--anyway")
    shown = teams(views, PUBLIC, "--round", "first")
    assert len(shown) == 4 and shown == teams(views, PUBLIC) and not {*TEAMS} & {*shown}


def test_a_team_sees_its_own_name_and_others_as_everybody_does(tmp_path: Path) -> None:
    views = views_of(tmp_path)
    ours, everybodys = teams(views, "team:quagga"), teams(views, PUBLIC)
    assert "quagga" in ours and set(ours) - set(everybodys) == {"quagga"}
    assert set(teams(views, "team:zebrafish")) - {"zebrafish"} <= {*everybodys}


def test_the_order_of_equal_rows_follows_the_made_up_names(tmp_path: Path) -> None:
    views = views_of(tmp_path, precision=0)
    shown = [team for team in teams(views, PUBLIC) if team != "baselines"]
    assert shown == sorted(shown)


def test_names_are_the_same_for_good_and_tell_nothing_on_another_task() -> None:
    ours, theirs = Names(KEY), Names(OTHER)
    assert ours.team("quagga") == Names(KEY, shown=("axolotl",)).team("quagga")
    assert ours.team("quagga") != theirs.team("quagga")
    assert len({ours.team(str(n)) for n in range(2000)}) == 2000
    assert ours.software("a", "x") != ours.software("b", "x")
    assert not Names().hides("quagga", "x")


@pytest.mark.slow
def test_names_are_shown_by_an_event_that_the_coordinator_writes_when_it_is_due(tmp_path: Path) -> None:
    views = views_of(tmp_path)
    task = load_task(views.world.config, "toy")

    def due(at: str) -> int:
        views.world.clock.at = datetime.fromisoformat(at)
        with views.home() as store:
            return len(open_names_due(store, [task], views.world.clock))

    assert due(BEFORE) == 0 and "quagga" not in teams(
        views, PUBLIC
    )  # this machine's clock is beyond the date
    assert due(AT) == 1 and "quagga" in teams(views, PUBLIC)
    assert due(AT) == 0  # once
    events = [json.loads(line) for line in views.world.config.events.read_text().splitlines()]
    (opened,) = [event for event in events if event["type"] == "names-opened"]
    assert opened["actor"] == "runner" and opened["data"] == {"task": "toy", "until": DUE}
    before = views.boards(PUBLIC)
    views.command("store", "rebuild")
    assert views.boards(PUBLIC) == before


def test_the_coordinator_draws_the_key_and_shows_what_is_due(tmp_path: Path) -> None:
    views = views_of(tmp_path, key=None)
    assert "E103" in views.command("leaderboard", "toy", "--as", PUBLIC)
    for at, shown in ((BEFORE, False), (AT, True)):
        clock = FixedClock(datetime.fromisoformat(at))
        with coordinating(views.world.config, Silent(), clock=clock) as coordinator:
            coordinator.plan(EvaluationRequest(only_evaluate=True))
        assert ("quagga" in teams(views, PUBLIC)) is shown


def test_names_can_wait_for_the_scores(tmp_path: Path) -> None:
    views = views_of(tmp_path, scores="organiser", until="published")
    assert "E103" in views.command("leaderboard", "toy", "--as", PUBLIC)
    views.command("publish", "toy", "test")
    assert "quagga" in teams(views, PUBLIC)


def test_a_frozen_round_has_made_up_names_until_they_are_shown(tmp_path: Path) -> None:
    views = views_of(tmp_path, until="published", rounds=[{"id": "first", "at": "2026-02-01 12:00 UTC"}])
    live = teams(views, PUBLIC)
    views.command("round", "freeze", "toy", "first", "--anyway")
    assert teams(views, PUBLIC, "--round", "first") == live
    own = board(views, "team:quagga", "--round", "first")
    (row,) = [row for row in own["rows"] if row["team"] == "quagga"]
    assert row["software"] == "quagga-soft" and row["submission"].startswith("quagga.quagga-soft.")
    assert not any(word in json.dumps(own) for team in ("zebrafish", "axolotl") for word in SECRETS[team])
    assert "quagga" in teams(views, "organiser", "--round", "first")
    views.command("publish", "toy", "test")
    assert teams(views, PUBLIC, "--round", "first") == teams(views, "organiser", "--round", "first")
