"""Who may stop work: one run, or everything."""

from __future__ import annotations

from collections.abc import Collection


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
