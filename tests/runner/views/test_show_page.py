"""The page of a run: whole, escaped, without scripts, for its audience; and the command line around it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from runner.cli.app import app
from runner.cli.main import load_commands
from runner.kinds.debate import presenter as debating
from runner.kinds.report import presenter as reporting
from runner.model.errors import RunnerError
from runner.model.task import Measure
from runner.records.store import run_detail
from runner.views.audience import ORGANISER, Audience, may_take
from runner.views.export import export_run
from runner.views.leaderboard.table import build
from runner.views.logs import log_lines, sidecar_logs
from runner.views.pages import policy
from runner.views.redact import RunView, received, redact_run
from runner.views.show.contents import Inside
from runner.views.show.page import STYLE, page
from runner.views.show.presentation import resources
from tests.worlds import records
from tests.worlds.definitions import definition
from tests.worlds.records import World
from tests.worlds.shown import HOSTILE, INDEX, debate, debated, judged_line, record, reported, task

ALPHA = Audience("team", "alpha")
VOID = {"meta", "br", "wbr"}


class Read(HTMLParser):
    """Checks that elements are closed in order, and keeps what there is."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def debates_page(tmp_path: Path, dataset: str = "dev", audience: Audience = ORGANISER) -> str:
    made = task(tmp_path, index=INDEX)
    arguments = [{"id": HOSTILE, "text": HOSTILE}, {"id": "1.1", "text": INDEX["1.1"]}]
    lines = [debate("c1", HOSTILE, (HOSTILE, HOSTILE, arguments), (HOSTILE, "", []))]
    turns = [record(1, 1), record(1, 2, ("status", HOSTILE), target=1)]
    found = debated(World.make(tmp_path), made, lines, turns, served=["1.1"], dataset=dataset)
    place = made.datasets[dataset]
    return page(redact_run(found, audience, place), debating.read(found, made, audience, place))


def reports_page(tmp_path: Path) -> str:
    found = reported(World.make(tmp_path), [judged_line()])
    place = records.task().datasets["dev"]
    return page(redact_run(found, ORGANISER, place), reporting.read(found, None, ORGANISER, place))


@pytest.mark.parametrize("make", [debates_page, reports_page])
def test_a_page_is_well_formed_and_holds_nothing_that_acts(
    tmp_path: Path, make: Callable[[Path], str]
) -> None:
    text = make(tmp_path)
    read = Read(text)
    assert not read.tags & {"script", "img", "iframe", "object", "embed", "link", "form", "base"}
    assert not read.tags & {
        "use",
        "image",
        "animate",
        "set",
        "foreignobject",
    }  # of drawings only bars of ours
    assert not [name for name, _ in read.attributes if name.startswith("on") or name == "style"]
    links = [value or "" for name, value in read.attributes if name in ("href", "src")]
    assert links and all(re.fullmatch(r"#[a-z0-9]+", link) for link in links)
    names = [value for name, value in read.attributes if name == "id"]
    assert len(names) == len(set(names)) and {link[1:] for link in links} <= {*names}
    assert "<script>document.title='pwned'</script>" in read.text  # as words
    assert [c for c in text if not c.isprintable() and c != "\n"] == []
    assert policy(STYLE) in [value for _, value in read.attributes]
    assert "unsafe" not in policy(STYLE) and "script-src" not in policy(STYLE)
    assert "default-src 'none'" in policy(STYLE)


def test_a_page_of_debates_says_it_all(tmp_path: Path) -> None:
    text = Read(debates_page(tmp_path)).text
    for words in (
        "attacks answer 1",
        "No answer",
        "status: ",
        "2 arguments: ✗ 1 not in order",
        "✓ in the index✓ text unchanged✓ served to this run",
        "✗ not in the index✗ never served to this run",
    ):
        assert words in text, words


def test_the_four_criteria_stand_beside_every_answer(tmp_path: Path) -> None:
    made = task(tmp_path)
    scores = [
        {"measure": "quality", "topic": "c1", "value": 0.5},
        {"measure": "quality", "topic": "c1", "value": 1, "facets": {"turn": 1}},
        {"measure": "quality", "topic": "c1", "value": 0, "facets": {"turn": 2}},
    ]
    lines = [debate("c1", "C", ("u", "one", []), ("u", "two", []))]
    found = debated(World.make(tmp_path), made, lines, scores=scores)
    place = made.datasets["dev"]
    text = page(redact_run(found, ORGANISER, place), debating.read(found, made, ORGANISER, place))
    told = re.sub("<[^>]+>", "", text)
    assert "quality (human) 0.5" in told and "✓ quality (human)" in told and "✗ quality (human)" in told
    assert '<li class="good">✓ <bdi dir="auto">quality (human)' in text


