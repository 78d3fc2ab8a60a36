"""Repositories of git for tests, apart from anybody's settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from filelock import FileLock

from runner.provision.engine import can_install, install


def require_git() -> None:
    """Install git where it is missing: a bare machine has none."""
    if shutil.which("git") is None and can_install():
        with FileLock(Path(tempfile.gettempdir()) / "install-git-for-tests.lock", timeout=1000):
            if shutil.which("git") is None:
                install("git")
    if shutil.which("git") is None:
        pytest.fail("there is no git. Fix: apt-get install git", pytrace=False)


def git(folder: Path, *words: str) -> str:
    """What git says in ``folder``."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "init.defaultBranch=main")
    command = ["git", *who, *words]
    return subprocess.run(
        command, cwd=folder, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()
