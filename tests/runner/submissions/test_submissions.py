"""Loading submissions: what is read, what is refused, and that paths never leave the folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.submissions import load as submissions
from runner.submissions.definition import Build, Upload
from tests.worlds.definitions import project, told, write_submission, write_task


@pytest.fixture
def config(tmp_path: Path) -> Config:
    config = project(tmp_path / "root")
    write_task(config, data=False)
    return config


def refused(config: Config, code: str, team: str = "alpha", software: str = "one") -> str:
    with pytest.raises(RunnerError) as caught:
        submissions.load_submission(config, team, software)
    assert caught.value.code == code, told(caught.value)
    return told(caught.value)


def test_a_build(config: Config) -> None:
    folder = write_submission(config, "task: toy\nbuild: {args: {A: b}}\n")
    found = submissions.load_submission(config, "alpha", "one")
    assert found.build == Build(folder, "Dockerfile", False, {"A": "b"})
    assert (found.image, found.run, found.command) == (None, (), None)
    assert (found.tag, found.scenarios) == ("one", ("default",))


def test_an_image_with_a_command(config: Config) -> None:
    keys = "image: org/x:1\ncommand: [/run, '$inputDataset']\ntag: T.1\nmethod: manual\n"
    write_submission(config, f"task: toy\n{keys}")
    found = submissions.load_submission(config, "alpha", "one")
    assert (found.image, found.command) == ("org/x:1", ("/run", "$inputDataset"))
    assert (found.tag, found.method) == ("T.1", "manual")


def test_run_files(config: Config) -> None:
    write_task(config, "uploads", data=False, workflow="upload")
    text = "task: uploads\nrun: [{file: a.txt, dataset: dev}, {file: sub/b.txt, dataset: test}]\n"
    folder = write_submission(config, text)
    (folder / "sub").mkdir()
    (folder / "a.txt").touch()
    (folder / "sub/b.txt").touch()
    assert submissions.load_submission(config, "alpha", "one").run == (
        Upload(folder / "a.txt", "dev", "default"),
        Upload(folder / "sub/b.txt", "test", "default"),
    )


REFUSED = [
    ("task: toy\n", "E201"),
    ("task: toy\nimage: -x\n", "E201"),
    ("task: toy\nimage: x\nimage: y\n", "E201"),
    ("task: toy\nimage: x\ncommand: [rm, 1]\n", "E201"),
    ("task: tyo\nimage: x\n", "E207"),
    ("task: toy\nimage: x\nscenarios: [other]\n", "E207"),
    ("task: toy\nrun: submission.yaml\n", "E207"),
    ("task: toy\nbuild: {context: ..}\n", "E202"),
    ("task: toy\nbuild: {context: sub}\n", "E201"),
    ("task: toy\nbuild: {dockerfile: ../Dockerfile}\n", "E202"),
    ("task: toy\nbuild: {dockerfile: none}\n", "E201"),
    ("task: toy\nbuild: {shared: [none/x]}\n", "E201"),
    ("task: toy\nbuild: {shared: [../beta/x]}\n", "E202"),
    ("task: toy\nbuild: {shared: [one/Dockerfile]}\n", "E201"),
    ("task: toy\nrun: ../../../x\n", "E202"),
    ("task: toy\nrun: /etc/passwd\n", "E202"),
    ("task: toy\nbuild: {context: /}\n", "E202"),
    ("task: toy\nrun: missing\n", "E201"),
    ('task: toy\nimage: x\ndisplay_name: "a\\u202Eb"\n', "E201"),
    ('task: toy\nimage: x\nteam_display_name: "a\\u200Bb"\n', "E201"),
    ("task: toy\nrun: .\n", "E201"),
    ("not yaml: : :\n", "E201"),
    ("", "E201"),
]


def test_what_is_refused(config: Config, golden: Callable[[str, str], None]) -> None:
    path, shown = write_submission(config, "") / "submission.yaml", ""
    for text, code in REFUSED:
        path.write_text(text)
        found = refused(config, code)
        assert "submissions/alpha/one/submission.yaml" in found
        shown += f"{text.rstrip()}\n{found}\n\n"
    golden("submission-refusals.txt", shown)


def test_all_problems_come_at_once(config: Config) -> None:
    write_submission(config, "task: tyo\nrun: ../x\ntag: a b\nmethd: manual\n")
    found = refused(config, "E202")
    lines = [line.split(":")[1] for line in found.splitlines() if line.startswith("submissions/")]
    assert lines == ["1", "2", "3", "4"]


def test_links_that_leave_the_folder_are_refused_and_not_read(config: Config, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "Dockerfile").write_text("FROM hush-hush\n")
    folder = write_submission(config, "task: toy\nbuild: {context: away}\n")
    (folder / "away").symlink_to(secret)
    assert "hush" not in refused(config, "E202")
    (folder / "submission.yaml").write_text("task: toy\nbuild: {dockerfile: away/Dockerfile}\n")
    assert "hush" not in refused(config, "E202")
    (folder / "submission.yaml").write_text("task: toy\nbuild: {shared: [one/away/Dockerfile]}\n")
    assert "hush" not in refused(config, "E202")
    (folder / "run.txt").symlink_to(secret / "Dockerfile")
    (folder / "submission.yaml").write_text("task: toy\nrun: run.txt\n")
    refused(config, "E202")
    (folder / "submission.yaml").unlink()
    (folder / "submission.yaml").symlink_to(secret / "Dockerfile")
    assert "hush" not in refused(config, "E202")


def test_a_team_s_folder_that_is_a_link_to_elsewhere_is_refused(config: Config, tmp_path: Path) -> None:
    (tmp_path / "outside/one").mkdir(parents=True)
    (tmp_path / "outside/one/submission.yaml").write_text("task: toy\nimage: x\n")
    (config.submissions / "alpha").symlink_to(tmp_path / "outside")
    refused(config, "E202")


def test_special_files_are_no_run_files(config: Config) -> None:
    folder = write_submission(config, "task: toy\nrun: pipe\n")
    os.mkfifo(folder / "pipe")
    assert "pipe" in refused(config, "E201")
    (folder / "submission.yaml").unlink()
    os.mkfifo(folder / "submission.yaml")
    refused(config, "E201")


def test_run_files_are_wanted_where_the_task_takes_uploads(config: Config) -> None:
    write_task(config, "uploads", data=False, workflow="upload")
    write_submission(config, "task: uploads\nimage: x\n")
    refused(config, "E207")


@pytest.mark.parametrize(
    ("team", "software"),
    [("alpha", "../one"), *((team, "x") for team in ("Alpha.", "\x1b[2J", "a" * 41, "", "-a", "a\n"))],
)
def test_what_is_not_a_name(config: Config, team: str, software: str) -> None:
    found = refused(config, "E208", team, software)
    assert found.replace("\n", "").isprintable()


def test_missing_ones_are_named_with_near_ones(config: Config) -> None:
    write_submission(config, "task: toy\nimage: x\n")
    assert '"alpha"' in refused(config, "E102", "alhpa")
    assert "one" in refused(config, "E102", "alpha", "three")


def test_one_bad_submission_never_stops_the_others(config: Config) -> None:
    write_submission(config, "task: toy\nimage: x\n")
    write_submission(config, "\x00", software="bad")
    write_submission(config, "task: toy\nimage: x\n", team="Hostile\x1b[2J")
    write_submission(config, "task: toy\nimage: x\n", team="beta")
    (config.submissions / "README.md").write_text("x")
    (config.submissions / "beta" / "notes").mkdir()
    found, errors = submissions.find_submissions(config)
    assert [(s.team, s.software) for s in found] == [("alpha", "one"), ("beta", "one")]
    assert sorted(e.code for e in errors) == ["E201", "E208"]
    assert [s.team for s in submissions.find_submissions(config, "beta")[0]] == ["beta"]
    assert [e.code for e in submissions.find_submissions(config, "gamma")[1]] == ["E102"]
    assert [e.code for e in submissions.find_submissions(config, "beta", "two")[1]] == ["E102"]


def test_a_broken_task_is_not_the_team_s_fault(config: Config) -> None:
    write_task(config, "broken", text="x: [\n")
    write_submission(config, "task: broken\nimage: x\n")
    assert submissions.load_submission(config, "alpha", "one").task == "broken"
    assert submissions.find_submissions(config)[1] == []


@settings(max_examples=100, deadline=None)
@given(text=st.one_of(st.text(max_size=120), st.dictionaries(
    st.sampled_from(["task", "image", "build", "run", "command", "scenarios", "inputs", "tag"]),
    st.recursive(st.none() | st.booleans() | st.integers() | st.sampled_from(["toy", "x", "..", "a\0b", "~", "/"]) | st.text(max_size=6),
                 lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["context", "dockerfile", "args", "x"]), inner, max_size=3), max_leaves=6),
    max_size=6).map(repr)))  # fmt: skip
def test_anything_is_loaded_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    config = project(tmp_path_factory.mktemp("fuzz") / "root")
    write_task(config, data=False)
    write_submission(config, "x")
    (config.submissions / "alpha/one/submission.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        submissions.load_submission(config, "alpha", "one")
    except RunnerError as error:
        assert told(error).replace("\n", "").isprintable()
        assert error.code in ("E201", "E202", "E207")


def test_names_as_teams_have_them_and_folders_that_look_alike(config: Config) -> None:
    pairs = (("webis_run-1.0", "TeamA_v2.1"), ("two", "teama-v2.1"), ("Webis_run-1.0", "TeamA_v2.1"))
    for software, team in pairs:
        write_submission(config, "task: toy\nimage: x\n", team=team, software=software)
    found, errors = submissions.find_submissions(config, "TeamA_v2.1", "webis_run-1.0")
    assert [(s.team, s.software) for s in found] == [("TeamA_v2.1", "webis_run-1.0")] and not errors
    # Sorted by folder, so capitals come first: the first of each pair is there, the second is refused and names it.
    found, errors = submissions.find_submissions(config)
    assert [(s.team, s.software) for s in found] == [("TeamA_v2.1", "Webis_run-1.0")]
    assert [e.code for e in errors] == ["E215", "E215"]
    assert '"Webis_run-1.0"' in errors[0].why and '"TeamA_v2.1"' in errors[1].why