def test_a_page_of_reports_says_it_all(tmp_path: Path) -> None:
    text = reports_page(tmp_path)
    told = Read(text).text
    for words in (
        "Bees fly.",
        "✓ cites d1, supports it, relevant",
        "✗ cites d2, does not support it, not relevant",
        "+ reward: answers",
        "− penalty: a citation is required",
        "Who flies?",
        "✓ Bees (given)✗ Wasps (not given)",
    ):
        assert words in told, words
    assert '<a href="#r1n1">' in text and '<a href="#r1s1">' in text  # sentence to nugget, and back


def test_a_report_stands_below_its_request(tmp_path: Path) -> None:
    found = reported(World.make(tmp_path), [judged_line()])
    place = replace(records.task().datasets["dev"], inputs=tmp_path, topics="requests.jsonl")
    rows = [{"request_id": "t1", "title": "Flight", "problem_statement": f"Who? {HOSTILE}"}, 5, {"x": 1}]
    (tmp_path / "requests.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n{broken\n")
    reports = reporting.read(found, None, ORGANISER, place)
    told = Read(page(redact_run(found, ORGANISER, place), reports)).text
    assert "Topic t1: Flight" in told and "Who? <script>" in told
    assert reports is not None
    assert "request | Flight: Who? " in "\n".join(reports.lines({1}))


def view_of(tmp_path: Path) -> RunView:
    found = reported(World.make(tmp_path / "plain"), [judged_line()])
    return redact_run(found, ORGANISER, records.task().datasets["dev"])


def many(tmp_path: Path, count: int) -> Inside:
    made = task(tmp_path)
    lines = [debate(f"c{n}", f"Claim {n}", ("u", "word " * 200, [])) for n in range(1, count + 1)]
    found = debated(World.make(tmp_path), made, lines)
    return Inside(found.run.id, ORGANISER, debating.read(found, made, ORGANISER, made.datasets["dev"]))


def test_a_page_of_many_debates_ends_and_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = many(tmp_path, 300)
    monkeypatch.setattr("runner.views.show.page.MAX_INSIDE", 100_000)
    view = view_of(tmp_path)
    text = page(view, run.contents)
    shown = re.findall(r'<section class="one" id="d(\d+)"', text)
    assert 20 < len(shown) < 200 and len(text) < 200_000
    assert f"the first {len(shown)} of 300 debates" in text
    assert f"--debate {len(shown) + 1}-300 --html FILE" in text
    assert {*re.findall(r'href="#d(\d+)"', text)} == {*shown} and "Claim 300" in text  # named, not linked
    lines = list(run.lines())
    assert len(lines) < 300 and "  … and 100 more, which --json lists" in lines
    one = page(view, run.contents, {7})
    assert (
        re.findall(r'<section class="one" id="d(\d+)"', one) == ["7"] and "1 of the 300 debates were" in one
    )


def test_a_blinded_page_for_a_team_has_steps_only(tmp_path: Path) -> None:
    text = debates_page(tmp_path, "test", ALPHA)
    assert "zebra" not in text and "timeout" not in text and "are not shown to team alpha" in text
    assert "under 1 min" in text and "under 256 MiB" in text and "under 64 KiB" in text
    assert "zebra" in debates_page(tmp_path / "again", "test")


