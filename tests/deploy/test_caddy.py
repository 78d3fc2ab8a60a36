"""The recipe for Caddy with Debian's caddy before a real front, by TLS of an authority that Caddy makes for itself."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from runner.exchange.access import Token
from runner.web.door import HEADERS
from tests.deploy.test_nginx import Site, events_come_at_once, running
from tests.e2e.test_server import form_of, until
from tests.worlds.debian import program
from tests.worlds.mini import Project, call
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
    caddy = program("caddy", "caddy")
    project.write_task(uploads=True)
    https, front = free_port(), free_port()
    folder, exchange, state = (tmp_path / name for name in ("caddy", "front", "state"))
    folder.mkdir()
    (folder / "Caddyfile").write_text(site_conf(folder, https, front))
    url, key = f"https://localhost:{https}", call(project, "work", "--key").out.strip()
    options = ["--bind", f"127.0.0.1:{front}", "--url", url, "--proxy", "127.0.0.1", "--work-key", key]
    options += ["--exchange", str(exchange), "--state", str(state)]
    token = call(project, "team", "add", "alpha").out.strip()
    ca = folder / "pki/authorities/local/root.crt"
    command = [sys.executable, "-m", "runner"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    serve = [caddy, "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    with (
        running([*command, "front", *options], cwd="/", stdout=subprocess.PIPE) as process,
        running(serve, env=environment, **quiet),
    ):
        assert process.stdout is not None and process.stdout.readline() == f"ready {url}\n"
        until(lambda: ca.exists() and listens(https), 60)
        with running(
            [*command, "work", "--front", url],
            env=project.environment(REQUESTS_CA_BUNDLE=str(ca)),
            **quiet,
        ):
            until(lambda: (exchange / "published" / "current.json").exists(), 60)
            yield Site(url, "", ca, exchange, state, token, folder, project.config.inbox)


def listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_people_and_work_come_to_the_front_through_caddy(site: Site) -> None:
    with site.client() as browser:
        page = browser.get("/sign-in")
        for name, value in HEADERS.items():
            assert page.headers.get_list(name) == [value], name
        assert "max-age" in page.headers["strict-transport-security"] and "server" not in page.headers
        form = {"form-token": form_of(page.text), "token": site.token}
        said = browser.post("/sign-in", data=form, headers={"origin": site.url})
        cookie = next(one for one in said.headers.get_list("set-cookie") if "session=" in one)
        assert said.status_code == 303 and cookie.startswith("__Host-session=") and "Secure" in cookie
        assert "Mini" in browser.get("/").text, "work has published it, through Caddy"
        events_come_at_once(browser)
    with site.client() as client:
        assert "Mini" not in client.get("/", headers={"host": "evil.example"}).text
        for spoofed in ("198.51.100.7", "127.0.0.1, 198.51.100.7"):
            headers = {"authorization": f"Bearer {Token.new()}", "x-forwarded-for": spoofed}
            client.get("/team", headers=headers)
    log = (site.state / "security.jsonl").read_text()
    assert '"127.0.0.1"' in log and "198.51.100.7" not in log
    a_large_file_goes_through_and_a_larger_one_is_refused(site)


def a_large_file_goes_through_and_a_larger_one_is_refused(site: Site) -> None:
    content = b"dev-1 Q0 doc-01 1 1.0 x\n" * (LARGE // 24)
    fields = {"software": "large", "dataset": "dev"}
    with site.client(authorization=f"Bearer {site.token}") as client:
        said = client.post("/tasks/mini/hand-in", data=fields, files={"file": ("run.txt", content)})
        assert said.status_code == 202 and said.json()["sha256"] == hashlib.sha256(content).hexdigest()
    head = f"POST /tasks/mini/hand-in HTTP/1.1\r\nHost: {urlsplit(site.url).netloc}\r\nContent-Length: {300 * 2**20}\r\n\r\n"
    with (
        socket.create_connection(("localhost", urlsplit(site.url).port)) as plain,
        site.trust().wrap_socket(plain, server_hostname="localhost") as line,
    ):
        line.sendall(head.encode())
        said, sent = b"", 0  # MiB; Caddy hands the answer on while something comes
        while not said and sent < 100:
            line.settimeout(60)
            line.sendall(bytes(2**20))
            sent += 1
            line.settimeout(0.05)
            with suppress(TimeoutError):
                said = line.recv(1000)
        assert b" 413 " in said, "long before all was sent"
