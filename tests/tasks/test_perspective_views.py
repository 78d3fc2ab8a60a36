"""Perspective Argument Retrieval 2024: each scenario's view, mounted in a container, holds nothing that is forbidden.

The container looks through every byte below the input folder; what it must not find is taken from the data
themselves, so that the test also holds for other data in the same format.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runner.engines.base import ContainerSpec, Mount
from runner.engines.docker.engine import DockerEngine
from runner.execution.workflows import batch
from runner.model import config as configuration
from runner.model.config import Config
from runner.model.container import ImageRef
from runner.model.limits import Limits
from runner.model.task import Task
from runner.tasks import load as tasks
from runner.tasks.check_data import task_problems
from runner.tasks.data_files import folder_files
from runner.tasks.files import inputs_digest, view_sights

ROOT = Path(__file__).parents[2]
CELLS = [
    (dataset, scenario)
    for dataset in ("dev", "test-1", "test-2", "test-3")
    for scenario in ("baseline", "explicit", "implicit")
]
# Reads the whole mount and prints every file with its content: the test looks at it from outside.
READ = """
import json, os, sys
found = {}
for folder, _, names in os.walk("/tira-data"):
    for name in names:
        path = os.path.join(folder, name)
        found[os.path.relpath(path, "/tira-data/input")] = open(path, encoding="utf-8").read()
json.dump(found, sys.stdout)
"""


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return tasks.load_task(Config(root=ROOT, home=tmp_path / "home", truths=None), "perspective-2024")


def mounted(
    engine: DockerEngine, image: ImageRef, attempt: str, task: Task, dataset: str, scenario: str
) -> dict[str, str]:
    """The content of the input folder as a container of the software's role sees it, by file name."""
    chosen = task.scenarios[scenario]

    lock = {"digests": {"view": inputs_digest(task.datasets[dataset], chosen)}}
    # What the batch workflow asks of a job when it mounts the inputs.
    job: Any = SimpleNamespace(task=task, dataset=task.datasets[dataset], scenario=scenario, lock=lock)
    volume = batch.inputs_volume(job, engine)
    with engine.session(attempt) as session:
        spec = ContainerSpec(
            role="software",
            image=image,
            command=("python3", "-c", READ),
            limits=Limits(memory=256 << 20, wall_clock=60.0, log=32 << 20),
            mounts=(Mount(volume, "/tira-data/input"),),
            env={},
        )
        handle = session.start(spec)
        done = handle.wait(60.0, lambda: False)
        logs = {stream: handle.logs(stream, 32 << 20) for stream in ("stdout", "stderr")}
    assert done.code == 0, logs["stderr"].decode()
    found: dict[str, str] = json.loads(logs["stdout"])
    return found


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.split("\n") if line]


def whole(task: Task, dataset: str) -> dict[str, str]:
    inputs = task.datasets[dataset].inputs
    return {str(name): path.read_text("utf-8") for name, path in folder_files(inputs)}


def profile_values(corpus: list[dict[str, Any]]) -> set[str]:
    """Every value of every profile that cannot stand in an argument or a topic by itself."""
    found: set[str] = set()
    for row in corpus:
        for value in row["demographic_profile"].values():
            found |= set(value) if isinstance(value, list) else {value}
    ordinary = "\n".join(f"{row['argument']} {row['topic']} {row['stance']}" for row in corpus)
    return {value for value in found if value not in ordinary}


@pytest.mark.parametrize(("dataset", "scenario"), CELLS)
def test_no_forbidden_field_or_value_is_in_the_container(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str, task: Task, dataset: str, scenario: str
) -> None:
    inputs = whole(task, dataset)
    seen = mounted(engine, scratch_image, attempt, task, dataset, scenario)
    everything = "\n".join(seen.values())
    split = task.options["split"][dataset]
    word, other = ("baseline", "perspective") if scenario == "baseline" else ("perspective", "baseline")

    # The files: the corpus and one sort of queries, with every split.
    wanted = {name for name in inputs if name.startswith(f"{word}-queries/")} | {"corpus.jsonl"}
    assert set(seen) == wanted and f"{word}-queries/queries_{split}.jsonl" in wanted
    assert not any(name.startswith(f"{other}-queries") for name in seen)

    # The queries to answer: no relevance, neither as a key nor as the lists of the truths.
    asked = lines(seen[f"{word}-queries/queries_{split}.jsonl"])
    keys = {"query_id", "text"} | ({"demographic_property"} if word == "perspective" else set())
    assert asked and all(set(query) == keys for query in asked)
    for sort in ("baseline", "perspective"):
        truths = task.datasets[dataset].truths / f"{sort}-queries" / f"queries_{split}.jsonl"
        lists = [q["relevant_candidates"] for q in lines(truths.read_text("utf-8"))]
        long = {json.dumps(ids) for ids in lists if len(ids) >= 3}
        assert long
        trained = {
            json.dumps(q["relevant_candidates"])
            for name, text in inputs.items()
            for q in (lines(text) if name.startswith(f"{word}-queries/") else ())
            if "relevant_candidates" in q
        }
        assert not [one for one in long - trained if one in everything]

    # The corpus: every argument in its place, with the allowed fields and nothing else.
    arguments = lines(seen["corpus.jsonl"])
    given = lines(inputs["corpus.jsonl"])
    plain = ["argument_id", "argument", "topic", "stance"]
    if scenario == "explicit":
        assert arguments == given and "demographic_profile" in everything
        return
    assert arguments == [{key: row[key] for key in plain} for row in given]
    assert "demographic_profile" not in everything and "political_spectrum" not in seen["corpus.jsonl"]
    forbidden = profile_values(given)
    assert len(forbidden) > 10, "the data must give something to look for"
    where = everything if scenario == "baseline" else seen["corpus.jsonl"]
    assert not [value for value in forbidden if value in where]
    if scenario == "baseline":
        assert "demographic_property" not in everything


def test_no_two_scenarios_share_a_volume_by_mistake(task: Task) -> None:
    digests = {cell: inputs_digest(task.datasets[cell[0]], task.scenarios[cell[1]]) for cell in CELLS}
    assert len(set(digests.values())) == len(CELLS)


def test_the_check_of_the_task_tells_the_same(task: Task) -> None:
    assert task_problems(task, configuration.load(cwd=ROOT)) == []
    for sight in view_sights(task):
        found = sight.files["corpus.jsonl"]
        assert found is not None
        assert found[1] == ([] if sight.scenario == "explicit" else ["demographic_profile"])
