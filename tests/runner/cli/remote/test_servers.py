"""Where somebody has logged in: addresses to which a token may be sent, and who can read it afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.cli.remote.servers import Server, address, forget, known, proposed, remember, server
from runner.exchange.access import Token
from runner.model.errors import RunnerError


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "proctor/servers"


@pytest.mark.parametrize(
    ("text", "url", "name"),
    [
        ("https://Task.example.org/", "https://task.example.org", "task.example.org"),
        ("https://task.example.org:8443", "https://task.example.org:8443", "task.example.org"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080", "local"),
        ("http://localhost:1", "http://localhost:1", "local"),
        ("http://[::1]:1", "http://[::1]:1", "local"),
    ],
)
def test_addresses(text: str, url: str, name: str) -> None:
    assert address(text) == url and proposed(url) == name


@pytest.mark.parametrize(
    "text",
    [
        *("http://task.example.org", "http://127.0.0.1.example.org", "http://localhost.example.org"),
        *("task.example.org", "ftp://task.example.org", "https://", "https://x:99999", "https://u:p@x"),
        *("https://x/path", "https://x?q=1", "https://x#f", ""),
    ],
)
def test_a_token_is_sent_by_https_or_to_this_machine(text: str) -> None:
    with pytest.raises(RunnerError, check=lambda error: error.code == "E101"):
        address(text)


def test_a_token_is_kept_for_its_owner_alone(mine: Path) -> None:
    one = Server("clef", "https://x", str(Token.new()), "alpha")
    path = remember(one)
    assert path == mine / "clef.json" and path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o077 == 0
    assert known() == {"clef": one} and server("clef") == server(None) == one
    assert one.token not in repr(one)
    path.chmod(0o640)
    with pytest.raises(RunnerError) as error:
        server("clef")
    assert "chmod 600" in error.value.fix
    assert forget("clef") and not forget("clef") and known() == {}


def test_which_server_is_meant_is_said_where_there_are_several() -> None:
    with pytest.raises(RunnerError) as error:
        server(None)
    assert error.value.code == "E102" and error.value.fix.startswith("runner login")
    for name in ("one", "two"):
        remember(Server(name, "https://x", str(Token.new()), "alpha"))
    with pytest.raises(RunnerError, check=lambda error: error.code == "E101"):
        server(None)
    with pytest.raises(RunnerError, check=lambda error: error.code == "E102"):
        server("three")
    for name in ("../x", "a/b", "", ".x"):
        with pytest.raises(RunnerError):
            remember(Server(name, "https://x", str(Token.new()), "alpha"))
