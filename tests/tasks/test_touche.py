"""tasks/touche-2021-task1: its data are what README.md says, and its baselines read the corpus as they should."""

from __future__ import annotations

import hashlib
import json
import math
import re
import resource
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from benchmarks import touche as bench
from evaluator.__main__ import main as evaluator
from evaluator.formats.corpus import read_corpus
from evaluator.formats.qrels import read_qrels
from evaluator.formats.topics import read_topics
from runner.model import config
from runner.submissions.check_file import check_file
from runner.tasks.load import load_task
from runner.tasks.request import request
from tests.tasks.test_vaswani import module

ROOT = Path(__file__).resolve().parents[2]
TASK = ROOT / "tasks" / "touche-2021-task1"
SAMPLE, FULL = TASK / "datasets" / "sample", TASK / "datasets" / "touche-2021"
BASELINES = ROOT / "submissions" / "baselines"


@pytest.fixture(scope="module")
def convert() -> ModuleType:
    return module(TASK / "convert.py")


@pytest.fixture(scope="module")
def argsme() -> ModuleType:
    return module(BASELINES / "argsme-dirichlet" / "argsme.py")


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A slice of the synthetic corpus in the five-file layout."""
    folder = tmp_path_factory.mktemp("corpus")
    bench.write_corpus(folder, 600)
    return folder


def dirichlet(folder: Path, into: Path, seed: str = "0") -> Path:
    """The run of the baseline, made by the task's own command line."""
    into.mkdir()
    program = BASELINES / "argsme-dirichlet" / "argsme_dirichlet.py"
    command = [sys.executable, str(program), "-i", str(folder), "-o", str(into)]
    subprocess.run(command, env={"PYTHONHASHSEED": seed}, check=True, timeout=120)
    return into / "run.txt"


# --- data --------------------------------------------------------------------------------------------------


def test_topics_and_relevance_of_2021_are_the_official_files() -> None:
    topics = (FULL / "inputs" / "topics.xml").read_bytes()
    relevance = (FULL / "truths" / "relevance.qrels").read_bytes()
    assert hashlib.sha256(topics).hexdigest() in (TASK / "README.md").read_text()
    assert hashlib.md5(relevance).hexdigest() == "76b4e8348bde353167ce52ffa598a6b1"
    assert read_topics(FULL / "inputs" / "topics.xml") == [str(n).encode() for n in range(51, 101)]
    qrels = read_qrels(FULL / "truths" / "relevance.qrels")
    counted = Counter(grade for grades in qrels.grades.values() for grade in grades.values())
    assert counted == {2: 1082, 1: 736, 0: 1542, -2: 351} and len(qrels.grades) == 50


def test_the_sample_fits_together(argsme: ModuleType) -> None:
    ids = [name for name, text in argsme.corpus(SAMPLE / "inputs") if text]
    assert len(ids) == 229
    assert (SAMPLE / "inputs" / "docids.txt").read_text().split() == ids
    assert read_corpus(SAMPLE / "inputs" / "docids.txt").missing([i.encode() for i in ids]) == ()
    topics = set(read_topics(SAMPLE / "inputs" / "topics.xml"))
    relevance = read_qrels(SAMPLE / "truths" / "relevance.qrels")
    assert len(topics) == 49 and topics > set(relevance.grades)
    judged = [(t, d) for t, grades in relevance.grades.items() for d in grades]
    assert len(judged) == 62 and {d.decode() for _, d in judged} <= set(ids)
    quality = read_qrels(SAMPLE / "truths" / "quality.qrels")
    assert [(t, d) for t, grades in quality.grades.items() for d in grades] == judged


def test_synthetic_judgments_say_so(convert: ModuleType) -> None:
    text = (SAMPLE / "truths" / "quality.qrels").read_text()
    assert text.startswith("# synthetic")
    assert text == convert.synthetic_quality((SAMPLE / "truths" / "relevance.qrels").read_text())
    assert "synthetic" in (TASK / "README.md").read_text()


def test_the_converter_keeps_the_first_of_the_copies(convert: ModuleType) -> None:
    texts = {f"a-{i}_____{times}": " ".join([f"t{i}"] * times) for i in (2, 1) for times in (1, 2)}
    rows = [{"qid": "1", "query": "q", "docid": name, "text": text} for name, text in texts.items()]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    found = convert.sample_arguments(lines.encode())
    assert found == {"a-2": "t2", "a-1": "t1"} and list(found) == ["a-2", "a-1"]
    assert json.loads(convert.args_me(found))["arguments"][1]["premises"] == [{"text": "t1"}]


def test_topics_are_escaped(convert: ModuleType) -> None:
    xml = convert.topics_xml([("1", "Cats & dogs < all?")])
    assert ET.fromstring(xml).findtext("topic/title") == "Cats & dogs < all?"


def test_another_source_is_refused(
    convert: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "topics-task-1-2021.xml").write_text("<topics/>")
    assert convert.main(["touche", str(tmp_path), str(tmp_path / "out")]) == 1
    assert "SHA-256" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert convert.main(["nothing"]) == 2


