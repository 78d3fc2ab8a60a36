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
from tests.evaluator.argue.conftest import Argue
from tests.worlds.entailment import make_model
from tests.worlds.judging_play import LOOKUP, NUGGETS, REPORT, rows

T = JudgmentType
ACCURACY, KAPPA = "accuracy sentence attested", "kappa sentence attested"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows the words of the labelled pairs, fitted by the command."""
    questions = [pair.question for pair in tuning.read_pairs()]
    texts = [text for q in questions for text in (q.sentence, q.document, q.nugget_question, q.nugget_answer)]
    folder = make_model(tmp_path_factory.mktemp("nli") / "overlap", texts)
    assert main(["argue", "fit", str(folder)]) == 0
    return folder


LAYER = "the boundary layer is thin"


def test_a_text_that_has_the_words_entails_and_another_does_not(model: Path) -> None:
    same, other = CrossEncoder(model).follows(
        [(LAYER, "the layer is thin"), ("the shock wave", "the layer is thin")]
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
    assert numbers(Question(T.SENTENCE_ATTESTED, LAYER, long), CrossEncoder(model))[0] > 0.8
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
        assert measured[ACCURACY] == pytest.approx(right, abs=1e-4)
        assert -1 <= measured[KAPPA] <= 1
        assert judge.facts()["note_detail"]["kind"] == "entailment"


def test_both_judges_and_another_model_have_identities_of_their_own(model: Path, tmp_path: Path) -> None:
    other = make_model(tmp_path / "other", ["a few words"])
    (other / FIT).write_text(json.dumps(fit_folder(other)))
    found = [NliJudge("nli", model).identity(), NliJudge("nli", other).identity()]
    assert found[0] != found[1] and "overlap" in found[0]["model"]
    assert NliJudge("lexical+nli", model).name != NliJudge("nli", model).name


def test_a_fit_of_another_model_is_refused(model: Path, tmp_path: Path) -> None:
    other = make_model(tmp_path / "other", ["a few words"])
    for fit in (None, (model / FIT).read_bytes(), b"[]"):
        if fit is not None:
            (other / FIT).write_bytes(fit)
        with pytest.raises(EvaluatorError) as caught:
            NliJudge("nli", other)
        assert FIT in "".join(caught.value.lines())


def refused(folder: Path) -> str:
    """Return the message about a folder without an entailment model."""
    with pytest.raises(EvaluatorError) as caught:
        CrossEncoder(folder)
    return "".join(caught.value.lines())


def test_folders_without_a_model_are_named(argue: Argue, tmp_path: Path) -> None:
    said = argue("fit", tmp_path / "nothing")
    assert said.code != 0 and "config.json" in said.err
    for labels in (("a", "b", "c"), ("entailment", "neutral", "entailment")):
        assert "entailment" in refused(make_model(tmp_path / "x", ["a"], labels=labels))
    folder = make_model(tmp_path / "two", ["a"], labels=("not_entailment", "entailment"))
    assert CrossEncoder(folder).follows([("a", "a")])[0].contradicted == 0
    (folder / "model.onnx").write_bytes(b"no model")
    assert "model.onnx" in refused(folder)
    (folder / "model.onnx").unlink()
    assert "model.onnx" in refused(folder)
    folder = make_model(tmp_path / "tok", ["a"])
    (folder / "tokenizer.json").write_text("{}")
    assert "tokenizer.json" in refused(folder)


def test_without_a_folder_the_command_says_what_is_missing(argue: Argue) -> None:
    said = argue(REPORT, NUGGETS, "x", "-p", "nli", "-C", LOOKUP, "--dry-run")
    assert said.code == 2 and "-m" in said.err


def test_a_report_is_judged_with_it(argue: Argue, model: Path, tmp_path: Path) -> None:
    said = argue(REPORT, NUGGETS, tmp_path / "out", "-p", "lexical+nli", "-m", model, "-C", LOOKUP)
    assert said.code == 0 and KAPPA in said.err
    assert rows(tmp_path / "out.judgments.jsonl")[0]["judge"]["name"].startswith("lexical+nli")
