"""An S3 server on loopback, with keys of its own: rclone's, which refuses a wrong signature, an address that expired, and who has none.

It and the packages of fsspec for stores are no part of the project: they are installed beside it, by the hashes in ``stores.lock``.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from fsspec.registry import register_implementation

from runner.engines.docker.owner import default_locks, private_folder
from runner.execution.cluster.storage.artefacts import Artefacts

LOCK = Path(__file__).with_name("stores.lock")
BUCKET = "campaign"


def packages() -> Path:
    """The folder of the packages, which this process can import then where it has none of that name."""
    place = private_folder(default_locks()) / f"stores-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]}"
    with FileLock(f"{place}.lock", timeout=600):
        if not (place / "done").exists():
            command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--require-hashes"]
            command += ["--target", str(place), "--upgrade", "-r", str(LOCK)]
            subprocess.run(command, check=True, timeout=600)
            (place / "done").touch()
    if str(place) not in sys.path:
        sys.path.append(str(place))
    # Of packages that come after it was imported fsspec knows nothing, and takes paramiko for SSH.
    register_implementation("ssh", "sshfs.SSHFileSystem", clobber=True)
    return place


@dataclass(frozen=True)
class ObjectStore:
    """The world: what is put there lies in ``folder``, ``origin`` is where it listens, ``credentials`` the file that opens it."""

    folder: Path
    origin: str
    key: str
    secret: str
    credentials: Path
    address: str

    def options(self, secret: str = "") -> dict[str, Any]:
        """What opens it; or does not, with another secret."""
        where = {"endpoint_url": self.origin, "region_name": "us-east-1"}
        # The retries of the client would make each refusal last.
        quick = {"retries": {"max_attempts": 1}}
        keys = {"key": self.key, "secret": secret or self.secret}
        return keys | {"client_kwargs": where, "config_kwargs": quick}

    def store(self, secret: str = "") -> Artefacts:
        """It as a coordinator has it."""
        return Artefacts(self.address, self.options(secret))


@contextmanager
def object_store(folder: Path, bucket: str = BUCKET) -> Iterator[ObjectStore]:
    """The server with an empty bucket, whose files are below ``folder``, until the context ends."""
    program = packages() / "bin" / "rclone"
    (folder / "data" / bucket).mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    key, secret = f"KEY{secrets.token_hex(6)}", secrets.token_hex(20)
    command = ["setpriv", "--pdeathsig=KILL", str(program), "serve", "s3", f"--auth-key={key},{secret}"]
    command += [f"--addr=127.0.0.1:{port}", "--config=", "--vfs-cache-mode=off", str(folder / "data")]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )
    try:
        until = time.monotonic() + 60
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert process.poll() is None and time.monotonic() < until, (folder / "server.log").read_text()
            time.sleep(0.05)
        credentials = folder / "credentials.json"
        origin, address = f"http://127.0.0.1:{port}", f"s3://{bucket}/of-tests"
        made = ObjectStore(folder / "data" / bucket, origin, key, secret, credentials, address)
        credentials.touch(mode=0o600)
        credentials.write_text(json.dumps({made.address: made.options()}))
        yield made
    finally:
        process.kill()
        process.wait()
