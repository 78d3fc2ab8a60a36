"""The kind debate: what counts 0, what is found, labels and judgments, and what is still pending."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import schemas
from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.kinds.debate.kind import KIND
from evaluator.kinds.debate.measures import parse_measure
from evaluator.measures.debate import NAMES
from schemas.debates import CRITERIA, parse, transcript_digest
from schemas.details import Detail
from tests.worlds.debate_runs import INDEX, REAL, World, debate, key, turn, write

GOOD = "Night buses do not run."  # 5 words; content words night, buse, run
DIGEST = "0" * 64


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def digest(*lines: Any) -> str:
    return transcript_digest([found for line in lines if (found := parse(line)[0]) is not None])


def test_a_failed_turn_is_zero_in_every_share_and_never_dropped(world: World) -> None:
    # Debate 1: two good turns. Debate 2: one good turn, one without an answer.
    first = debate(turn(GOOD, "1.1"), turn("Nurses drive at night.", "1.2"), id="c1")
    world.run([first, debate(turn(GOOD, "1.1"), turn(""), id="c2")])
    sink = world.evaluate(NAMES)
    found = {m: sink.aggregates[key(m)]["value"] for m in NAMES}
    assert found["answered"] == found["within-word-limit"] == found["cites"] == found["provenance"] == 3 / 4
    assert found["provenance@cited"] == 1.0 and found["unrepeated"] == 3 / 4
    # night, buse, run are all in "Night buses do not run in most towns."; nurse, drive, night: two of three.
    assert found["groundedness"] == pytest.approx((1 + 2 / 3 + 1 + 0) / 4)
    assert found["words"] == pytest.approx((5 + 4 + 5) / 3) and found["latency"] == 100.0
    assert sink.findings.counts == {"F202": 1} and not sink.findings.invalid
    assert sink.findings.count("defect") == 1
    assert sink.aggregates["answered"] == {"value": 0.75, "topics": 2, "covered": 2, "interval": None}
    assert sink.noted[0] == Detail("turns-unanswered", failed=1, turns=4)
    scores = {(m, t, f.get("turn")): v for m, t, v, f in sink.scores()}
    assert scores["answered", "c2", 2] == 0.0 and scores["answered", "c2", None] == 0.5
    assert ("words", "c2", 2) not in scores


def test_failed_and_missing_debates_and_turns_count(world: World) -> None:
    world.run([{}])
    sink = world.evaluate(["answered", "words"], turns=5)
    assert sink.aggregates["answered"]["value"] == 0 and sink.pending.keys() == {"words"}
    assert sink.findings.counts == {"F201": 1, "F203": 1} and not sink.findings.invalid
    world.run([debate(turn(GOOD), id="c1"), debate(turn(GOOD), turn(GOOD), turn(GOOD), id="c2")])
    sink = world.evaluate(["answered"], turns=2)
    assert sink.aggregates["answered"]["value"] == 3 / 4 and sink.findings.counts == {"F217": 1, "F218": 1}
    assert world.value("answered") == 4 / 6  # without turns in the task: the longest debate
    world.run([debate(turn(GOOD), id="c1", planned=4), {}])
    assert world.value("answered") == 1 / 8


def test_a_task_can_make_long_answers_defects(world: World) -> None:
    world.run([debate(turn("word " * 61), turn(GOOD), id="c1"), debate(turn(GOOD), turn(GOOD), id="c2")])
    assert world.value("within-word-limit") == 3 / 4 and world.value("answered") == 1.0
    sink = world.evaluate(["answered"], {"F207": "defect"})
    assert sink.aggregates["answered"]["value"] == 3 / 4  # that turn only
    assert [f.topic for f in sink.findings.sorted()] == ["c1, turn 1"]
    assert world.value("within-word-limit", word_limit=61) == 1.0


def test_provenance_by_id_text_and_what_was_served(world: World) -> None:
    unknown, altered = ("1.1 ", INDEX["1.1"]), ("1.2", "Nurses do not travel.")
    repeated, not_retrieved, without_text = ("1.2", f" {INDEX['1.2']}\n"), "1.3", ("1.1", None)
    answer = turn(GOOD, "1.1", unknown, altered, repeated, not_retrieved, without_text)
    answer["systemResponse"]["response"]["arguments"] += ["x", {"text": "no id"}]
    world.run([debate(answer, id="c1"), debate(turn(GOOD), id="c2")], served=["1.1", "1.2"])
    sink = world.evaluate(["provenance", "provenance@cited", "cites", "groundedness"])
    assert sink.aggregates["provenance"]["value"] == (1 / 8 + 0) / 2
    assert sink.aggregates["provenance-cited"]["value"] == 0
    assert sink.aggregates["cites"]["value"] == 1 / 2
    assert sink.findings.counts == {"F208": 1, "F209": 1, "F210": 1, "F211": 1, "F213": 2, "F222": 2}
    assert all(f.topic == "c1, turn 1" and f.severity == "warning" for f in sink.findings.sorted())


def test_a_good_argument_listed_again_makes_up_for_nothing(world: World) -> None:
    repeated = debate(turn(GOOD, "9.9", *["1.1"] * 3), id="c1")
    world.run([repeated, debate(turn(GOOD, "1.1"), id="c2")], served=["1.1"])
    sink = world.evaluate(["provenance", "provenance@cited"])
    assert sink.aggregates["provenance"]["value"] == (1 / 4 + 1) / 2
    assert sink.aggregates["provenance-cited"]["value"] == 1 / 2


def test_an_answer_of_blank_characters_is_none(world: World) -> None:
    world.run([debate(turn("\u2800\u3164", "1.1"), id="c1"), debate(turn(GOOD), id="c2")])
    assert world.value("answered") == 1 / 2 and world.value("within-word-limit") == 1 / 2
    assert world.value("provenance") == 0


def test_words_between_invisible_characters_are_counted(world: World) -> None:
    world.run([debate(turn("\u200b".join(["word"] * 200)), id="c1"), debate(turn(GOOD), id="c2")])
    assert world.value("within-word-limit") == 1 / 2 and world.value("words") == (200 + 5) / 2
    assert "F207" in world.evaluate(["words"]).findings.counts


def test_a_made_up_argument_is_not_made_good_by_a_thousand_others(world: World) -> None:
    names = [f"n{n}" for n in range(1000)]
    write(world.root / "services/search/arguments.jsonl", [{"id": n, "text": "why"} for n in names])
    good = [(n, "why") for n in names]
    honest, padded = ("made-up", "why"), [*good, ("made-up", "why")]
    world.run([debate(turn(GOOD, good[0]), id="c1"), debate(turn(GOOD, honest), id="c2")], served=names)
    assert world.value("provenance@cited") == 1 / 2 and world.value("provenance") == 1 / 2
    world.run([debate(turn(GOOD, good[0]), id="c1"), debate(turn(GOOD, *padded), id="c2")], served=names)
    assert world.value("provenance@cited") == 1 / 2
    assert world.value("provenance") == pytest.approx((1 + 50 / 1001) / 2)
    world.run([debate(turn(GOOD, *good), id="c1"), debate(turn(GOOD, honest), id="c2")], served=names)
    assert world.value("provenance@cited") == 0, "nor is it spread over the other answers"


def test_a_debate_without_an_answer_is_not_covered_by_a_criterion(world: World) -> None:
    world.run([debate(turn(GOOD, "1.1"), id="c1"), debate(turn(""), id="c2")])
    sink = world.evaluate(["answered", "quantity@heuristic"])
    for measure in ("answered", "quantity@heuristic"):
        found = sink.aggregates[key(measure)]
        assert (found["topics"], found["covered"]) == (2, 1)


def test_who_lists_the_whole_index_does_not_ground_everything(world: World) -> None:
    """Only the first arguments count, as many as are usual; what is behind them costs nothing, either."""
    world.run([debate(turn(GOOD, *INDEX), id="c1"), debate(turn(GOOD, *reversed(INDEX)), id="c2")])
    assert next(iter(INDEX)) == "1.1" and world.value("groundedness") == 1.0
    assert world.value("groundedness", max_arguments=1) < 1.0


def test_texts_made_up_by_the_system_ground_nothing(world: World) -> None:
    said = "Purple elephants vote."
    world.run([debate(turn(said, ("1.1", said)), id="c1"), debate(turn(said, ("new", said)), id="c2")])
    assert world.value("groundedness") == 0.0
    world.services = False
    sink = world.evaluate(["groundedness", "provenance"])
    assert sink.aggregates["groundedness"]["value"] == 1.0 and "no index" in sink.pending["provenance"]


def test_without_a_record_of_the_index_only_id_and_text_count(world: World) -> None:
    world.run([debate(turn(GOOD, "1.3"), id="c1"), debate(turn(GOOD, "1.3"), id="c2")], served=None)
    sink = world.evaluate(["provenance"])
    assert sink.aggregates["provenance"]["value"] == 1.0 and not sink.findings.counts
    assert sink.noted[0].kind == "index-unnoted"
    write(world.root / "run/served.jsonl", [{"hits": ["1.1"]}, {"truncated": True}])
    sink = world.evaluate(["provenance"])
    assert sink.aggregates["provenance"]["value"] == 0.0 and sink.findings.counts["F220"] == 1


def record(**fields: Any) -> dict[str, Any]:
    """Return the platform's record of a turn."""
    return {"debate": 1, "turn": 1, "outcome": "answered", "failure": None, **fields}


