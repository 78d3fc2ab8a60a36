"""The Python packages of this project in its own virtual environment, at the versions and hashes of the lock files.

Three sets, each within the next: :data:`FIRST` is what the set-up itself needs to talk to an engine;
``runner/requirements.lock`` what the commands need; ``requirements.lock`` also what tests, linters, judges and sidecars
need outside of containers. This module and what it imports need none of them.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from runner.provision.engine import run_tool
from runner.provision.steps import Steps

PROJECT = Path(__file__).resolve().parents[2]
FIRST = ("docker", "requests", "urllib3", "charset-normalizer", "idna", "certifi", "filelock")
_COMMANDS, _ALL = "runner/requirements.lock", "requirements.lock"
_STAMPS = {
    _COMMANDS: ".ready",
    _ALL: ".tools",
}  # in the environment: younger than their lock when that is installed
# Large, and imported by few commands: their byte code is written when they are imported.
_LATER = r"/(tests|scipy|pandas|pygments/lexers|sqlalchemy/dialects/(mssql|mysql|oracle)|pip|setuptools)/"
_BLOCK = re.compile(r"^([a-z0-9.-]+)==.*\n(?:[ \t].*\n)*", re.MULTILINE)


class Packages:
    """The packages in the virtual environment ``.venv`` of the project in ``root``; ``everything``: all of them.

    Where the set-up runs from another environment, somebody else installed it with what it needs: nothing is done.
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

    def first(self, steps: Steps) -> None:
        """Install what the set-up needs itself. Raises PlatformError E303."""
        if self.missing and not (self.environment / ".ready").exists():
            self._install(steps, "Python packages for the set-up", FIRST)
            importlib.invalidate_caches()

    def rest(self, steps: Steps) -> None:
        """Install this project and all other packages of the set, and write byte code. Raises PlatformError E303."""
        if not self.missing:
            return
        # The backend that this project is installed with stands in the lock, too.
        self._install(steps, "Python packages", ())
        run_tool([*_pip("install"), "--no-deps", "--no-build-isolation", "--no-index", "--editable", str(self.root)], timeout=300)  # fmt: skip
        folders = [str(self.root / name) for name in ("runner", "evaluator", "sidecars", "schemas")]
        folders.append(str(next(self.environment.glob("lib/python*/site-packages"))))
        skipped = [] if self.lock == _ALL else ["-x", _LATER]
        # It ends with 1 for files that are not Python of this version, which some packages bring.
        run_tool(
            [sys.executable, "-m", "compileall", "-q", "-j", "2", *skipped, *folders],
            timeout=600,
            fine=(0, 1),
        )
        for lock, stamp in _STAMPS.items():
            if lock in (self.lock, _COMMANDS):
                (self.environment / stamp).touch()

    def size(self) -> int:
        """What the virtual environment takes on the disk, in bytes."""
        return sum(path.lstat().st_size for path in self.environment.rglob("*") if not path.is_dir())

    def _install(self, steps: Steps, name: str, only: Iterable[str]) -> None:
        text = (self.root / self.lock).read_text(encoding="utf-8")
        wanted = subset(text, only) if only else text
        asked = self.environment / "asked.txt"
        asked.write_text(wanted, encoding="utf-8")
        with steps.step(name, total=len(_BLOCK.findall(wanted))) as step:
            options = ["--no-deps", "--no-compile", "--require-hashes", "--requirement", str(asked)]
            run_tool([*_pip("install"), *options], timeout=1800, on_line=step.heard)


def subset(lock: str, names: Iterable[str]) -> str:
    """The entries of the packages ``names`` in the text of a lock file. Raises KeyError for one that is not in it."""
    entries = {found[1]: found[0] for found in _BLOCK.finditer(lock)}
    return "".join(entries[name] for name in names)


def _pip(command: str) -> list[str]:
    return [sys.executable, "-m", "pip", command, "--disable-pip-version-check", "--no-input"]
