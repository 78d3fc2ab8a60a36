"""A gateway for each test, in a folder with a short path: those of sockets are bounded."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.worlds.running import Place, Running, question


@pytest.fixture
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="g-") as folder:
        yield Place(Path(folder))


@pytest.fixture
def ask() -> Callable[..., httpx2.Response]:
    """Posts one question: ``ask(gateway, "content", parameter=…)``."""

    def post(running: Running, content: str = "Is it so?", **parameters: Any) -> httpx2.Response:
        with running.client() as client:
            return client.post("/v1/chat/completions", json=question(content, **parameters))

    return post
