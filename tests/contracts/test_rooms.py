"""A room of several containers on the real engine: who can reach whom, seen from inside each of them.

One room serves most tests: a search server and a user behind Unix sockets, the relay, the software on the
relay's loopback, a driver, a gateway, and somebody else's session beside it.
"""

from __future__ import annotations

import errno
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from runner.engines import sandbox
from runner.engines.base import ContainerSpec, Mount, Role, Volume
from runner.engines.docker.engine import DockerEngine
from runner.engines.docker.handle import DockerHandle
from runner.engines.docker.session import DockerSession
from runner.model.container import ImageRef
from runner.model.errors import PlatformError
from runner.model.limits import MIB, Limits
from tests.contracts.conftest import wait_for_line, web_server

pytestmark = pytest.mark.engine

LIMITS = Limits(
    loopback=True,
    memory=128 * MIB,
    cpus=2,
    pids=128,
    wall_clock=120,
    output=MIB,
    tmp=4 * MIB,
    shm=MIB,
    log=256 * 1024,
)
PROBE = Path(__file__).with_name("room_probe.py").read_text(encoding="utf-8")
CHILDREN = 8

SERVE = """
import os, socket, socketserver, sys
from http.server import BaseHTTPRequestHandler
name, path = sys.argv[1:]
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\\0" + ("other-session" if name == "other" else "beside"))
abstract.listen()
if name == "other":
    loopback = socket.create_server(("127.0.0.1", 7777))  # as another team's software listens on its own
class Handler(BaseHTTPRequestHandler):
    def address_string(self): return "unix"
    def log_message(self, *_): pass
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(name.encode())
class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 128
server = Server(path, Handler)
os.chmod(path, 0o666)
print("ready", os.getuid(), flush=True)
server.serve_forever()
"""

# A driver that answers one question a line of its input file, because nothing can be written into a container.
DRIVE = """
import errno, json, os, socket, time
def get(path, query="/", seconds=20):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(seconds); s.connect(path); s.sendall(f"GET {query} HTTP/1.0\\r\\n\\r\\n".encode())
        data = b""
        while part := s.recv(65536): data += part
    return data.rpartition(b"\\r\\n")[2].decode()
def many(count, seconds):
    held = []
    for _ in range(count):
        s = socket.socket(socket.AF_UNIX); s.settimeout(seconds)
        try: s.connect("/sock/software.sock")
        except OSError: s.close(); break
        held.append(s)
    time.sleep(1)
    for s in held: s.close()
    return len(held)
def error(action):
    try: action()
    except OSError as e: return e.errno or -1
    return 0
print("ready", os.getuid(), flush=True)
number = 0
while True:
    path = f"/in/{number}"
    text = open(path).read() if os.path.exists(path) else ""
    # The engine makes the file first and fills it then: the line end says that all of it is there.
    if not text.endswith("\\n"): time.sleep(0.02); continue
    try: answer = eval(text)
    except Exception as e: answer = repr(e)
    print(json.dumps([number, answer]), flush=True)
    number += 1
"""


ASK_GATEWAY = """
import os, socket
s = socket.socket(socket.AF_UNIX); s.connect("/gateway/gateway.sock")
s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); data = b""
while part := s.recv(4096): data += part
print(data[-7:].decode(), os.listdir("/sys/class/net"))
"""


@dataclass
class Room:
    """A running room; :meth:`ask` has its driver evaluate an expression."""

    session: DockerSession
    attempt: str
    api: Any
    given: Volume
    handles: dict[str, DockerHandle] = field(default_factory=dict)
    specs: dict[str, ContainerSpec] = field(default_factory=dict)
    asked: int = 0

    def start(
        self, name: str, role: Role, image: ImageRef, words: tuple[str, ...], *mounts: Mount, **more: Any
    ) -> DockerHandle:
        self.specs[name] = ContainerSpec(role, image, words, LIMITS, mounts, **more)
        self.handles[name] = self.session.start(self.specs[name])
        return self.handles[name]

    def ask(self, expression: str) -> Any:
        self.session.copy_in(self.given, {str(self.asked): f"{expression}\n".encode()})
        self.asked += 1
        text = wait_for_line(self.handles["driver"], f"[{self.asked - 1}, ")
        return json.loads(text)[1]

    def uid(self, name: str) -> int:
        return int(self.api.inspect_container(self.handles[name].id)["Config"]["User"].split(":")[0])


@pytest.fixture(scope="module")
def outside(gateway_network: tuple[str, str]) -> Iterator[tuple[str, int]]:
    """A server of this machine in the gateway's network."""
    with web_server(b"outside", gateway_network[1]) as server:
        yield gateway_network[1], server.port


