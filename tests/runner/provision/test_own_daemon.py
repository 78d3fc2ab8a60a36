"""The daemon of our own: it starts, is found again, ends, and leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from runner.engines.registry import answers
from runner.model.errors import PlatformError
from runner.provision import daemon, engine
from tests.worlds.machines import make_config, without_engine


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
            engine.ensure_engine(config, print)
        assert caught.value.code == "E301"
        return
    # A link that is always there stands for the other daemon's: ours must then have a link of its own.
    monkeypatch.setattr(daemon, "OTHERS_LINK", "lo" if beside_another_daemon else daemon.OTHERS_LINK)
    has_link = beside_another_daemon or Path("/sys/class/net/docker0").exists()
    said: list[str] = []
    end_it_if_this_test_is_killed(own)
    try:
        assert engine.ensure_engine(config, said.append) == own.host
        assert said
        assert engine.docker_host(config) == own.host
        assert engine.uses_own(config)
        assert engine.open_engine(config).info().missing == ()
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
    assert not answers(own.host)
    assert not own.runtime.exists()
    assert not (Path("/sys/class/net") / own.bridge).exists()
    assert str(own.data) not in Path("/proc/mounts").read_text()
    assert not engine.stop(config), "ending it again is no error"
    engine.remove(config)
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
