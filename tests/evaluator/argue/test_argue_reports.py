"""Reports in every form, what is wrong with them and where, tracks, requests, limits."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from evaluator.argue import (
    Report,
    Rules,
    length,
    load_reports,
    read_reports,
    read_requests,
    track,
    truncate,
    write_reports,
)
from evaluator.argue.formats.report import as_json, parse_report
from evaluator.argue.formats.requests import character_count, limit_of
from evaluator.argue.formats.tracks import CATEGORIES, names
from evaluator.argue.models import Sentence
from evaluator.codes import CODES
from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from tests.worlds.argue_making import DATA, lines, report, said


def load(path: Path, rules: Rules | None = None, **options: Any) -> tuple[list[Report], Log]:
    log = Log(path.name, rules.track.severities() if rules and rules.track else None)
    return load_reports(path, log, rules, **options), log


def cites(found: Report) -> list[tuple[str, ...]]:
    return [s.citations for s in found.sentences]


def places(log: Log) -> list[tuple[str, int | None]]:
    """Return code and line of every finding."""
    return [(finding.code, finding.line) for finding in log.sorted()]


# --- forms ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "count", "style"),
    [
        ("kiddy-rag/runs/run1.jsonl", 5, "list"),
        ("kiddy-rag/runs/run4.jsonl", 5, "list"),
        ("rag-spot-check/runs/my_best_run_01.jsonl", 1, "list"),
        ("rag-spot-check/runs/my_best_run_02.jsonl", 1, "scores"),
        ("neuclir-report-sample/report-generation-sample.eval.zh.jsonl", 3, "list"),
    ],
)
def test_real_files_have_no_problems(name: str, count: int, style: str) -> None:
    found, log = load(DATA / name)
    assert len(found) == count and said(log) == []
    assert found[0].style == style


def test_real_files_say_what_they_say() -> None:
    kiddy = load(DATA / "kiddy-rag/runs/run1.jsonl")[0][0]
    assert (kiddy.team_id, kiddy.run_id, kiddy.topic_id) == ("teamA", "run1", "leaf")
    chlorophyll = kiddy.documents["Chlorophyll"]
    assert chlorophyll.judged_text == f"Title: Chlorophyll\n\nContent: {chlorophyll.text}"
    spot = load(DATA / "rag-spot-check/runs/my_best_run_02.jsonl")[0][0]
    assert cites(spot) == [(), ("279",), ()] and spot.sentences[1].scores == {"279": 0.7}
    reference = load(DATA / "neuclir-report-sample/report-generation-sample.eval.zh.jsonl")[0]
    assert [(r.topic_id, len(r.sentences)) for r in reference] == [("253", 5), ("264", 5), ("269", 6)]
    assert reference[0].collection_ids == ("neuclir/1/zho",) and reference[0].run_id == "reference"


FORMS: dict[str, dict[str, Any]] = {
    "list": report(sentences=[("a", ["d1", "d2"]), ("b", [])]),
    "scores": report(sentences=[("a", {"d1": 0.5, "d2": 90}), ("b", {})], references=["d1"]),
    "positions": {
        "metadata": {"team_id": "team", "run_id": "run", "narrative_id": 7, "narrative": "n"},
        "answer": [{"text": "a", "citations": [1, 0]}, {"text": "b", "citations": []}],
        "references": ["d2", "d1"],
    },
    "TREC RAG 2024": {
        "team_id": "team", "run_id": "run", "topic_id": "t1", "topic": "n", "response_length": 2,
        "answer": [{"text": "a", "citations": [1, 0]}, {"text": "b", "citations": []}],
        "references": ["d2", "d1"],
    },
    "old": {
        "request_id": "t1", "run_id": "run", "collection_ids": ["c"],
        "sentences": [{"text": "a", "citations": ["d1", "d2"]}, {"text": "b", "citations": []}],
    },
    "reference": {"request_id": "t1", "collection_ids": ["c"], "report": [["a", ["d1", "d2"]], ["b", []]]},
    "no references": {k: v for k, v in report(sentences=[("a", ["d1", "d2"]), ("b", [])]).items() if k != "references"},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_one_model(form: str) -> None:
    found = Report.model_validate(FORMS[form])
    assert cites(found) == [("d1", "d2"), ()]
    assert [s.text for s in found.sentences] == ["a", "b"]
    assert found.topic_id == ("7" if form == "positions" else "t1")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("style", ["list", "scores", "index"])
def test_what_is_written_is_valid_and_says_the_same(form: str, style: Any) -> None:
    found = Report.model_validate(FORMS[form])
    written = as_json(found, style=style)
    # The old forms have no team, which the schema demands.
    assert schemas.validate(written, "argue-report") == [] or form in ("old", "reference")
    metadata = written["metadata"] | {"team_id": found.team_id or "x"}
    again = Report.model_validate(written | {"metadata": metadata})
    assert cites(again) == cites(found) and again.topic_id == found.topic_id
    assert len({type(row["citations"]) for row in written["responses"]}) == 1


def test_scores_are_written_only_if_every_citation_has_one(tmp_path: Path) -> None:
    mixed = report(sentences=[("a", ["d1", 1]), ("b", {"d2": 3})], references=["d1", "d2"])
    found, log = load(lines(tmp_path / "r.jsonl", mixed))
    assert cites(found[0]) == [("d1", "d2"), ("d2",)]
    assert places(log) == [("F328", 1)] and not log.invalid
    write_reports(found, tmp_path / "out.jsonl", style="scores")
    assert json.loads((tmp_path / "out.jsonl").read_text())["responses"][1]["citations"] == ["d2"]
    for form, expected in (("scores", {"d1": 0.5, "d2": 90}), ("list", ["d1", "d2"])):
        written = as_json(Report.model_validate(FORMS[form]), style="scores")
        assert written["responses"][0]["citations"] == expected


def test_citations_that_mean_the_same_are_one(tmp_path: Path) -> None:
    found, log = load(lines(tmp_path / "r.jsonl", report(sentences=[("a", ["d1", "d2", "d1"])])))
    assert cites(found[0]) == [("d1", "d2")] and places(log) == [("F327", 1)]
    assert Report.model_validate(report(sentences=[("a", {})])).sentences == (Sentence("a"),)


# --- what is wrong, and where --------------------------------------------------------------------------------


def without(data: dict[str, Any], *path: str) -> dict[str, Any]:
    copy = json.loads(json.dumps(data))
    node = copy
    for key in path[:-1]:
        node = node[key]
    del node[path[-1]]
    return copy


BROKEN: dict[str, tuple[Any, str]] = {
    "trailing comma": ('{"metadata": {},}', "F301"),
    "key twice": ('{"a": 1, "a": 2}', "F301"),
    "NaN": ('{"metadata": NaN}', "F301"),
    "deep": ("[" * 100 + "]" * 100, "F301"),
    "not UTF-8": (b'{"a": "\xff"}', "F301"),
    "a list": ([1], "F302"),
    "text": ('"x"', "F302"),
    "no metadata": (without(report(), "metadata"), "F303"),
    "metadata of text": (report(metadata="x"), "F303"),
    "no topic": (without(report(), "metadata", "topic_id"), "F303"),
    "no run": (without(report(), "metadata", "run_id"), "F303"),
    "no team": (without(report(), "metadata", "team_id"), "F303"),
    "run of a number": (report(metadata={"team_id": "a", "run_id": 3, "topic_id": "t"}), "F303"),
    "two topics": (report(metadata={"team_id": "a", "run_id": "r", "topic_id": "t", "narrative_id": 3}),
                   "F304"),
    "no responses": (without(report(), "responses"), "F305"),
    "both keys": (report(answer=[]), "F305"),
    "responses of text": (report(responses="x"), "F305"),
    "no text": (report(responses=[{"citations": []}]), "F306"),
    "a bare sentence": (report(responses=["x"]), "F306"),
    "no citations": (report(responses=[{"text": "x"}]), "F307"),
    "citations of text": (report(sentences=[("a", "d1")]), "F307"),
    "citation null": (report(sentences=[("a", [None])]), "F307"),
    "citation true": (report(sentences=[("a", [True])]), "F307"),
    "citation blank": (report(sentences=[("a", [" "])]), "F307"),
    "position": (report(sentences=[("a", [2])], references=["d1", "d2"]), "F308"),
    "negative position": (report(sentences=[("a", [-1])], references=["d1"]), "F308"),
    "position of nothing": (without(report(sentences=[("a", [0])]), "references"), "F308"),
    "score of text": (report(sentences=[("a", {"d1": "0.5"})]), "F309"),
    "score true": (report(sentences=[("a", {"d1": True})]), "F309"),
    "references of text": (report(references="d1"), "F338"),
    "reference of a number": (report(references=[1]), "F338"),
    "control character": (report(sentences=[("a", ["d\n1"])]), "F333"),
    "long id": (report(sentences=[("a", ["d" * 600])]), "F333"),
    "documents": (report(documents=[]), "F336"),
    "document": (report(documents={"d1": {"title": "x"}}), "F336"),
    "empty": (report(responses=[]), "F314"),
    "blank": (report(sentences=[(" ", []), ("a", []), ("", [])]), "F315"),
    "all blank": (report(sentences=[(" ", [])]), "F314"),
}  # fmt: skip


def load_with(broken: Any, path: Path) -> tuple[list[Report], Log]:
    """Load a file whose second line is ``broken``."""
    raw = broken if isinstance(broken, str | bytes) else json.dumps(broken)
    raw = raw.encode() if isinstance(raw, str) else raw
    first, last = (json.dumps(report(topic)).encode() for topic in ("first", "last"))
    path.write_bytes(b"\n".join((first, raw, last)))
    return load(path)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_line_is_reported_and_the_rest_is_read(name: str, tmp_path: Path) -> None:
    broken, code = BROKEN[name]
    found, log = load_with(broken, tmp_path / "r.jsonl")
    assert (code, 2) in places(log)
    assert all(line == 2 or other == "F332" for other, line in places(log))
    assert {"first", "last"} <= {r.topic_id for r in found}
    assert log.invalid == any(CODES[c].severity == "error" for c in log.counts)
    assert log.lines == 3


def test_messages_of_findings_in_reports(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    logs = {name: load_with(broken, tmp_path / "r.jsonl")[1] for name, (broken, _) in BROKEN.items()}
    texts = [f"{name}\n" + "".join(f"  {line}\n" for line in said(log)) for name, log in logs.items()]
    # The reason is a text of the interpreter.
    golden("argue-findings.txt", re.sub(r"not JSON \(.*?\)", "not JSON (REASON)", "".join(texts)))


def test_all_problems_of_a_report_are_said_at_once() -> None:
    data = report(responses=[{"text": 1}, {"text": "a", "citations": [7]}])
    with pytest.raises(ValueError) as caught:
        Report.model_validate(data)
    assert "F306" in str(caught.value) and "F308" in str(caught.value)
    with pytest.raises(ValueError) as caught:
        Report.model_validate_json("{")
    assert "F301" in str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"\n\n")
    (tmp_path / "link").symlink_to("empty")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(json.dumps(report()).encode() * 50)[:60])
    for name, code in (("empty", "F001"), ("nothing", "F002"), ("link", "F002"), ("cut.gz", "F003")):
        assert places(load(tmp_path / name)[1]) == [(code, None)]
    assert "F004" in load(lines(tmp_path / "large", report()), max_bytes=10)[1].counts
    path = lines(tmp_path / "run.txt", *["an answer in words"] * 5000)
    assert load(path)[1].counts == {"F301": 1000, "F335": 1}


def test_a_byte_order_mark_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(report()).encode())
    found, log = load(tmp_path / "r.jsonl")
    assert len(found) == 1 and places(log) == [("F331", 1)] and not log.invalid


def test_a_long_line_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator.argue.formats.report.MAX_LINE", 2000)
    monkeypatch.setattr("schemas.jsonl.BLOCK", 700)
    path = lines(tmp_path / "r.jsonl", report("a"), report("b", [("x" * 3000, [])]), report("c"))
    found, log = load(path)
    assert [r.topic_id for r in found] == ["a", "c"] and [r.line for r in found] == [1, 3]
    assert places(log) == [("F330", 2)]


def test_many_duplicates_take_no_time() -> None:
    ids = [f"d{i}" for i in range(200_000)]
    told: list[str] = []
    parse_report(report(sentences=[("a", [*ids, ids[-1]])]), lambda code, _: told.append(code))
    assert told == ["F327", "F333"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["metadata", "responses", "answer", "text", "citations", "references", "documents", "topic_id",
                         "run_id", "team_id", "request_id", "sentences", "report", "narrative_id"]), inner, max_size=4),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=300)
@given(JSON)
def test_any_json_is_a_report_or_has_problems(data: Any) -> None:
    told: list[tuple[str, str]] = []
    found = parse_report(data, lambda code, message: told.append((code, message)))
    assert found is not None or told
    assert all(code in CODES and message.isprintable() for code, message in told)
    if found is not None and not any(CODES[c].severity == "error" for c, _ in told):
        again = parse_report(as_json(found), lambda *_: None)
        assert again is None or [s.text for s in again.sentences] == [s.text for s in found.sentences]


@settings(max_examples=100)
@given(st.binary(max_size=300))
def test_any_bytes_are_read(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(raw)
    found, log = load(path)
    assert found or log.counts


# --- topics, documents, runs ---------------------------------------------------------------------------------


def test_topics_documents_and_runs(tmp_path: Path) -> None:
    other = report("2", [("a", ["d1", "nope", "none"])])
    other["metadata"]["run_id"] = "other"
    path = lines(tmp_path / "r.jsonl", report("1"), report("1"), report("01"), other)
    rules = Rules(topics={"1": None, "2": None, "3": None}, documents={"d1"}, suggest=True)
    found, log = load(path, rules)
    assert [r.topic_id for r in found] == ["1", "2"]
    assert places(log) == [("F310", 2), ("F311", 3), ("F312", None), ("F313", 4), ("F332", 4)]
    values = ['"1"', '"01"', '"3"', '"nope"', '"other"']
    assert all(value in text for value, text in zip(values, said(log), strict=True))
    assert said(log)[1].count('"1"') == 1  # the topic that was probably meant
    assert log.invalid and (log.answered, log.tag) == (3, b"run")


def test_carried_documents_exist_only_if_the_task_trusts_them(tmp_path: Path) -> None:
    path = lines(tmp_path / "r.jsonl", report(documents={"d1": {"text": "made up"}}))
    assert "F313" in load(path, Rules(documents=set()))[1].counts
    assert "F313" not in load(path, Rules(documents=set(), carried=True))[1].counts


# --- tracks --------------------------------------------------------------------------------------------------

SEGMENT = "msmarco_v2.1_doc_01_123#4_567"
UUID = "0b3cbd0e-7d58-4a3b-9d60-1b1f0b0a7e11_3"
RAG: dict[str, Any] = {
    "metadata": {"team_id": "t", "run_id": "r", "type": "automatic", "narrative_id": 1, "narrative": "N"},
    "answer": [{"text": "a b c", "citations": [0]}], "references": [SEGMENT],
}  # fmt: skip
RAG26 = RAG | {"metadata": RAG["metadata"] | {"run_desc": "d"}, "references": ["shard_00_123"]}
TIME: dict[str, Any] = {
    "metadata": {"team_id": "t", "run_id": "r", "topic_id": "1", "task": "english", "run_desc": "d"},
    "responses": [{"text": "a b c", "citations": {UUID: 9.5}}], "references": [UUID],
}  # fmt: skip
DRAGUN: dict[str, Any] = {
    "metadata": {"team_id": "t", "run_id": "r", "topic_id": "1", "type": "automatic", "use_starter_kit": 0},
    "responses": [{"text": "a b c", "citations": [SEGMENT]}],
}  # fmt: skip
GOOD = {"rag25": RAG, "rag26": RAG26, "ragtime25": TIME, "ragtime26": TIME, "dragun25": DRAGUN}
REQUEST = {"request_id": "1", "title": "N", "limit": 10}


def on_track(name: str, data: dict[str, Any], tmp_path: Path) -> dict[str, str]:
    """The findings of one report on a track, with their severities."""
    topics = read_requests(lines(tmp_path / "topics.jsonl", REQUEST))
    _, log = load(lines(tmp_path / "r.jsonl", data), Rules(track=track(name), topics=topics))
    return {code: log.severity[code] for code in log.counts}


@pytest.mark.parametrize("name", names())
def test_good_reports_of_tracks(name: str, tmp_path: Path) -> None:
    assert on_track(name, GOOD[name], tmp_path) == {}


def changed(data: dict[str, Any], **more: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(data))
    copy["metadata"].update(more.pop("metadata", {}))
    return {k: v for k, v in (copy | more).items() if v is not None}


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("rag26", changed(RAG26, answer=[{"text": "w " * 1025, "citations": []}], references=[]), {"F317": "error"}),
        ("rag25", changed(RAG, answer=[{"text": "w " * 401, "citations": []}], references=[]), {"F317": "warning"}),
        ("ragtime25", changed(TIME, responses=[{"text": "12345678901", "citations": {UUID: 1}}]), {"F317": "warning"}),
        ("dragun25", changed(DRAGUN, responses=[{"text": "w " * 251, "citations": []}]), {"F317": "error"}),
        ("rag26", changed(RAG26, metadata={"run_id": "r" * 21}), {"F325": "error"}),
        ("rag25", changed(RAG, metadata={"run_id": "r" * 99}), {}),
        ("rag25", changed(RAG, references=[SEGMENT, SEGMENT[:-1]]), {"F322": "warning"}),
        ("rag25", changed(RAG, answer=[{"text": "a", "citations": [SEGMENT, SEGMENT[:-1]]}]), {"F321": "error"}),
        ("rag25", changed(RAG, references=[SEGMENT, *(f"{SEGMENT}{i}" for i in range(100))]), {"F322": "warning", "F323": "error"}),
        ("rag25", changed(RAG, references=[SEGMENT, SEGMENT]), {"F320": "error"}),
        ("rag25", changed(RAG, answer=[{"text": "a", "citations": [SEGMENT]}], references=None), {"F319": "error"}),
        ("ragtime25", changed(TIME, references=None), {"F319": "warning"}),
        ("ragtime25", changed(TIME, references=[]), {"F321": "warning"}),
        ("ragtime25", changed(TIME, references=[UUID, UUID + "1"]), {"F322": "error"}),
        ("ragtime26", changed(TIME, references=["x"]), {}),
        ("ragtime26", changed(TIME, responses=[{"text": "a", "citations": {f"{UUID}/and/more": 1}}]), {}),
        ("ragtime25", changed(TIME, metadata={"task": None}), {"F324": "warning"}),
        ("ragtime26", changed(TIME, responses=[{"text": "a", "citations": {f"{UUID}{i}": 1 for i in range(4)}}]), {"F316": "warning"}),
        ("ragtime26", changed(TIME, responses=[{"text": "a", "citations": ["x1"]}]), {"F318": "error"}),
        ("dragun25", changed(DRAGUN, responses=[{"text": "a", "citations": {SEGMENT: 1}}]), {"F307": "error"}),
        ("dragun25", changed(DRAGUN, metadata={"use_starter_kit": None}), {"F303": "error"}),
        ("dragun25", changed(DRAGUN, responses=None, answer=DRAGUN["responses"]), {"F337": "error"}),
        ("rag25", changed(RAG, metadata={"narrative": "other"}), {"F326": "error"}),
        ("rag25", changed(RAG, answer=[{"text": "", "citations": [9]}]), {"F308": "error", "F314": "error"}),
        ("rag25", changed(RAG, metadata={"narrative_id": 2}), {"F311": "error", "F312": "error"}),
    ],
)  # fmt: skip
def test_rules_of_tracks(name: str, data: dict[str, Any], expected: dict[str, str], tmp_path: Path) -> None:
    assert on_track(name, data, tmp_path) == expected


def test_tracks_are_data(tmp_path: Path) -> None:
    assert names() == ["dragun25", "rag25", "rag26", "ragtime25", "ragtime26"]
    warnings = schemas.schema("argue-track")["properties"]["warnings"]["items"]["enum"]
    assert set(warnings) == set(CATEGORIES) and set(CATEGORIES.values()) <= set(CODES)
    with pytest.raises(EvaluatorError) as caught:
        track("ragtime27")
    assert '"ragtime2' in caught.value.fix
    tracks = Path(schemas.__file__).parents[1] / "evaluator/argue/formats/tracks.json"
    own = json.loads(tracks.read_text())["dragun25"]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(own | {"max_citations": 1, "length": None}))
    assert track(str(path)).max_citations == 1 and track(str(path)).length_limit is None
    wrong = {"max_citations": "1", "x": 1, "warnings": ["y"], "citations": []}
    path.write_text(json.dumps(own | wrong))
    with pytest.raises(EvaluatorError) as caught:
        track(str(path))
    assert all(f'"{key}"' in caught.value.why for key in wrong)
    path.write_text(json.dumps(own | {"document_pattern": "("}))
    with pytest.raises(EvaluatorError):
        track(str(path))


# --- requests and limits -------------------------------------------------------------------------------------


def test_length_is_of_the_joined_normal_form() -> None:
    assert length(["ab", "c"]) == 4  # one space between
    assert length(["ﬁ", "Å"]) == 4  # the ligature becomes two characters
    assert length(["A\u030a"]) == 1
    assert length(["a  b", "c d"], "words") == 4
    assert character_count(["ab", "c"]) == 3 and length([]) == 0


def test_truncation_is_at_the_end_of_a_sentence() -> None:
    whole = Report.model_validate(report(sentences=[("12345", []), ("12345", []), ("1", [])]))
    kept = {limit: len(truncate(whole, limit).sentences) for limit in (4, 5, 10, 11, 12, 13, 14)}
    assert kept == {4: 0, 5: 1, 10: 1, 11: 2, 12: 2, 13: 3, 14: 3}
    assert truncate(whole, 13) is whole
    long = Report.model_validate(report(sentences=[("a", []), ("b" * 3000, []), ("c", [])]))
    assert [s.text for s in truncate(long).sentences] == ["a"]  # nothing after what is too long
    assert len(truncate(whole, 2, "words").sentences) == 2


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=6), max_size=8), st.integers(0, 40))
def test_truncation_keeps_the_longest_beginning(texts: list[str], limit: int) -> None:
    made = Report("t", "r", tuple(Sentence(t) for t in texts))
    kept = [s.text for s in truncate(made, limit).sentences]
    assert kept == texts[: len(kept)] and length(kept) <= limit
    assert len(kept) == len(texts) or length(texts[: len(kept) + 1]) > limit


def test_requests(tmp_path: Path) -> None:
    real = read_requests(DATA / "neuclir-report-sample/report-generation-sample.request.zh.jsonl")
    assert list(real) == ["253", "264", "269"] and limit_of(real["253"]) == (500, "characters")
    kiddy = read_requests(DATA / "kiddy-rag/kiddie-topics.jsonl")
    assert kiddy["leaf"].title.split()[-1] == "chlorophyll" and limit_of(kiddy["leaf"]) is None
    assert list(read_requests(DATA / "rag-spot-check/queries.jsonl")) == ["28"]
    words = read_requests(lines(tmp_path / "w.jsonl", {"request_id": 5, "word_limit": 3}))
    assert limit_of(words["5"]) == (3, "words")


def test_every_problem_of_requests_is_said(tmp_path: Path) -> None:
    bad = ({"request_id": "1"}, {"title": "x"}, "[]", "{", {"request_id": "2", "limit": "500", "title": 3})
    with pytest.raises(EvaluatorError) as caught:
        read_requests(lines(tmp_path / "topics.jsonl", {"request_id": "1"}, *bad))
    assert re.findall(r"topics\.jsonl:(\d)", caught.value.why) == ["2", "3", "4", "5", "6", "6"]
    assert '"1"' in caught.value.why and '"500"' in caught.value.why


def test_over_length_is_a_warning_without_a_track(tmp_path: Path) -> None:
    path = lines(tmp_path / "r.jsonl", report("1", [("123456", []), ("1234567", [])]))
    topics = read_requests(lines(tmp_path / "topics.jsonl", REQUEST))
    _, log = load(path, Rules(topics=topics))
    assert places(log) == [("F317", 1)] and not log.invalid
    assert re.findall(r"\d+", log.sorted()[0].message) == ["14", "10"]
    assert not load(path, Rules(topics={"1": None}))[1].counts
    assert "F317" in load(path, Rules(limit=(1, "words")))[1].counts


def test_reading_is_lazy(tmp_path: Path) -> None:
    path = lines(tmp_path / "r.jsonl", report("1"), "{")
    log = Log("r")
    assert next(read_reports(path, log)).topic_id == "1" and not log.counts


def test_every_code_of_reports_is_tested() -> None:
    here = Path(__file__).read_text("utf-8")
    missing = [code for code in CODES if "F300" < code < "F340" and code not in here]
    assert not missing


@pytest.mark.parametrize("between", ["\u2800", "\u3164", "\u200b", "\u200d"])
def test_words_of_reports_are_what_a_reader_sees(between: str, tmp_path: Path) -> None:
    text = between.join(["word"] * 200)
    assert length((text,), "words") == 200
    path = lines(tmp_path / "r.jsonl", report(sentences=[(text, [])]))
    found, log = load(path, Rules(limit=(100, "words")))
    assert "F317" in log.counts and truncate(found[0], 100, "words").sentences == ()
    blank = report(sentences=[(between * 3, ["d1"])])
    assert "F314" in load(lines(tmp_path / "b.jsonl", blank))[1].counts
