"""Records from the file to findings and scores, in every format, through the kind and through ``evaluator records``."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evaluator.__main__ import main
from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.kinds.records.kind import KIND
from evaluator.request import MeasureRequest, Request
from evaluator.scores import Sink

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


def lines(records: list[Any]) -> bytes:
    return b"".join(json.dumps(r).encode() + b"\n" for r in records)


def evaluate(
    folder: Path,
    run: bytes,
    name: str = "run.jsonl",
    *,
    measures: Mapping[str, str] | None = None,
    topics: bytes | None = None,
    public: bool = True,
    **more: Any,
) -> Sink:
    """What is found in a run with three truths."""
    for part in ("run", "inputs", "truths"):
        (folder / part).mkdir(exist_ok=True)
    (folder / "run" / name).write_bytes(run)
    (folder / "truths/truths.jsonl").write_bytes(lines(TRUTHS))
    if topics is not None:
        (folder / "inputs/ids.jsonl").write_bytes(topics)
    outputs = more.pop("outputs", [{"path": name.removesuffix(".gz"), "schema": SCHEMA}])
    severities = more.pop("severities", {})
    asked = measures or {"accuracy": "Accuracy(label)"}
    request = Request(
        "records",
        folder / "run",
        folder / "inputs",
        folder / "truths",
        folder,
        name,
        public=public,
        topics=None if topics is None else "ids.jsonl",
        options={"outputs": outputs, **more},
        severities=severities,
        measures=tuple(
            MeasureRequest(i, text, "truths.jsonl", "lower" if "MAE" in text else "higher")
            for i, text in asked.items()
        ),
    )
    sink = Sink(Log(name, severities))
    KIND.evaluate(folder / "run" / name, folder / "inputs", folder / "truths", request, sink)
    return sink


def found(sink: Sink) -> list[tuple[str, int | None, str]]:
    return [(one.code, one.line, one.message) for one in sink.findings.sorted()]


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
    assert values["mae"] == (
        pytest.approx((0.5 + 0 + 2) / 3),
        3,
        2,
    )  # the third has no score: it is as far off as can be
    by_record = {(m, t): v for m, t, v, facets in sink.scores() if not facets}
    assert by_record["accuracy", "b"] == 0 and by_record["mae", "a"] == 0.5
    by_class = {facets["class"]: v for m, _, v, facets in sink.scores() if facets}
    assert by_class == {"neg": pytest.approx(2 / 3), "pos": pytest.approx(2 / 3)}


BAD = (
    b'{"id":"a","label":"Pos","score":"x"}\n{"id":"b","lable":"pos"}\nnot json\n\n{"id":"a","label":"pos"}\n'
    b'{"id":"A","label":"pos"}\n{"label":"pos"}\n[1]\n{"id":"b","label":"neg","label":"neg"}\n{"id":"3","label":"neg","score":NaN}\n'
    b'{"id":"\xff"}\n'
)


def test_everything_wrong_is_told_at_once_with_its_place(tmp_path: Path) -> None:
    assert found(evaluate(tmp_path, BAD)) == [
        ("F401", 1, '/label: expected one of "pos", "neg", found "Pos" (did you mean "pos"?)'),
        ("F401", 1, '/score: expected a number, found "x"'),
        ("F401", 2, 'the key "label" is missing (did you mean "lable"?)'),
        ("F401", 2, '/lable: unknown key "lable" (did you mean "label"?)'),
        ("F101", 3, 'the line is not JSON: "Expecting value"'),
        ("F405", 5, 'the record "a" is there twice (first at line 1)'),
        ("F406", 6, 'there is no record "A" in this dataset (did you mean "a"?)'),
        ("F401", 7, 'the key "id" is missing'),
        ("F401", 8, "expected an object, found a list of 1"),
        ("F402", 9, 'the key "label" is there twice in one object'),
        ("F403", 10, "NaN is no number of JSON"),
        ("F005", 11, "the line is not UTF-8"),
    ]


def test_problems_in_an_array_and_in_a_table_have_their_places(tmp_path: Path) -> None:
    array = b'[{"id":"a","label":"pos"},\n {"id":"b","label":3},\n {"id":"A","label":"neg"}\n'
    assert [(*one[:2], one[2][:24]) for one in found(evaluate(tmp_path, array, "run.json"))] == [
        ("F401", 2, "/1/label: expected one o"),
        ("F406", 3, '/2: there is no record "'),
        ("F101", 4, "the array is broken from"),
    ]
    table = b'id,label,score,sur\na,pos,two,1\nb,neg\n3,"neg,1,\n'
    assert found(evaluate(tmp_path, table, "run.csv")) == [
        ("F409", 1, 'column 4: unknown column "sur" (did you mean "sure"?)'),
        ("F401", 2, 'row 1, column "score": expected a number, found "two"'),
        ("F410", 3, "row 2 has 2 cells, and the header 4"),
        ("F411", 4, "row 3 cannot be read: a double quote that was opened is not closed"),
    ]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (b"lable,scores\na,1\n", "no column that the schema names"),
        (b"id;label\na;pos\n", "are they parted by tabs or semicolons"),
        (b"id,id,label\na,a,pos\n", "is there twice"),
        (b"id,score\na,1\n", "the column"),
    ],
)
def test_headers(tmp_path: Path, run: bytes, said: str) -> None:
    sink = evaluate(tmp_path, run, "run.csv")
    assert sink.findings.invalid and any(code == "F409" and said in text for code, _, text in found(sink))


TABLES = {
    "decimal commas": (
        b'id,label,score\na,pos,1,5\nb,neg,"2,5"\n',
        [
            ("F410", 2, "row 1 has 4 cells, and the header 3; numbers have a decimal point, not a comma"),
            ("F401", 3, 'row 2, column "score": expected a number, found "2,5" (did you mean 2.5?)'),
        ],
    ),
    "blanks and signs": (
        b"id,label,score\na,pos, 1\nb,neg,+2\n3,neg,1e999\n",
        [
            ("F401", 2, 'row 1, column "score": expected a number, found " 1" (did you mean 1?)'),
            ("F401", 3, 'row 2, column "score": expected a number, found "+2" (did you mean 2?)'),
            ("F401", 4, 'row 3, column "score": expected a number, found "1e999"'),
        ],
    ),
    "carriage returns": (
        b"id,label\ra,pos\rb,neg\r",
        [("F411", 1, "the header cannot be read: a carriage return stands in a cell without quotes, or ends the lines")],
    ),
    "text behind quotes": (
        b'id,label\na,pos\nb,"neg"x\n3,neg\n',
        [("F411", 3, "row 2 cannot be read: text stands behind a closing double quote")],
    ),
    "names in capitals": (
        b"ID,label,score\na,pos,1\n",
        [
            ("F409", 1, 'column 1: unknown column "ID" (did you mean "id"?)'),
            ("F409", 1, 'the column "id" is missing'),
        ],
    ),
    "the header again": (
        b"id,label\na,pos\nid,label\nb,neg\n3,neg\n",
        [
            ("F401", 3, 'row 2, column "label": expected one of "pos", "neg", found "label"'),
            ("F406", 3, 'row 2: there is no record "id" in this dataset'),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_tables_that_are_wrong(tmp_path: Path, name: str) -> None:
    run, said = TABLES[name]
    assert [one for one in found(evaluate(tmp_path, run, "run.csv")) if one[1] is not None] == said


def test_tables_as_spreadsheets_and_data_frames_write_them(tmp_path: Path) -> None:
    """Marks, line ends and words of spreadsheets; whole numbers with a point, line ends and quotes in cells; columns in any order."""
    table = (
        b'\xef\xbb\xbfscore,sure,text,label,id\r\n1.0,TRUE,"two\r\nlines, ""quoted""",pos,a\r\n'
        b"2,FALSE,,neg,b\r\n,true,=A1,neg,3\r\n"
    )
    wider = {**SCHEMA, "properties": {**SCHEMA["properties"], "text": {"type": "string"}}}
    sink = evaluate(tmp_path, table, "run.csv", outputs=[{"path": "run.csv", "schema": wider}])
    assert [code for code, _, _ in found(sink)] == ["F118"] and sink.aggregates["accuracy"]["value"] == 1.0
    whole = {"required": ["id", "n"], "properties": {"n": {"type": "integer"}}}
    sink = evaluate(
        tmp_path,
        b"id,n\na,1.0\nb,2.5\n",
        "run.csv",
        outputs=[{"path": "run.csv", "schema": whole}],
        measures={"mae": "MAE(n, truth=score)"},
    )
    assert found(sink)[0] == ("F401", 3, 'row 2, column "n": expected a whole number, found 2.5')


