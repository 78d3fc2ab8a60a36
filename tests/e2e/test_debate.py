"""Debates from a server's submission to the board, in the graded room: baselines, broken servers, labels, and sub-task 2."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from runner.model.container import ImageRef
from schemas.debates import parse, transcript_digest
from tests.worlds.baselines import baseline_folder
from tests.worlds.mini import Project, cli, exported

ROOT = Path(__file__).resolve().parents[2]
BASELINES = ROOT / "submissions" / "baselines"
TASK, JUDGING = "rad-2025-debate", "rad-2025-judging"
STAGE = """\
  - id: runs
    visibility: blinded
    topics: debates.jsonl
    scores: public
    from: {task: rad-2025-debate, dataset: train, file: simulations.jsonl, runs: scored, sample: {debates: 2, seed: 1}}
"""
BOARD = "  - {id: runs, cells: [{dataset: runs}], rank_by: score, measures: [score, f1_relation]}\n"


def elastic(project: Project, name: str, **keys: Any) -> None:
    """The Python baseline, its two modules given to an image that exists already."""
    folder = BASELINES / "rad-elastic-python"
    project.of_the_tree(
        folder, "debating", "elastic", name=name, task=TASK, tag=name, workflow="interactive", **keys
    )


def other(project: Project, team: str, name: str) -> None:
    """A software that is one file: Perl's baseline, or a broken one."""
    folder = ROOT / "submissions" / team / name
    if team == "baselines":
        command = ["perl", "-e", (folder / "elastic.pl").read_text("utf-8")]
    else:
        command = ["python3", "-c", (folder / "main.py").read_text("utf-8")]
    project.software(name, command=command, task=TASK, tag=name, workflow="interactive")


def write_short(project: Project) -> None:
    """The task with two claims in its public dataset, and the arguments about them."""
    folder = project.root / "tasks" / TASK
    shutil.copytree(ROOT / "tasks" / TASK, folder, ignore=shutil.ignore_patterns("*.npy"))
    # Index and user read all of them in each room, before anybody can talk.
    arguments = folder / "services" / "arguments" / "arguments.jsonl.gz"
    about = re.compile(rb"homework|uniform", re.IGNORECASE)
    kept = [line for line in gzip.decompress(arguments.read_bytes()).splitlines(True) if about.search(line)]
    assert len(kept) > 100
    arguments.write_bytes(gzip.compress(b"".join(kept)))
    claims = folder / "datasets" / "train" / "inputs" / "claims.jsonl"
    claims.write_text("".join(claims.read_text("utf-8").splitlines(keepends=True)[:2]))
    (folder / "datasets" / "train" / "truths" / "labels" / "labels.jsonl").write_text("")
    definition = (folder / "task.yaml").read_text("utf-8")
    # Much of a room's time is waiting for containers: several at once, whatever the machine has.
    for old, new in (("ready: 60s", "ready: 15s"), ("\n  cpus: 1\n", "\n  cpus: 0.4\n")):
        assert definition.count(old) == 1
        definition = definition.replace(old, new)
    (folder / "task.yaml").write_text(definition)


@pytest.fixture
def held(live: Project, sidecars_image: ImageRef) -> Project:
    """The short task; five servers have debated its claims."""
    write_short(live)
    elastic(live, "one")
    other(live, "baselines", "rad-elastic-perl")
    for name in ("rad-never-ready", "rad-dies-at-turn-3", "rad-floods"):
        other(live, "broken", name)
    cli(live, "submit", "--team", "alpha", "--no-check")
    done = cli(live, "evaluate", "--task", TASK, "--dataset", "train", "--jobs", "5", expect=None)
    print(done.all)  # shown if what follows fails
    return live


