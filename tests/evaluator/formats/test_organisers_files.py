"""Topics, corpora and judgements in the formats in which organisers have them."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluator.errors import EvaluatorError
from evaluator.formats.corpus import read_corpus
from evaluator.formats.files import files_in
from evaluator.formats.qrels import read_qrels
from evaluator.formats.topics import read_topics


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("queries.jsonl", '{"qid": "1", "query": "x"}\n\n{"qid": 2}\n'),
        (
            "queries.xml",
            '<?xml version="1.0"?><topics><topic number="1"><title>a</title></topic>\n'
            "<topic type=\"x\" number='2'/></topics>",
        ),
        (
            "topics.xml",
            "<topics>\n<topic>\n<number> 1 </number><title>a</title></topic>"
            "<topic><number>2</number></topic></topics>",
        ),
        ("topics.trec", "<top>\n<num> Number: 1\n<title>a\n</top>\n<top>\n<num> Number: 2\n</top>"),
        ("query-text.trec", "<top>\n<num>1</num><title>\nA\n</title>\n</top>\n<top>\n<num>2</num>\n</top>"),
        ("topics.tsv", "1\twhat is it\n2\tand this\n"),
        ("topics.txt", "1\n2\n"),
    ],
)
def test_topics(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    assert read_topics(tmp_path / name) == [b"1", b"2"]
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    assert read_topics(tmp_path / f"{name}.gz") == [b"1", b"2"]


@pytest.mark.parametrize(
    ("reader", "name", "content"),
    [
        *((read_topics, "t.jsonl", content) for content in ('{"x": 1}\n', "no\n")),
        *((read_topics, "t.txt", content) for content in ("", "1\n1\n")),
        *((read_corpus, "c.jsonl", content) for content in ("{}\n", "[\n")),
        *((read_corpus, "c.txt", content) for content in ("\n", None)),
        *((read_qrels, "qrels", content) for content in ("", "1 0 d1\n", "1 0 d1 x\n")),
        *(
            (read_qrels, "qrels", content)
            for content in ("1 0 d1 1\n1 0 d1 0\n", "1 0 d1 1_0\n", "1 0 d1 1e1\n")
        ),
    ],
)
def test_bad_files_are_named(
    reader: Callable[[Path], Any], name: str, content: str | None, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(EvaluatorError) as caught:
        reader(tmp_path / name)
    assert name in "".join(caught.value.lines())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "documents.jsonl",
            '{"docno": "d1", "text": "x"}\n{"text": "\\"docno\\": no", "docno": "d\\u00e9"}\n',
        ),
        ("documents.jsonl", '{"docno":"d1"}\n{"docno":"d\\u00e9"}'),
        ("corpus.jsonl", '{"_id": "d1"}\n{"_id": "dé"}\n'),
        ("ids.txt", "d1\n\ndé\n"),
        ("doc-text.trec", "<DOC>\n<DOCNO>d1</DOCNO>\ntext\n</DOC>\n<DOC>\n<DOCNO> dé </DOCNO>\n</DOC>\n"),
    ],
)
def test_corpora(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    for path in (tmp_path / name, tmp_path / f"{name}.gz"):
        corpus = read_corpus(path)
        assert sorted(corpus.ids()) == [b"d1", "dé".encode()]
        assert set(corpus.missing([b"d1", b"d2"])) == {b"d2"} and not corpus.missing([b"d1"])


def test_qrels(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("# judged by us\n1 0 d1 2\r\n\n1\t0\td2\t-1\n#2 0 d1 1\n")
    assert read_qrels(tmp_path / "qrels").grades == {b"1": {b"d1": 2, b"d2": -1}, b"#2": {b"d1": 1}}


def test_decimal_grades_are_read_as_trec_eval_reads_them(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("\ufeff1 0 d1 4.0\n1 0 d2 -1.000\n1 0 d3 +2.\r\n1 0 d4 0\n")
    assert read_qrels(tmp_path / "qrels").grades == {b"1": {b"d1": 4, b"d2": -1, b"d3": 2, b"d4": 0}}
    for grade in ("0.5", "1.0000001", ".5", "1.5e0"):
        (tmp_path / "qrels").write_text(f"1 0 d1 1\n1 0 d2 {grade}\n")
        with pytest.raises(EvaluatorError) as error:
            read_qrels(tmp_path / "qrels")
        assert "qrels:2" in error.value.why
        assert grade not in "".join(error.value.lines()), "truths are not shown"


def test_a_file_is_what_it_holds_whatever_it_is_called(tmp_path: Path) -> None:
    topics, corpus = b'{"qid": 1}\n{"qid": 2}\n', b'{"docno": "d1"}\r\n{"docno": "d2"}\r\n'
    for name in ("x.jsonl", "x.jsonl.gz", "x.jsonl.gzip", "x.txt", "x"):
        for mark in (b"", b"\xef\xbb\xbf"):
            for pack in (bytes, gzip.compress):
                (tmp_path / name).write_bytes(pack(mark + topics))
                assert read_topics(tmp_path / name) == [b"1", b"2"]
                (tmp_path / name).write_bytes(pack(mark + corpus))
                assert sorted(read_corpus(tmp_path / name).ids()) == [b"d1", b"d2"]
                (tmp_path / name).write_bytes(pack(mark + b"1 0 d1 1\r\n"))
                assert read_qrels(tmp_path / name).grades == {b"1": {b"d1": 1}}


def test_in_a_folder_what_is_passed_over_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.jsonl", "b.jsonl.gzip", "c.v3.json.bak", "\x1b[31m.txt", "README.md", ".hidden"):
        (tmp_path / name).touch()
    (tmp_path / "deeper.jsonl").mkdir()
    found = files_in(tmp_path, (".jsonl", ".jsonl.gzip"))
    assert [p.name for p in found] == ["a.jsonl", "b.jsonl.gzip"]
    said = capsys.readouterr().err
    assert "c.v3.json.bak" in said and "\\x1b" in said and "\x1b" not in said
    assert "README" not in said and ".hidden" not in said and "a.jsonl" not in said.split("(")[0]


@pytest.mark.parametrize(
    "text",
    [
        b"1 0 a 2\n1 0 b -1\n2 0 a +1\n",
        b"1 0 a 2.0\r\n1\t0\tb\t3.\r\n",
        b"1 0 a 2\n2 0 a 1\n1 0 b 1",  # not grouped
        b"1 s1 a 2\n1 s2 a 1\n1 s1 b 0\n",  # judged for two subtopics
        b"1 0 #a 2\n #1 0 b 1\n",
        b" # 0 a 2\n2 0 b 1\n",  # a comment of four words
        b"1 0 a 2\n\n2 0 b 1\n",
    ],
)
def test_judgements_read_by_columns_are_those_read_line_by_line(text: bytes, tmp_path: Path) -> None:
    """A comment before them has each line read by itself."""
    (tmp_path / "plain").write_bytes(text)
    (tmp_path / "commented").write_bytes(b"# a comment\n" + text)
    plain, commented = (read_qrels(tmp_path / name) for name in ("plain", "commented"))
    assert list(plain.grades.items()) == list(commented.grades.items())
    assert (plain.rows, plain.repeated) == (commented.rows, commented.repeated)


def test_judgements_of_three_and_five_columns_are_refused_by_their_line(tmp_path: Path) -> None:
    """Together they have as many words as two lines of four."""
    (tmp_path / "qrels").write_bytes(b"1 0 a\n1 1 0 b 1\n")
    with pytest.raises(EvaluatorError) as caught:
        read_qrels(tmp_path / "qrels")
    assert re.findall(r"\d", caught.value.why) == ["1", "3", "4"]
