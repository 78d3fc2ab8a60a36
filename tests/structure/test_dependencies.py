"""pyproject.toml against the code: dependencies are declared and locked, and the wheel has all files."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("runner", "evaluator", "sidecars", "schemas")
# What a package may import beyond the runtime dependencies: extras.
DRIVERS = {"psycopg"}  # imported by SQLAlchemy
EXTRAS = {
    "evaluator": ["judges"],
    "runner": ["cluster", "irds", "oidc", "plots", "postgres", "web"],
    "sidecars": ["sidecars"],
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def _name(requirement: str) -> str:
    """The normalised name of a distribution: of ``ir-measures[pyndeval]>=0.4`` it is ``ir-measures``."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found.group()).lower()


def _declared(extra: str | None = None) -> list[str]:
    """The names of the runtime dependencies, or of those of ``extra``."""
    wanted = PROJECT["dependencies"] if extra is None else PROJECT["optional-dependencies"][extra]
    return [_name(one) for one in wanted]


def _imported(package: str) -> dict[str, str]:
    """The distributions that a package of ours imports, also inside functions, each with one file that does."""
    owners = packages_distributions()
    found: dict[str, str] = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for top in {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {*PACKAGES}:
                assert owners.get(top), f"{path}: {top} belongs to no installed distribution"
                found.setdefault(_name(owners[top][0]), str(path.relative_to(ROOT)))
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_imported_is_declared(package: str) -> None:
    declared = {*_declared(), *(name for extra in EXTRAS.get(package, ()) for name in _declared(extra))}
    missing = {name: file for name, file in _imported(package).items() if name not in declared}
    assert missing == {}


@pytest.mark.slow
def test_what_is_not_imported_is_no_runtime_dependency() -> None:
    everywhere = {name for package in PACKAGES for name in _imported(package)}
    assert set(_declared()) - everywhere == set()
    for package, extras in EXTRAS.items():
        for extra in extras:
            assert set(_declared(extra)) - set(_imported(package)) - DRIVERS == set(), extra


def test_nothing_is_declared_twice() -> None:
    """An extra comes on top of the runtime dependencies; ``dev`` names nothing that these bring."""
    for extra in PROJECT["optional-dependencies"]:
        both = [*_declared(), *_declared(extra)]
        assert len(both) == len(set(both)), extra


def test_everything_declared_is_locked() -> None:
    """``make setup`` installs the lock: the runtime dependencies and every extra, with hashes."""
    locked = re.findall(
        r"^([a-z0-9.-]+)==\S+ \\\n    --hash=sha256:", (ROOT / "requirements.lock").read_text(), re.M
    )
    wanted = {name for extra in (None, *PROJECT["optional-dependencies"]) for name in _declared(extra)}
    assert wanted - set(locked) == set()
    assert {"docker", "pyyaml", "jsonschema", "ir-measures", "pandas", "typer", "pytest"} <= wanted


KINDS = (".html", ".css", ".js", ".json")


def test_pages_and_schemas_are_in_the_wheel(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    ended = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.endswith(KINDS)}
    files = [path for name in PACKAGES for path in (ROOT / name).rglob("*")]
    here = {path.relative_to(ROOT).as_posix() for path in files if path.suffix in KINDS}
    assert {"runner/views/show/run.html", "runner/annotation/sheet.js"} <= here
    assert here - packed == set()
