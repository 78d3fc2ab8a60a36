"""Clusters of two hosts with scripted engines, and a project with a coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds.cluster import Cluster, cluster


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster that a test may break."""
    with cluster(tmp_path / "cluster", "h1", "h2", gone_after=5) as world:
        yield world


@pytest.fixture
def judges(tmp_path: Path) -> Iterator[Cluster]:
    """Hosts that evaluate, which a test may break."""
    with cluster(tmp_path / "judges", "j1", "j2", role="evaluations", gone_after=5) as made:
        yield made


@pytest.fixture(scope="session")
def _sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("sound") / "cluster", "h1", "h2") as world:
        yield world


@pytest.fixture
def sound(_sound: Cluster) -> Cluster:
    """A cluster that stays as it is."""
    _sound.forget()
    return _sound
