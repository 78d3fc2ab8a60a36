"""A task on one screen, and the same in its README: complete, narrow, and nothing of blinded data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import schemas
from runner.model.config import Config
from runner.model.limits import in_units
from runner.model.task import Quota
from runner.records.store.charges import quotas
from runner.tasks.load import load_task, load_tasks
from runner.views.overview.facts import Overview, Standing, overview
from runner.views.overview.inputs import shortened
from runner.views.overview.screen import lines, printed
from runner.views.text import amount_of_time
from schemas.measures import Meaning, meaning
from tests.worlds import records
from tests.worlds.commands import At
from tests.worlds.mini import TASK, Project, Said, call_here
from tests.worlds.records import World

ROOT = Path(__file__).parents[3]
AT = "2031-05-17 23:59 AoE"
STATED: dict[str, Any] = {
    "licence": "CC BY 4.0",
    "terms": "https://example.org/terms",
    "contact": "chair@example.org",
}
TABLE = TASK["tables"][0]
DEV, TEST = {"id": "dev", "visibility": "public"}, {"id": "test", "visibility": "blinded"}
BUNDLED, _ = load_tasks(Config(root=ROOT, home=ROOT / ".runner", truths=None))


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_task_is_shown_whole(name: str) -> None:
    task = BUNDLED[name]
    of = overview(task)
    shown = printed(of)
    assert max(map(len, shown)) <= 80
    text = "\n".join(shown)
    assert all(one.says and one.unit for one in of.measures), "x-measures of the kind's schema lack one"
    assert of.output.file in text and of.output.says and all(one in text for one in task.datasets)
    assert all(f"  {one.name}" in text and one.example for one in of.inputs)
    assert bool(of.inputs) != (set(task.workflows) == {"interactive"})


@pytest.fixture
def runner_cli(project: Project, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Return a function that runs ``runner`` in this process."""

    def run(*words: str, expect: int = 0) -> Said:
        said = call_here(project, words, capsys)
        assert said.code == expect, said.all
        return said

    return run


def flat(of: Overview) -> str:
    return " ".join(" ".join(lines(of)).split())


def test_screens_of_tasks(
    project: Project, runner_cli: Callable[..., Said], golden: Callable[[str, str], None]
) -> None:
    """The wording of what a task shows: a plain one, and one with all that a task may state."""
    project.write_task(prefix="hidden-", closes=AT, uploads=True)
    plain = runner_cli("task", "show", "mini")
    data = runner_cli("task", "show", "mini", "--json")
    assert plain.err == "" and "hidden" not in plain.all + data.all and data.json["team"] is None
    assert data.json["inputs"]["files"][1]["fields"] == ["qid", "query"]
    assert data.json["dates"]["closes"] == "2031-05-18T11:59:00Z"
    blinded = TEST | {"licence": "all rights reserved", "scores": "team", "publish_at": AT, "requires": "dev"}
    project.write_task(
        datasets=[
            DEV | {"topics": "queries.jsonl"},
            blinded | {"quota": {"submissions": 9, "per_day": 1, "at_once": 2}},
        ],
        tables=[TABLE | {"pick": "chosen"}],
        limits={
            "wall_clock": "1h",
            "cpu_time": "10min",
            "image": "2GiB",
            "cpus": 2,
            "gpus": 1,
            "memory": "1GiB",
        },
        quota={"submissions": 50, "failures": 3},
        **{
            "review": "required",
            "anonymous": {"until": "published"},
            "precision": 2,
            "log_excerpts": 60,
            **STATED,
        },
    )
    full = runner_cli("task", "show", "mini")
    project.write_task(
        datasets=[DEV, TEST | {"scores": "public", "public_topics": "30%"}], tables=[TABLE | {"pick": "best"}]
    )
    split = runner_cli("task", "show", "mini")
    golden("task.txt", f"{plain.out}\n{full.out}\n{split.out}")
    unknown = runner_cli("task", "show", "minnie", expect=2)
    assert "E102" in unknown.err and "mini" in unknown.err


def test_limits_and_scores_have_the_same_figures_on_the_screen_as_in_data(
    project: Project, runner_cli: Callable[..., Said]
) -> None:
    limits = {
        "wall_clock": "1h",
        "cpu_time": "10min",
        "image": "2GiB",
        "cpus": 2,
        "gpus": 1,
        "memory": "1GiB",
    }
    project.write_task(limits=limits, prefix="hidden-")
    (shown,) = re.findall(r"\nlimits +(.*?)\nquota", runner_cli("task", "show", "mini").out, re.S)
    amounts = ["1 h", "10 min", "1 GiB", "2", "1 GPU", "64 MiB", "2 GiB", "256"]
    assert [
        re.match("[0-9]+( h| min| [MG]iB| GPU)?", part)[0] for part in re.split(r",\s+", shown)[:8]
    ] == amounts  # type: ignore[index]
    (closed,) = re.findall("test \\(blinded(.*)\n", runner_cli("task", "show", "mini").out)
    runner_cli("publish", "mini", "test")
    (published,) = re.findall("test \\(blinded(.*)\n", runner_cli("task", "show", "mini").out)
    assert "published" in published and "closed" in closed and "closed" not in published