def test_times_come_from_the_driver(world: World) -> None:
    first, second = (record(debate=n, system_ms=n * 10) for n in (1, 2))
    world.run([debate(turn(GOOD), id="c1"), debate(turn(GOOD), id="c2")], turns=[first, second])
    assert [world.value(f"latency{m}") for m in ("", "@mean", "@median", "@p95")] == [15, 15, 15, 20]
    failure = {"class": "timeout", "detail": "60\x1b s"}
    failed = record(debate=2, outcome="failed", failure=failure, system_ms=60_000)
    world.run([debate(turn(GOOD), id="c1"), debate(turn(""), id="c2")], turns=[first, failed])
    sink = world.evaluate(["latency"])
    assert sink.aggregates["latency"]["value"] == 10
    (finding,) = sink.findings.sorted()
    assert finding.code == "F202" and finding.message.endswith(": 60\\x1b s")


def test_records_that_nobody_vouches_for_are_not_looked_at(world: World) -> None:
    """A run that was handed in could bring files of these names: what it says of itself is no record."""
    world.records = False
    debates = [debate(turn(GOOD, f"1.{n}", ms=9000), id=f"c{n}") for n in (1, 2)]
    world.run(debates, served=["1.3"], turns=["not a record", record(system_ms=1)])
    sink = world.evaluate(["provenance", "latency"])
    assert sink.aggregates["provenance"]["value"] == 1.0 and sink.aggregates["latency"]["value"] == 9000
    assert not sink.findings.counts  # neither F210 nor F221
    assert {note.kind for note in sink.noted} >= {"index-unnoted", "own-times"}