@pytest.mark.parametrize(
    ("name", "run", "said"),
    [
        (
            "run.jsonl",
            b'[{"id":"a","label":"pos"},\n{"id":"b","label":"neg"}]\n',
            "the file is a JSON array; ",
        ),
        ("run.jsonl", json.dumps(GOOD, indent=1).encode(), "the file is a JSON array; "),
        (
            "run.jsonl",
            b"id,label,score\na,pos,1\nb,neg,2\n",
            "the file is CSV: its columns are separated by commas",
        ),
        ("run.json", lines(GOOD), "the file is JSON Lines; "),
        ("run.json", json.dumps(GOOD[0], indent=1).encode(), "the file is a JSON object; "),
    ],
)
def test_files_of_another_format_are_one_finding(tmp_path: Path, name: str, run: bytes, said: str) -> None:
    sink = evaluate(tmp_path, run, name)
    assert [(code, line) for code, line, _ in found(sink)] == [("F030" if name == "run.json" else "F101", 1)]
    assert found(sink)[0][2].startswith(said)


def test_missing_records_are_the_worst_and_are_told(tmp_path: Path) -> None:
    sink = evaluate(tmp_path, lines(GOOD[:1]))
    assert found(sink) == [("F407", None, 'there is no record "b"'), ("F407", None, 'there is no record "3"')]
    assert sink.aggregates["accuracy"] | {"interval": None} == {
        "value": 1 / 3,
        "topics": 3,
        "covered": 1,
        "interval": None,
    }


