"""docs/how-to/serve.md followed as it stands, by two real users of the system, which are removed afterwards.

Only places and names are others: everything under one folder, users that nobody else has. Python and this tree may lie in
a folder that other users cannot enter; for the processes of the test, in a mount namespace of their own, they can.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.e2e.test_server import until
from tests.e2e.test_uploads_scored import run_text
from tests.worlds.mini import Project
from tests.worlds.ports import free_port
from tests.worlds.proxy import proxy

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/serve.md").read_text("utf-8")
RUNNER = "/opt/proctor/.venv/bin/runner"
# Folders that others cannot enter are replaced by empty ones that have only what is needed.
ENTER = """set -eu
stage=$(mktemp -d) ; mount -t tmpfs -o mode=755 none "$stage" ; n=0
for one in $NEEDED; do n=$((n+1)); mkdir "$stage/$n"; mount --bind "$one" "$stage/$n"; done
for one in $CLOSED; do mount -t tmpfs -o mode=755 none "$one"; done
n=0
for one in $NEEDED; do n=$((n+1)); mkdir -p "$one"; mount --bind "$stage/$n" "$one"; done
exec "$@"
"""


def code(after: str, at: int = 0) -> str:
    """A block of the page behind a heading."""
    found = re.findall(r"```\n(.*?)```", PAGE[PAGE.index(after) :], re.S)
    return found[at]


@dataclass
class Machine:
    """A machine with the two users; ``base`` stands for its root folder."""

    base: Path
    suffix: str

    def here(self, text: str) -> str:
        """A text of the page with the places and users of this test."""
        text = re.sub(r"(?<![\w/.])/(srv|var/lib)/", rf"{self.base}/\1/", text)
        text = re.sub(r"proctor-(work|front)\b(?!\.service)", rf"p\1{self.suffix}", text)
        return text.replace("/usr/sbin/nologin", "/bin/sh")

    def user(self, who: str) -> str:
        return f"p{who}{self.suffix}"

    def command(self, who: str, command: list[str]) -> list[str]:
        """A command as one of the users, without anything that root has."""
        needed = sorted({Path(sys.base_prefix), Path(sys.prefix), ROOT}, key=lambda path: len(path.parts))
        closed = sorted({str(c) for one in needed if (c := closed_above(one)) is not None})
        text = (
            f"NEEDED={shlex.quote(' '.join(map(str, needed)))}; CLOSED={shlex.quote(' '.join(closed))}\n"
            + ENTER
        )
        enter = ["unshare", "--mount", "--propagation", "private", "sh", "-c", text, "enter"]
        rights = ["setpriv", f"--reuid={self.user(who)}", f"--regid={self.user(who)}", "--init-groups"]
        return [*enter, *rights, "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", *command]

    def environment(self, **more: str) -> dict[str, str]:
        # Byte code is not written where others have put theirs.
        path = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        return {**path, "LANG": "C.UTF-8", **more}

    def run(self, who: str, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(who, [*command]),
            env=self.environment(**more),
            cwd=self.base / "srv/proctor" if who == "work" else "/",
            capture_output=True,
            text=True,
            timeout=120,
        )


def closed_above(path: Path) -> Path | None:
    """The topmost folder above that others cannot enter."""
    return next((one for one in reversed(path.parents) if not one.stat().st_mode & 0o001), None)


@pytest.fixture
def machine() -> Iterator[Machine]:
    assert os.getuid() == 0, "this test makes users: run it as root"
    made = Machine(Path(tempfile.mkdtemp(prefix="two-users-")), f"-t{os.getpid()}")
    made.base.chmod(0o755)
    try:
        for line in code("## On a server: two users").splitlines():
            subprocess.run(shlex.split(made.here(line)), check=True, capture_output=True)
        yield made
    finally:
        for who in ("work", "front"):
            subprocess.run(["userdel", made.user(who)], check=False, capture_output=True)
        shutil.rmtree(made.base)


def settled(machine: Machine, live: Project) -> Path:
    """The project and what is hidden where the page says, with the settings of the page; all of it the user's who works."""
    base, project = machine.base, machine.base / "srv/proctor"
    shutil.copytree(live.root, project, dirs_exist_ok=True)
    owned = [project, base / "srv/proctor-private", base / "srv/proctor-truths"]
    for source, place in zip((live.private, live.truths), owned[1:], strict=True):
        shutil.copytree(source, place)
    settings = machine.here(code("## On a server: two users", 1))
    more = f"truths: {owned[2]}\nengine_for: both-without-eviction\n"
    (project / "proctor.yaml").write_text(settings + more)
    subprocess.run(["chown", "-R", f"{machine.user('work')}:", *owned], check=True)
    for path in owned:
        path.chmod(0o700)
    return project


