"""The cross-check with ir_measures: done by itself where it costs little, and a difference is the evaluator's error."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.__main__ import main
from evaluator.commands.runs import run_request
from evaluator.findings import Log
from evaluator.formats.qrels import read_qrels
from evaluator.formats.ranked import Ranked, Rules
from evaluator.formats.trec import scan
from evaluator.measures import crosscheck
from evaluator.measures.crosscheck import cross_check, incomparable
from evaluator.measures.ir import Measure, Values, evaluate
from tests.worlds.registry import world

TEXTS = [
    "AP",
    "SetP",
    "RR@10",
    "Judged@5",
    "Compat",
    "ERR@5",
    "alpha_nDCG@5",
    "nDCG(dcg='exp-log2')@5",
    "infAP",
]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), ties=st.booleans(), fast=st.booleans())
def test_nothing_differs(seed: int, ties: bool, fast: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    files = world(tmp_path_factory.mktemp("w"), seed, ties=ties, subtopics=1)
    qrels = read_qrels(files.qrels)
    read = scan(files.run, Rules(judged=qrels.grades), Log("run"), fast=fast)
    measures = [Measure(text) for text in TEXTS]
    assert cross_check(measures, qrels, files.run, evaluate(measures, qrels, read.topics)) is None


@pytest.mark.parametrize("text", TEXTS)
def test_a_wrong_value_a_lost_topic_and_a_wrong_rank_are_found(text: str, tmp_path: Path) -> None:
    files = world(tmp_path, 5, subtopics=1)
    qrels, measures = read_qrels(files.qrels), [Measure("P@3"), Measure(text)]
    read = scan(files.run, Rules(judged=qrels.grades), Log("run"))
    good = evaluate(measures, qrels, read.topics)
    topic = max(good[text], key=lambda t: (good[text][t] < 1, good[text][t]))

    def found(changed: Values) -> str:
        return str(cross_check(measures, qrels, files.run, {**good, text: changed}))

    assert text in found({**good[text], topic: good[text][topic] + 1e-6})
    assert text in found({**good[text], b"2": 0.5})  # a topic that the run does not answer
    ranked = read.topics[topic]
    shifted = {doc: rank + 20 for doc, rank in ranked.ranks.items()}
    topics = {**read.topics, topic: Ranked(ranked.retrieved + 20, shifted)}
    assert text in found(evaluate([Measure(text)], qrels, topics)[text])


def test_what_we_define_and_ir_measures_does_not_is_no_difference(tmp_path: Path) -> None:
    room = Room(tmp_path, "IPrec(judged_only=True)@0.0")
    room.run("1 Q0 x 1 3 t\n1 Q0 y 2 2 t\n2 Q0 a 1 2 t\n")
    result = room.result()
    assert (result["status"], result["measures"]["m0"]["value"]) == ("valid", 0.5)


def test_truths_need_not_be_utf_8(tmp_path: Path) -> None:
    room = Room(tmp_path, "AP", "SetP", "alpha_nDCG@5", "ERR@5")
    (tmp_path / "truths/qrels").write_bytes(b"1 s\xe9 d3 2\n1 t d\xe9 1\nt\xe9 0 a 1\n")
    assert room.result()["status"] == "valid"


def test_what_keeps_a_file_from_being_compared() -> None:
    assert not incomparable(Log("run"), double=False)
    assert incomparable(Log("run"), double=True) == "unchecked-double"
    for code, harmless in (("F023", True), ("F020", False), ("F012", False)):
        log = Log("run", {code: "warning"})
        log.add(code, 1, "", b"1")
        assert bool(incomparable(log, double=False)) != harmless
    assert incomparable(Log("run", {"F012": "ignore"}), double=False)
    marked = Log("run", {"F021": "defect"})
    marked.add("F021", 1, "", b"1")
    assert incomparable(marked, double=False)


class Room:
    """A request of the kind adhoc with its files."""

    def __init__(self, folder: Path, *texts: str) -> None:
        self.folder = folder
        for name in ("run", "inputs", "truths", "out"):
            (folder / name).mkdir()
        (folder / "truths/qrels").write_text("1 0 d3 2\n1 0 d5 1\n2 0 a 1\n")
        self.run("1 Q0 d1 1 9 t\n1 Q0 d2 2 8 t\n1 Q0 d3 3 7 t\n1 Q0 d4 4 6 t\n1 Q0 d5 5 5 t\n")
        paths = {"run": "run", "inputs": "inputs", "truths": "truths", "output": "out"}
        self.request: dict[str, Any] = {
            "schema_version": 1, "kind": "adhoc", "visibility": "public", "run_file": "run.txt",
            "paths": {side: str(folder / name) for side, name in paths.items()},
            "measures": [{"id": f"m{i}", "measure": text, "truths": "qrels"} for i, text in enumerate(texts)],
        }  # fmt: skip

    def run(self, text: str, name: str = "run.txt") -> None:
        data = text.encode()
        (self.folder / "run" / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)

    def result(self, **changes: Any) -> dict[str, Any]:
        path = self.folder / "request.json"
        path.write_text(json.dumps(self.request | changes))
        assert run_request(path) == 0
        out: dict[str, Any] = json.loads((self.folder / "out/result.json").read_text())
        return out


@pytest.fixture
def lying(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that gives another value for documents with the run's own names than for ours."""
    honest = ir_measures.gdeval.iter_calc

    def calculate(measures: Any, judgements: Any, run: Any) -> Any:
        mine = any(doc.startswith("u") for docs in run.values() for doc in docs)
        for metric in honest(measures, judgements, run):
            yield metric._replace(value=metric.value + (0.5 if mine else 0))

    monkeypatch.setattr(ir_measures.gdeval, "iter_calc", calculate)


