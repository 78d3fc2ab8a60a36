"""The command line: every option of the original in both spellings, its actions, and its mistakes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluator.__main__ import main
from evaluator.argue.arguments import whole_parser
from tests.evaluator.argue.conftest import Argue
from tests.worlds.judging_play import LOOKUP, NUGGETS, PROMPTS, REPORT, SAMPLES, rows

pytestmark = pytest.mark.usefixtures("clean")

CARELESS = SAMPLES / "sample_report_careless.jsonl"
OUTPUTS = SAMPLES.parent / "sample-outputs"
LEXICAL = ("-p", "lexical", "-C", LOOKUP)
FLAGS = [
    "verbose",
    "validate-judgments",
    "always-check-all-nuggets",
    "rerun",
    "truncate-reports",
    "disable-cache",
    "do-nugget-alignment-check",
    "penalize-missing-topics",
]
# The options of Auto-ARGUE and what its users call them: words, our name for it, its value.
OPTIONS: list[tuple[list[str], str, Any]] = [
    (["-p", "openai"], "model_provider", "openai"),
    (["--model-provider", "openai"], "model_provider", "openai"),
    (["--provider", "openai"], "model_provider", "openai"),
    (["-m", "x"], "model_name", "x"),
    (["--model-name=x"], "model_name", "x"),
    (["-C", "d"], "collection_dir", "d"),
    (["--collection-dir", "d"], "collection_dir", "d"),
    (["-c", "neuclir/1/ru", "neuclir/1/fa"], "collection", ["neuclir/1/ru", "neuclir/1/fa"]),
    (["--collection", "neuclir/1/ru", "--collection", "b"], "collection", ["neuclir/1/ru", "b"]),
    (["-c", "a", "-c", "b"], "collection", ["a", "b"]),
    (["-a", "annotate", "score"], "actions", ["annotate", "score"]),
    (["--actions", "score"], "actions", ["score"]),
    ([], "actions", ["annotate", "score"]),
    (["-P", "f.json"], "prompt_config", Path("f.json")),
    (["--prompt-config", "f.json"], "prompt_config", Path("f.json")),
    (["-v"], "verbose", True),
    (["--max-tokens", "300"], "max_tokens", 300),
    ([], "max_tokens", 10),
    (["--topics", "1", "2"], "topics", ["1", "2"]),
    (["-t", "1"], "topics", ["1"]),
    (["--max-report-length", "5"], "max_report_length", 5),
    *(([f"--{flag}"], flag.replace("-", "_"), True) for flag in FLAGS),
]


@pytest.mark.parametrize(("words", "name", "value"), OPTIONS, ids=lambda v: " ".join(v) if isinstance(v, list) else None)  # fmt: skip
def test_every_option_of_the_original(words: list[str], name: str, value: Any) -> None:
    for spelling in (words, [re.sub(r"(?<=\w)-(?=\w)", "_", word) for word in words]):
        assert getattr(whole_parser("").parse_args(["in", "nuggets", "out", *spelling]), name) == value


def test_help_shows_each_option_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["argue", "-h"])
    text = capsys.readouterr().out
    assert ended.value.code == 0 and "--prompt-config" in text and "--prompt_config" not in text


def test_the_samples_are_judged_and_scored_offline(argue: Argue, golden: Callable[[str, str], None]) -> None:
    said = argue(REPORT, NUGGETS, "results/sample", *LEXICAL, "-a", "annotate", "score", "--verbose", "--validate-judgments")  # fmt: skip
    assert said.code == 0 and "nugget_coverage" in said.out
    text = f"standard output:\n{said.out}standard error:\n{said.err}"
    golden("argue-judging.txt", re.sub(r"sha256:\w+", "sha256:DIGEST", text))
    [judged] = rows(Path("results/sample.judgments.jsonl"))
    assert judged["request_id"] == "388" and len(judged["segments"]) == 6
    head = Path("results/sample.scores.tsv").read_text().splitlines()[0]
    assert head == "run_id\trequest_id\tmetric\tvalue"


@pytest.mark.parametrize("name", ["sample", "sample_careless"])
def test_the_shipped_outputs_follow_from_the_shipped_judgments(argue: Argue, name: str) -> None:
    report = REPORT if name == "sample" else CARELESS
    judgments = OUTPUTS / f"{name}.judgments.jsonl"
    assert argue("score", report, NUGGETS, name, "--judgments", judgments).code == 0
    assert Path(f"{name}.scores.tsv").read_bytes() == (OUTPUTS / f"{name}.scores.tsv").read_bytes()


def test_a_script_of_the_original_as_a_process() -> None:
    command = [sys.executable, "-m", "evaluator.argue.eval", REPORT, NUGGETS, "results/sample", "-p", "lexical",
               "-a", "annotate", "score", "--verbose", "--validate_judgments"]  # fmt: skip
    env = {**os.environ, "DOC_LOOKUP": str(LOOKUP)}
    done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert Path("results/sample.scores.tsv").is_file()
    assert "\r" not in done.stderr  # no progress bar in a file


def test_annotate_and_score_are_commands(argue: Argue) -> None:
    link = Path("link.jsonl")
    link.symlink_to(REPORT)
    assert argue("annotate", link, NUGGETS, "x", *LEXICAL).code == 0
    assert not Path("x.scores.tsv").exists()
    assert argue("score", NUGGETS, "x").code == 0
    assert argue(REPORT, NUGGETS, "y", *LEXICAL).code == 0
    assert Path("y.scores.tsv").read_bytes() == Path("x.scores.tsv").read_bytes()
    assert argue(REPORT, NUGGETS, "x", "-a", "score").code == 0  # as in the original


def test_stored_judgments_are_used_until_something_changes(argue: Argue) -> None:
    words = (REPORT, NUGGETS, "x", *LEXICAL)
    assert argue(*words).code == 0
    first = Path("x.judgments.jsonl").read_bytes()
    for option, reused in (((), True), (("--rerun",), False)):
        said = argue(*words, *option)
        assert said.code == 0 and ("1 of 1" in said.err) == reused
        assert Path("x.judgments.jsonl").read_bytes() == first
    said = argue(*words, "--always-check-all-nuggets")
    assert said.code == 0 and "0 of 1" in said.err and "91 questions" in said.err
    assert Path("x.judgments.jsonl").read_bytes() != first


@pytest.fixture
def two_topics(clean: Path) -> tuple[Path, Path]:
    """Reports and nuggets: the sample, and the same on a topic 389."""
    report, nuggets = json.loads(REPORT.read_text()), json.loads(NUGGETS.read_text())
    reports, banks = clean / "two.jsonl", clean / "nuggets"
    banks.mkdir()
    lines = []
    for topic in ("388", "389"):
        report["metadata"]["topic_id"] = nuggets["query_id"] = topic
        lines.append(json.dumps(report) + "\n")
        (banks / f"nuggets_{topic}.v3.json").write_text(json.dumps(nuggets))
    reports.write_text("".join(lines))
    return reports, banks


@pytest.mark.parametrize("more", [(), ("--rerun",)])
def test_topics_leave_other_judgments_alone(argue: Argue, two_topics: tuple[Path, Path], more: Any) -> None:
    assert argue(*two_topics, "x", *LEXICAL).code == 0
    first = Path("x.judgments.jsonl").read_bytes()
    assert argue(*two_topics, "x", *LEXICAL, "-t", "388", *more).code == 0
    assert Path("x.judgments.jsonl").read_bytes() == first
    scores = Path("x.scores.tsv").read_text().splitlines()[1:]
    assert {row.split("\t")[1] for row in scores} == {"all", "388"}


def test_judgments_of_removed_reports_are_kept(argue: Argue, two_topics: tuple[Path, Path]) -> None:
    assert argue(*two_topics, "x", *LEXICAL).code == 0
    before = Path("x.judgments.jsonl").read_bytes()
    reports = two_topics[0]
    reports.write_text(reports.read_text().splitlines()[0] + "\n")
    said = argue(*two_topics, "x", *LEXICAL)
    assert said.code == 0 and "x.judgments.jsonl.old" in said.err
    assert Path("x.judgments.jsonl.old").read_bytes() == before
    assert Path("x.judgments.jsonl").read_bytes() in before


def test_additions_are_not_made_of_defaults(argue: Argue) -> None:
    assert argue(REPORT, NUGGETS, "x", *LEXICAL).code == 0
    before = Path("x.scores.tsv").read_bytes()
    for option, kind in (("--strict", "GIVES_WRONG_ANSWER"), ("--negative-assertions", "NEGATIVE_ASSERTION")):
        said = argue("score", NUGGETS, "x", option)
        assert said.code == 4 and kind in said.err and "topic 388" in said.err
    assert Path("x.scores.tsv").read_bytes() == before


def test_a_format_of_one_run_is_refused_before_anything_is_written(argue: Argue) -> None:
    [judged] = rows(OUTPUTS / "sample.judgments.jsonl")
    runs = [judged, {**judged, "run_id": "other"}]
    Path("x.judgments.jsonl").write_text("".join(json.dumps(j) + "\n" for j in runs))
    assert argue("score", NUGGETS, "x", "--leaderboard", "tot", "trec_eval").code == 2
    assert [p.name for p in Path().iterdir()] == ["x.judgments.jsonl"]


def test_judgments_without_nuggets_are_reported(argue: Argue, two_topics: tuple[Path, Path]) -> None:
    _, banks = two_topics
    assert argue("annotate", *two_topics, "x", *LEXICAL).code == 0
    said = argue("score", NUGGETS, "x")
    assert said.code == 0 and "1 of 2" in said.err
    (banks / "nuggets_388.v3.json").unlink()
    assert argue("score", banks, "x", "-t", "389").code == 0
    before = Path("x.scores.tsv").read_bytes()
    path = Path("x.judgments.jsonl")
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert argue("score", banks, "x").code == 2
    assert Path("x.scores.tsv").read_bytes() == before  # nothing is written


def test_judgments_of_auto_argue_are_used_as_they_are(argue: Argue) -> None:
    [judged] = rows(OUTPUTS / "sample.judgments.jsonl")
    judged.pop("judge", None)
    assert max(len(s["citations"]) for s in judged["segments"]) > 1
    for segment in judged["segments"]:
        segment["citations"].reverse()  # the original stores a set
    Path("x.judgments.jsonl").write_text(json.dumps(judged) + "\n")
    said = argue(REPORT, NUGGETS, "x", "-C", LOOKUP)  # no key, and none is needed
    assert said.code == 0 and "x.judgments.jsonl" in said.err
    assert Path("x.scores.tsv").read_bytes() == (OUTPUTS / "sample.scores.tsv").read_bytes()


@pytest.mark.parametrize("provider", ["", "openai", "anthropic", "together", "huggingface"])
def test_each_provider_names_its_key(argue: Argue, provider: str) -> None:
    said = argue(REPORT, NUGGETS, "x", "-C", LOOKUP, *(["-p", provider] if provider else []))
    keys = {"huggingface": "HUGGINGFACEHUB_API_TOKEN", "": "TOGETHER_API_KEY"}
    assert said.code == 2 and keys.get(provider, f"{provider.upper()}_API_KEY") in said.err
    assert "-p lexical" in said.err and not Path("x.judgments.jsonl").exists()


MISTAKES = [
    (["-p", "lexicl", "-C", str(LOOKUP)], 2, "lexical?"),
    (["--promt_config", "x"], 2, "--prompt_config?"),
    (["--val"], 2, "--validate-judgments?"),
    (["--max-t", "3"], 2, "--max-tokens?"),
    (["--m"], 2, "--max-tokens"),
    (["-a", "annotat"], 2, "'annotate', 'score'"),
    (["--max-tokens", "none"], 2, "--max-tokens"),
    (["--max-tokens", "0"], 2, "--max-tokens"),
    (["-C", "nowhere"], 2, "nowhere"),
    (["-C", str(LOOKUP), "-c", "neuclir/1/en"], 4, "neuclir/1/en"),
    (["-C", str(LOOKUP), "-c", "../x"], 2, "../x"),
    (["-C", str(LOOKUP), "-t", "389"], 2, "389"),
    (["-C", str(LOOKUP), "-P", "nowhere.json"], 4, "nowhere.json"),
    (["-C", str(LOOKUP), "--requests", "nowhere.jsonl", "--truncate-reports"], 4, "nowhere.jsonl"),
    (["-C", str(LOOKUP), "-p", "human"], 2, "--human"),
    ([], 2, "DOC_LOOKUP"),
]


@pytest.mark.parametrize(("words", "code", "value"), MISTAKES, ids=lambda v: " ".join(v) if isinstance(v, list) else None)  # fmt: skip
def test_mistakes_name_what_was_meant(argue: Argue, words: list[str], code: int, value: str) -> None:
    said = argue(REPORT, NUGGETS, "x", *([] if "-p" in words else ["-p", "lexical"]), *words)
    assert said.code == code
    assert value in said.err and "Traceback" not in said.err and "internal" not in said.err
    assert not Path("x.scores.tsv").exists()


def test_missing_files_and_broken_reports(argue: Argue) -> None:
    Path("broken.jsonl").write_text('{"metadata": {}}\n{oops\n')
    assert argue("nothing.jsonl", NUGGETS, "x", "-p", "lexical").code == 1
    assert argue(REPORT, "n_1.v3.json", "x", "-p", "lexical").code == 4
    said = argue("broken.jsonl", NUGGETS, "x", "-p", "lexical")
    assert said.code == 1 and "broken.jsonl:1" in said.err and "broken.jsonl:2" in said.err


def test_collections_by_option_variable_and_alias(argue: Argue, monkeypatch: pytest.MonkeyPatch) -> None:
    said = argue(REPORT, NUGGETS, "x", *LEXICAL, "-c", "neuclir/1/rus", "neuclir/1/zho")
    assert said.code == 0 and "fa-101" in said.err
    Path(".env").write_text(f"DOC_LOOKUP={LOOKUP}\n")
    assert argue(REPORT, NUGGETS, "y", "-p", "lexical").code == 0
    Path(".env").unlink()
    monkeypatch.setenv("DOC_LOOKUP", str(LOOKUP))
    assert argue(REPORT, NUGGETS, "z", "-p", "lexical").code == 0
    assert Path("y.scores.tsv").read_bytes() == Path("z.scores.tsv").read_bytes()
    assert not list(LOOKUP.glob("*.index"))  # the folder belongs to somebody else


def test_reports_are_cut_at_their_limit(argue: Argue) -> None:
    Path("requests.jsonl").write_text('{"request_id": "388", "title": "t", "limit": 70}\n')
    for option, sentences in (("--max-report-length=130", 2), ("--requests=requests.jsonl", 1)):
        assert argue(REPORT, NUGGETS, "x", *LEXICAL, "--rerun", "--truncate-reports", option).code == 0
        assert len(rows(Path("x.judgments.jsonl"))[0]["segments"]) == sentences


def score(prefix: str, metric: str) -> float:
    table = (line.split("\t") for line in Path(f"{prefix}.scores.tsv").read_text().splitlines())
    return next(float(value) for _, topic, name, value in table if (topic, name) == ("all", metric))


def test_alignment_and_missing_topics(argue: Argue, two_topics: tuple[Path, Path]) -> None:
    words = (REPORT, two_topics[1], "x", *LEXICAL)
    said = argue(*words, "--do-nugget-alignment-check")
    assert said.code == 4 and '"389"' in said.err
    assert argue(*words, "--do-nugget-alignment-check", "--topics", "388").code == 0
    coverage = score("x", "nugget_coverage_macro")
    assert argue(*words, "--penalize-missing-topics").code == 0
    assert score("x", "nugget_coverage_macro") == coverage / 2 > 0


def test_judgments_that_do_not_fit_stop_the_scoring_on_demand(argue: Argue) -> None:
    [judged] = rows(OUTPUTS / "sample.judgments.jsonl")
    judged["segments"][2]["judgments"] = judged["segments"][2]["judgments"][:1]
    Path("j.jsonl").write_text(json.dumps(judged) + "\n")
    for option, code in ((["--validate_judgments"], 4), ([], 0)):
        said = argue("score", NUGGETS, "x", "--judgments", "j.jsonl", *option)
        assert said.code == code and "SENTENCE_ATTESTED" in said.err
    assert argue("score", NUGGETS, "x", "--judgments", "none.jsonl").code == 2
    assert argue("score", NUGGETS).code == 2


def test_people_judge(argue: Argue) -> None:
    words = ("-p", "human", "-C", LOOKUP, "--human", OUTPUTS / "sample.judgments.jsonl")
    assert argue(REPORT, NUGGETS, "x", *words, "--validate-judgments").code == 0
    assert Path("x.scores.tsv").read_bytes() == (OUTPUTS / "sample.scores.tsv").read_bytes()
    said = argue(CARELESS, NUGGETS, "x", *words)
    assert said.code != 0 and "REQUIRES_CITATION" in said.err


def test_prompts_are_checked_even_if_no_model_reads_them(argue: Argue) -> None:
    said = argue(REPORT, NUGGETS, "x", *LEXICAL, "-P", PROMPTS)
    assert said.code == 0 and "-P" in said.err
    Path("bad.json").write_text('{"sentence_attested": {"user_prompt": "?", "system_prompt": "?"}}')
    assert argue(REPORT, NUGGETS, "x", *LEXICAL, "--prompt_config", "bad.json").code != 0


def test_every_leaderboard_format_is_written(argue: Argue) -> None:
    forms = ["--leaderboard", "tot", "ir_measures", "jsonl", "--leaderboard", "trec_eval"]
    assert argue(REPORT, NUGGETS, "x", *LEXICAL, *forms).code == 0
    for form in ("tot", "ir_measures", "jsonl", "trec_eval"):
        assert Path(f"x.{form}.txt").stat().st_size > 100


def test_additions_never_mix_with_comparable_figures(argue: Argue) -> None:
    assert argue(REPORT, NUGGETS, "x", *LEXICAL).code == 0
    assert argue(REPORT, NUGGETS, "y", *LEXICAL, "--strict", "--negative-assertions").code == 0
    for metric in ("f1_macro", "nugget_coverage_micro", "sentence_support_macro"):
        assert score("x", metric) == score("y", metric)
    assert score("y", "f1_strict_macro") <= score("x", "f1_macro")


def test_the_estimate_comes_before_the_key(argue: Argue) -> None:
    words = (REPORT, NUGGETS, "deep/x", "-C", LOOKUP, "-p", "openai", "--dry-run")
    said = argue(*words)
    assert said.code == 0 and re.search(r"\b23\b.*\b22\b.*\$", said.err)
    assert not Path("deep").exists()
    assert "$13." in argue(*words, "--price", "1000", "0").err
