"""The servers that this user has logged in to, by name, each a file with its token that nobody else can read."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from runner.exchange.access import Token
from runner.model.config import user_folder
from runner.model.errors import RunnerError, disk_error, no_such
from runner.model.names import IDENTIFIER
from schemas.files import atomic_file


@dataclass(frozen=True)
class Server:
    """A server: how it is called here, its address, the token for it, and whose that is."""

    name: str
    url: str
    token: str
    team: str

    def __repr__(self) -> str:  # no traceback shows the token
        return f"Server({self.name}, {self.url})"


def address(text: str) -> str:
    """The address of a server, without a path. Raises E101 for what is none, and unless a token can be sent there.

    That is by https, or to this machine: whoever reads a token on its way is the team.
    """
    at = urlsplit(text)
    try:
        port = at.port
    except ValueError:
        port = -1
    plain = at.scheme in ("http", "https") and at.hostname and not at.query and not at.fragment
    if not plain or at.path not in ("", "/") or at.username or port == -1:
        what = "that is not the address of a server"
        raise RunnerError("E101", what, fix="such as https://task.example.org, without a path")
    host = str(at.hostname)
    if at.scheme == "http" and not is_here(host):
        what, why = "a token is sent by https only", "By http everybody on the way could read it."
        raise RunnerError("E101", what, why=why, fix=f"https://{at.netloc}")
    return f"{at.scheme}://{at.netloc.lower()}"


def is_here(host: str) -> bool:
    """Whether a host is this machine, by its name or address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def proposed(url: str) -> str:
    """How the server at an address is called where nobody says: by its host, this machine ``local``."""
    host = str(urlsplit(url).hostname)
    return "local" if is_here(host) else host[:40].strip(".-")


def remember(server: Server, environ: Mapping[str, str] | None = None) -> Path:
    """Keep a server, in the place of one of the same name; returns the file. Raises E101 for what is no name, E306."""
    path = _path(server.name, environ)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_file(path, mode=0o600, sync=True) as file:
            file.write(json.dumps(asdict(server)).encode())
    except OSError as error:
        raise disk_error("the token cannot be kept", error, path) from error
    return path


def forget(name: str) -> bool:
    """Forget a server and its token; whether it was known. Raises E101 and E306."""
    path = _path(name)
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise disk_error("the token cannot be removed", error, path) from error
    return True


def known() -> dict[str, Server]:
    """The servers by name; files that are none of ours, or that others can read, are left out."""
    found = {}
    for path in sorted((user_folder() / "servers").glob("*.json")):
        server = _read(path)
        if server is not None and path.stem == server.name:
            found[server.name] = server
    return found


def server(name: str | None) -> Server:
    """The server of a name, or the only one. Raises E102 where there is none, E101 where several could be meant."""
    there = known()
    if name is None and len(there) == 1:
        return next(iter(there.values()))
    if name is None and there:
        raise RunnerError("E101", "several servers are known here", fix=f"--to {' or '.join(there)}")
    fix = "runner login https://task.example.org"
    if name is None:
        raise RunnerError("E102", "you are logged in to no server", fix=fix)
    if name not in there:
        raise no_such("server", name, there, why="Nobody logged in to it here.", fix=fix)
    return there[name]


def _path(name: str, environ: Mapping[str, str] | None = None) -> Path:
    if not IDENTIFIER.fullmatch(name):
        fix = "letters, digits, _, - and single dots inside, at most 40"
        raise RunnerError("E101", "that is not a name for a server", fix=fix)
    return user_folder(environ) / "servers" / f"{name}.json"


def _read(path: Path) -> Server | None:
    try:
        data = json.loads(path.read_bytes())
        found = Server(**{key: str(data[key]) for key in ("name", "url", "token", "team")})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if path.stat().st_mode & 0o077:
        what, why = f"others can read the token for {found.name}", f"Rights of {path}."
        raise RunnerError("E101", what, why=why, fix=f"chmod 600 {path}")
    return found if Token.read(found.token) else None
