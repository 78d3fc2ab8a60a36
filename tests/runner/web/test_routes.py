"""Roles and routes: a table that is walked completely; forms, headers, hosts and bodies, over real HTTP."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from runner.exchange.access import Access, Grant, Role, Token, verifier
from runner.exchange.inbox import Inbox, answer
from runner.exchange.link import Key
from runner.exchange.look import ahead, date
from runner.exchange.pieces import keep
from runner.exchange.published import Object, Published, Publisher
from runner.exchange.receipts import Signer, examine
from runner.exchange.security import SecurityLog
from runner.tasks.tables import ADDRESSES
from runner.web.door import HEADERS, Door
from runner.web.routes import rules
from runner.web.server import hosts_of
from runner.web.sessions import Sessions
from runner.web.vega import script
from schemas import canonical
from tests.worlds.site import notices, serving

FORM = re.compile(r'name="form-token" value="([^"]+)"')
ROLES: tuple[Role, ...] = ("team", "organiser", "assistant", "assessor")
STYLE = b"p { color: red }"
REQUEST = "d" * 32
ROW = {
    **{"rank": 1, "team": "alpha", "software": "one", "tag": "secret tag", "method": "automatic"},
    **{"scores": {"ndcg": {"mean": 0.5, "interval": [0.4, 0.6]}}, "registered": "2031-05-01T12:00:00Z"},
    **{"description": "secret words", "submission": "alpha.one.x", "baseline": False},
    "runs": ["alpha.one.x.dev", "alpha.one.x.test"],
}
BOARD = {
    **{"rows": [ROW], "rank_by": "ndcg", "measures": [{"id": "ndcg", "measure": "nDCG@10"}], "round": None},
    **{"heading": "", "table": "main"},
}
PLOT = "b" * 64
LEFT = {
    **{"left": 3, "limit": 5, "used": 2, "open": 0, "per_day": None, "today": 0, "next_free": ""},
    **{"deadline": None, "closes": {}, "paused": {}, "datasets": {}},
}

REGISTRATION = {
    **{"task": "mini", "title": "Mini", "approve": "organiser", "dates": {}, "begins": None, "ends": None},
    "asks": {"contact": "required", "members": "optional", "affiliation": "optional", "purpose": "off"},
    "terms": {"version": "1", "text": "Be fair.", "sha256": "e" * 64},
}

OFFERED = {
    **{"task": "mini", "title": "Mini", "accepted": False, "coming": 0, "datasets": []},
    "terms": {"version": "1", "text": "Be fair.", "sha256": "e" * 64},
}

# What each role gets: its status. "in": sent to sign in; where a team gets something, another team gets the last column.
TABLE: dict[tuple[str, str], tuple[Any, ...]] = {
    # method, path: public, team, organiser, assistant, assessor, another team
    ("GET", "/"): (200, 200, 200, 200, 200, 200),
    ("GET", "/tasks/{task}"): (200, 200, 200, 200, 200, 200),
    ("GET", "/tasks/{task}/calendar.ics"): (200, 200, 200, 200, 200, 200),
    ("GET", "/tasks/{task}/hand-in"): ("in", 200, 403, 403, 403, 200),
    ("POST", "/tasks/{task}/hand-in"): (401, 202, 403, 403, 403, 202),
    ("GET", "/tasks/{task}/{table:path}"): (404, 200, 404, 404, 404, 404),
    ("GET", "/tasks/{task}/against/{row}/{table:path}"): (404, 200, 404, 404, 404, 404),
    ("GET", "/tasks/{task}/data/{dataset}/{side}/{name:path}"): (404, 200, 404, 404, 404, 404),
    ("POST", "/tasks/{task}/terms"): (401, 400, 403, 403, 403, 404),
    ("GET", "/api/v1/tasks/{task}/data"): (404, 200, 404, 404, 404, 404),
    ("GET", "/api/v1/tasks/{task}/data/{dataset}/{side}/{name:path}"): (404, 200, 404, 404, 404, 404),
    ("POST", "/api/v1/tasks/{task}/terms"): (401, 400, 403, 403, 403, 404),
    ("GET", "/tasks/{task}/compare"): ("in", 200, 200, 200, 200, 200),
    ("GET", "/api/v1/tasks/{task}/comparison"): (401, 400, 400, 400, 400, 400),
    ("GET", "/runs/{run}"): ("in", 200, 404, 404, 404, 404),
    ("GET", "/runs/{run}/log"): ("in", 200, 404, 404, 404, 404),
    ("GET", "/runs/{run}/ir-metadata.yml"): ("in", 200, 404, 404, 404, 404),
    ("POST", "/submissions/{submission}/withdraw"): (401, 202, 403, 403, 403, 202),
    ("POST", "/submissions/{submission}/choose"): (401, 202, 403, 403, 403, 202),
    ("POST", "/notices"): (401, 202, 403, 403, 403, 202),
    ("GET", "/api/v1/notices"): (401, 404, 403, 403, 403, 404),
    ("POST", "/api/v1/notices"): (401, 202, 403, 403, 403, 202),
    ("GET", "/api/v1/runs/{run}/log"): (401, 200, 404, 404, 404, 404),
    ("POST", "/api/v1/submissions/{submission}/withdraw"): (401, 202, 403, 403, 403, 202),
    ("POST", "/api/v1/submissions/{submission}/choose"): (401, 202, 403, 403, 403, 202),
    ("POST", "/api/v1/tasks/{task}/softwares"): (401, 400, 403, 403, 403, 400),
    ("GET", "/api/v1/parts"): (401, 200, 403, 403, 403, 404),
    ("GET", "/api/v1/bounds"): (401, 200, 403, 403, 403, 200),
    ("GET", "/api/v1/uploads"): (401, 200, 403, 403, 403, 200),
    ("PUT", "/api/v1/uploads/{sha256}"): (401, 400, 403, 403, 403, 400),
    ("DELETE", "/api/v1/uploads/{sha256}"): (401, 404, 403, 403, 403, 404),
    ("GET", "/team"): ("in", 200, 403, 403, 403, 200),
    ("GET", "/requests/{id}"): ("in", 308, 308, 308, 403, 308),  # programs are sent to the API
    ("GET", "/requests/{id}/receipt"): ("in", 200, 404, 404, 403, 404),
    ("GET", "/keys"): (200, 200, 200, 200, 200, 200),
    ("GET", "/api/v1"): (200, 200, 200, 200, 200, 200),
    ("GET", "/api/v1/openapi.json"): (200, 200, 200, 200, 200, 200),
    ("GET", "/api/v1/me"): (401, 200, 200, 200, 200, 200),
    ("GET", "/api/v1/tasks"): (200, 200, 200, 200, 200, 200),
    ("GET", "/api/v1/tasks/{task}"): (200, 200, 200, 200, 200, 200),
    ("GET", "/api/v1/tasks/{task}/boards/{table}"): (404, 200, 404, 404, 404, 404),
    ("GET", "/api/v1/tasks/{task}/rounds/{round}/boards/{table}"): (404, 200, 404, 404, 404, 404),
    ("GET", "/api/v1/tasks/{task}/plots"): (200, 200, 200, 200, 200, 200),
    ("GET", "/api/v1/tasks/{task}/softwares/{team}/{software}"): (404, 200, 404, 404, 404, 404),
    ("GET", "/api/v1/tasks/{task}/standing"): (401, 200, 403, 403, 403, 404),
    ("POST", "/api/v1/tasks/{task}/run-files"): (401, 202, 403, 403, 403, 202),
    ("GET", "/api/v1/runs"): (200, 200, 200, 200, 200, 200),
    ("GET", "/api/v1/runs/{run}"): (401, 200, 404, 404, 404, 404),
    ("GET", "/api/v1/requests"): (401, 200, 403, 403, 403, 200),
    ("GET", "/api/v1/requests/{id}"): (401, 200, 404, 404, 403, 404),
    ("GET", "/sign-in"): (200, 200, 200, 200, 200, 200),
    ("POST", "/sign-in"): (403, 403, 403, 403, 403, 403),
    ("POST", "/sign-out"): (401, 303, 303, 303, 303, 303),
    ("GET", "/console"): ("in", 403, 200, 200, 403, 403),
    ("POST", "/console/propose"): (401, 403, 202, 403, 403, 403),
    ("POST", "/console/team"): (401, 403, 202, 403, 403, 403),
    ("POST", "/console/withdraw"): (401, 403, 202, 403, 403, 403),
    ("POST", "/runs/{run}/review"): (401, 403, 202, 202, 403, 403),
    ("POST", "/runs/{run}/rerun"): (401, 403, 202, 202, 403, 403),
    ("GET", "/live"): (404, 404, 404, 404, 404, 404),  # of no page; of pages see test_live.py
    ("GET", "/site.js"): (200, 200, 200, 200, 200, 200),
    ("GET", "/link/{link}"): (200, 200, 200, 200, 200, 200),
    ("POST", "/link/{link}"): (403, 202, 202, 202, 202, 202),
    ("GET", "/tasks/{task}/register"): (200, 200, 200, 200, 200, 200),
    ("POST", "/tasks/{task}/register"): (403, 400, 400, 400, 400, 400),
    ("GET", "/registrations/{id}"): (404, 404, 404, 404, 404, 404),  # of others' requests
    ("GET", "/token"): ("in", 200, 200, 200, 200, 200),
    ("POST", "/token"): (401, 202, 202, 202, 202, 202),
    ("GET", "/feed.atom"): (200, 200, 200, 200, 200, 200),
    ("GET", "/robots.txt"): (200, 200, 200, 200, 200, 200),
    ("GET", "/favicon.ico"): (204, 204, 204, 204, 204, 204),
    ("GET", "/site.css"): (200, 200, 200, 200, 200, 200),
    ("GET", "/look.js"): (200, 200, 200, 200, 200, 200),
    ("GET", "/board.js"): (200, 200, 200, 200, 200, 200),
    ("GET", "/tasks/{task}/softwares/{team}/{software}"): (404, 200, 404, 404, 404, 404),
    ("GET", "/downloads/{file:path}"): (404, 200, 404, 404, 404, 404),
    ("GET", "/style"): (200, 200, 200, 200, 200, 200),
    ("GET", "/hand-in.js"): (200, 200, 200, 200, 200, 200),
    ("GET", "/tasks/{task}/plots"): (404, 200, 404, 404, 404, 404),
    ("GET", "/plots/{digest}.json"): (404, 200, 404, 404, 404, 404),
    ("GET", "/plots/{digest}.csv"): (404, 200, 404, 404, 404, 404),
    ("GET", "/plots/{digest}.{form}"): (404, 200, 404, 404, 404, 404),
    ("GET", "/vega/{digest}.js"): (200, 200, 200, 200, 200, 200),
    ("GET", "/styles/{digest}.css"): (200, 200, 200, 200, 200, 200),
    ("GET", "/exchange/hello"): (200, 200, 200, 200, 200, 200),  # a nonce: only of use with work's key
    ("POST", "/exchange/hello"): (403, 403, 403, 403, 403, 403),
    ("POST", "/exchange/missing"): (404, 404, 404, 404, 404, 404),
    ("POST", "/exchange/published/{name:path}"): (404, 404, 404, 404, 404, 404),
    ("GET", "/exchange/inbox"): (404, 404, 404, 404, 404, 404),
    ("GET", "/exchange/inbox/{entry}/{file}"): (404, 404, 404, 404, 404, 404),
    ("POST", "/exchange/inbox/{entry}/done"): (404, 404, 404, 404, 404, 404),
    ("GET", "/badges/{task}/{table}.svg"): (404, 404, 404, 404, 404, 404),  # only of what is everybody's
    ("GET", "/badges/{task}/{table}/{team}/{software}.svg"): (404, 404, 404, 404, 404, 404),
    ("GET", "/healthz"): (200, 200, 200, 200, 200, 200),
}


# A name for each part of an address.
PARTS = {
    **{"task": "mini", "table:path": "main", "table": "main", "file:path": "tasks/mini/main.csv"},
    **{"team": "alpha", "software": "one", "row": "alpha.one", "round": "first", "run": "alpha.one.x.dev"},
    **{"submission": "alpha.one.x", "id": REQUEST, "digest": PLOT, "form": "svg", "dataset": "dev"},
    **{"side": "inputs", "name:path": "access.json", "entry": f"0000000001-{REQUEST}", "file": "payload"},
}


def address(path: str, **changes: str) -> str:
    """Return an address of a route: its parts as in PARTS, with changes, and "none" for others."""
    parts = {**PARTS, **changes}
    return re.sub(r"\{([^}]+)\}", lambda found: parts.get(found[1], "none"), path)


@dataclass
class Front:
    """A front that serves made-up published things, over a real socket."""

    exchange: Path
    url: str
    tokens: dict[str, Token]
    style: str
    links: dict[str, Token] = field(default_factory=dict)

    def client(self, role: str | None = None, **headers: str) -> httpx2.Client:
        """A client; with a role one that sends this role's token in the header."""
        given = {"authorization": f"Bearer {self.tokens[role]}"} if role else {}
        return httpx2.Client(base_url=self.url, trust_env=False, timeout=30, headers={**given, **headers})

    @contextmanager
    def browser(self, role: str = "team") -> Iterator[httpx2.Client]:
        """A client that signed in with a form."""
        with self.client() as client:
            form = form_of(client.get("/sign-in").text)
            said = client.post("/sign-in", data={"form-token": form, "token": str(self.tokens[role])})
            assert said.status_code == 303, said.text
            yield client