def test_two_debates_on_one_claim_are_scored_apart(tmp_path: Path) -> None:
    """Under an id each, under one id, and without any: neither is taken for the other, and none is lost."""
    for n, ids in enumerate((("a", "b"), ("a", "a"), ("", ""))):
        claims = [{**({"id": id} if id else {}), "claim": "Cars should be banned."} for id in ids]
        world = World(tmp_path / str(n), claims)
        answers = (turn(GOOD, "1.1"), turn(""))
        debates = [
            debate(answer, turn(GOOD), id=id, claim="Cars should be banned.")
            for answer, id in zip(answers, ids, strict=True)
        ]
        world.run(debates)
        sink = world.evaluate(["answered", "cites"])
        assert sink.aggregates["answered"]["value"] == 3 / 4 and sink.aggregates["cites"]["value"] == 1 / 4
        found = {(topic, facets.get("turn")): v for m, topic, v, facets in sink.scores() if m == "answered"}
        first, second = list(dict.fromkeys(topic for topic, _ in found))
        assert first != second
        turns = [found[topic, number] for topic in (first, second) for number in (1, 2)]
        assert turns == [1.0, 1.0, 0.0, 1.0] and not sink.findings.counts.get("F204")


def test_repetition(world: World) -> None:
    world.run([debate(turn(GOOD), turn("The night bus is RUNNING late."), turn(GOOD + "!"), id="c1"), {}])
    assert world.value("unrepeated", turns=3) == 2 / 6


def test_floods_of_arguments_are_bounded(world: World) -> None:
    many = turn(GOOD, *[("no such", "t")] * 25_000)
    world.run([debate(many, id="c1"), debate(turn(GOOD, "1.1"), id="c2")])
    sink = world.evaluate(["provenance"])
    assert sink.findings.counts["F208"] == 20_000 and sink.findings.counts["F216"] == 1
    assert len(sink.findings.kept) <= 1000 and sink.aggregates["provenance"]["value"] == 0.5


# --- people, judges -----------------------------------------------------------------------------------------


LINES = [debate(turn("A one."), turn("A two."), id="c1"), debate(turn("B one."), turn(""), id="c2")]


def label(turn_: int, annotator: str, *values: int | None, **where: Any) -> dict[str, Any]:
    return {"turn": turn_, "annotator": annotator, **dict(zip(CRITERIA, values, strict=False)), **where}