@pytest.fixture(scope="module")
def room(
    engine: DockerEngine,
    scratch_image: ImageRef,
    sidecars_image: ImageRef,
    gateway_network: tuple[str, str],
    outside: tuple[str, int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Room]:
    name = f"test-room-{tmp_path_factory.mktemp('room').parent.name}-{time.time_ns()}-1"
    serve = ("python3", "-c", SERVE)
    with ExitStack() as stack:
        other = stack.enter_context(engine.session(name + "0"))
        session = stack.enter_context(engine.session(name))
        given = session.output_volume("in", bytes=MIB, inodes=64, owner="sidecar")
        hops = {hop: session.socket_volume(hop) for hop in ("sock", "search", "user", "gateway")}
        room = Room(session, name, engine.clients.get(), given)
        theirs = other.socket_volume("user")
        command = (*serve, "other", "/user/user.sock")
        mounts = (Mount(theirs, "/user", read_only=False),)
        foreign = other.start(ContainerSpec("sidecar", scratch_image, command, LIMITS, mounts))
        for which, role in (("search", "sidecar"), ("user", "sidecar"), ("gateway", "gateway")):
            words = (*serve, which, f"/{which}/{which}.sock")
            mount = Mount(hops[which], f"/{which}", read_only=False)
            more = {"network": gateway_network[0]} if which == "gateway" else {}
            room.start(which, role, scratch_image, words, mount, **more)
        relay = room.start(
            "relay",
            "sidecar",
            sidecars_image,
            ("python3", "-m", "sidecars.relay", "--listen-socket", "/sock/software.sock", "--to-port", "8080",
             "--listen-port", "9200", "--to-socket", "/search/search.sock", "--max-children", str(CHILDREN)),
            Mount(hops["sock"], "/sock", read_only=False),
            Mount(hops["search"], "/search"),
        )  # fmt: skip
        for handle in (foreign, *room.handles.values()):
            wait_for_line(handle, "ready")
        room.start("software", "software", scratch_image, ("python3", "-c", PROBE, outside[0]), join=relay)
        room.start(
            "driver", "sidecar", scratch_image, ("python3", "-c", DRIVE),
            Mount(given, "/in"), Mount(hops["sock"], "/sock"), Mount(hops["user"], "/user"),
        )  # fmt: skip
        yield room


@pytest.fixture(scope="module")
def seen(room: Room) -> dict[str, Any]:
    """What the software found out about its surroundings."""
    found: dict[str, Any] = json.loads(wait_for_line(room.handles["software"], "{"))
    return found


def test_the_software_reaches_its_own_port_and_the_search_and_nothing_else(
    seen: dict[str, Any], outside: tuple[str, int]
) -> None:
    assert seen["interfaces"] == ["lo"]
    assert outside[0] in seen["connect"]
    for way in ("connect", "datagram"):
        assert set(seen[way].values()) == {errno.ENETUNREACH}, seen[way]
    assert seen["dns"] == "gaierror"
    assert seen["open_ports"] == [8080, 9200]
    assert seen["search"] == "search"
    assert seen["take_search_port"] == errno.EADDRINUSE


def test_the_software_finds_no_socket_and_no_process_of_others(seen: dict[str, Any]) -> None:
    assert 7777 not in seen["open_ports"]  # another session's loopback is another loopback
    assert seen["sockets"] == []
    assert seen["abstract"] == []
    assert seen["other_session"] == seen["beside"] == errno.ECONNREFUSED
    # The kernel tells the name of the relay's socket, and a name is all it is.
    assert set(seen["named"].values()) <= {errno.ENOENT}, seen["named"]
    assert not {"/sock", "/search", "/user", "/gateway"} & set(seen["mounts"])
    assert {name for name in seen["processes"] if "init" not in name and "python" not in name} == set()
    assert len(seen["processes"]) == 2


@pytest.mark.slow
def test_the_driver_reaches_the_software_and_the_user_also_with_long_and_late_answers(
    room: Room, seen: dict[str, Any]
) -> None:
    assert room.ask("get('/sock/software.sock')") == "software"
    assert room.ask("get('/sock/software.sock', '/search')") == "search"
    assert room.ask("get('/user/user.sock')") == "user"
    assert room.ask("os.listdir('/sys/class/net')") == ["lo"]
    assert room.ask("len(get('/sock/software.sock', '/big'))") == 10 << 20
    assert room.ask("get('/sock/software.sock', '/slow')") == "software"
    assert room.ask("[get('/sock/software.sock') for _ in range(100)].count('software')") == 100


def test_the_driver_neither_reaches_nor_changes_what_belongs_to_others(
    room: Room, outside: tuple[str, int]
) -> None:
    for port in (8080, 9200):
        answer = room.ask(f"error(lambda: socket.create_connection(('127.0.0.1', {port}), 1))")
        assert answer == errno.ECONNREFUSED
    unreachable = room.ask(f"error(lambda: socket.create_connection({outside!r}, 1))")
    assert unreachable == errno.ENETUNREACH
    assert room.ask("[os.path.exists(p) for p in ('/search', '/gateway')]") == [False, False]
    for action in (
        "os.unlink('/sock/software.sock')",
        "os.chmod('/sock/software.sock', 0)",
        "open('/sock/x', 'w')",
        "os.rename('/user/user.sock', '/user/x')",
        "open('/in/x', 'w')",
    ):
        assert room.ask(f"error(lambda: {action})") == errno.EROFS


def test_software_and_sidecars_are_different_users(room: Room, seen: dict[str, Any]) -> None:
    assert seen["uid"] == room.uid("software") == room.session.uid
    for name in ("relay", "search", "user", "gateway", "driver"):
        assert room.uid(name) == room.session.sidecar_uid != seen["uid"]


@pytest.mark.parametrize("name", ["software", "relay", "search", "user", "gateway", "driver"])
def test_every_wall_is_on_every_container(room: Room, gateway_network: tuple[str, str], name: str) -> None:
    facts = room.api.inspect_container(room.handles[name].id)
    spec = room.specs[name]
    joined = room.handles["relay"].id if spec.join is not None else None
    body = sandbox.container_options(spec, 1, joined=joined)
    wanted = {k: v for k, v in body["HostConfig"].items() if k not in ("Mounts", "CgroupParent")}
    host = facts["HostConfig"]
    assert {k: host[k] for k in wanted} == wanted
    network = {"software": f"container:{joined}", "gateway": gateway_network[0]}.get(name, "none")
    assert host["NetworkMode"] == network
    assert set(facts["NetworkSettings"]["Networks"] or {}) == (set() if joined else {network})
    assert not facts["NetworkSettings"]["Ports"] and not host["PortBindings"]
    assert host["Binds"] in (None, []) and not host["Privileged"] and not host["Devices"]
    assert (host["CapDrop"], host["CapAdd"], host["ReadonlyRootfs"]) == (["ALL"], None, True)
    assert "no-new-privileges" in host["SecurityOpt"]
    assert any(o.startswith("seccomp=") for o in host["SecurityOpt"]) == sandbox.own_seccomp("x86_64")
    assert host["PidMode"] == "" and host["UTSMode"] == "" and host["IpcMode"] == "none"
    writable = {m["Destination"] for m in facts["Mounts"] if m["RW"]}
    served = {"relay": {"/sock"}, "search": {"/search"}, "user": {"/user"}, "gateway": {"/gateway"}}
    assert writable == served.get(name, set())
    assert facts["Config"]["Labels"]["proctor.role"] == spec.role


@pytest.mark.slow
def test_a_flood_of_connections_blocks_only_its_sender(room: Room, seen: dict[str, Any]) -> None:
    held, _ = json.loads(room.ask("get('/sock/software.sock', '/flood')"))
    assert held > CHILDREN
    processes = room.api.top(room.handles["relay"].id)["Processes"]
    assert len(processes) <= 2 + 2 * (CHILDREN + 1) + 1
    # The way from the driver to the software is another one.
    assert room.ask("get('/sock/software.sock')") == "software"
    end = time.monotonic() + 60
    while room.ask("get('/sock/software.sock', '/search')") != "search":  # until the software gives up
        assert time.monotonic() < end
    # A flood from the driver is bounded, too.
    assert room.ask("many(200, 0.2)") > CHILDREN
    assert room.ask("get('/sock/software.sock')") == "software"
    assert not room.handles["relay"].ended()


def test_the_gateway_reaches_the_outside_and_nobody_reaches_the_gateway(
    room: Room,
    engine: DockerEngine,
    scratch_image: ImageRef,
    gateway_network: tuple[str, str],
    outside: tuple[str, int],
    attempt: str,
) -> None:
    url = f"http://{outside[0]}:{outside[1]}/"
    fetch = f"import urllib.request; print(urllib.request.urlopen({url!r}, timeout=60).read().decode())"
    with engine.session(attempt) as session:
        spec = ContainerSpec(
            "gateway", scratch_image, ("python3", "-c", fetch), LIMITS, network=gateway_network[0]
        )
        handle = session.start(spec)
        ended = handle.wait(120)
        assert (ended.code, handle.logs("stdout", 99)) == (0, b"outside\n"), handle.logs("stderr", 5000)
        # An evaluator talks to it over its socket alone.
        hop = session.socket_volume("gateway")
        command = ("python3", "-c", SERVE, "gateway", "/gateway/gateway.sock")
        mounts = (Mount(hop, "/gateway", False),)
        server = session.start(replace(spec, command=command, mounts=mounts))
        wait_for_line(server, "ready")
        mounts = (Mount(hop, "/gateway"),)
        judge = session.start(
            ContainerSpec("evaluator", scratch_image, ("python3", "-c", ASK_GATEWAY), LIMITS, mounts)
        )
        assert judge.wait(120).code == 0
        assert judge.logs("stdout", 99) == b"gateway ['lo']\n"


def test_the_machines_own_network(engine: DockerEngine, scratch_image: ImageRef, attempt: str) -> None:
    """For engines whose bridge leads nowhere. Engines with user namespaces refuse it."""
    if engine.user_namespaces:
        return
    with engine.session(attempt) as session:
        spec = ContainerSpec("gateway", scratch_image, ("ls", "/sys/class/net"), LIMITS, network="host")
        handle = session.start(spec)
        facts = engine.clients.get().inspect_container(handle.id)
        assert handle.wait(100).code == 0
        links = handle.logs("stdout", 9999).decode().split()
    assert facts["HostConfig"]["NetworkMode"] == "host" and facts["HostConfig"]["CapDrop"] == ["ALL"]
    assert not engine.local or set(links) >= {"lo"}


def test_a_missing_network_is_an_error(engine: DockerEngine, scratch_image: ImageRef, attempt: str) -> None:
    with engine.session(attempt) as session:
        spec = ContainerSpec("gateway", scratch_image, ("true",), LIMITS, network="proctor-no-such-network")
        with pytest.raises(PlatformError) as caught:
            session.start(spec)
    assert caught.value.code == "E305" and "network" in caught.value.what


def test_the_relay_outlives_the_software(room: Room, seen: dict[str, Any]) -> None:
    """Near the end, because the room has no software afterwards."""
    room.ask("error(lambda: get('/sock/software.sock', '/end'))")
    assert room.handles["software"].wait(100).code == 5
    assert not room.handles["relay"].ended()
    begun = time.monotonic()
    answer = room.ask("get('/sock/software.sock')")
    assert answer == "" or str(errno.ECONNRESET) in answer
    assert time.monotonic() - begun < 40


def test_leaving_removes_everything(
    engine: DockerEngine, scratch_image: ImageRef, sidecars_image: ImageRef, attempt: str
) -> None:
    api = engine.clients.get()
    filters = {"label": [f"proctor.attempt={attempt}"]}
    with pytest.raises(ZeroDivisionError), engine.session(attempt) as session:
        hop = session.socket_volume("sock")
        command = ("python3", "-m", "sidecars.relay", "--listen-socket", "/sock/s", "--to-port", "8080")
        relay = session.start(
            ContainerSpec("sidecar", sidecars_image, command, LIMITS, (Mount(hop, "/sock", False),))
        )
        wait_for_line(relay, "ready")
        session.start(ContainerSpec("software", scratch_image, ("sleep", "60"), LIMITS, join=relay))
        assert len(api.containers(all=True, filters=filters)) == 3 - engine.mounts_memory
        raise ZeroDivisionError
    assert api.containers(all=True, filters=filters) == []
    assert not api.volumes(filters=filters).get("Volumes")


def test_following_a_silent_container_can_be_ended_by_another_thread(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str
) -> None:
    cuts, said = Queue[Callable[[], None]](), Queue[bytes]()

    def follow() -> None:
        with suppress(PlatformError):
            for piece in engine.follow(attempt, cuts.put):
                said.put(piece)

    with engine.session(attempt) as session:
        silent = ("python3", "-c", "import time; print('said', flush=True); time.sleep(600)")
        wait_for_line(session.start(ContainerSpec("software", scratch_image, silent, LIMITS)), "said")
        following = threading.Thread(target=follow, daemon=True)
        following.start()
        cut = cuts.get(timeout=60)
        assert said.get(timeout=60) == b"said\n"
        cut()
        following.join(60)
        assert not following.is_alive()


@pytest.mark.slow
def test_following_is_about_the_software(engine: DockerEngine, scratch_image: ImageRef, attempt: str) -> None:
    with engine.session(attempt) as session:
        say = "print({!r}, flush=True); import time; time.sleep(2)"

        def start(role: Role, text: str, **more: Any) -> DockerHandle:
            command = ("python3", "-c", say.format(text))
            return session.start(ContainerSpec(role, scratch_image, command, LIMITS, **more))

        sidecar = start("sidecar", "beside")
        wait_for_line(sidecar, "beside")
        start("software", "mine", join=sidecar)
        start("sidecar", "later")
        assert b"".join(engine.follow(attempt)) == b"mine\n"
