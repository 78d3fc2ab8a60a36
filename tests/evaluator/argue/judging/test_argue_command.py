"""The command line: every option of the original in both spellings, its actions, and what it says to mistakes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evaluator.__main__ import main
from evaluator.argue.arguments import whole_parser
from tests.worlds.judging_play import LOOKUP, NUGGETS, PROMPTS, REPORT, SAMPLES, rows

CARELESS = SAMPLES / "sample_report_careless.jsonl"
OUTPUTS = SAMPLES.parent / "sample-outputs"
# The options of Auto-ARGUE and what its users call them: words, our name for it, its value.
OPTIONS: list[tuple[list[str], str, Any]] = [
    (["-p", "openai"], "model_provider", "openai"),
    (["--model-provider", "openai"], "model_provider", "openai"),
    (["--model_provider", "openai"], "model_provider", "openai"),
    (["--provider", "openai"], "model_provider", "openai"),
    (["-m", "x"], "model_name", "x"),
    (["--model-name", "x"], "model_name", "x"),
    (["--model_name=x"], "model_name", "x"),
    (["-C", "d"], "collection_dir", "d"),
    (["--collection-dir", "d"], "collection_dir", "d"),
    (["--collection_dir", "d"], "collection_dir", "d"),
    (["-c", "neuclir/1/ru", "neuclir/1/fa"], "collection", ["neuclir/1/ru", "neuclir/1/fa"]),
    (["--collection", "neuclir/1/ru", "--collection", "b"], "collection", ["neuclir/1/ru", "b"]),
    (["-c", "a", "-c", "b"], "collection", ["a", "b"]),
    (["-a", "annotate", "score"], "actions", ["annotate", "score"]),
    (["--actions", "score"], "actions", ["score"]),
    ([], "actions", ["annotate", "score"]),
    (["-P", "f.json"], "prompt_config", Path("f.json")),
    (["--prompt-config", "f.json"], "prompt_config", Path("f.json")),
    (["--prompt_config", "f.json"], "prompt_config", Path("f.json")),
    (["--verbose"], "verbose", True),
    (["-v"], "verbose", True),
    (["--validate-judgments"], "validate_judgments", True),
    (["--validate_judgments"], "validate_judgments", True),
    (["--always-check-all-nuggets"], "always_check_all_nuggets", True),
    (["--always_check_all_nuggets"], "always_check_all_nuggets", True),
    (["--rerun"], "rerun", True),
    (["--max-tokens", "300"], "max_tokens", 300),
    (["--max_tokens", "300"], "max_tokens", 300),
    ([], "max_tokens", 10),
    (["--topics", "1", "2"], "topics", ["1", "2"]),
    (["-t", "1"], "topics", ["1"]),
    (["--truncate-reports"], "truncate_reports", True),
    (["--truncate_reports"], "truncate_reports", True),
    (["--max-report-length", "5"], "max_report_length", 5),
    (["--max_report_length", "5"], "max_report_length", 5),
    (["--disable-cache"], "disable_cache", True),
    (["--disable_cache"], "disable_cache", True),
    (["--do-nugget-alignment-check"], "do_nugget_alignment_check", True),
    (["--do_nugget_alignment_check"], "do_nugget_alignment_check", True),
    (["--penalize-missing-topics"], "penalize_missing_topics", True),
    (["--penalize_missing_topics"], "penalize_missing_topics", True),
]


@pytest.mark.parametrize(("words", "name", "value"), OPTIONS, ids=lambda v: " ".join(v) if isinstance(v, list) else None)  # fmt: skip
def test_every_option_of_the_original(words: list[str], name: str, value: Any) -> None:
    assert getattr(whole_parser("").parse_args(["in", "nuggets", "out", *words]), name) == value


def test_help_shows_each_option_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["argue", "-h"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert "--prompt-config" in said and "--prompt_config" not in said


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key, no collection and no .env of this machine."""
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_TOKEN", "_BASE_URL", "DOC_LOOKUP")) or name.startswith(("ARGUE_", "OPENAI", "BASE_")):  # fmt: skip
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def argue(*words: object) -> int:
    return main(["argue", *map(str, words)])


def sample(out: Path, *words: object, report: Path = REPORT) -> int:
    return argue(report, NUGGETS, out, "-p", "lexical", "-C", LOOKUP, *words)


