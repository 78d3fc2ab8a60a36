"""What an organiser proposes on the web: kept until somebody decides it beside work."""

from __future__ import annotations

from typing import Any

from runner.model.errors import RunnerError
from runner.work.handlers.wish import Wish
from runner.work.managing import Managing
from runner.work.proposals import Desk


def propose(wish: Wish) -> dict[str, Any]:
    """Check a proposal; its event keeps it, and nothing happens. Raises E103 for who is no organiser."""
    if wish.account.role != "organiser":
        raise RunnerError("E103", "only organisers propose", fix="ask an organiser")
    with wish.as_told() as store:
        return {"proposal": Desk(Managing(wish.config, store, wish.accounts), wish.tasks).checked(wish.data)}