def test_a_run_without_a_known_id_scores_nothing(tmp_path: Path) -> None:
    sink = evaluate(tmp_path, lines([{"id": "x", "label": "pos"}]))
    assert "F028" in sink.findings.counts and not sink.aggregates


def test_ids_are_those_of_the_inputs_where_the_task_names_them(tmp_path: Path) -> None:
    topics = lines([{"id": "a"}, {"id": "b"}, {"id": "3"}, {"id": "unjudged"}])
    run = lines([*GOOD, {"id": "unjudged", "label": "pos"}])
    sink = evaluate(tmp_path, run, topics=topics)
    assert found(sink) == [] and sink.aggregates["accuracy"]["topics"] == 3


def test_ids_of_hidden_data_are_not_suggested(tmp_path: Path) -> None:
    sink = evaluate(tmp_path, lines([*GOOD, {"id": "A", "label": "pos"}]), public=False)
    assert [text for code, _, text in found(sink) if code == "F406"] == [
        'there is no record "A" in this dataset'
    ]


def test_a_task_can_let_broken_records_count_as_missing(tmp_path: Path) -> None:
    run = lines([GOOD[0], {"id": "b", "label": "NEG"}, GOOD[2], {"id": "x", "label": "pos"}])
    sink = evaluate(tmp_path, run, severities={"F401": "defect", "F406": "warning"})
    assert not sink.findings.invalid and sink.aggregates["accuracy"]["value"] == 2 / 3


def test_several_keys_are_one_id(tmp_path: Path) -> None:
    (tmp_path / "truths").mkdir()
    schema = {"type": "object"}
    run = lines(
        [{"doc": "a/b", "span": {"n": 1}, "label": "x"}, {"doc": "a", "span": {"n": 1}, "label": "x"}]
    )
    for name, data in (("run.jsonl", run), ("truths/t.jsonl", run)):
        (tmp_path / name).write_bytes(data)
    options = {"outputs": [{"path": "run.jsonl", "schema": schema, "id": ["doc", "/span/n"]}]}
    request = Request("records", tmp_path, tmp_path, tmp_path, tmp_path, "run.jsonl", options=options,
                      measures=(MeasureRequest("a", "Accuracy(label)", "t.jsonl"),))  # fmt: skip
    sink = Sink(Log("run.jsonl"))
    KIND.evaluate(tmp_path / "run.jsonl", tmp_path, tmp_path / "truths", request, sink)
    assert [topic for _, topic, _, _ in sink.scores()] == ["a~1b/1", "a/1"]


SECOND = {"path": "spans.csv", "schema": {"type": "object", "required": ["id"]}}


