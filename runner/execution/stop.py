"""Who may stop work: one run, or everything."""

from __future__ import annotations

import time
from collections.abc import Collection

POLL_SECONDS = 0.1


class Stop:
    """Tells work when to stop; this one never does."""

    def stopping(self) -> bool:
        """True if everything was asked to stop."""
        return False

    def cancelled(self, run_id: str) -> bool:
        """True if the run, or everything, was asked to stop."""
        return bool(self.called_off([run_id]))

    def called_off(self, run_ids: Collection[str]) -> set[str]:
        """Return those of some runs that were asked to stop; all of them if everything was."""
        return {*run_ids} if self.stopping() else set()

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until everything is to stop; returns whether it is."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.stopping():
            time.sleep(POLL_SECONDS)
        return self.stopping()
