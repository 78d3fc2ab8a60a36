"""Registration: hashes, image and quota are checked before anything is kept, and it happens once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runner.model.clock import FixedClock
from runner.model.errors import PlatformError, RunnerError
from runner.model.task import Quota
from runner.records.store.charges import quota
from runner.records.store.connect import open_store, rebuild
from runner.records.store.queries import submissions
from runner.submissions.bundle import Bundle, read_bundle
from runner.submissions.kept import home_of, registered
from runner.submissions.load import load_submission
from runner.submissions.pack import write
from runner.submissions.register import Receipt, register, show_as, withdraw
from tests.runner.execution.test_pool import World, good
from tests.worlds.mini import TASK, Project


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    project.write_task(quota={"submissions": 2, "teams": {"small": 1, "none": 0}})
    made = World(project)
    yield made
    made.close()


def _bundle(world: World, team: str, software: str, *, archive: bool = False, **keys: Any) -> Bundle:
    world.engine.script.setdefault(f"{team}/{software}", good)
    world.project.software(software, team=team, image=f"{team}/{software}", **keys)
    submission = load_submission(world.project.config, team, software)
    image = world.engine.resolve(f"{team}/{software}")
    to = world.project.home / "bundles" / f"{team}.{software}"
    return write(submission, image, to, engine=world.engine, check=None, with_archive=archive)


def _register(world: World, bundle: Bundle) -> Receipt:
    return register(world.project.config, world.store, world.engine, world.tasks, bundle.folder)


def _kept(world: World) -> list[str]:
    return sorted(p.name for p in world.project.config.registered.glob("*"))


def _refused(world: World, bundle: Bundle, code: str) -> RunnerError:
    before, events = _kept(world), len(list(world.store.log))
    with pytest.raises(RunnerError) as caught:
        _register(world, bundle)
    assert caught.value.code == code
    assert _kept(world) == before and len(list(world.store.log)) == events
    return caught.value


def test_it_happens_once(world: World) -> None:
    bundle = _bundle(world, "alpha", "one")
    first = _register(world, bundle)
    assert first.new and first.submission == bundle.submission_id and first.quota.left == 1
    again = _register(world, bundle)
    assert not again.new and again.quota.left == 1
    assert len(submissions(world.store)) == 1
    kept = home_of(world.project.config, first.submission)
    assert read_bundle(kept).digest == bundle.digest
    found, errors = registered(world.project.config, world.store)
    assert list(found) == [first.submission] and not errors
    # Packing it again changes the time and nothing else: still the same submission.
    assert not _register(world, _bundle(world, "alpha", "one")).new


def test_the_quota_holds_at_the_edge(world: World) -> None:
    _refused(world, _bundle(world, "none", "one"), "E206")
    assert _register(world, _bundle(world, "small", "one")).quota.left == 0
    assert "1 " in _refused(world, _bundle(world, "small", "two"), "E206").why
    # The same bundle again is no new one; a withdrawn one that never ran gives its place back.
    assert not _register(world, _bundle(world, "small", "one")).new
    withdraw(world.store, submissions(world.store, team="small")[0].id, "")
    assert _register(world, _bundle(world, "small", "two")).new


def test_a_place_is_given_back_to_one_that_ran_only_when_the_organiser_says_so(world: World) -> None:
    first = _register(world, _bundle(world, "small", "one")).submission
    world.work()
    assert world.outcome(f"{first}.test").name == "scored"
    _refused(world, _bundle(world, "small", "two"), "E206")
    for reason in ("", "  "):
        with pytest.raises(RunnerError, check=lambda error: error.code == "E101"):
            withdraw(world.store, first, reason, uncharged=True)

    # An ordinary withdrawal keeps what was charged: its scores were seen.
    assert withdraw(world.store, first, "mistake")
    _refused(world, _bundle(world, "small", "two"), "E206")
    assert withdraw(world.store, first, "image lost", uncharged=True)
    assert not withdraw(world.store, first, "again", uncharged=True) and not withdraw(world.store, first, "")
    assert _register(world, _bundle(world, "small", "two")).quota.left == 0
    world.work()
    use = quota(world.store, world.tasks["mini"], "small")
    assert (use.used, use.open, use.left) == (1, 0, 0)
    event = [e for e in world.store.log if e.type == "submission-withdrawn"][-1]
    assert event.data == {"submission": first, "reason": "image lost", "uncharged": True}
    before = submissions(world.store)
    rebuild(world.project.config)
    assert submissions(world.store) == before and [s.uncharged for s in before] == [True, False]
    assert quota(world.store, world.tasks["mini"], "small") == use


def test_a_dataset_has_a_quota_of_its_own(world: World) -> None:
    """One a day on ``test``: the second is refused at the edge, with when the next one is free; the day after, taken."""
    now = datetime(2026, 5, 1, 23, 59, 59, tzinfo=UTC)

    def at(bundle: Bundle) -> Receipt:
        where = world.project.config, world.store, world.engine, world.tasks
        return register(*where, bundle.folder, clock=FixedClock(now))

    datasets = [row | {"quota": {"per_day": 1, "failures": 1}} for row in TASK["datasets"]]
    world.project.write_task(quota={"submissions": 9}, datasets=datasets)
    assert world.tasks["mini"].datasets["test"].quota == Quota(submissions=9, per_day=1, failures=1)
    first = at(_bundle(world, "alpha", "one"))
    assert first.quota.left == 8 and first.quotas["test"].left == 0
    second = _bundle(world, "alpha", "two")
    with pytest.raises(RunnerError) as caught:
        at(second)
    assert caught.value.code == "E206" and "mini/test" in caught.value.what
    assert "2026-05-02 00:00 UTC" in caught.value.fix
    now += timedelta(seconds=1)
    assert at(second).new


def test_two_at_once_do_not_both_get_the_last_place(world: World) -> None:
    bundles = [_bundle(world, "small", f"s{n}") for n in range(4)]
    start = threading.Barrier(len(bundles))

    def code_of(bundle: Bundle) -> str:
        with open_store(world.project.config) as store:
            start.wait()
            try:
                register(world.project.config, store, world.engine, world.tasks, bundle.folder)
            except RunnerError as error:
                return error.code
        return ""

    with ThreadPoolExecutor(len(bundles)) as pool:
        assert sorted(pool.map(code_of, bundles)) == ["", "E206", "E206", "E206"]
    assert len(_kept(world)) == 1


def test_what_runs_failed_on_our_side_costs_nothing(world: World) -> None:
    world.engine.script["small/one"] = PlatformError("broken")
    world.hand_in("small", "one", PlatformError("broken"))
    world.work()
    [run] = world.done.values()
    assert run.outcome.name == "held"
    receipt = _register(world, _bundle(world, "small", "one"))
    assert receipt.quota.used == 0


def test_the_image_must_be_there(world: World) -> None:
    bare = _bundle(world, "alpha", "bare")
    carried = _bundle(world, "alpha", "carried", archive=True)
    script = dict(world.engine.script)
    world.engine.script.clear()
    error = _refused(world, bare, "E204")
    assert "--to" in error.fix
    _refused(world, carried, "E204")
    world.engine.script.update(script)
    assert _register(world, carried).new


def test_whose_bundle_it_is(world: World, tmp_path: Path) -> None:
    """A bundle takes the place of the team that it says: the organiser can say whom it is from."""
    bundle = _bundle(world, "alpha", "one", archive=True)
    config = world.project.config

    def refused(folder: Path, team: str | None) -> str:
        with pytest.raises(RunnerError) as caught:
            register(config, world.store, world.engine, world.tasks, folder, team=team)
        return caught.value.code

    assert refused(bundle.folder, "beta") == "E213"
    assert refused(bundle.folder, "../beta") == refused(bundle.folder, "") == "E208"
    assert register(config, world.store, world.engine, world.tasks, bundle.folder, team="alpha").new
    # What is packed here may be one of the organiser's baselines, nothing else.
    here = _bundle(world, "baselines", "one", archive=True)
    away = tmp_path / "away"
    shutil.copytree(here.folder, away)
    assert refused(away, None) == refused(away, "baselines") == "E213"
    assert _register(world, here).new
    # Nothing may have the platform's words for names, or what looks like them, wherever it was packed.
    for name in ("organiser", "public", "ALL", "P1atform", "BaseIines", "con"):
        _rename(away, name)
        assert refused(away, None) == "E208", name


def _rename(folder: Path, team: str) -> None:
    """Give a bundle another team, with hashes that are right."""
    file = folder / "bundle.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"team": team}))
    manifest = json.loads((folder / "manifest.json").read_text())
    content = file.read_bytes()
    manifest["files"]["bundle.json"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_what_the_engine_holds_is_no_answer_to_a_bundle_from_elsewhere(world: World, tmp_path: Path) -> None:
    here = _bundle(world, "alpha", "one")
    away = tmp_path / "away"
    shutil.copytree(here.folder, away)
    with pytest.raises(RunnerError) as caught:
        register(world.project.config, world.store, world.engine, world.tasks, away)
    assert caught.value.code == "E204" and "--to" in caught.value.fix
    assert _register(world, here).new


def test_an_id_is_not_the_whole_digest(world: World) -> None:
    """Whoever finds another bundle whose digest begins alike cannot put another image in its place."""
    bundle = _bundle(world, "alpha", "one")
    assert _register(world, bundle).new
    kept = home_of(world.project.config, bundle.submission_id) / "bundle.json"
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"description": "another one"}))
    _refused(world, bundle, "E205")


def test_it_must_fit_a_task(world: World) -> None:
    bundle = _bundle(world, "alpha", "one")
    with pytest.raises(RunnerError, check=lambda error: error.code == "E102"):
        register(world.project.config, world.store, world.engine, {}, bundle.folder)
    cells = [{"dataset": "test", "scenario": "other"}]
    tables = [{"id": "main", "cells": cells, "rank_by": "p_10"}]
    world.project.write_task(scenarios=[{"id": "other"}], tables=tables)
    _refused(world, bundle, "E207")


def test_a_failure_in_the_middle_leaves_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    bundle = _bundle(world, "alpha", "one")
    monkeypatch.setattr(shutil, "copytree", fails)
    with pytest.raises(RunnerError, check=lambda error: error.code == "E306"):
        _register(world, bundle)
    monkeypatch.undo()
    assert _kept(world) == [] and submissions(world.store) == []
    assert _register(world, bundle).new


def test_killed_before_it_was_recorded(world: World) -> None:
    """A copy without an event is no registration; the next one replaces it."""
    bundle = _bundle(world, "alpha", "one")
    left = home_of(world.project.config, bundle.submission_id)
    left.mkdir(parents=True)
    (left / "junk").write_text("x")
    assert submissions(world.store) == []
    assert _register(world, bundle).new
    assert not (left / "junk").exists()


def test_a_kept_bundle_that_was_damaged_is_named_and_skipped(world: World) -> None:
    a, b = (_register(world, _bundle(world, "alpha", n)).submission for n in ("a", "b"))
    path = home_of(world.project.config, a) / "bundle.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "command": ["other"]}))
    found, errors = registered(world.project.config, world.store)
    assert list(found) == [b] and [e.code for e in errors] == ["E307"]
    path.unlink()
    os.mkfifo(path)
    found, errors = registered(world.project.config, world.store)
    assert list(found) == [b] and [e.code for e in errors] == ["E205"]


def test_what_could_not_be_evaluated_is_refused_and_costs_nothing(world: World) -> None:
    """Its only dataset lacks a file of the organiser's; once that is here, the same bundle is taken."""

    bundle = _bundle(world, "small", "one")
    dev, test = TASK["datasets"]
    datasets = [dev, test | {"sources": [{"path": "inputs/more.txt"}]}]
    world.project.write_task(quota={"submissions": 1}, datasets=datasets)
    error = _refused(world, bundle, "E402")
    assert "inputs/more.txt" in error.why and "data import" in error.fix
    (world.tasks["mini"].datasets["test"].inputs / "more.txt").write_text("x")
    assert _register(world, bundle).quota.left == 0


