"""Collections and their index: every form of document, parallel builds, changes, folders that cannot be written."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluator.argue import Document, Lookup, Report, open_collection, open_lookup
from evaluator.argue.formats.documents import document_of
from evaluator.argue.formats.lookup import find
from evaluator.errors import EvaluatorError
from tests.worlds.argue_making import DATA, lines


@pytest.fixture(params=["plain", "gzip"])
def collection(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The Cranfield documents, packed or not."""
    packed = (DATA / "rag-spot-check/corpus.jsonl.gz").read_bytes()
    path = tmp_path / ("c.jsonl.gz" if request.param == "gzip" else "c.jsonl")
    path.write_bytes(packed if request.param == "gzip" else gzip.decompress(packed))
    return path


def test_real_documents(collection: Path) -> None:
    packed = (DATA / "rag-spot-check/corpus.jsonl.gz").read_bytes()
    rows = [json.loads(line) for line in gzip.decompress(packed).splitlines()]
    with open_collection(collection) as found:
        assert len(found) == 1400 and found.repeated == 0
        assert all(
            found.get(d["docno"]) == Document(d["docno"], d["text"], d.get("title") or "") for d in rows
        )
        first = found.get("1")
        assert first is not None and first.judged_text == first.text  # without a title just the text
        assert found.get("471") == Document("471", " ")  # empty in Cranfield
        assert found.get("1401") is None and found.get("") is None and found.get("\ud800") is None
        assert "1400" in found and 1400 not in found


def test_the_index_is_built_once(collection: Path) -> None:
    open_collection(collection).close()
    index = collection.with_name(collection.name + ".index")
    assert {p.name for p in collection.parent.iterdir()} == {collection.name, index.name}
    before = index.stat()
    open_collection(collection).close()
    os.utime(collection, ns=(1, 1))  # copied: another time, the same bytes
    with open_collection(collection) as found:
        assert found.get("2") is not None
    after = index.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns), "built again"


def test_a_changed_collection_or_a_broken_index_gets_a_new_index(tmp_path: Path) -> None:
    path = lines(tmp_path / "c.jsonl", {"id": "d1", "text": "old"})
    open_collection(path).close()
    lines(path, {"id": "d1", "text": "new"}, {"id": "d2", "text": "more"})
    with open_collection(path) as found:
        assert len(found) == 2 and found.get("d1") == Document("d1", "new")
    for content in (b"", b"rubbish" * 1000, b"SQLite format 3\0" + b"\0" * 4000):
        (tmp_path / "c.jsonl.index").write_bytes(content)
        with open_collection(path) as found:
            assert found.get("d1") is not None
    with open_collection(path) as found:
        path.write_text("x" * 200)
        with pytest.raises(EvaluatorError):
            found.get("d1")


def test_many_builders_at_a_time(collection: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from evaluator.argue import open_collection; "
        "print(len(open_collection(Path(sys.argv[1]))))"
    )
    command = [sys.executable, "-c", code, str(collection)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: len(open_collection(collection)), range(4))) == [1400] * 4
    assert [p.communicate(timeout=60)[0].strip() for p in processes] == [b"1400"] * 4
    assert not list(collection.parent.glob("*.part"))


