"""Records from the file to findings and scores, in every format, through the kind and through ``evaluator records``."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evaluator.__main__ import main
from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.kinds.records.kind import KIND
from evaluator.request import Request
from evaluator.scores import Sink
from tests.evaluator.kinds.records.records_runs import evaluate_records, lines, records_request

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["id", "label"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": ["string", "integer"]},
        "label": {"enum": ["pos", "neg"]},
        "score": {"type": "number", "minimum": 0, "maximum": 5},
        "sure": {"type": "boolean"},
    },
}
TRUTHS = [
    {"id": "a", "label": "pos", "score": 1},
    {"id": "b", "label": "neg", "score": 2},
    {"id": "3", "label": "neg", "score": 3},
]
GOOD = [
    {"id": "a", "label": "pos", "score": 1.5},
    {"id": "b", "label": "pos", "score": 2},
    {"id": 3, "label": "neg"},
]


def evaluate(
    folder: Path,
    run: bytes,
    name: str = "run.jsonl",
    *,
    measures: Mapping[str, str] | None = None,
    topics: bytes | None = None,
    outputs: list[dict[str, Any]] | None = None,
    truths: bytes = lines(TRUTHS),
    options: Mapping[str, Any] = {},
    **fields: Any,
) -> Sink:
    """Evaluate a run with three truths."""
    parts = {part: folder / part for part in ("run", "inputs", "truths")}
    for part in parts.values():
        part.mkdir(exist_ok=True)
    (folder / "run" / name).write_bytes(run)
    (folder / "truths/truths.jsonl").write_bytes(truths)
    if topics is not None:
        (folder / "inputs/ids.jsonl").write_bytes(topics)
        fields["topics"] = "ids.jsonl"
    outputs = outputs or [{"path": name.removesuffix(".gz"), "schema": SCHEMA}]
    asked = measures or {"accuracy": "Accuracy(label)"}
    fields = {"public": True, **parts, **fields}
    return evaluate_records(records_request(folder, outputs, asked, options, run_file=name, **fields))


def found(sink: Sink) -> list[tuple[str, int | None]]:
    """Return the code and the line of each finding."""
    return [(finding.code, finding.line) for finding in sink.findings.sorted()]


ALL = {"accuracy": "Accuracy(label)", "f1": "F1(label)", "mae": "MAE(score)"}
FORMATS = {
    "run.jsonl": lines(GOOD),
    "run.jsonl.gz": gzip.compress(lines(GOOD)),
    "run.json": json.dumps(GOOD, indent=1).encode(),
    "run.csv": b'id,label,score,sure\r\na,pos,1.5,true\r\n"b",pos,2,\r\n3,neg,,false\r\n',
    "run.tsv": b"id\tlabel\tscore\na\tpos\t1.5\nb\tpos\t2\n3\tneg\t\n",
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_scores(tmp_path: Path, name: str) -> None:
    sink = evaluate(tmp_path, FORMATS[name], name, measures=ALL)
    assert found(sink) == []
    values = {i: (one["value"], one["topics"], one["covered"]) for i, one in sink.aggregates.items()}
    assert values["accuracy"] == (2 / 3, 3, 3)
    assert values["f1"][0] == pytest.approx((2 / 3 + 2 / 3) / 2)
    # The third record has no score: its error is the largest possible one.
    assert values["mae"] == (pytest.approx((0.5 + 0 + 2) / 3), 3, 2)
    by_record = {(m, t): v for m, t, v, facets in sink.scores() if not facets}
    assert by_record["accuracy", "b"] == 0 and by_record["mae", "a"] == 0.5
    by_class = {facets["class"]: v for m, _, v, facets in sink.scores() if facets}
    assert by_class == {"neg": pytest.approx(2 / 3), "pos": pytest.approx(2 / 3)}


BAD = (
    b'{"id":"a","label":"Pos","score":"x"}\n{"id":"b","lable":"pos"}\nnot json\n\n{"id":"a","label":"pos"}\n'
    b'{"id":"A","label":"pos"}\n{"label":"pos"}\n[1]\n{"id":"b","label":"neg","label":"neg"}\n{"id":"3","label":"neg","score":NaN}\n'
    b'{"id":"\xff"}\n'
)
BAD_CODES = "F401:1 F401:1 F401:2 F401:2 F101:3 F405:5 F406:6 F401:7 F401:8 F402:9 F403:10 F005:11"
# A name -> the run file, its content, and the code and line of each finding.
WRONG = {
    "several problems": ("run.jsonl", BAD, BAD_CODES),
    "an array": ("run.json", b'[{"id":"a","label":"pos"},\n {"id":"b","label":3},\n {"id":"A","label":"neg"}\n', "F401:2 F406:3 F101:4"),
    "a table": ("run.csv", b'id,label,score,sur\na,pos,two,1\nb,neg\n3,"neg,1,\n', "F409:1 F401:2 F410:3 F411:4"),
    "unknown columns": ("run.csv", b"lable,scores\na,1\n", "F409:1"),
    "semicolons": ("run.csv", b"id;label\na;pos\n", "F409:1"),
    "a column twice": ("run.csv", b"id,id,label\na,a,pos\n", "F409:1"),
    "a missing column": ("run.csv", b"id,score\na,1\n", "F409:1"),
    "decimal commas": ("run.csv", b'id,label,score\na,pos,1,5\nb,neg,"2,5"\n', "F410:2 F401:3"),
    "blanks and signs": ("run.csv", b"id,label,score\na,pos, 1\nb,neg,+2\n3,neg,1e999\n", "F401:2 F401:3 F401:4"),
    "carriage returns": ("run.csv", b"id,label\ra,pos\rb,neg\r", "F411:1"),
    "text behind quotes": ("run.csv", b'id,label\na,pos\nb,"neg"x\n3,neg\n', "F411:3"),
    "names in capitals": ("run.csv", b"ID,label,score\na,pos,1\n", "F409:1 F409:1"),
    "the header again": ("run.csv", b"id,label\na,pos\nid,label\nb,neg\n3,neg\n", "F401:3 F406:3"),
    "an array as lines": ("run.jsonl", b'[{"id":"a","label":"pos"},\n{"id":"b","label":"neg"}]\n', "F101:1"),
    "a printed array as lines": ("run.jsonl", json.dumps(GOOD, indent=1).encode(), "F101:1"),
    "a table as lines": ("run.jsonl", b"id,label,score\na,pos,1\nb,neg,2\n", "F101:1"),
    "lines as an array": ("run.json", lines(GOOD), "F030:1"),
    "an object as an array": ("run.json", json.dumps(GOOD[0], indent=1).encode(), "F030:1"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_every_problem_is_found_at_its_line(tmp_path: Path, name: str) -> None:
    file, run, expected = WRONG[name]
    sink = evaluate(tmp_path, run, file)
    assert " ".join(f"{code}:{line}" for code, line in found(sink) if line is not None) == expected
    assert sink.findings.invalid


def test_wording_of_findings(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """Messages name the place in a record, array or table, the value that was found, and a similar one."""
    text = ""
    for name, (file, run, _) in WRONG.items():
        findings = evaluate(tmp_path, run, file).findings.sorted()
        shown = [f"{one.file}:{one.line}: {one.code} {one.message}" for one in findings if one.line]
        text += "\n".join([f"# {name}", *shown, "", ""])
    golden("records-findings.txt", text)


def test_tables_as_spreadsheets_and_data_frames_write_them(tmp_path: Path) -> None:
    """Marks, line ends and words of spreadsheets; whole numbers with a point, line ends and quotes in cells; columns in any order."""
    table = (
        b'\xef\xbb\xbfscore,sure,text,label,id\r\n1.0,TRUE,"two\r\nlines, ""quoted""",pos,a\r\n'
        b"2,FALSE,,neg,b\r\n,true,=A1,neg,3\r\n"
    )
    wider = {**SCHEMA, "properties": {**SCHEMA["properties"], "text": {"type": "string"}}}
    sink = evaluate(tmp_path, table, "run.csv", outputs=[{"path": "run.csv", "schema": wider}])
    assert [code for code, _ in found(sink)] == ["F118"] and sink.aggregates["accuracy"]["value"] == 1.0
    whole = {"required": ["id", "n"], "properties": {"n": {"type": "integer"}}}
    outputs, measures = [{"path": "run.csv", "schema": whole}], {"mae": "MAE(n, truth=score)"}
    sink = evaluate(tmp_path, b"id,n\na,1.0\nb,2.5\n", "run.csv", outputs=outputs, measures=measures)
    assert found(sink)[0] == ("F401", 3)