def test_a_difference_is_an_error_that_names_the_measure(tmp_path: Path, lying: None) -> None:
    room = Room(tmp_path, "AP", "SetP", "ERR@5")
    result = room.result()
    assert result["status"] == "error" and result["measures"] == {}
    hidden = room.result(visibility="blinded")["message"]
    assert "ERR@5" in hidden and "AP" not in hidden and "SetP" not in hidden
    assert result["message"].removeprefix(hidden).startswith("; 0.5"), "values of blinded data are hidden"
    assert room.result(options={"cross_check": False})["status"] == "valid"
    room.run((tmp_path / "run/run.txt").read_text(), "run.txt.gz")
    assert room.result(run_file="run.txt.gz")["status"] == "error"


def test_only_small_runs_are_checked_without_being_asked_for(tmp_path: Path, lying: None) -> None:
    room = Room(tmp_path, "ERR@5")
    lines = crosscheck.SMALL // 2
    room.run("".join(f"{t} Q0 {d} {d + 1} {lines - d} t\n" for t in (1, 2, 3) for d in range(lines)))
    options = {"max_documents": lines}
    assert room.result(options=options)["status"] == "valid"
    assert room.result(options={**options, "cross_check": True})["status"] == "error"


def test_own_measures_are_checked_when_asked_for(tmp_path: Path) -> None:
    room = Room(tmp_path, "AP", "RR@10", "NumRel(rel=2)", "condensed nDCG@5")
    assert room.result(options={"cross_check": True})["status"] == "valid"


@pytest.mark.parametrize("asked", [{}, {"options": {"cross_check": True}}])
def test_what_cannot_be_compared_gets_a_note(tmp_path: Path, asked: dict[str, Any], lying: None) -> None:
    room = Room(tmp_path, "ERR@5")
    result = room.result(score_precision="double", **asked)
    assert result["status"] == "valid" and result["note_details"] == [{"kind": "unchecked-double"}]
    room.run("1 Q0 d3 1 9 t\n1 Q0 d3 2 8 t\n")
    result = room.result(severities={"F012": "warning"}, **asked)
    assert result["status"] == "valid" and result["note_details"] == [{"kind": "unchecked-findings"}]


@pytest.mark.parametrize("visibility", ["public", "blinded"])
def test_an_error_names_no_topic(tmp_path: Path, visibility: str) -> None:
    room = Room(tmp_path, "AP", "Accuracy")
    (tmp_path / "truths/qrels").write_text("secret-7 0 hidden 1\nsecret-8 0 b 1\n")
    room.run("secret-7 Q0 hidden 1 2 t\nsecret-8 Q0 x 1 2 t\n")
    result = room.result(visibility=visibility)
    assert result["status"] == "error" and "Accuracy" in result["message"] and "AP" not in result["message"]
    assert "secret-7" not in result["message"] and "hidden" not in result["message"]


def test_measures_that_cannot_be_computed_are_an_error_before_the_run_is_read(tmp_path: Path) -> None:
    room = Room(tmp_path, "AP", "alpha_nDCG@30", "ERR")
    (tmp_path / "run/run.txt").write_text("")
    result = room.result()
    assert result["status"] == "error"
    assert "alpha_nDCG@30 " in result["message"] and "ERR " in result["message"]
    assert "AP" not in result["message"]


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = world(tmp_path, random.Random(3).randrange(99), ties=True)
    call = ["trec", str(files.qrels), str(files.run), "-m", "AP", "-m", "ERR@5", "--cross-check"]
    assert main(call) == 0
    assert main([*call, "--precision", "double"]) == 0
    assert "ir_measures" in capsys.readouterr().err
    assert main([*call, "-m", "ERR"]) == 4
    assert "ERR " in capsys.readouterr().err


def test_a_measure_of_subtopics_without_any_gets_a_note(tmp_path: Path) -> None:
    room = Room(tmp_path, "AP", "alpha_nDCG@5")
    note = {"kind": "no-subtopics", "measure": "alpha_nDCG@5", "truths": "qrels"}
    assert room.result()["note_details"] == [note]
    (tmp_path / "truths/qrels").write_text("1 1 d3 2\n1 2 d5 1\n2 1 a 1\n")
    assert "notes" not in room.result()
