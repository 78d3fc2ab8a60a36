"""How many bits of a run on a blinded dataset come out: counted from the fields, and by runs that differ in everything.

A software that has read the hidden inputs chooses whatever is measured of it. What its team and everybody else see may depend on
no more than 16 bits of that, whatever door they ask at. Scores that the organiser opened are a channel of their own
(docs/explanation/threat-model.md): here they are the same in all runs.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evaluator.findings import CODES
from runner.api import open_home
from runner.cli import render
from runner.model.errors import RunnerError
from runner.model.outcome import AttemptFacts, EvaluationFacts, Outcome, derive
from runner.model.task import Task
from runner.model.verdict import TABLE
from runner.records.store import charges, run_detail
from runner.views import coarse
from runner.views.audience import ORGANISER, PUBLIC, Audience, check_log, may_export
from runner.views.leaderboard.export import FORMATS, export, to_prototext
from runner.views.leaderboard.formats.trec import to_trec
from runner.views.leaderboard.table import build
from runner.views.logs import log_lines
from runner.views.redact import RunView, details, redact_row, redact_run
from runner.views.show.contents import inside
from runner.views.show.page import page
from schemas.details import Detail, noted, read
from tests.worlds import records
from tests.worlds.records import World, write_project

BITS = 16
DAY = 24 * 3600
ALPHA, BETA = Audience("team", "alpha"), Audience("team", "beta")
MIB, GIB = 2**20, 2**30


# --- counted from the fields ---------------------------------------------------------------------------------


def outcomes() -> Iterator[Outcome]:
    """Every outcome that a run can have, whatever its software, our side and people do."""
    evaluations = [
        (),
        *(tuple(EvaluationFacts(k, "error", final) for k in range(1, n + 1)) for n in (1, 2, 3) for final in (True, False)),
        *((EvaluationFacts(1, status, True, "", errors), *more) for status in ("valid", "invalid") for errors in (0, 1, 77)
          for more in ((), (EvaluationFacts(2, "error"),))),
    ]  # fmt: skip
    attempts: list[list[AttemptFacts]] = [[]]
    for verdict in TABLE:
        for detail in (None, Detail("exit-code", code=17), read("", "E402: x")):
            for n in (1, 2, 3):
                attempts += [
                    [AttemptFacts(k, verdict, detail, k, e) for k in range(1, n + 1)] for e in evaluations
                ]
    for facts in attempts:
        for running in (False, True):
            for cancelled in (None, 99):
                for withdrawn in (None, "2026-01-05T12:00:00Z"):
                    yield derive(facts, running=running, cancelled_seq=cancelled, withdrawn=withdrawn)
                yield derive(facts, running=running, withdrawn="2026-01-05T12:00:00Z", uncharged=True)


def told(outcome: Outcome) -> tuple[Any, ...]:
    """What everybody hears of an outcome."""
    return tuple(
        getattr(outcome, k)
        for k in ("name", "says", "next", "blame", "ranked", "costs_quota", "verdict", "listed")
    )


def test_the_fields_have_at_most_sixteen_bits() -> None:
    """The product of what every field can be, for each outcome. The day is that of the first start, which is the organiser's."""
    known = {told(outcome): outcome for outcome in outcomes()}
    # A code has one severity in a task: an error's makes a run invalid, another one's leaves it valid.
    codes = len(CODES) * len(coarse.AMOUNTS)
    judged = [outcome for outcome in known.values() if outcome.name in ("scored", "invalid")]
    assert sorted((o.name, o.old) for o in judged) == [
        (n, o) for n in ("invalid", "scored") for o in (False, True)
    ]
    again = 2  # whether evaluating it again failed: said of whatever was told before
    steps = len(coarse.TIME) * len(coarse.MEMORY)
    count = (codes + len(judged) // again) * again * len(coarse.SIZE) * steps
    for outcome in known.values():
        if outcome not in judged:
            count += steps if outcome.name in coarse.SETTLED else 1
    assert len(known) > len(TABLE) and len(CODES) > 100
    assert math.log2(count) <= BITS, f"{math.log2(count):.2f} bits"
    # Four steps each, and a sentence of a fixed number of values.
    assert {len(steps) for steps in (coarse.TIME, coarse.MEMORY, coarse.SIZE)} == {4}
    for outcome in known.values():
        assert not any(character.isdigit() for character in outcome.says + outcome.next), outcome


# --- counted by runs that differ in everything -----------------------------------------------------------------


@dataclass(frozen=True)
class Class:
    """What may be told of a run. All runs of one class must look the same."""

    verdict: str = "ok"
    status: str = "valid"
    code: str = ""  # the gravest
    severity: str = ""
    many: bool = False
    time: int = 0
    memory: int = 0
    size: int = 0
    again: bool = False  # it was evaluated again, and that failed


TIMES = ((0.01, 59), (60, 599), (600, 3599), (3600, 80_000))
MEMORIES = ((1, 255 * MIB), (256 * MIB, GIB - 1), (GIB, 4 * GIB - 1), (4 * GIB, 60 * GIB))
SIZES = ((21, 60_000), (65_536, 1_000_000), (MIB, 2 * MIB), (16 * MIB, 16 * MIB + 999))
# Code, severity, and codes that are less grave or come later: they may be there as often as they like.
GRAVEST = {"F012": "error", "F217": "defect", "F018": "warning"}
LESSER = {
    "F012": {"F013": "error", "F202": "defect", "F018": "warning"},
    "F217": {"F232": "defect", "F016": "warning"},
    "F018": {"F021": "warning", "F023": "warning"},
    "": {},
}
SCORES = {"ndcg": {"q1": 0.5, "q2": 1.0, "q3": 0.25}, "rr": {"q1": 0.5, "q2": 1.0, "q3": 0.25}}
CLASSES = [
    *(Class(time=t) for t in range(4)),
    *(Class(memory=m) for m in range(1, 4)),
    *(Class(size=s) for s in range(1, 3)),  # the largest file takes too long to write again and again
    *(Class(status=s, code=c, severity=GRAVEST[c], many=m) for m in (False, True) for s, c in (("invalid", "F012"), ("valid", "F217"), ("valid", "F018"))),
    Class(status="invalid", code="F012", severity="error", many=True, time=2, memory=3, size=1),
    *(Class(verdict=v) for v in sorted(TABLE) if v != "ok"),
    Class(verdict="run-error", time=3, memory=2),
    Class(again=True),
    Class(status="invalid", code="F012", severity="error", again=True),
    Class(status="error"),
    Class(status="none"),
]  # fmt: skip


def hostile(world: World, kind: Class, dice: random.Random) -> str:
    """A run of a class that spells a message in everything that its class leaves free. Returns its id."""
    submission = world.register("alpha", "x")
    word = "".join(dice.choices("abcdefghijklmnop", k=12))
    # Hours: some runs wait, some are tried again after a failure of ours, even after midnight. The day of the first
    # start is the same.
    world.clock.at += timedelta(seconds=dice.randrange(6 * 3600))
    for _ in range(dice.randrange(3) if kind.verdict not in ("platform-error", "cancelled") else 0):
        world.attempt(submission, verdict="platform-error", detail=f"E301: {word}")
        world.clock.at += timedelta(hours=dice.randrange(30))
    low, high = SIZES[kind.size]
    text = f"1 Q0 {word} 1 1.0 x\n".ljust(dice.randrange(low, high), "\n")
    some = dice.randrange(5)
    ended = (Detail("exit-code", code=dice.randrange(1, 256)), Detail("signal", signal=dice.randrange(1, 64)))
    timeouts = {"timeout": dice.randrange(99)}
    failed = Detail("answers-failed", failed=dice.randrange(99), turns=99, classes=timeouts)
    server = Detail("server-ended", code=dice.randrange(255))
    warnings: list[Detail | str] = [failed, server, Detail("log-cut"), word]
    attempt = world.attempt(
        submission,
        verdict=kind.verdict,
        detail=dice.choice((*ended, word)),
        warnings=warnings[:some],
        refused=[(word, "a link")] * dice.randrange(4),
        log=word.encode() * dice.randrange(1, 300),
        wall=dice.uniform(*TIMES[kind.time]),
        memory=dice.randint(*MEMORIES[kind.memory]),
        exit_code=dice.randrange(256),
        output={"run.txt": text, **({f"{word}.txt": word} if dice.random() < 0.5 else {})},
    )
    if kind.verdict == "ok" and kind.status != "none":
        world.clock.at += timedelta(seconds=dice.randrange(900))
        evaluation(world, attempt, kind, dice, word)
    if kind.again:
        world.evaluation(attempt, {}, status="error", message=word)
    return f"{submission}.test"


def evaluation(world: World, attempt: Any, kind: Class, dice: random.Random, word: str) -> None:
    codes: dict[str, tuple[str, int]] = {}
    if kind.code:
        most = 10**6 if kind.many else coarse.FEW
        codes[kind.code] = (kind.severity, dice.randrange(coarse.FEW + 1 if kind.many else 1, most + 1))
    for code, severity in LESSER[kind.code].items():
        if dice.random() < 0.7:
            codes[code] = (severity, dice.randrange(1, 10**6))
    found = [
        {"code": c, "severity": s, "file": "run.txt", "line": n, "message": f"unknown {word}", "fix": word}
        for n, (c, (s, _)) in enumerate(codes.items(), 1)
    ]
    world.evaluation(
        attempt,
        SCORES if kind.status == "valid" else {},
        status=kind.status,
        codes=codes,
        findings=found,
        message=word,
        more={
            "run_tag": word,
            "notes": [str(note := Detail("turns-unanswered", failed=dice.randrange(999), turns=1234)), word],
            "note_details": [note.as_dict(), {"kind": word}],
            "judge": {
                "name": "rules",
                **noted(Detail("majority", annotators=dice.randrange(9999))),
                "reliability": {"accuracy": 0.75},
            },
        }
        if kind.status == "valid"
        else None,
    )


def doors(world: World, task: Task, id: str, folder: Path) -> dict[str, str]:
    """What team and public get at every door, as text; what they are refused too."""
    found: dict[str, str] = {}
    place = task.datasets["test"]
    detail = run_detail.detail(world.store, id, [task])
    for audience in (ALPHA, BETA, PUBLIC):

        def ask(name: str, door: Callable[[], Any], audience: Audience = audience) -> None:
            try:
                said = door()
                text = said if isinstance(said, str) else json.dumps(said, default=dict, sort_keys=True)
            except RunnerError as error:
                text = f"{error.code} {error.what} {error.why} {error.fix}"
            found[f"{audience} {name}"] = text

        within, view = None, None
        with contextlib.suppress(RunnerError):
            within = inside(detail, replace(task, kind="debate"), audience, place)
            view = redact_run(detail, audience, place)
        row = redact_row(detail.run, audience, place)
        ask("row", lambda row=row: None if row is None else dict(row))
        ask("show", lambda audience=audience: dict(redact_run(detail, audience, place)))
        ask("reports", lambda audience=audience: inside(detail, replace(task, kind="report"), audience, place).data())  # fmt: skip
        if view is not None and within is not None:
            ask("debates", within.data)
            ask("debate lines", lambda w=within: "\n".join(w.lines()))
            ask("page", lambda w=within, v=view: page(v, w.contents))
            ask("prototext", lambda v=view: to_prototext(v))
        for stream in ("stdout", "stderr"):
            ask(stream, lambda a=audience, s=stream: list(log_lines(detail, a, place, s)))
        ask("log", lambda a=audience: check_log(detail, a, place))
        ask("export", lambda a=audience: may_export(detail, a, place))
        ask("details", lambda a=audience: list(details(detail, a, place)))
        for form in FORMATS:
            ask(f"board {form}", lambda a=audience, f=form: export(build(world.store, task, None, a), f))
        for form in ("ir_measures", "tot", "trec_eval", "jsonl"):
            ask(f"board {form}", lambda a=audience, f=form: to_trec(build(world.store, task, None, a), f, None))  # fmt: skip
    use = charges.quota(world.store, task, "alpha")
    found["receipt"] = f"{use.limit} {use.used} {use.open} {use.left}"
    return found


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[RunView], str]:
    """What ``runner show`` prints of a view."""

    def shown(view: RunView) -> str:
        capsys.readouterr()
        render.show(view)
        return capsys.readouterr().out

    return shown


