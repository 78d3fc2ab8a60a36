"""A kind of task from an installed package: checked, run, evaluated in an image that holds it, ranked and shown."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.engines.docker.engine import DockerEngine
from tests.engine_fixtures import _MACHINE as MACHINE
from tests.worlds.mini import Project, call, cli

PACKAGE = Path(__file__).parents[1] / "worlds" / "colours"
TASK: dict[str, Any] = {
    "kind": "colours",
    "output": "colours.txt",
    "datasets": [{"id": d, "visibility": v} for d, v in (("dev", "public"), ("test", "blinded"))],
    "measures": [{"id": "hits", "measure": "hits", "truths": "colours.txt"}],
    "tables": [{"id": "main", "cells": [{"dataset": "test"}, {"dataset": "dev"}], "rank_by": "hits"}],
}
TRUTH = "t1 red\nt2 green\nt3 grey\nt4 blue\n"
SOFTWARE = 'import os; open(os.environ["outputDir"] + "/colours.txt", "w").write({!r})'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package installed, as pip does it, without any network."""
    folder = tmp_path_factory.mktemp("site")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
    ]
    subprocess.run([*pip, "--target", str(folder), str(PACKAGE)], check=True, timeout=120)
    return folder


@pytest.fixture
def colours(live: Project, engine: DockerEngine, site: Path) -> Iterator[tuple[Project, str]]:
    """A project with a task of the kind where the package is installed, and the identity of the evaluator image there."""
    live.env["PYTHONPATH"] = str(site)
    folder = live.write_task(**TASK)
    backwards = "".join(reversed(TRUTH.splitlines(keepends=True)))
    for inputs, truths, text in (
        (folder / "datasets/dev/inputs", folder / "datasets/dev/truths", TRUTH),
        (live.private / "mini/test/inputs", live.truths / "mini/test", backwards),
    ):
        (inputs / "topics.txt").write_text("t1\nt2\nt3\nt4\n")
        (truths / "colours.txt").write_text(text)
    build = (
        "import json, pathlib, sys; from runner.model.config import load; "
        "from runner.provision.engine import open_engine; from runner.provision.images import IMAGES, ensure_images, tag; "
        "config = load(cwd=pathlib.Path(sys.argv[1])); "
        "print(tag(IMAGES[0]), ensure_images(open_engine(config), config, wanted=IMAGES[:1])['evaluator'].id)"
    )
    made = subprocess.run(
        [sys.executable, "-c", build, str(MACHINE.root)],
        env={**live.environment(RUNNER_ROOT=str(MACHINE.root), RUNNER_HOME=str(MACHINE.home))},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    tag, identity = made.stdout.split()
    yield live, identity
    engine.clients.get().remove_image(tag, force=True)


@pytest.mark.slow
@pytest.mark.engine
def test_a_kind_from_a_package_goes_the_whole_way(colours: tuple[Project, str]) -> None:
    project, evaluator = colours
    assert call(project, "task", "check", "mini").code == 0
    project.software("good", SOFTWARE.format("t1 red\nt2 green\nt3 red\n"))
    project.software("bad", SOFTWARE.format("t1 purple\n"))
    assert call(project, "submit", "--team", "alpha", "--no-check").code == 0
    call(project, "evaluate", "--all")
    runs = {r["run"]: r for r in call(project, "runs", "--json").json}
    assert sorted(r["outcome"]["name"] for r in runs.values()) == ["invalid", "invalid", "scored", "scored"]

    board = call(project, "leaderboard", "mini", "--json").json
    assert "0.5" in json.dumps(board)
    good = next(run for run, r in runs.items() if r["outcome"]["name"] == "scored" and run.endswith(".dev"))
    shown = call(project, "show", good, "--json").json
    assert shown["scores"]["hits"]["value"] == 0.5 and shown["scores"]["hits"]["covered"] == 3
    assert [row["line"] for row in shown["colours"]["colours"]] == ["t1 red", "t2 green", "t3 red"]
    bad = next(run for run, r in runs.items() if r["outcome"]["name"] == "invalid")
    assert shown["findings"]["codes"] == {} and "F901" in call(project, "show", bad).out

    # What evaluated is pinned, and it is an image of its own.
    evaluations = [json.loads(p.read_text()) for p in project.home.rglob("evaluation.json")]
    assert {e["evaluator"]["image_id"] for e in evaluations} == {evaluator}


def test_without_the_package_there_is_no_such_kind(project: Project) -> None:
    project.write_task(**TASK)
    assert '"colours"' in cli(project, "task", "check", "mini", expect=4).all


def test_the_options_are_those_of_the_packages_schema(project: Project, site: Path) -> None:
    project.env["PYTHONPATH"] = str(site)
    folder = project.write_task(**TASK, options={"grey": "yes"})
    (folder / "datasets/dev/inputs/topics.txt").write_text("t1\n")
    said = call(project, "task", "check", "mini", expect=4)
    assert '"grey"' in said.all and "no kind" not in said.all
