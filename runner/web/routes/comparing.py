"""Two runs beside each other: figures made here of what was published of each to the visitor, and of nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from runner.exchange.look.sides import rows as in_rows
from runner.model.comparing import (
    SIGN_TEST,
    Compared,
    Resampled,
    by_resamples,
    on_topics,
    recorded,
    sign_test,
    sorted_pairs,
    why_not,
)
from runner.web.pages import page
from runner.web.routes.api import ROOT, json_answer
from runner.web.routes.base import Routes
from runner.web.rules import SIGNED_IN, Call, Operation, Rule

if TYPE_CHECKING:
    from starlette.responses import Response

MAX_TOPICS = 2000
NO_MEASURE = "These runs have no measure in common."
NO_TOPIC = "These runs have neither a topic nor resamples in common on any measure."
MAX_INSIDE = 60_000  # characters of what is inside runs: the rest is a link away
_RUNS = {"run": "A run of the task; two on one dataset have to be named, each by a parameter of its own."}
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

    @property
    def _pieces(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        return dict(self.first["pieces"]), dict(self.second["pieces"])

    def names(self, ranked: Compared | None) -> list[str]:
        """What both runs have inside, by name: where they differ most first."""
        apart = {} if ranked is None else {pair.topic: abs(pair.difference) for pair in ranked.pairs}
        ours, theirs = self._pieces
        both = [name for name in ours if name in theirs]
        return sorted(both, key=lambda name: -apart.get(name, 0.0))

    def shown(self, names: Sequence[str], chosen: str) -> Iterator[tuple[str, Rows]]:
        """Those that have space, ``chosen`` or else the first in any case: their names, and their rows."""
        left = MAX_INSIDE
        ours, theirs = self._pieces
        for name in [chosen] if chosen in names else names:
            both = ours[name], theirs[name]
            left -= sum(map(len, both))
            if left < 0 and name != names[0] and name != chosen:
                return
            yield name, in_rows(*both)


class Comparing(Routes):
    """Comparing runs."""

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        of_api = Operation("comparison", query=_RUNS)
        return (
            Rule("GET", "/tasks/{task}/compare", self.compare, SIGNED_IN),
            Rule("GET", ROOT + "/tasks/{task}/comparison", self.comparison, SIGNED_IN, operation=of_api),
        )

    async def comparison(self, call: Call) -> Response:
        """Two runs of a task, topic by topic: their figures, with a test (by resamples where both have the same, else the sign test)."""
        from starlette.concurrency import run_in_threadpool

        task = self.object(call, f"tasks/{call.at('task')}", "task")
        names = call.request.query_params.getlist("run")
        if task is None:
            return self.nothing(call)
        facts, rows = call.view.data(task), _scored(call, call.at("task"))
        unseen = [name for name in names if name not in rows]
        if len(names) <= 2 and any(self._run(call, name) is None for name in unseen):
            return self.nothing(call)
        if why := self._refused(call, names, unseen):
            return self.door.refused(call.visitor, 400, why)
        views = [view for name in names if (view := self._run(call, name))]
        besides = self._besides(call, names)
        made = await run_in_threadpool(_compared, views, besides, facts["measures"])
        if not any(one.pairs or one.p is not None for one in made):
            return self.door.refused(call.visitor, 400, NO_TOPIC if made else NO_MEASURE)
        facts = {"task": facts["id"], "dataset": views[0]["dataset"]}
        return json_answer(call, recorded(facts, names[0], names[1], made))

    async def compare(self, call: Call) -> Response:
        """Two runs of a task, ``?first=A&second=B``: forms to choose them by, and what they have topic by topic."""
        from starlette.concurrency import run_in_threadpool

        task = self.object(call, f"tasks/{call.at('task')}", "task")
        if task is None:
            return self.nothing(call)
        facts, asked = call.view.data(task), call.request.query_params
        rows = _scored(call, facts["id"])
        names = [name for side in ("first", "second") if (name := asked.get(side, ""))]
        why = self._refused(call, names, [name for name in names if name not in rows]) if names else ""
        found: dict[str, Any] = {}
        if names and not why:
            views = [view for name in names if (view := self._run(call, name))]
            found = await run_in_threadpool(self._two, call, names, views, facts["measures"])
            why = found.pop("why", "")
        chosen = [name for name in dict.fromkeys(names) if name in rows]
        shown = {"offered": _offered(rows.values(), chosen), "chosen": chosen, "why": why, **found}
        up = [(task.title, f"/{task.path}")]
        values = {"made": (), "ranked": None, "left_out": (), **shown}
        return page("compare", call.visitor, call.published, title="Compare runs", up=up, **values)

    def _refused(self, call: Call, names: Sequence[str], unseen: Sequence[str]) -> str:
        """Why runs cannot be compared; empty where they can. ``unseen``: those whose scores by topic the visitor does not see."""
        if len(names) > 2:
            return "Two runs can be compared at once."
        if closed := [name for name in unseen if self._run(call, name)]:
            return f"{closed[0]} cannot be compared: it has no scores, or its dataset is blinded and those by topic are not shown."
        if unseen or len(names) < 2:
            return "Choose two of your runs whose scores by topic are shown."
        if len({*names}) < len(names):
            return "That is one run, not two."
        if len({view["dataset"] for name in names if (view := self._run(call, name))}) > 1:
            return "These runs are on different datasets: they have no topics in common."
        return ""

    def _two(
        self,
        call: Call,
        names: Sequence[str],
        views: Sequence[Mapping[str, Any]],
        measures: Sequence[Mapping[str, Any]],
    ) -> dict[str, Any]:
        """What the page has of two runs."""
        besides = self._besides(call, names)
        made, left_out = _compared(views, besides, measures), _left_out(views, measures)
        if not made:
            return {"why": NO_MEASURE, "left_out": left_out}
        asked = call.request.query_params
        ranked = next((one for one in made if one.pairs and one.id == asked.get("measure")), None)
        ranked = ranked or next((one for one in made if one.pairs), None)
        beside = self._beside(call, names, besides)
        within = beside.names(ranked) if beside else []
        shown = list(beside.shown(within, asked.get("topic", ""))) if beside else []
        return {
            "dataset": views[0]["dataset"],
            "made": made,
            "left_out": left_out,
            "names": {one.id: one.measure for one in made},
            "ranked": ranked,
            "pairs": sorted_pairs(ranked)[:MAX_TOPICS] if ranked else [],
            "widest": max((abs(one.difference) for one in ranked.pairs), default=0.0) if ranked else 0.0,
            "style": beside.style if beside else None,
            "texts": beside.texts if beside else {},
            "noun": beside.noun if beside else "",
            "inside": shown,
            "others": [name for name in within if name not in dict(shown)][:MAX_TOPICS],
        }

    def _besides(self, call: Call, names: Sequence[str]) -> list[Mapping[str, Any]]:
        """What was published of each run to compare it by; nothing of a run that is gone."""
        found = [self.object(call, f"beside/{name}", "beside") for name in names]
        return [{} if one is None else call.view.data(one) for one in found]

    def _texts(self, call: Call, beside: Mapping[str, Any]) -> Mapping[str, str]:
        """What the topics of a run say, where they are public."""
        texts = self.object(call, f"texts/{beside.get('texts')}", "texts")
        return call.view.data(texts) if texts else {}

    def _run(self, call: Call, name: str) -> Mapping[str, Any] | None:
        found = self.object(call, f"runs/{name}", "run")
        return None if found is None else call.view.data(found)

    def _beside(
        self, call: Call, names: Sequence[str], besides: Sequence[Mapping[str, Any]]
    ) -> Beside | None:
        style = self.object(call, f"beside/{names[0]}", "beside")
        if style is None or not all(besides):
            return None
        return Beside(besides[0], besides[1], self._texts(call, besides[0]), style.style)


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


def _drawn(besides: Sequence[Mapping[str, Any]], measure: str) -> list[Mapping[str, Any] | None]:
    """The values of each run on a measure in resamples."""
    found: list[Resampled] = [one.get("resamples", {}) for one in besides]
    return [one.get(measure) for one in found]


def _compared(
    views: Sequence[Mapping[str, Any]],
    besides: Sequence[Mapping[str, Any]],
    measures: Sequence[Mapping[str, Any]],
) -> list[Compared]:
    """Two runs on each measure that both have, in the task's order."""
    made = []
    for one, given in _had(views, measures):
        ours, theirs = (view["topic_scores"].get(one["id"], {}) for view in views)
        values, drawn = (given[0]["value"], given[1]["value"]), _drawn(besides, one["id"])
        of = on_topics(
            one["id"], one["measure"], one["direction"], ours, theirs, values, means=not any(drawn)
        )
        tested = by_resamples(drawn[0], drawn[1], of.difference)
        if tested:
            of = replace(of, p=tested[0], interval=tested[1], test=tested[2])
        elif of.pairs:
            of = replace(of, p=sign_test(of.wins, of.losses), test=SIGN_TEST)
        made.append(of)
    return made


def _left_out(
    views: Sequence[Mapping[str, Any]], measures: Sequence[Mapping[str, Any]]
) -> list[tuple[str, str]]:
    """The measures on which runs cannot be compared, as the task writes them, and why; without those that none of the runs has."""
    some = set[str]().union(*(view[of] for view in views for of in ("scores", "pending")))
    return [
        (one["measure"], why) for one in measures if one["id"] in some and (why := why_not(views, one["id"]))
    ]


def _had(
    views: Sequence[Mapping[str, Any]], measures: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    """The measures that all runs have by one definition, and what each run has."""
    for one in measures:
        if not why_not(views, one["id"]):
            yield one, [view["scores"][one["id"]] for view in views]
