"""trec_eval's own test inputs give the values that trec_eval prints for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.findings import Log
from evaluator.formats.qrels import read_qrels
from evaluator.formats.ranked import Rules
from evaluator.formats.trec import scan
from evaluator.measures.ir import Measure, aggregate, evaluate

GOLDEN = Path(__file__).parents[2] / "golden" / "trec_eval"
CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)


def names(level: int) -> dict[str, str]:
    """Our measure for every line that trec_eval prints."""
    rel = f"(rel={level})" if level > 1 else ""
    same = {"map": "AP", "Rprec": "Rprec", "bpref": "Bpref", "recip_rank": "RR", "infAP": "infAP"}
    out = {name: ours + rel for name, ours in same.items()}
    out |= {"ndcg": "nDCG", "num_ret": "NumRet", "num_rel_ret": f"NumRet(rel={level})"}
    for k in CUTOFFS:
        out |= {f"P_{k}": f"P{rel}@{k}", f"recall_{k}": f"R{rel}@{k}"}
        out |= {f"ndcg_cut_{k}": f"nDCG@{k}", f"map_cut_{k}": f"AP{rel}@{k}"}
    return out | {f"success_{k}": f"Success{rel}@{k}" for k in (1, 5, 10)}


@pytest.mark.parametrize(
    ("qrels_name", "output", "level"),
    [("qrels.test", "out.test.aq", 1), ("qrels.rel_level", "out.test.aql", 2)],
)
@pytest.mark.parametrize("fast", [False, True])
def test_values_are_those_of_trec_eval(qrels_name: str, output: str, level: int, fast: bool) -> None:
    wanted = names(level)
    measures = {name: Measure(text) for name, text in wanted.items()}
    qrels = read_qrels(GOLDEN / qrels_name)
    log = Log("results.test")
    read = scan(GOLDEN / "results.test", Rules(judged=qrels.grades), log, fast=fast)
    assert not log.invalid
    values = evaluate(measures.values(), qrels, read.topics)
    compared = 0
    for line in (GOLDEN / output).read_text().splitlines():
        name, topic, printed = line.split()
        if name in measures:
            by_topic = values[measures[name].text]
            ours = aggregate(measures[name], by_topic) if topic == "all" else by_topic[topic.encode()]
            assert f"{ours:.4f}" == f"{float(printed):.4f}", (name, topic)
            compared += 1
    assert compared >= 4 * len(measures) - 8


def test_qrels_with_comments_are_the_same_qrels() -> None:
    with_comments = read_qrels(GOLDEN / "qrels.test.with-comments").grades
    plain = read_qrels(GOLDEN / "qrels.test").grades
    plain[b"301"][b"CR#93E-1860"] = plain[b"301"].pop(b"CR93E-1860")  # the other difference of the two files
    assert with_comments == plain


def test_text_behind_the_sixth_column_is_an_error() -> None:
    log = Log("results.trunc")
    scan(GOLDEN / "results.trunc", Rules(), log)
    assert log.counts["F010"] == 5


def test_a_topic_without_an_answer_counts_zero(tmp_path: Path) -> None:
    """As trec_eval -c does: results.trunc lacks topic 302."""
    trimmed = b"".join(
        b" ".join(line.split()[:6]) + b"\n" for line in (GOLDEN / "results.trunc").read_bytes().splitlines()
    )
    run = tmp_path / "run.txt"
    run.write_bytes(trimmed)
    qrels = read_qrels(GOLDEN / "qrels.test")
    read = scan(run, Rules(judged=qrels.grades), Log("run.txt"))
    measures = {"map": Measure("AP"), "P_10": Measure("P@10"), "ndcg": Measure("nDCG")}
    values = evaluate(measures.values(), qrels, read.topics)
    printed = {}
    for line in (GOLDEN / "out.test.aqc").read_text().splitlines():
        name, topic, value = line.split()
        if topic == "all" and name in measures:
            printed[name] = value
    assert {n: f"{aggregate(m, values[m.text]):.4f}" for n, m in measures.items()} == printed