def test_missing_records_are_the_worst_and_are_named(tmp_path: Path) -> None:
    sink = evaluate(tmp_path, lines(GOOD[:1]))
    findings = sink.findings.sorted()
    assert [(one.code, one.line, one.message.split('"')[1]) for one in findings] == [
        ("F407", None, "b"), ("F407", None, "3"),
    ]  # fmt: skip
    figures = sink.aggregates["accuracy"]
    assert (figures["value"], figures["topics"], figures["covered"]) == (1 / 3, 3, 1)


def test_a_run_without_a_known_id_scores_nothing(tmp_path: Path) -> None:
    sink = evaluate(tmp_path, lines([{"id": "x", "label": "pos"}]))
    assert "F028" in sink.findings.counts and not sink.aggregates


def test_ids_are_those_of_the_inputs_where_the_task_names_them(tmp_path: Path) -> None:
    topics = lines([{"id": "a"}, {"id": "b"}, {"id": "3"}, {"id": "unjudged"}])
    run = lines([*GOOD, {"id": "unjudged", "label": "pos"}])
    sink = evaluate(tmp_path, run, topics=topics)
    assert found(sink) == [] and sink.aggregates["accuracy"]["topics"] == 3


@pytest.mark.parametrize("public", [True, False])
def test_ids_of_hidden_data_are_not_suggested(tmp_path: Path, public: bool) -> None:
    sink = evaluate(tmp_path, lines([*GOOD, {"id": "A", "label": "pos"}]), public=public)
    (finding,) = (one for one in sink.findings.sorted() if one.code == "F406")
    assert ('"a"' in finding.message) == public


