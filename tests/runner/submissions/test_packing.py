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
    def context(_config: object, where: Path) -> Iterator[Path]:
        order.append("context")
        yield where

    monkeypatch.setattr(base, "base_image", settle)
    monkeypatch.setattr(base, "carries_wheels", lambda _config: order == ["base", "context"])
    monkeypatch.setattr(packing, "_context", context)
    builder = _Builder()
    packing.image_of(config, cast(Engine, builder), load_submission(config, "mine", "first"))
    assert order == ["base", "context"]
    assert builder.asked["network"] is False
    assert builder.asked["build_args"]["BASE_IMAGE"] == "our-base"
