"""A task on one screen, and the same in its README: complete, narrow, and nothing of blinded data."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

import schemas
from runner.cli.app import app
from runner.cli.main import load_commands
from runner.model.config import Config
from runner.model.limits import in_units
from runner.model.task import Quota
from runner.records.store.charges import quotas
from runner.tasks.load import load_task, load_tasks
from runner.views.overview import readme
from runner.views.overview.facts import Standing, overview
from runner.views.overview.inputs import shortened
from runner.views.overview.screen import lines, screen
from runner.views.text import amount_of_time
from schemas.measures import Meaning, meaning
from tests.worlds import records
from tests.worlds.mini import Project, Said
from tests.worlds.records import World

ROOT = Path(__file__).parents[3]
BUNDLED, _ = load_tasks(Config(root=ROOT, home=ROOT / ".runner", truths=None))


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_task_fits_a_screen(name: str) -> None:
    task = BUNDLED[name]
    of = overview(task)
    shown = screen(of)
    assert len(shown) <= 59 and max(map(len, shown)) <= 80
    text = "\n".join(shown)
    assert all(one.says and one.unit for one in of.measures), "x-measures of the kind's schema lack one"
    assert of.output.file in text and of.output.says and all(one in text for one in task.datasets)
    assert all(f"  {one.name}" in text and one.example for one in of.inputs)
    assert bool(of.inputs) != (set(task.workflows) == {"interactive"})


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_tasks_readme_has_it(name: str) -> None:
    task = BUNDLED[name]
    assert readme.outdated([task]) == [], "run: make docs"
    assert "\n".join(lines(overview(task))) in readme.path(task).read_text("utf-8")


def test_published_scores_are_not_called_closed(project: Project, runner_cli: Callable[..., Said]) -> None:
    project.write_task(prefix="hidden-")
    runner_cli("publish", "mini", "test")
    flat = " ".join(runner_cli("task", "show", "mini").out.split())
    assert "test (blinded; scores: published)" in flat and "closed until" not in flat


def test_what_is_shown(project: Project, runner_cli: Callable[..., Said]) -> None:
    project.write_task(prefix="hidden-", closes="2031-05-17 23:59 AoE", uploads=True)
    told = runner_cli("task", "show", "mini")
    assert told.err == "" and told.out.split("\n") == [
        "mini: Mini",
        "",
        "takes      software that reads $inputDataset and writes to $outputDir; run files",
        "           (run: FILE in submission.yaml)",
        "limits     30 s, 64 MiB of memory, 1 processor, 4 MiB of output, 32 threads, 8",
        "           MiB noexec /tmp, 8 MiB /dev/shm, no network/loopback",
        "quota      50 submissions a team, 10 attempts a run",
        "dates      closes 2031-05-17 23:59 AoE (2031-05-18 11:59 UTC)",
        "datasets   dev (public)",
        "           test (blinded; scores: closed until the organiser publishes them)",
        "inputs     in $inputDataset; the examples are from dev",
        "  documents.jsonl.gz: docno, text",
        '    {"docno": "doc-01", "text": "x"}',
        "  queries.jsonl: qid, query",
        '    {"qid": "dev-1", "query": "words of dev-1"}',
        "output     $outputDir/run.txt (or run.txt.gz): TREC's run format, one line for",
        "           each document, best first: topic, Q0, document, rank, score",
        "           (falling), run tag",
        "           dev-1 Q0 doc-01 1 14.53 my-run",
        "measures   higher is better",
        "  nDCG@10 (0 to 1): gain of the relevant documents, discounted by rank, against",
        "      the ideal order",
        "  P@10 (0 to 1): share of the first k documents that are relevant",
        "tables     main: test, ranked by nDCG@10",
        "",
    ]
    data = runner_cli("task", "show", "mini", "--json")
    assert "hidden" not in told.all + data.all and data.json["team"] is None
    assert data.json["inputs"]["files"][1]["fields"] == ["qid", "query"]
    assert data.json["dates"]["closes"] == "2031-05-18T11:59:00Z"
    unknown = runner_cli("task", "show", "minnie", expect=2)
    assert "E102" in unknown.err and "mini" in unknown.err


def test_other_limits(project: Project, runner_cli: Callable[..., Said]) -> None:
    limits = {
        "wall_clock": "1h",
        "cpu_time": "10min",
        "image": "2GiB",
        "cpus": 2,
        "gpus": 1,
        "memory": "1GiB",
    }
    project.write_task(limits=limits)
    told = " ".join(runner_cli("task", "show", "mini").out.split())
    assert (
        "limits 1 h, 10 min of processor time, 1 GiB of memory, 2 processors, 1 GPU, 64 MiB of output, "
        in told
    )
    assert told.count("processor time") == 1 and "2 GiB of image, 256 threads, " in told


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
    assert data["anonymous_until"] == "the scores are published"


def test_quotas_are_said_in_plain_words_and_whose_submissions_are_left(tmp_path: Path) -> None:
    """Of the task and of a dataset; for a team with what is left there, and when the next one may come."""
    world = World.make(tmp_path)
    task = records.task(quota=Quota(failures=3))
    own = replace(task.datasets["test"], quota=Quota(submissions=9, per_day=1, at_once=2))
    task = replace(task, datasets=task.datasets | {"test": replace(own, requires="dev")})
    told = " ".join(" ".join(lines(overview(task))).split())
    assert "test: takes what was scored on dev (the same image; both count in the quota)" in told
    assert "50 submissions a team, 3 failures of its own for nothing, 10 attempts a run" in told
    assert "test: 9 submissions a team, 1 a day (UTC), 2 waiting or running at a time" in told
    world.register("alpha", "x")
    now = world.clock.now()

    def left(moment: datetime) -> str:
        standing = Standing("alpha", quotas(world.store, task, "alpha", moment), None)
        return " ".join(" ".join(lines(overview(task, standing))).split())

    said = left(now)
    assert (
        "test: 8 of 9 submissions left for alpha (0 used, 1 still open; 0 of 1 left today; 1 of 2 wait"
        in said
    )
    assert "the next may come at 2026-01-06 00:00 UTC" in said
    assert "1 of 1 left today" in left(now + timedelta(days=1)) and "may come" not in left(
        now + timedelta(days=1)
    )


def test_what_a_team_has_left(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    records.write_project(tmp_path)
    world.scored("alpha", "x")
    world.register("alpha", "y")
    load_commands()
    where = {"RUNNER_ROOT": str(tmp_path), "RUNNER_HOME": str(world.config.home)}
    told = CliRunner().invoke(app, ["task", "show", "toy", "--as", "team:alpha"], env=where)
    assert "quota      48 of 50 submissions left for alpha (1 used, 1 still open)" in told.stdout.split("\n")
    data = json.loads(
        CliRunner().invoke(app, ["task", "show", "toy", "--as", "team:alpha", "--json"], env=where).stdout
    )
    wanted = {"team": "alpha", "limit": 50, "used": 1, "open": 1, "left": 48, "deadline": None}
    assert data["team"].items() >= wanted.items() and data["team"]["datasets"] == {}
    other = CliRunner().invoke(app, ["task", "show", "toy", "--as", "public"], env=where)
    assert "50 submissions a team" in other.stdout and "alpha" not in other.stdout


def test_which_scenario_sees_what(project: Project, runner_cli: Callable[..., Said]) -> None:
    view = [{"files": "queries.jsonl", "fields": ["qid"]}]
    project.write_task(scenarios=[{"id": "default"}, {"id": "ids", "view": view}])
    told = " ".join(runner_cli("task", "show", "mini").out.split())
    assert "scenarios default, ids" in told
    assert "queries.jsonl: qid, query (query only in default)" in told
    assert "documents.jsonl.gz: docno, text (only in default)" in told
    project.write_task(scenarios=[{"id": "default", "view": view}])
    told = runner_cli("task", "show", "mini").all  # what no scenario sees is not shown, public or not
    assert "words of" not in told and "documents.jsonl.gz" not in told and '{"qid": "dev-1"}' in told


def test_examples_are_short_and_harmless(project: Project, runner_cli: Callable[..., Said]) -> None:
    inputs = project.root / "tasks" / "mini" / "datasets" / "dev" / "inputs"
    row = {"qid": "1", "query": "\x1b[2J" + "long " * 500, "more": [1, 2, 3], "deep": {"a": {"b": "c" * 99}}}
    (inputs / "queries.jsonl").write_text(json.dumps(row) + "\n")
    (inputs / "list.txt").write_text("first line\nsecond\n")
    (inputs / "binary.dat").write_bytes(b"\0\xff\0")
    (inputs / "topics.xml").write_text('<?xml version="1.0"?>\n<topics>\n <topic number="1"/>\n</topics>\n')
    (inputs / "broken.jsonl").write_text("{\n")
    told = runner_cli("task", "show", "mini", "--full").out  # call() fails for an escape character
    assert max(map(len, told.split("\n"))) <= 80
    assert "\n    first line\n" in told and "\n  binary.dat\n" in told and "\n  broken.jsonl\n    {\n" in told
    assert '\n    <topics> <topic number="1"/> </topics>\n' in told
    assert '"more": [1, "…"]' in " ".join(told.split())


def test_without_public_data(project: Project, runner_cli: Callable[..., Said]) -> None:
    sources = [{"path": "inputs/big.jsonl", "url": "https://example.org/big.jsonl"}]
    datasets = [
        {"id": "dev", "visibility": "public", "sources": sources},
        {"id": "test", "visibility": "blinded"},
    ]
    project.write_task(datasets=datasets)
    assert "inputs     not here: runner data pull mini" in runner_cli("task", "show", "mini").out
    project.write_task(datasets=datasets[1:])
    assert "inputs     there is no public data to show examples of" in runner_cli("task", "show", "mini").out
    named = {**datasets[1], "topics": "queries.jsonl", "corpus": "documents.jsonl.gz"}
    project.write_task(prefix="hidden-", datasets=[named])
    told = " ".join(runner_cli("task", "show", "mini").out.split())
    assert "inputs in $inputDataset: queries.jsonl (topics), documents.jsonl.gz (corpus); there is no" in told
    assert "hidden" not in told


@pytest.mark.parametrize(
    ("pick", "says"),
    [
        ("latest", "ranked by nDCG@10"),
        ("best", "ranked by nDCG@10; your best valid submission counts"),
        ("chosen", "ranked by nDCG@10; the submission that you name counts (runner choose), else the latest"),
    ],
)
def test_which_submission_counts_is_said(
    project: Project, runner_cli: Callable[..., Said], pick: str, says: str
) -> None:
    (table,) = json.loads((project.root / "tasks" / "mini" / "task.yaml").read_text())["tables"]
    project.write_task(tables=[{**table, "pick": pick}])
    assert " ".join(runner_cli("task", "show", "mini").out.split()).endswith(says)
    assert runner_cli("task", "show", "mini", "--json").json["tables"][0]["pick"] == pick


def test_licence_terms_and_contact_are_said(project: Project, runner_cli: Callable[..., Said]) -> None:
    blinded = {"id": "test", "visibility": "blinded", "licence": "all rights reserved"}
    stated = {"licence": "CC BY 4.0", "terms": "https://example.org/terms", "contact": "chair@example.org"}
    project.write_task(datasets=[{"id": "dev", "visibility": "public"}, blinded], **stated)
    told = runner_cli("task", "show", "mini", "--as", "public").out
    assert "\nlicence    dev: CC BY 4.0\n           test: all rights reserved\n" in told
    assert "\nterms      https://example.org/terms\ncontact    chair@example.org\n" in told
    facts = runner_cli("task", "show", "mini", "--json").json
    assert {name: facts[name] for name in stated} == stated
    assert [one["licence"] for one in facts["datasets"]] == ["CC BY 4.0", "all rights reserved"]


def test_no_rule_is_cut_where_a_screen_is_short_of_lines(project: Project) -> None:
    blinded = {
        "id": "test",
        "visibility": "blinded",
        "scores": "team",
        "publish_at": AT,
        "description": "long " * 99,
    }
    address = f"https://example.org/{'a-long-address/' * 9}"
    rounds = [{"id": f"r{n}", "at": AT, "title": "x"} for n in range(20)]
    stated = {"terms": address, "licence": "We hold all rights. " * 15, "closes": AT}
    project.write_task(datasets=[{"id": "dev", "visibility": "public"}, blinded], rounds=rounds, **stated)
    of = overview(load_task(project.config, "mini"))
    for text in (screen(of), list(lines(of, most=6, of_example=1))):
        flat = " ".join(" ".join(text).split())
        assert f"closed until {AT} (2031-05-18 11:59 UTC)): long" in flat and f"terms {address} " in flat
        assert max(len(line) for line in text if address not in line) <= 80
    assert 2 <= flat.count("We hold all rights.") <= 10


@pytest.mark.parametrize(
    "contact", ["the chairs", "chair@host", "javascript:alert(1)", "a b@example.org", "@", ""]
)
def test_a_contact_that_is_none_is_refused(
    project: Project, runner_cli: Callable[..., Said], contact: str
) -> None:
    project.write_task_only(contact=contact)
    said = runner_cli("task", "show", "mini", expect=4)
    assert "contact" in said.err and "chair@example.org" in said.err


AT = "2031-05-17 23:59 AoE"


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        ({"scores": "public"}, "test (blinded)"),
        (
            {"scores": "team"},
            "test (blinded; scores: each team sees those of its own runs, closed until the organiser publishes them)",
        ),
        ({}, "test (blinded; scores: closed until the organiser publishes them)"),
        ({"publish_at": AT}, f"test (blinded; scores: closed until {AT} (2031-05-18 11:59 UTC))"),
    ],
)
def test_who_sees_scores_is_said(
    project: Project, runner_cli: Callable[..., Said], scores: dict[str, str], says: str
) -> None:
    blinded = {"id": "test", "visibility": "blinded", **scores}
    project.write_task(datasets=[{"id": "dev", "visibility": "public"}, blinded])
    assert f"datasets dev (public) {says} inputs" in " ".join(runner_cli("task", "show", "mini").out.split())
    facts = runner_cli("task", "show", "mini", "--json").json["datasets"][1]
    assert facts["scores"] == scores.get("scores", "organiser")
    assert (facts["publish_at"] is not None) is ("publish_at" in scores)


def test_a_readme_follows_its_task(project: Project) -> None:
    task = load_task(project.config, "mini")
    place = readme.path(task)
    assert not readme.write(task) and not place.exists()  # none is made where there is none
    place.write_text("# Mini\n\nWords.\n\n## Data\n\nMore words.\n")
    assert readme.outdated([task]) == ["mini"] and readme.write(task) and not readme.write(task)
    text = place.read_text()
    assert text.startswith("# Mini\n\nWords.\n\n<!-- overview:") and text.endswith(
        "-->\n\n## Data\n\nMore words.\n"
    )
    project.write_task_only(quota={"submissions": 3})
    changed = load_task(project.config, "mini")
    assert readme.outdated([changed]) == ["mini"] and readme.write(changed)
    after = place.read_text()
    assert after == text.replace("50 submissions a team", "3 submissions a team") != text
    for file in (project.root / "tasks" / "mini" / "datasets" / "dev" / "inputs").iterdir():
        file.unlink()
    assert readme.outdated([changed]) == []  # what describes data that are not here stays


def test_a_new_task_has_it_and_checking_writes_it_anew(
    project: Project, runner_cli: Callable[..., Said]
) -> None:
    runner_cli("task", "new", "mine")
    place = project.root / "tasks" / "mine" / "README.md"
    assert "20 submissions a team" in place.read_text() and "synthetic" in place.read_text()
    definition = place.with_name("task.yaml")
    definition.write_text(definition.read_text().replace("submissions: 20", "submissions: 7"))
    said = runner_cli("task", "check", "mine")
    assert "the overview in tasks/mine/README.md was written anew" in said.err
    assert "7 submissions a team" in place.read_text()
    assert "README" not in runner_cli("task", "check", "mine").err


def test_amounts() -> None:
    assert [amount_of_time(n) for n in (1, 90, 300, 7200, 0.5)] == ["1 s", "90 s", "5 min", "2 h", "0.5 s"]
    assert [in_units(n) for n in (10, 256 << 10, 3 << 29, 64 << 20)] == [
        "10 B",
        "256 KiB",
        "1.5 GiB",
        "64 MiB",
    ]
    assert shortened({"a": "x" * 200}, 40) == json.dumps({"a": "x" * 29 + "…"}, ensure_ascii=False)


def test_meanings() -> None:
    assert meaning("adhoc", "nDCG(dcg='exp-log2')@10") == meaning("adhoc", "nDCG@5") != Meaning()
    assert meaning("adhoc", "condensed nDCG@5") != meaning("adhoc", "nDCG@5")
    assert meaning("adhoc", "unheard of") == meaning("no-kind", "AP") == Meaning()
    for kind in schemas.kinds():
        for one in schemas.schema(f"kinds/{kind}").get("x-measures", {}).values():
            assert set(one) == {"unit", "says"} and len(one["says"]) <= 80