@pytest.mark.slow
@pytest.mark.parametrize("scores", ["organiser", "public"])
def test_all_runs_of_a_class_look_the_same_at_every_door(
    tmp_path: Path, printed: Callable[[RunView], str], scores: str
) -> None:
    task = records.task(scores=scores, baseline=None)
    seen: dict[Class, dict[str, str]] = {}
    distinct: dict[str, set[str]] = {}
    organisers = set()
    runs = 0
    for kind in CLASSES if scores == "public" else CLASSES[::5]:
        for n in range(4):
            dice = random.Random(f"{kind} {n}")
            runs += 1
            world = World.make(tmp_path / str(runs))
            id = hostile(world, kind, dice)
            at_doors = doors(world, task, id, tmp_path)
            detail = run_detail.detail(world.store, id, [task])
            at_doors["printed"] = printed(redact_run(detail, ALPHA, task.datasets["test"]))
            organisers.add(
                json.dumps(dict(redact_run(detail, ORGANISER, task.datasets["test"])), default=dict)
            )
            world.store.close()
            first = seen.setdefault(kind, at_doors)
            assert first.keys() == at_doors.keys()
            for name, text in at_doors.items():
                assert text == first[name], (kind, name)
                distinct.setdefault(name, set()).add(text)
    classes = len(seen)
    assert len(organisers) == runs, "the runs do not differ: this test could not fail"
    for name, texts in distinct.items():
        assert math.log2(len(texts)) <= BITS and len(texts) <= classes, name
    assert len({json.dumps(at_doors) for at_doors in seen.values()}) <= classes
    # The team is told what it may be told: classes look different, but for failures of ours.
    assert len(distinct["team:alpha show"]) > classes * 0.8
    if scores == "public":
        assert len(distinct[f"{PUBLIC} board csv"]) >= 10


