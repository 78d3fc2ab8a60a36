"""A site with a bit of everything, and the list of its pages: for pictures (``make pictures``) and for tests of how pages are.

About sixty teams and more runs on one leaderboard, hostile and very long names among them, failed and held runs, a task whose scores are
closed, a task that is not open yet, and pages that stand alone of debates, reports and records.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from runner.exchange.access import Token
from runner.exchange.published import Published, Publisher
from runner.kinds.debate import presenter as debating
from runner.kinds.records import presenter as recording
from runner.kinds.report import presenter as reporting
from runner.model.errors import PlatformError
from runner.views.audience import ORGANISER, PUBLIC
from runner.views.leaderboard.export import export
from runner.views.leaderboard.table import build
from runner.views.redact import redact_run
from runner.views.show.page import page
from runner.work.live_logs import LiveLogs
from runner.work.members.accounts import open_accounts, publish_access
from runner.work.publishing import Desk
from tests.e2e.test_server import until
from tests.runner.execution.test_pool import EVALUATOR, World, good
from tests.worlds import compared, records
from tests.worlds.mini import TASK, Project
from tests.worlds.shown import (
    HOSTILE,
    INDEX,
    debate,
    debated,
    judged_line,
    record,
    reported,
    task,
    wrong_lines,
)
from tests.worlds.site import serving

TASKS = Path(__file__).parents[2] / "tasks"
SCRIPT = "<script>document.title='pwned'</script><img src=x onerror=alert(1)>"
LONG = "a-name-that-is-as-long-as-names-may-be-so"[:40]
MEASURES = {"ndcg_10": "nDCG@10", "p_10": "P@10", "rr": "RR", "ap": "AP"}
TOPICS = 50
_NUMBERS = count()
ROLES = ("public", "team", "comparing", "organiser", "alone")


@dataclass
class Pages:
    """The site, until its block ends. ``alone``: files of pages that need no server."""

    url: str
    tokens: Mapping[str, Token]
    exchange: Path
    alone: Mapping[str, Path]
    comparing: Mapping[str, str]

    def alive(self) -> None:
        """Say that work is there: pages are those of every day."""
        Publisher(self.exchange / "published").alive()

    def of(self, role: str) -> dict[str, str]:
        """The pages of a role: what each is, and its address.

        Args:
            role: One of :data:`ROLES`; ``team`` is the team ``alpha``, ``comparing`` a team whose runs can be compared, ``alone`` pages that
                need no server.
        """
        if role == "alone":
            return {name: path.as_uri() for name, path in self.alone.items()}
        if role == "comparing":
            return {name: self.url + path for name, path in self.comparing.items()}
        audience = {"team": "team:alpha"}.get(role, role)
        view = Published(self.exchange / "published").view(audience)
        found = {
            "tasks": "/",
            "style": "/style",
            "problem": "/none",
            "board": "/tasks/mini/main",
            "software": "/tasks/mini/softwares/alpha/dense",
        }
        found |= {f"task {one}": f"/tasks/{one}" for one in ("mini", "closed", "touche-2021-task1")}
        found |= {"plots": "/tasks/mini/plots", "against a row": "/tasks/mini/against/alpha.dense/main"}
        if role == "public":
            found |= {"sign in": "/sign-in", "register": "/tasks/mini/register"}
        else:
            found |= {"token": "/token"}
        if role == "team":
            found |= {"team": "/team", "hand in": "/tasks/mini/hand-in"}
            goes_on = {one.title for one in view.below("tails/")}
            runs = [one for one in view.below("runs/") if one.title not in goes_on]
            found |= {f"run {n}": f"/{one.path}" for n, one in enumerate(runs, 1)}
        if role == "organiser":
            found |= {"console": "/console"}
        if role != "public":
            found |= {
                f"run that goes on {n}": f"/runs/{one.title}" for n, one in enumerate(view.below("tails/"), 1)
            }
        return {name: self.url + path for name, path in found.items()}


def scored(mounts: Any, out: Path) -> None:
    """An evaluator: scores that were drawn, others for each run."""
    drawn = random.Random(next(_NUMBERS))
    level = drawn.uniform(0.2, 0.7)
    values = {one: [min(1.0, max(0.0, drawn.gauss(level, 0.2))) for _ in range(TOPICS)] for one in MEASURES}
    means = {one: sum(found) / TOPICS for one, found in values.items()}
    said = {
        "schema_version": 1,
        "status": "valid",
        "evaluator": {"name": "fake", "version": "1"},
        "measures": {
            one: {
                "value": mean,
                "topics": TOPICS,
                "covered": TOPICS,
                "interval": [mean - 0.055, mean + 0.055],
            }
            for one, mean in means.items()
        },
        "findings": {"error": 0, "defect": 0, "warning": 0, "codes": {}},
        "run_tag": None,
        "message": "",
    }
    (out / "result.json").write_text(json.dumps(said))
    (out / "scores.jsonl").write_text(
        "".join(
            json.dumps({"measure": one, "topic": str(n), "value": value}) + "\n"
            for one, found in values.items()
            for n, value in enumerate(found, 1)
        )
    )
    (out / "findings.jsonl").touch()


def _nothing(mounts: Any, out: Path) -> None:
    """A software that leaves no run file."""


def _talks(mounts: Any, out: Path) -> None:
    mounts.say(f"reading 50 topics\n{SCRIPT}\nall done")
    good(mounts, out)


def _project(project: Project) -> None:
    asks = dict.fromkeys(("description", "affiliation", "paper"), "optional")
    measures = [{"id": id, "measure": name, "truths": "qrels.txt"} for id, name in MEASURES.items()]
    table = {"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ndcg_10", "baseline": "baselines/bm25"}
    precision = {
        "id": "precision",
        "title": "By precision",
        "cells": [{"dataset": "test"}],
        "rank_by": "p_10",
    }
    more: dict[str, Any] = {
        "measures": measures,
        "asks": asks,
        "uploads": True,
        "closes": "2041-12-31 23:59 UTC",
    }
    offered = {
        "licence": "CC BY 4.0",
        "citation": "A. Author and B. Author: Fifty questions to a small collection. 2031.",
        "description": "Three questions with judgments, for what you build at home.",
        "downloads": {"inputs": "everybody", "truths": "teams"},
    }
    folder = project.write_task(
        datasets=[{**TASK["datasets"][0], **offered}, TASK["datasets"][1]],
        title="Documents for questions", description="Rank the documents of a small collection for fifty questions.",
        registration={"approve": "organiser", "terms": {"file": "terms.txt", "version": "2031-1"}}, tables=[table, precision], **more,
    )  # fmt: skip
    (folder / "terms.txt").write_text("The data are for research.\nName your sources.\n" * 6)
    project.write_task("closed", title="A task whose scores are closed", **more)
    on_dev = [{"id": "main", "cells": [{"dataset": "dev"}], "rank_by": "ndcg_10"}]
    project.write_task("practice", title="A task on public data", tables=on_dev, **more)
    for name in ("touche-2021-task1", "report-questions"):
        shutil.copytree(TASKS / name, project.root / "tasks" / name)


def _runs(world: World, runs: int) -> list[str]:
    """Hand in and run a lot; the teams."""
    world.engine.script[EVALUATOR] = scored
    teams = ["alpha", "baselines", *(f"team-{n}" for n in range(1, 59))]
    world.hand_in("alpha", "held")
    for _ in range(3):
        world.work()
    world.hand_in("baselines", "bm25", description="BM25 with its usual parameters.")
    world.hand_in(
        "alpha", "dense", _talks, description="A dense retriever, and a cross-encoder over its first hundred."
    )
    world.hand_in(
        "alpha", LONG, description=f"{SCRIPT} " * 3, affiliation=SCRIPT, paper="https://example.org/paper"
    )
    world.hand_in("alpha", "silent", _nothing)
    world.hand_in("alpha", "elsewhere", task="closed")
    for n in range(runs - 4):
        team = teams[2 + n % (len(teams) - 2)]
        world.hand_in(
            team, f"software-{n // len(teams) + 1}", description="Sparse and dense retrieval, fused."
        )
    world.work()
    world.hand_in("alpha", "later")
    return teams


class _Talks:
    """An engine on which a software has written a lot so far, hostile words among it."""

    def follow(self, attempt: str, may_cut: object) -> Iterator[bytes]:
        """What it has written."""
        lines = [f"{n}/2000 topics, nDCG so far 0.{n % 7}123" for n in range(2000)]
        lines += [SCRIPT, HOSTILE, "\x1b[2J\u202e\0", "w" * 3000, "loading the index"]
        return iter(["\n".join(lines).encode()])


@contextmanager
def _going_on(world: World) -> Iterator[LiveLogs]:
    """While the block lasts a run of alpha's on public data goes on, and its log is followed."""
    run = world.hand_in("alpha", "talker", task="practice").removesuffix("test") + "dev"
    staging, problems = world.store.archive.begin("practice", run), list[Exception]()
    engine: Any = _Talks
    logs = LiveLogs(world.project.config.published, world.project.home / "following", engine, problems.append)
    try:
        yield logs
    finally:
        logs.close()
        world.store.archive.discard(staging)
    assert problems == []


