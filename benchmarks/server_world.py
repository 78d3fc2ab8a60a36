"""What the server is measured on: a project whose runs were registered, run, scored and published by the project's own code.

Softwares and evaluator are scripts (the scripted engine); archive, events, store, boards, accounts and ``published/`` are real.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks import planning
from runner.engines.fake import Mounts
from runner.exchange import tails
from runner.exchange.access import Token
from runner.exchange.published import Published, Publisher
from runner.exchange.tails import Tail
from runner.execution.coordinator import EvaluationRequest, Silent, coordinating
from runner.model.config import Config
from runner.records.store.connect import open_store
from runner.records.store.queries import submissions
from runner.tasks.load import load_tasks
from runner.views.plots.published import Drawings
from runner.work.members.accounts import open_accounts, publish_access
from runner.work.publishing import Desk
from runner.work.requests import Requests
from runner.work.run_pages import Kept

MEASURES = {
    **{f"ndcg_{n}": f"nDCG@{n}" for n in (5, 10, 20, 100)},
    **{f"p_{n}": f"P@{n}" for n in (1, 5, 10)},
    **{"ap": "AP", "rr": "RR", "r_100": "R@100"},
}
BOARD = "/tasks/bench/main"
TASK: dict[str, Any] = {
    **planning.TASK,
    "title": "Fifty topics and ten measures",
    "uploads": True,
    "measures": [{"id": id, "measure": name, "truths": "qrels.txt"} for id, name in MEASURES.items()],
}


@dataclass
class Site:
    """A project that is published, and the tokens of its teams. ``seconds``: how long its parts took to make. ``logs``: the name of each team's log."""

    root: Path
    tokens: Mapping[str, Token] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    kept: Kept = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)
    drawings: Drawings | None = None
    logs: dict[str, str] = field(default_factory=dict)

    @property
    def config(self) -> Config:
        """The project's configuration."""
        return planning.configuration(self.root)

    @classmethod
    def make(cls, root: Path, runs: int, teams: int) -> Site:
        """``runs`` scored runs of ``teams`` teams, each with an account, all published."""
        site = cls(root)
        begun = time.perf_counter()
        planning.write_project(root, runs, teams=teams, task=TASK)
        site.evaluate(runs)
        with open_accounts(site.config) as accounts:
            site.tokens = {f"team-{n}": accounts.add("team", f"team-{n}")[1] for n in range(teams)}
            publish_access(site.config, accounts)
        site.seconds["making it"] = time.perf_counter() - begun
        site.publish()
        return site

    def evaluate(self, expected: int) -> None:
        """Run and score what is registered and was not. Raises SystemExit for another number of runs than ``expected``."""

        def evaluator(_: Mounts, out: Path) -> None:
            drawn = random.Random(next(self.numbers))
            level = drawn.uniform(0.2, 0.7)
            scores = {
                one: [round(min(1.0, max(0.0, drawn.gauss(level, 0.2))), 4) for _ in range(planning.TOPICS)]
                for one in MEASURES
            }
            planning.leave_scores(out, scores)

        machine, engine = planning.machine(self.config, evaluator)
        request = EvaluationRequest()
        with coordinating(self.config, Silent(), machine=machine) as coordinator:
            done = coordinator.run(coordinator.plan(request), request).done
        engine.close()
        if len(done) != expected:
            raise SystemExit(f"{len(done)} of {expected} runs were done")

    def one_more(self) -> float:
        """Have a team hand in one more software that is run and scored, and :meth:`publish`."""
        planning.register(self.config, [next(self.numbers) + 10_000], len(self.tokens))
        self.evaluate(1)
        return self.publish()

    def publish(self) -> float:
        """Publish what there is now, to everybody and each team; returns the seconds that it took of the processor."""
        begun, used = time.perf_counter(), time.process_time()
        to = Publisher(self.config.published)
        to.alive()
        self.drawings = self.drawings or Drawings(to, _fail)
        with open_store(self.config) as store:
            desk = Desk(store, load_tasks(self.config)[0], to, _fail, kept=self.kept, drawings=self.drawings)
            desk.publish(sorted(self.tokens))
        self.seconds["publishing"] = time.perf_counter() - begun
        return time.process_time() - used

    def alive(self) -> None:
        """Say that work is there: pages are those of every day."""
        Publisher(self.config.published).alive()

    def another(self) -> None:
        """Publish another board: everything that follows it has news."""
        to, seen = Publisher(self.config.published), Published(self.config.published)
        audiences = {}
        for audience in seen.pointer():
            objects = {one.path: one for one in seen.view(audience).below("")}
            of = objects[BOARD.removeprefix("/")]
            data = {**seen.view(audience).data(of), "notes": [f"as of {time.time_ns()}"]}
            objects[of.path] = to.object(
                of.path, of.kind, of.title, data, seen.view(audience).text(of), of.style
            )
            audiences[audience] = list(objects.values())
        to.publish(audiences)

    def follow_logs(self) -> dict[str, str]:
        """Publish for each team that its first run is running and writes a log; return the page of that run by team."""
        to, seen = Publisher(self.config.published), Published(self.config.published)
        audiences, pages = {}, {}
        for audience in seen.pointer():
            objects = seen.view(audience).below("")
            run = next((shown.path for shown in objects if shown.path.startswith("runs/")), None)
            team = audience.removeprefix("team:")
            if run is not None and team in self.tokens:
                self.logs[team] = tails.new_name()
                path = run.replace("runs/", "tails/", 1)
                objects.append(to.object(path, "tail", "Log", {"file": self.logs[team]}))
                pages[team] = f"/{run}"
            audiences[audience] = objects
        to.publish(audiences)
        self.write_logs(0)
        return pages

    def write_logs(self, second: int) -> None:
        """Replace the log of each team by what a run that prints 2,000 characters a second has written by then."""
        written = 2000 * (second + 1)
        text = "".join(
            f"{number:099}\n" for number in range(max(0, written - tails.MOST) // 100, written // 100)
        )
        for name in self.logs.values():
            tails.write(self.config.published, name, Tail(written - len(text), text))

    def decide(self) -> float:
        """Decide everything in the inbox as work does; the seconds that it took."""
        begun = time.perf_counter()
        with open_store(self.config) as store, open_accounts(self.config) as accounts:
            requests, tasks = Requests(self.config, store, accounts), load_tasks(self.config)[0]
            while requests.inbox.waiting():
                requests.round(tasks)
        return time.perf_counter() - begun

    def handed_in(self) -> dict[str, int]:
        """How many submissions each team has in the store."""
        found: dict[str, int] = {}
        with open_store(self.config) as store:
            for one in submissions(store):
                found[one.team] = found.get(one.team, 0) + 1
        return found

    def open_again(self) -> None:
        """Give folders that were sealed back the right to be removed."""
        for place, _, _ in os.walk(self.root):
            Path(place).chmod(0o755)


def _fail(error: object) -> None:
    raise SystemExit(str(error))
