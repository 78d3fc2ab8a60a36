"""The way from a bare machine to a ready one: finding an engine, our own daemon, base image, wheels, images."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import signal
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from runner.model.config import Config
from runner.model.errors import PlatformError, RunnerError
from runner.provision import api, base, daemon, engine, images

ROOT = Path(__file__).resolve().parents[3]


class Stub:
    """An engine's API with canned answers on a Unix socket; remembers what it was asked."""

    def __init__(self, folder: Path, name: str = "e.sock") -> None:
        stub = self
        self.images: dict[str, dict[str, Any]] = {}
        self.pull_error = "no such host"
        self.asked: list[str] = []
        self.body = b""

        class Handler(BaseHTTPRequestHandler):
            def address_string(self) -> str:
                return "stub"

            def log_message(self, format: str, *args: object) -> None:
                return

            def reply(self, status: int, answer: object) -> None:
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self) -> None:
                stub.asked.append(f"GET {self.path}")
                if self.path == "/_ping":
                    self.reply(200, "OK")
                elif self.path == "/version":
                    self.reply(200, {"Arch": "amd64"})
                elif self.path.startswith("/images/"):
                    found = stub.images.get(self.path[len("/images/") : -len("/json")])
                    self.reply(200 if found else 404, found or {"message": "none"})
                else:
                    self.reply(500, {"message": "no"})

            def do_POST(self) -> None:
                stub.asked.append(f"POST {self.path}")
                if "fromSrc" in self.path:
                    while size := int(self.rfile.readline(), 16):
                        stub.body += self.rfile.read(size)
                        self.rfile.readline()
                    query = parse_qs(urlsplit(self.path).query)
                    labels = dict(
                        change.removeprefix("LABEL ").replace('"', "").split("=", 1)
                        for change in query["changes"]
                        if change.startswith("LABEL ")
                    )
                    stub.images[base.LOCAL_IMAGE] = {"Id": "sha256:1", "Config": {"Labels": labels}}
                    self.reply(200, {"status": "sha256:1"})
                elif stub.pull_error:
                    self.reply(200, {"error": stub.pull_error})
                else:
                    stub.images[base.REGISTRY_IMAGE] = {"Id": "sha256:2"}
                    self.reply(200, {"status": "Pulled"})

        self.path = folder / name
        self.server = socketserver.ThreadingUnixStreamServer(str(self.path), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients may hang up early
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    @property
    def host(self) -> str:
        return f"unix://{self.path}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which nothing answers and nothing is configured."""
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "no-docker-config"))
    monkeypatch.setattr(engine, "DEFAULT_SOCKET", f"unix://{tmp_path}/absent.sock")


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a path short enough for a socket."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="s", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def stub(short: Path) -> Iterator[Stub]:
    server = Stub(short)
    yield server
    server.close()


def make_config(home: Path, base_image: str = "auto") -> Config:
    return Config(root=ROOT, home=home, truths=None, base_image=base_image)


# Which engine


def test_the_environment_wins(
    bare: None, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "DEFAULT_SOCKET", stub.host)
    assert engine.docker_host(make_config(tmp_path)) == stub.host
    monkeypatch.setenv("DOCKER_HOST", "unix:///elsewhere.sock")
    assert engine.docker_host(make_config(tmp_path)) == "unix:///elsewhere.sock"


