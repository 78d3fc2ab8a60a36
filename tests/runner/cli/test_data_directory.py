"""The data directory is its owner's alone, whoever makes it and whatever the umask; a wider one is reported, and left as it is."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.test_server import until
from tests.worlds.mini import Project, call_here

FIX = "chmod 700"
# The first command in a new project: each makes the data directory, or leaves it unmade.
COMMANDS: dict[str, tuple[str, ...]] = {
    "leaderboard": ("leaderboard", "mini"),
    "runs": ("runs",),
    "team add": ("team", "add", "alpha"),
    "account people": ("account", "list"),
    "register a table": ("register", "--table", "{table}"),
    "pack run files": ("submit", "--team", "alpha", "--no-check"),
    "cancel": ("cancel", "alpha.entry.00000000.test"),
    "evaluate": ("evaluate", "--all"),
    "import": ("data", "import", "mini", "test", "{qrels}", "--as", "truths/qrels.txt"),
    "new task": ("task", "new", "other"),
    "work key": ("work", "--key"),
    "restore": ("store", "restore", "{backup}"),
    "rebuild": ("store", "rebuild"),
    "verify": ("store", "verify"),
    "doctor": ("doctor",),
    "gc": ("gc",),
}


def mode_of(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


@contextmanager
def umask(value: int) -> Iterator[None]:
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


@pytest.fixture
def fresh(project: Project) -> Project:
    """A project without a data directory, and without other folders for what is hidden."""
    project.home = project.root / "new" / "home"
    return project


def fill_in(project: Project, command: tuple[str, ...]) -> list[str]:
    folder = project.root / "given"
    folder.mkdir()
    (folder / "run.txt").write_text("test-1 Q0 d1 1 1.0 one\n")
    (folder / "runs.csv").write_text("team,run,file,dataset\nalpha,one,run.txt,test\n")
    (folder / "qrels.txt").write_text("test-1 0 d1 1\n")
    places = {"table": folder / "runs.csv", "qrels": folder / "qrels.txt", "backup": folder / "backup.tar.gz"}
    return [part.format(**places) for part in command]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_makes_it_for_its_owner_alone(
    fresh: Project, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = fill_in(fresh, COMMANDS[name])
    if name == "restore":
        other = Project(fresh.root, fresh.root / "other", fresh.truths)
        for words in (["team", "add", "alpha"], ["store", "backup", arguments[-1]]):
            assert call_here(other, words, capsys).code == 0
    with umask(0):
        result = call_here(fresh, arguments, capsys)
    assert FIX not in result.err
    for folder in (fresh.home.parent, fresh.home):
        assert not folder.exists() or mode_of(folder) == 0o700, result


def serve(project: Project) -> str:
    """Start the server, stop it when it has published, and return what it printed."""
    process, web = project.start("serve", "--bind", "127.0.0.1:0"), project.home / "web"
    try:
        until(lambda: (web / "published" / "current.json").exists() and (web / "front").is_dir())
    finally:
        process.send_signal(signal.SIGTERM)
        result = process.communicate(timeout=60)
    return "".join(result)


@pytest.mark.slow
@pytest.mark.parametrize("umasked", [0, 0o22, 0o77])
def test_work_front_and_serve_make_it_for_its_owner_alone(fresh: Project, umasked: int) -> None:
    with umask(umasked):
        result = serve(fresh)
    assert mode_of(fresh.home) == 0o700 and mode_of(fresh.home.parent) == 0o700
    assert FIX not in result, result


@pytest.mark.parametrize("name", ["leaderboard", "team add", "evaluate", "verify"])
@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701])
def test_a_wider_one_is_reported_once_and_left_as_it_is(
    fresh: Project, name: str, mode: int, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh.home.mkdir(parents=True)
    fresh.home.chmod(mode)
    result = call_here(fresh, COMMANDS[name], capsys)
    assert result.err.count(f"{FIX} {fresh.home}") == 1 and f"{mode:04o}" in result.err
    assert FIX not in result.out and mode_of(fresh.home) == mode


@pytest.mark.slow
def test_serve_reports_a_wider_one_once(fresh: Project) -> None:
    fresh.home.mkdir(parents=True)
    fresh.home.chmod(0o755)
    assert serve(fresh).count(f"{FIX} {fresh.home}") == 1


def test_the_doctor_reports_a_wider_one(fresh: Project, capsys: pytest.CaptureFixture[str]) -> None:
    fresh.home.mkdir(parents=True)
    for mode, status in ((0o755, "CAUTION"), (0o700, "PASS")):
        fresh.home.chmod(mode)
        result = call_here(fresh, ["doctor", "--json"], capsys)
        (check,) = [entry for entry in result.json if entry["name"].startswith("mode ")]
        fix = f"{FIX} {fresh.home}" if status == "CAUTION" else ""
        assert (check["status"], check["fix"]) == (status, fix) and FIX not in result.err


def test_another_user_reads_nothing_of_it(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    with tempfile.TemporaryDirectory() as base, umask(0o22):
        Path(base).chmod(0o755)
        project.home = Path(base) / "home"
        assert call_here(project, ["team", "add", "alpha"], capsys).code == 0
        log = str(project.home / "events.jsonl")
        attack = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", log]
        refused = subprocess.run(attack, capture_output=True, text=True, check=False)
        assert refused.returncode != 0 and refused.stdout == ""
        project.home.chmod(0o755)
        assert "account-added" in subprocess.run(attack, capture_output=True, text=True, check=True).stdout
