"""The relay's own part: what it refuses, how it watches its socats. That bytes go through is shown in tests/contracts."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sidecars import relay
from tests.worlds.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
Start = Callable[..., subprocess.Popen[str]]

# Stands for socat: listens where it is told to, and behaves as its folder says.
STAND_IN = """#!{python}
import os, pathlib, socket, sys, time
here = pathlib.Path(__file__).parent
listen, to = sys.argv[-2:]
here.joinpath("calls").open("a").write(" ".join(sys.argv[1:]) + "\\n")
kind, _, rest = listen.partition(":")
address, options = rest.split(",")[0], rest.split(",")[1:]
if here.joinpath("silent").exists():
    time.sleep(60)
if here.joinpath("loud").exists():
    for n in range(5000): print("line", n, file=sys.stderr)
if kind == "UNIX-LISTEN":
    s = socket.socket(socket.AF_UNIX); s.bind(address); os.chmod(address, 0o666)
else:
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", int(address)))
s.listen()
if os.fork() == 0:
    here.joinpath("child").write_text(str(os.getpid())); time.sleep(60)
if here.joinpath("dies").exists():
    while not here.joinpath("now").exists(): time.sleep(0.02)
    sys.exit(9)
time.sleep(60)
"""


@pytest.fixture
def folder(short_folder: Path) -> Path:
    """A folder with the stand-in."""
    short_folder.joinpath("socat").write_text(STAND_IN.replace("{python}", sys.executable))
    short_folder.joinpath("socat").chmod(0o755)
    return short_folder


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def go(*arguments: str, ready: bool = False) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "sidecars.relay", *arguments],
            cwd=ROOT,
            env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        if ready:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
        return process

    yield go
    for process in started:
        process.kill()
        process.wait(60)
    child = folder / "child"
    pid = child.read_text() if child.exists() else ""
    end = time.monotonic() + 60
    while pid and lives(int(pid)):  # what served a connection ends with the relay
        assert time.monotonic() < end
        time.sleep(0.02)


def lives(pid: int) -> bool:
    """Whether the process is there; one that has ended and was not collected is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("", ""),
        ("--listen-socket /s", "--to-port"),
        ("--to-port 80", "--listen-socket"),
        ("--listen-port 80", "--to-socket"),
        ("--to-socket /s", "--listen-port"),
        ("--listen-socket /s --to-port 0", "0"),
        ("--listen-port 65536 --to-socket /s", "65536"),
        ("--listen-socket s --to-port 80", "path"),
        ("--listen-socket /s,mode=0777 --to-port 80", "path"),
        ("--listen-port 80 --to-socket /s!!EXEC:sh", "path"),
        ("--listen-port 80 --to-socket /a:b", "path"),
        ("--listen-socket /s --to-port 80 --listen-port 80 --to-socket /t", "port"),
        ("--listen-socket /s --to-port 80 --max-children 0", "--max-children"),
        ("--listen-socket /s --to-port 80 --idle 0", "--idle"),
    ],
)
def test_arguments_that_are_refused(arguments: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert relay.main(arguments.split()) == 2
    captured = capsys.readouterr()
    assert named in captured.err and captured.err and captured.out == ""


def test_both_directions_are_relayed_until_the_signal(folder: Path, start: Start) -> None:
    port = free_port()
    listening = folder / "software.sock"
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(listening))  # what a killed relay left
    process = start(
        "--listen-socket", str(listening), "--to-port", "8080",
        "--listen-port", str(port), "--to-socket", "/search/search.sock", "--max-children", "7", "--idle", "90",
        ready=True,
    )  # fmt: skip
    assert stat.S_IMODE(listening.stat().st_mode) == 0o666
    calls = folder.joinpath("calls").read_text().splitlines()
    assert len(calls) == 2 and all("fork,max-children=7," in call and "-T 90 " in call for call in calls)
    (out,) = (call for call in calls if "UNIX-LISTEN" in call)
    assert f"UNIX-LISTEN:{listening}," in out and "TCP4:127.0.0.1:8080," in out
    (back,) = (call for call in calls if "TCP4-LISTEN" in call)
    assert f"TCP4-LISTEN:{port},bind=127.0.0.1," in back and back.endswith("UNIX-CONNECT:/search/search.sock")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def test_a_socat_that_ends_ends_the_relay(folder: Path, start: Start) -> None:
    folder.joinpath("dies").touch()
    process = start("--listen-socket", str(folder / "s"), "--to-port", "8080", ready=True)
    folder.joinpath("now").touch()
    assert process.wait(60) == 1
    assert process.stderr is not None and "code 9" in process.stderr.read()


@pytest.mark.parametrize("taken", ["port", "socket"])
def test_a_place_that_is_taken_is_kept_and_ends_the_relay(folder: Path, start: Start, taken: str) -> None:
    folder.joinpath("s").write_text("precious")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        by_port = ("--listen-port", port, "--to-socket", "/s")
        by_socket = ("--listen-socket", str(folder / "s"), "--to-port", "8080")
        process = start(*(by_port if taken == "port" else by_socket))
        assert process.wait(60) == 1
    assert process.stdout is not None and process.stdout.read() == ""
    assert folder.joinpath("s").read_text() == "precious"


def test_the_relay_ends_when_nothing_listens(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.joinpath("silent").touch()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(relay, "START_SECONDS", 0.3)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        assert relay.main(["--listen-socket", str(folder / "s"), "--to-port", "8080"]) == 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_the_output_of_socat_is_cut(folder: Path, start: Start) -> None:
    folder.joinpath("loud").touch()
    process = start("--listen-socket", str(folder / "s"), "--to-port", "8080", ready=True)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(said.splitlines()) == relay.LINES + 1


def test_the_relay_needs_socat(folder: Path) -> None:
    empty = folder / "empty"
    empty.mkdir()
    os.symlink(sys.executable, empty / "python3")
    done = subprocess.run(
        [sys.executable, "-m", "sidecars.relay", "--listen-socket", str(folder / "s"), "--to-port", "8080"],
        cwd=ROOT, env={"PATH": str(empty)}, capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip
    assert shutil.which("socat", path=str(empty)) is None
    assert done.returncode == 1 and "socat" in done.stderr