# --- the same at the command line --------------------------------------------------------------------------------


COMMANDS = [
    ["runs", "--json"],
    ["runs"],
    ["runs", "--outcome", "scored"],
    *(["show", "RUN", *more] for more in ([], ["--json"], ["--html", "PAGE"], ["--topic", "q1"])),
    *(["show", f"RUN#{n}"] for n in (1, 2, 9)),
    *(["logs", "RUN", *more] for more in ([], ["--follow"], ["--evaluator"], ["--sidecar", "driver"])),
    ["export", "RUN", "EXPORT"],
    *(["leaderboard", "toy", "--format", form] for form in ("table", "json", "csv", "html")),
    ["leaderboard", "toy", "--how", "executed"],
]


def at_the_command_line(folder: Path, kind: Class, dice: random.Random, team: str) -> list[tuple[Any, ...]]:
    from runner.cli.app import app
    from runner.cli.main import load_commands

    world = World.make(folder)
    write_project(folder)
    run = hostile(world, kind, dice)
    world.store.close()
    load_commands()
    found: list[tuple[Any, ...]] = []
    for command in COMMANDS:
        places = {"RUN": run, "PAGE": str(folder / "page.html"), "EXPORT": str(folder / "out")}
        words = [re.sub("RUN|PAGE|EXPORT", lambda found: places[found[0]], word) for word in command]
        where = {"RUNNER_ROOT": str(folder), "RUNNER_HOME": str(world.config.home)}
        result = CliRunner().invoke(app, [*words, "--as", team], env=where)
        error = result.exception if isinstance(result.exception, RunnerError) else None
        said = (error.code, error.what, error.why, error.fix) if error else (repr(result.exception),)
        pages = sorted(path.read_text() for path in folder.glob("page.html"))
        out = f"{result.output}{result.stderr}".replace(str(folder), "FOLDER")
        found.append((*command, result.exit_code, *said, out, *pages))
    home = open_home(world.config.home, team, root=folder)
    frames = (home.leaderboard("toy"), home.runs(), home.topic_scores(), home.findings())
    return found + [("api", n, frame.to_csv(), json.dumps(frame.attrs)) for n, frame in enumerate(frames)]


@pytest.mark.slow
@pytest.mark.parametrize("team", ["team:alpha", "public"])
@pytest.mark.parametrize("kind", [CLASSES[10], CLASSES[-3]], ids=["invalid", "run-error"])
def test_commands_print_the_same_for_all_runs_of_a_class(tmp_path: Path, kind: Class, team: str) -> None:
    first, *others = [at_the_command_line(tmp_path / str(n), kind, random.Random(n), team) for n in range(3)]
    for other in others:
        for one, two in zip(first, other, strict=True):
            assert one == two
    if team == "team:alpha":
        (shown,) = [said for said in first if said[:3] == ("show", "RUN", 0)]
        assert "under" in shown[-1] and "alpha.x" in shown[-1]
        assert all("E103" in said for said in first if said[0] in ("logs", "export"))
