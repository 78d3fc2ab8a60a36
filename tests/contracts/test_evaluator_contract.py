"""The evaluator contract is public: an image that was written from its page alone works, and a bad one does no harm."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.engines.base import BuildSpec
from runner.model.container import ImageRef
from tests.leftovers import KEPT
from tests.worlds.mini import Project, Said, call_here

pytestmark = pytest.mark.engine
SHELL = Path(__file__).resolve().parent / "evaluators" / "shell"
BAD = "proctor/test-evaluators"

# Written into the image as /bad/<name>: each breaks the contract in its own way.
RESULT = {
    "schema_version": 1,
    "status": "valid",
    "evaluator": {"name": "bad", "version": "1"},
    "measures": {m: {"value": 0.5, "topics": 3, "covered": 3, "interval": None} for m in ("ndcg_10", "p_10")},
    "findings": {"error": 0, "defect": 0, "warning": 0, "codes": {}},
    "run_tag": None,
    "message": "",
}


def _result(**changes: Any) -> str:
    return json.dumps({**RESULT, **changes})


def _write(result: str = _result(), scores: str = "", findings: str = "") -> str:
    """A program that writes these three files."""
    files = {"result.json": result, "scores.jsonl": scores, "findings.jsonl": findings}
    return f"import os\nfor n, t in {files!r}.items(): open('/out/' + n, 'w').write(t)\n"


def _score(**changes: Any) -> str:
    return json.dumps({"measure": "p_10", "topic": "test-1", "value": 0.5, **changes}) + "\n"


# name -> (program, how often it is tried before the run is held, a value in the reason). What is wrong
# inside the three files is tried without containers in tests/runner/execution/test_evaluation.py.
MISBEHAVING: dict[str, tuple[str, int, str]] = {
    "exit-1": ("import sys; print('cannot'); sys.exit(1)", 3, "evaluator-exit"),
    "nothing": ("", 1, "results-missing"),
    "not-json": (_write("{"), 1, "contract-broken"),
    "nan-score": (_write(scores=_score(value=float("nan"))), 1, "contract-broken"),
    "terminal": (_write(_result(status="error", message="\x1b[2J\x07 \u202e evil")), 1, "evaluator-said"),
    "link": (
        _write() + "os.unlink('/out/result.json'); os.symlink('/truths/qrels.txt', '/out/result.json')",
        1,
        "results-missing",
    ),
    "folder": (
        _write() + "os.unlink('/out/scores.jsonl'); os.mkdir('/out/scores.jsonl')",
        1,
        "results-missing",
    ),
    "too-much": (
        "f = open('/out/scores.jsonl', 'wb')\nwhile True: f.write(bytes(1 << 20))",
        3,
        "evaluator-exit",
    ),
    "time": ("import time; time.sleep(60)", 1, "evaluator-time"),
    "processor": ("while True: pass", 1, "evaluator-processor"),
    "processor-at-the-end": (
        "import time\nwhile time.process_time() < 1.1: pass",
        1,
        "evaluator-processor",
    ),
    "memory": ("x = bytearray(1 << 30); print(len(x))", 1, "evaluator-memory"),
    "network": ("import socket; socket.create_connection(('1.1.1.1', 80), 2)", 3, "evaluator-exit"),
}


@pytest.fixture
def cli(live: Project, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Run ``runner`` in this process."""

    def run(*arguments: str, expect: int | None = 0) -> Said:
        result = call_here(live, arguments, capsys)
        assert expect is None or result.code == expect, result.all
        return result

    return run


@pytest.mark.slow
def test_an_image_written_from_the_documented_contract(
    live: Project, cli: Callable[..., Said], engine: Any, base_image: ImageRef, tmp_path: Path
) -> None:
    """Shell and awk; no line of ours runs in it. It agrees with our evaluator on the same run."""
    context = Path(shutil.copytree(SHELL, tmp_path / "context"))
    spec = BuildSpec(context, args={"BASE_IMAGE": base_image.id}, timeout=120, labels=KEPT)
    image = engine.build(spec)
    measures = [{"id": "p_10", "measure": "P@10", "truths": "qrels.txt"}]
    table = [{"id": "main", "cells": [{"dataset": "test"}], "rank_by": "p_10"}]
    live.write_task("foreign", measures=measures, tables=table, evaluator={"image": image.id})
    live.software("good", task="foreign")
    live.software("bad", "import os; open(os.environ['outputDir'] + '/run.txt', 'w').write('one two\\n' * 3)", task="foreign")  # fmt: skip
    live.software("ours", task="mini")
    cli("submit", "-t", "alpha", "--no-check")
    cli("evaluate", "--all")
    rows = {row["software"]: row for row in cli("runs", "--json").json}
    outcomes = {name: row["outcome"]["name"] for name, row in rows.items()}
    assert outcomes == {"good": "scored", "bad": "invalid", "ours": "scored"}
    good = cli("show", rows["good"]["run"], "--json").json
    ours = cli("show", rows["ours"]["run"], "--json").json
    assert good["scores"]["p_10"]["value"] == pytest.approx(ours["scores"]["p_10"]["value"], abs=1e-9)
    assert good["topic_scores"]["p_10"] == pytest.approx(ours["topic_scores"]["p_10"], abs=1e-9)
    assert not good["inside"]["evaluations"][0]["default_image"]
    bad = cli("show", rows["bad"]["run"], "--json").json
    assert bad["findings"]["counts"]["error"] == 3
    assert [line["line"] for line in bad["findings"]["lines"]] == [1, 2, 3]
    assert "good" in cli("leaderboard", "foreign").out


