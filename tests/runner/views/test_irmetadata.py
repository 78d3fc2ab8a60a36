"""What a team says of its experiment (ir_metadata) is kept and shown; a run is exported with what was measured."""

from __future__ import annotations

import gzip
import os
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.findings import Log
from evaluator.formats.ranked import Rules
from evaluator.formats.trec import scan
from runner.engines.fake import FakeEngine
from runner.execution.hardware import Energy, machine_of
from runner.execution.job import Job
from runner.execution.trials.software import command_line
from runner.model.task import Model
from runner.records.store.run_detail import RunDetail, detail
from runner.views.audience import ORGANISER, Audience
from runner.views.export import export_run
from runner.views.redact import RunView, received, redact_run
from runner.views.show.page import page
from runner.views.show.presentation import present
from schemas import load_yaml
from tests.worlds import records
from tests.worlds.records import World

SAYS = """\
tag: mine
actor:
  team: Somebody else
method:
  automatic: perhaps
  retrieval:
    - name: bm25
    - name: rm3
platform:
  hardware:
    cpu: {model: A quantum computer}
  software:
    libraries: [numpy, "evil\\e[31m"]
research goal:
  description: To see "<b>what</b>" works
"""
TEAM = "actor.team: Somebody else"
HEADER = "".join(f"# {line}\n" for line in ["ir_metadata.start", *SAYS.splitlines(), "ir_metadata.end"])
LINES = "1 Q0 d1 1 2.5 mine\n"


def found(world: World, output: dict[str, str], dataset: str = "dev", **more: object) -> RunDetail:
    submission = world.register("alpha", "x", **more)
    attempt = world.attempt(submission, dataset=dataset, output=output)
    world.evaluation(attempt, {"ndcg": {"1": 0.5}, "rr": {"1": 0.5}})
    return detail(world.store, f"{submission}.{dataset}", [records.task()])


def view(one: RunDetail, audience: Audience = ORGANISER) -> RunView:
    return redact_run(one, audience, records.task().datasets[one.run.dataset])


@pytest.mark.parametrize(
    "output",
    [
        {"run.txt": HEADER + LINES},
        {"run.txt": LINES, "ir-metadata.yml": SAYS},
        {"run.txt": LINES, "ir-metadata.yml": f"ir_metadata.start\n{SAYS}ir_metadata.end\n"},
    ],
)
def test_what_a_team_says_is_shown_with_remarks(world: World, output: dict[str, str]) -> None:
    said = view(found(world, output))["ir_metadata"]
    assert said["values"]["platform.hardware.cpu.model"] == "A quantum computer"
    assert said["values"]["method.retrieval.2.name"] == "rm3"
    assert said["values"]["platform.software.libraries"] == "numpy, evil?[31m"
    assert len(said["remarks"]) == 2 and said["remarks"][1].split()[0] == "method.automatic"
    shown = present(view(found_again(world))).facts["ir_metadata"]
    assert TEAM in shown and said["remarks"][1] in shown
    html = page(view(found_again(world)))
    assert "A quantum computer" in html and "<b>what</b>" not in html


def found_again(world: World) -> RunDetail:
    (run,) = [run for _, run in world.archive.runs()]
    return detail(world.store, run, [records.task()])


def test_beside_a_submission_it_is_kept_too_and_nothing_said_is_nothing_shown(world: World) -> None:
    one = found(world, {"run.txt": LINES})
    assert "ir_metadata" not in view(one) and present(view(one)).facts["ir_metadata"] == ""
    place = world.config.registered / one.run.submission.id / "bundle"
    place.mkdir(parents=True)
    (place / "ir-metadata.yml").write_text(SAYS)
    assert view(one)["ir_metadata"]["values"]["tag"] == "mine"


@pytest.mark.parametrize("text", ["a: [", "- 1\n", "x" * 70_000, "\x00\xff"])
def test_what_cannot_be_read_is_said_and_stops_nothing(world: World, text: str) -> None:
    said = view(found(world, {"run.txt": LINES, "ir-metadata.yml": text}))["ir_metadata"]
    assert said["values"] == {} and len(said["remarks"]) == 1


def test_on_hidden_data_a_team_does_not_see_what_its_software_wrote(world: World) -> None:
    one = found(world, {"run.txt": HEADER + LINES}, dataset="test")
    assert "ir_metadata" not in view(one, Audience("team", "alpha"))
    assert "ir_metadata" in view(one)


def test_the_evaluator_reads_the_same_header(tmp_path: Path) -> None:
    for name, data in (("run.txt", HEADER.encode()), ("run.txt.gz", gzip.compress(HEADER.encode()))):
        (tmp_path / name).write_bytes(
            data + (LINES.encode() if name == "run.txt" else gzip.compress(LINES.encode()))
        )
        log = Log(name, None)
        assert scan(tmp_path / name, Rules(), log).tag == b"mine" and not log.counts


