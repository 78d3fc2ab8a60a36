"""Two runs beside each other: figures made here of what was published of each to the visitor, and of nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from runner.exchange.look.sides import rows as in_rows
from runner.model.comparing.overlap import DEPTHS, mean, overlaps
from runner.model.comparing.topics import Compared, on_topics, sign_test, sorted_pairs
from runner.web.pages import page
from runner.web.routes.base import Routes
from runner.web.rules import SIGNED_IN, Call, Rule

if TYPE_CHECKING:
    from starlette.responses import Response

MAX_TOPICS = 2000
MAX_INSIDE = 60_000  # characters of what is inside runs: the rest is a link away
SIGN_TEST = "sign test"
Rows = list[tuple[str, str]]


@dataclass(frozen=True)
class Beside:
    """What was published of two runs beside their figures (:func:`runner.views.comparison.page.published`), and the texts of topics."""

    first: Mapping[str, Any]
    second: Mapping[str, Any]
    texts: Mapping[str, str]
    style: str | None

    @property
    def noun(self) -> str:
        """What is inside the runs, in the plural; empty for nothing."""
        return str(self.first["noun"])

    def names(self, ranked: Compared | None) -> list[str]:
        """What both runs have inside, by name: where they differ most first."""
        apart = {} if ranked is None else {pair.topic: abs(pair.difference) for pair in ranked.pairs}
        both = [name for name in self.first["pieces"] if name in self.second["pieces"]]
        return sorted(both, key=lambda name: -apart.get(name, 0.0))

    def shown(self, names: Sequence[str], chosen: str) -> Iterator[tuple[str, Rows]]:
        """Those that have space, ``chosen`` or else the first in any case: their names, and their rows."""
        left = MAX_INSIDE
        for name in [chosen] if chosen in names else names:
            both = self.first["pieces"][name], self.second["pieces"][name]
            left -= sum(map(len, both))
            if left < 0 and name != names[0] and name != chosen:
                return
            yield name, in_rows(*both)


class Comparing(Routes):
    """Comparing runs."""

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (Rule("GET", "/tasks/{task}/compare", self.compare, SIGNED_IN),)

    async def compare(self, call: Call) -> Response:
        """Two runs of a task: a form to choose them by, and what they have topic by topic. ``?runs=A,B`` is as good as ``?first=A&second=B``."""
        task = self.object(call, f"tasks/{call.at('task')}", "task")
        if task is None:
            return self.nothing(call)
        facts, asked = call.view.data(task), call.request.query_params
        rows = _scored(call, facts["id"])
        pair = (
            asked.get("runs", "").split(",")
            if "runs" in asked
            else [asked.get("first", ""), asked.get("second", "")]
        )
        chosen = [name for name in pair[:2] if name in rows]
        views = [found for name in chosen if (found := self._run(call, name))]
        made, why = _compared(views, facts["measures"]) if any(pair) else ([], "")
        if why and (closed := [name for name in pair[:2] if name not in rows and self._run(call, name)]):
            why = f"{closed[0]} cannot be compared: it has no scores by topic, or its dataset is blinded and they are not shown."
        ranked = next((one for one in made if one.pairs and one.id == asked.get("measure")), None)
        ranked = ranked or next((one for one in made if one.pairs), None)
        beside = self._beside(call, chosen) if made else None
        within = beside.names(ranked) if beside else []
        shown = list(beside.shown(within, asked.get("topic", ""))) if beside else []
        overlap = overlaps(beside.first["documents"], beside.second["documents"]) if beside else []
        return page(
            "compare",
            call.visitor,
            call.published,
            title="Compare runs",
            up=[(task.title, f"/{task.path}")],
            offered=_offered(rows.values(), chosen),
            chosen=chosen,
            first=views[0] if made else None,
            made=made,
            names={one.id: one.measure for one in made},
            why=why,
            ranked=ranked,
            pairs=sorted_pairs(ranked)[:MAX_TOPICS] if ranked else [],
            widest=max((abs(one.difference) for one in ranked.pairs), default=0.0) if ranked else 0.0,
            style=beside.style if beside else None,
            texts=beside.texts if beside else {},
            noun=beside.noun if beside else "",
            inside=shown,
            others=[name for name in within if name not in dict(shown)][:MAX_TOPICS],
            depths=DEPTHS,
            overlaps=overlap[:MAX_TOPICS],
            overlap=mean(overlap) if overlap else None,
        )

    def _run(self, call: Call, name: str) -> Mapping[str, Any] | None:
        found = self.object(call, f"runs/{name}", "run")
        return None if found is None else call.view.data(found)

    def _beside(self, call: Call, names: Sequence[str]) -> Beside | None:
        found = [self.object(call, f"beside/{name}", "beside") for name in names]
        if len(found) != 2 or found[0] is None or found[1] is None:
            return None
        first, second = call.view.data(found[0]), call.view.data(found[1])
        texts = self.object(call, f"texts/{first['texts']}", "texts")
        return Beside(first, second, call.view.data(texts) if texts else {}, found[0].style)


def _scored(call: Call, task: str) -> dict[str, Mapping[str, Any]]:
    """The runs of a task that the visitor can compare, whose scores by topic are open to them: by name, the latest first."""
    found = call.view.get("runs")
    rows = call.view.data(found) if found else []
    there = {one.path.partition("/")[2] for one in call.view.below("beside/")}
    return {row["run"]: row for row in rows[::-1] if row["task"] == task and row["run"] in there}


def _offered(
    rows: Iterable[Mapping[str, Any]], chosen: Sequence[str]
) -> list[tuple[str, list[str], tuple[str, str]]]:
    """The datasets that have two runs or more: which, their runs, and the two that a form begins with, those ``chosen`` where they are there."""
    of: dict[str, list[str]] = {}
    for row in rows:
        of.setdefault(row["dataset"], []).append(row["run"])
    made = []
    for dataset, names in sorted(of.items()):
        if len(names) > 1:
            begin = [name for name in dict.fromkeys(chosen) if name in names]
            begin += [name for name in names if name not in begin]
            made.append((dataset, names, (begin[0], begin[1])))
    return made


def _compared(
    views: Sequence[Mapping[str, Any]], measures: Sequence[Mapping[str, Any]]
) -> tuple[list[Compared], str]:
    """Two runs on each measure that both have, in the task's order; or why they cannot be compared."""
    if len(views) < 2:
        return [], "Choose two of your runs whose scores by topic are shown."
    first, second = views
    if first["run"] == second["run"]:
        return [], "That is one run, not two."
    if first["dataset"] != second["dataset"]:
        return [], "These runs are on different datasets: they have no topics in common."
    made = []
    for one in measures:
        name = one["id"]
        given = [view["scores"].get(name) for view in views]
        if all(given) and given[0]["measure"] == given[1]["measure"]:
            scores = [view["topic_scores"].get(name, {}) for view in views]
            values = given[0]["value"], given[1]["value"]
            made.append(on_topics(name, one["measure"], one["direction"], scores[0], scores[1], values))
    tested = [
        replace(one, p=sign_test(one.wins, one.losses), test=SIGN_TEST) if one.pairs else one for one in made
    ]
    return tested, "" if tested else "These runs have no measure in common."