def test_a_task_can_let_broken_records_count_as_missing(tmp_path: Path) -> None:
    run = lines([GOOD[0], {"id": "b", "label": "NEG"}, GOOD[2], {"id": "x", "label": "pos"}])
    sink = evaluate(tmp_path, run, severities={"F401": "defect", "F406": "warning"})
    assert not sink.findings.invalid and sink.aggregates["accuracy"]["value"] == 2 / 3


def test_several_keys_are_one_id(tmp_path: Path) -> None:
    run = lines({"doc": doc, "span": {"n": 1}, "label": "x"} for doc in ("a/b", "a"))
    outputs = [{"path": "run.jsonl", "schema": {"type": "object"}, "id": ["doc", "/span/n"]}]
    sink = evaluate(tmp_path, run, truths=run, outputs=outputs)
    assert [topic for _, topic, _, _ in sink.scores()] == ["a~1b/1", "a/1"]


SECOND = {"path": "spans.csv", "schema": {"type": "object", "required": ["id"]}}


def test_every_output_is_checked(tmp_path: Path) -> None:
    notes = {**SECOND, "path": "notes.jsonl", "required": False}
    outputs = [{"path": "run.jsonl", "schema": SCHEMA}, notes, SECOND]
    sink = evaluate(tmp_path, lines([{**GOOD[0], "label": 1}]), outputs=outputs)
    assert [(one.file, one.code) for one in sink.findings.sorted() if one.code != "F407"] == [
        ("spans.csv", "F412"),
        ("run.jsonl", "F401"),
    ]
    (tmp_path / "run/notes.jsonl").write_bytes(b"{}\n")
    (tmp_path / "run/spans.csv").write_bytes(b"id\na\nb\n3\n")
    sink = evaluate(tmp_path, lines(GOOD), outputs=outputs)
    assert [(one.file, one.code, one.line) for one in sink.findings.sorted()] == [("notes.jsonl", "F401", 1)]


