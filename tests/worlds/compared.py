"""Public runs of one team that can be compared, of every kind of task: their tasks, their sealed archives, and the pages that compare them.

What topics ask, what runs say and what files are called is hostile, or as long as it may be.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any
from urllib.parse import urlencode

from runner.model.clock import FixedClock
from runner.model.task import Task
from runner.records.store import queries
from runner.records.store.connect import Store
from runner.records.store.run_detail import detail
from runner.tasks.load import load_tasks
from runner.tasks.scaffold import new_task
from runner.views.audience import Audience
from runner.views.comparison.page import page, within
from runner.views.comparison.topics import compare_found
from tests.worlds import records
from tests.worlds.mini import Project
from tests.worlds.shown import HOSTILE, debate, jsonl, judged_line, record, wrong_lines

TEAM = "gamma"
TOPICS = [f"topic-{n}" for n in range(1, 41)] + ["<b>a name of a topic that is long & hostile</b>"]
KINDS = ("report", "debate", "records", "meta")
ASKS = (
    "which parts of a bridge are looked at first when it is inspected, by whom, how often, and who decides what is mended?",
    "bees",
    f"what does {HOSTILE} mean",
)
DRAWN = "0" * 64
CRITERIA = ("Quantity", "Quality", "Relation", "Manner")


def write(project: Project) -> None:
    """Write the tasks: rankings, and one of each of :data:`KINDS`, by the skeletons that organisers begin with."""
    folder = project.write_task(
        "ranked",
        title="Rankings to compare",
        measures=[
            {"id": id, "measure": name, "truths": "qrels.txt"}
            for id, name in (("ndcg_10", "nDCG@10"), ("rr", "RR"), ("p_10", "P@10"))
        ],
    )
    asked = [
        json.dumps({"qid": topic, "query": ASKS[n % len(ASKS)]}) + "\n" for n, topic in enumerate(TOPICS)
    ]
    (folder / "datasets/dev/inputs/queries.jsonl").write_text("".join(asked))
    for kind in KINDS:
        file = new_task(project.config, f"{kind}-compared", kind) / "task.yaml"
        file.write_text(file.read_text("utf-8").replace("announced: never\n", ""), "utf-8")


def commit(project: Project, store: Store) -> dict[str, str]:
    """Commit the runs; returns the pages that compare them: what each is, and its path."""
    tasks, found = load_tasks(project.config)[0], dict[str, str]()
    worlds = {name: _world(project, store, tasks[name]) for name in _names()}
    ranked = [*_rankings(worlds["ranked"])]
    found["compare: nothing"] = "/tasks/mini/compare"
    found["compare: form"] = "/tasks/ranked/compare"
    found["compare: refused"] = _page("ranked", [ranked[0], ranked[0]])
    found["compare: two"] = _page("ranked", ranked)
    for kind, makes in (("report", _reports), ("debate", _debates), ("records", _fields), ("meta", _judges)):
        name = f"{kind}-compared"
        runs = [*makes(worlds[name], tasks[name])]
        found[f"compare: {kind}"] = _page(name, runs[:2])
        found[f"run of {kind}"] = f"/runs/{runs[0]}"
    return found


def alone(store: Store, tasks: Mapping[str, Task]) -> dict[str, str]:
    """Pages that need no server: what ``runner compare --html`` writes."""
    audience, found = Audience("team", TEAM), dict[str, str]()
    for name, task in (("rankings", tasks["ranked"]), ("debate", tasks["debate-compared"])):
        dev = task.datasets["dev"]
        known = (one for one in queries.runs(store, [task]) if one.submission.task == task.id)
        runs = [(detail(store, one.id, [task]), dev) for one in known if one.dataset == dev.id]
        made = compare_found(runs, task, audience)
        found[f"compare {name}"] = page(made, task, audience, within(runs, task, audience))
    return found


def _names() -> list[str]:
    return ["ranked", *(f"{kind}-compared" for kind in KINDS)]


def _world(project: Project, store: Store, task: Task) -> records.World:
    return records.World(project.config, store, FixedClock(records.START), by=task, of=task.id)


def _page(task: str, runs: Sequence[str]) -> str:
    return f"/tasks/{task}/compare?{urlencode(dict(zip(('first', 'second'), runs, strict=True)))}"


def _rankings(world: records.World) -> Iterator[str]:
    """Two runs with values of each topic and documents."""
    for n in range(2):
        drawn = random.Random(n)
        name = "a-name-that-is-as-long-as-names-may-be-so"[:40] if n == 1 else f"fused-{n}"
        documents = [f"d{drawn.randint(1, 30)}" for _ in range(20)]
        ranked = [
            f"{topic.replace(' ', '-')} Q0 {one} {rank} {30 - rank} x\n"
            for topic in TOPICS
            for rank, one in enumerate(dict.fromkeys(documents), 1)
        ]
        attempt = world.attempt(
            world.register(TEAM, name), dataset="dev", output={"run.txt": "".join(ranked)}
        )
        values = {
            one: {topic: round(min(1.0, max(0.0, drawn.gauss(0.4 + n / 40, 0.2))), 4) for topic in TOPICS}
            for one in ("ndcg_10", "rr", "p_10")
        }
        world.evaluation(attempt, values)
        yield attempt.run_id


def _evaluated(
    world: records.World,
    task: Task,
    software: str,
    topics: Sequence[str],
    output: Mapping[str, str] | None,
    details: Sequence[Any] = (),
    workflow: str = "batch",
) -> str:
    """A run with a value of each topic on each measure, and these lines of details."""
    drawn = random.Random(software)
    submission = world.register(TEAM, software)
    attempt = world.attempt(submission, dataset="dev", output=output, workflow=workflow)
    values = {one: {topic: round(drawn.random(), 4) for topic in topics} for one in task.measures}
    evaluation = world.evaluation(attempt, values, commit=False)
    if details:
        evaluation.path.chmod(0o755)
        (evaluation.path / "details.jsonl").write_text(jsonl(details))
    world.commit_evaluation(evaluation)
    return attempt.run_id


def _reports(world: records.World, task: Task) -> Iterator[str]:
    """Two runs with three reports each, one of which cites what the other does not."""
    for n in range(2):
        lines = [judged_line() | {"topic": f"t{topic}"} for topic in (1, 2, 3)]
        yield _evaluated(world, task, f"writer-{n}", ["t1", "t2", "t3"], None, lines)


def _debates(world: records.World, task: Task) -> Iterator[str]:
    """Two runs with three debates each, of three and four turns."""
    for n in range(2):
        turns = [
            ("Cars should stay. " * 9, f"They need space ({n}).", [{"id": "a-1", "text": "Cars take room."}]),
            (HOSTILE, f"There are buses, and trains ({n}). " * 4 * n, []),  # the first run has no answer
            ("Why?", "Alike in both.", []),
            ("And then?", "Nobody knows.", []),
        ]
        rows = [debate(f"c{c}", f"Cars should be banned ({c}).", *turns[: 3 + n]) for c in (1, 2, 3)]
        failure = ("status", HOSTILE)
        answered = [
            record(c, turn, None if n or turn != 2 else failure)
            for c, turn in product((1, 2, 3), range(1, 4 + n))
        ]
        output = {"simulations.jsonl": jsonl(rows), "turns.jsonl": jsonl(answered)}
        yield _evaluated(world, task, f"debater-{n}", ["c1", "c2", "c3"], output, workflow="interactive")


def _fields(world: records.World, task: Task) -> Iterator[str]:
    """Two runs with confused labels, numbers that are off and texts."""
    for n in range(2):
        lines = wrong_lines(HOSTILE)
        lines[0]["classes"]["matrix"][0] = [60 - n, 4 + n, 1, 0, 2]
        yield _evaluated(world, task, f"labels-{n}", [f"r-{one}" for one in range(1, 9)], None, lines)


def _judges(world: records.World, task: Task) -> Iterator[str]:
    """Three judges whose figures are no means of values by topic: resamples stand beside them."""
    for n in range(3):
        drawn = random.Random(n)
        turns = [{one: {"score": round(drawn.random(), 2)} for one in CRITERIA} for _ in range(3)]
        output = {"evaluations.jsonl": jsonl([{"userTurnsEvaluations": turns}] * 3)}
        attempt = world.attempt(world.register(TEAM, f"judge-{n}"), dataset="dev", output=output)
        measures = {}
        for id in task.measures:
            value = drawn.uniform(0.4, 0.8)
            values = [round(min(1.0, max(0.0, drawn.gauss(value, 0.08))), 6) for _ in range(200)]
            measures[id] = {
                "value": value,
                "topics": 9,
                "covered": 9,
                "interval": [min(values), max(values)],
                "resamples": {"drawn": DRAWN, "values": values},
            }
        world.evaluation(attempt, {}, more={"measures": measures})
        yield attempt.run_id
