"""A run that is wrong in several ways: every way is said at once, by line, and first what it comes to."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from evaluator.__main__ import main
from evaluator.formats.ranked import Rules
from tests.worlds.run_files import Ids, read

OTHERS = "".join(
    f"{topic} Q0 {'X' if topic > 51 else 'MED-'}{rank % 9} {rank} {'nan' if rank == 5 else 100 - rank} tag\n"
    for topic in range(51, 101)
    for rank in range(1, 11)
)


@pytest.fixture
def checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What ``evaluator check`` prints of a run for other topics and documents, with duplicates and NaN, line by line."""
    (tmp_path / "run.txt").write_text(OTHERS)
    (tmp_path / "topics.txt").write_text("".join(f"{n}\ta question\n" for n in range(1, 51)))
    (tmp_path / "corpus.txt").write_text("".join(f"MED-{n}\n" for n in range(10)))
    paths = {name: str(tmp_path / f"{name}.txt") for name in ("run", "topics", "corpus")}
    assert main(["check", paths["run"], "--topics", paths["topics"], "--corpus", paths["corpus"]]) == 1
    return capsys.readouterr().out.replace(f"{tmp_path}/", "").splitlines()


def test_no_problem_hides_another(checked: list[str]) -> None:
    codes = ("F012", "F014", "F017", "F019")
    shown = Counter(code for line in checked[2:] for code in codes if f": {code} error: " in line)
    assert set(shown) == set(codes) and len(set(shown.values())) == 1, "of each as many"
    assert checked[-2] == "... and 38 more F012, 38 more F014, 38 more F017, 429 more F019"
    lines = [int(line.split(":")[1]) for line in checked[2:-2]]
    assert lines == sorted(lines)
    both = [line for line in checked if line.startswith("run.txt:15: ")]
    assert len(both) == 2, "a line has a score and a document"


def test_it_is_summarised_first_with_ids_that_are_there(checked: list[str]) -> None:
    topics, documents = checked[:2]
    assert topics.startswith("run.txt: F017 error: ") and documents.startswith("run.txt: F019 error: ")
    assert re.findall(r"\d+", topics.removeprefix("run.txt: F017")) == ["50", "51", "100", "1", "50"]
    assert re.findall(r"(?<= )\d+|\"[^\"]*\"", documents) == ["9", "450", '"X0"', '"MED-0"']


def test_a_summary_is_said_where_no_id_is_near_and_is_not_counted(tmp_path: Path) -> None:
    run = b"3 Q0 d1 1 9 tag\n3 Q0 doc-77 2 8 tag\n3 Q0 d2 3 7 tag\n"
    rules = Rules(topics=frozenset({b"3"}), documents=Ids(b"d1", b"d2", b"D-3"), suggest=True)
    _, log = read(tmp_path / "run.txt", run, rules)
    summary, finding = ({*re.findall(r'"([^"]*)"', one.message)} for one in log.sorted())
    assert (summary, finding) == ({"doc-77", "D-3"}, {"doc-77"})
    assert log.counts == {"F019": 1} and log.count("error") == 1
    _, log = read(tmp_path / "run.txt", run.replace(b"doc-77", b"D1"), rules)
    assert [re.findall(r'"([^"]*)"', one.message) for one in log.sorted()] == [["D1", "d1"]]


def test_ids_of_a_blinded_dataset_are_not_said(tmp_path: Path) -> None:
    rules = Rules(topics=frozenset({b"secret-1"}), documents=Ids(b"secret-2"))
    _, log = read(tmp_path / "run.txt", OTHERS.encode(), rules)
    assert {"F017", "F019"} == {one.code for one in log.summaries}
    assert not any("secret" in str(one) for one in log.sorted())


@pytest.mark.parametrize("severity", ["warning", "ignore"])
def test_what_does_not_count_is_not_looked_at(tmp_path: Path, severity: str) -> None:
    rules = Rules(topics=frozenset({b"51"}), documents=Ids(*(b"MED-%d" % n for n in range(10))))
    run = "".join(line + "\n" for line in OTHERS.splitlines() if " 10 " not in line and "MED-1 9" not in line)
    run = run.replace("51 Q0 MED-0 9", "51 Q0 MED-9 9")
    severities = {"F017": severity, "F014": severity}
    _, log = read(tmp_path / "run.txt", run.encode() + b"51 Q0 X1 11 nan tag\n", rules, severities=severities)
    assert not log.invalid, [str(one) for one in log.sorted()]