def test_the_current_docker_context_is_used(
    bare: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "docker"
    meta = settings / "contexts" / "meta" / hashlib.sha256(b"lab").hexdigest() / "meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"Endpoints": {"docker": {"Host": "unix:///lab.sock"}}}))
    (settings / "config.json").write_text(json.dumps({"currentContext": "lab"}))
    monkeypatch.setenv("DOCKER_CONFIG", str(settings))
    assert engine.docker_host(make_config(tmp_path)) == "unix:///lab.sock"
    monkeypatch.setenv("DOCKER_CONTEXT", "default")
    assert engine.docker_host(make_config(tmp_path)) is None
    monkeypatch.delenv("DOCKER_CONTEXT")
    (settings / "config.json").write_text("[]")
    assert engine.docker_host(make_config(tmp_path)) is None


def test_no_engine_is_none_and_an_address_that_is_silent_is_an_error(
    bare: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(tmp_path)
    assert engine.docker_host(config) is None
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(PlatformError) as caught:
        engine.ensure_engine(config, print)
    assert caught.value.code == "E301"
    assert "DOCKER_HOST" in caught.value.fix


def test_an_ordinary_user_is_told_what_to_do(
    bare: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PlatformError) as caught:
        engine.ensure_engine(make_config(tmp_path), print)
    assert caught.value.code == "E301"
    assert "usermod" in caught.value.fix
    assert not (tmp_path / "engine").exists(), "nothing is left half-done"


def test_a_machine_that_is_no_debian_is_told_what_to_do(
    bare: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(daemon, "which", lambda tool: None)
    monkeypatch.setattr(engine, "_debian_like", lambda: False)
    with pytest.raises(PlatformError) as caught:
        engine.ensure_engine(make_config(tmp_path), print)
    assert caught.value.code == "E301"
    assert "docs.docker.com" in caught.value.fix


def test_the_socket_path_fits_however_long_the_data_directory_is(tmp_path: Path) -> None:
    own = daemon.own_engine(tmp_path / ("long" * 50) / "home")
    assert len(own.host.removeprefix("unix://")) < 50
    assert len(str(own.runtime / "exec" / "containerd" / "containerd-debug.sock")) < 107
    assert len(own.bridge) <= 15
    assert own.host != daemon.own_engine(tmp_path / "other").host


# Our own daemon


def end_it_if_this_test_is_killed(own: daemon.OwnEngine) -> None:
    """The daemon is made to outlive its starter, so a killed test needs somebody else to end it."""
    script = 'while kill -0 "$1" 2>/dev/null; do sleep 0.5; done; kill "$(cat "$2")"'
    own.folder.mkdir(parents=True)
    subprocess.Popen(
        ["sh", "-c", script, "watch", str(os.getpid()), str(own.pidfile)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


@pytest.mark.engine
@pytest.mark.parametrize("beside_another_daemon", [False, True])
def test_a_daemon_of_our_own(
    bare: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside_another_daemon: bool
) -> None:
    """Starts, is found again, comes back after a kill, ends, and leaves nothing; elsewhere it is refused."""
    config = make_config(tmp_path / "home")
    own = daemon.own_engine(config.home)
    if os.geteuid() != 0 or daemon.which("dockerd") is None:
        with pytest.raises(PlatformError, match="no container engine answers"):
            monkeypatch.setattr(engine, "can_install", lambda: False)
            engine.ensure_engine(config, print)
        return
    # A link that is always there stands for the other daemon's: ours must then have a link of its own.
    monkeypatch.setattr(daemon, "_OTHERS_LINK", "lo" if beside_another_daemon else daemon._OTHERS_LINK)
    has_link = beside_another_daemon or Path("/sys/class/net/docker0").exists()
    said: list[str] = []
    end_it_if_this_test_is_killed(own)
    try:
        assert engine.ensure_engine(config, said.append) == own.host
        assert any("one of our own" in line for line in said)
        assert engine.docker_host(config) == own.host
        assert engine.uses_own(config)
        assert (api.get(own.host, "/info") or {})["MemoryLimit"] is True
        assert (Path("/sys/class/net") / own.bridge).exists() == has_link
        pid = int(own.pidfile.read_text())
        assert os.getsid(pid) == pid, "it does not end with our terminal"

        os.kill(pid, signal.SIGKILL)
        time.sleep(0.2)
        assert own.pidfile.exists(), "a killed daemon leaves its pidfile"
        assert engine.docker_host(config) == own.host, "it is started again by whoever asks"
        assert int(own.pidfile.read_text()) != pid
    finally:
        assert engine.stop(config)
    assert not api.answers(own.host)
    assert not own.runtime.exists()
    assert not (Path("/sys/class/net") / own.bridge).exists()
    assert str(own.data) not in Path("/proc/mounts").read_text()
    assert not engine.stop(config), "ending it again is no error"
    engine.remove(config)
    assert not own.folder.exists()


def test_a_pidfile_may_name_a_process_of_somebody_else(tmp_path: Path) -> None:
    own = daemon.own_engine(tmp_path)
    own.folder.mkdir(parents=True)
    own.pidfile.write_text(str(os.getpid()))
    assert daemon.stop(own) is False
    os.kill(os.getpid(), 0)
    own.pidfile.write_text("not a number")
    assert daemon.stop(own) is False


# Base image


def test_an_image_of_the_registry_is_used_and_remembered(
    bare: None, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", stub.host)
    stub.pull_error = ""
    config = make_config(tmp_path)
    assert base.base_mode(config) == "auto"
    assert base.base_image(config) == "python:3.11-slim"
    assert base.base_mode(config) == "registry"
    asked = len([line for line in stub.asked if line.startswith("POST")])
    assert base.base_image(config) == "python:3.11-slim"
    assert len([line for line in stub.asked if line.startswith("POST")]) == asked, "pulled once"
    assert not base.carries_wheels(config)


def test_without_a_registry_a_base_is_made_under_a_name_of_our_own(
    bare: None, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", stub.host)
    monkeypatch.setattr(base, "can_install", lambda: True)
    monkeypatch.setattr(base.shutil, "which", lambda tool: f"/usr/bin/{tool}")
    monkeypatch.setattr(base, "run_tool", lambda command, **_: Path(command[-1]).write_bytes(b"root" * 5000))
    said: list[str] = []
    config = make_config(tmp_path)
    assert base.base_image(config, said.append) == "proctor/base:bookworm"
    assert stub.body == b"root" * 5000
    assert any("No registry answers" in line for line in said)
    assert base.base_mode(config) == "local"
    assert base.carries_wheels(config)
    said.clear()
    stub.asked.clear()
    assert base.base_image(config, said.append) == "proctor/base:bookworm"
    assert said == [], "the second time there is nothing to say"
    assert not any(line.startswith("POST") for line in stub.asked), "the registry is not tried again"


def test_an_older_base_image_is_made_anew_where_one_can_be_made(
    bare: None, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", stub.host)
    monkeypatch.setattr(base.shutil, "which", lambda tool: f"/usr/bin/{tool}")
    made: list[list[str]] = []

    def tool(command: list[str], **_: object) -> None:
        made.append(command)
        Path(command[-1]).write_bytes(b"root")

    monkeypatch.setattr(base, "run_tool", tool)
    stub.images[base.LOCAL_IMAGE] = {"Id": "sha256:0", "Config": {"Labels": None}}
    config = make_config(tmp_path, "local")
    monkeypatch.setattr(base, "can_install", lambda: False)
    assert base.base_image(config) == "proctor/base:bookworm" and not made, "nothing better is to be had here"
    monkeypatch.setattr(base, "can_install", lambda: True)
    assert base.base_image(config) == base.base_image(config) == "proctor/base:bookworm"
    (command,) = made
    assert any("socat" in word for word in command if word.startswith("--include="))


def test_insisting_on_the_registry_is_respected(
    bare: None, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", stub.host)
    with pytest.raises(PlatformError) as caught:
        base.base_image(make_config(tmp_path, "registry"))
    assert "no such host" in caught.value.why
    assert "RUNNER_BASE=local" in caught.value.fix


def test_a_failed_tool_shows_its_last_lines_and_a_slow_one_is_ended() -> None:
    with pytest.raises(PlatformError, match="failed") as caught:
        engine.run_tool(["sh", "-c", "echo nope >&2; exit 3"], timeout=10)
    assert "exit 3" in caught.value.why and "nope" in caught.value.why
    with pytest.raises(PlatformError, match="took longer"):
        engine.run_tool(["sleep", "30"], timeout=0.2)
    with pytest.raises(PlatformError, match="cannot be run"):
        engine.run_tool(["/no/such/tool"], timeout=1)


# Wheels


@pytest.fixture
def local(bare: None, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """A machine with a local base image, and a pip that makes up one wheel a call."""
    monkeypatch.setenv("DOCKER_HOST", stub.host)

    def pip(command: list[str], **_: object) -> None:
        dest = Path(command[command.index("--dest") + 1])
        dest.mkdir()
        (dest / "thing-1-py3-none-any.whl").write_text(" ".join(command))

    monkeypatch.setattr(base, "run_tool", pip)
    return make_config(tmp_path / "home", "local")


def test_wheels_are_fetched_once(local: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = tmp_path / "r.txt"
    requirements.write_text("thing==1 --hash=sha256:00\n")
    (first,) = base.wheels(local, requirements, tmp_path / "a")
    command = first.read_text()
    assert "--only-binary :all:" in command and "--require-hashes" in command
    assert "manylinux_2_17_x86_64" in command and "--python-version 3.11" in command
    monkeypatch.setattr(base, "run_tool", lambda *_, **__: pytest.fail("asked pip again"))
    (second,) = base.wheels(local, requirements, tmp_path / "b")
    assert second.read_bytes() == first.read_bytes()


def test_a_download_that_fails_leaves_nothing(
    local: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PlatformError("pip failed", why="no network")

    monkeypatch.setattr(base, "run_tool", fail)
    requirements = tmp_path / "r.txt"
    requirements.write_text("thing==1\n")
    with pytest.raises(PlatformError):
        base.wheels(local, requirements, tmp_path / "a")
    assert list((local.home / "data" / "wheels").iterdir()) == []


def test_a_context_gets_the_wheels_of_its_requirements(local: Config, tmp_path: Path) -> None:
    context = tmp_path / "context"
    context.mkdir()
    assert base.build_context_extras(local, context) == {}
    (context / "requirements.txt").write_text("# nothing\n")
    assert base.build_context_extras(local, context) == {}
    (context / "requirements.txt").write_text("thing==1 ; python_version > '3' # why\n")
    extras = base.build_context_extras(local, context)
    assert list(extras) == ["wheels/thing-1-py3-none-any.whl"]
    assert all(path.is_file() and context not in path.parents for path in extras.values())
    assert "--require-hashes" not in extras["wheels/thing-1-py3-none-any.whl"].read_text()
    (context / "wheels").mkdir()
    assert base.build_context_extras(local, context) == {}, "a team's own wheels are left alone"


@pytest.mark.parametrize(
    "line",
    [
        "-r /etc/passwd",
        "--index-url http://evil.example/",
        "thing @ https://evil.example/thing.whl",
        "../../secret",
        "-e .",
        "file:///etc/passwd",
        "${HOME}",
        "thing \\\n  --find-links /srv",
        "thïng==1",
    ],
)
def test_requirements_of_a_team_can_only_name_packages(local: Config, tmp_path: Path, line: str) -> None:
    context = tmp_path / "context"
    context.mkdir()
    (context / "requirements.txt").write_text(f"fine==1\n{line}\n")
    with pytest.raises(RunnerError) as caught:
        base.build_context_extras(local, context)
    assert caught.value.code == "E203"
    assert "passwd" not in caught.value.why and "evil" not in caught.value.why


def test_pip_gets_what_was_read_and_in_no_other_encoding(
    local: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = tmp_path / "context"
    context.mkdir()
    hidden = (
        "# -*- coding: utf-7 -*-\n+AC0-+AC0-index+AC0-url http:+AC8-+AC8-evil.example+AC8-\nthing==1 # fine\n"
    )
    (context / "requirements.txt").write_text(hidden)
    seen = []

    def pip(command: list[str], **_: object) -> None:
        seen.append(Path(command[command.index("--requirement") + 1]).read_bytes())
        Path(command[command.index("--dest") + 1]).mkdir()

    monkeypatch.setattr(base, "run_tool", pip)
    base.build_context_extras(local, context)
    # Without the comment pip reads the rest as it stands: no option, and names that no index has.
    (given,) = seen
    assert b"coding" not in given and b"--index-url" not in given and given.endswith(b"\nthing==1\n")


def test_a_dangling_link_called_wheels_is_left_alone(local: Config, tmp_path: Path) -> None:
    context = tmp_path / "context"
    context.mkdir()
    (context / "requirements.txt").write_text("thing==1\n")
    (context / "wheels").symlink_to(tmp_path / "nowhere")
    assert base.build_context_extras(local, context) == {}


def test_a_link_as_requirements_is_not_followed(local: Config, tmp_path: Path) -> None:
    context = tmp_path / "context"
    context.mkdir()
    (tmp_path / "secret").write_text("thing==1\n")
    (context / "requirements.txt").symlink_to(tmp_path / "secret")
    assert base.build_context_extras(local, context) == {}


# Our images


def test_the_source_digest_changes_with_every_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("Dockerfile", "evaluator/requirements.lock", "evaluator/a.py", "schemas/b.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    tmp_path.joinpath("Dockerfile").write_text("ARG B\nFROM ${B} AS evaluator\nFROM ${B} AS sidecars\n")
    monkeypatch.setattr(images, "PROJECT", tmp_path)
    image = images.IMAGES[0]
    seen = {images.source_digest(image)}
    (tmp_path / "evaluator" / "__pycache__").mkdir()
    (tmp_path / "evaluator" / "__pycache__" / "a.pyc").write_text("x")
    (tmp_path / "README.md").write_text("x")
    assert images.source_digest(image) in seen, "what is not in the image does not make it stale"
    tmp_path.joinpath("Dockerfile").write_text(
        "ARG B\nFROM ${B} AS evaluator\nFROM ${B} AS sidecars\nUSER x\n"
    )
    assert images.source_digest(image) in seen, "nor does another image's stage"
    for name in ("Dockerfile", "evaluator/requirements.lock", "evaluator/a.py", "schemas/b.json"):
        (tmp_path / name).write_text("FROM changed AS evaluator\n")
        digest = images.source_digest(image)
        assert digest not in seen
        seen.add(digest)
    (tmp_path / "evaluator" / "a.py").rename(tmp_path / "evaluator" / "c.py")
    assert images.source_digest(image) not in seen


def test_a_missing_or_stale_image_is_refused_and_never_pulled(
    bare: None, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", stub.host)
    config = make_config(tmp_path)
    for image in images.IMAGES:
        for known, word in ((None, "missing"), ({"Id": "sha256:3", "Config": {"Labels": None}}, "older")):
            if known:
                stub.images[images.tag(image)] = known
            with pytest.raises(PlatformError, match=f"{image.name}.* {word}") as caught:
                images.images(None, config, [image.name])  # type: ignore[arg-type]
            assert caught.value.code == "E304"
            assert "make setup" in caught.value.fix
    assert not any(line.startswith("POST") for line in stub.asked)


def test_an_image_needs_only_its_own_stages() -> None:
    text = """# All about it
ARG BASE=x

# The common part
FROM ${BASE} AS common
RUN one

FROM common AS tools
RUN two
# About a

# and more
FROM common AS a
COPY --from=tools /x /x
FROM common AS b
RUN three
"""
    assert (
        images.stages(text, "b")
        == text[: text.index("\nFROM common AS tools")] + "FROM common AS b\nRUN three\n"
    )
    assert images.stages(text, "a") == text[: text.index("FROM common AS b")]
    ours = (ROOT / "Dockerfile").read_text()
    for image in images.IMAGES:
        kept = images.stages(ours, image.name)
        assert kept.count("\nFROM ") == 3 and kept.rstrip().count(f" AS {image.name}\n") == 1
        assert not any(f"COPY {other.name}" in kept for other in images.IMAGES if other is not image)


def test_packages_and_base_are_fetched_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(1 + len(images.IMAGES), timeout=10)
    contexts: list[tuple[str, list[str], bool]] = []

    def fetch(config: Config, requirements: Path, dest: Path) -> list[Path]:
        together.wait()
        dest.mkdir(parents=True)
        (dest / f"{requirements.parent.name}.whl").touch()
        return []

    def make_base(config: Config, tell: object) -> str:
        together.wait()
        return base.REGISTRY_IMAGE

    class Engine:
        def build(self, context: Path, **options: Any) -> None:
            assert options["build_args"]["BASE_IMAGE"] == base.REGISTRY_IMAGE
            names = sorted(path.name for path in context.iterdir()) + [
                p.name for p in context.glob("wheels/*")
            ]
            contexts.append((options["target"], names, options["network"]))

    monkeypatch.setattr(images, "wheels", fetch)
    monkeypatch.setattr(images, "base_image", make_base)
    images._build_all(Engine(), make_config(tmp_path), images.IMAGES, print)  # type: ignore[arg-type]
    assert sorted(contexts) == [
        ("evaluator", ["Dockerfile", "evaluator", "schemas", "wheels", "evaluator.whl"], False),
        # The registry's image has no socat: Debian's archive is asked for it.
        ("sidecars", ["Dockerfile", "schemas", "sidecars", "wheels", "sidecars.whl"], True),
    ]


@pytest.mark.parametrize(
    ("name", "others"), [("evaluator", {"yaml", "pytrec_eval", "dotenv"}), ("sidecars", {"yaml"})]
)
def test_the_packages_of_our_images_are_those_of_the_project(name: str, others: set[str]) -> None:
    """Same versions and hashes as in the project's lock file, and everything that the code in the image imports."""

    def pins(path: Path) -> dict[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        for line in path.read_text().splitlines():
            if line and line[0].isalnum():
                current = found.setdefault(line.split(" ")[0], set())
            elif "--hash=" in line:
                current.add(line.strip(" \\"))
        return {name: frozenset(hashes) for name, hashes in found.items()}

    whole, part = pins(ROOT / "requirements.lock"), pins(ROOT / name / "requirements.lock")
    assert part and all(part.values())
    assert part.items() <= whole.items()
    assert not {"docker", "typer", "sqlalchemy"} & {pin.split("==")[0] for pin in part}

    locked = {pin.split("==")[0].replace("-", "_") for pin in part} | others
    ours = {name, "schemas"}
    for folder in ours:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                names: list[str] = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    names = [node.module or ""]
                for imported in names:
                    top = imported.split(".")[0]
                    assert top in sys.stdlib_module_names | ours | locked, (
                        f"{path}: {imported} is not in the image"
                    )


@pytest.mark.engine
def test_our_images_are_built_once_and_hold_the_sources(tmp_path: Path) -> None:
    """On the engine of the set-up: nothing is missing or stale, and asking again is quick."""
    from runner.model.config import load

    config = load(cwd=ROOT)
    opened = images.open_engine(config)
    found = images.ensure_images(opened, config)
    started = time.monotonic()
    again = images.ensure_images(opened, config)
    assert time.monotonic() - started < 1.0
    assert {name: image.id for name, image in again.items()} == {name: i.id for name, i in found.items()}
    assert found["sidecars"].entrypoint == () and found["sidecars"].user.split(":")[0] not in (
        "",
        "0",
        "root",
    )
    assert found["evaluator"].id.startswith("sha256:")
    assert found["evaluator"].entrypoint == ("evaluator",)
    assert found["evaluator"].cmd == ("run", "--request", "/in/request.json")
    assert found["evaluator"].user.split(":")[0] not in ("", "0", "root")


# The front doors


def test_the_makefile_offers_what_it_promises() -> None:
    text = (ROOT / "Makefile").read_text()
    for target in ("setup", "demo", "test", "lint", "submit", "evaluate", "try", "bench", "docs", "clean"):
        assert f"\n{target}:" in text
    assert shutil.which("make"), "make is needed to work on this project"


def test_the_words_of_the_setup_command(capsys: pytest.CaptureFixture[str]) -> None:
    from runner.provision.__main__ import main

    assert main(["nonsense"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "usage" in captured.err
