"""The server's commands where the packages of the extra ``web`` are not installed: each says so, and everything else works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worlds.mini import Project, call

ROOT = Path(__file__).parents[3]
# Every finder of modules forgets these packages: as if nobody had installed them.
FORGETS = """
import sys
GONE = {"cryptography", "python_multipart", "starlette", "uvicorn"}
class Forgets:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in GONE else self.finder.find_spec(name, path, target)
sys.meta_path[:] = [Forgets(one) for one in sys.meta_path]
"""


@pytest.fixture
def bare(project: Project, tmp_path: Path) -> Project:
    project.write_task()
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(FORGETS)
    project.env["PYTHONPATH"] = f"{site}:{ROOT}"
    return project


@pytest.mark.parametrize("command", ["serve", "front", "work", "work --key", "receipt verify x"])
def test_what_needs_the_packages_of_the_server_says_so(bare: Project, command: str) -> None:
    said = call(bare, *command.split(), expect=2).err
    assert "E101" in said and "cryptography" in said and "proctor-ir[web]" in said


def test_the_rest_needs_none_of_them(bare: Project) -> None:
    call(bare, "team", "add", "alpha")
    call(bare, "task", "list")
    call(bare, "evaluate", "--all", "--dry-run")
