"""Python packages: which are installed when, and which are carried into builds."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from runner.engines.fake import FakeEngine
from runner.model.config import Config
from runner.model.errors import PlatformError, RunnerError
from runner.provision import base
from runner.provision.packages import Packages
from tests.worlds.machines import ROOT, THING, make_config, only_own_packages, without_engine, write_wheel


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """A machine with a local base image, where pip finds one package."""
    without_engine(monkeypatch, tmp_path)
    only_own_packages(monkeypatch, tmp_path / "index")
    return make_config(tmp_path / "home", "local")


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    fake = FakeEngine({})
    yield fake
    fake.close()


@pytest.fixture
def context(tmp_path: Path) -> Path:
    folder = tmp_path / "context"
    folder.mkdir()
    return folder


def test_wheels_are_fetched_once(local: Config, engine: FakeEngine, tmp_path: Path) -> None:
    wheel = tmp_path / "index" / THING
    requirements = tmp_path / "r.txt"
    requirements.write_text(f"thing==1 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    (first,) = base.wheels(local, engine, requirements, tmp_path / "a")
    assert first.name == THING and first.read_bytes() == wheel.read_bytes()
    wheel.unlink()
    (second,) = base.wheels(local, engine, requirements, tmp_path / "b")
    assert second.read_bytes() == first.read_bytes()


@pytest.mark.parametrize("line", ["thing==1", f"thing==1 --hash=sha256:{'0' * 64}", "absent==1"])
def test_a_download_that_fails_leaves_nothing(
    local: Config, engine: FakeEngine, tmp_path: Path, line: str
) -> None:
    """Our own packages need a hash, the right one, and a wheel."""
    requirements = tmp_path / "r.txt"
    requirements.write_text(line + "\n")
    with pytest.raises(PlatformError):
        base.wheels(local, engine, requirements, tmp_path / "a")
    assert list((local.home / "data" / "wheels").iterdir()) == []


def test_a_context_gets_the_wheels_of_its_requirements(
    local: Config, engine: FakeEngine, context: Path
) -> None:
    assert base.build_context_extras(local, engine, context) == {}
    (context / "requirements.txt").write_text("# nothing\n")
    assert base.build_context_extras(local, engine, context) == {}
    (context / "requirements.txt").write_text("thing==1 ; python_version > '3' # why\n")
    extras = base.build_context_extras(local, engine, context)
    assert list(extras) == [f"wheels/{THING}"]
    assert all(path.is_file() and context not in path.parents for path in extras.values())
    (context / "wheels").mkdir()
    assert base.build_context_extras(local, engine, context) == {}, "a team's own wheels are left alone"


@pytest.mark.parametrize(
    "line",
    [
        "-r /etc/passwd",
        "--index-url http://evil.example/",
        "thing @ https://evil.example/thing.whl",
        "../../secret",
        "-e .",
        "file:///etc/passwd",
        "${HOME}",
        "thing \\\n  --find-links /srv",
        "thïng==1",
    ],
)
def test_requirements_of_a_team_can_only_name_packages(
    local: Config, engine: FakeEngine, context: Path, line: str
) -> None:
    (context / "requirements.txt").write_text(f"fine==1\n{line}\n")
    with pytest.raises(RunnerError) as caught:
        base.build_context_extras(local, engine, context)
    assert caught.value.code == "E203"
    assert "passwd" not in caught.value.why and "evil" not in caught.value.why


def test_pip_gets_what_was_read_and_in_no_other_encoding(
    local: Config, engine: FakeEngine, tmp_path: Path, context: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first line can tell pip to read the rest in an encoding where harmless words are options."""
    monkeypatch.delenv("PIP_FIND_LINKS")
    evil = write_wheel(tmp_path / "evil").parent
    option = "+AC0-+AC0-find-links " + str(evil).replace("/", "+AC8-")
    requirements = context / "requirements.txt"
    requirements.write_text(f"# -*- coding: utf-7 -*-\n{option}\nthing==1 # fine\n")
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path / "got")]
    subprocess.run([*pip, "-r", str(requirements)], check=True, capture_output=True)
    assert (tmp_path / "got" / THING).exists(), "this attack proves nothing"
    with pytest.raises(RunnerError) as caught:
        base.build_context_extras(local, engine, context)
    assert caught.value.code == "E203"


def test_a_dangling_link_called_wheels_is_left_alone(
    local: Config, engine: FakeEngine, tmp_path: Path, context: Path
) -> None:
    (context / "requirements.txt").write_text("thing==1\n")
    (context / "wheels").symlink_to(tmp_path / "nowhere")
    assert base.build_context_extras(local, engine, context) == {}


def test_a_link_as_requirements_is_not_followed(
    local: Config, engine: FakeEngine, tmp_path: Path, context: Path
) -> None:
    (tmp_path / "secret").write_text("thing==1\n")
    (context / "requirements.txt").symlink_to(tmp_path / "secret")
    assert base.build_context_extras(local, engine, context) == {}


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


def test_each_set_is_within_the_next() -> None:
    commands, everything = pins(COMMANDS.read_text()), pins(ALL.read_text())
    assert commands.items() < everything.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = {Requirement(one).name for one in project["project"]["dependencies"]}
    wanted |= {
        "hatchling",
        "editables",
        "pyndeval",
    }  # what an editable installation is made with; of an extra
    assert needs(wanted) - {"pip"} <= commands.keys()
    assert not {"pytest", "mypy", "openai", "onnxruntime", "tantivy"} & commands.keys()


def test_another_environment_than_the_projects_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "requirements.lock").touch()
    assert not Packages(everything=True, root=tmp_path).missing