def test_a_link_beside_the_run_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/spans.csv").symlink_to("/etc/passwd")
    sink = evaluate(tmp_path, lines(GOOD), outputs=[{"path": "run.jsonl", "schema": SCHEMA}, SECOND])
    assert "F002" in sink.findings.counts


@pytest.mark.parametrize(
    ("truths", "place"),
    [
        (b'{"id":"a","label":"x"}\n{"id":"a","label":"x"}\n', "truths.jsonl:2: "),
        (b'{"id":"a"}\n', "truths.jsonl:1: label "),
        (b'{"label":"a"}\n', "truths.jsonl:1: "),
        (b"{\n", "truths.jsonl:1"),
        (b"", "truths.jsonl"),
    ],
)
def test_wrong_truths_are_errors_of_the_organiser(tmp_path: Path, truths: bytes, place: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        evaluate(tmp_path, lines(GOOD), truths=truths)
    assert place in " ".join(caught.value.lines())


def test_a_million_violations_in_one_record_are_one_finding(tmp_path: Path) -> None:
    outputs = [{"path": "run.jsonl", "schema": {"properties": {"l": {"items": {"type": "string"}}}}}]
    run = b'{"id":"a","label":"pos","l":[' + b"1," * 1_000_000 + b"1]}\n"
    sink = evaluate(tmp_path, run + run, outputs=outputs)
    assert [one for one in found(sink) if one[0] == "F401"] == [("F401", 1), ("F401", 2)]


def test_findings_are_capped_and_counted(tmp_path: Path) -> None:
    sink = evaluate(tmp_path, lines([{"id": f"{n}", "label": 1} for n in range(5_000)]))
    assert sink.findings.counts["F401"] == 5_000 and len(sink.findings.kept) <= 300


@pytest.mark.parametrize("options", [{}, {"outputs": []}, {"outputs": [{"path": "../x", "schema": {}}]}])
def test_wrong_options(tmp_path: Path, options: dict[str, Any]) -> None:
    request = Request("records", tmp_path, tmp_path, tmp_path, tmp_path, "run.jsonl", options=options)
    with pytest.raises(EvaluatorError):
        KIND.check(tmp_path / "run.jsonl", tmp_path, request, Log("run.jsonl"))


def test_the_command_prints_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.json").write_text(json.dumps(SCHEMA))
    Path("t.jsonl").write_bytes(lines(TRUTHS))
    Path("o.jsonl").write_bytes(lines(GOOD[:2]))
    words = ["records", "o.jsonl", "--schema", "s.json"]
    scored = [*words, "--truths", "t.jsonl", "-m", "Accuracy(label)", "-m", "MAE(score)"]
    assert main(scored) == 0
    out, err = capsys.readouterr()
    assert "Accuracy(label)  0.3333" in out and "2 of 3" in out and "F407" in err
    assert main([*scored, "--json", "-q"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["measures"]["MAE(score)"]["covered"] == 2
    assert {"measure": "Accuracy(label)", "record": "b", "value": 0.0} in printed["values"]
    assert main([*words, "--json"]) == 0 and json.loads(capsys.readouterr().out)["status"] == "valid"
    Path("o.jsonl").write_bytes(BAD)
    assert main(scored) == 1 and "F401 error: /label" in capsys.readouterr().err
    assert main([*words, "-m", "Accuracy(label)"]) == 2
    Path("s.json").write_text('{"$ref": "http://x"}')
    assert main(words) == 4


def test_resamples_are_kept_for_values_that_are_not_means(tmp_path: Path) -> None:
    asked = {
        "mean": "Accuracy(label)",
        "macro": "Accuracy(label, macro=label)",
        "median": "MAE(score, rule=median)",
        "f1": "F1(label)",
    }
    figures = evaluate(tmp_path, lines(GOOD), measures=asked, options={"interval": True}).aggregates
    assert {name for name, one in figures.items() if "resamples" in one} == {"macro", "median", "f1"}
