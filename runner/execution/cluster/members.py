"""The processes of a cluster beside the coordinator: its scheduler, and a worker on each host."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from runner.execution.cluster import host
from runner.execution.cluster.client import security, settle, wall
from runner.execution.cluster.reaching import NOT_TAKEN, unreachable, why_not

AGAIN = 2.0  # seconds after which a worker that lost its scheduler looks for it again
DRAINING = 0.5  # seconds between two looks whether what runs is done
GONE = 30  # seconds after which a worker that says nothing is gone
LOCAL = "127.0.0.1"
NO_PAGES = f"{LOCAL}:0"  # Dask listens for pages, which have no TLS, whatever it is told; there are none here
Say = Callable[[str], None]
_T = TypeVar("_T")


def schedule(address: str, certificates: Path | None, say: Say, gone: int = GONE) -> None:
    """Be the scheduler that listens at ``address``, until SIGTERM or Ctrl-C. It keeps nothing and does no work itself.

    A host that says nothing for ``gone`` seconds is lost. Whoever has a certificate of the cluster can run programs in a scheduler, so all
    files and processes of this machine are closed to it.
    """
    own = _passing_folder()
    wall(own, str(certificates) if certificates else None, say)
    os.chdir(own)
    from distributed import Scheduler

    # What goes down with a worker is repeated by the coordinator alone, as another attempt.
    settle({"scheduler.allowed-failures": 0, "scheduler.worker-ttl": f"{gone}s", "scheduler.http.routes": []})
    logs = logging.getLogger("distributed")
    logs.setLevel(logging.ERROR)
    place = urlsplit(address)

    async def serve(over: asyncio.Event) -> None:
        async with Scheduler(
            protocol=place.scheme,
            host=place.hostname,
            port=8786 if place.port is None else place.port,
            security=security(str(certificates) if certificates else None),
            dashboard=False,
            dashboard_address=NO_PAGES,
        ) as scheduler:
            say(f"scheduler at {scheduler.address}")
            await over.wait()
            logs.setLevel(logging.CRITICAL)  # that it loses its hosts now is no error

    asyncio.run(_until_stopped(serve))


def _passing_folder() -> Path:
    """A new folder, which is removed when this process has ended, whatever ended it: by another one, since this one may do less by then."""
    own = Path(tempfile.mkdtemp(prefix="scheduler-"))
    held, kept = os.pipe()
    if os.fork():
        os.close(held)
        return own  # the other end stays open as long as this process is there
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        os.close(kept)
        while os.read(held, 4096):
            pass
        shutil.rmtree(own, ignore_errors=True)
    finally:
        os._exit(0)


def work(station: host.Station, address: str, certificates: Path | None, say: Say) -> None:
    """Be a host of the cluster whose scheduler listens at ``address``, until SIGTERM or Ctrl-C: then what runs is done first.

    A second one ends what runs: its containers are removed, nothing of it is delivered, and it begins anew elsewhere.
    """
    from distributed import Worker
    from distributed.core import Status

    settle({"worker.daemon": False, "worker.http.routes": []})
    logging.getLogger("distributed").setLevel(logging.WARNING)  # what it does is said here
    # That its scheduler is lost is said here, too.
    logging.getLogger("distributed.worker.state_machine").setLevel(logging.ERROR)
    secured = security(str(certificates) if certificates else None)
    host.become(station)
    info = station.engine.info()
    steps = station.steps or max(1, int(info.cpus))
    resources = dict.fromkeys((*station.labels, *info.gpu_kinds), 1.0)
    resources |= {"cpus": float(info.cpus), "memory": float(info.memory), "gpus": float(info.gpus)}

    class Hand(Worker):
        async def close(self, *args: Any, **options: Any) -> Any:
            # What still runs when the scheduler is lost is told to stop when it is there again: nobody waits for it here.
            return await super().close(*args, **(options | {"executor_wait": False}))

    async def once(over: asyncio.Event) -> None:
        hand = Hand(
            address,
            nthreads=steps + 1,  # one to say what it is while all others work
            name=station.name,
            resources=resources,
            memory_limit=0,
            local_directory=str(station.cache.folder.parent),
            security=secured,
            dashboard=False,
            dashboard_address=NO_PAGES,
            host=LOCAL
            if urlsplit(address).scheme == "tcp"
            else None,  # nothing listens elsewhere without TLS
        )
        if not await _unless(over, _begun(hand)):
            return
        async with hand as worker:
            say(f"{station.name}: takes {steps} at once from {address}")
            ended = asyncio.create_task(worker.finished())
            stopped = asyncio.create_task(over.wait())
            await asyncio.wait([ended, stopped], return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            if over.is_set() and not ended.done():
                worker.status = Status.paused  # it is given no more
                await _drained(station, ended.done, say)

    # At the end what runs is done, also where the scheduler is lost: its containers are gone then.
    again = _again_and_again(
        once,
        lambda: unreachable(address, secured),
        lambda: _drained(station, lambda: False, say),
        lambda why: say(f"{station.name}: {address} {why}"),
    )
    asyncio.run(_until_stopped(again, station.drop_all))


def _again_and_again(
    once: Callable[[asyncio.Event], Any],
    why_away: Callable[[], Coroutine[Any, Any, str]],
    drained: Callable[[], Coroutine[Any, Any, None]],
    say: Say,
) -> Callable[[asyncio.Event], Any]:
    """Be a worker ``once``, and again when its scheduler was lost; says why it is away, where that has changed. At the end it is ``drained``.

    Dask's own worker would look for it without an end, also after a signal, and never say why.
    """

    async def serve(over: asyncio.Event) -> None:
        told = ""
        while not over.is_set():
            away = await _unless(over, why_away())
            if away == "":
                try:
                    await once(over)
                except (TimeoutError, OSError) as error:
                    away = why_not(error)
                except RuntimeError as error:
                    if NOT_TAKEN not in str(error):
                        raise
                    away = why_not(error)
            if away and away != told:
                say(f"does not answer: {away}. Trying again until it does")
            told = away or ""
            if not over.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), AGAIN)
        await drained()

    return serve


async def _begun(hand: Any) -> bool:
    """Have a worker be known to its scheduler."""
    await hand
    return True


async def _unless(over: asyncio.Event, wanted: Coroutine[Any, Any, _T]) -> _T | None:
    """What is wanted; None where a signal says before that it is over."""
    doing, stopped = asyncio.create_task(wanted), asyncio.create_task(over.wait())
    await asyncio.wait([doing, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if doing.done():
        return doing.result()
    doing.cancel()
    return None


async def _drained(station: host.Station, ended: Callable[[], bool], say: Say) -> None:
    """Wait until what runs is done, or something has ``ended``."""
    told = 0
    while (running := len(station.at_work)) and not ended():
        if running != told:
            say(f"{station.name}: {running} still running; once more ends them")
        told = running
        await asyncio.sleep(DRAINING)


async def _until_stopped(
    serve: Callable[[asyncio.Event], Any], at_once: Callable[[], object] = lambda: None
) -> None:
    """Serve until a signal says that it is over; another one then calls ``at_once``."""
    over = asyncio.Event()

    def signalled() -> None:
        if over.is_set():
            at_once()
        over.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, signalled)
    await serve(over)