def _alone(root: Path, world: World) -> dict[str, Path]:
    """Pages that need no server, as files."""
    place = records.task().datasets["dev"]
    line = judged_line()
    made = task(root / "debate", index=INDEX)
    turns = (
        "Cars should stay. " * 9,
        "They need a lot of space, and there are buses.",
        [{"id": "1.1", "text": INDEX["1.1"]}],
    )
    debates = [
        debate(f"c{n}", f"Cars should be banned ({n}).", turns, (HOSTILE, "", [])) for n in range(1, 4)
    ]
    seen = [record(n, 1) for n in (1, 2, 3)] + [record(n, 2, ("status", HOSTILE)) for n in (1, 2, 3)]
    debating_run = debated(records.World.make(root / "debates"), made, debates, seen)
    report_run = reported(records.World.make(root / "reports"), [line])
    records_run = reported(records.World.make(root / "records"), wrong_lines(HOSTILE))
    dev = made.datasets["dev"]
    texts = {
        "debate": page(
            redact_run(debating_run, ORGANISER, dev), debating.read(debating_run, made, ORGANISER, dev)
        ),
        "report": page(
            redact_run(report_run, ORGANISER, place), reporting.read(report_run, None, ORGANISER, place)
        ),
        "records": page(
            redact_run(records_run, ORGANISER, place), recording.read(records_run, None, ORGANISER, place)
        ),
        "board": export(build(world.store, world.tasks["mini"], "main", PUBLIC), "html"),
        **compared.alone(world.store, world.tasks),
    }
    found = {name: root / f"{name}.html" for name in texts}
    for name, path in found.items():
        path.write_text(texts[name], "utf-8")
    return found


