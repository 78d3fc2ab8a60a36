"""Tutorials are walked through from an empty folder, command by command, and print what they say."""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import docker
import pytest

from tests.worlds.mini import Project

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = re.compile(
    r"(?:[A-Za-z]+=\S+ )*(?:cat|cd|cp|docker|echo|evaluator|export|make|mkdir|mv|printf|runner|sed) "
)
ID = re.compile(r"\b([\w-]+\.[\w-]+)\.([0-9a-f]{8})\b")
# What no two walks have in common; "…" and "..." stand for anything.
CHANGING = {
    r" ?(?:…|\.\.\.)": ".*",
    r"\b[0-9a-f]{8}\b": "[0-9a-f]{8}",
    r"\b\d{4}-\d\d-\d\d\b": r"\\d{4}-\\d\\d-\\d\\d",
    r"\b\d+\.\d s\b": r"\\d+\\.\\d s",
    r"\b\d+ MiB\b": r"\\d+ MiB",
}


@dataclass
class Step:
    """Commands of a page, the exit code that the text before them names, and what they print by the page."""

    commands: str
    code: int = 0
    prints: list[str] = field(default_factory=list)


def steps(page: str) -> list[Step]:
    """The fenced commands of a tutorial in order."""
    text = (ROOT / "docs" / "tutorials" / page).read_text("utf-8")
    found: list[Step] = []
    for prose, block in re.findall(r"(.*?)^```\n(.*?)^```$", text, re.S | re.M):
        if COMMANDS.match(block):
            said = re.search(r"exit\s+code(?: is)? (\d)", prose)
            found.append(Step(block, int(said[1]) if said else 0))
        else:
            found[-1].prints += block.splitlines()
    return found


def pattern(line: str) -> re.Pattern[str]:
    """What a line of a page stands for."""
    told = " ".join(line.split())
    where = "|".join(f"({changing})" for changing in CHANGING)
    parts, end = "", 0
    for match in re.finditer(where, told):
        assert match.lastindex
        parts += re.escape(told[end : match.start()]) + list(CHANGING.values())[match.lastindex - 1].replace(
            "\\\\", "\\"
        )
        end = match.end()
    return re.compile(parts + re.escape(told[end:]))


def not_printed(told: list[str], printed: str) -> list[str]:
    """Those lines that were told and do not come, in this order and but for blanks and what changes, among the printed."""
    plain = re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", printed)
    left = [" ".join(line.split()) for line in plain.splitlines()]
    missing = []
    for line in told:
        at = next((n for n, one in enumerate(left) if pattern(line).fullmatch(one)), None)
        if at is None:
            missing.append(line)
        else:
            left = left[at + 1 :]
    return missing


def walk(page: str, folder: Path, environment: dict[str, str]) -> str:
    """Run every command of a page in one shell after the other, as printed but for the digits of ids.

    Returns:
        All that was printed. The test fails where a command ends otherwise, or prints less, than the page says.
    """
    ids: dict[str, str] = {}
    everything, missing = "", []
    kept = folder.parent / "shell"
    kept.write_text(f"cd {folder}\n", "utf-8")
    for step in steps(page):
        commands = ID.sub(lambda match: f"{match[1]}.{ids.get(match[1], match[2])}", step.commands)
        keep = f"trap '{{ export -p; echo cd \"$PWD\"; }} > {kept}' EXIT"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f". {kept}\n{keep}\n{commands}"],
            env=environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=400, check=False,
        )  # fmt: skip
        said = f"{commands}\nexit code {done.returncode}, not {step.code}\n{done.stdout}"
        assert done.returncode == step.code, said
        ids |= dict(ID.findall(done.stdout))
        everything += done.stdout
        if lines := not_printed(step.prints, done.stdout):
            missing += ["the page says, but this was not printed:", *lines, "", said]
    assert not missing, "\n".join(missing)
    return everything


@pytest.fixture
def walked(live: Project, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder with an empty project, and the environment of a person who has not set anything."""
    root = tmp_path / "empty"
    (root / "tasks").mkdir(parents=True)
    shutil.copytree(ROOT / "submissions/baselines/dirichlet", root / "submissions/baselines/dirichlet")
    environment = live.environment(RUNNER_ROOT=str(root), HOME=str(tmp_path / "person")) | {
        "RUNNER_BASES": ""
    }
    del environment["RUNNER_TRUTHS"], environment["RUNNER_PRIVATE"]
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    environment["PYTHONUNBUFFERED"] = "1"  # what is told and what is printed come in the order of a terminal
    return root, environment


@pytest.mark.engine
@pytest.mark.timeout(900)
def test_a_task_from_a_trec_collection(walked: tuple[Path, dict[str, str]]) -> None:
    root, environment = walked
    printed = walk("trec-collection.md", *walked)
    assert [path.name for path in (root / "tasks").iterdir()] == ["news"]
    assert (Path(environment["HOME"]) / "private/news/test/truths/qrels.txt").is_file()
    assert re.search(r"^ *1 +baselines/news +dirichlet +baseline +\S*1\.0000", printed, re.M), printed


@pytest.mark.engine
@pytest.mark.timeout(900)
def test_a_task_without_an_evaluator(walked: tuple[Path, dict[str, str]]) -> None:
    root, environment = walked
    walk("records.md", *walked)
    assert [path.name for path in (root / "tasks").iterdir()] == ["acts"]
    assert (Path(environment["HOME"]) / "private/acts/test/truths/acts.jsonl").is_file()


@pytest.fixture
def checkout(walked: tuple[Path, dict[str, str]], live: Project) -> Iterator[tuple[Path, dict[str, str]]]:
    """The same with the project's own files, as somebody who has just fetched them has it, and a command docker."""
    root, environment = walked
    for name in ("Makefile", "Dockerfile", "docker-compose.yml", "pyproject.toml", "requirements.lock"):
        shutil.copy2(ROOT / name, root)
    for name in ("baselines/random", "broken/crashes"):
        shutil.copytree(ROOT / "submissions" / name, root / "submissions" / name)
    for name in ("evaluator", "runner", "schemas", "sidecars", "tasks/vaswani"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / ".venv").symlink_to(sys.prefix)
    project = f"proctor-test-{secrets.token_hex(4)}"
    # What is installed stays as it is, however old; Compose is the package's, whatever this machine has.
    environment |= {
        "MAKEFLAGS": "--old-file=.venv/pyvenv.cfg --old-file=.venv/.ready",
        "PATH": f"{root.parent / 'bin'}:{environment['PATH']}",
        "COMPOSE_PROJECT_NAME": project,
        "COMPOSE_ANSI": "never",
        "IMAGE": f"{project}/software",
    }
    command = root.parent / "bin" / "docker"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nshift; exec {sys.prefix}/bin/docker-compose "$@"\n', "utf-8")
    command.chmod(0o755)
    yield root, environment
    down = [command, "compose", "down", "--volumes", "--timeout", "1"]
    subprocess.run(down, cwd=root, env=environment, check=True)
    client = docker.DockerClient(base_url=live.docker_host, timeout=60)
    for image in client.images.list(filters={"reference": f"{project}/software"}):
        client.images.remove(image.id, force=True)
    client.close()


@pytest.mark.engine
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", ["participant.md", "organiser.md", "host-your-own-task.md"])
def test_from_a_checkout(page: str, checkout: tuple[Path, dict[str, str]]) -> None:
    walk(page, *checkout)
