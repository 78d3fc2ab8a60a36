"""Starting the server: what is said before anything is started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from runner.cli.serving import address, check_address, check_installed
from runner.model.errors import RunnerError
from tests.worlds.mini import Project, call


@pytest.mark.parametrize("bind", ["", "8080", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", ":80"])
def test_what_is_no_address_is_said(bind: str) -> None:
    with pytest.raises(RunnerError) as error:
        address(bind)
    assert error.value.code == "E101"


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


def test_a_port_that_is_taken_is_said(project: Project, tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        said = call(project, "front", "--bind", bind, "--exchange", str(tmp_path / "web"), expect=3)
    assert "E306" in said.err and bind in said.err
