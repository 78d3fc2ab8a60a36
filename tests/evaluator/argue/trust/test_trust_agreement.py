"""A judge against people: counted by hand, and by scikit-free definitions of every figure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.argue.formats.nugget_formats import load_nuggets
from evaluator.argue.trust.agreement import agreement, lines, reliability
from tests.evaluator.argue.conftest import Argue
from tests.worlds.trust_play import NUGGETS, SAMPLES, cited, report, uncited, written

JUDGE = {"name": "openai", "model": "m", "prompts": "sha256:abc"}


def test_figures_by_hand() -> None:
    # People say yes yes yes no no; the judge yes yes no yes no: 2 hits, 1 false alarm, 1 miss.
    people = report(*(cited(f"s{i}", "d", v) for i, v in enumerate([True, True, True, False, False])))
    judged = report(*(cited(f"s{i}", "d", v) for i, v in enumerate([True, True, False, True, False])))
    row = agreement({"ann": [people]}, [judged])["types"]["SENTENCE_ATTESTED"]
    assert (row["judgments"], row["people_yes"], row["judge_yes"]) == (5, 3, 3)
    assert row["accuracy"] == pytest.approx(3 / 5)
    assert row["precision"] == row["recall"] == row["f1"] == pytest.approx(2 / 3)
    # Chance: (3 * 3 + 2 * 2) / 25.
    assert row["kappa"] == pytest.approx((3 / 5 - 13 / 25) / (1 - 13 / 25))
    assert (row["only_people"], row["only_judge"]) == (0, 0)


def test_what_only_one_side_judged_is_counted_and_left_out() -> None:
    people = report(cited("a", "d", True), cited("b", "d", True))
    judged = report(cited("b", "d", True), cited("b", "e", False), uncited("c", True, True))
    types = agreement({"ann": [people]}, [judged])["types"]
    assert types["SENTENCE_ATTESTED"]["judgments"] == 1
    assert types["SENTENCE_ATTESTED"]["only_people"] == 1
    assert types["SENTENCE_ATTESTED"]["only_judge"] == 1
    assert types["REQUIRES_CITATION"]["judgments"] == 0
    assert types["REQUIRES_CITATION"]["only_judge"] == 1
    assert types["REQUIRES_CITATION"]["accuracy"] is None
    assert types["all"]["judgments"] == 1


def test_a_sentence_meets_itself_in_another_run_but_not_on_another_topic() -> None:
    people = report(cited("a", "d", True), run="first")
    for changes, judgments in (({"run": "x"}, 1), ({"topic": "389"}, 0)):
        other = report(cited("a", "d", True), **changes)
        assert agreement({"p": [people]}, [other])["types"]["all"]["judgments"] == judgments


def test_first_instance_depends_on_the_sentences_before() -> None:
    people = report(uncited("a", True, True), uncited("b", True, False))
    same = report(uncited("a", True, True), uncited("b", True, True))
    other = report(uncited("z", True, True), uncited("b", True, True))
    assert agreement({"p": [people]}, [same])["types"]["FIRST_INSTANCE"]["judgments"] == 2
    assert agreement({"p": [people]}, [other])["types"]["FIRST_INSTANCE"]["judgments"] == 0


def test_look_ups_are_nobodys_judgment() -> None:
    # trust_play marks relevance as a look-up.
    people, judged = report(cited("a", "d", True)), report(cited("a", "d", True))
    assert "CITED_DOCUMENT_RELEVANCE" not in agreement({"p": [people]}, [judged])["types"]
    # A file that names no judge anywhere was made by hand: everything counts.
    bare = report(cited("a", "d", True, by="null"))
    assert agreement({"p": [bare]}, [bare])["types"]["CITED_DOCUMENT_RELEVANCE"]["judgments"] == 1


def test_answers_count_by_pair_and_with_nuggets_also_what_nobody_found() -> None:
    bank = load_nuggets(NUGGETS)["388"]
    doc = next(d for d, pairs in bank.by_document.items() if len(pairs) >= 3)
    pairs = bank.by_document[doc]
    (n1, a1), (n2, a2) = pairs[0], next(p for p in pairs if p[0] is not pairs[0][0])
    people = report(cited("s", doc, True, {n1.question: [a1.text], n2.question: [a2.text]}))
    judged = report(cited("s", doc, True, {n1.question: [a1.text]}))
    bare = agreement({"p": [people]}, [judged])["types"]["SENTENCE_ANSWERS_QUESTION"]
    assert (bare["judgments"], bare["people_yes"], bare["judge_yes"]) == (2, 2, 1)
    whole = agreement({"p": [people]}, [judged], {"388": bank})["types"]["SENTENCE_ANSWERS_QUESTION"]
    assert (whole["judgments"], whole["people_yes"], whole["judge_yes"]) == (len(pairs), 2, 1)
    assert whole["recall"] == 0.5 and whole["precision"] == 1.0


def test_the_majority_counts_and_people_are_compared_with_each_other(
    golden: Callable[[str, str], None],
) -> None:
    yes, no = (report(cited("a", "d", value), cited("b", "d", True)) for value in (True, False))
    result = agreement({"p": [yes], "q": [yes], "z": [no]}, [no])
    row = result["types"]["SENTENCE_ATTESTED"]
    assert (row["people_yes"], row["judge_yes"], row["accuracy"]) == (2, 1, 0.5)
    assert result["people"]["SENTENCE_ATTESTED"]["judgments"] == 2
    golden("argue-agreement.txt", "".join(f"{line}\n" for line in lines(result)))


def test_one_annotator_has_one_vote_however_many_runs_hold_the_sentence() -> None:
    much = [report(cited("a", "d", True), run=f"r{i}") for i in range(5)]
    no = [report(cited("a", "d", False))]
    row = agreement({"p": much, "q": no, "z": no}, no)["types"]["SENTENCE_ATTESTED"]
    assert (row["people_yes"], row["accuracy"]) == (0, 1.0)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=20))
def test_agreement_of_a_judge_with_itself_and_its_mirror(values: list[tuple[bool, bool]]) -> None:
    first = report(*(cited(f"s{i}", "d", a) for i, (a, _) in enumerate(values)))
    other = report(*(cited(f"s{i}", "d", b) for i, (_, b) in enumerate(values)))
    there = agreement({"p": [first]}, [other])["types"]["all"]
    back = agreement({"p": [other]}, [first])["types"]["all"]
    assert there["accuracy"] == back["accuracy"]
    assert there["kappa"] == (back["kappa"] if back["kappa"] is None else pytest.approx(back["kappa"]))
    assert there["precision"] == back["recall"]
    assert agreement({"p": [first]}, [first])["types"]["all"]["accuracy"] == 1.0


def test_the_command_prints_a_table_and_json(argue: Argue) -> None:
    sample = SAMPLES / "sample-outputs" / "sample.judgments.jsonl"
    words = ("agreement", "--human", sample, "--judge", sample, "--nuggets", NUGGETS)
    said = argue(*words)
    assert said.code == 0 and "kappa" in said.out and "--nuggets" not in said.out
    assert argue(*words, "--json").json["types"]["all"]["accuracy"] == 1.0


@pytest.mark.parametrize("key", ["segments", "judgments", "sentence_judgments"])
def test_all_spellings_of_judgments_are_read(argue: Argue, key: str, tmp_path: Path) -> None:
    path = written(tmp_path / "ours.jsonl", report(cited("a", "d", True)))
    row = json.loads(path.read_text())
    if key != "segments":
        head = {"topic_id": row["request_id"], "run_id": row["run_id"], "team_id": "t"}
        row = {"report": {"metadata": head, "responses": [], "references": []}, key: row["segments"]}
    old = tmp_path / "old.jsonl"
    old.write_text(json.dumps(row) + "\n")
    said = argue("agreement", "--human", old, "--judge", path, "--json")
    assert said.code == 0 and said.json["types"]["all"]["judgments"] == 1


def test_figures_for_leaderboards_are_kept_by_judge(argue: Argue, tmp_path: Path) -> None:
    segments = (cited("a", "d", True), cited("b", "d", False))
    human = written(tmp_path / "h.jsonl", report(*segments))
    judge = written(tmp_path / "j.jsonl", report(*segments, judge=JUDGE))
    other = written(tmp_path / "o.jsonl", report(*segments, judge={**JUDGE, "prompts": "sha256:def"}))
    kept = tmp_path / "judge.json"
    words = ("agreement", "--reliability", kept, "--human", human, "--judge")
    assert argue(*words, judge).code == 0
    data = json.loads(kept.read_text())
    assert data["judge"] == {"model": "m", "prompts": "sha256:abc"}
    assert sorted(data["figures"].values()) == [1.0, 1.0, 2.0]
    for path in (human, other):  # judgments without a judge, and of another one
        assert argue(*words, path).code == 4
    assert json.loads(kept.read_text()) == data


def test_nothing_in_common_is_reported(argue: Argue, tmp_path: Path) -> None:
    human = written(tmp_path / "h.jsonl", report(cited("a", "d", True)))
    judge = written(tmp_path / "j.jsonl", report(cited("z", "d", True)))
    words = ("agreement", "--human", human, "--judge", judge)
    said = argue(*words)
    assert said.code == 0 and said.out.count("\n") == 4  # the table's head, two rows and a hint
    assert argue(*words, "--json").json["types"]["all"]["judgments"] == 0
    assert reliability(agreement({"p": [report(cited("a", "d", True))]}, [])) == {"judgments compared": 0.0}


def test_wrong_files_and_options_are_reported(argue: Argue, tmp_path: Path) -> None:
    broken = tmp_path / "b.jsonl"
    broken.write_text('{"request_id": "1", "run_id": "r", "segments": 5}\n')
    said = argue("agreement", "--human", broken, "--judge", broken)
    assert said.code == 4 and "b.jsonl:1" in said.err
    said = argue("agreement", "--humans", "x", "--judge", "y")
    assert said.code == 2 and "--human" in said.err
    assert argue("agreement", "--human", tmp_path / "none", "--judge", broken).code != 0
