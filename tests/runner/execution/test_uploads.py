"""Uploaded run files: what a list of files means, and what a bundle says of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.engines.base import Engine
from runner.execution.lock import make_job, uploads_for
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.submissions import bundle as bundles
from runner.submissions import load as submissions
from runner.submissions import pack as packing
from runner.submissions.bundle import registration
from runner.tasks.load import load_task
from tests.worlds.definitions import project, told, write_submission, write_task

SCENARIOS = [{"id": "default"}, {"id": "other"}]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    made = project(tmp_path / "root")
    write_task(made, uploads=True, scenarios=SCENARIOS)
    return made


def handed_in(config: Config, run: Any, software: str = "runs", **keys: Any) -> Path:
    """Write a submission with these run files, and the files."""
    data = {"task": "toy", "run": run, **keys}
    folder = write_submission(config, json.dumps(data), "alpha", software, dockerfile=False)
    for entry in [run] if isinstance(run, str) else run:
        path = folder / (entry if isinstance(entry, str) else entry["file"])
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"dev-1 Q0 d1 1 1 {path.stem[:9]}\n")
    return folder


def found(config: Config, software: str | None = None) -> dict[str, list[tuple[str, str, str]]]:
    """Software -> its files and cells."""
    some, errors = submissions.find_submissions(config, "alpha", software)
    assert not errors, [told(e) for e in errors]
    return {
        s.software: [(r.path.relative_to(s.folder).as_posix(), r.dataset, r.scenario) for r in s.run]
        for s in some
    }


def refused(config: Config, code: str) -> str:
    some, errors = submissions.find_submissions(config, "alpha")
    assert not some and [e.code for e in errors] == [code], [told(e) for e in errors]
    return told(errors[0])


def entry(file: str, dataset: str = "dev", **keys: str) -> dict[str, str]:
    return {"file": file, "dataset": dataset, **keys}


def cell(file: str, dataset: str = "dev", scenario: str = "default") -> tuple[str, str, str]:
    return file, dataset, scenario


BOTH = [entry(f"{d}/{n}.txt", d) for n in ("x", "y") for d in ("dev", "test")]


@pytest.mark.parametrize(
    ("run", "softwares"),
    [
        (
            [entry("a.txt"), entry("b.txt", "test", scenario="other")],
            {"runs": [cell("a.txt"), cell("b.txt", "test", "other")]},
        ),
        (BOTH, {n: [cell(f"{d}/{n}.txt", d) for d in ("dev", "test")] for n in ("x", "y")}),
        (
            [entry("a.txt", name="mine"), entry("b.txt", "test", name="mine"), entry("c.txt")],
            {"mine": [cell("a.txt"), cell("b.txt", "test")], "runs": [cell("c.txt")]},
        ),
    ],
    ids=["a file for each cell", "files of one name in several cells", "names"],
)
def test_files_that_belong_to_one_software(
    config: Config, run: list[dict[str, str]], softwares: dict[str, list[tuple[str, str, str]]]
) -> None:
    handed_in(config, run)
    assert found(config) == softwares
    some, _ = submissions.find_submissions(config)
    by_name = {one.software: one for one in some}
    assert all(by_name[name].tag == name for name in softwares)
    assert all(set(by_name[name].scenarios) == {c[2] for c in cells} for name, cells in softwares.items())


def test_several_files_for_one_cell_are_several_softwares(config: Config) -> None:
    files = ["Dense Run.txt", "sub/bm25.run.txt", "übung.txt.gz", "---.txt", "dense-run.txt"]
    handed_in(config, files, datasets=["dev"])
    names = ["Dense-Run", "bm25.run", "bung", "software-4", "software-5"]
    assert found(config) == {name: [cell(file)] for name, file in zip(names, files, strict=True)}
    assert list(found(config, "bm25.run")) == ["bm25.run"]
    assert len(found(config, "runs")) == 5


def test_more_files_at_the_end_change_no_name(config: Config) -> None:
    files = ["a.txt", "!.txt", "b.txt", "?.txt", "a.run"]
    names = []
    for n in range(2, len(files) + 1):
        handed_in(config, files[:n], f"list-{n}", datasets=["dev"])
        names.append(list(found(config, f"list-{n}")))
    assert names[-1] == ["a", "software-2", "b", "software-4", "software-5"]
    assert all(names[-1][: len(some)] == some for some in names)


@pytest.mark.parametrize(
    ("run", "keys", "code", "expected"),
    [
        ("a.txt", {}, "E207", ["dev, test"]),
        (["a.txt"], {"datasets": ["dev", "test"]}, "E207", ["dev, test"]),
        ([{"file": "a.txt", "dataset": "tset"}], {}, "E207", ['"tset"', '"test"']),
        ([{"file": "a.txt", "dataset": "dev", "scenario": "o"}], {}, "E207", ['"o"', "default, other"]),
        ([{"file": "a.txt", "dataset": "dev", "name": "../x"}], {}, "E201", ['"name"', '"../x"']),
        ([{"file": f"{n}.txt", "dataset": "dev", "name": "x"} for n in "ab"], {}, "E201", ['"x"', "dev", "default"]),
        ([{"file": "a.txt", "data": "dev"}], {}, "E201", ['"data"', '"dataset"']),
        ([{"dataset": "dev"}], {}, "E201", ['"file"']),
        ([3], {}, "E201", ["entry 1", "3"]),
        ("a.txt", {"image": "x"}, "E201", ["image, build, run", "image, run"]),
        ("a.txt", {"datasets": ["nope"]}, "E207", ['"nope"', "dev, test"]),
    ],
)  # fmt: skip
def test_what_is_refused(
    config: Config, run: Any, keys: dict[str, Any], code: str, expected: list[str]
) -> None:
    folder = write_submission(config, json.dumps({"task": "toy", "run": run, **keys}), dockerfile=False)
    for name in ("a.txt", "b.txt"):
        (folder / name).touch()
    said = refused(config, code)
    assert [name for name in expected if name not in said] == []


@pytest.mark.parametrize("name", ["../../../x", "/etc/passwd", "link"])
def test_no_file_from_outside(config: Config, name: str) -> None:
    text = json.dumps({"task": "toy", "run": [{"file": name, "dataset": "dev"}]})
    folder = write_submission(config, text, dockerfile=False)
    (folder / "link").symlink_to("/etc/passwd")
    assert name in refused(config, "E202")


def test_the_only_dataset_and_scenario_need_not_be_named(config: Config) -> None:
    one = {"id": "dev", "visibility": "public"}
    write_task(config, "single", data=False, uploads=True, datasets=[one], scenarios=[{"id": "odd"}],
               tables=[{"id": "m", "cells": [{"dataset": "dev", "scenario": "odd"}], "rank_by": "ap"}])  # fmt: skip
    handed_in(config, "a.txt", task="single")
    assert found(config) == {"runs": [("a.txt", "dev", "odd")]}


def test_two_folders_cannot_give_one_name(config: Config) -> None:
    handed_in(config, ["dense.txt", "b.txt"], datasets=["dev"])
    write_submission(config, "task: toy\nimage: x\n", "alpha", "dense", dockerfile=False)
    some, errors = submissions.find_submissions(config, "alpha")
    assert sorted(s.software for s in some) == ["b", "dense"]
    assert [e.code for e in errors] == ["E201"]
    assert all(name in errors[0].what for name in ("alpha", "dense"))


def test_software_is_still_taken_beside_run_files(config: Config) -> None:
    write_submission(config, "task: toy\nimage: x\ndatasets: [test]\n")
    [one], errors = submissions.find_submissions(config, "alpha")
    assert not errors and one.datasets == ("test",) and one.run == ()


# --- bundles ---------------------------------------------------------------------------------------------


def packed(config: Config, tmp_path: Path, software: str = "runs") -> bundles.Bundle:
    [one], _ = submissions.find_submissions(config, "alpha", software)
    engine: Engine = None  # type: ignore[assignment]  # nothing is built for a run file
    return packing.write(one, None, tmp_path / "bundle", engine=engine, check=None, with_archive=True)


def test_a_bundle_says_what_each_file_is_for(config: Config, tmp_path: Path) -> None:
    entries = [{"file": f"{d}/run.txt", "dataset": d} for d in ("dev", "test")]
    folder = handed_in(config, entries)
    made = packed(config, tmp_path)
    assert [(r["file"], r["dataset"], r["scenario"]) for r in made.data["runs"]] == [
        ("dev.default", "dev", "default"),
        ("test.default", "test", "default"),
    ]
    assert made.cells == [("dev", "default"), ("test", "default")]
    (file,) = uploads_for(made, "test", "default")
    assert file.path == made.folder / "runs/test.default" and file.stored is None
    event = registration(made)
    assert event["workflow"] == "upload" and event["cells"] == [["dev", "default"], ["test", "default"]]
    (folder / "dev/run.txt").write_text("dev-1 Q0 d1 1 2 x\n")
    assert packed(config, tmp_path).submission_id != made.submission_id, "other content is another submission"


def test_a_job_gets_the_file_of_its_cell_and_no_other(config: Config, tmp_path: Path) -> None:
    handed_in(config, [entry("a.txt"), entry("b.txt", "test", scenario="other")])
    made, task = packed(config, tmp_path), load_task(config, "toy")
    job = make_job(made, task, task.datasets["test"], "other", own_profile=True)
    assert (job.workflow, [p.name for p in job.uploads]) == ("upload", ["b.txt"])
    assert job.lock["digests"]["uploads"] == [made.data["runs"][1]["sha256"]]
    with pytest.raises(RunnerError) as caught:
        make_job(made, task, task.datasets["test"], "default", own_profile=True)
    assert caught.value.code == "E207"


def test_a_file_that_was_exchanged_after_packing_is_seen(config: Config, tmp_path: Path) -> None:
    handed_in(config, [{"file": "a.txt", "dataset": "dev"}])
    made = packed(config, tmp_path)
    path = made.folder / "runs/a.txt"
    path.write_text(path.read_text().replace("d1", "d2"))
    manifest = json.loads((made.folder / "manifest.json").read_text())
    manifest["files"]["runs/a.txt"]["sha256"] = bundles.file_sha256(path)
    (made.folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RunnerError) as caught:
        bundles.read_bundle(made.folder)
    assert caught.value.code == "E205" and "runs/a.txt" in told(caught.value)
