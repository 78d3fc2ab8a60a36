"""The coordinator's line to the scheduler of a cluster: a process of its own.

Dask unpickles what a scheduler or a worker sends, whatever its client is told: whoever has one of them can run code in the
process that holds the client. So that process is not the coordinator: all files and processes are closed to it but its own
certificates, and what it says is JSON that the coordinator checks. ``python -m runner.execution.cluster.client`` reads a wish a line and writes what happens a line.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from runner.exchange.confined import close_calls, confine, offered
from runner.execution.cluster import host as at_host
from runner.execution.cluster.reaching import unreachable, why_not

if TYPE_CHECKING:
    from distributed import Client

LOOK = 1.0  # seconds between two looks at the hosts
HEED = 0.2  # seconds between two looks whether the scheduler is there
GONE = 3  # looks without a host after which what it was doing is lost
CONNECTING = 30.0  # seconds
DESCRIBING = 30.0
ANSWERING = 30.0  # seconds after which a scheduler that says nothing does not answer
MAX_ANSWER = 1 << 14  # bytes
MAX_TAIL = 1 << 16  # bytes of what a software wrote since it was asked, as JSON
SEEN = tuple(
    map(Path, ("/proc/meminfo", "/proc/stat", "/proc/cpuinfo"))
)  # what Dask looks at when it is imported

# What Dask does for those who look at its pages, or share data among hosts, again and again; nobody does here.
_NOT_NEEDED = {
    "worker.profile.enabled": False,  # it looks at the stacks of all threads a hundred times a second
    "admin.tick.interval": "500ms",
    "admin.system-monitor.interval": "5s",
    "admin.system-monitor.gil.enabled": False,
    "scheduler.work-stealing": False,
    "scheduler.active-memory-manager.start": False,
    "diagnostics.computations.max-history": 1,
    "diagnostics.nvml": False,
    "client.scheduler-info-interval": "60s",  # the line looks itself
}


def settle(own: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Tell Dask what a process of a cluster needs, with its ``own`` settings (their names as below ``distributed``).

    To be called before a server or client of Dask is made. Raises KeyError for a setting that Dask does not know.
    """
    import dask
    import distributed  # noqa: F401 - its settings are known then

    settings = {f"distributed.{name}": value for name, value in {**_NOT_NEEDED, **own}.items()}
    for name in settings:
        dask.config.get(name)
    dask.config.set(settings)


def security(certificates: str | None) -> Any:
    """What Dask needs to talk by TLS with the files of a folder (:mod:`runner.execution.cluster.certificates`); None without one."""
    if not certificates:
        return None
    from distributed.security import Security

    folder = Path(certificates)
    ca, cert, key = (str(folder / name) for name in ("ca.pem", "cert.pem", "key.pem"))
    both = [
        (f"tls_{role}_{what}", file)
        for role in ("client", "worker", "scheduler")
        for what, file in (("cert", cert), ("key", key))
    ]
    return Security(require_encryption=True, tls_ca_file=ca, **dict(both))  # type: ignore[no-untyped-call]


def wall(folder: Path, certificates: str | None, warn: Callable[[str], None]) -> None:
    """Close all but a folder of its own and the certificates to this process: what Dask's peers send runs in it.

    To be called before Dask is imported, which begins threads: walls are those of a thread and of what it begins. Where the kernel
    cannot do all of it, ``warn`` is told.
    """
    seen = [*SEEN, Path(f"/proc/{os.getpid()}"), *([Path(certificates)] if certificates else [])]
    if not (confine(seen, [folder]) and close_calls() and offered()):
        warn(
            "CAUTION: this kernel does not close files and processes of this machine to what talks to the cluster: trust its hosts"
        )