def test_the_corpus_is_unpacked_and_listed(convert: ModuleType, generated: Path, tmp_path: Path) -> None:
    downloads = tmp_path / "inputs" / "downloads"
    downloads.mkdir(parents=True)
    for name in bench.FILES:
        with zipfile.ZipFile(downloads / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(generated / f"{name}.json", f"{name}.json")
    assert convert.main(["corpus", str(tmp_path / "inputs")]) == 0
    assert (tmp_path / "inputs" / "idebate.json").read_bytes() == (generated / "idebate.json").read_bytes()
    ids = (tmp_path / "inputs" / "docids.txt").read_text().split()
    written = sum(len(json.loads((generated / f"{n}.json").read_text())["arguments"]) for n in bench.FILES)
    assert len(ids) == len(set(ids)) == written
    assert all(re.fullmatch("S[0-9a-f]{8}-A[0-9a-f]{8}", i) for i in ids)


def test_a_damaged_archive_is_an_error(convert: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "debateorg.zip").write_bytes(b"PK")
    assert convert.main(["corpus", str(tmp_path), str(tmp_path)]) == 1
    assert not (tmp_path / "docids.txt").exists()


# --- reading the corpus ------------------------------------------------------------------------------------

ARGUMENTS = [
    {"id": "a", "conclusion": "Zoos", "premises": [{"text": 'quoted "]," text'}, {"text": "second"}]},
    {
        "id": "b",
        "conclusion": "Ümläut \u2028 \\",
        "premises": [{"text": "{[}]"}],
        "context": {"deep": [[{}]]},
    },
    {"id": "c", "conclusion": None, "premises": []},
]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("piece", [1, 7, 64, 1 << 20])
def test_pieces_of_any_size(argsme: ModuleType, tmp_path: Path, piece: int, indent: int | None) -> None:
    (tmp_path / "x.json").write_text(json.dumps({"arguments": ARGUMENTS}, indent=indent, ensure_ascii=False))
    assert list(argsme.read_file(tmp_path / "x.json", piece)) == ARGUMENTS


BROKEN = [
    "",
    "[]",
    '{"other": []}',
    *(f'{{"arguments": [{rest}' for rest in ('{"id": "a"}', '{"id": "a"', "nope]}")),
]


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_file_is_an_error_and_no_short_corpus(argsme: ModuleType, tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError) as caught:
        list(argsme.read_file(tmp_path / "x.json"))
    assert "x.json" in str(caught.value)


def test_five_files_equal_one_file(argsme: ModuleType, generated: Path, tmp_path: Path) -> None:
    parts = list(argsme.corpus(generated))
    every = [a for name in argsme.PARTS for a in json.loads((generated / name).read_text())["arguments"]]
    (tmp_path / "args-me.json").write_text(json.dumps({"arguments": [*every, every[0]]}))
    assert list(argsme.corpus(tmp_path)) == parts, "an id that comes again is left out"
    with pytest.raises(OSError):
        (tmp_path / "args-me.json").unlink()
        list(argsme.corpus(tmp_path))


def test_conclusion_and_premises_are_searched(argsme: ModuleType) -> None:
    assert argsme.text_of(ARGUMENTS[0]) == 'Zoos quoted "]," text second'
    assert argsme.text_of(ARGUMENTS[2]) == ""


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """60 MB of arguments are read by a process that may take 40 MB more than it has at the start."""
    path = tmp_path / "args-me.json"
    row = json.dumps({"id": "x", "conclusion": "c", "premises": [{"text": "word " * 2000}]})
    with path.open("w") as file:
        file.write('{"arguments":[' + row)
        for _ in range(6000):
            file.write("," + row)
        file.write("]}")
    code = (
        "import resource, sys; sys.path.insert(0, sys.argv[1]); import argsme; from pathlib import Path\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "n = sum(1 for _ in argsme.read_file(Path(sys.argv[2])))\n"
        "print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    command = [sys.executable, "-c", code, str(BASELINES / "argsme-dirichlet"), str(path)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout.split()
    assert int(out[0]) == 6001 and int(out[1]) < 40_000


# --- the Dirichlet baseline --------------------------------------------------------------------------------


def test_dirichlet_on_the_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, inputs = dirichlet(SAMPLE / "inputs", tmp_path / "out"), SAMPLE / "inputs"
    checked = ["--topics", str(inputs / "topics.xml"), "--corpus", str(inputs / "docids.txt")]
    assert evaluator(["check", str(run), *checked, "--max-documents", "1000"]) == 0
    capsys.readouterr()
    asked = ["-m", "nDCG@5", "-m", "condensed nDCG@5", "-m", "Judged@5"]
    assert evaluator(["trec", str(SAMPLE / "truths" / "relevance.qrels"), str(run), *asked]) == 0
    assert re.findall(r"\d\.\d{4}", capsys.readouterr().out) == ["0.8679", "0.9752", "0.3871"]


def test_dirichlet_on_five_files(
    generated: Path, argsme: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    run = dirichlet(generated, tmp_path / "a")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert peak == before or peak < 400 * 1024, "KiB"
    assert run.read_bytes() == dirichlet(generated, tmp_path / "b", "7").read_bytes()
    (tmp_path / "docids.txt").write_text("\n".join(name for name, _ in argsme.corpus(generated)))
    checked = ["--topics", str(generated / "topics.xml"), "--corpus", str(tmp_path / "docids.txt")]
    assert evaluator(["check", str(run), *checked, "--max-documents", "1000"]) == 0
    capsys.readouterr()

    # The scores of one topic, by the formula as it is written.
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BASELINES / "argsme-dirichlet"))
        program = module(BASELINES / "argsme-dirichlet" / "argsme_dirichlet.py")
    bags = {
        name: Counter(program.stem(w) for w in program.words(text) if w not in program.STOP_WORDS)
        for name, text in argsme.corpus(generated)
    }
    everything: Counter[str] = Counter()
    for bag in bags.values():
        everything.update(bag)
    title = dict(argsme.topics(generated / "topics.xml"))["53"]
    query = [program.stem(w) for w in program.words(title) if w not in program.STOP_WORDS]
    query = [w for w in query if everything[w]]
    written = {f[2]: float(f[4]) for f in map(str.split, run.read_text().splitlines()) if f[0] == "53"}
    assert written and query
    total = everything.total()
    shares = {w: everything[w] / total for w in query}
    for name, bag in bags.items():
        matched = any(bag[w] for w in query)
        assert (name in written) == matched
        if matched:
            n = sum(bag.values())
            likelihood = sum(math.log((bag[w] + 2000 * shares[w]) / (n + 2000)) for w in query)
            constant = sum(math.log(shares[w]) for w in query)
            assert written[name] == pytest.approx(likelihood - constant, abs=1e-4)


def test_the_generated_corpus_is_like_the_original(generated: Path) -> None:
    assert sum(count for count, _ in bench.FILES.values()) == 387_740
    sizes = {n: len(json.loads((generated / f"{n}.json").read_text())["arguments"]) for n in bench.FILES}
    assert sizes == {"debateorg": 524, "debatepedia": 33, "debatewise": 22, "idebate": 21, "parliamentary": 1}
    argument = json.loads((generated / "debateorg.json").read_text())["arguments"][1]
    assert set(argument) == {"id", "conclusion", "premises", "context"}
    assert argument["premises"][0]["stance"] in ("PRO", "CON")
    arguments = json.loads((generated / "debateorg.json").read_text())["arguments"]
    lengths = [sum(len(p["text"].split()) for p in a["premises"]) for a in arguments]
    assert 230 < sum(lengths) / len(lengths) < 360, "292 words on average"


def test_software_sees_the_corpus_and_the_topics_and_nothing_else() -> None:
    services = yaml.safe_load((TASK / "compose.yaml").read_text("utf-8"))["services"]
    mounts = [Path(mount["target"]) for mount in services["software"]["volumes"]]
    seen = [path.name for path in mounts if path.parent == Path("/tira-data/input")]
    assert sorted(seen) == ["args-me.json", "topics.xml"]


def test_runs_of_2021_are_scored_without_the_corpus(tmp_path: Path) -> None:
    """By the judgments of relevance that are here; what is not here is said, and the other measures wait."""
    task = load_task(config.load(cwd=TASK), "touche-2021-task1")
    dataset = task.datasets["touche-2021"]
    best: dict[bytes, list[bytes]] = {}
    for topic, grades in read_qrels(FULL / "truths/relevance.qrels").grades.items():
        best[topic] = sorted(grades, key=grades.__getitem__, reverse=True)[:5]
    ranked = ((topic, *pair) for topic, docs in best.items() for pair in enumerate(docs, 1))
    run = b"".join(b"%s Q0 %s %d %d t\n" % (topic, doc, rank, 9 - rank) for topic, rank, doc in ranked)
    (tmp_path / "run.txt").write_bytes(run)
    assert check_file(task, dataset, tmp_path / "run.txt") == 0
    content = request(task, dataset, "default", "run.txt")
    content["paths"] = {"run": str(tmp_path), "output": str(tmp_path)}
    content["paths"] |= {"inputs": str(dataset.inputs), "truths": str(dataset.truths)}
    assert "inputs/docids.txt" in content["absent"] and "truths/quality.qrels" in content["absent"]
    (tmp_path / "request.json").write_text(json.dumps(content))
    assert evaluator(["run", "--request", str(tmp_path / "request.json")]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["status"] == "valid" and result["measures"]["ndcg_5"]["value"] == pytest.approx(1.0)
    assert set(result["pending"]) == {m for m in task.measures if m.startswith("quality_")}
    assert "docids.txt" in result["notes"][0]
