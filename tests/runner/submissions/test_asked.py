"""What a task asks of a submission beside the software: description, paper and affiliation, each off, optional or required."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import schemas
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.task import ASKS
from runner.records.store.queries import submissions
from runner.records.store.run_detail import detail
from runner.submissions.bundle import Bundle
from runner.submissions.load import load_submission
from runner.submissions.pack import write
from runner.submissions.register import register
from runner.submissions.table import read_table
from runner.tasks.load import load_task
from runner.views.audience import ORGANISER, PUBLIC, Audience
from runner.views.leaderboard.export import FORMATS, as_dict, export, from_dict
from runner.views.leaderboard.table import build
from runner.views.overview.facts import overview
from runner.views.overview.screen import printed
from runner.views.redact import redact_run
from runner.views.show.page import page
from runner.views.show.presentation import present
from tests.runner.execution.test_pool import World, good
from tests.worlds import definitions, records
from tests.worlds.definitions import told, write_submission, write_task
from tests.worlds.mini import Project

ABOUT = "description: It ranks.\n"
ALL = {"description": "required", "paper": "optional", "affiliation": "off"}
PAPER = "https://doi.org/10.1000/a_b-1(2)?x=1"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return definitions.project(tmp_path / "root")


def refusal(config: Config, text: str) -> RunnerError | None:
    """The error of a submission.yaml with this text, if any."""
    folder = config.submissions / "alpha" / "one"
    if folder.exists():
        (folder / "submission.yaml").write_text(f"task: toy\nimage: x\n{text}")
    else:
        write_submission(config, f"task: toy\nimage: x\n{text}")
    try:
        load_submission(config, "alpha", "one")
    except RunnerError as error:
        return error
    return None


def test_missing_and_unwanted_keys_are_refused_with_the_fix(config: Config) -> None:
    write_task(config, data=False, asks=ALL)
    both = refusal(config, "affiliation: Uni A\n")
    assert both is not None and len(both.problems) == 2
    assert 'description: "' in told(both) and "affiliation" in both.problems[0].fix + both.problems[1].fix
    assert "submission.yaml:3" in told(both)
    blank = refusal(config, 'description: "  "\n')
    assert blank is not None and "description" in told(blank)
    for text in (ABOUT, f"{ABOUT}paper: {PAPER}\n"):
        assert refusal(config, text) is None


def test_without_asks_a_description_is_optional_and_other_keys_are_refused(config: Config) -> None:
    write_task(config, data=False)
    assert load_task(config, "toy").asks == ASKS
    assert refusal(config, "") is None and refusal(config, ABOUT) is None
    for key, text in (("paper", PAPER), ("affiliation", "Uni A")):
        error = refusal(config, f"{key}: {text}\n")
        assert error is not None and [key in problem.fix for problem in error.problems] == [True]


BAD_ADDRESSES = [
    "javascript:alert(1)", "ftp://a.org/x", "https://", "http://user:pass@a.org/x", "https://a.org/\\x", "https://a.org/<b>",
    "https://a.org/ x", 'https://a.org/"onclick', "https://а.org/", "HTTPS://a.org", "https://a.org/" + "x" * 300, "//a.org",
    "https://-a.org", "https://a.org:999999/", "https://a.org@b.org/", "https://a.org/\\u202e",
]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "text"),
    [
        *(("paper", json.dumps(address)) for address in BAD_ADDRESSES),
        *(("affiliation", f'"{text}"') for text in ("a\\nb", " a", "", "x" * 101, "\\u200b")),
    ],
)
def test_only_plain_addresses_of_the_web_are_taken(config: Config, key: str, text: str) -> None:
    write_task(config, data=False, asks={key: "optional"})
    error = refusal(config, f"{key}: {text}\n")
    assert error is not None and f'"{key}"' in told(error)


def test_a_definition_names_known_rules_only(config: Config) -> None:
    for n, wrong in enumerate(({"paper": "maybe"}, {"papers": "off"}, {"paper": True})):
        write_task(config, f"t{n}", data=False, asks=wrong)
        with pytest.raises(RunnerError, check=lambda error: error.code == "E401"):
            load_task(config, f"t{n}")


def test_the_screen_of_the_task_shows_it(config: Config) -> None:
    write_task(config, data=False, asks=ALL)
    of = overview(load_task(config, "toy"))
    lines = printed(of)
    assert max(map(len, lines)) <= 80 and of.as_dict()["asks"] == ALL
    assert "submission.yaml" in " ".join(lines) and "affiliation" in " ".join(lines)
    write_task(config, "plain", data=False)
    assert "affiliation" not in " ".join(printed(overview(load_task(config, "plain"))))


def test_a_table_of_run_files_says_it_for_each(config: Config, tmp_path: Path) -> None:
    write_task(config, data=False, workflow="upload", asks={"paper": "required", "description": "off"})
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / name).write_text("1 Q0 d 1 1 x\n")
    path = tmp_path / "runs.csv"
    lines = [f"A,a,a.txt,dev,{PAPER},", "B,b,b.txt,dev,,words", "C,c,c.txt,dev,file:///x,"]
    path.write_text("\n".join(["team,run,file,dataset,paper,description", *lines, ""]))
    read = read_table(path, load_task(config, "toy"), tmp_path / "scratch")
    assert [(one.software, one.paper) for one in read.submissions] == [("a", PAPER)]
    found = [str(problem).split(".csv:")[1] for problem in read.problems.found]
    assert sorted(text[0] for text in found) == ["3", "3", "4"]
    assert all(any(key in text for text in found) for key in ("description", "paper"))


# --- at the organiser's -------------------------------------------------------------------------------------------


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    project.write_task(asks={"description": "required", "paper": "optional", "affiliation": "required"})
    made = World(project)
    yield made
    made.close()


def packed(world: World, software: str, **keys: Any) -> Bundle:
    world.engine.script.setdefault(f"alpha/{software}", good)
    world.project.software(software, image=f"alpha/{software}", **keys)
    submission = load_submission(world.project.config, "alpha", software)
    image = world.engine.resolve(f"alpha/{software}")
    to = world.project.home / "bundles" / f"alpha.{software}"
    return write(submission, image, to, engine=world.engine, check=None, with_archive=False)


def test_what_was_packed_is_checked_again_and_kept(world: World) -> None:
    about = {"description": "It ranks.", "paper": PAPER, "affiliation": "Universität A & B"}
    bundle = packed(world, "one", **about)
    register(world.project.config, world.store, world.engine, world.tasks, bundle.folder)
    (found,) = submissions(world.store)
    assert {key: getattr(found, key) for key in about} == about


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"description": ""}, "description"),
        ({"affiliation": None}, "affiliation"),
        ({"paper": "https://user:word@a.org/"}, "paper"),
        ({"affiliation": "a\u202eb"}, ""),
    ],
)
def test_a_bundle_that_was_changed_is_refused_before_anything_is_kept(
    world: World, change: dict[str, str | None], expected: str
) -> None:
    bundle = packed(world, "one", description="It ranks.", affiliation="A")
    path = bundle.folder / "bundle.json"
    data = {**json.loads(path.read_text()), **change}
    text = json.dumps({key: one for key, one in data.items() if one is not None or key not in change})
    path.write_text(text)
    manifest = bundle.folder / "manifest.json"
    listed = json.loads(manifest.read_text())
    entry = {"size": len(text.encode()), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    files = {**listed["files"], "bundle.json": {**listed["files"]["bundle.json"], **entry}}
    manifest.write_text(json.dumps({**listed, "files": files}))
    with pytest.raises(RunnerError) as caught:
        register(world.project.config, world.store, world.engine, world.tasks, bundle.folder)
    assert expected in told(caught.value)
    assert submissions(world.store) == [] and list(world.store.log) == []


# --- what people see ----------------------------------------------------------------------------------------------

HOSTILE = "=1+1 | <b>Uni</b> & $A$"
ADDRESS = "https://a.org/x_1?y=(2)&z=*"


def test_runs_and_boards_show_it_harmlessly_and_only_where_it_is_said(tmp_path: Path) -> None:
    world, task = records.World.make(tmp_path), records.task(baseline=None)
    plain = world.attempt(world.register("plain", "x"))
    world.evaluation(plain, {m: records.per_topic("p") for m in records.MEASURES})
    assert "paper" not in export(build(world.store, task, None, PUBLIC), "csv")
    assert "paper" not in export(build(world.store, task, None, PUBLIC), "json")
    attempt = world.attempt(world.register("alpha", "x", paper=ADDRESS, affiliation=HOSTILE))
    world.evaluation(attempt, {m: records.per_topic("a") for m in records.MEASURES})
    for audience in (ORGANISER, Audience("team", "alpha")):
        view = redact_run(detail(world.store, attempt.run_id, [task]), audience, task.datasets["test"])
        assert (view["paper"], view["affiliation"]) == (ADDRESS, HOSTILE)
        assert {"paper", "affiliation"} <= present(view).facts.keys()
        assert "&lt;b&gt;Uni&lt;/b&gt;" in page(view) and "<b>Uni" not in page(view)
    made = build(world.store, task, None, PUBLIC)
    texts = {form: export(made, form) for form in FORMATS}
    assert "<b>Uni" not in texts["html"] and ADDRESS.replace("&", "&amp;") in texts["html"]
    line = {row["team"]: row for row in csv.DictReader(io.StringIO(texts["csv"]))}["alpha"]
    assert (line["paper"], line["affiliation"]) == (ADDRESS, f"'{HOSTILE}")
    data = json.loads(texts["json"])
    assert schemas.validate(data, "leaderboard") == [] and as_dict(from_dict(data, "public")) == data
    assert [row.get("paper") for row in data["rows"] if row["team"] == "alpha"] == [ADDRESS]
    assert not any("paper" in row for row in data["rows"] if row["team"] == "plain")
