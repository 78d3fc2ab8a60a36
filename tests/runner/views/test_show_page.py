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

from runner.kinds.debate import presenter as debating
from runner.kinds.report import presenter as reporting
from runner.model.errors import RunnerError
from runner.model.task import Measure, Task
from runner.records.archive import Attempt
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
from tests.worlds.commands import Answer, At
from tests.worlds.definitions import definition
from tests.worlds.records import World
from tests.worlds.shown import HOSTILE, INDEX, debate, debated, judged_line, record, reported, task

ALPHA = Audience("team", "alpha")
LOGGED = "CANARY of search"  # see tests/worlds/shown.py
AMOUNT = "[0-9]+ (?:min|s|[MG]iB|B)"
SCRIPT = "<script>document.title='pwned'</script>"
VOID = {"meta", "br", "wbr", "input"}


class Read(HTMLParser):
    """Check that elements are closed in order; keep tags, attributes, text and phrases."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.phrases: list[str] = []
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
        if data.strip() and not {"style", "script"} & {*self.open}:
            self.phrases.append(" ".join(data.split()))


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
    assert SCRIPT in read.text  # as words
    assert [c for c in text if not c.isprintable() and c != "\n"] == []
    assert policy(STYLE) in [value for _, value in read.attributes]
    assert "unsafe" not in policy(STYLE) and "script-src" not in policy(STYLE)
    assert "default-src 'none'" in policy(STYLE)


def test_words_of_pages_of_debates_and_reports(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """The wording of run pages; hostile texts in them are cut."""
    pages = (debates_page(tmp_path / "debates"), reports_page(tmp_path / "reports"))
    debates, reports = ("\n".join(one[:200] for one in Read(page).phrases) for page in pages)
    golden("run-page.txt", f"{debates}\n\n{reports}")
    assert '<a href="#r1n1">' in pages[1] and '<a href="#r1s1">' in pages[1]  # sentence to nugget, and back


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
    assert '<li class="good">✓ <bdi dir="auto">quality (human)' in text
    assert '<li class="bad">✗ <bdi dir="auto">quality (human)' in text


def test_a_report_stands_below_its_request(tmp_path: Path) -> None:
    found = reported(World.make(tmp_path), [judged_line()])
    place = replace(records.task().datasets["dev"], inputs=tmp_path, topics="requests.jsonl")
    rows = [{"request_id": "t1", "title": "Flight", "problem_statement": f"Who? {HOSTILE}"}, 5, {"x": 1}]
    (tmp_path / "requests.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n{broken\n")
    reports = reporting.read(found, None, ORGANISER, place)
    told = Read(page(redact_run(found, ORGANISER, place), reports)).text
    assert reports is not None
    assert all(words in told for words in ("t1", "Flight", "Who? <script>"))
    assert any("Flight: Who? " in line for line in reports.lines({1}))


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
    assert f" {len(shown)} of 300 " in text and "--topic N " in text
    assert {*re.findall(r'href="#d(\d+)"', text)} == {*shown} and "Claim 300" in text  # named, not linked
    lines = list(run.lines())
    assert len(lines) < 300 and any(" 100 " in line and "--json" in line for line in lines)
    one = page(view, run.contents, {7})
    assert re.findall(r'<section class="one" id="d(\d+)"', one) == ["7"] and "300" in one


def test_a_blinded_page_for_a_team_has_steps_only(tmp_path: Path) -> None:
    text = debates_page(tmp_path, "test", ALPHA)
    assert "zebra" not in text and "timeout" not in text
    assert "under 1 min" in text and "under 256 MiB" in text and "under 64 KiB" in text
    assert "zebra" in debates_page(tmp_path / "again", "test")


def test_any_run_has_a_plain_page(world: World) -> None:
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
    assert list(log_lines(found, ORGANISER, place, sidecar="search")) == [f"{LOGGED} \\x1b[2J"]
    for name in ("nothing", "stdout", "../lock", "stdout.log", ""):
        with pytest.raises(RunnerError) as caught:
            log_lines(found, ORGANISER, place, sidecar=name)
        assert caught.value.code == "E102" and "driver" in caught.value.fix
    with pytest.raises(RunnerError) as caught:
        log_lines(found, ALPHA, place, sidecar="search")
    assert caught.value.code == "E103"
    assert "CANARY" not in json.dumps(dict(redact_run(found, ALPHA, place)))
    inside = redact_run(found, ORGANISER, place)["inside"]
    assert inside["sidecar_logs"] == ["driver.json", "driver", "search"]


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
def cli(tmp_path: Path) -> Callable[..., Answer]:
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
    (run,) = [run for _, run in world.archive.runs()]
    return lambda command, *rest: At(tmp_path, world).run(command, run, *rest)


def test_show_on_the_command_line(cli: Callable[..., Answer], tmp_path: Path) -> None:
    out = cli("show", "--topic", "2")
    assert out.exit_code == 0 and "system  | second" in out.out and "\x1b" not in out.out
    told = json.loads(cli("show", "--json", "--topic", "c2").out)
    assert [d["id"] for d in told["debates"]["debates"]] == ["c2"]
    blinded = json.loads(cli("show", "--json", "--as", "team:alpha").out)
    assert blinded["debates"]["debates"] is None
    target = tmp_path / "run.html"
    assert cli("show", "--html", str(target)).exit_code == 0
    assert "second" in Read(target.read_text("utf-8")).text
    assert target.stat().st_mode & 0o077 == 0  # it may hold blinded claims
    assert cli("show", "--html", str(target), "--as", "team:alpha").exit_code == 0
    assert "second" not in target.read_text("utf-8")
    assert not list(tmp_path.glob(".run.html*"))


def test_mistakes_on_the_command_line(cli: Callable[..., Answer], tmp_path: Path) -> None:
    for arguments, code in (
        (("--topic", "9"), "E102"),
        (("--topic", "c1", "--as", "team:alpha"), "E103"),
        (("--html", str(tmp_path / "no" / "where.html")), "E101"),
        (("--html", str(tmp_path)), "E101"),
    ):
        assert cli("show", *arguments).error.code == code, arguments
    assert LOGGED in cli("logs", "--sidecar", "search").out
    assert cli("logs", "--sidecar", "search", "--as", "team:alpha").error.code == "E103"


def test_a_run_is_released_and_closed_on_the_command_line(cli: Callable[..., Answer], tmp_path: Path) -> None:
    def shown() -> dict[str, Any]:
        told: dict[str, Any] = json.loads(cli("show", "--json", "--as", "team:alpha").out)
        return told

    assert shown()["log"] == {} and shown()["debates"]["counts"] == {}
    assert cli("logs", "--as", "team:alpha").error.code == "E103"
    for words in (("--undo",), ("--reason", "a\x1b[31mlook"), ()):  # the first and the last change nothing
        assert cli("release", *words).exit_code == 0
    assert shown()["log"]["stdout"] and shown()["debates"]["counts"]["debates"] == 2
    assert shown()["debates"]["debates"] is None, "transcripts hold the claims"
    assert cli("logs", "--as", "team:alpha").exit_code == 0
    assert cli("export", str(tmp_path / "out"), "--as", "team:alpha").error.code == "E103"
    assert cli("release", "--undo").exit_code == 0
    assert shown()["log"] == {} and shown()["debates"]["counts"] == {}
    events = [json.loads(line) for line in next(tmp_path.rglob("events.jsonl")).read_text().splitlines()]
    changes = [(e["type"], e["actor"]) for e in events if e["type"] in ("run-released", "run-closed")]
    assert changes == [("run-released", "organiser"), ("run-closed", "organiser")]
    assert events[-2]["data"]["reason"] == "a\\x1b[31mlook" and events[-2]["data"]["attempt"] == 1


def test_the_result_comes_first_and_commands_to_repeat_it_come_last(tmp_path: Path) -> None:
    """What is in the run comes before the scores, resources and files after them."""
    text = debates_page(tmp_path)
    heads = re.findall(r'<h2 id="([a-z]+)"', text)
    assert heads == ["scores", "resources", "again", "files"]
    assert text.index('class="badge good"') < text.index(">Debates<") < text.index('<h2 id="scores"')
    assert "runner verify " in text and "runner export " in text
    other = debates_page(tmp_path / "team", audience=ALPHA)
    assert "runner verify" not in other, "who has no data directory cannot"
    assert "runner try --team alpha" in Read(other).text and '<h2 id="again"' in other


def page_of(world: World, attempt: Attempt, audience: Audience, of: Task) -> str:
    """The page of a run on the public dataset."""
    found = run_detail.detail(world.store, attempt.run_id)
    return page(redact_run(found, audience, of.datasets["dev"]), task=of)


def test_the_page_of_an_uploaded_run_file_checks_it_by_its_own_name(tmp_path: Path) -> None:
    world, of = World.make(tmp_path), replace(records.task(), output="reports.jsonl")
    pages = []
    uploaded: dict[str, Any] = {"workflow": "upload"}
    for name, more in (("filed", uploaded), ("executed", {})):
        attempt = world.attempt(world.register("alpha", name, **more), dataset="dev")
        pages.append(Read(page_of(world, attempt, ALPHA, of)).text)
    assert ["runner check reports.jsonl" in text for text in pages] == [True, False]
    assert ["runner try" in text for text in pages] == [False, True]


def test_a_failed_run_shows_the_end_of_its_log_first_and_few_findings_open(tmp_path: Path) -> None:
    world, of = World.make(tmp_path), records.task()
    bad = world.register("alpha", "bad")
    text = page_of(
        world, world.attempt(bad, dataset="dev", verdict="run-error", log=b"KeyError: x\n"), ALPHA, of
    )
    assert -1 < text.find("KeyError: x") < text.find('<h2 id="resources"')
    for count, open_ in ((3, True), (30, False)):
        done = world.attempt(world.register("alpha", f"n{count}"), dataset="dev")
        finding = {"code": "F014", "severity": "error", "file": "run.txt", "message": "no"}
        found = [finding | {"line": n + 1} for n in range(count)]
        world.evaluation(done, status="invalid", codes={"F014": ("error", count)}, findings=found)
        text = page_of(world, done, ALPHA, of)
        assert ("<details open><summary>" in text) == open_ and '<h2 id="findings"' in text


def test_the_same_measure_by_other_truths_says_so(world: World) -> None:
    """nDCG by relevance and nDCG by quality, on the page of a run and under a leaderboard; a measure of one file of truths says nothing more."""
    of = records.task()
    quality = Measure("quality", "nDCG@10", "quality.qrels")
    of = replace(
        of,
        measures={**of.measures, "quality": quality},
        tables={"main": replace(of.tables["main"], measures=("ndcg", "quality", "rr"))},
    )
    attempt = world.attempt(world.register("alpha", "x"), dataset="dev")
    world.evaluation(attempt, {name: {"1": 0.5} for name in ("ndcg", "quality", "rr")}, by=of)
    columns = build(world.store, of, "main", ORGANISER).columns
    files = [re.findall(r"[a-z.]*qrels[a-z.]*", column.says) for column in columns]
    assert files == [["qrels.txt"], ["quality.qrels"], []]
    told = Read(page_of(world, attempt, ORGANISER, of)).text
    assert all(column.says in told for column in columns)


def test_resources_stand_over_their_limits_and_names_of_files_stay_words(world: World) -> None:
    attempt = world.attempt(world.register("alpha", "x"))
    found = run_detail.detail(world.store, attempt.run_id)
    data = dict(redact_run(found, ORGANISER, records.task().datasets["dev"]))
    files = [{"name": HOSTILE, "size": 7, "sha256": "e" * 64}]
    data["output"] = {"file": "x", "files": files, "refused": [], "bytes": 7, "full": False}
    data["limits"] = {"wall_clock": 60.0, "memory": 2**30, "output": 4}
    data["resources"] = {
        "wall_seconds": 30.0,
        "cpu_seconds": 20.0,
        "memory_peak": 2**29,
        "memory_source": "exact",
    }
    texts = dict.fromkeys(("command", "run_tag", "image", "description"), HOSTILE)
    view = received({**data, **texts}, "alpha")
    used = {one.name: (one.value, one.limit, one.words) for one in resources(view)}
    assert used["time"] == (30.0, 60.0, "30.0 s of 1 min")
    assert used["memory"] == (2**29, 2**30, "512 MiB of 1 GiB")
    assert used["output"] == (7, 4, "7 B of 4 B") and used["processor"] == (20.0, None, "20.0 s")
    text = page(view)
    read = Read(text)
    assert 'width="50.0"' in text and 'class="bar over"' in text and "e" * 64 in read.text
    assert SCRIPT in read.text and not read.tags & {"script", "img"}
    steps = {"time": "under 1 min", "memory": "under 256 MiB", "size": "under 64 KiB"}
    hidden = {**data, "steps": steps, "output": None, "resources": dict.fromkeys(data["resources"])}
    coarse = received(hidden, "alpha")
    assert [re.findall(AMOUNT, one.words) for one in resources(coarse)] == [
        ["1 min", "1 min"],
        ["256 MiB", "1 GiB"],
        ["4 B"],
    ]
    times = []
    for verdict in ("ok", "memory-limit", "time-limit"):
        ended = {"limits": {"wall_clock": 30.0}, "verdict": {"name": verdict, "says": "", "detail": ""}}
        times.append(resources(received(hidden | ended, "alpha"))[0].words)
    assert times[0] == times[1] != times[2] and all(re.findall(AMOUNT, time) == ["30 s"] for time in times)
    assert 'class="bar' not in page(coarse)
    assert resources(received({**data, "how": "uploaded"}, "alpha")) == []
