"""Nugget banks: v3 and its siblings, the load filter, names, what is merged, what is wrong."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from evaluator.argue import Bank, load_nuggets, read_nuggets, write_v3
from evaluator.argue.formats.nugget_formats import to_v3
from evaluator.argue.formats.nuggets import as_v3, bank_of, topic_of_name
from evaluator.argue.scoring.nuggetizer import nuggetizer_scores, score_nuggetizer
from evaluator.errors import EvaluatorError
from tests.worlds.argue_making import DATA, bank, lines

Q = "When did the ferry enter service?"
V3: dict[str, Any] = {
    "query_id": "W1", "title_query": "Electric ferry", "full_query": "...", "test_collection": "demo", "format_version": "v3",
    "nugget_bank": {
        Q: {
            "question": Q, "question_id": hashlib.md5(Q.encode()).hexdigest(), "query_id": "W1",
            "aggregator_type": "OR", "importance": "vital",
            "answers": {
                "May 2021 ": {"answer": "May 2021 ", "references": [{"doc_id": "d1", "collection": "demo"}, {"doc_id": "d2"}]},
                "June 2020": {"answer": "June 2020", "references": []},
            },
            "creator": [{"is_human": True, "creation_date": "2025-07-02T20:10:37+00:00", "format": "v2"}],
        },
        "Who paid?": {"question": "Who paid?", "answers": {"nobody": {"answer": "nobody", "references": []}}},
    },
}  # fmt: skip


def made(**changes: Any) -> dict[str, Any]:
    """The first nugget with changes, in a bank of its own."""
    nugget = {**V3["nugget_bank"][Q], **changes}
    return {"query_id": "W1", "nugget_bank": {Q: {k: v for k, v in nugget.items() if v != "leave out"}}}


def write(folder: Path, name: str, data: Any) -> Path:
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


# --- v3 ------------------------------------------------------------------------------------------------------


def test_the_filter_drops_answers_without_references_then_questions(tmp_path: Path) -> None:
    found = load_nuggets(write(tmp_path, "nuggets_W1.v3.json", V3))["W1"]
    assert [n.question for n in found.nuggets] == [Q]
    assert [a.text for a in found.nuggets[0].answers] == ["May 2021 "]  # verbatim
    assert [a.text for a in found.nuggets[0].wrong] == ["June 2020"]
    assert [n.question for n in found.unanswerable] == ["Who paid?"]
    assert found.documents == {"d1", "d2"} and found.relevant("d1") and not found.relevant("d3")
    assert [(n.question, a.text) for n, a in found.candidates("d2")] == [(Q, "May 2021 ")]
    assert list(found.candidates("d3")) == []
    assert len(list(found.candidates("d3", everything=True))) == 1
    assert [(n.question, a.text) for n, a in found.wrong_answers()] == [(Q, "June 2020")]
    assert found.header["title_query"] == "Electric ferry"


def test_nothing_is_lost_in_writing_it_again(tmp_path: Path) -> None:
    assert schemas.validate(V3, "argue-nuggets") == []
    first = load_nuggets(write(tmp_path, "a_W1.v3.json", V3))["W1"]
    again = as_v3(first)
    assert schemas.validate(again, "argue-nuggets") == []
    assert again["nugget_bank"][Q] == V3["nugget_bank"][Q]
    assert again["title_query"] == "Electric ferry"
    (path,) = write_v3([first], tmp_path)
    assert path.name == "nuggets_W1.v3.json"
    second = load_nuggets(path)["W1"]
    assert (second.nuggets, second.unanswerable) == (first.nuggets, first.unanswerable)


@pytest.mark.parametrize("value", ["OR", "or", "Default", "leave out", None])
def test_or_is_the_default(value: Any) -> None:
    assert read(made(aggregator_type=value)).nuggets[0].aggregator == "OR"


def read(data: Any) -> Bank:
    """The bank in ``data``, which has no problem."""
    bank, problems = bank_of(data)
    assert problems == [] and bank is not None
    return bank


def test_other_forms_of_the_same() -> None:
    expected = read(made())
    answers = made()["nugget_bank"][Q]["answers"]
    for other in (
        made(answers=list(answers.values())),
        made(question_id="leave out"),
        {"query_id": "W1", "nugget_bank": [made()["nugget_bank"][Q]]},
    ):
        assert read(other).nuggets == expected.nuggets
    plain = read(made(answers={"x": {"answer": "x", "references": ["d1", "d1", "d2"]}})).nuggets[0].answers[0]
    assert plain.documents == {"d1", "d2"} and len(plain.references) == 2
    loose = read(made(answers={"x": {"references": ["d1"]}}, question="leave out")).nuggets[0]
    assert loose.question == Q and loose.answers[0].text == "x"


def test_equal_questions_are_put_together() -> None:
    rows = [
        {"question": "q", "aggregator_type": "AND", "importance": "vital", "answers": [{"answer": "a", "references": ["d1"]}]},
        {"question": "q", "aggregator_type": "OR", "answers": [{"answer": "a", "references": ["d2"]}, {"answer": "b", "references": ["d3"]}]},
        {"question": "q", "importance": "okay", "answers": [{"answer": "c", "references": []}]},
    ]  # fmt: skip
    found = read({"query_id": "1", "nugget_bank": rows})
    (nugget,) = found.nuggets
    assert nugget.aggregator == "AND" and nugget.importance == "okay"
    assert [(a.text, sorted(a.documents)) for a in nugget.answers] == [("a", ["d1", "d2"]), ("b", ["d3"])]
    assert [a.text for a in nugget.wrong] == ["c"]
    assert len(found.notes) == 2


def test_what_is_odd_is_noted_and_read() -> None:
    data = made(question="Another?", query_id="W2")
    data["nugget_bank"]["a claim"] = {"claim": "Ferries float.", "related_question_text": Q}
    found = read(data)
    assert [n.question for n in found.nuggets] == ["Another?"]
    assert len(found.notes) == 3
    assert all(any(word in note for note in found.notes) for word in (Q, "claim", "query_id"))


@pytest.mark.parametrize(
    ("data", "pointer", "value"),
    [
        ([], "", ""),
        ({"nugget_bank": {}}, "/query_id", "query_id"),
        ({"query_id": "1"}, "/nugget_bank", "nugget_bank"),
        ({"query_id": "1", "nugget_bank": "x"}, "/nugget_bank", "nugget_bank"),
        ({"query_id": "1", "format_version": "v2", "nugget_bank": {}}, "/format_version", '"v2"'),
        ({"query_id": "1", "nugget_bank": {"q": 3}}, "/nugget_bank/q", ""),
        (made(question=7), f"/nugget_bank/{Q}/question", ""),
        (made(aggregator_type="NOT"), f"/nugget_bank/{Q}/aggregator_type", '"NOT"'),
        (made(aggregator_type=3), f"/nugget_bank/{Q}/aggregator_type", "aggregator_type"),
        (made(importance="Vital"), f"/nugget_bank/{Q}/importance", '"Vital"'),
        (made(importance=["vital"]), f"/nugget_bank/{Q}/importance", "importance"),
        (made(answers="x"), f"/nugget_bank/{Q}/answers", ""),
        (made(answers={"x": 3}), f"/nugget_bank/{Q}/answers/x", ""),
        (made(answers=[{"references": []}]), f"/nugget_bank/{Q}/answers/0/answer", ""),
        (made(answers={"x": {"references": "d1"}}), f"/nugget_bank/{Q}/answers/x/references", "references"),
        (made(answers={"x": {"references": [{"id": "d1"}]}}), f"/nugget_bank/{Q}/answers/x/references/0", ""),
    ],
)
def test_problem_names_its_pointer(data: Any, pointer: str, value: str) -> None:
    found, problems = bank_of(data, "n.v3.json")
    assert found is None
    assert [value in p.what for p in problems if p.pointer == pointer] == [True], problems
    assert all(str(p).startswith("n.v3.json: ") and str(p).isprintable() for p in problems)


# --- files and folders ---------------------------------------------------------------------------------------


def test_the_topic_is_in_the_name() -> None:
    names = {"nuggets_388.v3.json": "388", "sample_nuggets_388.v3.json": "388", "388.v3.json": "388",
             "nuggets_388.json": None, "nuggets_.v3.json": None, ".v3.json": None}  # fmt: skip
    assert {name: topic_of_name(name) for name in names} == names


def test_wrong_names_are_errors(tmp_path: Path) -> None:
    (problem,) = read_nuggets(write(tmp_path, "W1.json", V3))[1]
    assert "W1.json" in str(problem)
    (problem,) = read_nuggets(write(tmp_path, "nuggets_W2.v3.json", V3))[1]
    assert '"W1"' in str(problem) and '"W2"' in str(problem)
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "nuggets_W2.v3.json", tmp_path / "empty", tmp_path / "none"):
        with pytest.raises(EvaluatorError):
            load_nuggets(path)
    (problem,) = read_nuggets(tmp_path / "none")[1]
    assert "nuggets_388.v3.json" in problem.fix


def test_a_folder_and_all_its_problems_at_once(tmp_path: Path) -> None:
    write(tmp_path, "nuggets_W1.v3.json", V3)
    write(tmp_path, "nuggets_W2.v3.json", {**V3, "query_id": "W2"})
    write(tmp_path, "README.md", "no nuggets")
    assert list(load_nuggets(tmp_path)) == ["W1", "W2"]
    write(tmp_path, "nuggets_W3.v3.json", V3)
    write(tmp_path, "nuggets_W4.v3.json", "{,}")
    write(tmp_path, "other_W1.v3.json", V3)
    banks, problems = read_nuggets(tmp_path)
    assert list(banks) == ["W1", "W2"]
    w3, w4, other = map(str, problems)
    assert '"W3"' in w3 and "nuggets_W4.v3.json:1" in w4
    assert "other_W1.v3.json" in other and '"W1"' in other and "nuggets_W1.v3.json" in other


# --- siblings ------------------------------------------------------------------------------------------------


def test_the_questions_of_reference_reports() -> None:
    found = load_nuggets(DATA / "neuclir-report-sample/report-generation-sample.eval.zh.jsonl")
    assert {t: len(b.nuggets) for t, b in found.items()} == {"253": 5, "264": 7, "269": 6}
    assert len(found["269"].notes) == 4  # ten questions, four of them equal to another
    assert len(found["264"].unanswerable) > 0
    assert all(n.aggregator == "OR" for b in found.values() for n in b.nuggets)
    first = found["253"].nuggets[1]
    assert first.answers[1].text == "July 2019" and len(first.answers[1].references) == 3


RAGTIME = {
    "metadata": {"team_id": "t", "topic_id": "9", "run_id": "r", "run_desc": "d"},
    "nugget_bank": [
        {"question": "q1", "aggregator_type": "AND", "importance": "vital", "metadata": {"x": 1},
         "answers": [{"answer": "a", "references": ["d1"]}, {"answer": "b", "references": ["d2", "d3"]}]},
        {"question": "q2", "aggregator_type": "OR", "answers": [{"answer": "c", "references": ["d1"]}]},
    ],
}  # fmt: skip


def test_ragtime_banks_lose_nothing(tmp_path: Path) -> None:
    found = load_nuggets(lines(tmp_path / "banks.jsonl", RAGTIME))["9"]
    v3 = as_v3(found)
    assert v3["metadata"] == RAGTIME["metadata"]
    for nugget, row in zip(v3["nugget_bank"].values(), RAGTIME["nugget_bank"], strict=True):
        answers = nugget["answers"].values()
        plain = [{**a, "references": [r["doc_id"] for r in a["references"]]} for a in answers]
        assert {k: nugget[k] for k in row} | {"answers": plain} == row
    assert found.nuggets[0].aggregator == "AND" and found.nuggets[0].extra == {"metadata": {"x": 1}}
    (path,) = write_v3([found], tmp_path)
    assert as_v3(load_nuggets(path)["9"]) == v3


def test_old_files_have_no_documents_and_keep_their_answers(tmp_path: Path) -> None:
    row = {"query_id": "1", "test_collection": "c", "query_text": "t", "hash": "h", "items": [
        {"query_id": "1", "question_id": "i", "question_text": "q", "gold_answers": ["3.7%"], "info": {"importance": "vital", "used": False}},
        {"question_text": "r", "gold_answers": ["x", "y"]}]}  # fmt: skip
    found = load_nuggets(lines(tmp_path / "old.jsonl", row))["1"]
    assert not found.linked and found.documents == frozenset()
    assert [(n.question, n.importance, [a.text for a in n.answers]) for n in found.nuggets] == [
        ("q", "vital", ["3.7%"]), ("r", None, ["x", "y"])]  # fmt: skip
    assert len(list(found.candidates("anything"))) == 3


def test_collaborator_maps(tmp_path: Path) -> None:
    data = {"q": ["OR", {"OPEN_ENDED_ANSWER": ["d1", "d2"]}], "r": ["AND", {"x": ["d3"], "y": []}]}
    found = load_nuggets(write(tmp_path, "nuggets_7.json", data))["7"]
    assert [(n.question, n.aggregator) for n in found.nuggets] == [("q", "OR"), ("r", "AND")]
    assert found.documents == {"d1", "d2", "d3"}


def test_several_banks_in_lines_and_their_problems(tmp_path: Path) -> None:
    path = lines(tmp_path / "n.jsonl", V3, "{", {"x": 1}, {"qid": "1", "nuggets": []}, [1], V3)
    banks, problems = read_nuggets(path)
    assert list(banks) == ["W1"]
    where = [f"n.jsonl:{line}: " for line in range(2, 6)] + ["n.jsonl: "]
    assert all(str(p).startswith(place) for place, p in zip(where, problems, strict=True))
    assert "Nuggetizer" in str(problems[2]) and '"W1"' in str(problems[4])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["query_id", "nugget_bank", "metadata", "topic_id", "items", "questions", "question", "answers", "answer",
                         "references", "doc_id", "question_text", "gold_answers", "importance", "aggregator_type", "nuggets",
                         "request_id", "info"]), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=300)
@given(JSON)
def test_any_json_is_a_bank_or_has_problems(data: Any) -> None:
    v3, linked, reason = to_v3(data)
    assert v3 is not None or reason
    found, problems = bank_of(v3 if v3 is not None else data, linked=linked)
    assert (found is None) == bool(problems)
    if found is not None and linked:
        again, wrong = bank_of(as_v3(found))
        assert wrong == [] and again is not None
        for name in ("topic_id", "nuggets", "unanswerable"):
            assert getattr(again, name) == getattr(found, name)


names = st.text(min_size=1, max_size=4).filter(str.strip)


@given(st.dictionaries(names, st.lists(st.sampled_from("abc"), unique=True), min_size=1))
def test_the_filter_keeps_exactly_what_has_references(answers: dict[str, list[str]]) -> None:
    found = bank({"q": ("OR", answers)})
    kept = {a.text: sorted(a.documents) for n in found.nuggets for a in n.answers}
    assert kept == {a: sorted(docs) for a, docs in answers.items() if docs}


# --- Nuggetizer ----------------------------------------------------------------------------------------------


def test_nuggetizer_scores_by_hand(tmp_path: Path) -> None:
    pairs = [
        ("vital", "support"),
        ("vital", "partial_support"),
        ("okay", "support"),
        ("failed", "not_support"),
    ]
    names = ("strict_vital", "strict_all", "vital", "all")
    assert nuggetizer_scores(pairs) == dict(zip(names, (1 / 2, 2 / 4, 1.5 / 2, 2.5 / 4), strict=True))
    assert nuggetizer_scores([]) == dict.fromkeys(names, 0.0)
    nuggets = [{"text": "t", "importance": i, "assignment": a} for i, a in pairs]
    row = {"query": "x", "qid": "1", "nuggets": nuggets}
    found = score_nuggetizer(lines(tmp_path / "n.jsonl", row, {**row, "qid": 2, "nuggets": []}))
    assert found["all"] == dict(zip(names, (1 / 4, 1 / 4, 0.375, 0.3125), strict=True))


def test_nuggetizer_problems(tmp_path: Path) -> None:
    path = lines(tmp_path / "n.jsonl", {"nuggets": [{"importance": [], "assignment": {}}]}, {"qid": "1"},
                 {"qid": "2", "nuggets": [{"importance": "okay", "assignment": "yes"}]})  # fmt: skip
    with pytest.raises(EvaluatorError) as caught:
        score_nuggetizer(path)
    for part in ("n.jsonl:1: qid", "/nuggets/0/importance", "n.jsonl:2: nuggets", 'assignment is "yes"'):
        assert part in caught.value.why
