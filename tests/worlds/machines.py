"""Machines to set up: without an engine, with tools that are scripts, and with packages that pip finds on the disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runner.engines.docker.engine import DockerEngine
from runner.model.config import Config
from runner.model.container import ImageRef
from runner.provision import daemon, engine

ROOT = Path(__file__).resolve().parents[2]
THING = "thing-1-py3-none-any.whl"


def make_config(home: Path, base_image: str = "auto") -> Config:
    """The configuration of this project with a data directory of its own."""
    return Config(root=ROOT, home=home, truths=None, base_image=base_image)


def without_engine(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Nothing answers and nothing is configured."""
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(folder / "no-docker-config"))
    monkeypatch.setattr(engine, "DEFAULT_SOCKET", f"unix://{folder}/absent.sock")


def put_tool(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, script: str) -> None:
    """A program of that name that is found before all others."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def write_wheel(folder: Path) -> Path:
    """The package ``thing`` 1, which holds one module."""
    folder.mkdir(parents=True, exist_ok=True)
    about = "thing-1.dist-info"
    files = {
        "thing.py": "",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: thing\nVersion: 1\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(folder / THING, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
        record = "".join(f"{name},,\n" for name in files) + f"{about}/RECORD,,\n"
        wheel.writestr(f"{about}/RECORD", record)
    return folder / THING


def only_own_packages(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """pip finds the package ``thing`` and no other; returns its wheel."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return write_wheel(folder)


def give_image(engine: DockerEngine, image: ImageRef, host: str, name: str, folder: Path) -> None:
    """Give an image of an engine to the engine at ``host``, under that name; ``folder`` is for files in between."""
    archive, other = folder / "image.tar", DockerEngine(host, locks=folder / "locks")
    engine.save(image, archive)
    loaded = other.load(archive, max_bytes=2**32, expect=image.id)
    with other.clients.calling("naming the image") as api:
        assert api.tag(loaded.id, *name.rsplit(":", 1))
    other.close()
    archive.unlink()


@contextmanager
def own_engine(home: Path) -> Iterator[str]:
    """The address of a daemon of its own with nothing in it, ended afterwards. Only root can start one."""
    own = daemon.OwnEngine(home)
    own.folder.mkdir(parents=True)
    # The daemon outlives whoever starts it, so a killed test needs somebody else to end it.
    script = 'while kill -0 "$1" 2>/dev/null; do sleep 0.5; done; kill "$(cat "$2")"'
    subprocess.Popen(
        ["sh", "-c", script, "watch", str(os.getpid()), str(own.pidfile)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        daemon.start(own)
        yield own.host
    finally:
        daemon.stop(own)
        shutil.rmtree(own.folder)
