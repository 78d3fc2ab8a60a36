"""The front as a program: the application from its parts, and uvicorn around it."""

from __future__ import annotations

import logging
import resource
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from runner.exchange.address import note_address
from runner.exchange.confined import close_calls, confine
from runner.exchange.database import DatabaseError, files_of
from runner.exchange.inbox import Inbox
from runner.exchange.link import public_bytes
from runner.exchange.oidc import Provider
from runner.exchange.published import Damaged, Published
from runner.exchange.security import SecurityLog
from runner.model.clock import Clock
from runner.web.door import HEADERS, Door
from runner.web.guard import MOST_CONNECTIONS, MOST_HEAD, Guard
from runner.web.limits import Waiting
from runner.web.pages import load
from runner.web.problems import is_api
from runner.web.routes import rules
from runner.web.rules import Visitor
from runner.web.sessions import Sessions
from runner.web.uploads import Uploads
from runner.web.work_door import WorkDoor

if TYPE_CHECKING:
    import uvicorn

LOOPBACK = ("localhost", "127.0.0.1", "::1")
MOST = 256 * 1024 * 1024  # bytes of one body


def application(
    exchange: Path,
    state: Path,
    url: str,
    *,
    most: int = MOST,
    proxies: Iterable[str] = (),
    work_key: str | None = None,
    provider: Provider | None = None,
    clock: Clock | None = None,
    waiting: Waiting = Waiting(),
    kept: bool = False,
    database: str | None = None,
) -> Guard:
    """The front as an ASGI application.

    Args:
        exchange: The folder with ``published/`` and ``inbox/``.
        state: The folder of its own database.
        url: By which address people reach it: decides about hosts and cookies.
        most: Bytes that a body may have.
        proxies: Addresses of the servers before it, whose ``X-Forwarded-For`` is believed.
        work_key: The public key of work on another machine; None where both have one folder.
        provider: Where people sign in beside their tokens.
        clock: By default that of this machine.
        waiting: How much of a team may wait at a time.
        kept: Whether its answers become files (:mod:`runner.web.static`): then everybody is a stranger.
        database: The address of a server for its own database; None for a file in ``state``.
    """
    from starlette.applications import Starlette
    from starlette.routing import Route

    sessions, log = Sessions(state, clock, database), SecurityLog(state, clock=clock)
    work = WorkDoor(public_bytes(work_key), url) if work_key else None
    door = Door(
        Published(exchange / "published", clock),
        sessions,
        url,
        log,
        frozenset(proxies),
        waiting=waiting,
        work=work,
        provider=provider,
        kept=kept,
    )

    inbox = Inbox(exchange / "inbox")
    uploads = Uploads(inbox.root / ".uploads", clock=door.published.clock)
    if not kept:
        _recover(door, inbox, uploads)
    found = rules(door, inbox, uploads)
    routes = [Route(rule.path, door.opened(rule), methods=[rule.method]) for rule in found]
    app = Starlette(routes=routes, exception_handlers=_troubles(door))
    app.router.redirect_slashes = False  # it redirects to an address that the request chose
    return Guard(app, hosts_of(url), most, HEADERS)


def _recover(door: Door, inbox: Inbox, uploads: Uploads) -> None:
    """Finish what a killed server left unfinished, before anything is accepted."""
    inbox.sweep()
    with suppress(DatabaseError):  # the next start tries it again
        door.accepted.restore()
    threading.Thread(target=uploads.settle_all, daemon=True).start()  # digests of large uploads take minutes


def _troubles(door: Door) -> dict[Any, Any]:
    """What answers where something went wrong, by what it was."""
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response

    async def refused(request: Request, error: Exception) -> Response:
        stranger = Visitor(program=is_api(request.url.path))
        if not isinstance(error, HTTPException):
            answer = door.refused(stranger, 500)
            answer.headers["Connection"] = "close"  # uvicorn ends the connection behind it
            return answer
        with suppress(Damaged, OSError, DatabaseError):
            stranger = door.visitor(request)  # whoever has signed in is not asked to
        answer = door.refused(stranger, error.status_code)
        answer.headers.update(error.headers or {})
        return answer

    async def broken(request: Request, error: Exception) -> Response:
        why = (
            "What was published cannot be read."
            if isinstance(error, Damaged)
            else "The disk here refuses something."
        )
        why += " What you sent is kept if a receipt came, and else was not taken."
        return door.refused(Visitor(program=is_api(request.url.path)), 503, why, wait=60)

    handlers: dict[Any, Any] = {HTTPException: refused, 500: refused} | dict.fromkeys(
        (Damaged, OSError, DatabaseError), broken
    )
    return handlers


def hosts_of(url: str) -> list[str]:
    """The names by which requests may call the front that people reach by ``url``, as they stand in the header ``Host``."""
    at = urlsplit(url)
    names = [at.netloc.lower(), str(at.hostname)]
    if at.hostname in LOOPBACK:
        names += [f"{name}:{at.port}" if at.port else name for name in ("localhost", "127.0.0.1", "[::1]")]
    return names


def settings(app: Guard) -> uvicorn.Config:
    """How uvicorn runs the front: it tells nothing of itself, believes no proxy, and does not wait for ever."""
    import python_multipart
    import uvicorn

    from runner.web.connections import Connection

    logging.getLogger(python_multipart.__name__).setLevel(logging.ERROR)  # strangers shall not fill our log
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        lifespan="off",
        h11_max_incomplete_event_size=MOST_HEAD,
        timeout_graceful_shutdown=10,
    )


def serve(
    exchange: Path,
    state: Path,
    host: str,
    port: int,
    url: str | None,
    say: Callable[[str], None],
    proxies: Iterable[str] = (),
    work_key: str | None = None,
    provider: Provider | None = None,
    database: str | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C; says ``ready ADDRESS`` once it listens. Raises OSError for what the system refuses, DatabaseError
    for a database that cannot be used.

    Before, everything else is closed to this process as far as the kernel lets it.
    """
    import uvicorn

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio leaves Nagle's algorithm on, and every answer waits 40 ms for an acknowledgement.
    _more_files()
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(1024)
        name = f"[{host}]" if ":" in host else host
        here = url or f"http://{name}:{listening.getsockname()[1]}"
        inbox, published = exchange / "inbox", exchange / "published"
        # Another wall of this machine, such as a filter of system calls, may forbid either.
        with suppress(OSError):
            own = files_of(database) if database else []
            confine([published, *own], [state, inbox, *([published] if work_key else [])])
        with suppress(OSError):
            close_calls()
        app = application(
            exchange,
            state,
            here,
            proxies=proxies,
            work_key=work_key,
            provider=provider,
            database=database,
        )
        with suppress(OSError):  # links that organisers send want it, nothing else
            note_address(inbox, here)
        load()
        say(f"ready {here}")
        server = uvicorn.Server(settings(app))
        server.run(sockets=[listening])


def _more_files() -> None:
    """Have as many files open as connections may need, where the system lets us: 1,024 is a usual number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * MOST_CONNECTIONS if hard == resource.RLIM_INFINITY else min(hard, 4 * MOST_CONNECTIONS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
