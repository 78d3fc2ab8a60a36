"""Debian's SSH server on loopback, which lets in a key of the test and nobody else."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.worlds.debian import program
from tests.worlds.object_store import packages

CONF = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/own.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
PidFile none
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
"""


@dataclass(frozen=True)
class SshServer:
    """The world: ``address`` is that of a store there, ``folder`` has the keys ``own``, ``host`` and ``other``."""

    folder: Path
    port: int
    address: str

    def options(self, key: str = "own", known: str = "host") -> dict[str, Any]:
        """What opens it; or does not, with another key of a user, or where another key of a host is expected."""
        hosts = self.folder / f"known-{known}"
        hosts.write_text(f"[127.0.0.1]:{self.port} {(self.folder / f'{known}.pub').read_text()}")
        who = {"username": getpass.getuser(), "client_keys": [str(self.folder / key)]}
        return {"port": self.port, **who, "known_hosts": str(hosts), "timeout": 60}


@contextmanager
def ssh_server(folder: Path) -> Iterator[SshServer]:
    """The server, with a store below ``folder``, until the context ends."""
    packages()
    server = program("sshd", "openssh-server")
    for name in ("own", "host", "other"):
        make = [program("ssh-keygen", "openssh-client"), "-q", "-t", "ed25519", "-N", "", "-f"]
        subprocess.run([*make, str(folder / name)], check=True)
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    (folder / "conf").write_text(CONF.format(port=port, folder=folder))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    command = ["setpriv", "--pdeathsig=KILL", server, "-D", "-e", "-f", str(folder / "conf")]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert process.poll() is None and time.monotonic() < until, (folder / "server.log").read_text()
            time.sleep(0.05)
        yield SshServer(folder, port, f"ssh://127.0.0.1{folder / 'store'}")
    finally:
        process.kill()
        process.wait()