@pytest.mark.slow
def test_task_check_asks_the_image_for_every_measure(
    live: Project, cli: Callable[..., Said], bad_image: ImageRef
) -> None:
    """One of each provider that our image has, and some that it cannot compute; a stranger's image is asked, too."""
    fine = ["nDCG@10", "SetP", "ERR@5", "alpha_nDCG@5", "Compat", "Accuracy"]
    fine += ["RR(cutoff=5)", "Judged(cutoff=5)"]
    bad = ["SDCG(max_rel=3)@5", "alpha_nDCG@30"]
    tables = [{"id": "main", "cells": [{"dataset": "test"}], "rank_by": "m0"}]

    def write(*texts: str) -> None:
        rows = [{"id": f"m{i}", "measure": text, "truths": "qrels.txt"} for i, text in enumerate(texts)]
        live.write_task(measures=rows, tables=tables)

    write("ERR@5", *bad)

    def computed(expect: int = 0) -> dict[str, bool | None]:
        result = cli("task", "check", "mini", "--json", expect=expect)
        if expect:
            assert all(text in result.err for text in ("E404", "cwl_eval", "tasks/mini/task.yaml:"))
        return {row["measure"]: row["computed"] for row in result.json["measures"]}

    assert computed(expect=4) == {"ERR@5": True, **dict.fromkeys(bad, False)}
    write(*fine)
    assert computed() == dict.fromkeys(fine, True)
    live.write_task(evaluator={"image": bad_image.id})
    (live.root / "tasks/mini/datasets/dev/truths/program.py").write_text("raise SystemExit(1)")
    assert computed() == {"nDCG@10": None, "P@10": None}


@pytest.fixture
def bad_image(build_image: Callable[..., ImageRef]) -> ImageRef:
    """One image whose entrypoint is the program that the dataset's truths name: one image for all cases."""
    return build_image(
        BAD, """ENTRYPOINT ["python3", "-c", "exec(open('/truths/program.py').read())"]""", "CMD []"
    )


@pytest.mark.slow
def test_misbehaving_evaluators_cost_nobody_anything(
    live: Project, cli: Callable[..., Said], bad_image: ImageRef
) -> None:
    limits = {"memory": "64MiB", "wall_clock": "3s", "output": "4MiB", "tmp": "8MiB", "shm": "8MiB"}
    for name, (program, _, _) in MISBEHAVING.items():
        own = {"wall_clock": "2min", "cpu_time": "1s"} if name.startswith("processor") else {}
        live.write_task(name, evaluator={"image": bad_image.id, "limits": limits | own})
        (live.truths / name / "test" / "program.py").write_text(program)
        live.software(name, task=name)
    cli("submit", "-t", "alpha", "--no-check")
    cli("evaluate", "--all")
    rows = cli("runs", "--json").json
    assert len(rows) == len(MISBEHAVING)
    for row in rows:
        _, tries, kind = MISBEHAVING[row["software"]]
        shown = cli("show", row["run"], "--json").json
        outcome = shown["outcome"]
        assert (outcome["name"], outcome["blame"]) == ("held", "platform"), row["run"]
        assert not outcome["costs_quota"] and not outcome["ranked"]
        assert outcome["verdict"] == "ok"
        records = live.home.glob(f"archive/*/{row['run']}/attempts/1/evaluations/*/evaluation.json")
        kinds = [json.loads(path.read_text())["detail"]["kind"] for path in records]
        assert kinds == [kind] * tries, row["run"]
        assert len(shown["inside"]["evaluations"]) == tries
        assert shown["scores"] == {} and shown["findings"]["lines"] == []
    for receipt in cli("submit", "-t", "alpha", "--no-check", "--json").json:
        assert not receipt["new"] and receipt["quota"]["used"] == 0
    for audience in ("team:alpha", "public"):
        for *command, expect in (
            ("leaderboard", "terminal", None),
            ("runs", 0),
            ("show", next(r["run"] for r in rows if r["software"] == "terminal"), None),
        ):
            assert "evil" not in cli(*command, "--as", audience, expect=expect).all
    cli("store", "verify")


@pytest.mark.slow
def test_a_corrected_evaluator_settles_what_was_held(
    live: Project, cli: Callable[..., Said], bad_image: ImageRef
) -> None:
    """Held runs are evaluated again on request, without running the software again."""
    live.write_task(evaluator={"image": bad_image.id})
    program = live.truths / "mini" / "test" / "program.py"
    program.write_text(MISBEHAVING["nothing"][0])
    live.software("good")
    run = cli("submit", "-t", "alpha", "--no-check", "--json").json[0]["submission"] + ".test"
    cli("evaluate", "--all")
    assert cli("show", run, "--json").json["outcome"]["name"] == "held"
    program.write_text(_write(scores=_score()))
    cli("reevaluate", "--run", run)
    shown = cli("show", run, "--json").json
    assert shown["outcome"]["name"] == "scored" and shown["attempts"] == 1
    assert shown["scores"]["p_10"]["value"] == 0.5
    assert len(shown["inside"]["evaluations"]) == 2


def test_a_missing_evaluator_image_stops_before_anything_runs(
    live: Project, cli: Callable[..., Said]
) -> None:
    live.write_task(evaluator={"image": "proctor/no-such-evaluator"})
    live.software("good")
    cli("submit", "-t", "alpha", "--no-check")
    said = cli("evaluate", "--all", expect=3)
    assert "E304" in said.err
    assert cli("runs", "--json").json[0]["attempts"] == 0