def test_labels_of_people(world: World) -> None:
    world.run(LINES)
    run = digest(*LINES)
    rows = [
        label(1, "a", 1, 1, 1, 1, run=run, debate=1),
        label(1, "b", 0, 1, 1, None, run=run, debate=1),  # a tie about quantity: one half
        label(2, "a", 1, 0, 1, 0, run=run, debate=1),
        label(1, "a", 0, None, 1, 1, run=DIGEST, transcript=digest(LINES[1]), debate=7),  # of another file
        label(1, "a", 0, 0, 0, 0, run=DIGEST, debate=1),  # of another run
    ]
    assert [p for row in rows for p in schemas.validate(row, "debate-labels")] == []
    write(world.root / "truths/labels/labels.jsonl", rows)
    names = (*CRITERIA, "score")
    sink = world.evaluate([f"{name}@human" for name in names])
    # Four turns; the one without an answer is no. Quality of B is not judged: three turns.
    found = [sink.aggregates[f"{name}-human"]["value"] for name in names]
    expected = [(0.5 + 1 + 0 + 0) / 4, (1 + 0 + 0) / 3, (1 + 1 + 1 + 0) / 4, (1 + 0 + 1 + 0) / 4]
    assert found == pytest.approx([*expected, sum(expected) / 4])
    assert sink.judge is not None and sink.judge["name"] == "people"
    assert sink.judge["note_detail"] == {"kind": "majority", "annotators": 2}
    assert sink.judge["measures"] == sorted(f"{name}-human" for name in names)
    assert Detail("people-judged", judged=3, answers=3) in sink.noted


def test_what_is_not_judged_is_pending(world: World) -> None:
    world.run(LINES)
    assert "quality-human" in world.evaluate(["quality@human"]).pending
    row = label(1, "a", 1, None, run=digest(*LINES), debate=1)
    write(world.root / "truths/labels/labels.jsonl", [row])
    reason = world.evaluate(["quantity@human"]).pending["quantity-human"]
    assert re.findall(r"[0-9%]+", reason) == ["1", "3", "100%"]
    assert world.value("quantity@human", labels={"least": 0.3}) == 1 / 2  # one yes, one without an answer
    sink = world.evaluate(["quality@human", "score@human"], labels={"least": 0})
    assert sink.pending["quality-human"] == sink.pending["score-human"]


def test_a_run_without_answers_is_not_judged_by_nobody(world: World) -> None:
    """Its turns count 0, which would be the first place among runs that wait for their labels."""
    world.run([{}, {}])
    write(world.root / "truths/labels/labels.jsonl", [label(1, "a", 1, run=digest(*LINES), debate=1)])
    sink = world.evaluate(["score@human", "quality@software", "score@heuristic", "answered"])
    assert sink.pending.keys() == {"score-human", "quality-software"}
    assert {i: a["value"] for i, a in sink.aggregates.items()} == {"score-heuristic": 0.0, "answered": 0.0}
    assert not any(note.kind in ("people-judged", "judges-judged") for note in sink.noted)
    # Somebody has seen to it that it counts.
    write(world.root / "truths/labels/labels.jsonl", [label(1, "a", run=digest({}, {}), debate=1)])
    assert world.value("score@human") == 0.0


def test_positional_labels_need_a_mapping(world: World) -> None:
    world.run(LINES)
    folder = world.root / "truths/labels"
    write(folder / "x-labels.jsonl", [[{"quantity": 1}, {"quantity": 0}], [{"quantity": 1}, None]])
    with pytest.raises(EvaluatorError):
        world.evaluate(["quantity@human"])
    (folder / "mapping.json").write_text(json.dumps({"x-labels.jsonl": {"run": digest(*LINES)}}))
    assert world.value("quantity@human") == (1 + 0 + 1 + 0) / 4


@pytest.mark.parametrize(
    "row", [[{"quantity": 2}], "x", {"run": 1}, label(1, "a", True, run=DIGEST, debate=1)]
)
def test_labels_that_are_wrong(world: World, row: Any) -> None:
    world.run(LINES)
    write(world.root / "truths/labels/labels.jsonl", [row])
    with pytest.raises(EvaluatorError) as caught:
        world.evaluate(["quantity@human"])
    assert "labels.jsonl:1" in "".join(caught.value.lines())


def test_judges_of_the_other_task(world: World) -> None:
    world.run(LINES)
    one, two = digest(LINES[0]), digest(LINES[1])
    scored = ((one, 1, 0.5), (one, 2, 0.49), (two, 1, 1))
    rows = [{"transcript": t, "turn": n, "judge": "j", "quantity": value} for t, n, value in scored]
    write(world.root / "truths/judgments/j.jsonl", rows)
    write(world.root / "truths/judgments/k.jsonl", [{**row, "judge": "k", "quantity": 0} for row in rows])
    assert world.value("quantity@software/j") == (1 + 0 + 1 + 0) / 4
    assert world.value("quantity@software") == (0.5 + 0 + 0.5 + 0) / 4
    pending = world.evaluate(["quantity@software/x", "quality@software/j"]).pending
    assert pending.keys() == {"quantity-software-x", "quality-software-j"}