def test_names_as_teams_have_them_and_those_that_look_like_them(world: World) -> None:
    first = _register(world, _bundle(world, "TeamA_v2.1", "webis_run-1.0"))
    assert first.submission.startswith("teama_v2_1.webis_run-1_0.")
    assert (first.team, first.software) == ("TeamA_v2.1", "webis_run-1.0")
    assert _refused(world, _bundle(world, "teama_v2.1", "two"), "E215").why.count('"TeamA_v2.1"') == 1
    assert '"webis_run-1.0"' in _refused(world, _bundle(world, "TeamA_v2.1", "Webis-run_1.0"), "E215").why
    # A software's name is its team's: another team may have the like.
    assert _register(world, _bundle(world, "other", "webis-run-1.0")).new
    world.work()
    assert world.outcome(f"{first.submission}.test").name == "scored"
    assert _register(world, _bundle(world, "TeamA_v2.1", "webis_run-1.0")).new is False


@pytest.mark.parametrize("archive", [False, True])
def test_an_image_that_is_too_large_is_refused_for_no_quota(world: World, archive: bool) -> None:
    world.project.write_task(limits={"image": "2MB"}, quota={"submissions": 1})
    bundle = _bundle(world, "alpha", "large", archive=archive)
    world.engine.bytes["alpha/large"] = 2_000_001
    told = _refused(world, bundle, "E216")
    assert "1.91 MiB" in told.why
    world.engine.bytes["alpha/large"] = 2_000_000
    assert _register(world, bundle).quota.left == 0


