"""Starting the server: what is said before anything is started."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.cli.serving import PAGE, TWO_USERS, address, check_address, check_installed
from runner.model.errors import RunnerError
from tests.worlds.mini import Project, call

SERVE = ("serve", "--bind", "127.0.0.1:0", "--url", "http://127.0.0.1:1")


@pytest.mark.parametrize("bind", ["", "8080", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", ":80"])
def test_what_is_no_address_is_said(bind: str) -> None:
    with pytest.raises(RunnerError, check=lambda error: error.code == "E101"):
        address(bind)


def test_who_listens_everywhere_says_by_which_name() -> None:
    for host in ("0.0.0.0:80", "[::]:80"):
        with pytest.raises(RunnerError) as error:
            check_address(host, None)
        assert "--url" in error.value.fix
        assert check_address(host, "https://task.example.org")[1] == 80
    for url in ("task.example.org", "ftp://x", "https://"):
        with pytest.raises(RunnerError):
            check_address("127.0.0.1:80", url)


def test_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_installed()
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(RunnerError) as error:
        check_installed()
    assert "uvicorn" in error.value.why and "web" in error.value.fix


def test_a_port_that_is_taken_is_named(project: Project, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        said = call(project, "front", "--bind", bind, "--exchange", str(tmp_path / "web"), expect=3)
    assert "E306" in said.err and bind in said.err


def test_the_page_that_serve_names_is_there() -> None:
    assert f"## {TWO_USERS}\n" in (Path(__file__).parents[3] / PAGE).read_text()


@pytest.mark.slow
def test_the_front_is_given_no_secret_of_the_environment(project: Project) -> None:
    """Model keys, the address of the engine and the folders of hidden data stay out."""
    names = ("OPENAI_API_KEY", "RUNNER_MAIL_PASSWORD", "AWS_SECRET_ACCESS_KEY")
    secrets = dict.fromkeys(names, "canary") | {"HTTPS_PROXY": "http://u:canary@127.0.0.1:9"}
    serve = project.start(*SERVE, TZ="UTC", **secrets)
    try:
        assert serve.stdout is not None and serve.stdout.readline().startswith("ready ")
        children = Path(f"/proc/{serve.pid}/task/{serve.pid}/children").read_text().split()
        has = {}
        for one in children:
            name = "front" if b"\0front\0" in Path(f"/proc/{one}/cmdline").read_bytes() else "work"
            text = Path(f"/proc/{one}/environ").read_text()
            has[name] = dict(line.partition("=")[::2] for line in text.split("\0") if line)
        assert has["work"].items() >= secrets.items(), "work asks models and sends mail"
        assert not any("canary" in value for value in has["front"].values())
        assert set(has["front"]) <= {"PATH", "HOME", "LANG", "TZ"}, has["front"]
        assert not has["front"].keys() & {"RUNNER_PRIVATE", "RUNNER_TRUTHS", "RUNNER_HOME", "DOCKER_HOST"}
    finally:
        serve.send_signal(signal.SIGTERM)
        out, err = serve.communicate(timeout=90)
    assert serve.returncode == 0 and "Traceback" not in err, out + err


# What runs behind the walls tries what its user may: it is the front of runner front, with a probe in the place of what loads the pages.
PROBE = """
import json, os, sys
from pathlib import Path
from runner.web import server
def probe():
    had = []
    for one in json.loads(os.environ["PROBED"]):
        try:
            Path(one).read_bytes()
        except OSError:
            continue
        had.append(one)
    print("had", json.dumps(had), flush=True)
    os._exit(0)
server.load = probe
from runner.cli.main import main
sys.argv = ["runner", "front", "--bind", "127.0.0.1:0", "--exchange", os.environ["EXCHANGE"]]
main()
"""


def test_behind_its_walls_the_front_reads_no_settings_nor_tasks_nor_secrets(project: Project) -> None:
    (project.root / "proctor.yaml").write_text("news: hour\n")
    project.home.mkdir(exist_ok=True)
    for name in ("events.jsonl", "accounts.sqlite", "link.key"):
        (project.home / name).write_text("canary")
    hidden = next(path for path in project.private.rglob("*") if path.is_file())
    probed = [
        *(project.root / "proctor.yaml", next(project.root.rglob("task.yaml")), hidden),
        *(project.home / name for name in ("events.jsonl", "accounts.sqlite", "link.key")),
        *(Path("/proc/self/environ"), Path("/proc/1/environ"), Path("/etc/shadow")),
    ]
    more = {"PROBED": json.dumps([str(one) for one in probed]), "EXCHANGE": str(project.config.exchange)}
    command, env = [sys.executable, "-c", PROBE], project.environment(**more)
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, cwd=project.root)
    assert done.stdout.splitlines()[-1:] == ["had []"], done.stdout + done.stderr


LEADER = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.executable, sys.argv[1:])"


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "end",
    [
        lambda serve, terminal: os.write(terminal, b"\x03"),  # as who sits there types them: Ctrl-C, Ctrl-\
        lambda serve, terminal: os.write(terminal, b"\x1c"),
        lambda serve, terminal: serve.send_signal(signal.SIGTERM),
        lambda serve, terminal: (serve.send_signal(signal.SIGHUP), serve.send_signal(signal.SIGTERM)),
    ],
    ids=["Ctrl-C", "Ctrl-backslash", "SIGTERM", "SIGHUP and SIGTERM"],
)
def test_the_front_has_no_terminal_and_ends_with_serve(
    project: Project, end: Callable[[subprocess.Popen[bytes], int], object]
) -> None:
    terminal, its = pty.openpty()
    command = [sys.executable, "-c", LEADER, sys.executable, "-m", "runner", *SERVE]
    env = project.environment()
    with subprocess.Popen(
        command, stdin=its, stdout=its, stderr=its, start_new_session=True, env=env
    ) as serve:
        try:
            os.close(its)
            _read_until(terminal, b"ready ")
            children = Path(f"/proc/{serve.pid}/task/{serve.pid}/children").read_text().split()
            [front] = [one for one in children if b"\0front\0" in Path(f"/proc/{one}/cmdline").read_bytes()]
            assert len(children) == 2
            assert os.readlink(f"/proc/{front}/fd/0") == os.devnull
            session, tty = Path(f"/proc/{front}/stat").read_text().rpartition(")")[2].split()[3:5]
            assert (session, tty) == (front, "0")
            end(serve, terminal)
            _read_until(terminal, b"ending work")
            assert serve.wait(60) == 0
            assert not [one for one in children if Path(f"/proc/{one}").exists()]
        finally:
            serve.kill()
            os.close(terminal)


def _read_until(terminal: int, wanted: bytes) -> None:
    said, last = b"", time.monotonic() + 60
    while wanted not in said:
        ready = select.select([terminal], [], [], max(0, last - time.monotonic()))[0]
        assert ready, said
        said += os.read(terminal, 4096)
