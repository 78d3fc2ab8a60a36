"""A token that somebody made: with another one that may do so, or with a one-time link."""

from __future__ import annotations

from typing import Any

from runner.work.handlers.wish import Wish
from runner.work.managing import Managing


def make_token(wish: Wish) -> dict[str, Any]:
    """Note a token. The link, or the token that is replaced, opens nothing from now on; the same wish changes nothing more."""
    d, at = wish.data, wish.clock.now()
    office = Managing(wish.config, wish.store, wish.accounts)
    office.put_token(wish.account, wish.token, at, d["token"], d["key"], d["scopes"], d["replaces"])
    return {}