@pytest.mark.parametrize("archive", [False, True])
def test_an_image_for_other_processors_is_refused_for_no_quota(world: World, archive: bool) -> None:
    world.project.write_task(quota={"submissions": 1})
    bundle = _bundle(world, "alpha", "one", archive=archive)
    for theirs in ("linux/arm64/v8", "windows/amd64", "linux/\x1b[2J"):
        world.engine.platforms["alpha/one"] = theirs
        told = _refused(world, bundle, "E217")
        assert "linux/amd64" in told.why and "--platform linux/amd64" in told.fix and "\x1b" not in told.why
    world.engine.platforms["alpha/one"] = "linux/amd64/v3"
    assert _register(world, bundle).quota.left == 0


def test_an_archive_that_is_too_large_is_not_loaded(world: World) -> None:
    world.project.write_task(limits={"image": 1})
    bundle = _bundle(world, "alpha", "large", archive=True)
    _refused(world, bundle, "E216")
    assert "load" not in world.engine.calls


def test_display_names_are_recorded_and_those_of_others_refused(world: World) -> None:
    shown = "Grünfeld & Söhne <b>"
    bundle = _bundle(world, "alpha", "one", display_name="BM25 ★", team_display_name=shown)
    first = _register(world, bundle)
    [entry] = submissions(world.store)
    assert (entry.display_name, entry.team_display_name) == ("BM25 ★", shown)
    event = next(e for e in world.store.log if e.type == "submission-registered")
    assert (event.data["display_name"], event.data["team_display_name"]) == ("BM25 ★", shown)
    for text in ("GRÜNFELD & söhne <B>", "Alpha"):
        assert "alpha" in _refused(world, _bundle(world, "beta", "x", team_display_name=text), "E215").why
    # A new team's name is what is shown of it.
    assert _register(world, _bundle(world, "delta", "x", team_display_name="Omega")).new
    assert "delta" in _refused(world, _bundle(world, "omega", "x"), "E215").why
    # A bundle that was made by hand is not believed.
    file = bundle.folder / "bundle.json"
    for text, code in (("a\u202eb", "E205"), ("a\u200bb", "E208")):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"team_display_name": text}))
        _rename(bundle.folder, "gamma")
        assert _refused(world, read_bundle(bundle.folder) if code == "E208" else bundle, code)
    # The organiser may give another one, for nothing.
    show_as(world.project.config, world.store, "alpha", None, "Webis")
    show_as(world.project.config, world.store, "alpha", "one", "")
    entry = next(found for found in submissions(world.store) if found.id == first.submission)
    assert (entry.display_name, entry.team_display_name) == ("", "Webis")
    for team, software, text in (("alhpa", None, "x"), ("alpha", "two", "x"), ("alpha", None, "a\nb")):
        with pytest.raises(RunnerError) as caught:
            show_as(world.project.config, world.store, team, software, text)
        assert caught.value.code == ("E102" if text == "x" else "E208")
