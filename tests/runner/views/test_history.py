"""The event log in plain words, and the person in it, through the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.model.errors import RunnerError
from runner.records.events import TYPES, Event
from runner.records.store import connect
from runner.views.audience import PUBLIC
from runner.views.history import told
from runner.views.leaderboard.export import FORMATS, export
from runner.views.leaderboard.table import build
from tests.worlds import records
from tests.worlds.commands import At

HOSTILE = "ev\x1b[31mil\nrow\u202e"


@pytest.fixture
def at(tmp_path: Path) -> At:
    """A project with a run of each of two teams, and what its commands print."""
    records.write_project(tmp_path)
    world = records.World.make(tmp_path)
    world.scored("alpha", "x", tag="of-alpha")
    world.scored("beta", "y")
    return At(tmp_path, world)


def test_events_name_the_person_and_say_in_words_what_was_done(
    at: At, golden: Callable[[str, str], None]
) -> None:
    at.run("--actor", "anna", "publish", "toy", "test")
    at.run("release", f"{at.run_of('alpha')}", "--reason", HOSTILE, env={"RUNNER_ACTOR": "bert"})
    at.run("name", "beta", "The Betas")
    answer = at.run("events")
    user = json.loads(at.run("events", "--json").out)[-1]["who"].split()[0]
    texts = re.sub("(?<=head )[0-9a-f]+", "HEAD", f"{answer.out}\n{answer.err}")
    texts = re.sub(r"20[0-9-]+ [0-9:]{5}", "DATE", texts)
    golden("history.txt", re.sub(r"\S+ (?=\(system user\))", "USER ", re.sub(" +", " ", texts)))
    lines = answer.out.splitlines()
    assert len(lines) == 1 + 6 + 3 and "\x1b" not in answer.out and "\u202e" not in answer.out
    assert [name in line for name, line in zip(("anna", "bert", user), lines[-3:], strict=True)] == [True] * 3


def test_events_are_chosen_by_task_team_kind_day_and_person(at: At) -> None:
    at.run("--actor", "anna", "publish", "toy", "test")
    at.run("--actor", "bert", "withdraw", at.submission("alpha"), "--reason", "wrong image")
    at.run("name", "beta", "The Betas")

    def seqs(*words: str) -> list[int]:
        return [one["seq"] for one in json.loads(at.run("events", "--json", *words).out)]

    everything = seqs()
    assert everything == list(range(1, 10))
    assert seqs("toy") == everything[:-1] and seqs("--team", "alpha") == [1, 2, 3, 8]
    assert seqs("--team", "beta") == [4, 5, 6, 9] and seqs("toy", "--team", "beta") == [4, 5, 6]
    assert seqs("--kind", "dataset-published") == [7]
    assert seqs("--actor", "anna") == [7] and seqs("--actor", "organiser") == everything[:6]
    for moment in ("2026-01-05 15:00 UTC", "2026-01-05 16:00 CET"):
        assert seqs("--since", moment) == everything[2:]
    assert seqs("--since", "2026-01-05") == everything and seqs("--since", "2026-01-06") == everything[6:]
    assert at.run("events", "--team", "gamma").out == ""
    for words, code in (
        (("--kind", "no-kind"), "E101"),
        (("--since", "soon"), "E101"),
        (("--since", "2026-02-30"), "E101"),
        (("other-task",), "E102"),
    ):
        assert at.run("events", *words).error.code == code


def test_a_log_that_was_changed_is_not_listed(at: At) -> None:
    path = at.world.config.events
    path.write_bytes(path.read_bytes().replace(b"of-alpha", b"of-gamma"))
    told_ = at.run("events")
    assert told_.out == "" and told_.error.code == "E307"


def test_a_name_that_is_none_stops_the_command_before_anything_is_written(at: At) -> None:
    before = at.world.config.events.read_bytes()
    for words in (("--actor", "an na"), ("--actor", "runner")):
        assert at.run(*words, "publish", "toy", "test").error.code == "E101"
    assert at.world.config.events.read_bytes() == before


def test_every_type_has_words_of_its_own_and_hostile_data_stay_on_a_line() -> None:
    class Anything(dict[str, Any]):
        """Data in which every field is hostile."""

        def get(self, key: str, default: object = None) -> Any:
            return HOSTILE

        def __getitem__(self, key: str) -> Any:
            return HOSTILE

    for type in TYPES:
        (bare,) = told([Event(1, "2026-01-05T12:00:00Z", type, "organiser", {}, "", "")])
        (full,) = told([Event(1, "2026-01-05T12:00:00Z", type, HOSTILE, Anything(), "", "")])
        assert bare.says != type and full.says and full.says.isprintable() and full.who.isprintable()


def test_a_rebuilt_store_gives_the_same_exports_with_old_and_new_events(at: At) -> None:
    at.run("--actor", "anna", "publish", "toy", "test")
    at.run("name", "beta", "The Betas")
    at.world.store.catch_up()

    def exports() -> dict[str, str]:
        with connect.open_store(at.world.config) as store:
            return {form: export(build(store, records.task(), None, PUBLIC), form) for form in FORMATS}

    before = exports()
    at.world.store.close()
    connect.rebuild(at.world.config)
    assert exports() == before and "The Betas" in before["csv"]


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(RunnerError) as caught:
        told([], kind="x")
    assert caught.value.code == "E101"
