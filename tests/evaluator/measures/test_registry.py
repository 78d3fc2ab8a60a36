"""Every measure that ir_measures accepts: our value is its value on the original file, or the documentation lists it."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from functools import cache
from itertools import product
from pathlib import Path

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
from tests.evaluator.measures.reading import score
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
    made = []
    for seed, ties, subtopics in product((1, 2), (False, True), (PLAIN, SINGLE, SEVERAL)):
        files = world(folder / f"{seed}-{ties}-{subtopics}", seed, ties=ties, subtopics=subtopics)
        made.append(Case(files, ties=ties, subtopics=subtopics))
    return made


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
    assert len(TEXTS) > 500
    assert {name(text) for text in TEXTS} >= {"ERR", "alpha_nDCG", "NRBP", "Compat", "SDCG"}
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


def failure(case: Case, text: str) -> EvaluatorError:
    """Return the error of a measure that a case does not allow."""
    with pytest.raises(EvaluatorError) as caught:
        case.ours(text)
    return caught.value


def compare(case: Case, text: str) -> None:
    if case.subtopics == SEVERAL and not foreign.by_subtopic(ir_measures.parse_measure(text)):
        assert case.qrels.repeated and text in failure(case, text).what
        return
    try:
        theirs = case.theirs(text)
    except ZeroDivisionError:
        assert text in failure(case, text).what
        assert any(name(text) in names for names, _ in listed(UNDEFINED).values())
        return
    except ValueError:  # it has no provider for what we compute ourselves
        assert (name(text), "rel=2" in text) == ("NumRel", True) and "`NumRel" in PAGE.read_text("utf-8")
        return
    if not all(map(math.isfinite, theirs.values())):
        assert any(name(text) in names for names, _ in listed(UNDEFINED).values())
        if name(text) != "IPrec":
            assert text in failure(case, text).what
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


@pytest.mark.parametrize("doc", ["u1", "u2", "d1", "d2", "unjudged", "a-b", "ü", "\u00a0x", "0"])
@pytest.mark.parametrize("topic", ["1", "x-1", "MS-7", "ü", "01"])
def test_no_id_can_be_taken_for_another(doc: str, topic: str, tmp_path: Path) -> None:
    """Ids of all sorts, also such as ours: gdeval wants topics that are numbers, and drops what stands before a hyphen."""
    other = topic.replace("1", "2").replace("7", "8").replace("ü", "ö")
    ranked = [(topic, "y"), (topic, doc), (other, "zz"), (other, doc)]
    run = "".join(f"{t} Q0 {d} {rank} {9 - rank} t\n" for rank, (t, d) in enumerate(ranked, 1))
    texts = ["ERR@2", "nDCG(dcg='exp-log2')@2", "alpha_nDCG@2", "Compat", "SetP", "Accuracy"]
    values = score(tmp_path, texts, f"{topic} 0 {doc} 1\n{other} 0 zz 1\n", run)
    found = [[round(values[text][t.encode()], 4) for t in (topic, other)] for text in texts]
    discount = round(math.log(2) / math.log(3), 4)
    assert found[:3] == [[0.0312, 0.0625], [discount, 1.0], [discount, 1.0]]
    assert found[3][0] < found[3][1] and found[4:] == [[0.5, 0.5], [0.0, 1.0]]


def test_grades_that_gdeval_refuses_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError) as caught:
        score(tmp_path, ["ERR@5", "SetP"], "1 0 a 5\n", "1 Q0 a 1 9 t\n")
    assert "ERR@5" in caught.value.what and " 4" in caught.value.why


@pytest.mark.skipif(ir_measures.cwl_eval.is_available(), reason="cwl_eval is installed here")
def test_a_provider_that_is_not_installed_is_named_with_the_fix() -> None:
    with pytest.raises(EvaluatorError) as caught:
        require([Measure("AP"), Measure("SDCG(max_rel=3)@5")])
    assert "SDCG(max_rel=3)@5" in caught.value.what and "cwl_eval" in caught.value.why
    assert "ir-measures[cwl_eval]" in caught.value.fix