def test_what_was_measured_is_exported_over_what_was_said(world: World, tmp_path: Path) -> None:
    source = {"remote": "https://example.org/x", "commit": "a" * 40, "dirty": True}
    one = found(world, {"run.txt": HEADER + LINES}, source=source)
    machine = {"architecture": "amd64", "cores": 8, "memory": 16 * 10**9, "cpu": "A real one"}
    one = replace(one, record={**one.record, "machine": {**machine, "kernel": "6.1", "energy": 12.6}})
    export_run(one, view(one), tmp_path / "out")
    text = (tmp_path / "out" / "ir-metadata.yml").read_text()
    document = load_yaml(text, "ir-metadata.yml")
    assert document.problems == []
    data = document.data
    cpu = {"model": "A real one", "architecture": "amd64", "number of cores": 8}
    used = {"time": data["resources"]["cpu"]["time"], "energy used system": "13 J"}
    assert data["actor"]["team"] == "alpha" and data["tag"] == "x"
    assert data["platform"]["hardware"] == {"cpu": cpu, "ram": "16 GB"}
    assert data["platform"]["software"]["libraries"][0] == "numpy" and data["research goal"]
    assert [*data["implementation"]["source"].values()] == [*source.values()]
    assert data["implementation"]["container image"].startswith("sha256:")
    assert data["method"]["automatic"] is True
    assert data["resources"]["runtime"] == {"wallclock": "1500 ms"}
    assert data["resources"]["cpu"] == used and data["resources"]["ram"] == {"used process": "52429 KB"}
    plain = found_again(world)
    export_run(plain, view(plain), tmp_path / "plain")
    assert "energy" not in (tmp_path / "plain" / "ir-metadata.yml").read_text()


def test_where_files_come_from_is_shown_to_the_team_and_the_organiser(world: World) -> None:
    source = {"remote": "https://example.org/x", "commit": "a" * 40, "dirty": True}
    one = found(world, {"run.txt": LINES}, dataset="test", source=source)
    for audience in (ORGANISER, Audience("team", "alpha")):
        assert view(one, audience)["source"] == source
        fact = present(view(one, audience)).facts["source"]
        assert source["remote"] in fact and "a" * 12 in fact and "a" * 13 not in fact
        clean = {**view(one, audience), "source": {**source, "dirty": False}}
        assert present(received(clean, "alpha")).facts["source"] != fact
        assert fact in page(view(one, audience))
    bare = found(World.make(world.config.root / "other"), {"run.txt": LINES})
    assert "source" not in view(bare) and present(view(bare)).facts["source"] == ""


def test_energy_is_what_the_counters_moved_by_also_past_their_end(tmp_path: Path) -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    engine = FakeEngine({})
    here = replace(engine.info(), cpus=os.cpu_count() or 1, memory=memory)
    for name, value in (("intel-rapl:0", 900), ("intel-rapl:1", 100), ("intel-rapl:0:0", 5)):
        place = tmp_path / name
        place.mkdir()
        (place / "energy_uj").write_text(f"{value}\n")
        (place / "max_energy_range_uj").write_text("1000\n")
    meter = Energy.now(here, tmp_path)
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("200\n")
    (tmp_path / "intel-rapl:1" / "energy_uj").write_text("150\n")
    assert meter.used() == pytest.approx(350e-6)
    (tmp_path / "intel-rapl:1" / "energy_uj").unlink()
    assert meter.used() is None and Energy.now(here, tmp_path).used() is None
    assert Energy.now(here, tmp_path / "nothing").used() is None
    away = replace(here, cpus=here.cpus + 1)
    assert Energy.now(away, tmp_path).used() is None
    assert machine_of(away)["cpu"] is None and machine_of(here)["kernel"]
    engine.close()


def test_prototext_has_the_measures_as_the_task_writes_them(world: World, tmp_path: Path) -> None:
    submission = world.scored("a", "x", mean=0.5)
    task = records.task()
    scored = detail(world.store, f"{submission}.test", [task])
    names = {name: measure.measure for name, measure in task.measures.items()}
    written = export_run(scored, view(scored), tmp_path / "out", names)
    assert written == sum(1 for path in (tmp_path / "out").rglob("*") if path.is_file())
    text = (tmp_path / "out" / "evaluation.prototext").read_text()
    assert 'key: "nDCG@10"' in text and 'key: "ndcg"' not in text


def test_the_command_line_can_be_pasted() -> None:
    task = records.task()
    job = Job(
        run_id="a.x.00000000.dev",
        submission_id="a.x.00000000",
        team="a",
        software="x",
        task=task,
        dataset=task.datasets["dev"],
        scenario="default",
        workflow="batch",
        image="sha256:1234",
        command=("sh", "-c", "it's $HOME"),
        env={"outputDir": "/tira-data/output"},
        limits=task.limits,
        models=(Model(Path("/models/m"), "/model", "sha256:0"),),
    )
    line = command_line(job)
    words = shlex.split(line)
    assert words[:6] == ["mkdir", "-p", "-m", "777", "output", "&&"]
    assert "$PWD/output:/tira-data/output" in words
    assert "type=bind,src=/models/m,dst=/model,readonly" in words
    assert words[-4:] == ["--entrypoint=sh", "sha256:1234", "-c", "it's $HOME"]
    assert command_line(replace(job, image=None)) == ""
