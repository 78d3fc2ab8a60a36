"""A data directory or database that cannot be used: what is wrong and what helps is said, whatever SQLite calls it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.model.errors import disk_error
from tests.worlds.machines import ROOT
from tests.worlds.mini import Project, Said, call_here


@pytest.mark.parametrize(
    ("url", "why", "fix"),
    [
        ("postgresql+nosuch://u:secret@host/db", "psycopg", "RUNNER_DATABASE"),
        ("mysql://u:secret@host/db", "SQLite", "RUNNER_DATABASE"),
        ("postgresql://u:secret@host:secret/db", "SQLAlchemy", "RUNNER_DATABASE"),
        ("secret", "E306", "RUNNER_DATABASE"),
        ("postgresql://u:p@secret@host/db", "@", "%40"),
        ("postgresql://u:p@b/secret@host/db", "@", "%40"),
        ("postgresql://u:p@b?secret@host/db", "@", "%40"),
    ],
)
def test_a_wrong_address_of_the_database_is_not_repeated(
    project: Project, capsys: pytest.CaptureFixture[str], url: str, why: str, fix: str
) -> None:
    """The address may hold a password."""
    project.database = url
    said = call_here(project, ["runs"], capsys)
    assert said.code == 3 and "E306" in said.err and why in said.err and fix in said.err
    assert "secret" not in said.all


FULL = 'mount -t tmpfs -o size=4m,mode=755 none "$HOME_OF_IT"; cp -r "$ASIDE/." "$HOME_OF_IT"; cat /dev/zero > "$HOME_OF_IT/fill" 2> /dev/null'
READ_ONLY = 'mount --bind -o ro "$HOME_OF_IT" "$HOME_OF_IT"; mount -o remount,bind,ro "$HOME_OF_IT"'


def on(project: Project, prepare: str, *arguments: str, aside: Path) -> subprocess.CompletedProcess[str]:
    """Run ``runner`` where its data directory was mounted by ``prepare``; the mount is this process's own."""
    unshare = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    program = [
        *unshare,
        "sh",
        "-c",
        f'{prepare}; exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "runner",
        *arguments,
    ]
    env = project.environment(HOME_OF_IT=str(project.home), ASIDE=str(aside))
    return subprocess.run(program, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
@pytest.mark.parametrize(
    ("prepare", "why", "fix"),
    [
        (FULL, "full", "space"),
        (READ_ONLY, "read", "RUNNER_HOME"),
    ],
    ids=["full", "read-only"],
)
def test_a_disk_that_is_full_or_can_only_be_read(
    project: Project,
    runner_cli: Callable[..., Said],
    tmp_path: Path,
    prepare: str,
    why: str,
    fix: str,
    used: bool,
) -> None:
    aside = tmp_path / "aside"
    project.home.mkdir(exist_ok=True)
    aside.mkdir()
    if used:
        runner_cli("runs")
        subprocess.run(["cp", "-r", f"{project.home}/.", str(aside)], check=True)
    extend = ("extend", "mini", "alpha", "--submissions", "1")
    for arguments in (("runs",), extend) if not used else (extend,):
        said = on(project, prepare, *arguments, aside=aside)
        assert said.returncode == 3, said.stdout + said.stderr
        assert "E306" in said.stderr and why in said.stderr and fix in said.stderr, said.stderr
        assert "store rebuild" not in said.stderr and "Traceback" not in said.stderr


def as_nobody(project: Project, aside: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run ``runner`` as a user who owns nothing here; mounts below ``aside`` make needed folders readable."""
    program = [sys.executable, "-m", "runner", *arguments]
    if os.geteuid() == 0:
        shut, script = set[Path](), ["set -e", f"aside='{aside}'"]
        needed = sorted({Path(p).resolve() for p in (sys.base_prefix, sys.prefix, ROOT, project.root.parent)})
        for number, path in enumerate(needed):
            closed = [p for p in reversed(path.parents) if not p.stat().st_mode & 0o001]
            shut |= set(closed[:1])
            script += [f"mkdir $aside/{number}", f"mount --rbind '{path}' $aside/{number}"]
        script += [f"mount -t tmpfs -o mode=755 none '{path}'" for path in sorted(shut)]
        for number, path in enumerate(needed):
            if shut & set(path.parents):
                script += [f"mkdir -p '{path}'", f"mount --rbind $aside/{number} '{path}'"]
        script.append('exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"')
        program = ["unshare", "--mount", "sh", "-c", "\n".join(script), "sh", *program]
    environment = project.environment(**env)
    return subprocess.run(program, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_home_of_somebody_else(project: Project, runner_cli: Callable[..., Said], tmp_path: Path) -> None:
    """A real user, not root: the data directory is another one's; what is advised works."""
    runner_cli("runs")
    mine = tmp_path / "mine"
    mine.mkdir()
    if os.geteuid() == 0:
        os.chown(mine, 65534, 65534)
    else:
        project.home.chmod(0o555)
    tmp_path.chmod(0o755)
    with tempfile.TemporaryDirectory() as aside:
        _refused_at_home(project, aside)
        project.home.chmod(0o755)
    with tempfile.TemporaryDirectory() as aside:
        said = as_nobody(project, aside, "runs", RUNNER_HOME=str(mine))
        assert said.returncode == 0, said.stderr


def _refused_at_home(project: Project, aside: str) -> None:
    for arguments in (("extend", "mini", "alpha", "--submissions", "1"), ("evaluate", "--all")):
        said = as_nobody(project, aside, *arguments)
        for inner in Path(aside).iterdir():
            inner.rmdir()
        assert said.returncode == 3, said.stdout + said.stderr
        assert "E306" in said.stderr, said.stderr
        assert "chown" in said.stderr and "RUNNER_HOME" in said.stderr


@pytest.mark.parametrize(
    ("number", "why"),
    [(errno.EACCES, "write"), (errno.EDQUOT, "full"), (errno.EIO, "output")],
)
def test_what_the_system_refuses(number: int, why: str) -> None:
    error = disk_error("a file cannot be written", OSError(number, os.strerror(number), "/data/x"))
    assert error.code == "E306" and why in error.why and "/data/x" in error.why and error.fix
