"""The data of report-generation: made again they are the same, and every answer stands in the documents that attest it."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from evaluator.argue import Bank, load_nuggets, open_collection, read_requests
from tests.tasks.test_vaswani import module

ROOT = Path(__file__).parents[2]
TASK = ROOT / "tasks" / "report-generation"
SPLITS = ("train", "test")
_STOP = """
about above after all and are because been before but can does for from has have how into its itself more most much
not one only other over per some such than that the their them then there they this those under until was were when
where which while who with
"""
STOP = frozenset(_STOP.split())


def converter() -> ModuleType:
    return module(TASK / "convert.py")


@cache
def documents(split: str = "test") -> dict[str, dict[str, str]]:
    with gzip.open(TASK / "datasets" / split / "inputs" / "documents.jsonl.gz", "rb") as lines:
        return {row["id"]: row for row in map(json.loads, lines)}


@cache
def banks(split: str) -> dict[str, Bank]:
    return load_nuggets(TASK / "datasets" / split / "truths" / "nuggets")


def every_bank() -> list[Any]:
    return [pytest.param(bank, id=topic) for split in SPLITS for topic, bank in sorted(banks(split).items())]


def words(text: str) -> list[str]:
    """Words of three letters and more without stop words, cut to five letters; and numbers whole."""
    found = re.findall(r"[a-z]+|\d[\d.,]*\d|\d", text.lower())
    return [w if w[0].isdigit() else w[:5] for w in found if w[0].isdigit() or (len(w) > 2 and w not in STOP)]


def test_documents_are_the_collection() -> None:
    assert [*documents()] == [str(number) for number in range(1, 1401)]
    assert documents("train") == documents("test")
    for one in documents().values():
        assert one.keys() == {"id", "title", "text"}
        assert "\n" not in one["title"] + one["text"]
        assert not one["title"] or not one["text"].startswith(one["title"]), one["id"]
    assert [name for name, one in documents().items() if not one["text"]] == ["471", "995"]


def source_again(into: Path) -> Path:
    """A file like the source, as far as the converter looks at it."""
    rows = [
        {"original_document": {**d, "doc_id": d["id"], "text": f"{d['title']}\n  {d['text']}"}}
        for d in documents().values()
    ]
    path = into / "corpus.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


def test_converting_again_gives_the_committed_files(tmp_path: Path) -> None:
    assert converter().main([str(source_again(tmp_path)), str(tmp_path / "out")]) == 0
    made = {p.relative_to(tmp_path / "out"): p for p in (tmp_path / "out").rglob("*") if p.is_file()}
    there = (p for p in (TASK / "datasets").rglob("*") if p.is_file() and p.suffix != ".index")
    assert {*made} == {p.relative_to(TASK / "datasets") for p in there}
    for name, path in made.items():
        # Compressed bytes may differ between builds of zlib; what they hold may not.
        opened = gzip.decompress if path.suffix == ".gz" else bytes
        assert opened(path.read_bytes()) == opened((TASK / "datasets" / name).read_bytes()), name


def test_an_incomplete_source_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = tmp_path / "corpus.jsonl.gz"
    lines = gzip.decompress(source_again(tmp_path).read_bytes()).splitlines(keepends=True)
    short.write_bytes(gzip.compress(b"".join(lines[:-1])))
    assert converter().main([str(short), str(tmp_path / "out")]) == 1
    assert "1,399" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_requests_and_nuggets_belong_together_and_splits_are_apart() -> None:
    seen: dict[str, set[str]] = {}
    for split in SPLITS:
        requests = read_requests(TASK / "datasets" / split / "inputs" / "requests.jsonl")
        assert requests.keys() == banks(split).keys()
        for one in requests.values():
            assert one.title and one.problem_statement and one.background and one.limit == 1500
        seen[split] = {*requests}
    assert (len(seen["train"]), len(seen["test"])) == (3, 9)
    assert not seen["train"] & seen["test"]
    assert "28" in seen["test"]


def test_inputs_hold_no_nuggets() -> None:
    for split in SPLITS:
        folder = TASK / "datasets" / split / "inputs"
        names = {p.name for p in folder.iterdir() if p.suffix != ".index"}
        assert names == {"documents.jsonl.gz", "requests.jsonl"}
        text = (folder / "requests.jsonl").read_text("utf-8")
        assert not [q for bank in banks(split).values() for q in bank.by_question if q in text]


@pytest.mark.parametrize("bank", every_bank())
def test_a_bank_has_every_sort_of_nugget(bank: Bank) -> None:
    assert 10 <= len(bank.nuggets) <= 20
    assert {n.aggregator for n in bank.nuggets} == {"AND", "OR"}
    assert {n.importance for n in bank.nuggets} == {"vital", "okay"}
    assert sum(len(n.wrong) for n in bank.nuggets) >= 1
    assert len(bank.documents) >= 5
    assert not bank.notes and not bank.unanswerable
    for nugget in bank.nuggets:
        assert nugget.question_id == hashlib.md5(nugget.question.encode()).hexdigest()
        assert nugget.aggregator == "OR" or len(nugget.answers) > 1, nugget.question
        assert not {a.text for a in nugget.answers} & {a.text for a in nugget.wrong}


@pytest.mark.parametrize("bank", every_bank())
def test_the_words_of_every_answer_stand_in_the_documents_that_attest_it(bank: Bank) -> None:
    for nugget in bank.nuggets:
        for answer in nugget.answers:
            for document in answer.documents:
                assert document in documents(), f"{nugget.question}: no document {document}"
                found = {*words(f"{documents()[document]['title']} {documents()[document]['text']}")}
                wanted = words(answer.text)
                missing = [w for w in wanted if w not in found]
                where = f"{nugget.question} {answer.text!r} in {document}: {missing}"
                assert not [w for w in missing if w[0].isdigit()], where
                assert len(missing) <= len(wanted) // 2, where
                assert len(missing) <= 1, where


def test_wrong_answers_are_kept_in_the_files_and_never_count() -> None:
    wrong = [(n, a) for split in SPLITS for b in banks(split).values() for n in b.nuggets for a in n.wrong]
    assert len(wrong) >= 40
    for nugget, answer in wrong:
        assert not answer.documents and not nugget.satisfied_by({answer.text})


def test_every_document_of_a_nugget_can_be_looked_up(tmp_path: Path) -> None:
    copy = tmp_path / "documents.jsonl.gz"
    copy.write_bytes((TASK / "datasets" / "train" / "inputs" / "documents.jsonl.gz").read_bytes())
    with open_collection(copy) as collection:
        assert len(collection) == 1400
        for split in SPLITS:
            for bank in banks(split).values():
                assert all(name in collection for name in bank.documents)


# --- labelled pairs ------------------------------------------------------------------------------------------

PAIRS = ROOT / "evaluator" / "argue" / "data" / "labelled-pairs.jsonl"
GIVEN = {  # what the prompts of a type are given
    "SENTENCE_ATTESTED": {"sentence", "document", "doc_id"},
    "SENTENCE_ANSWERS_QUESTION": {"sentence", "nugget_question", "nugget_answer"},
    "REQUIRES_CITATION": {"sentence"},
    "FIRST_INSTANCE": {"sentence", "previous_sentences"},
}


@cache
def pairs() -> tuple[dict[str, str], ...]:
    return tuple(map(json.loads, PAIRS.read_text("utf-8").splitlines()))


def of(kind: str, **wanted: str) -> Iterator[dict[str, str]]:
    return (p for p in pairs() if p["type"] == kind and all(p[k] == v for k, v in wanted.items()))


def test_pairs_are_enough_and_balanced_in_both_halves() -> None:
    assert len(pairs()) >= 200
    assert len([*of("SENTENCE_ATTESTED")]) + len([*of("SENTENCE_ANSWERS_QUESTION")]) >= 120
    for kind in GIVEN:
        for half in ("tune", "measure"):
            yes, no = (len([*of(kind, half=half, label=label)]) for label in ("YES", "NO"))
            assert min(yes, no) >= 10 and abs(yes - no) <= 0.1 * (yes + no), (kind, half)


def test_pairs_hold_what_their_type_is_given_and_are_there_once() -> None:
    assert len({p["id"] for p in pairs()}) == len(pairs())
    assert len({tuple(p[k] for k in sorted(GIVEN[p["type"]])) for p in pairs()}) == len(pairs())
    for pair in pairs():
        keys = {"id", "type", "topic", "half", "label", "case"} | GIVEN[pair["type"]]
        assert pair.keys() == keys, pair["id"]
        assert pair["label"] in ("YES", "NO") and all(pair.values())


def test_no_topic_and_no_document_is_in_both_halves() -> None:
    for key in ("topic", "doc_id"):
        halves = [{p[key] for p in pairs() if p["half"] == half and key in p} for half in ("tune", "measure")]
        assert not halves[0] & halves[1]


def test_documents_of_pairs_are_those_of_the_task() -> None:
    for pair in of("SENTENCE_ATTESTED"):
        one = documents()[pair["doc_id"]]
        assert pair["document"] == f"Title: {one['title']}\n\nContent: {one['text']}", pair["id"]


def test_numbers_of_true_sentences_stand_in_their_documents() -> None:
    for pair in of("SENTENCE_ATTESTED", label="YES"):
        numbers = re.findall(r"\d[\d.,]*\d|\d", pair["sentence"].replace("2.01", ""))  # "2. 01" in titles
        assert all(one in pair["document"] for one in numbers), pair["id"]


def test_overlap_of_words_does_not_tell_true_from_false() -> None:
    """False sentences share nearly as many words with their documents as true ones, so a judge has to look closer."""
    shares: dict[str, list[float]] = {"YES": [], "NO": []}
    for pair in of("SENTENCE_ATTESTED"):
        found = {*words(pair["document"])}
        own = words(pair["sentence"])
        shares[pair["label"]].append(sum(w in found for w in own) / len(own))
    yes, no = (sum(v) / len(v) for v in shares.values())
    assert abs(yes - no) < 0.15