@contextmanager
def pages(root: Path, runs: int = 150) -> Iterator[Pages]:
    """The site, with about so many runs on its leaderboard, in a folder."""
    project = Project(root / "project", root / "home", root / "truths")
    _project(project)
    compared.write(project)
    world = World(project, faults={"session": [PlatformError("the disk is full")] * 3})
    teams = _runs(world, runs)
    world.store.commit("dataset-published", {"task": "mini", "dataset": "test"}, actor="organiser")
    with open_accounts(project.config) as accounts:
        tokens = {"team": accounts.add("team", "alpha")[1], "organiser": accounts.add("organiser")[1]}
        tokens["comparing"] = accounts.add("team", compared.TEAM)[1]
        publish_access(project.config, accounts)
    comparing = compared.commit(project, world.store)
    problems: list[Exception] = []
    to = Publisher(project.config.published)
    alone = _alone(root, world)
    with _going_on(world) as logs, serving(project.config.exchange, project.home / "front") as url:
        Desk(world.store, world.tasks, to, problems.append, logs=logs).publish([*teams, compared.TEAM])
        to.alive()
        assert problems == []
        until(
            lambda: (
                logs.write()
                or [one for one in (to.root / "tails").glob("*.json") if b"loading" in one.read_bytes()]
            )
        )
        yield Pages(url, tokens, project.config.exchange, alone, comparing)
    world.close()
