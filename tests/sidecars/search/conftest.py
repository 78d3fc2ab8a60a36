from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecars.search.api import Api
from sidecars.search.prepared import open_collection
from tests.worlds.search_arguments import write
from tests.worlds.search_parts import Asked, Server


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Callable[..., Asked]]:
    """Makes an interface over a data folder that is written first."""
    opened = []

    def make(*args: Any, **kwargs: Any) -> Asked:
        collection = open_collection(write(tmp_path / f"data{len(opened)}", *args, **kwargs))
        opened.append(collection)
        return Asked(Api(collection, "claimrev", "/arguments"))

    yield make
    for collection in opened:
        collection.close()


@pytest.fixture
def ask(asking: Callable[..., Asked]) -> Asked:
    """The interface over the six arguments of the tests."""
    return asking()


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts servers; all are ended."""
    started: list[Server] = []

    def start(*options: str, folder: Path | None = None) -> Server:
        started.append(Server(folder or write(tmp_path / "data"), *options))
        return started[-1]

    yield start
    for server in started:
        server.end()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server on a TCP port for all tests of a module."""
    folder = tmp_path_factory.mktemp("search")
    one = Server(
        write(folder / "data"), "--port", "0", "--prefix", "/arguments", "--log", str(folder / "served.jsonl")
    )
    one.log = folder / "served.jsonl"  # type: ignore[attr-defined]
    yield one
    code, rest = one.end()
    assert (code, rest) == (0, "")
