"""Approving, flagging and commenting runs: who sees what of it, at every door, with words that stand for themselves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from runner.api import open_home
from runner.records.store import connect
from tests.worlds import records
from tests.worlds.commands import At

FORMATS = ("table", "json", "csv", "markdown", "latex", "html", "jsonl")
OF_ALPHA, OF_BETA = "0.4242", "0.7373"  # their means
FLAG, NOTE, HELLO = "canary-flag", "canary-note", "canary-hello"
OTHERS = ("team:alpha", "team:beta", "team:gamma", "public")


def project(root: Path, review: str | None) -> At:
    records.write_project(root)
    if review is not None:
        path = root / "tasks/toy/task.yaml"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"review": review}))
    world = records.World.make(root)
    for team, mean in (("alpha", 0.4242), ("beta", 0.7373)):
        world.scored(team, "x", scores={"1": mean - 0.1, "2": mean + 0.1})
    return At(root, world)


@pytest.fixture
def at(tmp_path: Path) -> At:
    return project(tmp_path, "required")


def boards(at: At, audience: str) -> str:
    """The leaderboard at every door."""
    words = [at.run("leaderboard", "toy", "--format", form, "--as", audience).text for form in FORMATS]
    frame = open_home(at.world.config.home, audience, root=at.root).leaderboard("toy")
    return "\n".join([*words, frame.to_csv(), json.dumps(frame.attrs)])


def notes(at: At, audience: str) -> list[str]:
    """Return the notes below the leaderboard."""
    found: list[str] = json.loads(at.run("leaderboard", "toy", "--json", "--as", audience).out)["notes"]
    return found


def of_a_run(at: At, run: str, audience: str) -> str:
    """Everything that is shown of a run and of the list of runs."""
    page = at.root / "page.html"
    page.unlink(missing_ok=True)
    words = [
        ["show", run],
        ["show", run, "--json"],
        ["show", run, "--html", str(page)],
        ["runs"],
        ["runs", "--json"],
    ]
    texts = [at.run(*one, "--as", audience).text for one in words]
    return "\n".join(texts + ([page.read_text()] if page.exists() else []))


@pytest.mark.slow
def test_nobody_else_sees_a_row_before_it_is_approved(at: At) -> None:
    for audience in OTHERS:
        said = boards(at, audience)
        assert OF_ALPHA not in said and OF_BETA not in said and "beta.x" not in said and "alpha.x" not in said
        assert notes(at, audience) and not any("/x" in note for note in notes(at, audience))
    ours = boards(at, "organiser")
    assert OF_ALPHA in ours and OF_BETA in ours
    assert ["beta/x", "alpha/x"] in [re.findall("[a-z]+/x", note) for note in notes(at, "organiser")]
    assert "approved" in at.run("review", at.run_of("alpha"), "--approve").err
    for audience in OTHERS:
        said = boards(at, audience)
        assert OF_ALPHA in said and OF_BETA not in said and "beta.x" not in said
    (row,) = json.loads(at.run("leaderboard", "toy", "--json", "--as", "public").out)["rows"]
    assert row["rank"] == 1 and "flagged" not in row
    assert ["beta/x"] in [re.findall("[a-z]+/x", note) for note in notes(at, "organiser")]


@pytest.mark.slow
def test_an_approval_is_of_an_attempt_and_can_be_taken_back(at: At) -> None:
    run = at.run_of("alpha")
    at.run("review", run, "--approve")
    assert "already" in at.run("review", run, "--approve").err
    assert OF_ALPHA in boards(at, "public")
    at.run("review", run, "--undo")
    assert OF_ALPHA not in boards(at, "public")
    at.run("review", run, "--approve")
    at.world.store.catch_up()
    again = at.world.attempt(at.submission("alpha"))
    at.world.evaluation(again, {"ndcg": {"1": 0.1, "2": 0.2}, "rr": {"1": 0.1, "2": 0.2}})
    assert "alpha.x" not in boards(at, "public")
    kinds = [json.loads(at.run("events", "--kind", "run-reviewed", "--json").out)]
    assert [one["data"]["state"] for one in kinds[0]] == ["approved", "open", "approved"]


@pytest.mark.slow
def test_an_older_approved_submission_stands_until_the_newer_one_is_approved(at: At) -> None:
    at.run("review", at.run_of("alpha"), "--approve")
    at.world.store.catch_up()
    at.world.scored("alpha", "x", version=2, scores={"1": 0.91, "2": 0.93})
    assert OF_ALPHA in boards(at, "public") and "0.92" not in boards(at, "public")
    assert "0.92" in boards(at, "organiser")
    at.run("review", at.run_of("alpha"), "--approve")
    assert OF_ALPHA not in boards(at, "public") and "0.92" in boards(at, "public")


@pytest.mark.slow
def test_without_the_rule_rows_need_no_approval_and_a_flag_is_a_mark_for_the_organiser(
    tmp_path: Path,
) -> None:
    at = project(tmp_path, None)
    before = {audience: boards(at, audience) for audience in OTHERS}
    assert OF_ALPHA in before["public"] and "approved" not in before["public"]
    at.run("review", at.run_of("alpha"), "--flag", FLAG)
    assert {audience: boards(at, audience) for audience in OTHERS} == before
    ours = boards(at, "organiser")
    assert "alpha/x (flagged)" in ours and f"alpha/x ({FLAG})" in ours
    row = json.loads(at.run("leaderboard", "toy", "--json").out)["rows"][1]
    assert (row["team"], row["flagged"]) == ("alpha", True)


@pytest.mark.slow
@pytest.mark.parametrize("to", ["organiser", "team"])
def test_flags_and_comments_are_read_by_whom_they_are_for(at: At, to: str) -> None:
    run = at.run_of("alpha")
    at.run("--actor", "canary-anna", "review", run, "--flag", FLAG, "--to", to)
    at.run("review", run, "--comment", NOTE)
    at.run("--actor", "canary-bert", "review", run, "--comment", f"{HELLO}\x1b[31m", "--to", "team")
    ours = of_a_run(at, run, "organiser")
    assert FLAG in ours and NOTE in ours and HELLO in ours and "canary-bert" in ours
    assert "(organisers only)" in ours and "(flagged)" in ours
    team = of_a_run(at, run, "team:alpha")
    assert HELLO in team and (FLAG in team) == (to == "team") == ("flagged" in team)
    for audience in OTHERS:
        said = of_a_run(at, run, audience) + boards(at, audience)
        assert NOTE not in said and "canary-anna" not in said and "canary-bert" not in said
        assert "\x1b" not in said
        if audience != "team:alpha":
            assert FLAG not in said and HELLO not in said and "flagged" not in said


def test_the_team_sees_that_its_run_is_approved(at: At) -> None:
    at.run("review", at.run_of("alpha"), "--approve", "--comment", HELLO, "--to", "team")
    said = at.run("show", at.run_of("alpha"), "--as", "team:alpha").out
    assert "review:" in said and "approved" in said and f"UTC organiser: {HELLO}" in said


def test_what_is_not_clear_or_not_there_is_refused_and_no_event(at: At) -> None:
    run = at.run_of("alpha")
    at.world.register("gamma", "z")
    before = at.world.config.events.read_bytes()
    for words, code in (
        ((run,), "E101"),
        ((run, "--approve", "--undo"), "E101"),
        ((run, "--approve", "--flag", "x"), "E101"),
        ((run, "--flag", " "), "E101"),
        ((run, "--comment", "x" * 2001), "E101"),
        ((run, "--comment", "x", "--to", "public"), "E101"),
        (("nobody", "--approve"), "E102"),
        (("gamma", "--approve"), "E102"),
        (("gamma", "--comment", "x"), "E102"),
    ):
        assert at.run("review", *words).error.code == code, words
    assert at.world.config.events.read_bytes() == before


@pytest.mark.slow
def test_a_rebuilt_store_has_the_same_reviews_and_comments(at: At) -> None:
    run = at.run_of("alpha")
    at.run("review", run, "--approve", "--comment", HELLO, "--to", "team")
    at.run("review", at.run_of("beta"), "--flag", FLAG)
    before = [of_a_run(at, run, audience) + boards(at, audience) for audience in ("organiser", *OTHERS)]
    at.world.store.close()
    connect.rebuild(at.world.config)
    after = [of_a_run(at, run, audience) + boards(at, audience) for audience in ("organiser", *OTHERS)]
    assert after == before


def test_a_median_of_other_teams_holds_no_run_that_is_not_approved(at: At) -> None:
    for n in range(6):
        at.world.scored(f"team{n}", "x", datasets=("dev",), scores={"1": n / 10, "2": n / 10})
    at.world.scored("delta", "x", datasets=("dev",), scores={"1": 0.3, "2": 0.4})

    def medians() -> object:
        said = at.run("show", at.run_of("delta", "dev"), "--json", "--as", "team:delta").out
        return json.loads(said)["topic_medians"]

    assert medians() is None
    for n in range(5):
        at.run("review", at.run_of(f"team{n}", "dev"), "--approve")
    assert json.dumps(medians()).count("0.2") == 2


def test_a_round_waits_for_the_review_and_takes_what_was_approved(at: At) -> None:
    path = at.root / "tasks/toy/task.yaml"
    rounds = [{"id": "first", "at": "2026-02-01 12:00 UTC", "datasets": ["test"]}]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rounds": rounds}))
    refused = at.run("round", "freeze", "toy", "first").error
    assert refused.code == "E211" and len(refused.problems) == 2
    assert f"runner review {at.run_of('alpha')} --approve" in refused.problems[0].what
    at.run("review", at.run_of("alpha"), "--approve")
    at.run("review", at.run_of("beta"), "--flag", FLAG)
    assert at.run("round", "freeze", "toy", "first").failed is None
    for audience in ("organiser", "public"):
        said = at.run("leaderboard", "toy", "--round", "first", "--json", "--as", audience).out
        assert OF_ALPHA in said and "beta" not in said and FLAG not in said
