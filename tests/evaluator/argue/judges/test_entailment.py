"""Judges with an entailment model from a folder: read, fitted, measured, and clear about folders that hold none."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from evaluator.__main__ import main
from evaluator.argue.asking import Question
from evaluator.argue.judges import tuning
from evaluator.argue.judges.entailment import CrossEncoder, numbers, windows
from evaluator.argue.judges.nli import FIT, JUDGES, NliJudge, fit_folder
from evaluator.argue.models import JudgmentType
from evaluator.errors import EvaluatorError
from tests.worlds.entailment import make_model

T = JudgmentType


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows the words of the labelled pairs, fitted by the command."""
    questions = [pair.question for pair in tuning.read_pairs()]
    texts = [text for q in questions for text in (q.sentence, q.document, q.nugget_question, q.nugget_answer)]
    folder = make_model(tmp_path_factory.mktemp("nli") / "overlap", texts)
    assert main(["argue", "fit", str(folder)]) == 0
    return folder


def asked(sentence: str, document: str) -> Question:
    return Question(T.SENTENCE_ATTESTED, sentence, document)


def test_a_text_that_has_the_words_entails_and_another_does_not(model: Path) -> None:
    encoder = CrossEncoder(model)
    same, other = encoder.follows(
        [("the boundary layer is thin", "the layer is thin"), ("the shock wave", "the layer is thin")]
    )
    assert same.entailed > 0.8 > 0.3 > other.entailed
    assert other.contradicted > same.contradicted


def test_answers_do_not_depend_on_what_is_asked_with_them(model: Path) -> None:
    pairs = [("the boundary layer " * n, "the layer is thin and long") for n in range(1, 40)]
    together = CrossEncoder(model).follows(pairs)
    alone = CrossEncoder(model)
    assert together == [alone.follows([pair])[0] for pair in pairs]


def test_a_long_text_is_read_to_its_end(model: Path) -> None:
    long = "the shock wave is strong . " * 400 + "the boundary layer is thin ."
    assert len(windows(long)) > 5
    assert numbers(asked("the boundary layer is thin", long), CrossEncoder(model))[0] > 0.8
    assert "".join(windows("One. Two.")).count("One") == 1


def test_the_figures_are_those_on_the_pairs_that_were_not_fitted_on(model: Path) -> None:
    found = json.loads((model / FIT).read_text("utf-8"))
    assert found == json.loads(json.dumps(fit_folder(model)))
    pairs = [p for p in tuning.read_pairs() if p.half == "measure" and p.question.type is T.SENTENCE_ATTESTED]
    for name in JUDGES:
        judge = NliJudge(name, model)
        said = [asyncio.run(judge.decide(p.question)).value for p in pairs]
        measured = judge.facts()["reliability"]
        right = sum(p.label == s for p, s in zip(pairs, said, strict=True)) / len(pairs)
        assert measured["accuracy sentence attested"] == pytest.approx(right, abs=1e-4)
        assert -1 <= measured["kappa sentence attested"] <= 1
        assert judge.facts()["note_detail"]["kind"] == "entailment"


def test_both_judges_and_another_model_have_identities_of_their_own(model: Path, tmp_path: Path) -> None:
    other = make_model(tmp_path / "other", ["a few words"])
    (other / FIT).write_text(json.dumps(fit_folder(other)))
    found = [NliJudge("nli", model).identity(), NliJudge("nli", other).identity()]
    assert found[0] != found[1] and "overlap" in found[0]["model"]
    assert NliJudge("lexical+nli", model).name != NliJudge("nli", model).name


def test_a_fit_of_another_model_is_refused(model: Path, tmp_path: Path) -> None:
    other = make_model(tmp_path / "other", ["a few words"])
    with pytest.raises(EvaluatorError, match=r"has no proctor-nli\.json"):
        NliJudge("nli", other)
    (other / FIT).write_bytes((model / FIT).read_bytes())
    with pytest.raises(EvaluatorError, match="another model"):
        NliJudge("nli", other)
    (other / FIT).write_text("[]")
    with pytest.raises(EvaluatorError, match="cannot be read"):
        NliJudge("nli", other)


def test_folders_without_a_model_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["argue", "fit", str(tmp_path / "nothing")]) != 0
    assert "config.json is no entailment model" in capsys.readouterr().err
    for labels in (("a", "b", "c"), ("entailment", "neutral", "entailment")):
        folder = make_model(tmp_path / "x", ["a"], labels=labels)
        with pytest.raises(EvaluatorError) as caught:
            CrossEncoder(folder)
        assert "names no entailment" in caught.value.why
    folder = make_model(tmp_path / "two", ["a"], labels=("not_entailment", "entailment"))
    assert CrossEncoder(folder).follows([("a", "a")])[0].contradicted == 0
    (folder / "model.onnx").write_bytes(b"no model")
    with pytest.raises(EvaluatorError, match=r"model\.onnx is no entailment model"):
        CrossEncoder(folder)
    (folder / "model.onnx").unlink()
    with pytest.raises(EvaluatorError) as caught:
        CrossEncoder(folder)
    assert "there is none" in caught.value.why
    folder = make_model(tmp_path / "tok", ["a"])
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(EvaluatorError, match=r"tokenizer\.json"):
        CrossEncoder(folder)


def test_without_a_folder_the_command_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    samples = Path(__file__).parents[4] / "evaluator/argue/samples/assets/sample-inputs"
    words = [
        str(samples / "sample_report.jsonl"),
        str(samples / "sample_nuggets_388.v3.json"),
        "x",
        "-p",
        "nli",
    ]
    code = main(["argue", *words, "-C", str(samples / "sample-docs-lookup"), "--dry-run"])
    assert code == 2 and "name it with -m" in capsys.readouterr().err


def test_a_report_is_judged_with_it(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples = Path(__file__).parents[4] / "evaluator/argue/samples/assets/sample-inputs"
    words = [
        str(samples / "sample_report.jsonl"),
        str(samples / "sample_nuggets_388.v3.json"),
        str(tmp_path / "out"),
    ]
    code = main(
        ["argue", *words, "-p", "lexical+nli", "-m", str(model), "-C", str(samples / "sample-docs-lookup")]
    )
    assert code == 0
    assert "kappa sentence attested" in capsys.readouterr().err
    line = json.loads((tmp_path / "out.judgments.jsonl").read_text("utf-8").splitlines()[0])
    assert line["judge"]["name"].startswith("lexical+nli")