def test_data_say_what_the_screen_says_of_scores_and_names(tmp_path: Path) -> None:
    task = records.task()
    test = replace(task.datasets["test"], public_topics=0.3)
    first = next(iter(task.measures.values()))
    rules = {"anonymous": {"until": "published"}}
    task = replace(
        task,
        datasets=task.datasets | {"test": test},
        measures={**task.measures, first.id: replace(first, precision=2)},
        review="required",
        verify_before="final",
        definition={**task.definition, **rules},
    )
    data = overview(task).as_dict()
    assert {one["id"]: one["public_topics"] for one in data["datasets"]}["test"] == 0.3
    assert {one["id"]: one["precision"] for one in data["measures"]}[first.id] == 2
    assert (data["review"], data["verify_before"]) == ("required", "final")
    assert data["anonymous_until"] == task.anonymous_until


def test_quotas_of_a_dataset_and_what_is_left_of_them(world: World) -> None:
    """For a team with what is left there, and when the next submission may come."""
    task = records.task(quota=Quota(failures=3))
    own = replace(task.datasets["test"], quota=Quota(submissions=9, per_day=1, at_once=2))
    task = replace(task, datasets=task.datasets | {"test": replace(own, requires="dev")})
    data = overview(task).as_dict()
    assert (data["quota"]["submissions"], data["quota"]["failures"]) == (50, 3)
    wanted = {"submissions": 9, "per_day": 1, "at_once": 2}
    assert data["datasets"][1]["quota"].items() >= wanted.items() and data["datasets"][1]["requires"] == "dev"
    world.register("alpha", "x")
    now = world.clock.now()

    def left(moment: datetime) -> str:
        standing = Standing("alpha", quotas(world.store, task, "alpha", moment), None)
        (shown,) = re.findall("test: [0-9]+ of.*", flat(overview(task, standing)))
        return str(shown)

    today, tomorrow = left(now), left(now + timedelta(days=1))
    assert re.findall("[0-9]+ of [0-9]+", today) == ["8 of 9", "0 of 1", "1 of 2"]
    assert "2026-01-06 00:00 UTC" in today and "alpha" in today
    assert (
        re.findall("[0-9]+ of [0-9]+", tomorrow) == ["8 of 9", "1 of 1", "1 of 2"] and "UTC" not in tomorrow
    )


def test_what_a_team_has_left(tmp_path: Path) -> None:
    records.write_project(tmp_path)
    at = At(tmp_path, World.make(tmp_path))
    at.world.scored("alpha", "x")
    at.world.register("alpha", "y")
    show = ("task", "show", "toy", "--as")
    (quota,) = re.findall("\nquota +(.*)\n", at.run(*show, "team:alpha").out)
    assert re.findall("[0-9]+|alpha", quota) == ["48", "50", "alpha", "1", "1"]
    data = json.loads(at.run(*show, "team:alpha", "--json").out)
    wanted = {"team": "alpha", "limit": 50, "used": 1, "open": 1, "left": 48, "deadline": None}
    assert data["team"].items() >= wanted.items() and data["team"]["datasets"] == {}
    (quota,) = re.findall("\nquota +(.*)\n", at.run(*show, "public").out)
    assert re.findall("[0-9]+|alpha", quota)[:1] == ["50"] and "alpha" not in quota


def test_which_scenario_sees_what(project: Project, runner_cli: Callable[..., Said]) -> None:
    view = [{"files": "queries.jsonl", "fields": ["qid"]}]
    project.write_task(scenarios=[{"id": "default"}, {"id": "ids", "view": view}])
    data = runner_cli("task", "show", "mini", "--json").json
    assert data["scenarios"] == ["default", "ids"]
    told = runner_cli("task", "show", "mini").out
    for file, partly in (("queries.jsonl: qid, query", "query"), ("documents.jsonl.gz: docno, text", "")):
        (places,) = re.findall(rf"  {file} \((.*)\)\n", told)
        assert places.split()[0] in (partly, "only") and places.split()[-1] == "default"
    project.write_task(scenarios=[{"id": "default", "view": view}])
    told = runner_cli("task", "show", "mini").all  # what no scenario sees is not shown, public or not
    assert "words of" not in told and "documents.jsonl.gz" not in told and '{"qid": "dev-1"}' in told


def test_examples_are_short_and_harmless(project: Project, runner_cli: Callable[..., Said]) -> None:
    inputs = project.root / "tasks" / "mini" / "datasets" / "dev" / "inputs"
    row = {"qid": "1", "query": "\x1b[2J" + "long " * 500, "more": [1, 2, 3], "deep": {"a": {"b": "c" * 99}}}
    (inputs / "queries.jsonl").write_text(json.dumps(row) + "\n")
    (inputs / "list.txt").write_text("first\nsecond\n")
    (inputs / "binary.dat").write_bytes(b"\0\xff\0")
    (inputs / "topics.xml").write_text('<?xml version="1.0"?>\n<topics>\n <topic number="1"/>\n</topics>\n')
    (inputs / "broken.jsonl").write_text("{\n")
    told = runner_cli("task", "show", "mini").out  # call() fails for an escape character
    assert max(map(len, told.split("\n"))) <= 80
    assert "\n    first\n" in told and "\n  binary.dat\n" in told and "\n  broken.jsonl\n    {\n" in told
    assert '\n    <topics> <topic number="1"/> </topics>\n' in told
    assert '"more": [1, "…"]' in " ".join(told.split())


