"""What a build is given on machines with and without a network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from runner.engines.base import Engine
from runner.provision import base
from runner.submissions import pack as packing
from runner.submissions.definition import Build
from runner.submissions.load import load_submission
from tests.worlds.definitions import project, write_submission, write_task


class _Builder:
    """An engine that remembers how it was asked to build."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}

    def build(self, context: Path, **options: Any) -> None:
        self.asked = options


def test_the_first_build_on_a_machine_knows_what_to_carry_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Choosing the base image settles whether builds have a network: it must come before the context is made."""
    config = project(tmp_path / "root")
    write_task(config)
    write_submission(config, "task: toy\nbuild: {context: ., network: true}\n", "mine", "first")
    order: list[str] = []

    def settle(_config: object) -> str:
        order.append("base")
        return "our-base"

    @contextmanager
    def context(_config: object, build: Build) -> Iterator[Path]:
        order.append("context")
        yield build.context

    monkeypatch.setattr(base, "base_image", settle)
    monkeypatch.setattr(base, "carries_wheels", lambda _config: order == ["base", "context"])
    monkeypatch.setattr(packing, "build_context", context)
    builder = _Builder()
    packing.image_of(config, cast(Engine, builder), load_submission(config, "mine", "first"))
    assert order == ["base", "context"]
    assert builder.asked["network"] is False
    assert builder.asked["build_args"]["BASE_IMAGE"] == "our-base"


def test_files_shared_between_softwares_are_copied_into_the_context(tmp_path: Path) -> None:
    config = project(tmp_path / "root")
    write_task(config)
    first = write_submission(config, "task: toy\nbuild: {}\n", "mine", "first")
    (first / "common.py").write_text("shared = 1\n")
    text = "task: toy\nbuild: {shared: [first/common.py]}\n"
    second = write_submission(config, text, "mine", "second")
    before = sorted(second.iterdir())
    build = load_submission(config, "mine", "second").build
    assert build is not None
    with packing.build_context(config, build) as context:
        assert (context / "common.py").read_text() == "shared = 1\n"
        assert (context / "Dockerfile").is_file()
    assert sorted(second.iterdir()) == before and not context.exists()
