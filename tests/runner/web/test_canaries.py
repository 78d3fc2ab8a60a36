"""What nobody, or not everybody, may have is looked for in every answer to every role, and in all that is published.

The routes are those of the table of ``test_routes.py``: a new route is walked without a line here. Values are looked for
as they are, escaped for URLs, HTML and JSON, in hexadecimal and in base64 (whatever stands before them), and compressed answers are opened first.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import httpx2
import pytest

from runner.exchange.access import Access, Token
from runner.exchange.published import Published, Publisher, leads_to
from runner.records.review import comment_run
from runner.work.members.accounts import open_accounts, publish_access
from runner.work.publishing import Desk
from tests.runner.execution.test_pool import EVALUATOR, RESULT, World
from tests.runner.web.test_routes import TABLE
from tests.worlds.mini import TASK, Project
from tests.worlds.site import serving

ROLES = ("public", "alpha", "beta", "organiser", "assistant")
SCORE = 0.4243719
# What is planted, and who may have it on the web.
CANARIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "hidden inputs and truths": ("canaryhidden1", ()),
    "log of a hidden run": ('canary "log" <2>&', ()),
    "score of a hidden run": ("0.4243", ()),
    "member": ("Canary Member-3", ()),
    "contact": ("canary4@example.org", ()),
    "affiliation of a person": ("Canary <Institute> 5", ()),
    "what organisers write to each other": ('canary "note" <6>', ()),
    "what is written to a team": ('canary "hint" <7>', ("alpha", "organiser", "assistant")),
    "data for teams": ('canary "data" <10>&', ("alpha", "beta")),
    "description before publishing": ('canary "description" <8>', ("alpha", "organiser", "assistant")),
    "software before publishing": ("canary-software-9", ("alpha", "organiser", "assistant")),
}


def forms(text: str) -> set[bytes]:
    """The ways in which a text may stand in an answer."""
    plain = text.encode()
    found = {plain, html.escape(text).encode(), html.escape(text, quote=False).encode(), quote(text).encode()}
    found |= {quote_plus(text).encode(), json.dumps(text)[1:-1].encode(), plain.hex().encode()}
    found |= {
        text.encode("utf-16-le"),
        html.escape(text).replace("&#x27;", "&#39;").replace("&quot;", "&#34;").encode(),
    }
    for before in range(3):  # base64 of something that holds it
        whole = base64.b64encode(b"\0" * before + plain)
        cut = whole[[0, 2, 3][before] + (before > 0) : len(whole) - 4]
        found |= {cut, cut.replace(b"+", b"-").replace(b"/", b"_")}
    return found


def had(content: bytes) -> set[str]:
    """The canaries that are in something."""
    return {name for name, (text, _) in CANARIES.items() if any(form in content for form in forms(text))}


def allowed(role: str) -> set[str]:
    return {name for name, (_, roles) in CANARIES.items() if role in roles}


def scored(mounts: Any, out: Path) -> None:
    measures = {name: {**one, "value": SCORE} for name, one in RESULT["measures"].items()}  # type: ignore[attr-defined]
    out.joinpath("result.json").write_text(json.dumps({**RESULT, "measures": measures}))
    for name in ("scores.jsonl", "findings.jsonl"):
        out.joinpath(name).touch()


def talkative(mounts: Any, out: Path) -> None:
    mounts.say(CANARIES["log of a hidden run"][0])
    out.joinpath("run.txt").write_text("1 Q0 d 1 1.0 tag\n")


@dataclass
class Site:
    """A front with canaries behind it."""

    url: str
    root: Path
    tokens: dict[str, Token]
    names: dict[str, list[str]]

    def paths(self, path: str) -> Iterator[str]:
        """The addresses of a route, with everything that there is in the place of its names."""
        found = [path]
        for part in re.findall(r"\{([^}]+)\}", path):
            values = self.names.get(part, ["none"])
            found = [one.replace(f"{{{part}}}", value) for one in found for value in values]
        yield from found

    def answers(self, role: str) -> Iterator[tuple[str, bytes]]:
        """What each route says to a role, in each way that it can be asked: status, headers and body."""
        headers = {"authorization": f"Bearer {self.tokens[role]}"} if role in self.tokens else {}
        with httpx2.Client(base_url=self.url, trust_env=False, timeout=30, headers=headers) as client:
            # What only reads comes first: a page may repeat to somebody what they asked for.
            for method, path in sorted(TABLE, key=lambda one: one[0] not in ("GET", "HEAD", "OPTIONS")):
                for where in self.paths(path):
                    ways: list[dict[str, Any]] = [{}]
                    if method == "GET":
                        ways += [
                            {"headers": {"accept-encoding": "identity", "if-none-match": '"x"'}},
                            {"params": {"limit": "1", "q": "canary"}},
                        ]
                    if path.endswith(("/compare", "/comparison")):
                        ways += [
                            {"params": {"run": some}}
                            for count in (2, 3)
                            for some in permutations(self.names["run"], count)
                        ]
                    for way in ways:
                        with client.stream(method, where, **way) as said:
                            body = said.read()
                        head = b"".join(k + b": " + v + b"\n" for k, v in said.headers.raw)
                        yield f"{method} {where}", head + body

    def live(self, role: str, page: str) -> bytes:
        """The answer to an open page that asks whether it changed."""
        headers = {"authorization": f"Bearer {self.tokens[role]}"} if role in self.tokens else {}
        with httpx2.Client(base_url=self.url, trust_env=False, headers=headers) as client:
            said = client.get("/live", params={"page": page})
        return b"".join(k + b": " + v + b"\n" for k, v in said.headers.raw) + said.content


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("canaries")
    project = Project(root / "project", root / "home", root / "truths")
    dev = {**TASK["datasets"][0], "downloads": {"inputs": "everybody", "truths": "teams"}}
    rows = [dev, TASK["datasets"][1]]
    folder = project.write_task(prefix=CANARIES["hidden inputs and truths"][0], uploads=True, datasets=rows)
    (folder / "datasets/dev/truths/note.txt").write_text(CANARIES["data for teams"][0])
    world = World(project)
    world.engine.script[EVALUATOR] = scored
    said, software = CANARIES["description before publishing"][0], CANARIES["software before publishing"][0]
    runs = [world.hand_in("alpha", software, talkative, description=said), world.hand_in("beta")]
    world.work()
    with open_accounts(project.config) as accounts:
        made = {team: accounts.add("team", team) for team in ("alpha", "beta")}
        made |= {role: accounts.add(role) for role in ("organiser", "assistant")}
        for account, _ in made.values():
            accounts.people.put(
                account.id,
                contact=CANARIES["contact"][0],
                affiliation=CANARIES["affiliation of a person"][0],
                members=[CANARIES["member"][0]],
            )
        tokens = {name: token for name, (_, token) in made.items()}
        publish_access(project.config, accounts)
    comment_run(
        world.store, world.tasks, runs[0], CANARIES["what organisers write to each other"][0], "organiser"
    )
    comment_run(world.store, world.tasks, runs[0], CANARIES["what is written to a team"][0], "team")
    Desk(world.store, world.tasks, Publisher(project.config.published), pytest.fail).publish(
        ["alpha", "beta"]
    )
    Publisher(project.config.published).alive()
    names = {
        "task": ["mini"], "table": ["main"], "table:path": ["main", "none"], "team": ["alpha", "beta"], "software": [software, "one"],
        "file:path": [f"tasks/mini/main.{end}" for end in ("txt", "json", "csv", "tsv", "md", "tex", "html", "ir_measures", "tot", "jsonl")], "round": ["first"],
        "row": [f"{team}.{software}" for team in ("alpha", "beta")],
        "run": [*runs, *(run.replace(".test", ".dev") for run in runs)],
        "submission": [run.removesuffix(".test") for run in runs],
        "id": ["d" * 32], "name:path": ["access.json", "note.txt", "queries.jsonl", "qrels.txt"], "dataset": ["dev", "test"], "side": ["inputs", "truths"], "entry": [f"0000000001-{'d' * 32}"], "file": ["payload"],
        "digest": [path.name for path in (project.config.published / "files").glob("*/*")][:20],
    }  # fmt: skip
    with serving(project.config.exchange, root / "state") as url:
        yield Site(url, project.config.published, tokens, names)
    world.close()


def test_canaries_are_found_in_whatever_form() -> None:
    for name, (text, _) in CANARIES.items():
        for before in range(4):
            assert name in had(base64.b64encode(b"x" * before + text.encode() + b"yz"))
        for said in (
            html.escape(text),
            quote(text),
            json.dumps({"a": text}),
            text.encode().hex(),
            f"a{text}b",
        ):
            assert name in had(said.encode()), (name, said)
    assert had(b"nothing of them") == set()


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_no_answer_has_what_its_reader_may_not_see(site: Site, role: str) -> None:
    seen: set[str] = set()
    for where, content in site.answers(role):
        asked = had(where.encode()) if where.startswith(("POST", "PATCH", "DELETE")) else set()
        found = had(content) - asked
        assert found <= allowed(role), (where, found)
        seen |= found
    runs = [f"/runs/{name}" for name in site.names["run"]]
    for page in ("/", "/tasks/mini", "/tasks/mini/main", "/team", "/console", runs[0]):
        assert had(site.live(role, page)) <= allowed(role), page
    if role == "alpha":
        assert seen == allowed(role), "the walk comes to what it may see"


@pytest.mark.parametrize("role", ROLES)
def test_nothing_published_to_an_audience_has_more_than_it_may_see(site: Site, role: str) -> None:
    audience = f"team:{role}" if role in ("alpha", "beta") else role
    names = leads_to(site.root, [Published(site.root).pointer()[audience]])
    assert had(content_of(site.root / name for name in names)) <= allowed(role)


def test_nothing_that_nobody_may_have_is_published_at_all(site: Site) -> None:
    found = had(content_of(path for path in site.root.rglob("*") if path.is_file()))
    assert found == {name for name, (_, roles) in CANARIES.items() if roles}
    secret = [token.secret for token in site.tokens.values()]
    keys = [token.key for token in site.tokens.values()]
    everything = content_of(path for path in site.root.rglob("*") if path.is_file())
    assert not any(one.encode() in everything for one in (*secret, *keys))
    assert Access.read(site.root).grants, "it was looked at what is there"


def content_of(paths: Iterable[Path]) -> bytes:
    return b"\n".join(path.read_bytes() for path in paths)
