"""The recipe for nginx with Debian's nginx before a real front."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.deploy.proxied import Site, front_behind, people_come_to_the_front, submit_large_file
from tests.e2e.test_server import until
from tests.runner.work.notices.test_sending import certificate
from tests.worlds.debian import program
from tests.worlds.mini import Project
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


def site_conf(certificate: Path, http: int, https: int, front: int) -> str:
    """The recipe with the names, ports and files of this test; everything else as it is."""
    text = RECIPE.read_text()
    for old, new, times in (
        ("listen 80;", f"listen 127.0.0.1:{http};", 1),
        ("listen 443 ssl", f"listen 127.0.0.1:{https} ssl", 1),
        ("https://task.example.org$request_uri", f"https://localhost:{https}$request_uri", 1),
        ("/etc/letsencrypt/live/task.example.org/fullchain.pem", str(certificate), 1),
        ("/etc/letsencrypt/live/task.example.org/privkey.pem", str(certificate), 1),
        ("server_name task.example.org;", "server_name localhost;", 2),
        ("http://127.0.0.1:8080", f"http://127.0.0.1:{front}", 2),
    ):
        assert text.count(old) == times, old
        text = text.replace(old, new)
    return text


@pytest.fixture
def http() -> int:
    """The port where nginx answers without TLS."""
    return free_port()


@pytest.fixture
def site(project: Project, tmp_path: Path, http: int) -> Iterator[Site]:
    https, front = free_port(), free_port()
    folder = tmp_path / "nginx"
    folder.mkdir()
    ca = certificate(folder)
    (folder / "site.conf").write_text(site_conf(ca, http, https, front))
    user = "user root;" if os.getuid() == 0 else ""
    (folder / "nginx.conf").write_text(OUTER.format(folder=folder, user=user))
    nginx = [program("nginx", "nginx-light"), "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with front_behind(project, folder, (https, front), ca, [*nginx, "-e", str(folder / "error.log")]) as site:
        yield site
    log = (folder / "error.log").read_text().splitlines()
    assert [line for line in log if "[error]" in line and "too large body" not in line] == []


def test_people_and_work_come_to_the_front_through_nginx(site: Site, http: int) -> None:
    people_come_to_the_front(site, lambda answer: answer.status_code in (400, 421))
    redirected = httpx2.get(f"http://127.0.0.1:{http}/tasks", trust_env=False, timeout=60)
    assert redirected.headers["location"] == f"{site.url}/tasks"
    with site.client() as browser:
        browser.get("/link/secret-of-somebody")
    log = (site.folder / "access.log").read_text()
    assert "/sign-in" in log and "secret-of-somebody" not in log


@pytest.mark.slow
def test_a_large_file_goes_through_and_a_larger_one_is_refused(site: Site) -> None:
    submit_large_file(site, LARGE)
    assert [path for path in site.folder.rglob("*") if path.is_file() and path.stat().st_size > 10**6] == []
    until(lambda: [path for path in site.brought.glob("*/payload") if path.parent.name[0] != "."], 60)
    with site.too_large() as line:
        assert b" 413 " in line.recv(1000), "before it was sent"
