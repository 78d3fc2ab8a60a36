"""The kind report: flow, options, limits, missing topics, and that its figures are those of the scoring command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import schemas
from evaluator.__main__ import main
from evaluator.argue.scoring.measures import COUNTS, NEGATION_COUNTS, STRICT_COUNTS, parse_measure
from evaluator.commands.runs import run_request
from evaluator.kinds.report.kind import KIND
from tests.worlds.report_world import GOOD, NUGGETS, RATIOS, Said, World, lines, report, reports, v3

HUMAN = {"type": "human", "labels": "judgments"}


def segment(
    text: str, *cited: tuple[str, bool, bool, dict[str, list[str]]], required: Any = None
) -> dict[str, Any]:
    """A judged sentence: (document, relevant, attested, matched answers by question) for each citation."""

    def judgment(kind: str, doc: str | None = None, **response: Any) -> dict[str, Any]:
        where = {"doc_id": doc, "sentence": None, "run_id": None, "sent_id": None}
        type_id = {"judgment_type_id": kind}
        return {**type_id, "response": {**type_id, **response}, "evaluator": "people", "provenance": where}

    made = []
    for doc, relevant, attested, matches in cited:
        found = [{"question_text": q, "matched_answer": a, "importance": None} for q, a in matches.items()]
        made.append(judgment("CITED_DOCUMENT_RELEVANCE", doc, doc_id=doc, is_relevant=relevant))
        made.append(judgment("SENTENCE_ANSWERS_QUESTION", doc, matched_nuggets=found))
        made.append(judgment("SENTENCE_ATTESTED", doc, is_attested=attested))
    if required is not None:
        made.append(judgment("REQUIRES_CITATION", requires_citation=required))
        if required:
            made.append(judgment("FIRST_INSTANCE", is_first_instance=True))
    citations = [{"doc_id": doc, "text": "text"} for doc, *_ in cited]
    return {"segment_type": "sentence", "text": text, "citations": citations, "judgments": made}


WHEN, BUILT = "When was the bridge opened?", "What is known about its building?"
LONG = "How long does the crossing take?"
UNSUPPORTED = ("bridge", True, False, {})
# What people say about the reports below: everything that can happen to a sentence happens once.
JUDGED = {
    "1": [
        segment("Opened in 1901.", ("bridge", True, True, {WHEN: ["1901"]})),
        segment("Twelve arches.", ("cost", True, True, {BUILT: ["twelve arches"]}), UNSUPPORTED),
        segment("Bees.", ("bees", False, True, {})),
        segment("It was a great day.", required=True),
        segment("This is a report.", required=False),
    ],
    "2": [segment("Nine minutes.", ("ferry", True, False, {LONG: ["nine minutes"]}))],
}
WRITTEN = {
    topic: [(s["text"], [c["doc_id"] for c in s["citations"]]) for s in segments]
    for topic, segments in JUDGED.items()
}


def people(world: World, judged: dict[str, Any] | None = None, name: str = "a.jsonl") -> None:
    folder = world.truths / "judgments"
    folder.mkdir(exist_ok=True)
    rows = [
        {"request_id": topic, "run_id": "someone", "collection_ids": [], "segments": segments}
        for topic, segments in (JUDGED if judged is None else judged).items()
    ]
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def notes(said: Said) -> dict[str, dict[str, Any]]:
    """Return the notes beside the scores by their kinds."""
    return {note["kind"]: note for note in said.result["note_details"]}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path)


@pytest.fixture
def judged(world: World) -> World:
    people(world)
    return world


def test_figures_are_those_worked_out_by_hand(judged: World) -> None:
    said = judged.evaluate(reports(WRITTEN), judge=HUMAN)
    assert said.result["status"] == "valid", said.result
    # Topic 1: 4 citations, 3 relevant, 3 supporting; 4 sentences count, 2 are right; 2 nuggets, 1 of them (vital).
    assert said.by_topic("citation_relevance@macro") == {"1": 3 / 4, "2": 1.0, "3": 0.0}
    assert said.by_topic("citation_support@macro") == {"1": 3 / 4, "2": 0.0, "3": 0.0}
    assert said.by_topic("sentence_support@macro") == {"1": 2 / 4, "2": 0.0, "3": 0.0}
    assert said.by_topic("nugget_coverage@macro") == {"1": 1 / 2, "2": 0.0, "3": 0.0}
    assert said.by_topic("nugget_coverage_weighted@macro") == {"1": 2 / 3, "2": 0.0, "3": 0.0}
    assert said.value("nugget_coverage@macro") == (1 / 2) / 3
    assert said.value("nugget_coverage@micro") == 1 / 4
    assert said.value("nugget_coverage_weighted@micro") == 2 / 6
    assert said.value("sentence_support@micro") == 2 / 5
    assert said.value("citation_support@micro") == 3 / 5
    one = said.result["measures"]["f1@macro"]
    assert (one["topics"], one["covered"]) == (3, 2) and one["interval"] is not None
    assert said.result["measures"]["f1@micro"]["interval"] is None
    assert said.codes == ["F312"]
    assert notes(said)["reports-missing"] == {"kind": "reports-missing", "missing": 1, "topics": 3}


def test_every_reward_and_penalty_is_explained(judged: World) -> None:
    said = judged.evaluate(reports(WRITTEN), judge=HUMAN)
    assert said.effects("1", 1) == ["supported", "nugget"]
    assert said.effects("1", 2) == ["unsupported", "nugget-part"]
    assert said.effects("1", 3) == ["supported", "irrelevant", "no-nugget"]
    assert said.effects("1", 4) == ["missing-citation"]
    assert said.effects("1", 5) == ["no-citation-needed"]
    assert said.effects("2", 1) == ["unsupported", "match-unsupported"]
    assert [(d["topic"], d["answered"]) for d in said.details] == [("1", True), ("2", True), ("3", False)]
    nuggets = {n["question"]: n for n in said.details[0]["nuggets"]}
    assert set(nuggets) == {WHEN, BUILT}, "a nugget without attested answers does not count"
    assert nuggets[WHEN]["correct"] and not nuggets[BUILT]["correct"]
    assert [a["given"] for a in nuggets[BUILT]["answers"]] == [False, True]


def test_the_figures_are_those_of_the_scoring_command(
    judged: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """One computation: the same judgments give the same figures through the task and through evaluator argue score."""
    said = judged.evaluate(reports(WRITTEN), judge=HUMAN)
    prefix = judged.root / "scored"
    files = [judged.run / "reports.jsonl", judged.truths / "nuggets", prefix]
    stored = ["--judgments", str(judged.truths / "judgments" / "a.jsonl")]
    command = ["argue", "score", *map(str, files), *stored, "--penalize-missing-topics"]
    assert main(command) == 0, capsys.readouterr().err
    rows = prefix.with_name("scored.scores.tsv").read_text().splitlines()[1:]
    table = {(topic, metric): float(value) for _, topic, metric, value in (row.split("\t") for row in rows)}
    for name in RATIOS:
        for join in ("macro", "micro"):
            assert said.value(f"{name}@{join}") == table["all", f"{name}_{join}"], name
        assert said.by_topic(f"{name}@macro") == {t: table[t, name] for t in ("1", "2", "3")}, name


@pytest.mark.parametrize("credit", ["citation", "sentence", "none"])
def test_credit_decides_which_matches_count(judged: World, credit: str) -> None:
    said = judged.evaluate(reports(WRITTEN), judge=HUMAN, credit=credit)
    assert said.by_topic("nugget_coverage@macro")["1"] == 1 / 2
    assert said.by_topic("nugget_coverage@macro")["2"] == (1.0 if credit == "none" else 0.0)
    both = {**JUDGED, "1": [*JUDGED["1"]]}
    matched = {BUILT: ["twelve arches", "two million crowns"]}
    both["1"][1] = segment("Twelve arches.", ("cost", True, True, matched), UNSUPPORTED)
    people(judged, both)
    said = judged.evaluate(reports(WRITTEN), judge=HUMAN, credit=credit)
    assert said.by_topic("nugget_coverage@macro")["1"] == (1 / 2 if credit == "sentence" else 1.0)


def test_missing_topics_may_be_left_out(judged: World) -> None:
    said = judged.evaluate(reports(WRITTEN), judge=HUMAN, penalize_missing_topics=False)
    assert set(said.by_topic("f1@macro")) == {"1", "2"}
    assert said.value("nugget_coverage@macro") == 1 / 4 and said.value("nugget_coverage@micro") == 1 / 3
    assert notes(said)["reports-left-out"]["missing"] == 1


def test_topics_and_lines_that_were_not_judged_are_named(world: World) -> None:
    def named(rows: list[Any], **options: Any) -> list[str]:
        """Return the codes and numbers of the note."""
        note = notes(world.evaluate(rows, **options)).get("reports-not-judged", {"named": ""})
        return re.findall(r"F\d+|\d+", note["named"])

    ferry = report("2", [("The ferry takes nine minutes.", ["ferry"])])
    assert named(reports()) == []
    assert named([ferry]) == named([ferry], penalize_missing_topics=False) == ["1", "3"]
    dear = report("1", [("The bridge was opened in 1901.", ["bridge"])] * 50)
    assert named([dear, ferry], max_questions=20) == ["F340", "1", "1", "3"]  # topic 1 in line 1; topic 3
    lenient = {"F310": "warning", "F301": "warning"}
    path = world.request({}, severities=lenient, visibility="public")
    (world.truths / "nuggets" / "nuggets_3.v3.json").unlink()
    lines(world.run / "reports.jsonl", [*reports(), report("1", [("Again.", [])]), "{"])
    assert run_request(path) == 0
    (note,) = json.loads((path.parent / "result.json").read_text())["note_details"][1:]
    assert re.findall(r"F\d+|\d+", note["named"]) == ["F310", "1", "4", "F301", "5", "3"]
    (note,) = world.evaluate(reports()).result["note_details"][1:]  # which topics have nuggets is a truth
    assert note["named"].endswith(": 1 report")
    many = {str(n): {} for n in range(1, 40)}
    world.requests(many)
    for n in range(3, 40):
        bank = v3(str(n), {"Why?": ("OR", {"because": ["bees"]})})
        (world.truths / "nuggets" / f"nuggets_{n}.v3.json").write_text(json.dumps(bank))
    assert named([ferry])[-1] == "18"


def test_a_defect_counts_0_where_missing_topics_are_left_out(world: World) -> None:
    dear = [("The bridge was opened in 1901.", ["bridge"])] * 50
    rows = [report("1", dear), report("2", [("The ferry takes nine minutes.", ["ferry"])])]
    for penalize, topics in ((True, {"1", "2", "3"}), (False, {"1", "2"})):
        said = world.evaluate(rows, max_questions=20, penalize_missing_topics=penalize)
        assert "F340" in said.codes and set(said.by_topic("f1@macro")) == topics
        assert said.by_topic("f1@macro")["1"] == 0.0


def test_reports_are_cut_at_the_end_of_a_sentence(world: World) -> None:
    sentences = [("The bridge was opened in 1901.", ["bridge"]), ("It has twelve arches.", ["cost"])]
    whole = len(" ".join(text for text, _ in sentences))
    for limit, kept in ((whole, 2), (whole - 1, 1)):
        world.requests({"1": {"limit": limit}, "2": {}, "3": {}})
        said = world.evaluate([report("1", sentences)])
        (detail,) = (d for d in said.details if d["topic"] == "1")
        assert (len(detail["sentences"]), detail["cut"]) == (kept, 2 - kept)
        assert (kept == 2) == ("F317" not in said.codes)
    assert (notes(said)["reports-cut"]["cut"], notes(said)["reports-cut"]["reports"]) == (1, 1)
    (message,) = (f["message"] for f in said.findings if f["code"] == "F317")
    assert [*map(int, re.findall(r"\d+", message))] == [whole, whole - 1, 1, 2]
    said = world.evaluate([report("1", sentences)], truncate=False)
    assert len(said.details[0]["sentences"]) == 2
    world.requests({"1": {}, "2": {}, "3": {}})
    assert len(world.evaluate(limit=6, length="words").details[0]["sentences"]) == 1
    assert len(world.evaluate(limit=10, length="words").details[0]["sentences"]) == 2


def test_tracks_have_rules_of_their_own(world: World) -> None:
    rows = reports()
    rows[0]["responses"][0]["citations"] = ["bridge", "cost", "bees", "crew"]
    plain = world.evaluate(rows)
    assert plain.result["status"] == "valid" and "F316" not in plain.codes
    said = world.evaluate(rows, track="ragtime25")
    # Four citations are a smell there; document ids that look otherwise are an error.
    assert {"F316", "F318"} <= set(said.codes) and said.result["status"] == "invalid"
    assert not said.rows and "details.jsonl" not in said.files
    assert "ragtime1999" in world.refused(track="ragtime1999")


def test_the_checker_needs_no_truths(world: World) -> None:
    import shutil

    shutil.rmtree(world.truths)
    assert world.check(reports()) == []
    rows = [report("1", [("A.", ["nowhere"])]), report("4", [("A.", [])]), "{", report("1", [("B.", [])])]
    assert world.check(rows) == ["F311:2", "F301:3", "F310:4", "F312:None", "F312:None", "F313:1"]


def test_invalid_runs_have_no_scores(world: World) -> None:
    said = world.evaluate([*reports(), report("1", [("Again.", [])])])
    assert said.result["status"] == "invalid" and said.codes == ["F310"]
    assert said.rows == [] and said.details == [] and said.result["measures"] == {}


def test_reports_that_say_nothing_score_0(world: World) -> None:
    said = world.evaluate(
        [report("1", []), report("2", [("  ", [])]), report("3", [("The crew is four.", ["crew"])])]
    )
    assert said.result["status"] == "valid" and said.by_topic("sentence_support@macro")["1"] == 0.0
    assert {"F314"} <= set(said.codes)
    empty = world.evaluate([])
    assert empty.result["status"] == "invalid", "a file without any report is no run"


def test_strict_and_negation_are_figures_of_their_own(tmp_path: Path) -> None:
    world = World.make(tmp_path, "nugget_coverage_strict", "f1_strict", "correct_nuggets_strict", "f1_negation",
                       "negative_assertions")  # fmt: skip
    rows = reports({**GOOD, "1": [*GOOD["1"], ("The bridge was opened in 1910.", ["bridge"]),
                                  ("It is not known who designed it.", [])]})  # fmt: skip
    said = world.evaluate(rows)
    plain = World.make(tmp_path / "plain").evaluate(rows)
    for name in RATIOS:
        assert said.value(f"{name}@macro") == plain.value(f"{name}@macro"), (
            "comparable figures stay what they are"
        )
    assert said.value("nugget_coverage_strict") < said.value("nugget_coverage@macro")
    assert said.value("correct_nuggets_strict") < 3 and said.value("negative_assertions") == 1
    assert "wrong-answer" in said.effects("1", 3)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"judge": {"type": "openai"}}, '"model"'),
        ({"judge": {"type": "wise"}}, "judge.type: "),
        ({"judges": {}}, '"judges"'),
        ({"credit": "all", "limit": 0}, "credit: "),
        ({"nuggets": "../inputs"}, '"../inputs"'),
        ({"collection": []}, "collection: "),
        ({"nuggets": "nowhere"}, "nowhere"),
        ({"collection": "nowhere.jsonl"}, "nowhere.jsonl"),
    ],
)
def test_wrong_options_are_the_organisers_error(world: World, options: dict[str, Any], named: str) -> None:
    assert named in world.refused(**options)


@pytest.mark.parametrize("name", ["f2", "f1@mean", "sentences@macro", "character_count@micro"])
def test_an_unknown_measure_is_refused_with_those_there_are(tmp_path: Path, name: str) -> None:
    world = World.make(tmp_path, name)
    assert name in world.refused()
    assert "f1_weighted" in KIND.measures


def test_the_schema_names_every_count() -> None:
    named = schemas.schema("kinds/report")["x-counts"]
    assert named == [*COUNTS, *STRICT_COUNTS, *NEGATION_COUNTS, "character_count@max"]
    assert {parse_measure(name).join for name in named} == {"sum", "max"}


def test_nuggets_of_other_topics_do_not_count(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    world.requests({"1": {}})
    said = world.evaluate([report("1", GOOD["1"])])
    assert said.result["measures"]["f1@macro"]["topics"] == 1
    for path in (world.truths / "nuggets").iterdir():
        path.unlink()
    people(world)
    (world.truths / "nuggets" / "nuggets_2.v3.json").write_text(
        json.dumps({"query_id": "2", "nugget_bank": {}})
    )
    assert "nuggets" in world.refused()


def test_the_same_evaluation_gives_the_same_bytes(world: World) -> None:
    assert world.evaluate().files == world.evaluate().files
    assert {*NUGGETS} == {d["topic"] for d in world.evaluate().details}
