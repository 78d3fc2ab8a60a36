"""The baselines of Perspective Argument Retrieval: what they read, how they rank, and what comes out in the sandbox."""

from __future__ import annotations

import importlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import pytest
import yaml

from evaluator.__main__ import main as evaluator
from runner.engines.docker.engine import DockerEngine
from runner.model import config
from runner.model.container import ImageRef
from tests.worlds.baselines import baseline_folder

ROOT = Path(__file__).resolve().parents[2]
BASELINES = ROOT / "submissions" / "baselines"
BM25, SBERT = baseline_folder("perspective-bm25"), baseline_folder("perspective-sbert")
TASK = ROOT / "tasks" / "perspective-2024"
DEV = TASK / "datasets" / "dev"
SCENARIOS = ("baseline", "explicit", "implicit")
SHARED = ("perspective", "perspective_bm25", "perspective_sbert", "wordpiece")
HOME = config.load(cwd=Path(__file__).parent).home  # this machine's: packages for builds are kept there

TEXTS = [
    "Der Zucker in Lebensmitteln soll reduziert werden.",
    "Zu viel Zucker macht krank, eine Steuer hilft.",
    "Essen ist persönlich, keine Steuer auf Zucker!",
    "Die Armee braucht neue Kampfflugzeuge.",
    "Kampfflugzeuge sind zu teuer.",
]
GENDERS = ["Männlich", "Weiblich", "Männlich", "Weiblich", "Männlich"]
ASKED: list[dict[str, Any]] = [
    {"query_id": 7, "text": "Steuer auf Zucker?"},
    {"query_id": 3, "text": "Kampfflugzeuge kaufen?"},
    {"query_id": 5, "text": "Steuer auf Zucker?"},
]
WANTED = [{"gender": "Weiblich"}, {"important_political_issue": "Law & Order"}, {"age_bin": "65+"}]


def release(into: Path, scenario: str) -> Path:
    """A release as ``scenario`` sees it: five arguments, three queries of dev, one of train with its relevance."""
    queries = into / ("baseline-queries" if scenario == "baseline" else "perspective-queries")
    queries.mkdir(parents=True)
    corpus = []
    for number, (text, gender) in enumerate(zip(TEXTS, GENDERS, strict=True)):
        argument: dict[str, Any] = {"argument_id": 201900 + number, "argument": text, "topic": "t"}
        argument["stance"] = "FAVOR"
        if scenario == "explicit":
            issues = ["Law & Order"] if number == 4 else ["Ausgebauter Sozialstaat"]
            profile = {"gender": gender, "age": "65+" if number == 0 else "18-34"}
            argument["demographic_profile"] = profile | {"important_political_issues": issues}
        corpus.append(argument)
    asked = [dict(query) for query in ASKED]
    if scenario != "baseline":
        asked = [one | {"demographic_property": wanted} for one, wanted in zip(ASKED, WANTED, strict=True)]
    dump(into / "corpus.jsonl", corpus)
    dump(queries / "queries_dev.jsonl", asked)
    dump(queries / "queries_train.jsonl", [ASKED[0] | {"relevant_candidates": [201900]}])
    return into


def dump(path: Path, objects: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in objects), encoding="utf-8")


