"""A front in this process, over a real socket."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import uvicorn

from runner.exchange.oidc import Provider
from runner.exchange.published import Publisher
from runner.model.clock import Clock
from runner.records.store.connect import open_store
from runner.tasks.load import load_tasks
from runner.web.limits import Waiting
from runner.web.server import application, settings
from runner.work.members.accounts import open_accounts
from runner.work.publishing import Desk
from runner.work.requests import Requests
from tests.worlds.mini import Project
from tests.worlds.proxy import Proxy


def notices(text: str) -> list[str]:
    """Return the kinds of the notices of a page: ``good``, ``wait`` or ``bad``."""
    return re.findall(r'class="notice (\w+)"', text)


@contextmanager
def serving(
    exchange: Path,
    state: Path,
    most: int = 100_000,
    *,
    work_key: str | None = None,
    through: Proxy | None = None,
    connection: Any = None,
    provider: Provider | None = None,
    clock: Clock | None = None,
    waiting: Waiting = Waiting(),
) -> Iterator[str]:
    """The address of a front over the exchange folder, for as long as the block lasts; ``through`` a proxy, that of the proxy.

    It has the settings of the real one; ``connection`` takes the place of its class of connections.
    """
    # Named as TCP, or asyncio leaves Nagle's algorithm on, and every answer waits 40 ms for an acknowledgement.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        if through is not None:
            through.target, port = port, through.port
        url = f"http://127.0.0.1:{port}"
        app = application(
            exchange,
            state,
            url,
            most=most,
            work_key=work_key,
            provider=provider,
            clock=clock,
            waiting=waiting,
        )
        config = settings(app)
        config.http = connection or config.http
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield url
        finally:
            server.should_exit = True
            thread.join()


@dataclass
class Site:
    """A front over a project, and work's side of its inbox."""

    project: Project
    url: str

    def client(self, token: object = "") -> httpx2.Client:
        """Return a client that sends this token in the header."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx2.Client(base_url=self.url, trust_env=False, timeout=60, headers=headers)

    def opens(self, token: object) -> bool:
        """True if the front knows the token."""
        with self.client(token) as program:
            return program.get("/team").status_code == 200

    def decide(self) -> None:
        """Decide what waits in the inbox."""
        with open_store(self.project.config) as store, open_accounts(self.project.config) as accounts:
            tasks = load_tasks(self.project.config)[0]
            Requests(self.project.config, store, accounts, lambda _: None).round(tasks)

    def publish(self) -> None:
        """Publish everything, to the teams alpha and beta, too."""
        problems: list[Exception] = []
        to = Publisher(self.project.config.published)
        with open_store(self.project.config) as store, open_accounts(self.project.config) as accounts:
            accepted = accounts.registrations.acceptances()
            tasks = load_tasks(self.project.config)[0]
            Desk(store, tasks, to, problems.append, accepted=accepted).publish(["alpha", "beta"])
        to.alive()
        assert problems == []

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """Decide in a thread whatever comes in, for as long as the block lasts."""
        ended = threading.Event()

        def decide() -> None:
            while not ended.wait(0.1):
                self.decide()

        thread = threading.Thread(target=decide)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
