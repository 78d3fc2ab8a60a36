"""Tutorials are walked through from an empty folder, command by command, and print what they say."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.worlds.mini import Project

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("cat", "cp", "export", "mkdir", "runner")


def blocks(page: str) -> list[tuple[bool, str]]:
    """The fenced blocks of a tutorial in order, and whether they are commands; the others are what these print."""
    text = (ROOT / "docs" / "tutorials" / page).read_text("utf-8")
    found = re.findall(r"^```\n(.*?)^```", text, re.S | re.M)
    return [(block.split()[0] in COMMANDS, block) for block in found]


@pytest.mark.engine
@pytest.mark.timeout(900)
def test_a_task_from_a_trec_collection(live: Project, tmp_path: Path) -> None:
    root = tmp_path / "empty"
    (root / "tasks").mkdir(parents=True)
    shutil.copytree(ROOT / "submissions/baselines/dirichlet", root / "submissions/baselines/dirichlet")
    home = tmp_path / "person"
    environment = live.environment(RUNNER_ROOT=str(root), HOME=str(home)) | {"RUNNER_BASES": ""}
    del environment["RUNNER_TRUTHS"]
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    walked = blocks("trec-collection.md")
    script = "\n".join(block for commands, block in walked if commands)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=root, env=environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    printed = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in (line for commands, block in walked if not commands for line in block.splitlines()):
        assert " ".join(line.split()) in printed, f"{line}\n\n{done.stdout}"
    assert [path.name for path in (root / "tasks").iterdir()] == ["news"]
    assert (home / "truths/news/test/qrels.txt").is_file()
    assert re.search(r"^ *1 +baselines/news +dirichlet +baseline +\S*1\.0000", done.stdout, re.M), done.stdout
