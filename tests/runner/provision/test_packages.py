"""Which Python packages are installed when: three sets, each within the next, at the same versions."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from runner.provision.packages import FIRST, Packages, subset
from tests.worlds.machines import ROOT

COMMANDS, ALL = ROOT / "runner" / "requirements.lock", ROOT / "requirements.lock"


def pins(text: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Version and hashes by package."""
    found = re.findall(r"^([a-z0-9.-]+)==(\S+) \\\n((?:    --hash=.*\n)+)", text, re.M)
    return {name: (version, frozenset(re.findall(r"sha256:\w+", hashes))) for name, version, hashes in found}


def needs(names: set[str]) -> set[str]:
    """What these packages need, with what that needs, on this machine."""
    found, todo = set[str](), [(name, frozenset({""})) for name in names]
    while todo:
        name, extras = todo.pop()
        found.add(name)
        for line in requires(name) or []:
            one = Requirement(line)
            if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras):
                needed = canonicalize_name(one.name)
                if needed not in found:
                    todo.append((needed, frozenset({"", *one.extras})))
    return found


def test_the_set_up_installs_first_what_it_imports() -> None:
    assert needs({"docker", "filelock"}) == set(FIRST)


def test_each_set_is_within_the_next() -> None:
    commands, everything = pins(COMMANDS.read_text()), pins(ALL.read_text())
    assert set(FIRST) < commands.keys() and commands.items() < everything.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = {Requirement(one).name for one in project["project"]["dependencies"]}
    wanted |= {
        "hatchling",
        "editables",
        "pyndeval",
    }  # what an editable installation is made with; of an extra
    assert needs(wanted) - {"pip"} <= commands.keys()
    assert not {"pytest", "mypy", "openai", "onnxruntime", "tantivy"} & commands.keys()


def test_a_subset_has_the_hashes_of_the_whole() -> None:
    text = COMMANDS.read_text()
    part = pins(subset(text, FIRST))
    assert list(part) == list(FIRST) and part.items() < pins(text).items()
    with pytest.raises(KeyError):
        subset(text, ["no-such-package"])


def test_another_environment_than_the_projects_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "requirements.lock").touch()
    assert not Packages(everything=True, root=tmp_path).missing
