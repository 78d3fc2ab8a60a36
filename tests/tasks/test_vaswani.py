"""The committed datasets of tasks/vaswani are the collection they say they are."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest

TASK = Path(__file__).resolve().parents[2] / "tasks" / "vaswani"
DATASETS = ("dev", "test")
UPSTREAM = {  # SHA-256 of upstream's files, as README.md names them
    "doc-text.trec": "117ae7491647cb9725621bad52969a78307de19b1757852a0a2383659a856d36",
    "query-text.trec": "fef998db14818f74a22b2fb2be06425d5fb0dbd83ed9841fa0440e0a5477da7b",
    "qrels": "1b3ed6a43752c7a7becb0dbd1614d662791bb7825b60182fd36be24d480ea447",
}


def module(path: Path) -> ModuleType:
    """Return a program of a task or baseline as a module."""
    spec = importlib.util.spec_from_file_location(f"program_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def converter() -> ModuleType:
    return module(TASK / "convert.py")


def inputs(dataset: str) -> Path:
    return TASK / "datasets" / dataset / "inputs"


def documents(dataset: str) -> list[dict[str, str]]:
    with gzip.open(inputs(dataset) / "documents.jsonl.gz", "rb") as lines:
        return [json.loads(line) for line in lines]


def topics(dataset: str) -> dict[str, str]:
    lines = (inputs(dataset) / "queries.jsonl").read_text().splitlines()
    return {record["qid"]: record["query"] for record in map(json.loads, lines)}


def qrels(dataset: str) -> list[str]:
    return (TASK / "datasets" / dataset / "truths" / "qrels.txt").read_text().splitlines()


def source_again(folder: Path) -> None:
    """Put upstream's files together again from the datasets."""
    all_topics = {**topics("dev"), **topics("test")}
    judgments = sorted(qrels("dev") + qrels("test"), key=lambda line: [int(x) for x in line.split()])
    docs = (f"<DOC>\n<DOCNO>{d['docno']}</DOCNO>\n{d['text']}\n</DOC>\n" for d in documents("dev"))
    (folder / "doc-text.trec").write_text("".join(docs))
    numbers = sorted(all_topics, key=int)
    tops = (f"<top>\n<num>{n}</num><title>\n{all_topics[n]}\n</title>\n</top>\n" for n in numbers)
    (folder / "query-text.trec").write_text("".join(tops))
    (folder / "qrels").write_text("".join(line + "\n" for line in judgments))


def test_sizes_are_those_of_the_collection() -> None:
    for dataset in DATASETS:
        ids = [record["docno"] for record in documents(dataset)]
        assert len(ids) == len(set(ids)) == 11_429
        judged = [line.split() for line in qrels(dataset)]
        assert {row[0] for row in judged} == topics(dataset).keys() and {row[2] for row in judged} <= set(ids)
    assert (len(topics("dev")), len(topics("test"))) == (31, 62)
    assert not topics("dev").keys() & topics("test").keys()
    assert (len(qrels("dev")), len(qrels("test"))) == (622, 1_461)


@pytest.mark.parametrize("dataset", DATASETS)
def test_inputs_are_the_documented_files_and_hold_no_truths(dataset: str) -> None:
    files = sorted(path.name for path in inputs(dataset).iterdir())
    assert files == ["documents.jsonl.gz", "metadata.json", "queries.jsonl", "queries.xml"]
    for record in documents(dataset):
        assert record.keys() == {"docno", "text", "original_document"}
    for line in (inputs(dataset) / "queries.jsonl").read_text().splitlines():
        assert json.loads(line).keys() == {"qid", "query", "original_query"}
    metadata = json.loads((inputs(dataset) / "metadata.json").read_text())
    assert metadata == {"ir_datasets_id": f"vaswani-{dataset}"}
    root = ET.parse(inputs(dataset) / "queries.xml").getroot()
    assert {topic.get("number"): topic.findtext("query") for topic in root} == topics(dataset)


def test_both_datasets_hold_the_same_documents_and_no_time_in_the_gzip_header() -> None:
    dev, test = ((inputs(dataset) / "documents.jsonl.gz").read_bytes() for dataset in DATASETS)
    assert dev == test
    assert dev[4:8] == bytes(4)


def test_upstream_files_can_be_put_together_again(tmp_path: Path) -> None:
    source_again(tmp_path)
    assert {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in UPSTREAM} == UPSTREAM


def test_converting_again_gives_the_committed_files(tmp_path: Path) -> None:
    source_again(tmp_path)
    converter().convert(tmp_path, tmp_path / "out")
    for made in sorted((tmp_path / "out").rglob("*")):
        if made.is_file():
            committed = TASK / "datasets" / made.relative_to(tmp_path / "out")
            # Compressed bytes may differ between builds of zlib; what they hold may not.
            opened = gzip.decompress if made.suffix == ".gz" else bytes
            assert opened(made.read_bytes()) == opened(committed.read_bytes()), made.name


def test_a_changed_collection_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source_again(tmp_path)
    with (tmp_path / "qrels").open("a") as judgments:
        judgments.write("1 0 1 1\n")
    assert converter().main([str(tmp_path), str(tmp_path / "out")]) == 1
    assert "2084" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
