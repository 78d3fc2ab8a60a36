"""Debian's Slurm with one node, this machine, in a folder and on ports of its own: its daemons are ended with the context."""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.worlds.debian import program
from tests.worlds.ports import free_port

CONF = """\
ClusterName=proctor
SlurmctldHost={host}(127.0.0.1)
SlurmctldAddr=127.0.0.1
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=2
Epilog={epilog}
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@dataclass
class Slurm:
    """The world: ``folder`` is where it lies, ``host`` the name of its node."""

    folder: Path
    host: str = field(default_factory=lambda: socket.gethostname().partition(".")[0])
    daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def ask(self, *command: str, **more: str) -> str:
        """Run one of Slurm's commands; returns what it says."""
        env = {**os.environ, **more, "SLURM_CONF": str(self.folder / "slurm.conf")}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, cwd=self.folder)
        assert done.returncode == 0, f"{done.stderr}\n{self.logs()}"
        return done.stdout.strip()

    def ended(self, job: str, seconds: float = 90) -> None:
        """Wait until a job is gone and its epilogue done."""
        going = {"PD", "R", "CG"}
        self.until(lambda: self.ask("squeue", "-h", "-j", job, "-t", "all", "-o", "%t") not in going, seconds)

    def logs(self) -> str:
        """What the daemons wrote."""
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.log"))

    def start(self, name: str, *options: str) -> None:
        """Start a daemon, which writes to a file."""
        with (self.folder / f"{name}.log").open("wb") as log:
            env = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", program(name, "slurm-wlm"), *options], env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )  # fmt: skip
        self.daemons.append(process)

    def ready(self) -> None:
        """Wait until the node takes jobs."""
        self.until(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%t"), 60)

    def close(self) -> None:
        """End the daemons and what they began, also what is left of a job that still runs, and remove all of it."""
        for process in reversed(self.daemons):
            process.send_signal(signal.SIGTERM)
        for process in self.daemons:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        own = f"SLURM_CONF={self.folder / 'slurm.conf'}\0".encode()
        # Daemons of jobs outlive those of Slurm; they write over what psutil reads.
        for left in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if own in Path(f"/proc/{left.pid}/environ").read_bytes():
                    left.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def until(self, holds: Callable[[], object], seconds: float = 120) -> None:
        """Wait until something holds."""
        until = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < until, self.logs()
            time.sleep(0.2)


@contextmanager
def slurm(epilog: str) -> Iterator[Slurm]:
    """A Slurm of one node whose epilogue is the script ``epilog``, until the context ends."""
    program("slurmctld", "slurm-wlm")
    folder = Path(tempfile.mkdtemp(prefix="proctor-slurm-", dir="/tmp"))
    world = Slurm(folder)
    try:
        for name in ("munge", "state", "spool"):
            (folder / name).mkdir(mode=0o700)
        folder.chmod(0o755)
        (folder / "munge" / "key").write_bytes(secrets.token_bytes(1024))
        (folder / "munge" / "key").chmod(0o400)
        (folder / "epilog").write_text(epilog)
        (folder / "epilog").chmod(0o755)
        ports = free_port(), free_port()
        facts = {"host": world.host, "user": getpass.getuser(), "cpus": os.cpu_count() or 1}
        text = CONF.format(**facts, folder=folder, ports=ports, epilog=folder / "epilog")
        (folder / "slurm.conf").write_text(text)
        munge = folder / "munge"
        world.start("munged", "--foreground", "--force", f"--key-file={munge / 'key'}", f"--socket={folder / 'munge.socket'}",
                    f"--pid-file={munge / 'pid'}", f"--log-file={munge / 'log'}", f"--seed-file={munge / 'seed'}")  # fmt: skip
        world.until((folder / "munge.socket").exists, 30)
        world.start("slurmctld", "-D")
        world.start("slurmd", "-D")
        world.ready()
        yield world
    finally:
        world.close()