@pytest.fixture
def sealed(collection: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collection whose folder refuses to be written (also for root, who may write everywhere)."""
    real = os.open

    def refuse(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if flags & os.O_CREAT and Path(path).parent == collection.parent:
            raise OSError(30, "Read-only file system")
        return real(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", refuse)
    return collection


def test_a_read_only_folder_uses_the_cache(sealed: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "deep"
    with open_collection(sealed, cache=cache) as found:
        assert found.get("1") is not None
    (index,) = cache.iterdir()
    before = index.stat()
    with open_collection(sealed, cache=cache) as found:
        assert found.get("1400") is not None
    after = index.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns), "built again"


def test_without_a_cache_the_index_lives_as_long_as_the_collection(sealed: Path) -> None:
    with open_collection(sealed) as found:
        assert not found.index.exists()
        assert found.get("1") is not None and found.get("1400") is not None
    assert [p.name for p in sealed.parent.iterdir()] == [sealed.name]


def test_every_form_of_a_document() -> None:
    good = Document("d", "t", "T")
    for data in (
        {"id": "d", "title": "T", "text": "t"}, {"docid": "d", "title": "T", "body": "t"},
        {"doc_id": "d", "title": "T", "contents": "t"}, {"docno": "d", "title": "T", "segment": "t", "url": "u"},
        {"id": None, "docno": "d", "title": "T", "text": "t", "body": "other"},
    ):  # fmt: skip
        assert document_of(data) == good
    assert good.judged_text == "Title: T\n\nContent: t"
    assert document_of({"id": 7, "text": "t", "title": None}) == Document("7", "t")


def test_every_broken_line_is_said(tmp_path: Path) -> None:
    path = lines(tmp_path / "c.jsonl", {"id": "d1", "text": "t"}, "{", {"text": "t"}, {"id": "d3"}, {"id": "", "text": "t"},
                 {"id": "d5", "text": 3}, {"id": "d6", "text": "t", "title": []}, "[]", '{"id": "d8", "text": "\\ud800"}')  # fmt: skip
    with pytest.raises(EvaluatorError) as caught:
        open_collection(path)
    assert re.findall(r"c\.jsonl:(\d)", caught.value.why) == list("23456789")
    assert all(value in caught.value.why for value in ('"d3"', '"d5"', "title"))
    assert [p.name for p in tmp_path.iterdir()] == ["c.jsonl"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.jsonl", b""),
        ("c.jsonl.gz", gzip.compress(b"{}" * 99, mtime=0)[:20]),
        ("c.jsonl.gz", b"\x1f\x8b"),
        ("c.jsonl", None),
    ],
)
def test_no_documents(name: str, content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(EvaluatorError) as caught:
        open_collection(tmp_path / name)
    assert name in str(caught.value)


def test_the_first_of_two_documents_with_one_id_counts(tmp_path: Path) -> None:
    path = lines(tmp_path / "c.jsonl", {"id": "d", "text": "1"}, {"id": "d", "text": "2"})
    with open_collection(path) as found:
        assert found.get("d") == Document("d", "1") and (len(found), found.repeated) == (1, 1)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1, max_size=5), st.text(st.characters(codec="utf-8"), max_size=9), min_size=1, max_size=20),
    st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
def test_every_document_is_found(
    tmp_path: Path, docs: Any, packed: bool, ascii_only: bool, bom: bool
) -> None:
    rows = ({"title": t, "text": t, "id": d} for d, t in docs.items())
    text = "\n\n".join(json.dumps(row, ensure_ascii=ascii_only) for row in rows)
    raw = (b"\xef\xbb\xbf" if bom else b"") + text.encode()
    path = tmp_path / "c.jsonl"
    path.write_bytes(gzip.compress(raw) if packed else raw)
    with open_collection(path) as found:
        assert len(found) == len(docs)
        assert all(found.get(d) == Document(d, t, t) for d, t in docs.items())


# --- several collections -------------------------------------------------------------------------------------


def test_the_first_collection_that_has_it_wins(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", {"id": "d1", "text": "of a"})
    lines(tmp_path / "b.jsonl", {"id": "d1", "text": "of b"}, {"id": "d2", "title": "T", "text": "of b"})
    with open_lookup(tmp_path, ["a", "b"]) as lookup:
        texts = [lookup.text(d) for d in ("d1", "d2", "d3")]
        assert texts == ["of a", "Title: T\n\nContent: of b", None]
    with open_lookup(tmp_path, ["b", "a"]) as lookup:
        assert lookup.text("d1") == "of b" and "d1" in lookup
    with open_lookup(tmp_path / "b.jsonl") as lookup:
        assert lookup.text("d2") is not None


@pytest.mark.parametrize(
    ("collection", "name"),
    [
        ("neuclir/1/ru", "neuclir_1_ru.jsonl"), ("neuclir/1/ru", "ru.jsonl.gz"), ("neuclir/1/ru", "rus.jsonl"),
        ("neuclir/1/rus", "ru.ndjson"), ("neuclir/1/zh", "doc_mapping_zho.jsonl"), ("neuclir/1/fa", "doc_mapping_neuclir_1_fas.jsonl"),
        ("neuclir/1/fa", "neuclir/1/fa.jsonl"), ("mine", "mine.jsonl"), ("mine", "doc_mapping_mine.jsonl.gz"),
    ],
)  # fmt: skip
def test_names_of_collections(collection: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    assert find(tmp_path, collection) == path
    assert find(tmp_path, "neuclir/1/other") is None


@pytest.mark.parametrize("name", ["", "..", "a/../b", "/etc", "a//b", "a\0b", "x" * 300])
def test_no_name_leaves_the_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError):
        find(tmp_path, name)


def test_default_collections_and_missing_ones(tmp_path: Path) -> None:
    lines(tmp_path / "other.jsonl", {"id": "d0", "text": "t"})
    with open_lookup(tmp_path) as lookup:
        assert "d0" in lookup  # none of the default is there: every file
    lines(tmp_path / "rus.jsonl", {"id": "d1", "text": "t"})
    with open_lookup(tmp_path) as lookup:
        assert "d1" in lookup and "d0" not in lookup and lookup.missing == ()
    with open_lookup(tmp_path, ["neuclir/1/ru", "neuclir/1/zh"]) as lookup:
        assert "d1" in lookup and lookup.missing == ("neuclir/1/zh",)
    for collections, strict in ((["neuclir/1/ru", "neuclir/1/zh"], True), (["neuclir/1/zh"], False)):
        with pytest.raises(EvaluatorError) as caught:
            open_lookup(tmp_path, collections, strict=strict)
        assert "neuclir/1/zh" in str(caught.value) and "neuclir/1/ru" not in str(caught.value)


def test_pickles_are_named_and_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "doc_mapping_ru.pkl").write_bytes(b"cos\nsystem\n(S'touch pwned'\ntR.")
    with pytest.raises(EvaluatorError) as caught:
        open_lookup(tmp_path)
    assert "evaluator convert-lookup" in caught.value.fix


def test_documents_of_the_report_come_last_and_only_when_asked(tmp_path: Path) -> None:
    own = {"d1": {"text": "made up"}, "d2": {"text": "own"}}
    report = Report.model_validate({
        "metadata": {"team_id": "t", "run_id": "r", "topic_id": "1"},
        "responses": [{"text": "a", "citations": ["d1", "d2", "d3"]}], "references": [], "documents": own,
    })  # fmt: skip
    with open_lookup(lines(tmp_path / "c.jsonl", {"id": "d1", "text": "real"})) as lookup:
        assert lookup.unknown(report) == ("d2", "d3")
        within = lookup.within(report)
        assert [within.text(d) for d in ("d1", "d2")] == ["real", "own"] and within.unknown(report) == ("d3",)


def test_what_was_found_is_kept_up_to_a_limit() -> None:
    class Counting:
        calls = 0

        def get(self, doc_id: str) -> Document | None:
            self.calls += 1
            return Document(doc_id, "t") if doc_id != "no" else None

    source = Counting()
    lookup = Lookup([source], keep=2)
    missing = [lookup.get(d) is None for d in ("a", "a", "no", "no", "b", "a")]
    assert missing == [False, False, True, True, False, False]
    assert source.calls == 4
