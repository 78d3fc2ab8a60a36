"""``evaluator perspective``: the official script's files, words and what it gets wrong."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from evaluator.__main__ import main
from tests.worlds.releases import ISSUES, KEYS, Literal, argument, lines, other, write

CORPUS = [argument(10, "same"), argument(11, "same"), other(12), *(argument(n) for n in range(13, 40))]
QUERIES = [{"query_id": 0, "text": "?", "relevant_candidates": [10, 12]}]
ASKED = [{**QUERIES[0], "query_id": 201910, "demographic_property": {"gender": "Männlich"}}]
FOUND = [11, 12, 13, 14, 10]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = write(tmp_path / "a release", CORPUS, QUERIES, ASKED)
    lines(tmp_path / "baseline.jsonl", [{"query_id": 0, "relevant_candidates": FOUND}])
    lines(tmp_path / "perspective.jsonl", [{"query_id": 201910, "relevant_candidates": FOUND}])
    return folder


def call(data: Path, *words: str, run: str = "perspective", output: str = "out") -> int:
    base = data.parent
    return main(
        ["perspective", "--data", str(data), "--predictions", str(base / f"{run}.jsonl"), "--split", "dev",
         "--output_dir", str(base / output), *words]
    )  # fmt: skip


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_official_files(data: Path) -> None:
    assert call(data, "--scenario", "implicit") == 0
    folder = data.parent / "out" / "perspective" / "dev"
    literal = Literal(CORPUS)
    rows = table(folder / "relevance_results.csv")
    assert [list(r) for r in rows] == [["k", "ndcg@k", "precision@k"]] * 4
    assert [r["k"] for r in rows] == ["4", "8", "16", "20"]
    for row in rows:
        ndcg, precision = literal.relevance([10, 12], FOUND, int(row["k"]), twins=True)
        assert float(row["ndcg@k"]) == pytest.approx(ndcg, abs=1e-12)
        assert float(row["precision@k"]) == pytest.approx(precision, abs=1e-12)
    rows = table(folder / "diversity_results_per_variable.csv")
    assert list(rows[0]) == ["k", "socio_var", "alpha_ndcg@k", "kl_divergence@k"]
    labels = sorted(KEYS)  # the German labels decide the order, the English names are shown
    assert [(r["k"], r["socio_var"]) for r in rows] == [
        (k, ISSUES.get(p, p)) for k in ("4", "8", "16", "20") for p in labels
    ]
    for row, p in zip(rows, labels * 4, strict=True):
        alpha = literal.alpha_ndcg(p, [10, 12], FOUND, int(row["k"]), twins=True)
        assert float(row["alpha_ndcg@k"]) == pytest.approx(alpha, abs=1e-12)
        assert float(row["kl_divergence@k"]) == pytest.approx(literal.rkl(p, FOUND, int(row["k"])), abs=1e-12)
    means = table(folder / "diversity_results.csv")
    assert list(means[0]) == ["k", "alpha_ndcg@k", "kl_divergence@k"]
    expected = sum(float(r["alpha_ndcg@k"]) for r in rows if r["k"] == "8") / 15
    assert float(means[1]["alpha_ndcg@k"]) == pytest.approx(expected, abs=1e-15)
    assert [r["query_id"] for r in table(folder / "per_query.csv")] == ["201910"] * 4


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("--scenario", "perspective"), "explicit"),
        (("--scenario", "perspective", "--implicit", "False"), "explicit"),
        (("--scenario", "perspective", "--implicit", "True", "--diversity", "True"), "implicit"),
        (("--scenario", "perspective", "--implicit"), "implicit"),
        (("--scenario", "implicit", "--implicit", "True"), "implicit"),
    ],
)
def test_official_spellings_mean_what_they_say(data: Path, words: tuple[str, ...], same: str) -> None:
    assert call(data, *words, output="a") == call(data, "--scenario", same, output="b") == 0
    for name in (
        "relevance_results.csv",
        "diversity_results.csv",
        "diversity_results_per_variable.csv",
        "per_query.csv",
    ):
        one, two = (data.parent / out / "perspective" / "dev" / name for out in "ab")
        assert one.read_bytes() == two.read_bytes()
    both = [data.parent / out / "perspective" / "dev" / "relevance_results.csv" for out in ("a", "c")]
    call(data, "--scenario", "explicit" if same == "implicit" else "implicit", output="c")
    assert both[0].read_bytes() != both[1].read_bytes()


def test_diversity_false_means_false(data: Path) -> None:
    assert call(data, "--scenario", "baseline", run="baseline") == 0
    assert call(data, "--scenario", "baseline", "--diversity", "False", run="baseline") == 0
    names = sorted(p.name for p in (data.parent / "out" / "baseline" / "dev").iterdir())
    assert names == ["per_query.csv", "relevance_results.csv"]


def test_explicit_and_implicit_share_a_folder_unless_told_otherwise(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(data, "--scenario", "explicit")
    assert "replaced" not in capsys.readouterr().err
    call(data, "--scenario", "implicit")
    assert "--own-directories" in capsys.readouterr().err
    call(data, "--scenario", "implicit", "--own-directories", output="own")
    assert (data.parent / "own" / "implicit" / "dev" / "per_query.csv").exists()


def test_json(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(data, "--scenario", "explicit", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["status"], said["scenario"], len(said["relevance"])) == ("valid", "explicit", 4)
    assert len(said["diversity_per_variable"]) == 60


def test_invalid_predictions_write_nothing(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines(data.parent / "bad.jsonl", [{"query_id": 201910, "relevant_candidates": [10, 10, 99]}])
    assert call(data, "--scenario", "explicit", run="bad") == 1
    said = capsys.readouterr()
    assert "bad.jsonl:1: F111" in said.err and "bad.jsonl:1: F112" in said.err and said.out == ""
    assert not (data.parent / "out").exists()
    lines(data.parent / "twice.jsonl", [{"query_id": 201910, "relevant_candidates": [10, 10]}])
    assert call(data, "--scenario", "explicit", "--duplicates", "score", run="twice") == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--scenario", "explicit", "--implicit", "True"), 2),
        (("--scenario", "explicit", "--split", "test"), 4),
        (("--scenario", "explicit", "--data", "no-such-folder"), 2),
        (("--scenario", "explicit", "--output", "/proc/none"), 2),
    ],
)
def test_errors_are_three_lines(
    data: Path, words: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(data, *words) == code
    errors = [
        line for line in capsys.readouterr().err.splitlines() if "F114" not in line and "warning" not in line
    ]
    assert 1 <= len(errors) <= 3 and "Traceback" not in "".join(errors)


def test_a_word_that_is_no_boolean(data: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        call(data, "--scenario", "perspective", "--implicit", "perhaps")
    assert ended.value.code == 2
