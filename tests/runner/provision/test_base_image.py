"""The image that ours are built on: from a registry, or made here under a name of our own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.engines.fake import FakeEngine
from runner.model.container import Exit
from runner.model.errors import PlatformError
from runner.provision import base
from tests.worlds.machines import make_config, put_tool, without_engine


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No engine but the scripted one, root, and an mmdebstrap that writes down how it was called."""
    without_engine(monkeypatch, tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    script = f'for last; do :; done; printf root > "$last"; echo "$@" >> {tmp_path}/called'
    put_tool(monkeypatch, tmp_path / "tools", "mmdebstrap", script)


def called(tmp_path: Path) -> list[str]:
    path = tmp_path / "called"
    return path.read_text().splitlines() if path.exists() else []


def test_an_image_of_the_registry_is_used_and_remembered(tmp_path: Path) -> None:
    engine, config = FakeEngine({}), make_config(tmp_path)
    engine.registry.add("python:3.11-slim")
    assert base.base_mode(config) == "auto"
    assert base.base_image(config, engine) == "python:3.11-slim"
    assert base.base_mode(config) == "registry"
    assert base.base_image(config, engine) == "python:3.11-slim"
    assert engine.calls.count("pull") == 1
    assert not base.carries_wheels(config)
    engine.close()


def test_without_a_registry_a_base_is_made_under_a_name_of_our_own(tmp_path: Path) -> None:
    engine, config, said = FakeEngine({}), make_config(tmp_path), list[str]()
    assert base.base_image(config, engine, said.append) == "proctor/base:bookworm"
    assert engine.imported == {"proctor/base:bookworm": b"root"}
    assert said
    assert base.base_mode(config) == "local"
    assert base.carries_wheels(config)
    said.clear()
    assert base.base_image(config, engine, said.append) == "proctor/base:bookworm"
    assert said == [], "the second time there is nothing to say"
    assert engine.calls.count("pull") == 1, "the registry is not tried again"
    assert len(called(tmp_path)) == 1
    engine.close()


def test_an_older_base_image_is_made_anew_where_one_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, config = FakeEngine({"proctor/base:bookworm": Exit(code=0)}), make_config(tmp_path, "local")
    with monkeypatch.context() as ordinary:
        ordinary.setattr(os, "geteuid", lambda: 1000)
        assert base.base_image(config, engine) == "proctor/base:bookworm"
        assert not called(tmp_path), "nothing better is to be had here"
    assert base.base_image(config, engine) == base.base_image(config, engine) == "proctor/base:bookworm"
    (command,) = called(tmp_path)
    assert any("socat" in word for word in command.split() if word.startswith("--include="))
    engine.close()


def test_insisting_on_the_registry_is_respected(tmp_path: Path) -> None:
    engine = FakeEngine({})
    with pytest.raises(PlatformError) as caught:
        base.base_image(make_config(tmp_path, "registry"), engine)
    assert "RUNNER_BASE=local" in caught.value.fix
    engine.close()


def test_an_ordinary_user_without_a_registry_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    engine = FakeEngine({})
    with pytest.raises(PlatformError) as caught:
        base.base_image(make_config(tmp_path), engine)
    assert "proctor/base:bookworm" in caught.value.fix and not called(tmp_path)
    engine.close()