def form_of(text: str) -> str:
    found = FORM.search(text)
    assert found, text
    return found[1]


def task(to: Publisher, style: str) -> list[Object]:
    data = {
        **{"id": "mini", "title": "Mini", "description": "", "tables": [], "boards": []},
        **{"takes": ["run files"], "dates": {"opens": None, "closes": "2031-05-01T12:00:00Z"}},
    }
    more = {
        "demo": False,
        "datasets": [{"id": "dev", "opens": None, "closes": "2031-05-01T12:00:00Z", "grace": 0}],
        "scenarios": ["default"],
        "asks": {"description": "optional"},
        "output": {"says": "a line a document", "example": ""},
    }
    return [
        to.object("registration/mini", "registration", "Mini", REGISTRATION),
        to.object("tasks", "tasks", "Tasks", [data]),
        to.object("tasks/mini", "task", "Mini", {**data, **more}, "<pre>Mini</pre>", style),
        to.object("calendar/mini", "calendar", "Mini", {}, "BEGIN:VCALENDAR", style),
        Object(f"styles/{style}", "style", "", to.keep(b"{}"), None, style),
    ]


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    yield from fronts(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A front for the tests of a module that only read."""
    yield from fronts(tmp_path_factory.mktemp("front"))


def fronts(root: Path) -> Iterator[Front]:
    """A front in a folder, as long as its generator lives."""
    exchange = root / "exchange"
    to = Publisher(exchange / "published")
    style = to.keep(STYLE)
    board = to.object("tasks/mini/main", "board", "Mini", BOARD, "<h1>secret board</h1>", style)
    no_test = {"significance": None, "notes": ["secret note"], "comparisons": [None for _ in BOARD["rows"]]}
    names = [f"{row['team']}/{row['software']}" for row in BOARD["rows"]]
    each = {"fields": [], "against": [{"name": name, **no_test} for name in names]}
    tests = to.object("against/tasks/mini/main", "tests", "Mini", each)
    file = Object(
        "downloads/tasks/mini/main.csv", "download", "main.csv", to.keep(b"{}"), to.keep(b"secret file")
    )
    first = {**BOARD, "round": {"title": "First"}}
    frozen = to.object("tasks/mini/rounds/first/main", "board", "Mini", first, "<h1>secret round</h1>", style)
    left = to.object("standing/mini", "standing", "Mini", {"task": "mini", "title": "Mini", "team": LEFT})
    run = to.object("runs/alpha.one.x.dev", "run", "run", {}, "<main>secret run</main>", style)
    log = to.object("logs/alpha.one.x.dev", "log", "log", {"stdout": ["secret words"], "stderr": ["1"]})
    metadata = to.object("metadata/alpha.one.x.dev", "metadata", "metadata", {"yaml": "tag: secret\n"})
    parts = to.object("parts", "parts", "Parts", {"sha256": ["secret digest"]})
    runs = to.object("runs", "runs", "Runs", [])
    (root / "corpus").write_bytes(b"secret words of a corpus")
    pieces = {**keep(to, root / "corpus").as_dict(), "name": "access.json"}
    offered = [
        to.object("data/mini", "data", "Mini", OFFERED),
        Object("data/mini/dev/inputs/access.json", "file", "access.json", to.keep(canonical(pieces))),
    ]
    plots = to.object("plots-of/mini", "plots", "Mini: plots", [], "<h1>secret plots</h1>")
    files = {"svg": b64encode(b"<svg>secret</svg>").decode()}
    specified = {"vega": {"of": "secret"}, "files": files}
    drawn = to.object(f"plots/{PLOT}", "plot", "plot", {**specified, "csv": "secret figure"})
    everybody = task(to, style)
    alpha = [board, tests, file, frozen, left, run, log, metadata, runs, parts, plots, drawn, *offered]
    teams = {"team:alpha": [*everybody, *alpha], "team:beta": [*everybody, runs]}
    to.publish({**dict.fromkeys(("public", "organiser", "assistant"), everybody), **teams})
    to.alive()
    decision = Signer.load(exchange.parent / "work.key").sign("decision", {})
    known = {"team": "alpha", "accepted": True, "arrival": "", "sha256": None, "receipt": decision}
    answer(exchange / "published", REQUEST, known)
    tokens = {role: Token.new() for role in (*ROLES, "other")}
    links = {name: Token.new() for name in ("public", *tokens)}
    grants = [grant(t, name) for name, t in tokens.items()]
    grants += [link(t, name) for name, t in links.items()]
    Access({one.token: one for one in grants}).write(exchange / "published")
    for found in served(exchange, root / "state", tokens, style):
        found.links = links
        yield found


def grant(token: Token, name: str) -> Grant:
    team = {"team": "alpha", "other": "beta"}.get(name)
    role: Any = "team" if team else name
    scopes = ("read", "hand-in", "manage") if team else ("read", "manage")
    return Grant(token.id, verifier(token.key), f"a-{token.id}0000", role, team, scopes)


def link(token: Token, name: str) -> Grant:
    """Of a one-time link to an account."""
    given = grant(token, "team" if name == "public" else name)
    return replace(given, scopes=("link",), expires="2999-01-01T00:00:00Z")


def served(
    exchange: Path,
    state: Path,
    tokens: dict[str, Token],
    style: str,
    connection: Any = None,
    most: int = 100_000,
) -> Iterator[Front]:
    """A front; ``connection`` takes the place of its class of connections."""
    key = Key.at(state.parent / "link.key").public
    with serving(exchange, state, most, work_key=key, connection=connection) as url:
        yield Front(exchange, url, tokens, style)


def test_every_route_has_its_line_in_the_table(front: Front, tmp_path: Path) -> None:
    door = Door(Published(tmp_path), Sessions(tmp_path / "other"), front.url, SecurityLog(tmp_path))
    found = {(rule.method, rule.path) for rule in rules(door, Inbox(tmp_path))}
    assert found == set(TABLE), "a route and its line go together"


def test_no_table_may_have_the_address_of_another_page() -> None:
    beside = {path.removeprefix("/tasks/{task}/") for _, path in TABLE if path.startswith("/tasks/{task}/")}
    assert {word for word in beside if not {"/", "{"} & {*word}} == ADDRESSES


@pytest.mark.parametrize(("method", "path"), TABLE, ids=" ".join)
def test_each_role_gets_what_the_table_says(request: pytest.FixtureRequest, method: str, path: str) -> None:
    front: Front = request.getfixturevalue("shared" if method in ("GET", "HEAD", "OPTIONS") else "front")
    digest = {"plots": PLOT, "vega": script()[0]}.get(path.split("/")[1], front.style)
    expected = dict(zip(("public", *ROLES, "other"), TABLE[method, path], strict=True))
    for role, status in expected.items():
        where = address(path, digest=digest, link=str(front.links[role]))
        with front.client(None if role == "public" else role) as client:
            takes = path.endswith(("/hand-in", "/run-files"))
            files = {"file": ("run.txt", b"1 Q0 d 1 1 x\n")} if takes else None
            options: dict[str, Any] = (
                {"data": {"software": "one"}, "files": files} if method == "POST" else {}
            )
            said = client.request(method, where, **options)
            if status == "in":
                assert (said.status_code, said.headers["location"]) == (303, "/sign-in"), role
            else:
                assert said.status_code == status, (role, said.text)
            if status != 200:
                assert "secret" not in said.text
            for name, value in HEADERS.items():
                assert said.headers[name] == value
            assert "last-modified" not in said.headers and "server" not in said.headers


def test_what_is_not_there_and_what_is_not_theirs_is_one_answer(front: Front) -> None:
    with front.client("other") as client:
        texts = {client.get(f"/runs/{name}").text for name in ("alpha.one.x.dev", "nobody.x.y.dev")}
        texts |= {client.get(f"/requests/{one}/receipt").text for one in (REQUEST, "e" * 32, "x")}
        texts |= {
            client.get(f"/tasks/{one}").text for one in ("mini/main", "mini/none", "none", "mini/../tasks")
        }
    assert len(texts) == 1


@pytest.mark.parametrize("role", [None, *ROLES])
def test_what_is_missing_is_not_found_on_every_page(shared: Front, role: str | None) -> None:
    """A name that nothing has, in the place of each part of an address, for everybody who may read the page."""
    found = {}
    with shared.client(role) as client:
        for method, path in TABLE:
            names = [name for name in re.findall(r"\{([^}]+)\}", path) if name != "link"]
            for name in names if method in ("GET", "HEAD") and "{link}" not in path else ():
                where = address(path, **{name: "f" * 32 if name == "id" else "missing"})
                found[where] = client.request(method, where).status_code
    assert set(found.values()) <= {303, 401, 403, 404, 308, 400, 200}
    wrong = {where: status for where, status in found.items() if status in (200, 400)}
    assert wrong == {}


def test_a_form_counts_only_in_the_session_that_it_was_given_to(front: Front) -> None:
    with front.browser() as mine, front.browser() as other:
        theirs = form_of(other.get("/tasks/mini/hand-in").text)
        own = form_of(mine.get("/tasks/mini/hand-in").text)
        file = {"file": ("run.txt", b"x")}
        for form, headers, status in (
            ("", {}, 403),
            (theirs, {}, 403),
            (own, {"origin": "https://evil.example"}, 403),
            (own, {"origin": "null"}, 403),
            (own, {"sec-fetch-site": "cross-site"}, 403),
            (own, {"origin": front.url, "sec-fetch-site": "same-origin"}, 303),
        ):
            data = {"form-token": form, "software": "one"}
            said = mine.post("/tasks/mini/hand-in", data=data, files=file, headers=headers)
            assert said.status_code == status, (form, headers)
        assert len(Inbox(front.exchange / "inbox").waiting()) == 1
        assert mine.post("/sign-out", data={"form-token": theirs}).status_code == 403
        assert mine.post("/sign-out", data={"form-token": own}).status_code == 303
        assert mine.get("/team").status_code == 303 and other.get("/team").status_code == 200


def test_a_session_is_new_at_every_sign_in_and_ends_with_its_token(front: Front) -> None:
    with front.client() as planted:
        planted.cookies.set("session", "planted-by-somebody")
        form = form_of(planted.get("/sign-in").text)
        said = planted.post("/sign-in", data={"form-token": form, "token": str(front.tokens["team"])})
        cookies = said.headers.get_list("set-cookie")
    session = next(one for one in cookies if one.startswith("session="))
    assert (
        "planted" not in session
        and "HttpOnly" in session
        and "SameSite=lax" in session
        and "Secure" not in session
    )
    with front.browser() as team:
        assert team.get("/team").status_code == 200
        access = Access.read(front.exchange / "published")
        Access({k: g for k, g in access.grants.items() if k != front.tokens["team"].id}).write(
            front.exchange / "published"
        )
        assert team.get("/team").status_code == 303
        with front.client("team") as program:
            assert program.get("/team").status_code == 303
    wrong = replace(front.tokens["other"], secret="x" * 43)
    with front.client() as client:
        form = form_of(client.get("/sign-in").text)
        assert client.post("/sign-in", data={"form-token": form, "token": str(wrong)}).status_code == 403


def test_behind_tls_cookies_are_for_this_host_alone(tmp_path: Path) -> None:
    door = Door(Published(tmp_path), Sessions(tmp_path), "https://task.example.org", SecurityLog(tmp_path))
    assert door.secure and door.cookie.startswith("__Host-") and door.before.startswith("__Host-")


def test_no_other_host_is_believed_and_bodies_have_an_end(front: Front) -> None:
    with front.client(host="evil.example") as client:
        assert client.get("/").status_code == 400
    with front.client(host=f"localhost:{front.url.rpartition(':')[2]}") as client:
        assert client.get("/").status_code == 200
    assert hosts_of("https://task.example.org") == ["task.example.org"] * 2
    with front.client("team") as client:

        def long() -> Iterator[bytes]:
            for _ in range(50):
                yield b"x" * 10_000

        for content in (b"x" * 100_001, long()):
            said = client.post(
                "/tasks/mini/hand-in",
                content=content,
                headers={"content-type": "multipart/form-data; boundary=b"},
            )
            assert said.status_code in (400, 413), said.text
    assert Inbox(front.exchange / "inbox").waiting() == []


def test_names_and_texts_of_strangers_are_only_words(front: Front) -> None:
    evil = '"><script>alert(1)</script>'
    with front.browser() as team:
        form = form_of(team.get("/tasks/mini/hand-in").text)
        data = {"form-token": form, "software": evil, "description": evil, "dataset": evil}
        files = {"file": (f"../{evil}.txt", b"x")}
        wrong = team.post("/tasks/mini/hand-in", data=data, files=files)
        assert wrong.status_code == 400 and "<script>" not in wrong.text and "&lt;script&gt;" in wrong.text
        said = team.post("/tasks/mini/hand-in", data=data | {"software": "x", "dataset": "dev"}, files=files)
        assert team.get(said.headers["location"]).headers["refresh"] == "2", "it looks again without a script"
        pages = [team.get(said.headers["location"]).text, team.get("/team").text]
        pages += [team.get(f"/tasks/{evil}").text, team.get("/sign-in", params={"next": evil}).text]
    assert all("<script>" not in text for text in pages)
    [(name, _)] = Inbox(front.exchange / "inbox").waiting()
    taken = Inbox(front.exchange / "inbox").take(name, front.exchange / "mine")
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", taken.request.data["file"])


def test_pages_say_when_nobody_works(front: Front) -> None:
    with front.client() as client:
        assert client.get("/healthz").text == "ok\n" and notices(client.get("/").text) == []
        (front.exchange / "published/alive.json").unlink()
        assert client.get("/healthz").text != "ok\n" and notices(client.get("/").text) == ["bad"]


def test_whoever_has_signed_in_is_not_asked_to_where_there_is_no_page(front: Front) -> None:
    with front.browser() as team, front.client() as stranger:
        for path in ("/none", "/none/at/all", "/tasks/none", "/tasks/mini/hand-in/none"):
            mine, other = team.get(path), stranger.get(path)
            assert mine.status_code == other.status_code == 404
            assert "/sign-out" in mine.text and "/sign-in" not in mine.text and "alpha" in mine.text
            assert "/sign-in" in other.text
        assert team.put("/none").status_code in (403, 404, 405)


def test_times_are_said_with_their_zone_and_how_far_they_are() -> None:
    now = "2031-05-01T12:00:00Z"
    assert date("2031-05-03T09:05:00Z") == "3 May 2031, 09:05 UTC"
    for at, words in (
        ("2031-05-04T11:00:00Z", "in 2 days"),
        ("2031-05-03T11:59:59Z", "in 47 hours"),
        ("2031-05-01T13:59:00Z", "in 119 minutes"),
        ("2031-05-01T12:01:59Z", "in 1 minute"),
        ("2031-05-01T12:00:59Z", "in less than a minute"),
        ("2031-05-01T11:59:01Z", "less than a minute ago"),
        ("2031-04-29T12:00:00Z", "2 days ago"),
        ("2031-08-09T11:59:59Z", "in 99 days"),
        ("2031-08-09T12:00:00Z", ""),  # the date itself says more
        ("2016-08-09T12:00:00Z", ""),
    ):
        assert ahead(at, now) == words


def test_what_a_team_asks_for_its_submissions_is_kept_with_its_reason(front: Front) -> None:
    with front.client("team") as team, front.browser() as browser:
        asked = team.post("/api/v1/submissions/alpha.one.x/withdraw", params={"reason": "mine"})
        said = team.get(asked.headers["location"]).json()
        assert (said["answer"], said["what"], said["sha256"]) == (None, "withdraw alpha.one.x", None)
        assert team.get("/runs/alpha.one.x.dev/log").text == "secret words\n1\n"
        form = form_of(browser.get("/tasks/mini/hand-in").text)
        where = "/submissions/alpha.one.x/choose"
        assert browser.post(where, data={"form-token": "x" * 40}).status_code == 403
        assert browser.post(where, data={"form-token": form}).status_code == 303
        assert team.post("/api/v1/submissions/a b/choose").status_code == 404
    with front.client("other") as other:
        assert other.get(asked.headers["location"]).status_code == 404
    inbox = Inbox(front.exchange / "inbox")
    taken = [inbox.take(name, front.exchange / "mine") for name, _ in inbox.waiting()]
    assert [(one.request.kind, one.request.data, one.payload) for one in taken] == [
        ("withdraw", {"submission": "alpha.one.x", "reason": "mine"}, None),
        ("choose", {"submission": "alpha.one.x"}, None),
    ]


def test_what_arrives_is_signed_at_once_for_programs_and_for_people(front: Front) -> None:
    with front.client("team") as client:
        data, file = {"software": "one", "dataset": "dev"}, {"file": ("run.txt", b"1 Q0 d 1 1 x\n")}
        taken = client.post("/tasks/mini/hand-in", data=data, files=file).json()
        keys = client.get("/keys").json()
        arrival = client.get(taken["at"]).json()["receipt"]
        as_file = client.get(f"/requests/{taken['request']}/receipt")
    assert examine(taken["receipt"], [keys["front"]]) == [] and keys["work"] is None
    said = taken["receipt"]["arrival"]["statement"]
    assert (said["request"], said["sha256"], said["size"]) == (taken["request"], taken["sha256"], 13)
    assert (said["server"], said["team"], said["task"]) == (front.url, "alpha", "mini")
    assert said["began"] <= said["arrived"] == taken["arrival"]
    assert taken["receipt"] == as_file.json() and arrival == as_file.json()["arrival"]
    assert (
        as_file.headers["content-disposition"].startswith("attachment")
        and "no-store" in as_file.headers["cache-control"]
    )
    with front.browser() as team:
        page = f"/requests/{taken['request']}"
        assert f'href="{page}/receipt"' in team.get(page).text
        assert team.get(f"{page}/receipt").json() == as_file.json()
    with front.client("other") as client:
        assert client.get(f"{page}/receipt").status_code == 404
