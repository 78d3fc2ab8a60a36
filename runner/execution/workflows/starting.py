"""How parts of ours start beside an interactive software, and what is said of those that do not."""

from __future__ import annotations

import time
from collections.abc import Callable

from runner.engines.base import Handle
from runner.model.errors import PlatformError

KIB = 1024
POLL = 0.1  # seconds between looks
WORDS = 5  # lines that are repeated of what a server said before it ended
# The exit codes by which these say that the task's data are no use to them (each of them in its package).
REFUSED = {"search": 4, "user": 2, "gateway": 2}
PARTS = {
    "search": "argument index",
    "search-relay": "relay of the argument index",
    "watch": "argument index",
    "relay": "relay",
    "user": "simulated user",
    "gateway": "gateway",
    "driver": "driver",
}


def refused(part: str, words: str) -> PlatformError:
    """The error of a part of ours that the task's own data or options are no use to; ``words`` are what it said."""
    what = f"the {part} cannot use what task.yaml gives it"
    return PlatformError(what, why=words, fix="mend the task's files", code="E402")


def wait_ready(
    handle: Handle, what: str, seconds: float, give_up: Callable[[], None], words: Callable[[], str]
) -> None:
    """Wait until a container of ours says ``ready``. ``give_up`` is called in between and raises when there is no hope.

    Raises :class:`PlatformError` when it takes longer than ``seconds``.
    """
    until = time.monotonic() + seconds
    while b"ready" not in handle.logs("stdout", 4 * KIB).split():
        give_up()
        if time.monotonic() > until:
            raise PlatformError(
                f"the {what} did not start", why=f"It was not ready within {seconds:g} s. {words()}".strip()
            )
        time.sleep(POLL)
