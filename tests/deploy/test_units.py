"""The systemd units: what systemd itself says of them, and that they call commands with options that there are."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.worlds.debian import program
from tests.worlds.mini import Project, call

DEPLOY = Path(__file__).parents[2] / "deploy"
EXPOSED = {"proctor-front": 1.5, "proctor-work": 1.8}  # of 10, by systemd-analyze security of systemd 252


@pytest.mark.parametrize("unit", EXPOSED)
def test_systemd_takes_the_units_and_finds_little_exposed(unit: str, tmp_path: Path) -> None:
    analyze = program("systemd-analyze", "systemd")
    text = (DEPLOY / f"{unit}.service").read_text()
    copy = tmp_path / f"{unit}.service"
    copy.write_text(text.replace("/opt/proctor/.venv/bin/runner", "/bin/true"))
    said = subprocess.run([analyze, "verify", str(copy)], capture_output=True, text=True, timeout=60)
    assert said.returncode == 0 and unit not in said.stderr, said.stderr
    command = [analyze, "security", "--offline=true", "--no-pager", str(copy)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60)
    level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said.stdout)
    assert level and float(level[1]) <= EXPOSED[unit], said.stdout


def test_the_page_explains_each_option_of_the_units_and_no_other() -> None:
    units = "".join((DEPLOY / f"{unit}.service").read_text() for unit in EXPOSED)
    used = set(re.findall(r"^([A-Z][A-Za-z]+)=", units.replace("[Unit]", "").replace("[Install]", ""), re.M))
    page = (DEPLOY.parent / "docs/how-to/serve.md").read_text()
    table = page.partition("What each option of the units is for")[2].partition("###")[0]
    explained = re.findall(r"`([A-Z][A-Za-z]+)`", "".join(re.findall(r"^\| (.+?) \|", table, re.M)))
    assert used - {"Description", "After", "Wants", "WantedBy"} == set(explained)
    assert len(explained) == len(set(explained))


@pytest.mark.parametrize("unit", EXPOSED)
def test_the_commands_of_the_units_are_commands_of_ours(unit: str, project: Project) -> None:
    line = re.search(r"^ExecStart=\S+/runner (.+)$", (DEPLOY / f"{unit}.service").read_text(), re.M)
    assert line
    command, *options = line[1].split()
    known = call(project, command, "--help", env={"COLUMNS": "200"}).out
    given = [one for one in options if one.startswith("--")]
    assert all(re.search(rf"{one}\b", known) for one in given), known
