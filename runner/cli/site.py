"""A task's pages as files: published for everybody into a folder of its own, asked of the front in this process, checked, put in place."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from runner.model.clock import SystemClock, stamp
from runner.model.errors import RunnerError, disk_error

if TYPE_CHECKING:
    from runner.model.clock import Clock
    from runner.model.task import Task
    from runner.records.store.connect import Store

MARK = "site.json"  # by which a folder is known that may be replaced
URL = "http://localhost"  # of a site that nobody said the address of


def build(
    store: Store,
    tasks: Mapping[str, Task],
    folder: Path,
    problem: Callable[[RunnerError], None],
    clock: Clock | None = None,
    url: str = URL,
) -> tuple[int, int]:
    """Write what everybody may see now as files into ``folder``: all of them or, where something is wrong, none.

    Args:
        store: Where it is read.
        tasks: By their ids.
        folder: Is made, or replaced where it is empty or was made by this.
        problem: Is told what cannot be shown, because files of it are damaged.
        clock: By default that of this machine.
        url: Where people will find it: entries of the feed are named by it.

    Returns:
        How many pages and how many files there are.

    Raises:
        RunnerError: E101 for a folder with something else in it, E308 for links that lead nowhere, E306 for a disk that refuses.
    """
    import schemas
    from runner.exchange.published import Publisher
    from runner.views.plots.published import Drawings
    from runner.web import links, static
    from runner.web.server import application
    from runner.work.publishing import Desk
    from schemas.files import atomic_folder

    folder, clock = folder.absolute(), clock or SystemClock()
    check_folder(folder)
    with tempfile.TemporaryDirectory(prefix="site-") as name:
        exchange = Path(name) / "exchange"
        to = Publisher(exchange / "published")
        drawings = Drawings(to, files=True)
        Desk(store, tasks, to, problem, clock, drawings=drawings, home=url).publish_to_everybody()
        front = application(exchange, Path(name) / "state", url, clock=clock, kept=True)
        found, missing = static.collect(front, urlsplit(url).netloc.lower(), Path(name))
        if missing:
            _refuse([f"{one.page}: {one.link}: answered with {one.status}" for one in missing])
        try:
            with atomic_folder(folder, replace=True) as new:
                static.write(found, new)
                (new / MARK).write_bytes(
                    schemas.canonical({"made_by": "runner site build", "at": stamp(clock.now())})
                )
                pages, broken = links.check(new)
                if broken:
                    _refuse([str(one) for one in broken])
                count = sum(path.is_file() for path in new.rglob("*"))
        except OSError as error:
            raise disk_error("the site cannot be written", error, folder) from error
    return pages, count


def check_folder(folder: Path) -> None:
    """Raise E101 unless a site may be put at ``folder``: nothing is there, an empty folder, or a site made before."""
    if not folder.exists() and not folder.is_symlink():
        return
    if (
        folder.is_dir()
        and not folder.is_symlink()
        and ((folder / MARK).is_file() or not any(folder.iterdir()))
    ):
        return
    why = f"It is no folder, or holds something, and no {MARK} that says that it is a site."
    raise RunnerError("E101", f"{folder} is not replaced", why=why, fix="name a folder that is not there yet")


def _refuse(lines: list[str]) -> None:
    why = "\n".join([*lines[:20], *([f"and {len(lines) - 20} more"] if len(lines) > 20 else [])])
    fix = "nothing was written; tell those who made this software"
    raise RunnerError("E308", "pages have links that lead nowhere", why=why, fix=fix)
