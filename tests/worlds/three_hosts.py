"""Three hosts on one machine: each a network namespace of its own with a Docker Engine of its own, joined by a switch.

Only root can make it. Nothing of it outlives whoever made it, also when that is killed: namespaces live as long as their processes, and
a watcher ends these and removes the folder, which lies in memory (a disk is slow for engines that start with nothing).
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from runner.engines.docker.engine import DockerEngine
from runner.execution.cluster.certificates import make
from runner.model.container import ImageRef
from runner.provision import daemon
from runner.provision.images import IMAGES, tag
from tests.worlds.cluster import Cluster
from tests.worlds.machines import give_image

HOSTS = ("h1", "h2", "h3")
COORDINATOR = "10.99.77.1"  # the address of coordinator and scheduler
NEW_NETWORK = 0x40000000  # Linux: CLONE_NEWNET
MEMORY = Path("/dev/shm")
# Once the process $2, which made all of it, has ended or says that it is over: ends what is left of the processes in the file "pids" and of
# engines, each of which names the folder $1 in its environment or command, and removes the folder.
WATCH = """
cd /
while kill -0 "$2" 2>/dev/null && [ ! -e "$1/over" ]; do sleep 0.3; done
for pid in $(cat "$1"/pids 2>/dev/null); do grep -q "$1" "/proc/$pid/environ" 2>/dev/null && kill -KILL "$pid"; done
for round in $(seq 100); do
  left=
  for file in "$1"/*/pid; do
    pid=$(cat "$file" 2>/dev/null) && grep -q "$1" "/proc/$pid/cmdline" 2>/dev/null && kill -TERM "$pid" && left=1
  done
  [ -z "$left" ] && break
  sleep 0.3
done
for at in $(grep -o " $1/[^ ]*" /proc/mounts | sort -r); do umount -l "$at"; done
rm -rf "$1"
"""


class Network:
    """A network namespace, which lasts as long as its process."""

    def __init__(self, world: Path) -> None:
        self.process = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep infinity"],
            stdout=subprocess.PIPE,
            env=os.environ | {"WORLD": str(world)},
            start_new_session=True,
        )
        with (world / "pids").open("a") as file:
            file.write(f"{self.process.pid}\n")
        assert self.process.stdout is not None and self.process.stdout.read(2) == b"up"
        self.path = f"/proc/{self.process.pid}/ns/net"

    def ip(self, *words: object) -> None:
        """Have ``ip`` do something in it."""
        subprocess.run(["nsenter", f"--net={self.path}", "ip", *map(str, words)], check=True, timeout=30)

    def join(self, switch: Network, name: str, address: str) -> None:
        """Connect it by a link ``eth0`` with that address to a switch, where the link has a name of its own."""
        pair = ["type", "veth", "peer", "name", "eth0", "netns", self.process.pid]
        switch.ip("link", "add", name, *pair)
        switch.ip("link", "set", name, "master", "switch", "up")
        self.ip("addr", "add", f"{address}/24", "dev", "eth0")
        self.ip("link", "set", "eth0", "up")

    @contextmanager
    def inside(self) -> Iterator[None]:
        """A context in which this thread, and what it starts, is in it."""
        libc, before = ctypes.CDLL(None, use_errno=True), os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(self.path, os.O_RDONLY)
        try:
            assert libc.setns(there, NEW_NETWORK) == 0, os.strerror(ctypes.get_errno())
            yield
        finally:
            assert libc.setns(before, NEW_NETWORK) == 0, os.strerror(ctypes.get_errno())
            os.close(there)
            os.close(before)


class ThreeHosts:
    """The world: ``coordinator`` is its network, ``networks`` are those of hosts, ``cluster`` their scheduler and workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster = Cluster(folder / "cluster")
        self.cluster.gone_after = 15
        self.addresses = {name: f"10.99.77.1{number}" for number, name in enumerate(HOSTS, 1)}
        make(self.cluster.folder / "tls", [COORDINATOR, *self.addresses.values()])
        self.switch, self.coordinator = Network(folder), Network(folder)
        self.networks = {name: Network(folder) for name in HOSTS}
        self.switch.ip("link", "add", "switch", "type", "bridge")
        self.switch.ip("link", "set", "switch", "up")
        self.coordinator.join(self.switch, "coordinator", COORDINATOR)
        for name, network in self.networks.items():
            network.join(self.switch, name, self.addresses[name])
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    def docker_host(self, name: str) -> str:
        """The address of a host's engine."""
        return f"unix://{self.folder / name / 'docker.sock'}"

    def start(self, engine: DockerEngine, ours: Sequence[ImageRef], software: ImageRef) -> None:
        """Start engines that have our own images and nothing else, the scheduler, and a worker on each host.

        The first is the coordinator's, too, which also has the image of the ``software``. The last lacks our second image: it is brought it.
        """
        first, *others = HOSTS
        self._start_engine(first)
        for image, own in zip(ours, IMAGES, strict=True):
            give_image(engine, image, self.docker_host(first), tag(own), self.folder)
        self._stop_engine(first)
        for name in others:
            self._copy(first, name)
        for name in HOSTS:
            self._start_engine(name)
        self._docker(HOSTS[-1], "rmi", tag(IMAGES[1]))
        give_image(engine, software, self.docker_host(first), "proctor-test/software:1", self.folder)
        self.cluster.address, self.cluster.certificates = (
            f"tls://{COORDINATOR}:0",
            self._certificates(COORDINATOR),
        )
        with self.coordinator.inside():
            self.cluster.start_scheduler()
        self._note(self.cluster.processes["scheduler"].pid)
        for name in HOSTS:
            self.start_worker(name)
        self.cluster.certificates = self._certificates(COORDINATOR)

    def start_worker(self, name: str) -> None:
        """Start the worker of a host, which is there when this returns."""
        self.cluster.certificates = self._certificates(self.addresses[name])
        (own := self.folder / name / "tmp").mkdir(exist_ok=True)
        with self.networks[name].inside():
            self.cluster.start_worker(name, self.docker_host(name), TMPDIR=str(own))
        self._note(self.cluster.processes[name].pid)
        self.cluster.certificates = self._certificates(COORDINATOR)

    def containers(self, name: str) -> list[str]:
        """What containers a host's engine has, whether or not they run."""
        return self._docker(name, "ps", "-aq")

    def softwares(self, name: str) -> set[str]:
        """The containers of softwares that run on a host."""
        return set(self._docker(name, "ps", "-q", "--filter", "label=proctor.role=software"))

    def outputs(self, name: str) -> list[str]:
        """The volumes of attempts that a host's engine has."""
        return self._docker(name, "volume", "ls", "-q", "--filter", "label=proctor.attempt")

    def go(self, name: str) -> None:
        """Let softwares go on that wait for the file /tmp/go on a host."""
        for container in self.softwares(name):
            command = ["docker", "-H", self.docker_host(name), "exec", container, "touch", "/tmp/go"]
            subprocess.run(command, capture_output=True, check=False, timeout=60)  # it may have ended

    def cut(self, name: str, *, off: bool) -> None:
        """Cut a host off from all others, or connect it again."""
        self.switch.ip("link", "set", name, "down" if off else "up")

    def _docker(self, name: str, *words: str) -> list[str]:
        command = ["docker", "-H", self.docker_host(name), *words]
        return subprocess.run(command, capture_output=True, check=True, timeout=60, text=True).stdout.split()

    def close(self) -> None:
        """End all of it."""
        self.cluster.close()
        for name in tuple(self.daemons):
            self._stop_engine(name)
        for network in (self.switch, self.coordinator, *self.networks.values()):
            network.process.kill()
            network.process.communicate()

    def _certificates(self, address: str) -> Path:
        return self.cluster.folder / "tls" / address

    def _note(self, pid: int) -> None:
        with (self.folder / "pids").open("a") as file:
            file.write(f"{pid}\n")

    def _start_engine(self, name: str) -> None:
        dockerd, own = daemon.which("dockerd"), self.folder / name
        assert dockerd is not None
        own.mkdir(exist_ok=True)
        command = [dockerd, f"--data-root={own}/data", f"--exec-root={own}/exec", f"--pidfile={own}/pid"]
        command += [
            "--host",
            self.docker_host(name),
            "--bridge=none",
            "--iptables=false",
            "--ip-forward=false",
        ]
        with self.networks[name].inside(), (own / "log").open("ab") as log:
            self.daemons[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        assert daemon.wait_for(self.docker_host(name), 120), (own / "log").read_text()[-4000:]

    def _stop_engine(self, name: str) -> None:
        process = self.daemons.pop(name)
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
            return
        process.kill()
        process.wait()

    def _copy(self, source: str, target: str) -> None:
        """What an engine that does not run has, for another one; layers, which nobody writes to, are the same files."""
        here, there = self.folder / source / "data", self.folder / target / "data"
        there.mkdir(parents=True)
        for path in here.iterdir():
            how = "-al" if path.name == "overlay2" else "-a"
            subprocess.run(["cp", how, path, there], check=True, timeout=120)


@contextmanager
def three_hosts(engine: DockerEngine, ours: Sequence[ImageRef], software: ImageRef) -> Iterator[ThreeHosts]:
    """Three hosts as :meth:`ThreeHosts.start` makes them, until the context ends; the test fails where they cannot be made."""
    tools = ("ip", "unshare", "nsenter", "dockerd", "docker")
    missing = [tool for tool in tools if daemon.which(tool) is None]
    if os.geteuid() != 0 or missing:
        pytest.fail(f"three hosts need root and these programs: {tools} (missing: {missing})")
    folder = Path(tempfile.mkdtemp(prefix="proctor-hosts-", dir=MEMORY if MEMORY.is_dir() else None))
    watcher = subprocess.Popen(
        ["sh", "-c", WATCH, "watch", str(folder), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with ExitStack() as ending:
        ending.callback(watcher.wait)
        ending.callback((folder / "over").touch)
        world = ThreeHosts(folder)
        ending.callback(world.close)
        world.start(engine, ours, software)
        yield world
    assert not folder.exists()
