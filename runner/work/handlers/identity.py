"""Signing in at a provider: its statement becomes a token for half a day, once work itself has found it right."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from runner.exchange.oidc import FILE, Asked, NotBelieved, Provider, Unreachable, identities_of, nonce_of
from runner.exchange.security import SecurityLog
from runner.model.errors import PlatformError, RunnerError
from runner.work.handlers.wish import Wish
from runner.work.managing import Managing
from schemas.files import settled

LASTS = timedelta(hours=12)
_NOBODY = "nobody is tied to that person"


def sign_in(wish: Wish) -> dict[str, Any]:
    """Note the token of somebody whom the provider knows and the organiser has tied to an account."""
    try:
        asked = _asked(wish.config.home / FILE)
        claims = asked.claims(wish.data["statement"], nonce_of(wish.data["key"]), wish.clock.now())
    except (OSError, ValueError) as error:
        why = f"{wish.config.home / FILE} is not there, or not right: {type(error).__name__}."
        raise RunnerError("E103", "nobody signs in by a provider here", why="", fix="") from ValueError(why)
    except Unreachable as error:
        raise PlatformError("the provider cannot be asked", why=f"{error}.", fix="", code="E306") from error
    except NotBelieved as error:
        SecurityLog(wish.config.home).note("statement refused", request=wish.request, why=str(error))
        raise RunnerError("E103", "what the provider said does not hold", fix="sign in anew") from None
    accounts = wish.accounts
    found = accounts.identities.account(asked.provider.issuer, identities_of(claims))
    if found is None:
        SecurityLog(wish.config.home).note("statement refused", request=wish.request, why=_NOBODY)
        raise RunnerError("E103", _NOBODY, fix="ask the organiser")
    office = Managing(wish.config, wish.store, accounts)
    office.lend_token(accounts.named(found), wish.token, wish.data["key"], LASTS)
    return {}


def _asked(path: Path) -> Asked:
    facts = path.stat()
    return _kept(path, facts.st_mtime_ns) if settled(facts) else Asked(Provider.read(path))


@cache
def _kept(path: Path, version: int) -> Asked:
    return Asked(Provider.read(path))
