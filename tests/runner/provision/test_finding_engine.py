"""Which container engine is used, and the daemon of our own."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from runner.engines.docker.engine import DockerEngine
from runner.engines.registry import answers, engine_type
from runner.model.errors import PlatformError
from runner.provision import daemon
from runner.provision import engine as provision
from tests.worlds.machines import make_config, without_engine


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_engine(monkeypatch, tmp_path)


@pytest.mark.engine
def test_the_environment_wins_over_the_default_socket(
    engine: DockerEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(tmp_path)
    monkeypatch.setattr(provision, "DEFAULT_SOCKET", engine.clients.address)
    assert provision.docker_host(config) == engine.clients.address
    assert provision.open_engine(config).info().name == engine.info().name
    assert provision.docker_host(replace(config, engine="unix:///elsewhere.sock")) == "unix:///elsewhere.sock"


def test_an_address_that_no_engine_has(tmp_path: Path) -> None:
    assert engine_type("tcp://127.0.0.1:2375") is DockerEngine
    with pytest.raises(PlatformError) as caught:
        engine_type("nonsense://x")
    assert caught.value.code == "E301"
    for address in ("nonsense://x", f"unix://{tmp_path}/none.sock", "tcp://127.0.0.1:9", ""):
        assert not answers(address, 1.0)


def test_an_engine_of_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found by the scheme of its address, as an entry point; nothing else has to be said."""
    about = tmp_path / "else-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: else\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[proctor.engines]\nelse = elsewhere:Engine\n")
    text = (
        "class Engine:\n    @staticmethod\n    def answers(address, timeout): return address == 'else://1'\n"
    )
    (tmp_path / "elsewhere.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    assert answers("else://1") and not answers("else://2")
    assert provision.ensure_engine(replace(make_config(tmp_path), engine="else://1"), print) == "else://1"


def test_the_current_docker_context_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "docker"
    meta = settings / "contexts" / "meta" / hashlib.sha256(b"lab").hexdigest() / "meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"Endpoints": {"docker": {"Host": "unix:///lab.sock"}}}))
    (settings / "config.json").write_text(json.dumps({"currentContext": "lab"}))
    monkeypatch.setenv("DOCKER_CONFIG", str(settings))
    assert provision.docker_host(make_config(tmp_path)) == "unix:///lab.sock"
    monkeypatch.setenv("DOCKER_CONTEXT", "default")
    assert provision.docker_host(make_config(tmp_path)) is None
    monkeypatch.delenv("DOCKER_CONTEXT")
    (settings / "config.json").write_text("[]")
    assert provision.docker_host(make_config(tmp_path)) is None


def test_no_engine_is_none_and_an_address_that_is_silent_is_an_error(tmp_path: Path) -> None:
    config = make_config(tmp_path)
    assert provision.docker_host(config) is None
    with pytest.raises(PlatformError) as caught:
        provision.ensure_engine(replace(config, engine=f"unix://{tmp_path}/nobody.sock"), print)
    assert caught.value.code == "E301"
    assert "DOCKER_HOST" in caught.value.fix


def test_an_ordinary_user_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PlatformError) as caught:
        provision.ensure_engine(make_config(tmp_path), print)
    assert caught.value.code == "E301"
    assert "usermod" in caught.value.fix
    assert not (tmp_path / "engine").exists(), "nothing is left half-done"


@pytest.mark.parametrize(
    ("lacks", "fix"),
    [("root", "usermod"), ("dockerd installable", "docs.docker.com"), ("cgroups", "--privileged"),
     ("dockerd", ""), ("installable", ""), ("", "")],
)  # fmt: skip
def test_where_no_daemon_of_our_own_can_run(lacks: str, fix: str) -> None:
    names = ("root", "dockerd", "installable", "cgroups")
    found = provision.obstacle(**{name: name not in lacks.split() for name in names})
    assert (found is not None) == bool(fix)
    assert found is None or (found[0] and fix in found[1])


def test_a_failed_tool_shows_its_last_lines_and_a_slow_one_is_ended() -> None:
    for command, seconds, names in (
        (["sh", "-c", "echo nope >&2; exit 3"], 10, ["exit 3", "nope"]),
        (["sleep", "30"], 0.2, ["sleep"]),
        (["/no/such/tool"], 1, ["/no/such/tool"]),
    ):
        with pytest.raises(PlatformError) as caught:
            provision.run_tool(command, timeout=seconds)
        text = f"{caught.value.what} {caught.value.why}"
        assert all(name in text for name in names), text


def test_the_words_of_the_setup_command(capsys: pytest.CaptureFixture[str]) -> None:
    from runner.provision.__main__ import main

    assert main(["nonsense"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "usage" in captured.err


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside_another_daemon: bool
) -> None:
    """Starts, is found again, comes back after a kill, ends, and leaves nothing; elsewhere it is refused."""
    without_engine(monkeypatch, tmp_path)
    config = make_config(tmp_path / "home")
    own = daemon.OwnEngine(config.home)
    if os.geteuid() != 0 or daemon.which("dockerd") is None:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)  # installs nothing here
        with pytest.raises(PlatformError) as caught:
            provision.ensure_engine(config, print)
        assert caught.value.code == "E301"
        return
    # A link that is always there stands for the other daemon's: ours must then have a link of its own.
    monkeypatch.setattr(daemon, "OTHERS_LINK", "lo" if beside_another_daemon else daemon.OTHERS_LINK)
    has_link = beside_another_daemon or Path("/sys/class/net/docker0").exists()
    said: list[str] = []
    end_it_if_this_test_is_killed(own)
    try:
        assert provision.ensure_engine(config, said.append) == own.host
        assert said
        assert provision.docker_host(config) == own.host
        assert provision.uses_own(config)
        assert provision.open_engine(config).info().missing == ()
        assert (Path("/sys/class/net") / own.bridge).exists() == has_link
        pid = int(own.pidfile.read_text())
        assert os.getsid(pid) == pid, "it does not end with our terminal"

        os.kill(pid, signal.SIGKILL)
        time.sleep(0.2)
        assert own.pidfile.exists(), "a killed daemon leaves its pidfile"
        assert provision.docker_host(config) == own.host, "it is started again by whoever asks"
        assert int(own.pidfile.read_text()) != pid
    finally:
        assert provision.stop(config)
    assert not answers(own.host)
    assert not own.runtime.exists()
    assert not (Path("/sys/class/net") / own.bridge).exists()
    assert str(own.data) not in Path("/proc/mounts").read_text()
    assert not provision.stop(config), "ending it again is no error"
    provision.remove(config)
    assert not own.folder.exists()


def test_a_pidfile_may_name_a_process_of_somebody_else(tmp_path: Path) -> None:
    own = daemon.OwnEngine(tmp_path)
    own.folder.mkdir(parents=True)
    own.pidfile.write_text(str(os.getpid()))
    assert daemon.stop(own) is False
    os.kill(os.getpid(), 0)
    own.pidfile.write_text("not a number")
    assert daemon.stop(own) is False


def test_the_socket_path_fits_however_long_the_data_directory_is(tmp_path: Path) -> None:
    own = daemon.OwnEngine(tmp_path / ("long" * 50) / "home")
    assert len(own.host.removeprefix("unix://")) < 50
    assert len(str(own.runtime / "exec" / "containerd" / "containerd-debug.sock")) < 107
    assert len(own.bridge) <= 15
    assert own.host != daemon.OwnEngine(tmp_path / "other").host
