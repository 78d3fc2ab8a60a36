"""Following a run that another process is executing, or is about to."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from runner.cli import context, output
from runner.views.audience import escape

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.model.task import Task
    from runner.records.store.connect import Store

MAX_LINE = 64 * 1024  # bytes
PAUSE = 0.5  # seconds between two looks


def follow(where: Config, store: Store, run_id: str, tasks: Mapping[str, Task], *, show: bool) -> bool:
    """Wait until a run is over, also one that has not begun; with ``show`` print what its software writes, as it writes it.

    Only for those who may read its log. Control characters are escaped. Returns whether anything was printed.
    """
    shown: set[int] = set()
    said = False
    while True:
        number = store.archive.live().get(run_id)
        if number is None and not _to_come(store, tasks, run_id):
            return bool(shown)
        if number is None and not said:
            said = True
            output.say(f"{run_id} does not run yet; waiting for it (Ctrl-C ends the waiting)")
        if show and number is not None and number not in shown:
            for line in lines(_written(where, store, run_id, number)):
                shown.add(number)
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
        time.sleep(PAUSE)


def _written(where: Config, store: Store, run_id: str, number: int) -> Iterator[bytes]:
    """What the software of an attempt writes as it comes, here or at a host of a cluster, until the attempt is over."""
    from runner.execution.attempt import engine_attempt
    from runner.execution.cluster.tails import FOLDER, following

    engine, elsewhere = context.engine(where), False
    with following(where.home / FOLDER, run_id, number) as there:
        while store.archive.live().get(run_id) == number:
            here = False
            for piece in engine.follow(engine_attempt(run_id, number)):
                here = True
                yield piece
            if here:
                return
            there.ask()
            if piece := there.read():
                elsewhere = True
                yield piece
            time.sleep(PAUSE)
        yield there.read()
    if elsewhere:
        output.say(f"it went on at another machine: runner logs {run_id} prints all that it wrote")


def _to_come(store: Store, tasks: Mapping[str, Task], run_id: str) -> bool:
    """Whether a run that nobody is running is still to be executed."""
    from runner.records.store.queries import find_run

    store.catch_up()
    return find_run(store, run_id, tasks.values()).outcome.todo == "run"


def lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """What comes in pieces, as lines, escaped; a longer one than 64 KiB is cut into several."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        while len(rest) > MAX_LINE:
            whole, rest = [*whole, rest[:MAX_LINE]], rest[MAX_LINE:]
        yield from map(_shown, whole)
    if rest:
        yield _shown(rest)


def _shown(line: bytes) -> str:
    return escape(line.decode("utf-8", "replace").rstrip("\r"), 4 * MAX_LINE)