class Orders:
    """The client and what it was asked to do."""

    def __init__(self, client: Client, home: str, why_away: Callable[[], Awaitable[str]]) -> None:
        self._client, self._home, self._why_away = client, home, why_away
        self._cut = False  # whether the scheduler was lost
        self._orders: dict[str, tuple[str, Any]] = {}  # name -> address of its host, and the future
        self._hosts: dict[
            str, dict[str, Any] | None
        ] = {}  # address -> what it says of itself (None: not yet)
        self._dead: set[str] = set()  # addresses of hosts that the scheduler lost, until they are seen again
        self._told: dict[str, Any] | None = None
        self._away: dict[str, int] = {}  # address -> looks at which it was not there
        self._there: set[str] = set()  # addresses that the scheduler named the last time
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, wishes: asyncio.StreamReader) -> None:
        """Do what is wished until the other side is gone or wishes it to end, or the scheduler does not answer any more.

        What was going on then is lost with the line, and told by the other side: nobody says so of one order after another.
        """
        look, heard = asyncio.create_task(self._look()), asyncio.create_task(self._hear(wishes))
        cut = asyncio.create_task(self._cut_off())
        try:
            await asyncio.wait([look, heard, cut], return_when=asyncio.FIRST_COMPLETED)
            if not heard.done():
                error = look.exception() if look.done() else None
                why = await self._why_away() or (why_not(error) if error else "the connection broke off")
                say({"failed": f"the scheduler does not answer any more: {why}"})
        finally:
            for task in (look, heard, cut, *self._tasks):
                task.cancel()

    def _is_cut(self, error: BaseException | None = None) -> bool:
        """Whether the scheduler was lost, by the state of the client or what became of an order: Dask gives all of them up then."""
        from distributed.client import FutureCancelledError

        # Of that type alone: any other comes from a host.
        lost = type(error) is FutureCancelledError and error.reason == "scheduler-connection-lost"
        self._cut = self._cut or lost or self._client.status != "running"
        return self._cut

    async def _cut_off(self) -> None:
        """Wait until the scheduler is not there any more."""
        while not self._is_cut():
            await asyncio.sleep(HEED)

    async def _hear(self, wishes: asyncio.StreamReader) -> None:
        while line := await wishes.readline():
            wish = json.loads(line)
            if wish["do"] == "begin":
                self._begin(wish)
            elif wish["do"] == "stop":
                self._spawn(self._stop(wish["host"], wish["names"], wish["drop"]))
            elif wish["do"] == "tail":
                self._spawn(self._tail(wish["host"], wish["name"], wish["start"]))
            else:
                return

    def _begin(self, wish: dict[str, Any]) -> None:
        name, host = wish["name"], wish["host"]
        known = {key: wish[key] for key in ("name", "order", "key", "hidden", "url")}
        message = json.dumps(known | {"sent": time.time()}).encode()
        # Once, there, and never again by Dask: who repeats it is the coordinator, as another attempt.
        future = self._client.submit(
            at_host.perform,
            message,
            key=name,
            workers=[host],
            allow_other_workers=False,
            retries=0,
            pure=False,
        )
        self._orders[name] = host, future
        self._spawn(self._follow(name, future))

    async def _follow(self, name: str, future: Any) -> None:
        try:
            answer = await future
            said = json.loads(bytes(answer)[: MAX_ANSWER + 1])
        except asyncio.CancelledError:
            if name in self._orders and not self._is_cut():
                self._lose(name, "the scheduler gave it up")
            return
        except Exception as error:  # noqa: BLE001 - whatever Dask says of it: nothing came of it
            if self._is_cut(error):
                return
            if type(error).__name__ == "KilledWorker":  # who hears that it is lost orders it elsewhere
                self._dead.add(self._orders[name][0] if name in self._orders else "")
                self._tell()
            self._lose(name, type(error).__name__)
            return
        if self._orders.pop(name, None) is not None:
            say({"ended": name, "answer": said})
        future.release()

    def _lose(self, name: str, why: str) -> None:
        if (found := self._orders.pop(name, None)) is not None:
            say({"lost": name, "why": why})
            found[1].release()

    async def _stop(self, host: str, names: list[str], drop: bool) -> None:
        message = json.dumps({"names": names, "drop": drop}).encode()
        try:
            await self._client.run(at_host.stop, message, workers=[host], on_error="ignore")
        except Exception as error:  # noqa: BLE001 - a host that is gone has nothing to stop
            say({"warning": f"{host} could not be told to stop: {type(error).__name__}"})

    async def _tail(self, host: str, name: str, start: int) -> None:
        """Ask what a software has written, and tell it; whatever happens, something is told."""
        message, said = json.dumps({"name": name, "start": start}).encode(), None
        with suppress(Exception):  # a host that is gone or says what is none has nothing to tell
            asked = self._client.run(at_host.tail, message, workers=[host], on_error="ignore")
            answer = (await asyncio.wait_for(asked, DESCRIBING))[host]
            said = json.loads(answer) if len(answer) <= MAX_TAIL else None
        say({"tail": name, "said": said})

    async def _look(self) -> None:
        """Tell of hosts that come, change and go, now and then."""
        while True:
            assert self._client.scheduler is not None
            dead = set(self._dead)
            info = (await asyncio.wait_for(self._client.scheduler.identity(n_workers=-1), ANSWERING))[
                "workers"
            ]
            self._dead -= dead  # what it says now was asked since
            there = {address: one for address, one in info.items() if one.get("status") == "running"}
            for address in there:
                if address not in self._hosts:
                    self._hosts[address] = None
                    self._spawn(self._describe(address))
            for address in [known for known in self._hosts if known not in info]:
                del self._hosts[address]
            for address in {host for host, _ in self._orders.values()}:
                self._away[address] = 0 if address in info else self._away.get(address, 0) + 1
                if self._away[address] >= GONE:
                    for name in [name for name, (host, _) in self._orders.items() if host == address]:
                        self._lose(name, "its host is gone")
            self._there = set(there)
            self._tell()
            await asyncio.sleep(LOOK)

    def _tell(self) -> None:
        """Tell which hosts are there, where they are others than were told."""
        there = self._there - self._dead
        known = {a: said for a, said in self._hosts.items() if said is not None and a in there}
        if known != self._told:
            say({"hosts": known})
            self._told = known

    async def _describe(self, address: str) -> None:
        try:
            future = self._client.submit(
                at_host.describe,
                self._home,
                key=f"describe-{address}-{os.urandom(4).hex()}",
                workers=[address],
                allow_other_workers=False,
                pure=False,
            )
            said = json.loads((await asyncio.wait_for(future, DESCRIBING))[:MAX_ANSWER])
        except Exception as error:  # noqa: BLE001 - it is asked again as long as it is there
            say({"warning": f"{address} does not say what it is: {type(error).__name__}"})
            self._hosts.pop(address, None)
            return
        if address in self._hosts:
            self._hosts[address] = said

    def _spawn(self, what: Any) -> None:
        task = asyncio.create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def say(what: dict[str, Any]) -> None:
    """Write a line to the coordinator."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def _main(address: str, home: str, certificates: str | None) -> None:
    from distributed import Client

    settle()
    reader = asyncio.StreamReader(limit=1 << 16)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    secured = security(certificates)
    if away := await unreachable(address, secured):
        say({"failed": f"{address} does not answer: {away}"})
        return
    try:
        client = await Client(  # type: ignore[no-untyped-call]
            address,
            asynchronous=True,
            timeout=CONNECTING,
            security=secured,
            set_as_default=False,
        )
    except (TimeoutError, OSError) as error:
        say({"failed": f"{address} does not answer: {why_not(error)}"})
        return
    try:
        await Orders(client, home, lambda: unreachable(address, secured)).serve(reader)
    finally:
        await client.close(timeout=5)


def main(address: str, home: str, own: str, certificates: str | None = None) -> None:
    """Hold the line until the other side ends it; all but the folder ``own`` and the certificates is closed to this process before.

    Where the kernel cannot do that it is said; whoever has the scheduler may have what this user has then.
    """
    folder = Path(own)
    wall(folder, certificates, lambda text: say({"warning": text}))
    os.chdir(folder)
    asyncio.run(_main(address, home, certificates))


if __name__ == "__main__":
    main(*sys.argv[1:])
