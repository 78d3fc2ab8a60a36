"""A row of a leaderboard is computed once more from its record; whatever was changed in between is found and named."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.cli import context
from runner.engines.fake import Mounts
from runner.execution.machine import Machine
from runner.records.archive import Attempt
from runner.records.split import is_public
from tests.runner.execution.test_pool import EVALUATOR, RESULT, World
from tests.worlds.mini import TASK, Project, Said, call_here

VALUE = 0.1 + 0.2  # has as many digits as there are
ROW = "mini/main/alpha/one"


def scoring(mounts: Mounts, out: Path) -> None:
    """An evaluator whose value for a topic is the run's score of it, and 0 where the truths do not name the topic."""
    truths = (mounts["/truths"] / "qrels.txt").read_text()
    lines = [line.split() for line in (mounts["/in"] / "run/run.txt").read_text().splitlines()]
    values = {line[0]: float(line[4]) if line[0] in truths else 0.0 for line in lines}
    mean = sum(values.values()) / len(values)
    asked = json.loads((mounts["/in"] / "request.json").read_text())["measures"]
    measure = {"value": mean, "topics": len(values), "covered": len(values), "interval": None}
    result = {**RESULT, "measures": {m["id"]: measure for m in asked}}
    out.joinpath("result.json").write_text(json.dumps(result))
    scores = [{"measure": m["id"], "topic": t, "value": v} for m in asked for t, v in values.items()]
    scores += [{"measure": asked[0]["id"], "topic": "test-1", "value": 0.25, "facets": {"turn": 1}}]
    out.joinpath("scores.jsonl").write_text("".join(json.dumps(score) + "\n" for score in scores))
    out.joinpath("findings.jsonl").touch()


class Verifying:
    """Two scored softwares, of which alpha's is the better one, and the command."""

    def __init__(self, project: Project, capsys: pytest.CaptureFixture[str]) -> None:
        self.world, self.project, self._capsys = World(project), project, capsys
        self.world.engine.script[EVALUATOR] = scoring
        for team, value in (("alpha", VALUE), ("beta", 0.125)):

            def script(mounts: Mounts, out: Path, value: float = value) -> None:
                out.joinpath("run.txt").write_text("".join(f"test-{n} Q0 d 1 {value} t\n" for n in (1, 2)))

            self.world.hand_in(team, script=script)
        self.world.work()
        self.machine = Machine(project.config, engine=self.world.engine, images={"evaluator": EVALUATOR})

    @property
    def attempt(self) -> Attempt:
        """The attempt of alpha's software."""
        return self.world.store.archive.attempts("mini", self.world.desk().runs[0].id)[0]

    def __call__(self, row: str = ROW, *more: str) -> Said:
        return call_here(self.project, ["verify", "--row", row, *more], self._capsys)


@pytest.fixture
def verifying(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Verifying]:
    made = Verifying(project, capsys)
    monkeypatch.setattr(context, "machine", lambda *_: made.machine)
    yield made
    made.world.close()


def change(path: Path, old: str, new: str) -> None:
    """Change a sealed file, as somebody with the right to would."""
    path.parent.chmod(0o755)
    path.chmod(0o644)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_row_is_the_same_to_the_last_digit_and_nothing_is_recorded(verifying: Verifying) -> None:
    events = verifying.project.config.events.read_bytes()
    said = verifying(ROW, "--json")
    assert said.code == 0 and said.json["same"] is True and repr(VALUE) in said.out
    assert [run["values"] for run in said.json["runs"]] == [7]
    assert all(len(line) <= 80 for line in verifying().out.splitlines())
    data = verifying("mini/main/beta/one", "--json").json
    assert data["same"] is True and data["rank"] == [2, 2] and data["values"]["p_10"] == [0.125, 0.125]
    assert verifying.project.config.events.read_bytes() == events
    assert len(verifying.attempt.evaluations()) == 1


def test_a_rank_of_ranks_is_made_again_too(verifying: Verifying) -> None:
    by = {"mean_rank": ["ndcg_10", "p_10"]}
    tables = [{"id": "main", "cells": [{"dataset": "test"}], "rank_by": by}]
    verifying.project.write_task_only(tables=tables)
    data = verifying("mini/main/beta/one", "--json").json
    assert data["same"] is True and data["rank"] == [2, 2]


def test_rounded_values_and_a_part_of_the_topics_are_those_of_the_board(verifying: Verifying) -> None:
    measures = [
        {"id": "ndcg_10", "measure": "nDCG@10", "truths": "qrels.txt", "precision": 1},
        {"id": "p_10", "measure": "P@10", "truths": "qrels.txt"},
    ]
    datasets = [
        dict(TASK["datasets"][0]),
        {**TASK["datasets"][1], "public_topics": "50%", "scores": "public"},
    ]
    verifying.project.write_task_only(measures=measures, datasets=datasets)
    for n in range(20):  # a key by which either topic is in another part
        key = f"{n:064x}"
        if is_public(key, "test", "test-1", 0.5) is not is_public(key, "test", "test-2", 0.5):
            break
    verifying.world.store.commit("key-drawn", {"task": "mini", "key": key}, actor="organiser")

    def uneven(mounts: Mounts, out: Path) -> None:
        out.joinpath("run.txt").write_text("test-1 Q0 d 1 0.75 t\ntest-2 Q0 d 1 0.25 t\n")

    verifying.world.hand_in("gamma", script=uneven)
    verifying.world.work()
    data = verifying("mini/main/gamma/one", "--json").json
    assert data["same"] is True, data
    private = 0.25 if is_public(key, "test", "test-1", 0.5) else 0.75
    assert data["values"]["p_10"] == [private, private]
    assert data["values"]["ndcg_10"] == [round(private, 1)] * 2
    assert data["rank"] == [2 if private == 0.25 else 1] * 2


