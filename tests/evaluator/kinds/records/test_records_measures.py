"""Measures through the kind: values, what is said of missing records, intervals over clusters, signatures, known orders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sacrebleu

from evaluator.__main__ import main
from evaluator.commands.prove import prove
from evaluator.errors import EvaluatorError
from evaluator.request import Request
from evaluator.scores import Sink
from tests.evaluator.kinds.records.records_runs import evaluate_records, lines, records_request

TRUTHS = [
    {
        "id": str(n),
        "document": str(n // 4),
        "label": "ab"[n % 3 == 0],
        "answer": [f"the answer {n}", "none"],
        "spans": [[n, n + 3, "x"]],
        "text": f"this is the sentence number {n}",
        "grades": {f"d{n}": 1, "d99": 2},
    }
    for n in range(12)
]
RUN = [
    {
        "id": str(n),
        "label": "ab"[n % 4 == 0],
        "p": {"a": 0.5, "b": 0.5},
        "answer": f"answer {n}!",
        "spans": [{"start": n, "end": n + 2, "label": "x"}],
        "text": f"this is a sentence number {n}",
        "ranking": ["d77", f"d{n}"],
        "seconds": n,
    }
    for n in range(11)
]
MEASURES = {
    "mcc": "MCC(label)",
    "loss": "LogLoss(p, truth=label)",
    "em": "ExactMatch(answer, macro=document)",
    "spans": "SpanF1(spans, match=overlap)",
    "bleu": "BLEU(text)",
    "rr": "IR(ranking, measure=RR, truth=grades)",
    "time": "Number(seconds, range=[0, 60], better=lower, rule=median)",
}


def request(folder: Path, measures: dict[str, str], **options: Any) -> Request:
    parts = {part: folder / part for part in ("run", "inputs", "truths")}
    for part in parts.values():
        part.mkdir(exist_ok=True)
    (folder / "truths/truths.jsonl").write_bytes(lines(TRUTHS))
    outputs = [{"path": "run.jsonl", "schema": {"type": "object"}}]
    return records_request(folder, outputs, measures, options, public=True, **parts)


def evaluate(folder: Path, measures: dict[str, str], run: list[Any] = RUN, **options: Any) -> Sink:
    asked = request(folder, measures, **options)
    (folder / "run/run.jsonl").write_bytes(lines(run))
    return evaluate_records(asked)


def test_each_family_is_scored_with_an_interval_and_says_who_answered(tmp_path: Path) -> None:
    sink = evaluate(tmp_path, MEASURES)
    assert sink.aggregates.keys() == MEASURES.keys()
    for name, one in sink.aggregates.items():
        assert (one["topics"], one["covered"]) == (12, 11)
        low, high = one["interval"]
        assert low <= one["value"] <= high and low < high, name
    assert {one.code for one in sink.findings.sorted()} == {"F407"}  # record 11 is missing, and said to be
    assert sink.aggregates["em"]["value"] == pytest.approx((1 + 1 + 3 / 4) / 3)
    assert sink.aggregates["time"]["value"] == 5.5  # of 0 to 10, and 60 for the missing one


def test_the_records_without_an_answer_are_named(tmp_path: Path) -> None:
    sink = evaluate(tmp_path, {"em": "ExactMatch(answer)"}, [*RUN[:9], {"id": "9", "label": "a"}])
    sink.write(tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [row["topic"] for row in rows if row.get("answered") is False] == ["9", "10", "11"]
    assert sink.aggregates["em"]["covered"] == 9


def test_the_signature_of_sacrebleu_stands_beside_the_scores(tmp_path: Path) -> None:
    sink = evaluate(tmp_path, {"bleu": "BLEU(text)", "chrf": "chrF(text, words=2)"})
    assert [str(one) for one in sink.noted] == [
        f"BLEU(text) is nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}",
        f"chrF(text, words=2) is nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:{sacrebleu.__version__}",
    ]


def test_clusters_make_other_intervals_and_the_same_values(tmp_path: Path) -> None:
    measures = {"f1": "F1(label)", "time": "Number(seconds, range=[0, 60], better=lower)"}
    alone, together = evaluate(tmp_path, measures), evaluate(tmp_path, measures, clusters="document")
    none = evaluate(tmp_path, measures, clusters="document", interval=False)
    for name in measures:
        a, b, c = (one.aggregates[name] for one in (alone, together, none))
        assert a["value"] == b["value"] == c["value"] and c["interval"] is None
        assert a["interval"] != b["interval"] and b["interval"] is not None


def test_clusters_that_the_truths_have_not_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError) as caught:
        evaluate(tmp_path, {"f1": "F1(label)"}, clusters="speaker")
    assert "truths.jsonl:1: speaker " in caught.value.why


def test_values_of_another_form_are_findings_with_their_place(tmp_path: Path) -> None:
    broken = [*RUN[:-1], {**RUN[-1], "spans": [[5, 1]], "p": {"a": 2}}]
    sink = evaluate(tmp_path, {"spans": "SpanF1(spans)", "loss": "LogLoss(p, truth=label)"}, broken)
    findings = [one for one in sink.findings.sorted() if one.code == "F408"]
    places = {(one.line, one.message.partition(":")[0]) for one in findings}
    assert len(findings) == 2 and places == {(11, "/spans"), (11, "/p")}


def test_the_perfect_output_is_the_best(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measures = {
        "loss": "LogLoss(p, truth=label)",
        "auc": "AUC(q, truth=label, positive=a)",
        "em": "ExactMatch(answer)",
        "f1": "TokenF1(answer)",
        "spans": "SpanF1(spans)",
        "mcc": "MCC(label)",
        "bleu": "BLEU(text)",
    }
    asked = request(tmp_path, measures)
    data = {
        "schema_version": 1, "kind": "records", "visibility": "public", "run_file": asked.run_file,
        "paths": {k: str(getattr(asked, k)) for k in ("run", "inputs", "truths", "output")},
        "options": asked.options, "measures": [one._asdict() for one in asked.measures],
    }  # fmt: skip
    (tmp_path / "request.json").write_text(json.dumps(data))
    assert prove(tmp_path / "request.json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["made"] and [one["wrong"] for one in made["orders"]] == [[]] * 6
    assert made["unproven"] == ["bleu"]
    perfect = {one["measure"]: one["values"]["perfect"] for one in made["orders"]}
    assert perfect == pytest.approx({"loss": 0, "auc": 1, "em": 1, "f1": 1, "spans": 1, "mcc": 1}, abs=1e-9)


def test_without_a_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request(tmp_path, {})
    (tmp_path / "run.jsonl").write_bytes(lines(RUN))
    (tmp_path / "schema.json").write_text("{}")
    files = ("--schema", str(tmp_path / "schema.json"), "--truths", str(tmp_path / "truths/truths.jsonl"))
    asked = ("-m", "BLEU(text, tokenize=char)", "-m", "Number(seconds, range=[0, 60], better=lower)")
    assert main(["records", str(tmp_path / "run.jsonl"), *files, *asked, "--json"]) == 0
    low, high = json.loads(capsys.readouterr().out)["measures"][
        "Number(seconds, better=lower, range=[0, 60])"
    ]["interval"]
    assert main(["records", str(tmp_path / "run.jsonl"), *files, *asked]) == 0
    printed = capsys.readouterr().out.splitlines()
    words = ["Number(seconds,", "better=lower,", "range=[0,", "60])"]
    assert printed[1].split() == [*words, f"{115 / 12:.4f}", f"[{low:.4f},", f"{high:.4f}]"]
    assert printed[3].startswith("11 of 12 ")
    assert "nrefs:1|case:mixed|eff:no|tok:char|smooth:exp|version:" in printed[4]
