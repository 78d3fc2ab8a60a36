"""The command line: its words, exit codes and manners; and what it does not import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.__main__ import main
from evaluator.codes import CODES

GOLDEN = Path(__file__).parent.parent / "golden" / "trec_eval"
QRELS, RUN = str(GOLDEN / "qrels.test"), str(GOLDEN / "results.test")
HEAVY = (
    "pandas",
    "scipy",
    "ir_measures",
    "pytrec_eval",
    "docker",
    "yaml",
    "typer",
    "sqlalchemy",
)


def evaluator(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evaluator", *args], capture_output=True, text=True, timeout=60
    )


def test_trec_prints_means(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trec", QRELS, RUN, "-m", "AP", "-m", "P@10", "--cross-check"]) == 0
    assert capsys.readouterr().out == "AP    0.1785\nP@10  0.3000\n"


def test_trec_by_topic_and_formats(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trec", QRELS, RUN, "-m", "AP", "-q", "--format", "trec_eval"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert (
        rows[0] == ["runid", "all", "STANDARD"]
        and rows[1] == ["AP", "301", "0.0324"]
        and rows[-1] == ["AP", "all", "0.1785"]
    )
    assert main(["trec", QRELS, RUN, RUN, "-m", "AP", "--format", "json"]) == 0
    assert [r["covered"] for r in json.loads(capsys.readouterr().out)] == [3, 3]


def test_trec_on_an_invalid_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run").write_text("1 Q0 d1 1 nan t\n")
    assert main(["trec", QRELS, str(tmp_path / "run"), RUN, "-m", "AP"]) == 1
    out, err = capsys.readouterr()
    assert "AP  0.1785" in out and "F014 error" in err and "1 error in 1 line" in err


def test_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, topics, corpus = tmp_path / "run.txt", tmp_path / "topics.xml", tmp_path / "ids.txt"
    run.write_text("1 Q0 d1 1 2 t\n1 Q0 d7 2 1 t\n")
    topics.write_text('<topics><topic number="1"><title>x</title></topic><topic number="2"/></topics>')
    corpus.write_text("d1\nd2\n")
    assert main(["check", str(run)]) == 0
    assert main(["check", str(run), "--topics", str(topics), "--corpus", str(corpus), "--max-docs", "1"]) == 1
    out = capsys.readouterr().out
    assert all(code in out for code in ("F018", "F019", "F020")) and "2 errors, 1 warning in 2 lines" in out
    assert main(["check", str(run), "--max-docs", "0"]) == 2


def test_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["codes", "--json"]) == 0
    assert [c["code"] for c in json.loads(capsys.readouterr().out)] == list(CODES)
    assert main(["codes"]) == 0 and "F012" in capsys.readouterr().out


def test_errors_are_short_lines_and_exit_codes(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("1 0 d1\n")
    for args, code in (
        (("trec", str(tmp_path / "broken"), RUN), 4),
        (("trec", str(tmp_path / "none"), RUN), 4),
        (("trec", QRELS, RUN, "-m", "Nonsense"), 2),
        (("run", "--request", str(tmp_path / "none")), 4),
        (("nonsense",), 2),
    ):
        done = evaluator(*args)
        assert done.returncode == code and "Traceback" not in done.stderr and done.stdout == ""
    assert len(evaluator("trec", str(tmp_path / "broken"), RUN).stderr.splitlines()) <= 3


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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_request_path_imports_nothing_heavy_but_numpy(tmp_path: Path) -> None:
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
        f"print([m for m in {(*HEAVY, 'jsonschema')!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr
    assert json.loads((tmp_path / "result.json").read_text())["status"] == "valid"


def test_a_package_that_is_not_installed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A set-up leaves the packages of judges for later."""
    from evaluator import process

    def needs(name: str) -> int:
        __import__(name)
        return 0

    assert process.run(lambda: needs("no_such_package.part")) == process.PLATFORM
    said = capsys.readouterr().err
    assert "no_such_package is not installed" in said and "make tools" in said
    assert process.run(lambda: needs("evaluator.nothing")) == process.PLATFORM
    assert "internal error" in capsys.readouterr().err


def test_a_large_run_is_read_without_threads_of_numpys_library(tmp_path: Path) -> None:
    """They take a third of the processor time, whichever module imports numpy first."""
    program = (
        "import os, sys; from evaluator.__main__ import main; from evaluator.formats import trec; trec.LARGE_FILE = 1;"
        "main(sys.argv[1:]); print('numpy' in sys.modules, len(os.listdir('/proc/self/task')))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", program, "trec", QRELS, RUN], env=environment, capture_output=True, text=True,
                          timeout=60, check=True)  # fmt: skip
    assert done.stdout.splitlines()[-1] == "True 1"


def test_trec_accepts_what_a_task_can_accept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    qrels, run = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("1 0 d1 1\n")
    run.write_text("1 Q0 d1 1 9 my tag\n")
    arguments = ["trec", str(qrels), str(run), "-m", "AP"]
    assert main(arguments) == 1
    assert main([*arguments, "--severity", "F010=warning"]) == 0
    assert "1.0000" in capsys.readouterr().out
    for wrong in ("F010", "F010=fine", "X=warning"):
        assert main([*arguments, "--severity", wrong]) == 2
