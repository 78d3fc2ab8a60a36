"""The recipe for Caddy with Debian's caddy before a real front, by TLS of an authority that Caddy makes for itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.deploy.proxied import QUIET, Site, front_behind, people_come_to_the_front, submit_large_file
from tests.worlds.debian import program
from tests.worlds.mini import Project
from tests.worlds.ports import free_port

RECIPE = Path(__file__).parents[2] / "deploy" / "Caddyfile"
LARGE = 64 * 1024 * 1024  # bytes
# No port for plain HTTP, nothing of the system's, and no certificate of anybody's.
OUTER = """{{
	admin off
	grace_period 2s
	auto_https disable_redirects
	skip_install_trust
	local_certs
	storage file_system {folder}
}}
"""


def site_conf(folder: Path, https: int, front: int) -> str:
    """The recipe with the name and the ports of this test; everything else as it is."""
    text = RECIPE.read_text()
    for old, new in (
        ("\ntask.example.org {", f"\nhttps://localhost:{https} {{"),
        ("reverse_proxy 127.0.0.1:8080", f"reverse_proxy 127.0.0.1:{front}"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return OUTER.format(folder=folder) + text


@pytest.fixture
def site(project: Project, tmp_path: Path) -> Iterator[Site]:
    https, front = free_port(), free_port()
    folder = tmp_path / "caddy"
    folder.mkdir()
    (folder / "Caddyfile").write_text(site_conf(folder, https, front))
    ca = folder / "pki/authorities/local/root.crt"
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    serve = [program("caddy", "caddy"), "run", "--adapter", "caddyfile", "--config", f"{folder}/Caddyfile"]
    with front_behind(project, folder, (https, front), ca, serve, env=environment, **QUIET) as site:
        yield site


def test_people_and_work_come_to_the_front_through_caddy(site: Site) -> None:
    people_come_to_the_front(site, lambda answer: "Mini" not in answer.text)
    with site.client() as client:
        assert "server" not in client.get("/sign-in").headers
    submit_large_file(site, LARGE)
    with site.too_large() as line:
        said, sent = b"", 0  # MiB; Caddy hands the answer on while something comes
        while not said and sent < 100:
            line.settimeout(60)
            line.sendall(bytes(2**20))
            sent += 1
            line.settimeout(0.05)
            with suppress(TimeoutError):
                said = line.recv(1000)
        assert b" 413 " in said, "long before all was sent"
