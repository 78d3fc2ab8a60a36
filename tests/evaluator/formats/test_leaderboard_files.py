"""Leaderboards in six formats: read, written, and what is wrong in them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.formats.leaderboards import FORMATS, ORDER, Board, Row, read_board, read_boards, write_board

DATA = Path(__file__).parents[1] / "kinds" / "meta" / "data"
ONE = {
    "ir_measures": "run1 leaf nDCG 0.5",
    "tot": "run1 nDCG leaf 0.5",
    "trec_eval": "nDCG                  \tleaf\t0.5",
    "rag4reports": "leaf run1 nDCG 0.5",
    "ranking": "leaf Q0 run1 1 0.5 nDCG",
    "jsonl": '{"run_id": "run1", "topic_id": "leaf", "measure": "nDCG", "value": 0.5}',
}


def read(text: str | bytes, form: str, tmp_path: Path, name: str = "run1") -> tuple[Board, Log]:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    log = Log(name)
    return read_board(path, form, log), log


def board(*rows: tuple[str, str, str, float | str]) -> Board:
    made = Board()
    for row in rows:
        assert made.add(Row(*row))
    return made


@pytest.mark.parametrize("form", FORMATS)
def test_each_format(form: str, tmp_path: Path) -> None:
    data = ONE[form].encode()
    for content in (data, b"\n" + data + b"\r\n\n", gzip.compress(data)):
        read_one, log = read(content, form, tmp_path)
        assert log.kept == []
        assert list(read_one.rows()) == [("run1", "leaf", "nDCG", 0.5)]


def test_trec_eval_says_its_run(tmp_path: Path) -> None:
    text = "runid                 \tall\tmy tag\nmap                   \tall\t0.25\n"
    one, log = read(text, "trec_eval", tmp_path)
    assert log.kept == [] and list(one.runs) == ["my tag"] and one.measures == ["map"]
    assert one.overall("map") == ({"my tag": 0.25}, [])


def test_real_leaderboards() -> None:
    kiddy = read_boards([DATA / "kiddie_fake.eval.ir_measures.txt"], "ir_measures")
    assert kiddy.measures == ["RELEVANCE"]
    given_values, computed = kiddy.overall("RELEVANCE")
    assert given_values == {"run1": 0.864, "run2": 0.692, "run3": 0.316, "run4": 0.088} and not computed
    means, computed = kiddy.overall("RELEVANCE", recompute=True)
    assert means == pytest.approx(given_values), "each value over all topics is the mean of five topics"
    assert len(computed) == 4
    spot = read_boards([DATA / "trec-leaderboard.txt"], "tot")
    runs = ("my_best_run_01", "my_best_run_02", "my_best_run_02_citations")
    assert spot.overall("Measure-02")[0] == dict(zip(runs, (3, 2, 1), strict=True))


def test_the_header_is_passed_over_only_where_it_is(tmp_path: Path) -> None:
    head = "run_id\tquery_id\tmeasure\tvalue\n"
    one, log = read(head + "r\tall\tm\t1\n", "ir_measures", tmp_path)
    assert list(one.runs) == ["r"] and log.kept == []
    _, log = read("r\tall\tm\t1\n" + head, "ir_measures", tmp_path)
    assert [(f.code, f.line) for f in log.kept] == [("F243", 2)]


def test_means_count_missing_topics_as_zero() -> None:
    rows = [("a", "1", "m", 1.0), ("a", "2", "m", 0.5), ("b", "1", "m", 1.0), ("c", "all", "m", 0.9)]
    made = board(*rows, ("d", "1", "n", 1.0))
    assert made.overall("m") == ({"a": 0.75, "b": 0.5, "c": 0.9}, ["a", "b"])
    assert made.overall("other") == ({}, [])


@pytest.mark.parametrize(
    ("form", "text", "code", "value"),
    [
        ("ir_measures", "run1 leaf nDCG", "F242", "3"),
        ("trec_eval", "run1 leaf nDCG 0.5", "F242", "4"),
        ("ranking", ONE["tot"], "F242", "4"),
        ("tot", "run1 nDCG leaf x", "F243", '"x"'),
        ("tot", "run1 nDCG leaf nan", "F243", '"nan"'),
        ("tot", "run1 nDCG leaf 1e200", "F243", "1e200"),
        ("tot", "run1 nDCG leaf 1_0", "F243", "1_0"),
        ("tot", f"run1 nDCG leaf 1\n{ONE['tot']}", "F244", ""),
        ("tot", f"{'r' * 600} nDCG leaf 1", "F242", "500"),
        ("tot", "\tnDCG\tleaf\t1", "F242", "run"),
        ("jsonl", "[]", "F242", ""),
        ("jsonl", "{", "F101", ""),
        ("jsonl", ONE["jsonl"].replace('"run1"', "true"), "F242", "run_id"),
        ("jsonl", '{"run_id": "r", "topic_id": "1", "value": 1}', "F242", "measure"),
        ("jsonl", '{"run_id": "r", "topic_id": "1", "measure": "m"}', "F242", "value"),
        ("jsonl", ONE["jsonl"].replace("0.5", "NaN"), "F243", ""),
        ("jsonl", ONE["jsonl"].replace("0.5", "null"), "F243", "null"),
        ("tot", "\n \n", "F001", ""),
        ("tot", b"\xff\xfe 1 2 3", "F030", "UTF-16"),
        ("tot", b"x" * 70_000, "F009", ""),
    ],
)
def test_what_is_wrong(form: str, text: str | bytes, code: str, value: str, tmp_path: Path) -> None:
    _, log = read(text, form, tmp_path)
    assert log.invalid and log.kept[0].code == code
    assert value in log.kept[0].message and log.kept[0].message.isprintable()


def test_organisers_errors_name_the_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("r all m 1\nr all m\n", encoding="utf-8")
    with pytest.raises(EvaluatorError) as error:
        read_boards([tmp_path], "ir_measures")
    assert "a.txt:2" in error.value.why and ORDER["ir_measures"] in error.value.fix
    with pytest.raises(EvaluatorError):
        read_boards([tmp_path / "none"], "ir_measures")


def test_a_folder_of_trec_eval_files(tmp_path: Path) -> None:
    for n in range(3):
        (tmp_path / f"run{n}").write_text(f"map\tall\t0.{n}\n", encoding="utf-8")
    assert read_boards([tmp_path], "trec_eval").overall("map")[0] == {"run0": 0.0, "run1": 0.1, "run2": 0.2}


names = st.text(
    st.characters(categories=("L", "N", "P"), include_characters="_-. "), min_size=1, max_size=12
).filter(lambda s: s == s.strip() and s.strip() and len(s.splitlines()) == 1)
values = st.floats(-1e9, 1e9, allow_nan=False)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    rows=st.dictionaries(st.tuples(names, names, names), values, min_size=1, max_size=12),
    form=st.sampled_from([f for f in FORMATS if f != "trec_eval"]),
)
def test_what_is_written_is_read_again(
    rows: dict[tuple[str, str, str], float], form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = board(*((r, t, m, v) for (r, t, m), v in rows.items()))
    # A first line that looks like a header is none only if it has a value.
    again, log = read("\n".join(write_board(made, form)), form, tmp_path_factory.mktemp("board"))
    assert log.kept == []
    assert sorted(again.rows()) == sorted(made.rows())


def test_writing_trec_eval() -> None:
    made = board(("tag", "all", "runid", "tag"), ("tag", "1", "map", 0.1), ("tag", "all", "map", 0.1))
    lines = list(write_board(made, "trec_eval"))
    assert lines == ["runid\tall\ttag", "map\t1\t0.1", "map\tall\t0.1"]
    rows = [line.split() for line in write_board(made, "tot")]
    assert rows == [["tag", "map", topic, "0.1"] for topic in ("1", "all")]  # no row of text
    with pytest.raises(EvaluatorError):
        list(write_board(board(("a", "1", "m", 1.0), ("b", "1", "m", 1.0)), "trec_eval"))


def test_ranks_are_written() -> None:
    made = board(("a", "1", "m", 0.5), ("b", "1", "m", 0.9), ("c", "1", "m", 0.5))
    assert list(write_board(made, "ranking")) == ["1 Q0 a 2 0.5 m", "1 Q0 b 1 0.9 m", "1 Q0 c 3 0.5 m"]


@settings(deadline=None, max_examples=100)
@given(data=st.binary(max_size=200), form=st.sampled_from(FORMATS))
def test_nothing_that_can_be_written_raises(
    data: bytes, form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made, log = read(data, form, tmp_path_factory.mktemp("fuzz"))
    assert made.runs or log.invalid
    assert all(f.message.isprintable() for f in log.kept)
