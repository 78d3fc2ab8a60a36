"""What the data directory takes for the run files that were handed in, and where their bytes are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import volume
from runner.engines.fake import FakeEngine
from runner.execution.coordinator import EvaluationRequest
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.records.backup import backup, restore
from runner.records.contents import Content
from runner.records.integrity import needed
from runner.records.store.connect import open_store, rebuild
from runner.records.store.queries import runs
from runner.records.store.run_detail import detail
from runner.records.store.verify import verify
from runner.submissions.bundle import read_bundle, registration
from runner.submissions.kept import home_of
from runner.submissions.load import load_submission
from runner.submissions.pack import write
from runner.submissions.register import register
from runner.tasks.load import load_tasks
from runner.views.audience import ORGANISER
from runner.views.export import export_run
from runner.views.redact import redact_run
from schemas.files import file_sha256

RUNS = 4


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    made = FakeEngine({volume.EVALUATOR: volume.evaluator})
    yield made
    made.close()


@pytest.fixture
def config(tmp_path: Path) -> Config:
    root = tmp_path / "project"
    volume.write_project(root, RUNS, packed=False)
    return Config(root=root, home=root / ".runner", truths=None)


def exported(config: Config, target: Path) -> dict[str, bytes]:
    """The run files as ``runner export`` writes them, by submission."""
    tasks, _ = load_tasks(config)
    found = {}
    with open_store(config) as store:
        for run in runs(store, tasks.values()):
            whole = detail(store, run.id, tasks.values())
            view = redact_run(whole, ORGANISER, tasks["volume"].datasets["test"])
            export_run(whole, view, target / run.id)
            found[run.submission.software] = (target / run.id / "output" / "run.txt").read_bytes()
            names = {str(p.relative_to(target / run.id)) for p in (target / run.id).rglob("*") if p.is_file()}
            assert {"run.json", "manifest.json", "evaluation/scores.jsonl", "evaluation/result.json"} <= names
    return found


def given(config: Config) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in config.submissions.glob("*/*/run.txt")}


def test_the_whole_data_directory_is_at_most_a_tenth_larger_than_what_was_handed_in() -> None:
    for packed, bar in ((False, 0.6), (True, volume.BAR)):
        found = volume.measure(RUNS, packed=packed)
        # A few runs pay for the first pages of the database alone: those are not theirs.
        size = found["size"] - found["parts"]["store.sqlite"][0]
        assert size <= bar * found["given"], found


def test_bytes_are_stored_once(config: Config, engine: FakeEngine, tmp_path: Path) -> None:
    volume.hand_in(config, engine)
    with open_store(config) as store:
        registered = set(store.archive.contents.contents())
    assert len(registered) == RUNS and not list(config.registered.glob("*/bundle/runs/*"))
    assert volume.work(config, engine) == RUNS
    with open_store(config) as store:
        assert registered < set(store.archive.contents.contents())
        users = needed(store.archive, config.registered)
    # Each is named twice, by the submission and by the attempt, and kept once.
    assert sorted(len(u) for u in users.values() if "output/run.txt" in " ".join(u)) == [2] * RUNS
    assert verify(config).problems == ()
    assert exported(config, tmp_path / "one") == given(config)
    # Evaluated and described again from what is kept alone.
    shutil.rmtree(config.submissions)
    config.submissions.mkdir()
    backup(config, tmp_path / "backup.tar.gz", lambda _: False)
    fresh = replace(config, home=tmp_path / "fresh")
    restore(tmp_path / "backup.tar.gz", fresh.home)
    rebuild(fresh)
    assert verify(fresh).problems == ()
    assert exported(fresh, tmp_path / "two") == exported(config, tmp_path / "three")


def test_a_backup_takes_nothing_that_is_only_being_written(config: Config, tmp_path: Path) -> None:
    """Such a file may be gone before it is read."""
    with open_store(config) as store:
        store.commit("quota-extended", {"task": "volume", "team": "team1", "submissions": 1}, actor="me")
        store.archive.tmp.mkdir(parents=True, exist_ok=True)
    (config.archive / ".tmp" / "vanishing").symlink_to("/nowhere")
    (config.registered / ".new-vanishing").mkdir(parents=True)
    backup(config, tmp_path / "backup.tar.gz", lambda _: False)
    fresh = tmp_path / "fresh"
    restore(tmp_path / "backup.tar.gz", fresh)
    assert not (fresh / "archive" / ".tmp").exists() and not list((fresh / "submissions").iterdir())


def test_older_bundles_are_read_in_place(config: Config, engine: FakeEngine, tmp_path: Path) -> None:
    """Its run files lie in it; they are evaluated, and nothing is wrong."""
    with open_store(config) as store:
        for path in config.submissions.glob("*/*"):
            submission = load_submission(config, path.parent.name, path.name)
            place = tmp_path / path.name
            packed = write(submission, None, place, engine=engine, check=None, with_archive=False)
            shutil.copytree(packed.folder, home_of(config, packed.submission_id))
            store.commit("submission-registered", registration(packed), actor="organiser")
    assert verify(config).problems == ()
    assert volume.work(config, engine) == RUNS
    assert len(list(config.registered.glob("*/bundle/runs/run.txt"))) == RUNS
    assert verify(config).problems == ()
    assert exported(config, tmp_path / "out") == given(config)


def test_digests_give_no_access_to_runs(config: Config, engine: FakeEngine, tmp_path: Path) -> None:
    """A manifest that says "stored" of a file which is not there says nothing to those who take bundles in."""
    volume.hand_in(config, engine)
    first, second = (load_submission(config, f"team{n}", f"run{n}") for n in (0, 1))
    theirs = write(first, None, tmp_path / "theirs", engine=engine, check=None, with_archive=False)
    bundle = write(second, None, tmp_path / "mine", engine=engine, check=None, with_archive=False)
    data, manifest = (json.loads((bundle.folder / n).read_text()) for n in ("bundle.json", "manifest.json"))
    data |= {"runs": theirs.data["runs"], "software": "stolen"}
    wanted = json.loads((theirs.folder / "manifest.json").read_text())["files"]["runs/run.txt"]
    (bundle.folder / "runs" / "run.txt").unlink()
    (bundle.folder / "bundle.json").write_text(json.dumps(data))
    path = bundle.folder / "bundle.json"
    manifest["files"] |= {
        "runs/run.txt": {**wanted, "stored": True},
        "bundle.json": {"sha256": file_sha256(path), "size": path.stat().st_size},
    }
    (bundle.folder / "manifest.json").write_text(json.dumps(manifest))
    tasks, _ = load_tasks(config)
    with open_store(config) as store, pytest.raises(RunnerError) as caught:
        register(config, store, engine, tasks, bundle.folder)
    assert caught.value.code == "E205" and "runs/run.txt" in str(caught.value.problems)
    with pytest.raises(RunnerError):
        read_bundle(bundle.folder)


def damage(config: Config) -> tuple[Content, list[str]]:
    """Cut the end of a run file off; returns what it was and what needs it."""
    with open_store(config) as store:
        users = needed(store.archive, config.registered)
        content, names = next(pair for pair in users.items() if "run.txt" in " ".join(pair[1]))
        path = store.archive.contents.find(content.sha256)
        assert path is not None
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:-10])
        return content, names


def test_a_damaged_content_stops_its_own_run_only(config: Config, engine: FakeEngine) -> None:
    volume.hand_in(config, engine)
    content, names = damage(config)
    (problem,) = verify(config).problems
    assert content.sha256 in problem.where and names[0] in problem.what
    assert volume.work(config, engine) == RUNS - 1


def test_a_damaged_content_is_not_evaluated_again(config: Config, engine: FakeEngine) -> None:
    """It says nothing about run or evaluator: nothing is sealed, and the run keeps its scores."""
    volume.hand_in(config, engine)
    volume.work(config, engine)
    damage(config)
    assert volume.work(config, engine, EvaluationRequest(only_evaluate=True)) == RUNS
    with open_store(config) as store:
        attempts = [a for _, run in store.archive.runs() for a in store.archive.attempts("volume", run)]
        numbers = [len(attempt.evaluations()) for attempt in attempts]
    assert sorted(numbers) == [1] + [2] * (RUNS - 1)
