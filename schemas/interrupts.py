"""Ending a program of ours in order when it is interrupted, however it was started."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

AGAIN = 0.02  # seconds until it is looked again whether the main thread may be interrupted
PATIENCE = 5.0  # seconds until what does not look whether it is interrupted is broken off

# Code of Python that an exception must not leave half-way. One in the machinery of imports leaves its lock locked for ever, and
# whatever thread imports next waits for it; one in what runs when an object goes is swallowed, and nobody is interrupted.
_IMPORTS, _WEAK = "<frozen importlib.", ("weakref.py", "_weakrefset.py")


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


def interrupted(number: int, frame: FrameType | None) -> None:
    """A handler of signals: raises KeyboardInterrupt, in a moment where the main thread is at what must not be left half-way.

    For programs with threads: they would wait for each other for ever, or never hear it.
    """
    if not _put_off(interrupted, frame):
        raise KeyboardInterrupt


def _put_off(handler: Callable[[int, FrameType | None], None], frame: FrameType | None) -> bool:
    """Whether the main thread is at what must not be left half-way; then ``handler`` is called again in a moment."""
    while frame is not None:
        code = frame.f_code
        if (
            code.co_filename.startswith(_IMPORTS)
            or code.co_filename.endswith(_WEAK)
            or code.co_name == "__del__"
        ):
            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
            return True
        frame = frame.f_back
    return False


class Interrupts:
    """SIGTERM and SIGINT of a program with threads: a context in which they are kept, and raised as KeyboardInterrupt at its end.

    An exception that comes at any place leaves locks and transactions behind, for which the other threads wait. So the main thread looks
    at :attr:`came` where what it does can be left. Where it does not for :data:`PATIENCE` seconds, because it waits for another program,
    for a machine or for who reads what it prints, KeyboardInterrupt is raised there. A person who presses Ctrl-C again does not wait that
    long, either. Outside the main thread nothing happens, as signals arrive there only.
    """

    def __init__(self) -> None:
        self._came, self._heeded, self._held, self._pressed = False, False, False, False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGALRM) is interrupted and any(
                signal.setitimer(signal.ITIMER_REAL, 0)
            ):
                self._came = True  # it was put off until now
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._heard)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.hold()
        if self._came and self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._came and kind is None:
            raise KeyboardInterrupt

    @property
    def came(self) -> bool:
        """Whether one arrived. Who sees that in the main thread ends in order, and is not broken off."""
        if self._came and threading.current_thread() is threading.main_thread():
            self._heeded = True
        return self._came

    def hold(self) -> None:
        """From now on raise nothing before the end: it has begun."""
        self._held = True

    def _heard(self, number: int, frame: FrameType | None) -> None:
        again = (number == signal.SIGINT and self._pressed) or (number == signal.SIGALRM and not self._heeded)
        if again and not self._held and not _put_off(self._heard, frame):
            raise KeyboardInterrupt
        if not self._came:
            signal.signal(signal.SIGALRM, self._heard)
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        self._came, self._pressed = True, self._pressed or number == signal.SIGINT