def test_the_heuristic_judge_and_its_reliability(world: World) -> None:
    said = "Night buses do not run in most towns, so nurses travel to work by car."
    user = "Buses are enough for work."
    lines = [
        debate(turn(said, "1.1", "1.2", user=user), turn("I agree with you.", user=user), id="c1"),
        debate(turn(said, user=user), turn("", user=user), id="c2"),
    ]
    world.run(lines)
    names = (*CRITERIA, "score")
    sink = world.evaluate([f"{name}@heuristic" for name in names])
    found = [sink.aggregates[f"{name}-heuristic"]["value"] for name in names]
    assert found == [2 / 4, 1 / 4, 2 / 4, 3 / 4, 2 / 4]
    assert sink.judge is not None and sink.judge["name"] == "heuristic"
    labels = [label(n, "a", quantity, 0, run=digest(*lines), debate=1) for n, quantity in ((1, 1), (2, 0))]
    write(world.root / "truths/labels/labels.jsonl", labels)
    judge = world.evaluate(["quality@heuristic"]).judge
    assert judge is not None and judge["reliability"]["verdicts compared"] == 4
    assert 3 / 4 in judge["reliability"].values()


def test_two_same_debates_count_apart(world: World) -> None:
    same = [debate(turn(GOOD), id="c1"), debate(turn(GOOD), id="c2")]
    world.run(same)
    row = label(1, "a", 1, run=DIGEST, transcript=digest(same[0]), debate=3)
    write(world.root / "truths/labels/labels.jsonl", [row])
    assert world.value("quantity@human") == 1.0  # a label of a transcript counts wherever it was said


# --- around it ----------------------------------------------------------------------------------------------


def test_results_keep_the_contract(world: World) -> None:
    world.run(REAL.read_text().splitlines(), served=None)
    claims = [{"id": word, "claim": f"Television is {word}"} for word in ("bad", "good")]
    write(world.root / "inputs/claims.jsonl", claims)
    out, measures = world.root / "out", [*NAMES, "score@heuristic", "score@human"]
    written = []
    for _ in range(2):
        world.evaluate(measures).write(out)
        written.append({path.name: path.read_bytes() for path in out.iterdir()})
    assert written[0] == written[1], "the same run gives the same bytes"
    result = schemas.load_json(out / "result.json")
    assert schemas.validate(result, "result") == []
    assert set(result.data["measures"]) | set(result.data["pending"]) == {key(m) for m in measures}
    for name in ("score", "finding"):
        for line in (out / f"{name}s.jsonl").read_text().splitlines():
            assert schemas.validate(json.loads(line), name) == []


def test_check_finds_the_same_without_truths(world: World) -> None:
    world.run([debate(turn("word " * 61, "9.9"), id="c1"), {}])
    request = world.request(["answered"])
    log = Log("simulations.jsonl")
    KIND.check(request.run / request.run_file, request.inputs, request, log)
    assert log.counts == world.evaluate(["answered"]).findings.counts == {"F207": 1, "F208": 1, "F201": 1}
    assert log.answered == 1


@pytest.mark.parametrize(
    "text", ["nDCG@10", "quality", "quality@me", "quality@human/x", "latency@p99", "provenance@x", ""]
)
def test_measures_that_are_none(text: str) -> None:
    with pytest.raises(EvaluatorError):
        parse_measure(text)


@pytest.mark.parametrize(
    "options",
    [
        *({"turns": 0}, {"word_limit": True}, {"judge": {}}, {"search": "../x"}, {"x": 1}),
        *({"judge": {"model": "m", "prompts": "../x"}}, {"labels": {"least": 2}}),
    ],
)
def test_options_that_are_wrong(world: World, options: dict[str, Any]) -> None:
    world.run(LINES)
    with pytest.raises(EvaluatorError):
        world.evaluate(["answered"], **options)
    assert schemas.validate(options, "kinds/debate") != []


def test_a_measure_by_a_model_needs_its_name(world: World) -> None:
    world.run(LINES)
    with pytest.raises(EvaluatorError):
        world.evaluate(["quality@llm"])
    assert "gateway" in world.evaluate(["quality@llm"], judge={"model": "m"}).pending["quality-llm"]