def test_without_public_data(project: Project, runner_cli: Callable[..., Said]) -> None:
    def inputs() -> str:
        shown = runner_cli("task", "show", "mini")
        assert runner_cli("task", "show", "mini", "--json").json["inputs"]["files"] == []
        (text,) = re.findall(r"\ninputs +(.*?)\noutput", shown.out, re.S)
        return " ".join(text.split())

    sources = [{"path": "inputs/big.jsonl", "url": "https://example.org/big.jsonl"}]
    project.write_task(datasets=[DEV | {"sources": sources}, TEST])
    assert "runner data pull mini" in inputs()
    project.write_task(datasets=[TEST])
    assert "runner data pull mini" not in inputs()
    named = {**TEST, "topics": "queries.jsonl", "corpus": "documents.jsonl.gz"}
    project.write_task(prefix="hidden-", datasets=[named])
    text = inputs()
    assert "queries.jsonl" in text and "documents.jsonl.gz" in text and "hidden" not in text


def test_no_rule_is_cut(project: Project) -> None:
    blinded = TEST | {"scores": "team", "publish_at": AT, "description": "long " * 99}
    address, licence = f"https://example.org/{'a-long-address/' * 9}", "We hold all rights. "
    rounds = [{"id": f"r{n}", "at": AT, "title": "x"} for n in range(20)]
    stated = {"terms": address, "licence": licence * 15, "closes": AT}
    project.write_task(datasets=[DEV, blinded], rounds=rounds, **stated)
    of = overview(load_task(project.config, "mini"))
    text = list(lines(of))
    whole = " ".join(" ".join(text).split())
    assert f"{AT} (2031-05-18 11:59 UTC)): long" in whole and f"terms {address} " in whole
    assert max(len(line) for line in text if address not in line) <= 80
    assert whole.count(licence.strip()) == 15


@pytest.mark.parametrize(
    "contact", ["the chairs", "chair@host", "javascript:alert(1)", "a b@example.org", "@", ""]
)
def test_a_contact_that_is_none_is_refused(
    project: Project, runner_cli: Callable[..., Said], contact: str
) -> None:
    project.write_task_only(contact=contact)
    said = runner_cli("task", "show", "mini", expect=4)
    assert "contact" in said.err and "chair@example.org" in said.err


@pytest.mark.parametrize("pick", ["latest", "best", "chosen"])
@pytest.mark.parametrize("scores", [{"scores": "public"}, {"scores": "team"}, {}, {"publish_at": AT}])
def test_data_state_who_sees_scores_which_submission_counts_and_the_licence(
    project: Project, runner_cli: Callable[..., Said], scores: dict[str, str], pick: str
) -> None:
    blinded = {**TEST, **scores, "licence": "all rights reserved"}
    project.write_task(datasets=[DEV, blinded], tables=[TABLE | {"pick": pick}], **STATED)
    facts = runner_cli("task", "show", "mini", "--json").json
    dev, test = facts["datasets"]
    assert test["scores"] == scores.get("scores", "organiser") and facts["tables"][0]["pick"] == pick
    assert (test["publish_at"] is not None) is ("publish_at" in scores)
    assert {name: facts[name] for name in STATED} == STATED
    assert [dev["licence"], test["licence"]] == [STATED["licence"], blinded["licence"]]
    shown = runner_cli("task", "show", "mini", "--as", "public").out
    assert all(fact in shown for fact in (*STATED.values(), blinded["licence"]))
    assert (AT in shown) is ("publish_at" in scores) and ("best" in shown.partition("\ntables ")[2]) is (
        pick == "best"
    )


def test_amounts() -> None:
    assert [amount_of_time(n) for n in (1, 90, 300, 7200, 0.5)] == ["1 s", "90 s", "5 min", "2 h", "0.5 s"]
    sizes = [in_units(n) for n in (10, 256 << 10, 3 << 29, 64 << 20)]
    assert sizes == ["10 B", "256 KiB", "1.5 GiB", "64 MiB"]
    assert shortened({"a": "x" * 200}, 40) == json.dumps({"a": "x" * 29 + "…"}, ensure_ascii=False)


def test_meanings() -> None:
    assert meaning("adhoc", "nDCG(dcg='exp-log2')@10") == meaning("adhoc", "nDCG@5") != Meaning()
    assert meaning("adhoc", "condensed nDCG@5") != meaning("adhoc", "nDCG@5")
    assert meaning("adhoc", "unheard of") == meaning("no-kind", "AP") == Meaning()
    for kind in schemas.kinds():
        for one in schemas.schema(f"kinds/{kind}").get("x-measures", {}).values():
            assert set(one) == {"unit", "says"} and len(one["says"]) <= 80
