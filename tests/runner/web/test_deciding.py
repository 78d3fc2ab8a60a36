"""What organisers and assistants decide on the web: forms on the console and on a run's page, answered on the request's page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.exchange.inbox import Inbox, answer
from runner.exchange.published import Publisher
from tests.runner.web.test_routes import Front, form_of, fronts
from tests.worlds.site import notices

HOSTILE = "<script>alert(1)</script>"
WHEN = "2031-05-01T12:00:00Z"


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    for made in fronts(tmp_path):
        to = Publisher(made.exchange / "published")
        console = to.object("console", "console", "Console", shown())
        both = [console, to.object("tasks", "tasks", "Tasks", [{"id": "mini"}])]
        style = to.keep(b"p { }")
        page = to.object("runs/t0.s.0.dev", "run", "run", {}, "<main>its page</main>", style)
        to.publish({"organiser": [*both, page], "assistant": both})
        yield made


def shown() -> dict[str, Any]:
    """A console with sixty teams and three hundred runs."""
    runs = [
        {"run": f"t{n % 60}.s.{n}.dev", "submission": f"t{n % 60}.s.{n}", "task": "mini", "team": f"t{n % 60}",
         "how": "executed", "outcome": "pending"}
        for n in range(300)
    ]  # fmt: skip
    more = {"says": HOSTILE, "next": "look", "look": "x"}
    held = [
        {**one, "verdict": "disputed" if n % 2 else "platform-error", "again": not n % 2, **more}
        for n, one in enumerate(runs[:30])
    ]
    review = [{**one, "state": "waits", "look": "x"} for one in runs[30:130]]
    count = {"runs": 5, "queue": 1, "held": 0, "scored": 1, "failed": 0}
    return {
        "queue": {"waiting": 169, "running": 1, "runs": runs[130:]},
        "held": {"count": 30, "runs": held},
        "review": {"count": 100, "runs": review},
        "proposals": [{"number": 7, "time": "2031-05-01T12:00:00Z", "says": HOSTILE, "look": "x"}],
        "closed": [{"task": "mini", "dataset": "test"}],
        "teams": [{"team": f"t{n:02}", **count, "account": "open"} for n in range(60)],
        "registrations": {
            "waiting": [
                {"account": f"a-{n:016}", "team": f"{HOSTILE}{n}", "task": "mini", "time": "2031-05-01T12:00:00Z"}
                for n in range(20)
            ],
            "count": 20,
            "at_once": [{"task": "mini", "teams": 3, "of": 3}],
        },
        "disk": {"free_gib": 1, "of_gib": 100},
        "events": [
            {"seq": n, "time": "2031-05-01T12:00:00Z", "who": HOSTILE, "says": f"event {n}", "team": f"t{n % 60}"}
            for n in range(200)
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("role", "where", "data", "kind", "asked"),
    [
        ("organiser", "/runs/t0.s.0.dev/review", {"state": "flagged", "reason": " odd ", "to": "team"}, "review",
         {"run": "t0.s.0.dev", "state": "flagged", "reason": "odd", "to": "team"}),
        ("assistant", "/runs/t0.s.0.dev/review", {"state": "approved", "reason": "", "to": "organiser"}, "review",
         {"run": "t0.s.0.dev", "state": "approved", "to": "organiser"}),
        ("assistant", "/runs/t0.s.0.dev/rerun", {"reason": "the disk"}, "rerun",
         {"run": "t0.s.0.dev", "reason": "the disk"}),
        ("organiser", "/console/withdraw", {"submission": "t0.s.0", "reason": "two"}, "withdraw-any",
         {"submission": "t0.s.0", "reason": "two"}),
        ("organiser", "/console/team", {"team": "t00", "action": "close", "reason": "asked"}, "team",
         {"team": "t00", "action": "close", "reason": "asked"}),
        ("organiser", "/console/propose", {"action": "release-log", "run": "t0.s.0.dev", "stream": "stdout", "lines": "1-2"},
         "propose", {"action": "release-log", "run": "t0.s.0.dev", "stream": "stdout", "lines": "1-2"}),
    ],
)  # fmt: skip
def test_a_form_becomes_one_request_that_is_answered_on_its_page(
    front: Front, role: str, where: str, data: dict[str, str], kind: str, asked: dict[str, str]
) -> None:
    inbox = Inbox(front.exchange / "inbox")
    with front.browser(role) as client:
        form = form_of(client.get("/runs/t0.s.0.dev").text)
        for wrong in ({}, {"form-token": "x"}):
            assert client.post(where, data={**data, **wrong}).status_code == 403
        assert (
            client.post(where, data={**data, "form-token": form}, headers={"origin": "null"}).status_code
            == 403
        )
        said = client.post(where, data={**data, "form-token": form})
        assert said.status_code == 303, said.text
        [(name, id)] = inbox.waiting()
        request = inbox.read(name)
        assert (request.kind, request.team, dict(request.data)) == (kind, None, asked)
        page = f"/requests/{id}"
        assert said.headers["location"] == page and notices(client.get(page).text) == ["wait"]
        known = {"team": None, "kind": kind, "accepted": True, "arrival": WHEN, "sha256": None}
        answer(front.exchange / "published", id, known)
        text = client.get(page).text
        assert notices(text) == ["good"] and '<a href="/console">' in text
        answer(
            front.exchange / "published", id, {**known, "accepted": False, "code": "E102", "what": HOSTILE}
        )
        text = client.get(page).text
        assert notices(text) == ["bad"] and "E102" in text and HOSTILE not in text
    with front.browser("team") as client:
        assert client.get(f"/requests/{id}").status_code == 404


def test_an_assistant_has_the_forms_of_its_role_where_it_has_no_page_of_the_run(front: Front) -> None:
    with front.browser("assistant") as client:
        run, console = client.get("/runs/t0.s.0.dev").text, client.get("/console").text
        assert "its page" not in run and "/rerun" in run and "/review" in run
        assert not [one for one in ("withdraw", "propose", "team") if f"/console/{one}" in run + console]
        assert client.get("/runs/nobody.s.1.dev").status_code == 404
    with front.browser("organiser") as client:
        run, console = client.get("/runs/t0.s.0.dev").text, client.get("/console").text
        assert "its page" in run and "/console/withdraw" in run and "release-log" in run
        assert "/console/team" in console


def test_only_what_the_web_may_have_executed_again_has_a_button_for_it(front: Front) -> None:
    """Of runs that are not held that is what is not hidden; a run of which nothing is known has none."""
    rows = [{"run": f"r.{one}", "submission": "r", "task": "mini", "team": "r", "software": "s", "how": "executed", "outcome": {"name": "scored", "says": ""},
             "dataset": one} for one in ("dev", "test")]  # fmt: skip
    to = Publisher(front.exchange / "published")
    facts = {"datasets": [{"id": "dev", "visibility": "public"}, {"id": "test", "visibility": "blinded"}]}
    objects = [to.object("console", "console", "Console", shown()), to.object("runs", "runs", "Runs", rows)]
    to.publish({"organiser": [*objects, to.object("tasks/mini", "task", "Mini", facts)]})
    with front.browser("organiser") as client:
        buttons = re.findall(r'action="/runs/(\S+)/rerun"', client.get("/console").text)
        assert buttons == [f"t{n}.s.{n}.dev" for n in range(0, 15, 2)]
        for run, may in (("t0.s.0.dev", True), ("t1.s.1.dev", False), ("r.dev", True), ("r.test", False)):
            page = client.get(f"/runs/{run}").text
            assert (f'action="/runs/{run}/rerun"' in page) is may, run
            assert (f"runner evaluate --run {run} --force" in page) is not may


def test_the_console_says_that_nothing_can_be_published(front: Front) -> None:
    to = Publisher(front.exchange / "published")
    with front.browser("organiser") as client:
        warnings = []
        for stuck in (True, False):
            to.alive(stuck=stuck)
            warnings.append(client.get("/console").text.count('class="bad"'))
        assert warnings[0] == warnings[1] + 1


def test_the_console_of_sixty_teams_says_what_needs_somebody_and_comes_in_parts(front: Front) -> None:
    with front.browser("organiser") as client:
        text = client.get("/console").text
        for number, part in ((30, "held"), (100, "review"), (170, "queue"), (60, "teams")):
            assert re.search(rf'<a href="#{part}">.*?{number} ', text), part
        assert "1 to 15 of 100" in text
        assert HOSTILE not in text and len(text) < 120_000
        assert "t30.s.30.dev" in text and "t55.s.55.dev" not in text
        last = client.get("/console?review=91&queue=16").text
        assert "91 to 100 of 100" in last and "16 to 30 of 170" in last and "t5.s.125.dev" in last
        of_team = client.get("/console", params={"team": "t31"}).text
        assert "2 to review" in of_team and "t31.s.31.dev" in of_team and "t32.s.32.dev" not in of_team
        assert "0 to review" in client.get("/console", params={"task": "other"}).text
        for bad in ("0", "-1", "x", "9" * 30, "²"):
            assert "1 to 15 of 100" in client.get("/console", params={"review": bad}).text
        assert (
            "91 to 100" not in text
            and HOSTILE not in client.get("/console", params={"team": HOSTILE, "x": HOSTILE}).text
        )


def test_the_console_finds_runs_by_team_state_and_name_and_counts_them(front: Front) -> None:
    rows = [{"run": f"t{n % 60:02}.s{n // 60}.{n:03}.dev", "task": "mini", "team": f"t{n % 60:02}", "dataset": "dev",
             "outcome": {"name": "failed" if n % 30 == 7 else "scored", "says": HOSTILE}} for n in range(300)]  # fmt: skip
    to = Publisher(front.exchange / "published")
    objects = [to.object("console", "console", "Console", shown()), to.object("runs", "runs", "Runs", rows)]
    to.publish({"organiser": objects})
    with front.browser("organiser") as client:

        def runs(**asked: str) -> tuple[list[str], str]:
            text = client.get("/console", params=asked).text
            assert HOSTILE not in text
            part = text[text.index('<h2 id="runs">') : text.index('<h2 id="events">')]
            return re.findall(r'href="/runs/([^"]+)"', part), " ".join(re.sub("<[^>]*>", " ", part).split())

        found, text = runs()
        assert len(found) == 25 and found[0] == rows[-1]["run"], "the newest first"
        assert (
            "Runs: 300" in text and "290 scored" in text and "10 failed" in text and "1 to 25 of 300" in text
        )
        assert len(runs(state="failed")[0]) == 10
        assert runs(team="t07", state="failed")[0] == [
            f"t07.s{n}.{7 + 60 * n:03}.dev" for n in range(4, -1, -1)
        ]
        assert runs(name="S4.24")[0] == [rows[n]["run"] for n in range(249, 239, -1)]
        assert runs(name=HOSTILE)[0] == []
        teams = client.get("/console").text.partition('<h2 id="teams">')[2]
        assert re.search(r"all 60</th>\s*<td[^>]*>300</td>\s*<td[^>]*>60</td>", teams)
        assert teams.count('href="?team=') == 60


def test_teams_that_wait_come_in_parts_and_each_is_refused_apart(front: Front) -> None:
    with front.browser("organiser") as client:
        text, rest = (client.get("/console", params=one).text for one in ({}, {"registrations": "16"}))
        assert text.count('value="admit"') == text.count('value="refuse"') == 15 and "1 to 15 of 20" in text
        assert rest.count('value="admit"') == 5 and "a-0000000000000019" in rest and HOSTILE not in text
        assert 'value="admit"' not in client.get("/console", params={"task": "other"}).text


def test_what_people_did_is_found_by_person_action_and_task(front: Front) -> None:
    events = [{"seq": n, "time": "2031-05-01T12:00:00Z", "who": f"account a-{n % 3}{HOSTILE}", "says": f"event {n}.",
               "action": ("run-reviewed", "link-made")[n % 2], "task": ("mini", "other")[n % 5 == 0]} for n in range(60)]  # fmt: skip
    to = Publisher(front.exchange / "published")
    of = to.object("console", "console", "Console", shown() | {"events": events})
    to.publish({"organiser": [of, to.object("tasks", "tasks", "Tasks", [{"id": "mini"}, {"id": "other"}])]})
    with front.browser("organiser") as client:

        def did(**asked: str) -> tuple[list[int], str]:
            text = client.get("/console", params=asked).text
            assert HOSTILE not in text
            part = text.partition('<h2 id="events">')[2]
            return [int(n) for n in re.findall(r"event (\d+)\.", part)], part

        assert did()[0] == [*range(15)]
        assert did(who="A-1")[0] == [*range(1, 46, 3)]
        assert did(who="a-1", action="link-made")[0] == [*range(1, 60, 6)]
        assert did(action="run-reviewed", about="other")[0] == [*range(0, 60, 10)]
        found, part = did(who="a-2", events="16")
        assert found == [*range(47, 60, 3)] and "16 to 20 of 20" in part and "who=a-2" in part
        for bad in (HOSTILE * 2, "x" * 5000):
            found, part = did(who=bad)
            assert found == [] and len(part) < 9000
        assert did(action=HOSTILE)[0] == did(about=HOSTILE)[0] == []
        part = did(team="t01", who="a-2")[1]
        assert 'name="team" value="t01"' in part and '<option value="link-made">' in part
