"""The command line: its words, exit codes and manners; and what it does not import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluator import process
from evaluator.__main__ import main
from evaluator.codes import CODES
from tests.worlds.mini import Said

GOLDEN = Path(__file__).parent.parent / "golden" / "trec_eval"
Evaluator = Callable[..., Said]
QRELS, RUN = str(GOLDEN / "qrels.test"), str(GOLDEN / "results.test")
HEAVY = ("pandas", "scipy", "ir_measures", "pytrec_eval", "docker", "yaml", "typer", "sqlalchemy")


def python(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60, **options)


@pytest.fixture
def evaluator(capsys: pytest.CaptureFixture[str]) -> Evaluator:
    """Return a function that calls the command line with these words."""

    def call(*words: object) -> Said:
        code = main(list(map(str, words)))
        return Said(code, *capsys.readouterr())

    return call


def test_trec_prints_means(evaluator: Evaluator) -> None:
    said = evaluator("trec", QRELS, RUN, "-m", "AP", "-m", "P@10", "--cross-check")
    assert (said.code, said.out) == (0, "AP    0.1785\nP@10  0.3000\n")


def test_trec_by_topic_and_formats(evaluator: Evaluator) -> None:
    said = evaluator("trec", QRELS, RUN, "-m", "AP", "-q", "--format", "trec_eval")
    rows = [line.split() for line in said.out.splitlines()]
    assert said.code == 0 and rows[:2] == [["runid", "all", "STANDARD"], ["AP", "301", "0.0324"]]
    assert rows[-1] == ["AP", "all", "0.1785"]
    said = evaluator("trec", QRELS, RUN, RUN, "-m", "AP", "--format", "json")
    assert said.code == 0 and [r["covered"] for r in said.json] == [3, 3]


def test_trec_on_an_invalid_run(evaluator: Evaluator, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("1 Q0 d1 1 nan t\n")
    said = evaluator("trec", QRELS, tmp_path / "run", RUN, "-m", "AP")
    assert said.code == 1 and "AP  0.1785" in said.out and "F014" in said.err


def test_check(evaluator: Evaluator, tmp_path: Path) -> None:
    run, topics, corpus = tmp_path / "run.txt", tmp_path / "topics.xml", tmp_path / "ids.txt"
    run.write_text("1 Q0 d1 1 2 t\n1 Q0 d7 2 1 t\n")
    topics.write_text('<topics><topic number="1"><title>x</title></topic><topic number="2"/></topics>')
    corpus.write_text("d1\nd2\n")
    assert evaluator("check", run).code == 0
    said = evaluator("check", run, "--topics", topics, "--corpus", corpus, "--max-docs", "1", "--json")
    findings = said.json["findings"]
    assert said.code == 1 and set(findings["codes"]) == {"F018", "F019", "F020"}
    assert (findings["error"], findings["warning"]) == (2, 1)
    assert evaluator("check", run, "--max-docs", "0").code == 2


def test_codes(evaluator: Evaluator) -> None:
    assert [c["code"] for c in evaluator("codes", "--json").json] == list(CODES)
    said = evaluator("codes")
    assert said.code == 0 and "F012" in said.out


def test_errors_are_short_lines_and_exit_codes(evaluator: Evaluator, tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("1 0 d1\n")
    for words, code in (
        (("trec", tmp_path / "broken", RUN), 4),
        (("trec", tmp_path / "none", RUN), 4),
        (("trec", QRELS, RUN, "-m", "Nonsense"), 2),
        (("run", "--request", tmp_path / "none"), 4),
    ):
        said = evaluator(*words)
        assert said.code == code and said.out == "" and len(said.err.splitlines()) <= 3
    done = python("-m", "evaluator", "nonsense")
    assert done.returncode == 2 and "Traceback" not in done.stderr and done.stdout == ""


def test_nobody_reads_on() -> None:
    command = f"{sys.executable} -m evaluator codes --json | head -c 10"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stderr == "" and len(done.stdout) == 10


@pytest.mark.parametrize(
    "command", [["-h"], ["codes"], ["check", RUN], ["trec", QRELS, RUN, "-m", "nDCG@10"]]
)
def test_small_path_stays_light(command: list[str]) -> None:
    code = (
        "import sys\nfrom evaluator.__main__ import main\n"
        f"try: main({command!r})\nexcept SystemExit: pass\n"
        f"print([m for m in {(*HEAVY, 'numpy')!r} if m in sys.modules])"
    )
    done = python("-c", code)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_request_path_imports_nothing_heavy_but_numpy_and_jsonschema(tmp_path: Path) -> None:
    request = {
        "schema_version": 1,
        "kind": "adhoc",
        "visibility": "public",
        "paths": {
            "run": str(GOLDEN),
            "inputs": str(tmp_path),
            "truths": str(GOLDEN),
            "output": str(tmp_path),
        },
        "run_file": "results.test",
        "measures": [{"id": "map", "measure": "AP", "truths": "qrels.test"}],
    }
    (tmp_path / "request.json").write_text(json.dumps(request))
    code = (
        "import sys\nfrom evaluator.__main__ import main\n"
        f"assert main(['run', '--request', {str(tmp_path / 'request.json')!r}]) == 0\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = python("-c", code)
    assert done.stdout == "[]\n", done.stderr
    assert json.loads((tmp_path / "result.json").read_text())["status"] == "valid"


def test_a_package_that_is_not_installed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A set-up leaves the packages of judges for later."""

    def needs(name: str) -> int:
        __import__(name)
        return 0

    assert process.run(lambda: needs("no_such_package.part")) == process.PLATFORM
    said = capsys.readouterr().err
    assert "no_such_package" in said and "make tools" in said
    assert process.run(lambda: needs("evaluator.nothing")) == process.PLATFORM
    assert "internal error" in capsys.readouterr().err


def test_a_large_run_is_read_without_threads_of_numpys_library(tmp_path: Path) -> None:
    """They take a third of the processor time, whichever module imports numpy first."""
    program = (
        "import os, sys; from evaluator.__main__ import main; from evaluator.formats import trec; trec.LARGE_FILE = 1;"
        "main(sys.argv[1:]); print('numpy' in sys.modules, len(os.listdir('/proc/self/task')))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = python("-c", program, "trec", QRELS, RUN, env=environment, check=True)
    assert done.stdout.splitlines()[-1] == "True 1"


def test_trec_accepts_what_a_task_can_accept(evaluator: Evaluator, tmp_path: Path) -> None:
    qrels, run = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("1 0 d1 1\n")
    run.write_text("1 Q0 d1 1 9 my tag\n")
    words = ("trec", qrels, run, "-m", "AP")
    assert evaluator(*words).code == 1
    said = evaluator(*words, "--severity", "F010=warning")
    assert said.code == 0 and "1.0000" in said.out
    for wrong in ("F010", "F010=fine", "X=warning"):
        assert evaluator(*words, "--severity", wrong).code == 2
