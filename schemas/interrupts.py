"""Ending a program of ours in order when it is interrupted, however it was started."""

from __future__ import annotations

import signal
import threading


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
