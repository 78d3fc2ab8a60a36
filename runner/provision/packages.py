"""The Python packages of this project in its own virtual environment, at the versions and hashes of the lock files.

``runner/requirements.lock`` has what the commands need; ``requirements.lock`` also what tests, linters, judges and sidecars
need outside of containers. This module and what it imports need no package.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from runner.provision.engine import run_tool
from runner.provision.steps import Steps

PROJECT = Path(__file__).resolve().parents[2]
_COMMANDS, _ALL = "runner/requirements.lock", "requirements.lock"
_STAMPS = {
    _COMMANDS: ".ready",
    _ALL: ".tools",
}  # in the environment: younger than their lock when that is installed
_PIP = (sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-deps")


class Packages:
    """The packages in the virtual environment ``.venv`` of the project in ``root``; ``everything``: all of them.

    A set-up that runs from another environment has what it needs there: nothing is done.
    """

    def __init__(self, everything: bool = False, root: Path = PROJECT) -> None:
        self.root, self.environment = root, root / ".venv"
        self.lock = _ALL if everything else _COMMANDS
        ours = Path(sys.prefix).resolve() == self.environment.resolve() and (root / _ALL).is_file()
        self.missing = ours and not any(
            self._installed(lock) for lock in _STAMPS if lock in (self.lock, _ALL)
        )

    def _installed(self, lock: str) -> bool:
        stamp = self.environment / _STAMPS[lock]
        try:
            made = stamp.stat().st_mtime
        except OSError:
            return False
        return all((self.root / name).stat().st_mtime <= made for name in (lock, "pyproject.toml"))

    def install(self, steps: Steps) -> None:
        """Install the packages of the lock and this project, unless they are installed. Raises PlatformError E303."""
        if not self.missing:
            return
        with steps.step("Python packages"):
            # The backend that this project is installed with is in the lock, too.
            run_tool([*_PIP, "--require-hashes", "--requirement", str(self.root / self.lock)], timeout=1800)
            run_tool([*_PIP, "--no-build-isolation", "--no-index", "--editable", str(self.root)], timeout=300)
        for lock, stamp in _STAMPS.items():
            if lock in (self.lock, _COMMANDS):
                (self.environment / stamp).touch()
        importlib.invalidate_caches()
