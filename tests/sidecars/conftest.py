"""Folders with short paths, because paths of sockets are bounded, and what runs in them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.worlds.running import Place, Running, question
from tests.worlds.standins import Room


@pytest.fixture
def short_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="s-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def room(short_folder: Path) -> Room:
    """The folder of a driver, with two claims."""
    room = Room(short_folder)
    room.claims("Cars are bad", "Cars are good")
    return room


@pytest.fixture
def place(short_folder: Path) -> Place:
    """The folder of a gateway."""
    return Place(short_folder)


@pytest.fixture
def ask() -> Callable[..., httpx2.Response]:
    """Post one question: ``ask(gateway, "content", parameter=…)``."""

    def post(running: Running, content: str = "Is it so?", **parameters: Any) -> httpx2.Response:
        with running.client() as client:
            return client.post("/v1/chat/completions", json=question(content, **parameters))

    return post
