"""A real front behind a proxy of Debian, by TLS on loopback; work calls the front through the proxy, too."""

from __future__ import annotations

import hashlib
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from runner.exchange.access import Token
from runner.web.door import HEADERS
from tests.e2e.test_server import form_of, until
from tests.worlds.mini import Project, call

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
HAND_IN = "/tasks/mini/hand-in"


@dataclass
class Site:
    """A front behind a proxy: ``url`` by TLS, what to trust, and where proxy, front and work keep things."""

    url: str
    ca: Path
    state: Path
    token: str
    folder: Path
    brought: Path

    def client(self, **headers: str) -> httpx2.Client:
        trust = ssl.create_default_context(cafile=str(self.ca))
        return httpx2.Client(base_url=self.url, verify=trust, trust_env=False, timeout=60, headers=headers)

    @contextmanager
    def too_large(self) -> Iterator[ssl.SSLSocket]:
        """A connection on which the head of a submission of 300 MiB was sent."""
        at = urlsplit(self.url)
        head = f"POST {HAND_IN} HTTP/1.1\r\nHost: {at.netloc}\r\nContent-Length: {300 * 2**20}\r\n\r\n"
        with (
            socket.create_connection(("localhost", at.port)) as plain,
            ssl.create_default_context(cafile=str(self.ca)).wrap_socket(
                plain, server_hostname="localhost"
            ) as line,
        ):
            line.sendall(head.encode())
            yield line


@contextmanager
def running(command: list[str], **more: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, text=True, **more)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def front_behind(
    project: Project, folder: Path, ports: tuple[int, int], ca: Path, proxy: list[str], **options: object
) -> Iterator[Site]:
    """Start a front, a proxy in front of it, and work; ``ports`` are those of the proxy and of the front."""
    project.write_task(uploads=True)
    exchange, state = (folder.with_name(name) for name in ("front", "state"))
    url, key = f"https://localhost:{ports[0]}", call(project, "work", "--key").out.strip()
    front = ["--bind", f"127.0.0.1:{ports[1]}", "--url", url, "--proxy", "127.0.0.1", "--work-key", key]
    front += ["--exchange", str(exchange), "--state", str(state)]
    token = call(project, "team", "add", "alpha").out.strip()
    environment = project.environment(REQUESTS_CA_BUNDLE=str(ca))
    command = [sys.executable, "-m", "runner"]
    with (
        running([*command, "front", *front], cwd="/", stdout=subprocess.PIPE) as process,
        running(proxy, **options),
    ):
        assert process.stdout is not None and process.stdout.readline() == f"ready {url}\n"
        until(lambda: ca.exists() and listens(ports[0]), 60)
        with running([*command, "work", "--front", url], env=environment, **QUIET):
            until((exchange / "published" / "current.json").exists, 60)
            yield Site(url, ca, state, token, folder, project.config.inbox)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def people_come_to_the_front(site: Site, refuses_host: Callable[[httpx2.Response], bool]) -> None:
    """Sign in, read what work published, follow events, and send names and addresses that are not believed."""
    with site.client() as browser:
        page = browser.get("/sign-in")
        for name, value in HEADERS.items():
            assert page.headers.get_list(name) == [value], name
        assert "max-age" in page.headers["strict-transport-security"]
        assert page.headers.get("server", "nginx") == "nginx", "without a version"
        form = {"form-token": form_of(page.text), "token": site.token}
        answer = browser.post("/sign-in", data=form, headers={"origin": site.url})
        cookie = next(text for text in answer.headers.get_list("set-cookie") if "session=" in text)
        assert answer.status_code == 303 and cookie.startswith("__Host-session=") and "Secure" in cookie
        assert "Mini" in browser.get("/").text, "work has published it"
        assert browser.get("/live", params={"page": "/"}).status_code == 200
    with site.client() as client:
        assert refuses_host(client.get("/", headers={"host": "evil.example"}))
        for spoofed in ("198.51.100.7", "127.0.0.1, 198.51.100.7"):
            headers = {"authorization": f"Bearer {Token.new()}", "x-forwarded-for": spoofed}
            client.get("/team", headers=headers)
    log = (site.state / "security.jsonl").read_text()
    assert '"127.0.0.1"' in log and "198.51.100.7" not in log


def submit_large_file(site: Site, size: int) -> None:
    content = b"dev-1 Q0 doc-01 1 1.0 x\n" * (size // 24)
    fields = {"software": "large", "dataset": "dev"}
    with site.client(authorization=f"Bearer {site.token}") as client:
        answer = client.post(HAND_IN, data=fields, files={"file": ("run.txt", content)})
        assert answer.status_code == 202 and answer.json()["sha256"] == hashlib.sha256(content).hexdigest()
