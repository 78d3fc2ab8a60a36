"""The form of run files that strangers hand in: in the real container, without truths, and without hidden inputs."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from runner.engines.docker.engine import DockerEngine
from runner.engines.fake import FakeEngine, Mounts
from runner.execution.machine import Machine
from runner.execution.trials.handed_in import Form, check_handed_in
from runner.execution.trials.uploads import check_form
from runner.model.container import Exit, ImageRef
from runner.model.errors import PlatformError
from runner.tasks.load import load_tasks
from tests.e2e.test_uploads_scored import run_text
from tests.runner.execution.test_pool import EVALUATOR
from tests.worlds.mini import Project

BROKEN = "dev-1 Q0 doc-01 1 20 x\ndev-1 Q0 doc-01 2 nan x\nthis is no line\ndev-9 Q0 doc-99 1 5 \x1b[31mx\n"


def check(
    project: Project, machine: Machine, content: bytes, dataset: str = "dev", name: str = "my.txt"
) -> Form:
    task = load_tasks(project.config)[0]["mini"]
    file = project.home.parent / name
    file.write_bytes(content)
    return check_handed_in(machine, task, task.datasets[dataset], "default", file, lambda: False)


@pytest.fixture
def machine(project: Project, engine: DockerEngine, evaluator_image: ImageRef) -> Machine:
    project.write_task(uploads=True)
    return Machine(project.config, engine=engine, images={"evaluator": evaluator_image.id})


def test_every_finding_of_a_broken_file_has_its_line(project: Project, machine: Machine) -> None:
    found = check(project, machine, BROKEN.encode())
    assert (found.how, found.valid) == ("inputs", False)
    assert {one["line"] for one in found.findings} >= {2, 3, 4}
    assert all(one["file"] == "my.txt" and one["code"] and one["fix"] for one in found.findings)
    assert "dev-9" in str(found.findings) and "\x1b" not in str(found.findings)


def test_what_is_valid_is_and_may_be_packed(project: Project, machine: Machine) -> None:
    good = run_text("dev", "x").encode()
    assert check(project, machine, good) == Form("inputs")
    assert check(project, machine, gzip.compress(good), name="my.txt.gz") == Form("inputs")
    assert not check(project, machine, b"").valid


def test_of_hidden_inputs_nothing_is_asked(project: Project, machine: Machine) -> None:
    """Topics and documents that are there and those that are not give one answer; the file's own mistakes are found."""
    right, wrong = (
        check(project, machine, run_text(one, "x").encode(), "test") for one in ("test", "nowhere")
    )
    assert right == wrong == Form("form")
    broken = check(project, machine, b"test-1 Q0 doc-01 1 nan x\n", "test")
    assert not broken.valid and [one["line"] for one in broken.findings] == [1]


def test_the_organiser_learns_what_hidden_inputs_say_of_a_file(project: Project, machine: Machine) -> None:
    task = load_tasks(project.config)[0]["mini"]
    file = project.home.parent / "my.txt"
    for of, good in (("test", True), ("nowhere", False)):
        file.write_text(run_text(of, "x"))
        found = check_form(machine, task, task.datasets["test"], "default", file)
        assert (found.how, found.good) == ("checked", good) and ("nowhere-1" in found.text) != good


def test_a_name_is_no_option(project: Project, machine: Machine) -> None:
    assert check(project, machine, run_text("dev", "x").encode(), name="--help") == Form("inputs")


def scripted(project: Project, script: object) -> tuple[Machine, FakeEngine]:
    project.write_task(uploads=True)
    engine = FakeEngine({EVALUATOR: script})  # type: ignore[dict-item]
    return Machine(project.config, engine=engine, images={"evaluator": EVALUATOR}), engine


def test_neither_truths_nor_hidden_inputs_are_in_the_container(project: Project) -> None:
    machine, engine = scripted(project, lambda mounts, out: None)
    for dataset, shown in (("dev", {"/in", "/inputs"}), ("test", {"/in"})):
        check(project, machine, b"x", dataset)
        assert {mount.target for mount in engine.started[-1].mounts} == shown
    engine.close()


def test_where_files_of_strangers_are_looked_at_is_a_container(project: Project) -> None:
    machine, engine = scripted(project, lying('{"findings": {"kept": [], "codes": {}}}'))
    task = load_tasks(project.config)[0]["mini"]
    file = project.home.parent / "my.txt"
    file.write_text("no run at all")
    found = check_form(machine, task, task.datasets["dev"], "default", file)
    assert (found.how, found.good) == ("checked", True), "the container's word is all there is"
    assert [spec.command[:2] for spec in engine.started if spec.command] == [("evaluator", "check")]
    engine.close()


def lying(said: str) -> object:
    def script(mounts: Mounts, out: Path) -> None:
        mounts.say(said)

    return script


@pytest.mark.parametrize(
    "script",
    [
        lying("not JSON"),
        lying('{"findings": {"kept": [{"line": "<script>"}]}}'),
        lying('{"findings": {"kept": 7}}'),
        lying("[" * 100_000),
        Exit(4),
        Exit(137, killed="time"),
        Exit(137, oom_killed=True),
    ],
    ids=["no-json", "no-line", "no-list", "deep", "no-such-check", "time", "memory"],
)
def test_a_checker_that_fails_or_lies_says_nothing_of_the_file(project: Project, script: object) -> None:
    machine, engine = scripted(project, script)
    found = check(project, machine, b"x")
    assert (found.how, found.valid, found.findings) == ("unchecked", True, ()) and found.why
    engine.close()


def test_a_failing_engine_is_our_failure(project: Project) -> None:
    machine, engine = scripted(project, PlatformError("the engine is gone"))
    with pytest.raises(PlatformError):
        check(project, machine, b"x")
    engine.close()
