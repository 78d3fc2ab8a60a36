"""The console of organisers and assistants: what needs somebody first, then what waits, teams, and what people did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from runner.web.door import FORM
from runner.web.limits import whole_number
from runner.web.pages import page
from runner.web.routes.base import Routes
from runner.web.rules import CONSOLE, Call, Rule

if TYPE_CHECKING:
    from starlette.responses import Response

PART = 15  # rows of a list at a time
PARTS = {"teams": 100, "runs": 25}  # of those that are looked through
LISTS = ("held", "review", "registrations", "queue", "teams", "runs", "events")
FILTERS = ("task", "team", "state", "name")
SOUGHT = (
    "who",
    "action",
    "about",
)  # of what people did: a part of a person's name, what it was, and of which task


class Console(Routes):
    """What those see who look after a task."""

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (Rule("GET", "/console", self.console, CONSOLE),)

    async def console(self, call: Call) -> Response:
        """The console: of one task or team where that is asked for, and each list in parts."""
        found = self.object(call, "console", "console")
        shown = call.view.data(found) if found else None
        given = call.request.query_params
        chosen = {name: given.get(name, "")[:80] for name in FILTERS}
        of_runs = self.object(call, "runs", "runs")
        runs = call.view.data(of_runs)[::-1] if of_runs else []
        sought = {name: given.get(name, "")[:80] for name in SOUGHT}
        rows = _rows(shown or {}, runs, chosen)
        rows["events"], events = _sought(rows["events"], sought), rows["events"]
        listed = self.object(call, "tasks", "tasks")
        asked = [
            one | {"answer": answer}
            for one in self.door.sessions.noted(None)
            if (answer := self.answer(call, one["id"])) is None or answer["kind"] in _ASKED
        ]
        organiser = call.visitor.role == "organiser"
        came = (shown or {}).get("registrations") or {"waiting": [], "count": 0, "at_once": []}
        parts: dict[str, Any] = {"came": came} | {name: _part(rows[name], name, given) for name in LISTS}
        return page(
            "console",
            call.visitor,
            call.published,
            title="Console",
            live=self.live(call, "/console") if found else None,
            shown=shown,
            age=call.published.age(),
            stuck=call.published.stuck(),
            older=self.door.program.older,
            asked=asked[:5] if organiser else [],
            decided=(shown or {}).get("decided", {}),
            organiser=organiser,
            field=FORM,
            chosen=chosen,
            sought=sought,
            actions=sorted({one["action"] for one in events if "action" in one}),
            tasks=[one["id"] for one in call.view.data(listed)] if listed else [],
            counts=_counts(rows, shown or {}),
            known_states=sorted({row["outcome"]["name"] for row in runs}),
            states=Counter(row["outcome"]["name"] for row in rows["runs"]).most_common(),
            totals=[
                sum(row[key] for row in rows["teams"])
                for key in ("runs", "queue", "held", "scored", "failed")
            ],
            **parts,
        )


_ASKED = ("propose", "review", "rerun", "team", "withdraw-any")


def _rows(
    shown: Mapping[str, Any], runs: Sequence[Mapping[str, Any]], chosen: Mapping[str, str]
) -> dict[str, list[Mapping[str, Any]]]:
    """The lists of the console, as far as they are of the chosen task and team; of ``runs`` those in the chosen state whose name has the words."""
    whole = {name: shown.get(name, {}).get("runs", []) for name in ("held", "review", "queue")}
    whole |= {name: shown.get(name, []) for name in ("teams", "events")}
    whole["registrations"] = shown.get("registrations", {}).get("waiting", [])
    whole["runs"] = [
        run
        for run in runs
        if chosen["name"].casefold() in run["run"].casefold()
        and chosen["state"] in ("", run["outcome"]["name"])
    ]
    wanted = {name: chosen[name] for name in ("task", "team") if chosen[name]}
    return {
        name: [row for row in rows if all(row.get(key, value) == value for key, value in wanted.items())]
        for name, rows in whole.items()
    }


def _sought(events: Sequence[Mapping[str, Any]], sought: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """What people did, as far as it was looked for."""
    return [
        one
        for one in events
        if sought["who"].casefold() in one["who"].casefold()
        and sought["action"] in ("", one.get("action"))
        and sought["about"] in ("", one.get("task"))
    ]


def _counts(rows: Mapping[str, Sequence[Any]], shown: Mapping[str, Any]) -> list[tuple[str, int, str, str]]:
    """What there is, in words, how often, where it stands on the page, and how it is meant: what needs somebody first."""
    return [
        ("held", len(rows["held"]), "held", "care"),
        ("to review", len(rows["review"]), "review", "care"),
        ("to let in", shown.get("registrations", {}).get("count", 0), "registrations", "care"),
        ("proposed", len(shown.get("proposals", [])), "proposals", "care"),
        ("in the queue", len(rows["queue"]), "queue", "wait"),
        ("teams", len(rows["teams"]), "teams", ""),
        ("runs", len(rows["runs"]), "runs", ""),
    ]


def _part(rows: Sequence[Any], name: str, given: Mapping[str, str]) -> dict[str, Any]:
    """The part of a list that the address asks for by the number of its first row, and where the others are."""
    asked = whole_number(given.get(name, ""), 1) or 1
    first = min(asked, max(1, len(rows)))
    size = PARTS.get(name, PART)
    last = min(first + size - 1, len(rows))

    def at(number: int) -> str:
        kept = {
            key: value for key, value in given.items() if key in (*FILTERS, *SOUGHT, *LISTS) and key != name
        }
        return f"/console?{urlencode({**kept, name: number})}#{name}"

    return {
        "rows": rows[first - 1 : last],
        "count": len(rows),
        "first": first,
        "last": last,
        "before": at(max(1, first - size)) if first > 1 else "",
        "after": at(last + 1) if last < len(rows) else "",
    }