def umask_of(who: str) -> int:
    """What the unit of work or of the front says."""
    found = re.search(r"^UMask=([0-7]+)$", (ROOT / f"deploy/proctor-{who}.service").read_text(), re.M)
    assert found
    return int(found[1], 8)


@contextmanager
def started(machine: Machine, port: int, env: dict[str, str]) -> Iterator[list[subprocess.Popen[str]]]:
    """The two processes, by the lines of the page."""
    lines = machine.here(code("Both users start one process each")).splitlines()
    found = []
    with ExitStack() as stack:
        for line, who in zip(lines, ("work", "front"), strict=True):
            parts = re.fullmatch(rf"cd (\S+) && sudo -u {machine.user(who)} {RUNNER} (.+)", line)
            assert parts, line
            command = parts[2].replace("127.0.0.1:8080", f"127.0.0.1:{port}")
            command = command.replace("https://task.example.org", f"http://127.0.0.1:{port}")
            process = subprocess.Popen(
                machine.command(who, [sys.executable, "-m", "runner", *command.split()]),
                env=machine.environment(**(env if who == "work" else {})),
                cwd=parts[1],
                umask=umask_of(who),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            stack.callback(process.kill)
            found.append(process)
        yield found


@pytest.mark.slow
def test_the_page_leads_to_a_server_whose_front_can_read_nothing_of_works(
    machine: Machine, live: Project
) -> None:
    live.write_task(uploads=True)
    project, port = settled(machine, live), free_port()
    base, url = machine.base, f"http://127.0.0.1:{port}"
    with (
        proxy(live.docker_host.removeprefix("unix://")) as engine,
        httpx2.Client(base_url=url, trust_env=False, timeout=30) as client,
    ):
        env = {"DOCKER_HOST": f"tcp://127.0.0.1:{engine.port}", "RUNNER_BASES": live.image}
        with started(machine, port, env) as processes:

            def shown(path: str, text: str) -> bool:
                assert all(process.poll() is None for process in processes)
                try:
                    return text in client.get(path).text
                except httpx2.TransportError:
                    return False

            until(lambda: shown("/", "Mini"))
            added = machine.run("work", sys.executable, "-m", "runner", "team", "add", "alpha", **env)
            assert added.returncode == 0, added.stderr
            client.headers["authorization"] = f"Bearer {added.stdout.strip()}"
            until(lambda: client.get("/team").status_code == 200)
            file, fields = (
                {"file": ("run.txt", run_text("test", "one"))},
                {"software": "one", "dataset": "test"},
            )
            assert client.post("/tasks/mini/hand-in", data=fields, files=file).status_code == 202
            until(lambda: shown("/team", "scored"))
            until(lambda: not list((base / "srv/task/inbox").glob("[0-9]*")))
            for process in processes:
                process.send_signal(signal.SIGTERM)
            said = [process.communicate(timeout=60)[0] for process in processes]
            assert [process.returncode for process in processes] == [0, 0], said
            assert "Traceback" not in str(said), said
    hidden = ("srv/proctor-private", "srv/proctor-truths", f"var/lib/{machine.user('work')}")
    for place in (project, *(base / one for one in hidden)):
        assert place.is_dir() and machine.run("work", "ls", str(place)).returncode == 0
        looked = machine.run("front", "ls", str(place))
        assert looked.returncode != 0 and "Permission denied" in looked.stderr, place
    for name in ("access.json", "current.json"):
        assert machine.run("front", "test", "-r", f"{base}/srv/task/published/{name}").returncode == 0
        assert machine.run("front", "test", "-w", f"{base}/srv/task/published/{name}").returncode != 0
    assert machine.run("front", "test", "-w", f"{base}/srv/task/published").returncode != 0