def output(project: Project, run: str) -> Path:
    return exported(project, run) / "output"


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(600)
def test_debates_in_the_room(held: Project) -> None:
    runs = {row["software"]: row for row in cli(held, "runs", "--json").json if row["dataset"] == "train"}
    found = cli(held, "leaderboard", TASK, "--table", "train", "--json").json
    scores = {row["software"]: row["scores"] for row in found["rows"]}

    # Every server has the outcome that it deserves.
    assert {name: row["outcome"]["name"] for name, row in runs.items()} == {
        **dict.fromkeys(("one", "rad-elastic-perl"), "scored"),
        **dict.fromkeys(("rad-dies-at-turn-3", "rad-floods"), "scored"),
        "rad-never-ready": "failed",
    }
    assert "rad-never-ready" not in scores
    answered = {name: one["answered"]["mean"] for name, one in scores.items()}
    assert answered["one"] == 1
    assert answered["rad-floods"] == pytest.approx(0.4), "two of five turns, then answers of megabytes"
    assert 0 < answered["rad-dies-at-turn-3"] <= 0.4
    assert scores["one"]["provenance"]["mean"] == scores["one"]["within_word_limit"]["mean"] == 1
    assert scores["rad-floods"]["provenance"]["mean"] == 0, "nobody had retrieved what it cites"

    # Held again, they are the same but for what was measured.
    again = cli(held, "verify", runs["one"]["run"], "--json").json
    assert (again["same"], again["identical"], again["files"]) == (True, True, []), again

    # The same behaviour in another language has the same debates.
    digests = set()
    for name in ("one", "rad-elastic-perl"):
        debates = [parse(line)[0] for line in lines(output(held, runs[name]["run"]) / "simulations.jsonl")]
        assert [len(debate.turns) for debate in debates if debate] == [5, 5]
        digests.add(transcript_digest([debate for debate in debates if debate]))
    assert len(digests) == 1

    # Who is attacked, and how answers failed, is on record.
    records = lines(output(held, runs["one"]["run"]) / "turns.jsonl")
    assert [record["target"] for record in records[:2]] == [None, 1]
    assert all(1 <= record["target"] < record["turn"] for record in records if record["turn"] > 1)
    died = lines(output(held, runs["rad-dies-at-turn-3"]["run"]) / "turns.jsonl")
    assert "server-ended" in {record["failure"]["class"] for record in died if record["failure"]}

    # A run reads as a debate.
    shown = cli(held, "show", runs["one"]["run"]).out
    assert "Homework" in shown and " served " in shown
    tried = cli(held, "try", "--team", "alpha", "--software", "one", "--topic", "2").out
    assert "debate 2 of" in tried and " served " in tried, "a trial keeps nothing for show"

    _labels(held, runs["one"]["run"], runs["rad-elastic-perl"]["run"])
    _stage(held)


def _labels(project: Project, run: str, same: str) -> None:
    """People's labels of one run make its Score; the same answers in another run have them, too."""
    positional = project.root / "labels.jsonl"
    one = {"quantity": 1, "quality": 1, "relation": 0, "manner": 1}
    positional.write_text((json.dumps([one] * 5) + "\n") * 2)
    about = ("--debates", str(output(project, run) / "simulations.jsonl"))
    cli(project, "labels", "import", TASK, str(positional), "--dataset", "train", "--annotator", "a1", *about)
    for name in (run, same):
        cli(project, "reevaluate", "--run", name, "--accept")
    rows = cli(project, "leaderboard", TASK, "--table", "train-score", "--json").json["rows"]
    scores = {row["software"]: row["scores"] for row in rows}
    for name in ("one", "rad-elastic-perl"):
        assert scores[name]["relation"]["mean"] == 0 and scores[name]["score"]["mean"] == 0.75
        assert scores[name]["quantity"]["mean"] == scores[name]["quality"]["mean"] == 1


def _stage(project: Project) -> None:
    """Sub-task 2's input is made from these runs: blinded, with provenance beside it; a judge of them has its place."""
    folder = project.root / "tasks" / JUDGING
    shutil.copytree(ROOT / "tasks" / JUDGING, folder)
    definition = (folder / "task.yaml").read_text("utf-8")
    definition = definition.replace("\noutput: evaluations.jsonl", f"{STAGE}\noutput: evaluations.jsonl", 1)
    definition = definition.replace("\ntables:\n", f"\ntables:\n{BOARD}", 1)
    (folder / "task.yaml").write_text(definition)
    cli(project, "data", "stage", JUDGING, "runs")
    (made,) = (project.home / "stages" / JUDGING / "runs").glob("*/inputs/debates.jsonl")
    debates = lines(made)
    assert len(debates) == 2 * 4, "two debates of each run that was scored"
    text = made.read_text("utf-8")
    assert not any(name in text for name in ("rad-elastic", "alpha", "127.0.0.1", "milliseconds"))
    assert "one" in (made.parents[1] / "provenance.json").read_text("utf-8")
    labels = project.root / "tasks" / TASK / "datasets" / "train" / "truths" / "labels" / "labels.jsonl"
    cli(project, "labels", "import", JUDGING, str(labels), "--dataset", "runs")
    name = "rad-judge-1-batch"
    project.of_the_tree(
        baseline_folder(name), "judging", "judge", team="judges", task=JUDGING, tag=name, workflow="batch"
    )
    cli(project, "submit", "--team", "judges", "--no-check")
    cli(project, "evaluate", "--task", JUDGING, "--dataset", "runs")
    (row,) = cli(project, "leaderboard", JUDGING, "--table", "runs", "--json").json["rows"]
    # It always says yes, and people have said so of all but Relation.
    assert (row["scores"]["score"]["mean"], row["scores"]["f1_relation"]["mean"]) == (0.75, 0)
