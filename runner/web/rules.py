"""Who may call what: roles, and what every route declares beside its path. A route without a rule cannot be written down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from runner.exchange.access import Grant

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from runner.exchange.published import Published, View
    from runner.web.sessions import Session

Role = Literal["public", "team", "organiser", "assistant", "assessor", "work"]
Method = Literal["GET", "POST", "PUT", "DELETE"]
EVERYBODY: tuple[Role, ...] = ("public", "team", "organiser", "assistant", "assessor")
SIGNED_IN: tuple[Role, ...] = ("team", "organiser", "assistant", "assessor")
TEAM: tuple[Role, ...] = ("team",)
# The console: both look after a task. What discloses or gives power (publish, unblind, release, a role) only the organiser proposes.
CONSOLE: tuple[Role, ...] = ("organiser", "assistant")
ASKING: tuple[Role, ...] = ("team", *CONSOLE)  # whose requests have pages
ORGANISER: tuple[Role, ...] = ("organiser",)
WORK: tuple[Role, ...] = ("work",)  # of no account: work on another machine, by its key
FORM_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Visitor:
    """Who asks: with a ``grant`` signed in, by a cookie's ``session`` or by a token in the header. ``key`` signs requests.
    ``work`` is set for work itself, on another machine; ``kept`` where the page becomes a file that outlives this server."""

    grant: Grant | None = None
    key: str = ""
    session: Session | None = None
    program: bool = False  # asks the API: by a token in the header alone, and is answered in JSON
    work: bool = False
    kept: bool = False

    @property
    def role(self) -> Role:
        """The role in which rules look at them."""
        return "work" if self.work else self.grant.role if self.grant else "public"

    @property
    def team(self) -> str | None:
        """The team they act for."""
        return self.grant.team if self.grant else None

    @property
    def audience(self) -> str:
        """The audience whose published things they see."""
        own = {"team": f"team:{self.team}", "organiser": "organiser", "assistant": "assistant"}
        return own.get(self.role, "public")


@dataclass(frozen=True)
class Call:
    """One request, by somebody whom the route's rule lets through. ``view`` is what they may see, as of one moment."""

    request: Request
    visitor: Visitor
    published: Published
    view: View

    def at(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])


@dataclass(frozen=True)
class Operation:
    """What a route of the API says of itself in its description (:mod:`runner.web.openapi`).

    ``gives``: the schema of its answer, or of the entries of its pages where ``paged``; ``takes``: the schema of the fields
    of a form that go with a ``file``; ``query``: further parameters, with what they mean. For what is sent and answered in
    headers, each with what it means: ``sends`` has to be there, ``may_send`` can be, ``tells`` is in a good answer; ``media`` is what
    the body is in, where it is no form, and ``also`` are statuses that other routes do not answer with. ``media_given``: what is
    answered is no JSON, but a file of that type. Without either a good answer has no content.
    """

    gives: str = ""
    paged: bool = False
    takes: str = ""
    status: int = 200
    query: Mapping[str, str] = field(default_factory=dict)
    sends: Mapping[str, str] = field(default_factory=dict)
    may_send: Mapping[str, str] = field(default_factory=dict)
    tells: Mapping[str, str] = field(default_factory=dict)
    media: str = ""
    media_given: str = ""
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """A route: ``path``, ``method``, what answers, and which roles ``may`` call it, with which ``scope`` of their token.

    Others are sent to sign in (nobody signed in), or are answered with 403. What a role may call can still be 404 for
    somebody: what was not published to an audience is not there. A POST is taken with a session only with its form's
    token. Routes of the API have an ``operation``: they are called by programs with a token in the header alone. ``limited``:
    strangers may send something here, so many times from an address (:mod:`runner.web.limits`); what is sent with a token is
    counted by it. A body has at most ``most`` bytes (413): enough for forms; None for files, which have as
    many as the front takes at all.
    """

    method: Method
    path: str
    answer: Callable[[Call], Awaitable[Response]]
    may: tuple[Role, ...]
    scope: str = "read"
    limited: bool = False
    operation: Operation | None = None
    most: int | None = FORM_BYTES
