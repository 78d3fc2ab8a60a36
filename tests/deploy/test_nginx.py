"""The recipe for nginx with Debian's nginx before a real front, by TLS on loopback; work calls the front through it, too."""

from __future__ import annotations

import datetime
import hashlib
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from runner.exchange.access import Token
from runner.web.door import HEADERS
from tests.e2e.test_server import form_of, until
from tests.worlds.debian import program
from tests.worlds.mini import Project, call
from tests.worlds.ports import free_port

RECIPE = Path(__file__).parents[2] / "deploy" / "nginx.conf"
LARGE = 200 * 1024 * 1024  # bytes
OUTER = """daemon off; pid {folder}/pid; error_log {folder}/error.log warn; {user}
events {{ worker_connections 256; }}
http {{
    access_log {folder}/access.log; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; scgi_temp_path {folder}/s; uwsgi_temp_path {folder}/u;
    include {folder}/site.conf;
}}
"""


@dataclass
class Site:
    """A front behind nginx: ``url`` by TLS, what to trust, and where the front keeps things."""

    url: str
    plain: str
    ca: Path
    exchange: Path
    state: Path
    token: str
    folder: Path
    brought: Path

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca))

    def client(self, **headers: str) -> httpx2.Client:
        return httpx2.Client(
            base_url=self.url, verify=self.trust(), trust_env=False, timeout=60, headers=headers
        )


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for this machine, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return paths


def site_conf(folder: Path, http: int, https: int, front: int) -> str:
    """The recipe with the names, ports and files of this test; everything else as it is."""
    text = RECIPE.read_text()
    for old, new, times in (
        ("listen 80;", f"listen 127.0.0.1:{http};", 1),
        ("listen 443 ssl", f"listen 127.0.0.1:{https} ssl", 1),
        ("https://task.example.org$request_uri", f"https://localhost:{https}$request_uri", 1),
        ("/etc/letsencrypt/live/task.example.org/fullchain.pem", str(folder / "cert.pem"), 1),
        ("/etc/letsencrypt/live/task.example.org/privkey.pem", str(folder / "key.pem"), 1),
        ("server_name task.example.org;", "server_name localhost;", 2),
        ("http://127.0.0.1:8080", f"http://127.0.0.1:{front}", 3),
    ):
        assert text.count(old) == times, old
        text = text.replace(old, new)
    return text


@contextmanager
def running(command: list[str], **more: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, text=True, **more)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture
def site(project: Project, tmp_path: Path) -> Iterator[Site]:
    project.write_task(uploads=True)
    http, https, front = free_port(), free_port(), free_port()
    folder, exchange, state = (tmp_path / name for name in ("nginx", "front", "state"))
    folder.mkdir()
    ca, _ = certificate(folder)
    (folder / "site.conf").write_text(site_conf(folder, http, https, front))
    user = "user root;" if os.getuid() == 0 else ""
    (folder / "nginx.conf").write_text(OUTER.format(folder=folder, user=user))
    url, key = f"https://localhost:{https}", call(project, "work", "--key").out.strip()
    options = ["--bind", f"127.0.0.1:{front}", "--url", url, "--proxy", "127.0.0.1", "--work-key", key]
    options += ["--exchange", str(exchange), "--state", str(state)]
    nginx = [program("nginx", "nginx-light"), "-p", str(folder), "-c", str(folder / "nginx.conf")]
    nginx += ["-e", str(folder / "error.log")]
    token = call(project, "team", "add", "alpha").out.strip()
    environment = project.environment(REQUESTS_CA_BUNDLE=str(ca))
    command = [sys.executable, "-m", "runner"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with (
        running([*command, "front", *options], cwd="/", stdout=subprocess.PIPE) as process,
        running(nginx),
        ExitStack() as stack,
    ):
        assert process.stdout is not None and process.stdout.readline() == f"ready {url}\n"
        stack.enter_context(running([*command, "work", "--front", url], env=environment, **quiet))
        found = Site(
            url, f"http://127.0.0.1:{http}", ca, exchange, state, token, folder, project.config.inbox
        )
        until(lambda: (exchange / "published" / "current.json").exists(), 60)
        yield found
    log = (folder / "error.log").read_text().splitlines()
    assert [line for line in log if "[error]" in line and "too large body" not in line] == []


def test_people_and_work_come_to_the_front_through_nginx(site: Site) -> None:
    with site.client() as browser:
        page = browser.get("/sign-in")
        for name, value in HEADERS.items():
            assert page.headers.get_list(name) == [value], name
        assert "max-age" in page.headers["strict-transport-security"]
        assert page.headers.get("server", "nginx") == "nginx", "without a version"
        form = {"form-token": form_of(page.text), "token": site.token}
        said = browser.post("/sign-in", data=form, headers={"origin": site.url})
        cookie = next(one for one in said.headers.get_list("set-cookie") if "session=" in one)
        assert said.status_code == 303 and cookie.startswith("__Host-session=") and "Secure" in cookie
        assert "Mini" in browser.get("/").text, "work has published it, through nginx"
        redirected = httpx2.get(f"{site.plain}/tasks", trust_env=False, timeout=60)
        assert redirected.headers["location"] == f"{site.url}/tasks"
        events_come_at_once(browser)
        browser.get("/link/secret-of-somebody")
        told = (site.folder / "access.log").read_text()
        assert "/sign-in" in told and "secret-of-somebody" not in told
        names_and_addresses_that_strangers_send_are_not_believed(site)


def events_come_at_once(client: httpx2.Client) -> None:
    began = time.monotonic()
    with client.stream("GET", "/live", params={"page": "/", "have": "x"}) as stream:
        assert stream.status_code == 200 and "event-stream" in stream.headers["content-type"]
        line = next(line for line in stream.iter_lines() if line.startswith(("id:", "data:", "event:")))
        assert line and time.monotonic() - began < 10, "not when a buffer is full"


def names_and_addresses_that_strangers_send_are_not_believed(site: Site) -> None:
    with site.client() as client:
        assert client.get("/", headers={"host": "evil.example"}).status_code in (400, 421)
        for spoofed in ("198.51.100.7", "127.0.0.1, 198.51.100.7"):
            headers = {"authorization": f"Bearer {Token.new()}", "x-forwarded-for": spoofed}
            client.get("/team", headers=headers)
    log = (site.state / "security.jsonl").read_text()
    assert '"127.0.0.1"' in log and "198.51.100.7" not in log


def test_a_large_file_goes_through_and_a_larger_one_is_refused(site: Site) -> None:
    content = b"dev-1 Q0 doc-01 1 1.0 x\n" * (LARGE // 24)
    fields = {"software": "large", "dataset": "dev"}
    with site.client(authorization=f"Bearer {site.token}") as client:
        said = client.post("/tasks/mini/hand-in", data=fields, files={"file": ("run.txt", content)})
        assert said.status_code == 202 and said.json()["sha256"] == hashlib.sha256(content).hexdigest()
    assert [path for path in site.folder.rglob("*") if path.is_file() and path.stat().st_size > 10**6] == []
    until(lambda: [path for path in site.brought.glob("*/payload") if path.parent.name[0] != "."], 60)
    head = f"POST /tasks/mini/hand-in HTTP/1.1\r\nHost: {urlsplit(site.url).netloc}\r\nContent-Length: {300 * 2**20}\r\n\r\n"
    port = urlsplit(site.url).port
    with (
        socket.create_connection(("localhost", port)) as plain,
        site.trust().wrap_socket(plain, server_hostname="localhost") as line,
    ):
        line.sendall(head.encode())
        assert b" 413 " in line.recv(1000), "before it was sent"