def test_any_run_has_a_plain_page(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    for verdict in ("ok", "memory-limit"):
        attempt = world.attempt(world.register("alpha", verdict), verdict=verdict, log=HOSTILE.encode())
        found = run_detail.detail(world.store, attempt.run_id)
        read = Read(page(redact_run(found, ORGANISER, records.task().datasets["test"])))
        assert attempt.run_id in read.text and "script" not in read.tags


# --- logs of the containers beside a software -----------------------------------------------------------------


@pytest.mark.parametrize("dataset", ["dev", "test"])
def test_logs_of_sidecars_are_the_organisers(tmp_path: Path, dataset: str) -> None:
    made = task(tmp_path)
    found = debated(World.make(tmp_path), made, [debate("c1", "C", ("u", "s", []))], dataset=dataset)
    place = made.datasets[dataset]
    assert list(sidecar_logs(found)) == ["driver.json", "driver", "search"]
    assert list(log_lines(found, ORGANISER, place, sidecar="search")) == ["CANARY of search \\x1b[2J"]
    for name in ("nothing", "stdout", "../lock", "stdout.log", ""):
        with pytest.raises(RunnerError) as caught:
            log_lines(found, ORGANISER, place, sidecar=name)
        assert caught.value.code == "E102" and "driver" in caught.value.fix
    with pytest.raises(RunnerError) as caught:
        log_lines(found, ALPHA, place, sidecar="search")
    assert caught.value.code == "E103"
    assert "CANARY" not in json.dumps(dict(redact_run(found, ALPHA, place)))
    assert redact_run(found, ORGANISER, place)["inside"]["sidecar_logs"] == [
        "driver.json",
        "driver",
        "search",
    ]


def test_exports_for_teams_leave_them_out(tmp_path: Path) -> None:
    made = task(tmp_path)
    found = debated(World.make(tmp_path), made, [debate("c1", "C", ("u", "s", []))])
    place = made.datasets["dev"]
    for audience, there in ((ALPHA, False), (ORGANISER, True)):
        out = tmp_path / audience.kind
        export_run(found, redact_run(found, audience, place), out)
        assert (out / "logs" / "stdout.log").is_file() and (out / "output" / "simulations.jsonl").is_file()
        for name in ("logs/search.log", "logs/driver.json", "evaluation/logs/stderr.log"):
            assert (out / name).exists() is there, name
    assert not may_take(ALPHA, "evaluation/calls.jsonl") and not may_take(ALPHA, "replies.jsonl")
    assert may_take(ALPHA, "output/calls.jsonl")  # the software's own


# --- the command line ---------------------------------------------------------------------------------------


@pytest.fixture
def cli(tmp_path: Path) -> Callable[..., Result]:
    world = World.make(tmp_path)
    folder = tmp_path / "tasks" / "toy"
    for dataset in ("dev", "test"):
        inputs, truths = folder / "datasets" / dataset / "inputs", folder / "datasets" / dataset / "truths"
        inputs.mkdir(parents=True)
        (truths / "labels").mkdir(parents=True)
        (inputs / "claims.jsonl").write_text(json.dumps({"id": "c1", "claim": "C"}) + "\n")
        (truths / "labels" / "labels.jsonl").touch()
    data: dict[str, Any] = definition(
        kind="debate",
        workflow="upload",
        output="simulations.jsonl",
        datasets=[{"id": "dev", "visibility": "public"}, {"id": "test", "visibility": "blinded"}],
        measures=[{"id": "quality", "measure": "quality@human", "truths": "labels/labels.jsonl"}],
        tables=[{"id": "main", "cells": [{"dataset": "test"}], "rank_by": "quality"}],
    )
    (folder / "task.yaml").write_text(json.dumps(data))
    (tmp_path / "submissions").mkdir()
    lines = [debate("c1", "C", ("u", HOSTILE, [])), debate("c2", "D", ("u", "second", []))]
    debated(world, task(tmp_path), lines, dataset="test")
    load_commands()
    where = {"RUNNER_ROOT": str(tmp_path), "RUNNER_HOME": str(world.config.home)}
    (run,) = [run for _, run in world.archive.runs()]
    return lambda command, *rest: CliRunner().invoke(app, [command, run, *rest], env=where)


def test_show_on_the_command_line(cli: Callable[..., Result], tmp_path: Path) -> None:
    out = cli("show", "--debate", "2")
    assert out.exit_code == 0 and "system  | second" in out.stdout and "\x1b" not in out.stdout
    told = json.loads(cli("show", "--json", "--topic", "c2").stdout)
    assert [d["id"] for d in told["debates"]["debates"]] == ["c2"]
    blinded = json.loads(cli("show", "--json", "--as", "team:alpha").stdout)
    assert blinded["debates"]["debates"] is None
    target = tmp_path / "run.html"
    assert cli("show", "--html", str(target)).exit_code == 0
    assert "second" in Read(target.read_text("utf-8")).text
    assert target.stat().st_mode & 0o077 == 0  # it may hold blinded claims
    assert cli("show", "--html", str(target), "--as", "team:alpha").exit_code == 0
    assert "second" not in target.read_text("utf-8")
    assert not list(tmp_path.glob(".run.html*"))


def test_mistakes_on_the_command_line(cli: Callable[..., Result], tmp_path: Path) -> None:
    for arguments, code in (
        (("--debate", "9"), "E102"),
        (("--debate", "x"), "E101"),
        (("--debate", "1", "--topic", "c1"), "E101"),
        (("--topic", "c1", "--as", "team:alpha"), "E103"),
        (("--html", str(tmp_path / "no" / "where.html")), "E101"),
        (("--html", str(tmp_path)), "E101"),
    ):
        result = cli("show", *arguments)
        assert isinstance(result.exception, RunnerError), (arguments, result.output)
        assert result.exception.code == code
    assert "CANARY of search" in cli("logs", "--sidecar", "search").stdout
    denied = cli("logs", "--sidecar", "search", "--as", "team:alpha").exception
    assert isinstance(denied, RunnerError) and denied.code == "E103"


def test_a_run_is_released_and_closed_on_the_command_line(cli: Callable[..., Result], tmp_path: Path) -> None:
    def shown() -> dict[str, Any]:
        told: dict[str, Any] = json.loads(cli("show", "--json", "--as", "team:alpha").stdout)
        return told

    assert shown()["log"] == {} and shown()["debates"]["counts"] == {}
    assert isinstance(cli("logs", "--as", "team:alpha").exception, RunnerError)
    assert cli("release", "--undo").output.strip().endswith("was closed already")
    assert "is open to alpha" in cli("release", "--reason", "a\x1b[31mlook").output
    assert cli("release").output.strip().endswith("was released already")
    assert shown()["log"]["stdout"] and shown()["debates"]["counts"]["debates"] == 2
    assert shown()["debates"]["debates"] is None, "transcripts hold the claims"
    assert cli("logs", "--as", "team:alpha").exit_code == 0
    assert isinstance(cli("export", str(tmp_path / "out"), "--as", "team:alpha").exception, RunnerError)
    assert "closed again" in cli("release", "--undo").output
    assert shown()["log"] == {} and shown()["debates"]["counts"] == {}
    events = [json.loads(line) for line in next(tmp_path.rglob("events.jsonl")).read_text().splitlines()]
    assert [(e["type"], e["actor"]) for e in events[-2:]] == [
        ("run-released", "organiser"),
        ("run-closed", "organiser"),
    ]
    assert events[-2]["data"]["reason"] == "a\\x1b[31mlook" and events[-2]["data"]["attempt"] == 1


def test_a_run_says_first_what_became_of_it_and_last_how_to_do_it_again(tmp_path: Path) -> None:
    """What is inside it stands before the scores, these in the task's order with what they tell; resources over their limits."""
    text = debates_page(tmp_path)
    order = ["The run is valid", ">Debates<", ">Scores<", ">Resources<", ">To do it again<", ">Files<"]
    places = [text.find(words) for words in order]
    assert -1 not in places and places == sorted(places), places
    assert "runner verify " in text and "runner export " in text
    other = debates_page(tmp_path / "team", audience=ALPHA)
    assert "runner verify" not in other, "who has no data directory cannot"
    assert "runner try --team alpha --software x" in Read(other).text, "what its team can do itself"
    assert ">To do it again<" in other


def test_a_run_file_was_handed_in_and_is_checked_by_its_own_name(tmp_path: Path) -> None:
    world, of = World.make(tmp_path), replace(records.task(), output="reports.jsonl")
    attempt = world.attempt(world.register("alpha", "filed", workflow="upload"), dataset="dev")
    text = page(
        redact_run(run_detail.detail(world.store, attempt.run_id), ALPHA, of.datasets["dev"]), task=of
    )
    assert "ok – The run file was taken as it was handed in." in text and "software ended" not in text
    assert "runner check reports.jsonl --task toy" in Read(text).text


def test_a_run_that_failed_shows_first_what_its_team_looks_for(tmp_path: Path) -> None:
    """The end of its log before what it used; a few findings with their places are open, many are not."""
    world, of = World.make(tmp_path), records.task()
    attempt = world.attempt(
        world.register("alpha", "bad"), dataset="dev", verdict="run-error", log=b"KeyError: x\n"
    )
    text = page(
        redact_run(run_detail.detail(world.store, attempt.run_id), ALPHA, of.datasets["dev"]), task=of
    )
    assert -1 < text.find("Last lines of std") < text.find(">Resources<")
    for count, open_ in ((3, True), (30, False)):
        done = world.attempt(world.register("alpha", f"n{count}"), dataset="dev")
        found = [
            {"code": "F014", "severity": "error", "file": "run.txt", "line": n + 1, "message": "no"}
            for n in range(count)
        ]
        world.evaluation(done, status="invalid", codes={"F014": ("error", count)}, findings=found)
        text = page(
            redact_run(run_detail.detail(world.store, done.run_id), ALPHA, of.datasets["dev"]), task=of
        )
        assert ("<details open><summary>" in text) == open_ and "findings with their places" in text


def test_the_same_measure_by_other_truths_says_so(tmp_path: Path) -> None:
    """nDCG by relevance and nDCG by quality, on the page of a run and under a leaderboard; a measure of one file of truths says nothing more."""
    of = records.task()
    quality = Measure("quality", "nDCG@10", "quality.qrels")
    of = replace(
        of,
        measures={**of.measures, "quality": quality},
        tables={"main": replace(of.tables["main"], measures=("ndcg", "quality", "rr"))},
    )
    world = World.make(tmp_path)
    attempt = world.attempt(world.register("alpha", "x"), dataset="dev")
    world.evaluation(attempt, {name: {"1": 0.5} for name in ("ndcg", "quality", "rr")}, by=of)
    text = page(
        redact_run(run_detail.detail(world.store, attempt.run_id), ORGANISER, of.datasets["dev"]), task=of
    )
    told = [line for line in Read(text).text.splitlines() if "gain of the relevant" in line]
    assert [line.rpartition(" by ")[2] for line in told] == ["qrels.txt (0 to 1)", "quality.qrels (0 to 1)"]
    columns = build(world.store, of, "main", ORGANISER).columns
    assert [one.says.partition(" by q")[2] for one in columns] == ["rels.txt", "uality.qrels", ""]


def test_resources_stand_over_their_limits_and_names_of_files_stay_words(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    attempt = world.attempt(world.register("alpha", "x"))
    found = run_detail.detail(world.store, attempt.run_id)
    data = dict(redact_run(found, ORGANISER, records.task().datasets["dev"]))
    data["output"] = {
        "file": "x",
        "files": [{"name": HOSTILE, "size": 7, "sha256": "e" * 64}],
        "refused": [],
        "bytes": 7,
        "full": False,
    }
    data["limits"] = {"wall_clock": 60.0, "memory": 2**30, "output": 4}
    data["resources"] = {
        "wall_seconds": 30.0,
        "cpu_seconds": 20.0,
        "memory_peak": 2**29,
        "memory_source": "exact",
    }
    view = received(
        {**data, "command": HOSTILE, "run_tag": HOSTILE, "image": HOSTILE, "description": HOSTILE}, "alpha"
    )
    used = {one.name: (one.value, one.limit, one.words) for one in resources(view)}
    assert used["time"] == (30.0, 60.0, "30.0 s of 1 min") and used["memory"] == (
        2**29,
        2**30,
        "512 MiB of 1 GiB",
    )
    assert used["output"] == (7, 4, "7 B of 4 B") and used["processor"] == (20.0, None, "20.0 s")
    text = page(view)
    read = Read(text)
    assert 'width="50.0"' in text and 'class="bar over"' in text and "e" * 64 in read.text
    assert "<script>document.title='pwned'</script>" in read.text and not read.tags & {
        "script",
        "img",
        "style",
    } - {"style"}
    steps = {"time": "under 1 min", "memory": "under 256 MiB", "size": "under 64 KiB"}
    coarse = received(
        {**data, "steps": steps, "output": None, "resources": dict.fromkeys(data["resources"])}, "alpha"
    )
    assert [one.words for one in resources(coarse)] == [
        "under 1 min of 1 min",
        "under 256 MiB of 1 GiB",
        "within 4 B",
    ]
    for verdict, time in (
        ("ok", "within 30 s"),
        ("memory-limit", "within 30 s"),
        ("time-limit", "all of 30 s"),
    ):
        ended = {
            **data,
            "limits": {"wall_clock": 30.0},
            "verdict": {"name": verdict, "says": "", "detail": ""},
        }
        ended |= {"steps": steps, "output": None, "resources": dict.fromkeys(data["resources"])}
        assert resources(received(ended, "alpha"))[0].words == time
    assert 'class="bar' not in page(coarse)
    assert resources(received({**data, "how": "uploaded"}, "alpha")) == []
