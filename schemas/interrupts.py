"""Ending a program of ours in order when it is interrupted, however it was started."""

from __future__ import annotations

import signal
import threading
from typing import Any


def heard() -> None:
    """From now on SIGINT raises KeyboardInterrupt in this process, also where it was inherited as ignored.

    A shell without job control starts what follows with ``&`` that way, and so do ``nohup`` and some schedulers. Whoever sends the
    signal then wants this process to end, and an order that is not heard ends in a kill, which leaves everything as it lay.
    Another handler is left as it is; outside the main thread nothing happens, as signals arrive there only.
    """
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Interrupts:
    """SIGTERM and SIGINT of a program that starts and ends threads: a context in which they raise KeyboardInterrupt, once, and never
    between :meth:`hold` and :meth:`let`, where they are kept.

    It begins held. Outside the main thread nothing happens, as signals arrive there only.
    """

    def __init__(self) -> None:
        self._held, self._came = True, False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def hold(self) -> None:
        """From now on keep what comes."""
        self._held = True

    def let(self) -> None:
        """From now on raise KeyboardInterrupt for what comes, and now for what came."""
        self._held = False
        if self._came:
            self._heard()

    def _heard(self, *_: object) -> None:
        self._came = True
        if not self._held:
            self._held = True  # the next finds us ending
            raise KeyboardInterrupt