def shown(said: Said) -> str:
    """What the command printed, without the part of ids that depends on the machine."""
    return re.sub(r"\.[0-9a-f]{8}\.", ".ID.", said.out)


def names(lines: list[str], *words: str) -> bool:
    """True if one of the lines has all the words."""
    return any(all(word in line for word in words) for line in lines)


def test_a_changed_score_is_named_wherever_it_stands(
    verifying: Verifying, golden: Callable[[str, str], None]
) -> None:
    home = verifying.project.home
    with sqlite3.connect(home / "store.sqlite") as database:
        database.execute("UPDATE topic_scores SET value = 0.9 WHERE run LIKE 'alpha%' AND topic = 'test-1'")
        database.execute("UPDATE measures SET value = 0.05 WHERE run LIKE 'alpha%' AND measure = 'ndcg_10'")
    said = verifying()
    assert said.code == 1
    golden("verify-row.txt", shown(said))
    data = verifying(ROW, "--json").json
    assert (data["same"], data["rank"], data["values"]["ndcg_10"]) == (False, [2, 1], [0.05, VALUE])
    assert names(data["runs"][0]["wrong"], "ndcg_10", "test-1", "0.9", repr(VALUE))
    change(verifying.attempt.evaluations()[0].path / "scores.jsonl", repr(VALUE), "0.75")
    wrong = verifying(ROW, "--json").json["runs"][0]["wrong"]
    assert names(wrong, "evaluations/1/scores.jsonl") and names(wrong, "p_10", "test-2", "0.75", repr(VALUE))


def test_a_changed_output_is_named(verifying: Verifying) -> None:
    stored = verifying.attempt.files("output")["run.txt"]
    digest = verifying.attempt.manifest()["output/run.txt"]["sha256"]
    (path,) = [p for p in verifying.project.home.rglob("*") if digest in p.name]
    change_bytes = path.read_bytes()
    path.parent.chmod(0o755)
    path.chmod(0o644)
    path.write_bytes(change_bytes[:-3] + b"xyz")
    said = verifying(ROW, "--json")
    (run,) = said.json["runs"]
    assert stored is not None and said.code == 1 and run["missing"]
    assert "run.txt" in said.out and digest[:12] in said.out


def test_a_changed_manifest_is_not_what_the_log_names(verifying: Verifying) -> None:
    evaluation = verifying.attempt.evaluations()[0]
    change(evaluation.path / "manifest.json", '"size"', '"size" ')
    said = verifying(ROW, "--json")
    (run,) = said.json["runs"]
    assert said.code == 1 and len(run["wrong"]) == 1 and "evaluations/1" in run["wrong"][0]


def test_changed_truths_are_named_and_other_definitions_are_not_in_the_way(verifying: Verifying) -> None:
    measures = [
        {"id": "ndcg_10", "measure": "nDCG@10", "truths": "qrels.txt"},
        {"id": "p_10", "measure": "P@5", "truths": "qrels.txt"},
    ]
    verifying.project.write_task_only(measures=measures)
    assert verifying().code == 0, "it is computed as it was asked for then"
    (verifying.project.truths / "mini/test/qrels.txt").write_text("test-1 0 doc-02 1\n")
    said = verifying(ROW, "--json")
    assert said.code == 1 and "truths of mini/test" in said.json["runs"][0]["missing"]


def test_an_image_that_is_gone_and_an_evaluator_that_fails_are_named(verifying: Verifying) -> None:
    script = verifying.world.engine.script
    script[EVALUATOR] = lambda mounts, out: 77
    reasons = [verifying(ROW, "--json").json["runs"][0]["missing"]]
    del script[EVALUATOR]
    reasons.append(verifying(ROW, "--json").json["runs"][0]["missing"])
    assert re.search(r"\b77\b", reasons[0]) and "sha256:" in reasons[1] and "sha256:" not in reasons[0]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--row", "nothing/main/a/b"], "E102"),
        (["--row", "mini/nothing/a/b"], "E102"),
        (["--row", "mini/main/gamma/one"], "E102"),
        (["--row", "mini"], "E102"),
        (["--row", "mini/main/alpha/one", "--as", "team:alpha"], "E103"),
        (["--row", "mini/main/alpha/one", "--dry-run"], "E101"),
        (["alpha", "--row", "mini/main/alpha/one"], "E101"),
        ([], "E101"),
    ],
)
def test_what_is_no_row_is_refused(
    verifying: Verifying, capsys: pytest.CaptureFixture[str], words: list[str], code: str
) -> None:
    said = call_here(verifying.project, ["verify", *words], capsys)
    assert said.code == 2 and code in said.err