def test_every_output_is_read_and_told_of(tmp_path: Path) -> None:
    outputs = [
        {"path": "run.jsonl", "schema": SCHEMA},
        {**SECOND, "path": "notes.jsonl", "required": False},
        SECOND,
    ]
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
    ("truths", "said"),
    [
        (b'{"id":"a","label":"x"}\n{"id":"a","label":"x"}\n', "truths.jsonl:2: the id a is there twice"),
        (b'{"id":"a"}\n', "truths.jsonl:1: label is not a label"),
        (b'{"label":"a"}\n', "truths.jsonl:1: there is no id"),
        (b"{\n", "truths.jsonl:1"),
        (b"", "no record"),
    ],
)
def test_wrong_truths_are_the_organisers(tmp_path: Path, truths: bytes, said: str) -> None:
    evaluate(tmp_path, lines(GOOD))
    (tmp_path / "truths/other.jsonl").write_bytes(truths)
    request = Request("records", tmp_path, tmp_path, tmp_path, tmp_path, "run.jsonl",
                      options={"outputs": [{"path": "run.jsonl", "schema": SCHEMA}]},
                      measures=(MeasureRequest("a", "Accuracy(label)", "other.jsonl"),))  # fmt: skip
    (tmp_path / "truths/other.jsonl").rename(tmp_path / "truths/truths.jsonl")
    request = request._replace(measures=(MeasureRequest("a", "Accuracy(label)", "truths.jsonl"),))
    with pytest.raises(EvaluatorError) as caught:
        KIND.evaluate(
            tmp_path / "run/run.jsonl", tmp_path, tmp_path / "truths", request, Sink(Log("run.jsonl"))
        )
    assert said in " ".join(caught.value.lines())


def test_a_million_violations_in_one_record_are_one_finding_and_take_no_time(tmp_path: Path) -> None:
    outputs = [{"path": "run.jsonl", "schema": {"properties": {"l": {"items": {"type": "string"}}}}}]
    run = b'{"id":"a","label":"pos","l":[' + b"1," * 1_000_000 + b"1]}\n"
    sink = evaluate(tmp_path, run + run, outputs=outputs)
    assert [text for code, _, text in found(sink) if code == "F401"] == [
        "it does not fit the schema (too large to say where)"
    ] * 2


def test_findings_are_capped_and_counted(tmp_path: Path) -> None:
    sink = evaluate(tmp_path, lines([{"id": f"{n}", "label": 1} for n in range(5_000)]))
    assert sink.findings.counts["F401"] == 5_000 and len(sink.findings.kept) <= 300


@pytest.mark.parametrize("options", [{}, {"outputs": []}, {"outputs": [{"path": "../x", "schema": {}}]}])
def test_wrong_options(tmp_path: Path, options: dict[str, Any]) -> None:
    request = Request("records", tmp_path, tmp_path, tmp_path, tmp_path, "run.jsonl", options=options)
    with pytest.raises(EvaluatorError):
        KIND.check(tmp_path / "run.jsonl", tmp_path, request, Log("run.jsonl"))


def test_the_command_prints_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, data in (
        ("s.json", json.dumps(SCHEMA).encode()),
        ("t.jsonl", lines(TRUTHS)),
        ("o.jsonl", lines(GOOD[:2])),
    ):
        (tmp_path / name).write_bytes(data)
    words = ["records", str(tmp_path / "o.jsonl"), "--schema", str(tmp_path / "s.json")]
    scored = [*words, "--truths", str(tmp_path / "t.jsonl"), "-m", "Accuracy(label)", "-m", "MAE(score)"]
    assert main(scored) == 0
    out, err = capsys.readouterr()
    assert "Accuracy(label)  0.3333" in out and "2 of 3 records answered" in out and "F407" in err
    assert main([*scored, "--json", "-q"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["measures"]["MAE(score)"]["covered"] == 2
    assert {"measure": "Accuracy(label)", "record": "b", "value": 0.0} in said["values"]
    assert main(words) == 0 and "no problems" in capsys.readouterr().out
    (tmp_path / "o.jsonl").write_bytes(BAD)
    assert main(scored) == 1 and "F401 error: /label" in capsys.readouterr().err
    assert main([*words, "-m", "Accuracy(label)"]) == 2
    (tmp_path / "s.json").write_text('{"$ref": "http://x"}')
    assert main(words) == 4


def test_resamples_are_kept_of_what_is_no_mean_of_records(tmp_path: Path) -> None:
    asked = {
        "mean": "Accuracy(label)",
        "macro": "Accuracy(label, macro=label)",
        "median": "MAE(score, rule=median)",
        "f1": "F1(label)",
    }
    found = evaluate(tmp_path, lines(GOOD), measures=asked, interval=True).aggregates
    assert {name for name, one in found.items() if "resamples" in one} == {"macro", "median", "f1"}