def run(data: Path, into: Path, *arguments: str, seed: str = "0") -> dict[int, list[int]]:
    """The predictions of BM25, started as its container starts it."""
    into.mkdir(parents=True)
    env = {"inputDataset": str(data), "outputDir": str(into)}
    env |= {"PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, BM25 / "perspective_bm25.py", *arguments]
    subprocess.run(command, env=env, check=True, timeout=120)
    made = [json.loads(line) for line in (into / "predictions.jsonl").read_text().splitlines()]
    assert all(set(line) == {"query_id", "relevant_candidates"} for line in made)
    return {line["query_id"]: line["relevant_candidates"] for line in made}


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports one of the baselines' modules, which are no part of a package; forgotten afterwards."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for folder in (BM25, SBERT):
        monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module
    for name in SHARED:
        sys.modules.pop(name, None)


def test_the_scenario_is_told_by_what_is_seen(
    tmp_path: Path, programs: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    load = programs("perspective").load
    for scenario in SCENARIOS:
        seen = load(release(tmp_path / scenario, scenario))
        assert seen.scenario == scenario
        assert (seen.profiles is not None) == (scenario == "explicit")
        assert [query.id for query in seen.queries] == [7, 3, 5], "in the order of the file"
        assert all((query.wanted is not None) == (scenario != "baseline") for query in seen.queries)
    whole = tmp_path / "explicit"
    assert load(whole, "implicit").profiles is None, "when told so, what lies there is not used"


def test_all_queries_are_answered_and_the_best_come_first(tmp_path: Path) -> None:
    made = run(release(tmp_path / "in", "baseline"), tmp_path / "out")
    assert list(made) == [7, 3, 5]
    assert made[7] == made[5], "the same text, the same ranking"
    assert made[7][:2] == [201902, 201901], "three words, then two"
    assert set(made[3][:2]) == {201903, 201904}
    assert all(sorted(ranked) == [*range(201900, 201905)] for ranked in made.values()), "filled up"


def test_explicit_puts_authors_with_the_property_first(tmp_path: Path) -> None:
    plain = run(release(tmp_path / "implicit", "implicit"), tmp_path / "a")
    made = run(release(tmp_path / "explicit", "explicit"), tmp_path / "b")
    assert made[7] == [201901, 201903, *(i for i in plain[7] if i not in (201901, 201903))]
    assert made[3] == [201904, *(i for i in plain[3] if i != 201904)], "one of the author's issues"
    assert made[5] == [201900, *(i for i in plain[5] if i != 201900)], "age_bin is the profile's age"
    assert run(tmp_path / "explicit", tmp_path / "c", "--scenario", "implicit") == plain
    short = run(tmp_path / "explicit", tmp_path / "d", "--depth", "2")
    assert short == {query: ranked[:2] for query, ranked in made.items()}


@pytest.mark.parametrize(
    ("splits", "answered"),
    [
        ({"train": True, "dev": True, "test": False}, "test"),
        ({"train": True, "dev": False}, "dev"),
        ({"train": False, "dev": True}, "train"),
        ({"train": True, "dev": True}, "dev"),
        ({"train": True, "dev": True, "test": True}, "test"),
        ({"dev": False, "test": False}, "test"),
    ],
)
def test_the_queries_without_relevance_are_answered(
    splits: dict[str, bool], answered: str, tmp_path: Path, programs: Callable[[str], ModuleType]
) -> None:
    for split, relevance in splits.items():
        line: dict[str, Any] = {"query_id": 1, "text": "x"}
        line |= {"relevant_candidates": []} if relevance else {}
        dump(tmp_path / f"queries_{split}.jsonl", [line])
    assert programs("perspective").queries_to_answer(tmp_path).name == f"queries_{answered}.jsonl"


def test_a_folder_without_queries_is_said(tmp_path: Path, programs: Callable[[str], ModuleType]) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        programs("perspective").queries_to_answer(tmp_path)
    assert "queries" in str(caught.value)


def test_bm25_by_hand(programs: Callable[[str], ModuleType]) -> None:
    """Three arguments of 2, 1 and 3 words: the mean is 2. "a" is in two of them, "c" in one."""
    module = programs("perspective_bm25")
    (scores,) = module.bm25(["a b", "A!", "b c c"], ["a c"])
    a, c = math.log(1 + 1.5 / 2.5), math.log(1 + 2.5 / 1.5)
    expected = [a * 2.5 / (1 + 1.5), a * 2.5 / (1 + 1.5 * 0.625), c * 2 * 2.5 / (2 + 1.5 * 1.375)]
    assert list(scores) == pytest.approx(expected, abs=1e-12)
    assert [list(s) for s in module.bm25([], ["a"])] == [[]]
    assert list(next(module.bm25(["", "a"], ["zzz"]))) == [0.0, 0.0]
    assert module.tokens("Élève, STRASSE/Straße 18-34") == ["eleve", "strasse", "strasse", "18", "34"]


def test_it_writes_the_same_bytes_every_time(tmp_path: Path) -> None:
    data = release(tmp_path / "in", "explicit")
    run(data, tmp_path / "a", seed="1")
    run(data, tmp_path / "b", seed="2")
    assert (tmp_path / "a/predictions.jsonl").read_bytes() == (tmp_path / "b/predictions.jsonl").read_bytes()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_run_has_no_findings(scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(DEV / "inputs", tmp_path / "run", "--scenario", scenario)
    predictions = str(tmp_path / "run/predictions.jsonl")
    command = ["perspective", "--data", str(DEV / "truths"), "--predictions", predictions, "--json"]
    command += ["--scenario", scenario, "--split", "dev", "--output", str(tmp_path)]
    assert evaluator(command) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["status"] == "valid"
    assert result["findings"]["codes"] == {}


def test_both_enter_all_scenarios() -> None:
    task = yaml.safe_load((TASK / "task.yaml").read_text(encoding="utf-8"))
    for folder in (BM25, SBERT):
        submission = yaml.safe_load((folder / "submission.yaml").read_text(encoding="utf-8"))
        assert submission["task"] == task["id"]
        assert submission["scenarios"] == [scenario["id"] for scenario in task["scenarios"]]


# Text, and the ids that the library `tokenizers` 0.23.3 gives with the model's own tokenizer.json.
PIECES = {
    "Are you in favor of a tax on sugar?": [101, 2024, 2017, 1999, 5684, 1997, 1037, 4171, 2006, 5699, 1029, 102],
    "Sind Sie f\xfcr die Einf\xfchrung einer Zuckersteuer?": [101, 8254, 2094, 9033, 2063, 6519, 3280, 16417, 11263, 8093, 5575, 27665, 2099, 16950, 9102, 13473, 13094, 1029, 102],
    "\xcates-vous favorable \xe0 l'imp\xf4t ?": [101, 3802, 2229, 1011, 29536, 2271, 11119, 1037, 1048, 1005, 17727, 4140, 1029, 102],
    "\xc8 cos\xec: 18-34!": [101, 1041, 2522, 5332, 1024, 2324, 1011, 4090, 999, 102],
    "\u6771\u4eac 2019\u5e74 \xdf \u0130": [101, 1879, 1755, 10476, 1840, 1096, 1045, 102],
    "\u03a3\u0391\u03a3 a\tb\r\nc\x00d\u200b\xa0\U0001f642": [101, 1173, 14608, 29733, 1037, 1038, 3729, 100, 102],
    "x" * 101: [101, 100, 102],
    "": [101, 102],
    "$5 ^_^ don't": [101, 1002, 1019, 1034, 1035, 1034, 2123, 1005, 1056, 102],
}  # fmt: skip


@pytest.mark.parametrize("text", PIECES)
def test_word_pieces_match_the_original_tokenizer(text: str, programs: Callable[[str], ModuleType]) -> None:
    tokenizer = programs("wordpiece").WordPiece(SBERT / "vocab.txt")
    assert tokenizer.encode(text, 1000) == PIECES[text]
    assert tokenizer.encode(text, 4) == ([*PIECES[text][:3], 102] if len(PIECES[text]) > 4 else PIECES[text])


def test_a_text_cannot_name_the_models_own_marks(programs: Callable[[str], ModuleType]) -> None:
    tokenizer = programs("wordpiece").WordPiece(SBERT / "vocab.txt")
    assert tokenizer.encode("[SEP]", 10)[1:-1] != [102]


def test_embeddings_are_means_without_padding(programs: Callable[[str], ModuleType]) -> None:
    module = programs("perspective_sbert")
    shapes = []

    def model(ids: Any, mask: Any) -> Any:
        """A piece's vector is (id, 1); padding has a vector too, which must not count."""
        shapes.append(ids.shape)
        pieces = [numpy.where(mask == 1, ids, 1000), numpy.ones_like(ids)]
        return numpy.stack(pieces, axis=2).astype(numpy.float32)

    encoded = [[3, 3, 3], [4], [1, 2], [0] * module.PIECES]
    made = module.embed(encoded, model)
    means = numpy.array([[3, 1], [4, 1], [1.5, 1], [0, 1]])
    assert made == pytest.approx(means / numpy.linalg.norm(means, axis=1, keepdims=True), abs=1e-6)
    assert shapes == [(3, 3), (1, module.PIECES)], "texts of like lengths together, the long one alone"


def test_a_text_that_occurs_twice_is_embedded_once(programs: Callable[[str], ModuleType]) -> None:
    seen: list[list[str]] = []

    def encode(texts: Sequence[str]) -> Any:
        seen.append(list(texts))
        return numpy.array([[1.0, 0.0] if text == "a" else [0.6, 0.8] for text in texts])

    score = programs("perspective_sbert").cosine(encode)
    assert [list(scores) for scores in score(["a", "b", "a"], ["a"])] == [[1.0, 0.6, 1.0]]
    assert seen == [["a", "b"], ["a"]]
    assert list(score([], ["a"])) == [[]]


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize("software", ["perspective-bm25", "perspective-sbert"])
def test_in_the_sandbox(software: str, engine: DockerEngine, evaluator_image: ImageRef) -> None:
    """Built from its folder, run on the view of the scenario with the least, judged by the evaluator's image."""
    env = os.environ | {"RUNNER_HOME": str(HOME), "DOCKER_HOST": engine.clients.address, "NO_COLOR": "1"}
    command = [sys.executable, "-m", "runner", "try", "--team", "baselines", "--software", software]
    command += ["--scenario", "implicit", "--json"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["outcome"]["name"] == "scored"
    assert result["scores"]["ndcg"]["covered"] == 222
    assert result["findings"]["codes"] == {}
    assert result["log"] == {"stdout": [], "stderr": ["implicit: 222 queries, 150 arguments"]}
    assert result["resources"]["memory_peak"] < 2**30
