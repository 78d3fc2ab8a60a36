"""A registry of images on this machine: Debian's docker-registry, which engines take without TLS since it is here."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from base64 import b64encode
from pathlib import Path

from runner.engines.docker.engine import DockerEngine
from tests.worlds.debian import program
from tests.worlds.ports import free_port

USER, PASSWORD = "organiser", "let-me-in-5521"
_HASH = "$2y$05$abcdefghijklmnopqrstuunXrFpgC2HtgyVGaNFM13PGuDve0eLG."  # bcrypt of it: perl's crypt(PASSWORD, "$2y$05$…")


class Registry:
    """A registry over a folder, at a port of this machine that stays the same; started and stopped as a test wants it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, password: bool = False) -> None:
        """Start it, or start it again; with a ``password`` it gives nothing to who does not sign in (:meth:`sign_in`)."""
        self.stop()
        self.folder.mkdir(exist_ok=True)
        settings = {
            "version": "0.1",
            "log": {"level": "error", "accesslog": {"disabled": True}},
            "storage": {"filesystem": {"rootdirectory": str(self.folder / "images")}},
            "http": {"addr": self.address},
        }
        if password:
            (self.folder / "passwords").write_text(f"{USER}:{_HASH}\n")
            settings["auth"] = {"htpasswd": {"realm": "test", "path": str(self.folder / "passwords")}}
        (self.folder / "config.yml").write_text(json.dumps(settings))
        command = [program("docker-registry", "docker-registry"), "serve", str(self.folder / "config.yml")]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)
        last = time.monotonic() + 60
        while socket.socket().connect_ex(("127.0.0.1", self.port)):
            assert self._process.poll() is None and time.monotonic() < last, "the registry does not start"
            time.sleep(0.05)

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def secret(self) -> str:
        """User and password as the docker client keeps them."""
        return b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    def sign_in(self, config: Path) -> None:
        """What ``docker login`` leaves in the folder of the docker client's ``config``."""
        config.mkdir(exist_ok=True)
        (config / "config.json").write_text(json.dumps({"auths": {self.address: {"auth": self.secret}}}))

    def push(self, engine: DockerEngine, image: str, name: str) -> str:
        """Push an image of an engine under a ``name``; returns its digest. The engine keeps no name for it."""
        repository = f"{self.address}/{name}"
        with engine.clients.calling("pushing an image of the test") as api:
            api.tag(image, repository, "one")
            said = api.push(repository, tag="one", stream=True, decode=True)
            [digest] = [one["aux"]["Digest"] for one in said if "Digest" in one.get("aux", {})]
            api.remove_image(f"{repository}:one", noprune=True)
        return str(digest)

    def lose(self, name: str) -> None:
        """Take away what it has under a name."""
        shutil.rmtree(self.folder / "images/docker/registry/v2/repositories" / name)
