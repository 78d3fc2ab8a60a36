"""Every route with its rule: what answers, and who may call it. ``tests/runner/web/test_routes.py`` walks all of them.

A module holds the routes of one idea, as a class with ``rules``; a new one is a line of :func:`rules`.
"""

from runner.exchange.inbox import Inbox
from runner.exchange.oidc import Asked
from runner.web.door import Door
from runner.web.limits import Room
from runner.web.routes.api import Api, Described
from runner.web.routes.boards import Boards
from runner.web.routes.comparing import Comparing
from runner.web.routes.console import Console
from runner.web.routes.data import Data
from runner.web.routes.deciding import Deciding
from runner.web.routes.following import Feed, Following
from runner.web.routes.handing_in import HandingIn
from runner.web.routes.link import Link
from runner.web.routes.oidc import ByProvider
from runner.web.routes.own import Own
from runner.web.routes.plots import Plots
from runner.web.routes.reading import Reading
from runner.web.routes.registering import Registering
from runner.web.routes.signing_in import SigningIn
from runner.web.routes.team import Team
from runner.web.routes.tokens import Tokens
from runner.web.routes.uploads import Uploading
from runner.web.rules import Rule
from runner.web.uploads import Uploads


def rules(door: Door, inbox: Inbox, uploads: Uploads | None = None) -> tuple[Rule, ...]:
    """The routes of the front, in the order in which they are tried."""
    uploads = uploads or Uploads(inbox.root / ".uploads", clock=door.published.clock)
    room = Room(door.published.root, inbox, uploads, door.waiting, door.limits)
    groups = (
        Api(door),
        Own(door, room),
        HandingIn(door, uploads, room),
        Uploading(door, uploads),
        Team(door, room),
        Console(door),
        Deciding(door, room),
        Following(door),
        Feed(door),
        SigningIn(door),
        Link(door, inbox),
        Tokens(door, room),
        Registering(door, room),
        Plots(door),
        Comparing(door),
        Data(door, room),
        Reading(door),
        Boards(door),
    )
    provider = [] if door.provider is None else [ByProvider(door, room, Asked(door.provider))]
    found = [rule for group in (*groups, *provider) for rule in group.rules()]
    return (*Described(door, found).rules(), *found)
