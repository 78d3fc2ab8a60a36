"""Every measure that ir_measures accepts: our value is its value on the original file, or the documentation lists it."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import ir_measures
import pytest

from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.formats.qrels import Qrels, read_qrels
from evaluator.formats.ranked import Rules, Scan
from evaluator.formats.trec import scan
from evaluator.measures import foreign
from evaluator.measures.crosscheck import SAME_TIES
from evaluator.measures.ir import Measure, evaluate, require
from tests.worlds.registry import World, strings, world

PAGE = Path(__file__).parents[3] / "docs/reference/measures.md"
TEXTS = strings()
NAMES = {measure.NAME for measure in ir_measures.measures.registry.values()}
# Whether a document is judged for one subtopic or several decides which measures can be computed at all.
PLAIN, SINGLE, SEVERAL = 0, 1, 2


class Case:
    """One world, read by us and by ir_measures."""

    def __init__(self, files: World, *, ties: bool, subtopics: int) -> None:
        self.ties, self.subtopics = ties, subtopics
        self.qrels: Qrels = read_qrels(files.qrels)
        self.read: Scan = scan(files.run, Rules(judged=self.qrels.grades), Log("run"))
        # Grades under -1 end pytrec_eval now and then with a segmentation fault.
        self.judgements = [
            row._replace(relevance=max(row.relevance, foreign.LOWEST))
            for row in ir_measures.read_trec_qrels(str(files.qrels))
        ]
        self.run = list(ir_measures.read_trec_run(str(files.run)))

    def ours(self, text: str) -> dict[str, float]:
        values = evaluate([Measure(text)], self.qrels, self.read.topics)[text]
        return {topic.decode(): value for topic, value in values.items()}

    def theirs(self, text: str) -> dict[str, float]:
        """What ir_measures says of the files; alone, because its measures act upon each other."""
        with foreign.quiet():
            found = list(ir_measures.iter_calc([ir_measures.parse_measure(text)], self.judgements, self.run))
        zeros = dict.fromkeys((topic.decode() for topic in self.qrels.grades), 0.0)
        return zeros | {metric.query_id: float(metric.value) for metric in found}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    folder = tmp_path_factory.mktemp("worlds")
    return [
        Case(
            world(folder / f"{seed}-{ties}-{subtopics}", seed, ties=ties, subtopics=subtopics),
            ties=ties,
            subtopics=subtopics,
        )
        for seed in (1, 2)
        for ties in (False, True)
        for subtopics in (PLAIN, SINGLE, SEVERAL)
    ]


@cache
def refused(text: str) -> EvaluatorError | None:
    """Why this evaluator does not compute the measure at all."""
    try:
        require([Measure(text)])
    except EvaluatorError as error:
        return error
    return None


def name(text: str) -> str:
    return str(ir_measures.parse_measure(text).NAME)


def provider(text: str) -> str:
    return str(foreign.provider_of(ir_measures.parse_measure(text)).NAME)


@cache
def listed(heading: str) -> dict[str, tuple[set[str], str]]:
    """The rows of the table under a heading of the page: what the first cell names -> (measures, reason)."""
    text = PAGE.read_text("utf-8").split(f"### {heading}\n", 1)[1].split("\n#", 1)[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
    return {row[0].strip("`"): ({*re.findall(r"`(\w+)[^`]*`", row[-2])} & NAMES, row[-1]) for row in rows}


TIES, REFUSED, UNDEFINED = "Ties", "Not computed", "Not everywhere defined"


def test_the_registry_is_as_large_as_it_is() -> None:
    """Were nothing enumerated, nothing would be proven."""
    assert len(TEXTS) > 500 and {name(text) for text in TEXTS} >= {
        "ERR",
        "alpha_nDCG",
        "NRBP",
        "Compat",
        "SDCG",
    }
    assert sum(refused(text) is None for text in TEXTS) > 300


@pytest.mark.parametrize("text", TEXTS)
def test_same_value_as_ir_measures_on_the_file(text: str, cases: list[Case]) -> None:
    error = refused(text)
    if error is not None:
        assert any(name(text) in names for names, _ in listed(REFUSED).values()), (text, error.lines())
        assert text in error.what
        return
    for case in cases:
        if case.ties and other_ties(text) and provider(text) != "gdeval":  # ours orders ties as gdeval does
            assert name(text) in listed(TIES)[provider(text)][0]
        else:
            compare(case, text)


def other_ties(text: str) -> bool:
    """Whether ir_measures leaves the measure to a provider with an order of its own for ties, and order matters."""
    found = foreign.provider_of(ir_measures.parse_measure(text))
    return found is not None and found.NAME != SAME_TIES and text != "Judged"


def compare(case: Case, text: str) -> None:
    if case.subtopics == SEVERAL and not foreign.by_subtopic(ir_measures.parse_measure(text)):
        with pytest.raises(EvaluatorError, match="by subtopic"):
            case.ours(text)
        return
    try:
        theirs = case.theirs(text)
    except ZeroDivisionError:
        with pytest.raises(EvaluatorError, match=re.escape(f"{text} cannot be computed")):
            case.ours(text)
        assert any(name(text) in names for names, _ in listed(UNDEFINED).values())
        return
    except ValueError:  # it has no provider for what we compute ourselves
        assert (name(text), "rel=2" in text) == ("NumRel", True) and "`NumRel" in PAGE.read_text("utf-8")
        return
    if not all(map(math.isfinite, theirs.values())):
        assert any(name(text) in names for names, _ in listed(UNDEFINED).values())
        if name(text) != "IPrec":
            with pytest.raises(EvaluatorError) as told:
                case.ours(text)
            assert text in told.value.what and "has no finite value on" in told.value.why
            return
    ours = case.ours(text)
    assert ours.keys() == theirs.keys()
    for topic, value in theirs.items():
        assert ours[topic] == pytest.approx(value if math.isfinite(value) else 0.0, abs=1e-9), (text, topic)


def test_what_is_listed_for_ties_does_differ(cases: list[Case]) -> None:
    """A row that nothing shows any more is taken out of the documentation."""
    differing = defaultdict(set)
    for text in TEXTS:
        for case in cases if refused(text) is None else ():
            if not case.ties or (case.subtopics and not foreign.by_subtopic(ir_measures.parse_measure(text))):
                continue
            try:
                ours, theirs = case.ours(text), case.theirs(text)
            except (EvaluatorError, ValueError, ZeroDivisionError):
                continue
            if any(abs(ours[t] - theirs[t]) > 1e-9 for t in ours if math.isfinite(theirs[t])):
                differing[provider(text)].add(name(text))
    installed = {p.NAME for p in ir_measures.DefaultPipeline.providers if p.is_available()}
    rows = {key: names for key, (names, _) in listed(TIES).items() if key in installed}
    # nNRBP is not defined for the topics here that have no relevant document.
    assert {key: found | ({"nNRBP"} & rows.get(key, set())) for key, found in differing.items()} == rows


def test_what_is_listed_as_not_computed_is_refused() -> None:
    kinds: dict[str, set[str]] = defaultdict(set)
    for text in TEXTS:
        if (error := refused(text)) is not None:
            assert error.fix
            kinds[kind(text, error)].add(name(text))
    assert kinds.keys() <= listed(REFUSED).keys()
    for key, (names, _) in listed(REFUSED).items():
        if key not in ("cwl_eval", "ranx") or not getattr(ir_measures, key).is_available():
            assert kinds[key] == names, key


def kind(text: str, error: EvaluatorError) -> str:
    """The row of the documentation that a refusal belongs to."""
    if "no provider" in error.why:
        return "no provider"
    if "which is not installed" in error.why:
        return error.why.removeprefix("it needs ").split(",")[0]
    return "judged_only" if "judged_only" in text else "no cutoff"


def test_several_subtopics_are_for_measures_of_subtopics_only(cases: list[Case]) -> None:
    case = next(c for c in cases if c.subtopics == SEVERAL)
    assert case.qrels.repeated
    with pytest.raises(EvaluatorError, match="SetP cannot use judgements by subtopic"):
        case.ours("SetP")
    assert any(case.ours("alpha_nDCG@5").values())


def write(folder: Path, qrels: str, run: str) -> tuple[Qrels, Any]:
    (folder / "qrels").write_text(qrels)
    (folder / "run").write_text(
        "".join(
            f"{t} Q0 {d} {i} {9 - i} t\n"
            for i, (t, d) in enumerate((line.split(" ") for line in run.splitlines()), 1)
        )
    )
    truths = read_qrels(folder / "qrels")
    return truths, scan(folder / "run", Rules(judged=truths.grades), Log("run")).topics


def test_unjudged_documents_do_not_shift_gdeval(tmp_path: Path) -> None:
    """An invented id with a blank in it was one column more in the file that gdeval is given."""
    truths, topics = write(tmp_path, "1 0 d3 2\n1 0 d5 1\n", "1 d1\n1 d2\n1 d3\n1 d4\n1 d5\n")
    values = evaluate([Measure("ERR@5"), Measure("nDCG(dcg='exp-log2')@5")], truths, topics)
    assert values["ERR@5"][b"1"] == pytest.approx(0.07266, abs=1e-5)
    expected = (3 / math.log(4) + 1 / math.log(6)) / (3 / math.log(2) + 1 / math.log(3))
    assert values["nDCG(dcg='exp-log2')@5"][b"1"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("doc", ["u1", "u2", "d1", "d2", "unjudged", "a-b", "ü", "\u00a0x", "0"])
@pytest.mark.parametrize("topic", ["1", "x-1", "MS-7", "ü", "01"])
def test_no_id_can_be_taken_for_another(doc: str, topic: str, tmp_path: Path) -> None:
    """Ids of all sorts, also such as ours: gdeval wants topics that are numbers, and drops what stands before a hyphen."""
    other = topic.replace("1", "2").replace("7", "8").replace("ü", "ö")
    truths, topics = write(
        tmp_path,
        f"{topic} 0 {doc} 1\n{other} 0 zz 1\n",
        f"{topic} y\n{topic} {doc}\n{other} zz\n{other} {doc}\n",
    )
    texts = ["ERR@2", "nDCG(dcg='exp-log2')@2", "alpha_nDCG@2", "Compat", "SetP", "Accuracy"]
    values = evaluate([Measure(text) for text in texts], truths, topics)
    found = [[round(values[text][t.encode()], 4) for t in (topic, other)] for text in texts]
    discount = round(math.log(2) / math.log(3), 4)
    assert found[:3] == [[0.0312, 0.0625], [discount, 1.0], [discount, 1.0]]
    assert found[3][0] < found[3][1] and found[4:] == [[0.5, 0.5], [0.0, 1.0]]


def test_subtopics_count_where_no_document_has_two(tmp_path: Path) -> None:
    truths, topics = write(tmp_path, "1 1 a 1\n1 1 b 1\n1 2 c 1\n", "1 a\n1 b\n1 c\n")
    assert evaluate([Measure("alpha_nDCG@3")], truths, topics)["alpha_nDCG@3"][b"1"] == pytest.approx(
        0.9652, abs=5e-5
    )
    assert evaluate([Measure("AP")], truths, topics)["AP"][b"1"] == 1.0


def test_a_failing_topic_is_told_and_only_the_guilty_measure_named(tmp_path: Path) -> None:
    truths, topics = write(tmp_path, "1 0 a 1\n2 0 b 1\n3 0 c 1\n", "1 a\n2 x\n2 b\n2 y\n3 x\n")
    measures = [Measure(text) for text in ("SetP", "Accuracy", "AP")]
    require(measures)
    with pytest.raises(EvaluatorError) as hidden:
        evaluate(measures, truths, topics)
    assert hidden.value.what == "Accuracy cannot be computed"
    assert "accuracy fails on 1 of 3 topics: ZeroDivisionError" in hidden.value.why
    assert "such as" not in hidden.value.why
    with pytest.raises(EvaluatorError, match="Accuracy") as told:
        evaluate(measures, truths, topics, name_topics=True)
    assert 'such as "1"' in told.value.why


def test_grades_that_gdeval_refuses_are_told(tmp_path: Path) -> None:
    truths, topics = write(tmp_path, "1 0 a 5\n", "1 a\n")
    with pytest.raises(EvaluatorError, match="ERR@5 cannot be computed") as told:
        evaluate([Measure("ERR@5"), Measure("SetP")], truths, topics)
    assert "grades up to 4" in told.value.why


def test_measures_that_cannot_be_computed_are_named_all_at_once() -> None:
    with pytest.raises(EvaluatorError, match="2 measures cannot be computed") as told:
        require([Measure(text) for text in ("nDCG@5", "alpha_nDCG@30", "SetP", "ERR", "ERR@3")])
    assert "alpha_nDCG@30 cannot" in told.value.why and "ERR cannot" in told.value.why
    assert "SetP" not in told.value.why and "ERR@3" not in told.value.why.replace("such as a cutoff", "")


@pytest.mark.skipif(ir_measures.cwl_eval.is_available(), reason="cwl_eval is installed here")
def test_a_provider_that_is_not_installed_is_named_with_the_fix() -> None:
    with pytest.raises(EvaluatorError, match=r"SDCG\(max_rel=3\)@5 cannot be computed") as told:
        require([Measure("AP"), Measure("SDCG(max_rel=3)@5")])
    assert "it needs cwl_eval, which is not installed" in told.value.why
    assert "pip install ir-measures[cwl_eval]" in told.value.fix