def test_the_samples_are_judged_and_scored_offline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sample(tmp_path / "results" / "sample", "-a", "annotate", "score", "--verbose", "--validate-judgments") == 0  # fmt: skip
    said = capsys.readouterr()
    assert "careful: 1 topic (" in said.out and "topic 388: nugget_coverage" in said.out
    assert "the offline judge is weak" in said.err and "no model is asked" in said.err
    [judged] = rows(tmp_path / "results" / "sample.judgments.jsonl")
    assert judged["request_id"] == "388" and len(judged["segments"]) == 6
    head = (tmp_path / "results" / "sample.scores.tsv").read_text().splitlines()[0]
    assert head == "run_id\trequest_id\tmetric\tvalue"


@pytest.mark.parametrize("name", ["sample", "sample_careless"])
def test_the_shipped_outputs_follow_from_the_shipped_judgments(name: str, tmp_path: Path) -> None:
    report = REPORT if name == "sample" else CARELESS
    judgments = OUTPUTS / f"{name}.judgments.jsonl"
    assert argue("score", report, NUGGETS, tmp_path / name, "--judgments", judgments) == 0
    assert (tmp_path / f"{name}.scores.tsv").read_bytes() == (OUTPUTS / f"{name}.scores.tsv").read_bytes()


def test_a_script_of_the_original_as_a_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "evaluator.argue.eval", REPORT, NUGGETS, "results/sample", "-p", "lexical",
               "-a", "annotate", "score", "--verbose", "--validate_judgments"]  # fmt: skip
    done = subprocess.run(
        list(map(str, command)), cwd=tmp_path, env={**os.environ, "DOC_LOOKUP": str(LOOKUP)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "results" / "sample.scores.tsv").is_file()
    assert "\r" not in done.stderr  # no progress bar in a file


def test_annotate_and_score_are_commands(tmp_path: Path) -> None:
    out = tmp_path / "x"
    assert argue("annotate", REPORT, NUGGETS, out, "-p", "lexical", "-C", LOOKUP) == 0
    assert not (tmp_path / "x.scores.tsv").exists()
    assert argue("score", NUGGETS, out) == 0
    first = (tmp_path / "x.scores.tsv").read_bytes()
    assert sample(tmp_path / "y") == 0
    assert (tmp_path / "y.scores.tsv").read_bytes() == first
    assert argue(REPORT, NUGGETS, out, "-a", "score") == 0  # as the original says it


def test_stored_judgments_are_used_until_something_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "x"
    assert sample(out) == 0
    path = tmp_path / "x.judgments.jsonl"
    first = path.read_bytes()
    capsys.readouterr()
    assert sample(out) == 0
    assert "1 of 1 report judged already" in capsys.readouterr().err
    assert sample(out, "--rerun") == 0
    assert "judged already" not in capsys.readouterr().err
    assert path.read_bytes() == first
    assert sample(out, "--always-check-all-nuggets") == 0
    assert "1 report judged again" in capsys.readouterr().err
    assert path.read_bytes() != first


def two_topics(folder: Path) -> tuple[Path, Path]:
    """The sample, and the same on a topic 389: reports and nuggets."""
    report, nuggets = json.loads(REPORT.read_text()), json.loads(NUGGETS.read_text())
    reports, banks = folder / "two.jsonl", folder / "nuggets"
    banks.mkdir()
    lines = []
    for topic in ("388", "389"):
        report["metadata"]["topic_id"] = nuggets["query_id"] = topic
        lines.append(json.dumps(report))
        (banks / f"nuggets_{topic}.v3.json").write_text(json.dumps(nuggets))
    reports.write_text("\n".join(lines))
    return reports, banks


@pytest.mark.parametrize("more", [(), ("--rerun",)])
def test_topics_leave_the_judgments_of_others_alone(tmp_path: Path, more: tuple[str, ...]) -> None:
    reports, banks = two_topics(tmp_path)
    out, path = tmp_path / "x", tmp_path / "x.judgments.jsonl"
    assert argue(reports, banks, out, "-p", "lexical", "-C", LOOKUP) == 0
    first = path.read_bytes()
    assert argue(reports, banks, out, "-p", "lexical", "-C", LOOKUP, "-t", "388", *more) == 0
    assert path.read_bytes() == first
    assert {r.split("\t")[1] for r in (tmp_path / "x.scores.tsv").read_text().splitlines()[1:]} == {
        "all",
        "388",
    }


def test_judgments_of_reports_that_are_not_there_any_more_are_not_thrown_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports, nuggets = two_topics(tmp_path)
    words = (nuggets, tmp_path / "x", "-p", "lexical", "-C", LOOKUP)
    assert argue(reports, *words) == 0
    before = (tmp_path / "x.judgments.jsonl").read_bytes()
    first = reports.read_text("utf-8").splitlines()[0]
    reports.write_text(first + "\n", "utf-8")
    assert argue(reports, *words) == 0
    assert "1 judged report not in INPUT" in capsys.readouterr().err
    assert (tmp_path / "x.judgments.jsonl.old").read_bytes() == before
    assert (tmp_path / "x.judgments.jsonl").read_bytes() in before


def test_measures_of_ours_are_not_made_of_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "x"
    assert sample(out) == 0
    before = (tmp_path / "x.scores.tsv").read_bytes()
    for option, kind in (("--strict", "GIVES_WRONG_ANSWER"), ("--negative-assertions", "NEGATIVE_ASSERTION")):
        capsys.readouterr()
        assert argue("score", NUGGETS, out, option) == 4
        said = capsys.readouterr().err
        assert kind in said and "topic 388: sentence" in said and "annotate with these options" in said
    assert (tmp_path / "x.scores.tsv").read_bytes() == before


def test_the_input_may_be_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(REPORT)
    assert sample(tmp_path / "x", report=link) == 0


def test_a_format_of_one_run_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    [one] = rows(OUTPUTS / "sample.judgments.jsonl")
    two = [one, {**one, "run_id": "other"}]
    (tmp_path / "x.judgments.jsonl").write_text("".join(json.dumps(j) + "\n" for j in two))
    assert argue("score", NUGGETS, tmp_path / "x", "--leaderboard", "tot", "trec_eval") == 2
    assert [p.name for p in tmp_path.iterdir()] == ["x.judgments.jsonl"]


def test_judgments_that_no_nuggets_are_for_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports, banks = two_topics(tmp_path)
    out = tmp_path / "x"
    assert argue("annotate", reports, banks, out, "-p", "lexical", "-C", LOOKUP) == 0
    capsys.readouterr()
    assert argue("score", NUGGETS, out) == 0
    assert "1 of 2 judged reports left out: there are no nuggets for the topic" in capsys.readouterr().err
    (banks / "nuggets_388.v3.json").unlink()
    assert argue("score", banks, out, "-t", "389") == 0
    before = (tmp_path / "x.scores.tsv").read_bytes()
    path = tmp_path / "x.judgments.jsonl"
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert argue("score", banks, out) == 2
    assert "no judgments on a topic that has nuggets" in capsys.readouterr().err
    assert (tmp_path / "x.scores.tsv").read_bytes() == before  # nothing is written


def test_judgments_of_auto_argue_are_taken_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [judged] = rows(OUTPUTS / "sample.judgments.jsonl")
    judged.pop("judge", None)
    assert max(len(s["citations"]) for s in judged["segments"]) > 1
    for segment in judged["segments"]:
        segment["citations"].reverse()  # it holds them as a set
    (tmp_path / "x.judgments.jsonl").write_text(json.dumps(judged) + "\n")
    assert argue(REPORT, NUGGETS, tmp_path / "x", "-C", LOOKUP) == 0  # no key, and none is needed
    assert "do not say what they were made from" in capsys.readouterr().err
    assert (tmp_path / "x.scores.tsv").read_bytes() == (OUTPUTS / "sample.scores.tsv").read_bytes()


def test_without_a_key_the_offline_judge_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert argue(REPORT, NUGGETS, tmp_path / "x", "-C", LOOKUP) == 2
    said = capsys.readouterr().err
    assert "TOGETHER_API_KEY" in said and "-p lexical" in said
    assert not (tmp_path / "x.judgments.jsonl").exists()


@pytest.mark.parametrize("provider", ["openai", "anthropic", "together", "huggingface"])
def test_each_provider_names_its_key(
    provider: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert argue(REPORT, NUGGETS, tmp_path / "x", "-p", provider, "-C", LOOKUP) == 2
    key = {"huggingface": "HUGGINGFACEHUB_API_TOKEN"}.get(provider, f"{provider.upper()}_API_KEY")
    assert key in capsys.readouterr().err


MISTAKES = [
    (["-p", "lexicl", "-C", str(LOOKUP)], 2, "did you mean lexical?"),
    (["--promt_config", "x"], 2, "did you mean --prompt_config?"),
    (["--val"], 2, "did you mean --validate-judgments?"),
    (["--max-t", "3"], 2, "did you mean --max-tokens?"),
    (["--m"], 2, "--max-tokens"),
    (["-a", "annotat"], 2, "choose from 'annotate', 'score'"),
    (["--max-tokens", "none"], 2, "positive number"),
    (["--max-tokens", "0"], 2, "positive number"),
    (["-C", "nowhere"], 2, "there is no folder nowhere"),
    (["-C", str(LOOKUP), "-c", "neuclir/1/en"], 4, "lacks the documents of neuclir/1/en"),
    (["-C", str(LOOKUP), "-c", "../x"], 2, "no collection"),
    (["-C", str(LOOKUP), "-t", "389"], 2, "no nuggets for the topics"),
    (["-C", str(LOOKUP), "-P", "nowhere.json"], 4, "nowhere.json"),
    (["-C", str(LOOKUP), "--requests", "nowhere.jsonl", "--truncate-reports"], 4, "nowhere.jsonl"),
    (["-C", str(LOOKUP), "--leaderboard", "csv"], 2, "there is no leaderboard format"),
    (["-C", str(LOOKUP), "--human", "nowhere", "-p", "human"], 4, "there are no judgments in nowhere"),
    (["-C", str(LOOKUP), "-p", "human"], 2, "--human"),
    ([], 2, "neither -C nor DOC_LOOKUP"),
]


@pytest.mark.parametrize(("words", "code", "said"), MISTAKES, ids=lambda v: " ".join(v) if isinstance(v, list) else None)  # fmt: skip
def test_mistakes_are_said_with_what_was_meant(
    words: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extra = [] if "-p" in words else ["-p", "lexical"]
    assert argue(REPORT, NUGGETS, tmp_path / "x", *extra, *words) == code
    err = capsys.readouterr().err
    assert said in err and "Traceback" not in err and "internal" not in err
    assert not (tmp_path / "x.scores.tsv").exists()


def test_places_that_are_not_there_and_reports_that_are_broken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"metadata": {}}\n{oops\n')
    assert argue(tmp_path / "nothing.jsonl", NUGGETS, tmp_path / "x", "-p", "lexical") == 1
    assert argue(REPORT, tmp_path / "n_1.v3.json", tmp_path / "x", "-p", "lexical") == 4
    assert argue(broken, NUGGETS, tmp_path / "x", "-p", "lexical") == 1
    err = capsys.readouterr().err
    assert "broken.jsonl:1" in err and "broken.jsonl:2" in err


def test_collections_by_option_variable_and_alias(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sample(tmp_path / "x", "-c", "neuclir/1/rus", "neuclir/1/zho") == 0
    assert "1 cited document in no collection, which support nothing: fa-101" in capsys.readouterr().err
    (tmp_path / ".env").write_text(f"DOC_LOOKUP={LOOKUP}\n")
    assert argue(REPORT, NUGGETS, tmp_path / "y", "-p", "lexical") == 0
    (tmp_path / ".env").unlink()
    monkeypatch.setenv("DOC_LOOKUP", str(LOOKUP))
    assert argue(REPORT, NUGGETS, tmp_path / "z", "-p", "lexical") == 0
    assert (tmp_path / "y.scores.tsv").read_bytes() == (tmp_path / "z.scores.tsv").read_bytes()
    # Nothing appears beside data of others.
    assert not list(LOOKUP.glob("*.index"))


def test_reports_are_cut_at_their_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sample(tmp_path / "x", "--truncate-reports", "--max-report-length", "130") == 0
    assert "1 report cut at the limit" in capsys.readouterr().err
    assert len(rows(tmp_path / "x.judgments.jsonl")[0]["segments"]) == 2
    requests = tmp_path / "requests.jsonl"
    requests.write_text('{"request_id": "388", "title": "t", "limit": 70}\n')
    assert sample(tmp_path / "y", "--truncate_reports", "--requests", requests) == 0
    assert len(rows(tmp_path / "y.judgments.jsonl")[0]["segments"]) == 1


def test_topics_alignment_and_missing_topics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nuggets = tmp_path / "nuggets"
    nuggets.mkdir()
    for topic in ("388", "400"):
        text = NUGGETS.read_text("utf-8").replace('"query_id": "388"', f'"query_id": "{topic}"')
        (nuggets / f"nuggets_{topic}.v3.json").write_text(text, "utf-8")
    words = (REPORT, nuggets, tmp_path / "x", "-p", "lexical", "-C", LOOKUP)
    assert argue(*words, "--do-nugget-alignment-check") == 4
    assert 'no report on "400"' in capsys.readouterr().err
    assert argue(*words, "--do-nugget-alignment-check", "--topics", "388") == 0
    coverage = [score(tmp_path / "x", "nugget_coverage_macro")]
    assert argue(*words, "--penalize-missing-topics") == 0
    coverage.append(score(tmp_path / "x", "nugget_coverage_macro"))
    assert coverage[1] == coverage[0] / 2 > 0


def score(prefix: Path, metric: str) -> float:
    table = (line.split("\t") for line in Path(f"{prefix}.scores.tsv").read_text().splitlines())
    return next(float(value) for _, topic, name, value in table if (topic, name) == ("all", metric))


def test_judgments_that_do_not_fit_stop_the_scoring_on_demand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [judged] = rows(OUTPUTS / "sample.judgments.jsonl")
    judged["segments"][2]["judgments"] = judged["segments"][2]["judgments"][:1]
    path = tmp_path / "j.jsonl"
    path.write_text(json.dumps(judged) + "\n")
    assert argue("score", NUGGETS, tmp_path / "x", "--judgments", path, "--validate_judgments") == 4
    assert "SENTENCE_ATTESTED" in capsys.readouterr().err
    assert argue("score", NUGGETS, tmp_path / "x", "--judgments", path) == 0
    assert "defaults count" in capsys.readouterr().err
    assert argue("score", NUGGETS, tmp_path / "x", "--judgments", tmp_path / "none.jsonl") == 2
    assert argue("score", NUGGETS) == 2


def test_people_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        NUGGETS,
        tmp_path / "x",
        "-p",
        "human",
        "-C",
        LOOKUP,
        "--human",
        OUTPUTS / "sample.judgments.jsonl",
    )
    assert argue(REPORT, *words, "--validate-judgments") == 0
    assert (tmp_path / "x.scores.tsv").read_bytes() == (OUTPUTS / "sample.scores.tsv").read_bytes()
    assert argue(CARELESS, *words) != 0
    assert "nobody has judged" in capsys.readouterr().err


def test_prompts_of_others_are_checked_even_where_nobody_reads_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sample(tmp_path / "x", "-P", PROMPTS) == 0
    assert "asks no model" in capsys.readouterr().err
    bad = tmp_path / "bad.json"
    bad.write_text('{"sentence_attested": {"user_prompt": "?", "system_prompt": "?"}}')
    assert sample(tmp_path / "x", "--prompt_config", bad) != 0


def test_every_leaderboard_format_is_written(tmp_path: Path) -> None:
    assert sample(tmp_path / "x", "--leaderboard", "tot", "ir_measures", "jsonl", "--leaderboard", "trec_eval") == 0  # fmt: skip
    for form in ("tot", "ir_measures", "jsonl", "trec_eval"):
        assert (tmp_path / f"x.{form}.txt").stat().st_size > 100


def test_additions_never_mix_with_comparable_figures(tmp_path: Path) -> None:
    assert sample(tmp_path / "x") == 0
    plain = {
        n: score(tmp_path / "x", n) for n in ("f1_macro", "nugget_coverage_micro", "sentence_support_macro")
    }
    assert sample(tmp_path / "y", "--strict", "--negative-assertions") == 0
    assert {n: score(tmp_path / "y", n) for n in plain} == plain
    assert score(tmp_path / "y", "f1_strict_macro") <= plain["f1_macro"]


def test_the_estimate_comes_before_the_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (REPORT, NUGGETS, tmp_path / "deep" / "x", "-C", LOOKUP, "-p", "openai", "--dry-run")
    assert argue(*words) == 0
    said = capsys.readouterr().err
    assert "23 questions at most, 22 calls" in said and "$" in said
    assert not (tmp_path / "deep").exists()
    assert argue(*words, "--price", "1000", "0") == 0
    assert "about $13." in capsys.readouterr().err
