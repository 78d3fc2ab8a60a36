"""``runner task new --from``: collections in every form become tasks that pass the check; odd files get their line."""

from __future__ import annotations

import gzip
import json
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.tasks.check_contents import read_contents
from runner.tasks.check_data import task_problems
from runner.tasks.load import load_task
from runner.tasks.scaffold import new_task_from
from tests.worlds.definitions import project, told

TEXTS = {"d1": "of tides", "d2": "of bread", "d3": "of bees & glass", "d4": "of trams"}
TITLES = {"d1": "Tides", "d2": "Bread", "d3": "Bees", "d4": "Trams"}
TOPICS = {"t1": "tides at night", "t2": "bread & butter", "t3": "bees"}
QRELS = "t1 0 d1 1\nt1 0 d2 0\nt2 0 d2 2\nt3 Q0 d3 1\n"

DOCUMENTS = {
    "json": "".join(json.dumps({"_id": d, "title": TITLES[d], "text": TEXTS[d]}) + "\n" for d in TEXTS),
    "trec": "".join(
        f"<DOC>\n<DOCNO> {d} </DOCNO>\n<HEADLINE>{TITLES[d]}</HEADLINE>\n<TEXT>\n<P>{TEXTS[d].replace('&', '&amp;')}</P>\n"
        "</TEXT>\n</DOC>\n"
        for d in TEXTS
    ),
    "tsv": "".join(f"{d}\t{TITLES[d]}\t{TEXTS[d]}\n" for d in TEXTS),
    "tsv-named": "docno\ttitle\ttext\n" + "".join(f"{d}\t{TITLES[d]}\t{TEXTS[d]}\r\n" for d in TEXTS),
}
TOPIC_FILES = {
    "json": "".join(json.dumps({"qid": t, "query": TOPICS[t]}) + "\n" for t in TOPICS),
    "sgml": "".join(
        f"<top>\n<num> Number: {t}\n<title> Topic: {TOPICS[t].replace('&', '&amp;')}\n\n<desc> Description:\nSay more.\n\n"
        "<narr> Narrative:\nAnd more.\n</top>\n"
        for t in TOPICS
    ),
    "xml": '<?xml version="1.0"?>\n<topics>\n'
    + "".join(
        f'<topic number="{t}"><title>{TOPICS[t].replace("&", "&amp;")}</title></topic>\n' for t in TOPICS
    )
    + "</topics>\n",
    "xml-number": "<topics>"
    + "".join(
        f"<topic><number>{t}</number><title>{TOPICS[t].replace('&', '&amp;')}</title></topic>" for t in TOPICS
    )
    + "</topics>",
    "tsv": "".join(f"{t}\t{TOPICS[t]}\n" for t in TOPICS),
}
GOOD = {"a": DOCUMENTS["trec"], "b": TOPIC_FILES["sgml"], "c": QRELS}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return project(tmp_path / "root", private=tmp_path / "private")


def collection(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


def rows(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [json.loads(line) for line in text.decode().splitlines()]


def check(config: Config, name: str = "mine") -> list[str]:
    """What ``runner task check`` finds wrong: with the files, and in what they hold."""
    task = load_task(config, name)
    contents = read_contents(task, config, lambda _: None)
    assert not any(one.unchecked for one in contents)
    return [str(p) for p in [*task_problems(task, config), *(p for one in contents for p in one.problems)]]


def refused(config: Config, source: Path, **options: Any) -> RunnerError:
    """The error of a collection that no task is made of; nothing is left of it."""
    with pytest.raises(RunnerError) as caught:
        new_task_from(config, "mine", str(source), say=lambda _: None, **options)
    assert list(config.tasks.iterdir()) == []
    assert config.private is not None and not (config.private.exists() and list(config.private.iterdir()))
    return caught.value


def make(config: Config, source: Path | str, **options: Any) -> tuple[Path, list[str]]:
    """Make the task ``mine`` from a collection; return the folder of its hidden data and the messages."""
    messages: list[str] = []
    _, hidden = new_task_from(config, "mine", str(source), say=messages.append, **options)
    return hidden, messages


@pytest.mark.parametrize("topics", TOPIC_FILES)
@pytest.mark.parametrize("documents", DOCUMENTS)
def test_forms_give_the_same_task(config: Config, tmp_path: Path, documents: str, topics: str) -> None:
    """Names say nothing here: what the files hold decides, also where topics and documents have the same form."""
    packed = ".gz" if len(documents + topics) % 2 else ""  # each form both ways, with one or the other
    files = {f"x1{packed}": DOCUMENTS[documents], f"x2{packed}": TOPIC_FILES[topics], f"x3{packed}": QRELS}
    hidden, _ = make(config, collection(tmp_path / "c", files))
    inputs = hidden / "test/inputs"
    found = {row["docno"]: row["text"] for row in rows(inputs / "documents.jsonl.gz")}
    assert found == {d: f"{TITLES[d]}\n{TEXTS[d]}" for d in TEXTS}
    assert {row["qid"]: row["query"] for row in rows(inputs / "queries.jsonl")} == TOPICS
    assert (hidden / "test/truths/qrels.txt").read_text() == QRELS
    assert check(config) == []


def test_messages_name_each_file(config: Config, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    more = {
        "README.md": "All about\nthese data.\n",
        "runs/best.txt": "t1 Q0 d1 1 2.5 tag\nt1 Q0 d2 2 1.5 tag\n",
        "paper.pdf": b"%PDF-1\0\1",
        "nothing": "",
        "stats.json": '{\n  "a": 1\n}\n',
        "page.html": "<html><p>x</p></html>",
    }
    _, messages = make(config, collection(tmp_path / "c", GOOD | more))
    assert all(len(line) <= 80 for text in messages for line in text.splitlines())
    golden("collection.txt", "\n".join(messages) + "\n")


def test_truths_stay_out_of_what_participants_see(config: Config, tmp_path: Path) -> None:
    hidden, _ = make(config, collection(tmp_path / "c", GOOD))
    folder = config.tasks / "mine"
    test = {row["qid"] for row in rows(hidden / "test/inputs/queries.jsonl")}
    assert test == set(TOPICS) and not hidden.is_relative_to(config.root)
    assert [path for path in folder.rglob("*") if path.name in ("qrels.txt", "queries.jsonl")] == []
    assert check(config) == []


def test_hidden_data_in_the_project_are_refused_before_anything_is_read(
    config: Config, tmp_path: Path
) -> None:
    source = collection(tmp_path / "c", GOOD)
    assert config.private is not None
    (config.private / "mine").mkdir(parents=True)
    inside = Config(root=config.root, home=config.home, truths=None)
    for other, code in ((inside, "E411"), (config, "E101")):
        with pytest.raises(RunnerError, check=lambda error: error.code == code):
            make(other, source)
        assert list((config.private / "mine").iterdir()) == [] and list(config.tasks.iterdir()) == []


def test_what_could_be_an_answer_is_not_shown_with_a_topic(config: Config, tmp_path: Path) -> None:
    fields = {"narrative": "n", "relevant_docs": ["d1"]}
    topics = "".join(json.dumps({"qid": t, "title": TOPICS[t], **fields}) + "\n" for t in TOPICS)
    hidden, messages = make(config, collection(tmp_path / "c", GOOD | {"b": topics}))
    assert "relevant_docs" not in (hidden / "test/inputs/queries.jsonl").read_text()
    assert any("relevant_docs" in message for message in messages)
    first = rows(hidden / "test/inputs/queries.jsonl")[0]["original_query"]
    assert first == {"query_id": "t1", "title": TOPICS["t1"], "narrative": "n"}


def test_the_same_topics_in_two_forms_count_once(config: Config, tmp_path: Path) -> None:
    """TIRA and ir_datasets have queries.jsonl and queries.xml; the judgments have a comment."""
    files = {
        "b": TOPIC_FILES["json"],
        "b2": TOPIC_FILES["xml"],
        "c": f"# judged by hand, in two rounds\n{QRELS}",
    }
    hidden, messages = make(config, collection(tmp_path / "c", GOOD | files))
    assert any(message.startswith("left: b2 ") for message in messages)
    assert len(rows(hidden / "test/inputs/queries.jsonl")) == len(TOPICS)
    assert (hidden / "test/truths/qrels.txt").read_text() == QRELS
    (tmp_path / "c/b2").write_text(TOPIC_FILES["xml"].replace("bees", "wasps"))
    other = project(tmp_path / "other", private=tmp_path / "others")
    problems = refused(other, tmp_path / "c").problems
    assert [p.where for p in problems if "b:3" in p.what] == ["b2:5"]


def test_a_later_version_of_the_corpus_is_accepted(config: Config, tmp_path: Path) -> None:
    """As in TREC-COVID: its list of documents repeats ids, and its last version lacks judged documents."""
    files = GOOD | {"a": DOCUMENTS["trec"] + DOC.format("d1"), "c": QRELS + "t1 0 d9 1\n"}
    hidden, messages = make(config, collection(tmp_path / "c", files))
    assert (hidden / "test/truths/qrels.txt").read_text() == QRELS + "t1 0 d9 1\n"
    ids = [row["docno"] for row in rows(hidden / "test/inputs/documents.jsonl.gz")]
    assert len(ids) == len(set(ids))
    assert len([line for line in messages if line.startswith("warning: 1 ")]) == 2


def test_judgments_in_three_columns_and_in_several_files(config: Config, tmp_path: Path) -> None:
    files = {
        "corpus.jsonl": DOCUMENTS["json"],
        "queries.jsonl": "".join(json.dumps({"_id": t, "text": TOPICS[t]}) + "\n" for t in TOPICS),
        "qrels/a.tsv": "query-id\tcorpus-id\tscore\nt1\td1\t1\n",
        "qrels/b.tsv": "query-id\tcorpus-id\tscore\nt2\td2\t2\nt3\td3\t1\n",
    }
    with zipfile.ZipFile(tmp_path / "collection.zip", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    hidden, _ = make(config, tmp_path / "collection.zip")
    assert (hidden / "test/truths/qrels.txt").read_text() == "t1 0 d1 1\nt2 0 d2 2\nt3 0 d3 1\n"
    assert check(config) == []


@pytest.mark.parametrize(
    ("documents", "topics", "judged"),
    [
        ([range(1, 41)], range(1, 6), [(t, d) for t in range(1, 6) for d in range(t, 41, 5)]),
        ([range(1, 1001)], range(1, 101), [(t, 7 * (t % 5) + 500) for t in range(1, 101)]),
        ([range(1, 701), range(701, 1401)], range(1, 226), [(t, 6 * t) for t in range(1, 226)]),
        ([range(1, 2001)], range(1, 201), [(t, t + 900) for t in range(1, 201, 5)]),
    ],
    ids=["small", "few documents", "two parts", "few topics"],
)
def test_topics_and_documents_with_numbers_as_ids_are_told_apart(
    config: Config, tmp_path: Path, documents: list[range], topics: range, judged: list[tuple[int, int]]
) -> None:
    files = {f"f{n}": "".join(f"{d}\ttext {d}\n" for d in part) for n, part in enumerate(documents)}
    files |= {
        "g": "".join(f"{t}\tquestion {t}\n" for t in topics),
        "h": "".join(f"{t} 0 {d} 1\n" for t, d in judged),
    }
    hidden, _ = make(config, collection(tmp_path / "c", files))
    assert len(rows(hidden / "test/inputs/documents.jsonl.gz")) == sum(map(len, documents))
    assert len(rows(hidden / "test/inputs/queries.jsonl")) == len(topics)
    assert check(config) == []


def test_zeros_before_numbers_of_topics_and_paragraphs_without_blanks(config: Config, tmp_path: Path) -> None:
    """As in TREC's first years: the topics say 051, the judgments 51."""
    topics = "".join(f"<top>\n<num> Number: 0{n}\n<title> topic {n}\n</top>\n" for n in (51, 52))
    documents = "<DOC><DOCNO>d</DOCNO><TEXT><P>one</P><P>two</P></TEXT></DOC>\n"
    source = collection(tmp_path / "c", {"a": documents, "b": topics, "c": "51 0 d 1\n52 0 d 0\n"})
    hidden, messages = make(config, source)
    assert [row["qid"] for row in rows(hidden / "test/inputs/queries.jsonl")] == ["51", "52"]
    assert any("051" in message for message in messages)
    (document,) = rows(hidden / "test/inputs/documents.jsonl.gz")
    assert document["text"].split() == ["one", "two"]
    assert check(config) == []


def test_old_encodings_are_read_and_said(config: Config, tmp_path: Path) -> None:
    files = GOOD | {"a": DOCUMENTS["trec"].replace("tides", "marées").encode("latin-1")}
    hidden, messages = make(config, collection(tmp_path / "c", files))
    texts = [row["text"] for row in rows(hidden / "test/inputs/documents.jsonl.gz")]
    assert texts[0] == "Tides\nof marées"
    assert any(message.startswith("a: 1 ") and "Latin-1" in message for message in messages)


DOC = "<DOC>\n<DOCNO>{}</DOCNO>\nx\n</DOC>\n"
WRONG = {
    "a line of JSON that is none": ("a", DOCUMENTS["json"] + "{broken\n", "a:5"),
    "a JSON list in a line": ("a", DOCUMENTS["json"] + "[1]\n", "a:5"),
    "NaN": ("a", DOCUMENTS["json"] + '{"_id": "e", "text": NaN}\n', "a:5"),
    "a key twice": ("a", DOCUMENTS["json"] + '{"_id": "e", "_id": "f"}\n', "a:5"),
    "nested without end": ("a", DOCUMENTS["json"] + '{"text":' + "[" * 100_000 + "\n", "a:5"),
    "an object as id": ("a", DOCUMENTS["json"] + '{"_id": {}, "text": "x"}\n', "a:5"),
    "an id with a blank": ("a", DOCUMENTS["json"] + '{"_id": "a b", "text": "x"}\n', "a:5"),
    "an id that clears the screen": (
        "a", DOCUMENTS["json"] + '{"_id": "\\u001b[2J", "text": "x"}\n', "a:5"),
    "documents of one id": ("a", DOCUMENTS["trec"] + DOC.format("d1") * 9, "a:29"),
    "a document without id": ("a", DOCUMENTS["trec"] + "<DOC>x</DOC>", "a:29"),
    "a document without end": ("a", DOCUMENTS["trec"] + "\n<DOC><DOCNO>e</DOCNO>", "a:30"),
    "a document in another": ("a", DOCUMENTS["trec"] + "<DOC>" + DOC.format("e"), "a:29"),
    "an end without beginning": ("a", DOCUMENTS["trec"] + "x\n</DOC>", "a:30"),
    "a row without tab": ("a", DOCUMENTS["tsv"] + "lonely\n", "a:5"),
    "a row with a tab too many": ("a", DOCUMENTS["tsv-named"] + "e\tx\ty\tz\n", "a:6"),
    "a topic without number": ("b", TOPIC_FILES["sgml"] + "<top><title>x</top>", "b:31"),
    "a topic without text": ("b", TOPIC_FILES["json"] + '{"qid": "t9"}\n', "b:4"),
    "a topic twice": ("b", TOPIC_FILES["tsv"] + "t1\tx\n", "b:4"),
    "XML that is none": ("b", TOPIC_FILES["xml"][:-12] + "&nbsp;</topics>", "b:5"),
    "entities without end": (
        "b", '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n<topics><topic number="t1"><title>&b;</title></topic></topics>',
        "b"),
    "a file elsewhere": (
        "b", '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>\n<topics><topic number="t1"><title>&a;</title></topic></topics>',
        "b"),
    "a judgment too short": ("c", QRELS + "t1 0 d1\n", "c:5"),
    "a judgment that is half": ("c", QRELS + "t1 0 d3 0.5\n", "c:5"),
    "two grades": ("c", QRELS + "t1 0 d1 0\n", "c:5"),
    "an unknown topic": ("c", QRELS + "t9 0 d1 1\n", "c:5"),
    "another corpus": ("c", "t1 0 x1 1\nt2 0 x2 1\nt3 0 x3 0\n", "c:1"),
    "judged in two files": ("c2", "t1 0 d3 1\nt2 0 d3 1\n" * 100, "c2:1"),
    "nothing judged": ("c", "", "c"),
    "both or neither": ("x", "u\tone\nv\ttwo\n", "x"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files_are_named_with_their_line(config: Config, tmp_path: Path, case: str) -> None:
    name, content, place = WRONG[case]
    error = refused(config, collection(tmp_path / "c", GOOD | {name: content}))
    assert error.code == "E402" and place in {problem.where for problem in error.problems}
    text = told(error)
    assert "aaaa" not in text and "root:" not in text
    assert all(line.isprintable() for line in text.splitlines())


@pytest.mark.parametrize(
    "content",
    [
        DOCUMENTS["trec"] + f"<DOC><DOCNO>e</DOCNO>{'<P>' * 1_000_000}<{'a' * 2_000_000}</DOC>\n",
        DOCUMENTS["trec"] + "<DOC" * 1_000_000,
        "<" + "doc" * 1_000_000,
        "<top><num>" + " " * 3_000_000 + "<title>" + "x" * 3_000_000,
        "a" * 3_000_000,
        "a " * 1_500_000,
        "\t" * 3_000_000,
        "1\t" + " " * 3_000_000,
        "<top><num>1<title>" + "<!--" * 700_000,
        "<top><num>1<title>" + "<![CDATA[" * 300_000,
        "<top><num>1<title>" + "<x y='" * 500_000,
        "<top><num>1<title>" + "<x>" * 500_000,
        "<top " + "a=" * 1_500_000 + "><num>1<title>x",
        "1 d 1 1 " + "0" * 65_000 + "x\n",
        "1\t" + '"' * 65_001,
        '1\t"a' * 20_000,
    ],
    ids=range(16),
)
def test_long_nonsense_takes_no_time_to_speak_of(config: Config, tmp_path: Path, content: str) -> None:
    source = collection(tmp_path / "c", GOOD | {"z": content})
    begun = time.process_time()
    with suppress(RunnerError):
        new_task_from(config, "mine", str(source), say=lambda _: None)
    assert time.process_time() - begun < 15


def test_damaged_and_broken_off_files_are_named(config: Config, tmp_path: Path) -> None:
    folder = collection(tmp_path / "c", GOOD)
    (folder / "z.gz").write_bytes(gzip.compress(DOCUMENTS["json"].encode() * 500)[:-20])
    assert "z.gz:" in told(refused(config, folder))
    (folder / "z.gz").write_bytes(b"\x1f\x8bnot gzip at all")
    assert [problem.where for problem in refused(config, folder).problems] == ["z.gz"]


def test_all_problems_are_said_at_once_and_bounded(config: Config, tmp_path: Path) -> None:
    topics = TOPIC_FILES["json"] + '{"qid": "t9"}\n'
    files = {"a": DOCUMENTS["json"] + "{\n" * 1000, "b": topics, "c": QRELS}
    said = told(refused(config, collection(tmp_path / "c", files)))
    assert "b:4: " in said and "951" in said and said.count("a:") == 49


def test_problems_take_little_memory(config: Config, tmp_path: Path) -> None:
    """Each problem has a text of its own, and no document of them is kept."""
    bad = "".join(json.dumps({"_id": f"a {n}", "text": "x" * 100_000}) + "\n" for n in range(300))
    source = collection(tmp_path / "c", GOOD | {"a": DOCUMENTS["json"] + bad, "b": TOPIC_FILES["json"]})
    tracemalloc.start()
    try:
        error = refused(config, source)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 15 << 20
    assert [p.where for p in error.problems] == [*(f"a:{n}" for n in range(5, 55)), "the collection"]
    assert "250" in error.problems[-1].what


def test_a_collection_that_is_not_there(config: Config, tmp_path: Path) -> None:
    assert refused(config, tmp_path / "nowhere").code == "E102"
    (tmp_path / "empty").mkdir()
    assert refused(config, tmp_path / "empty").code == "E402"
    with pytest.raises(RunnerError, check=lambda error: error.code == "E101"):
        make(config, tmp_path, kind="debate")


@pytest.fixture
def registered(tmp_path: Path) -> str:
    """A dataset of ir_datasets with files of this machine; nothing is fetched."""
    import ir_datasets

    docs = "".join(f"{d}\t{text}\n" for d, text in TEXTS.items())
    files = {"docs": docs, "queries": TOPIC_FILES["tsv"], "qrels": QRELS}
    folder = collection(tmp_path / "irds", files)
    made = ir_datasets.create_dataset(*(str(folder / name) for name in files))
    name = f"of-a-test-{tmp_path.name}"
    ir_datasets.registry.register(name, made)
    return name


def test_a_dataset_of_ir_datasets(config: Config, registered: str) -> None:
    hidden, _ = make(config, f"irds:{registered}")
    found = {row["docno"]: row["text"] for row in rows(hidden / "test/inputs/documents.jsonl.gz")}
    assert found == TEXTS
    topics = rows(hidden / "test/inputs/queries.jsonl")
    assert {row["qid"]: row["query"] for row in topics} == TOPICS
    lines = (hidden / "test/truths/qrels.txt").read_text()
    assert sorted(lines.splitlines()) == sorted(QRELS.splitlines())
    assert check(config) == []


def test_what_ir_datasets_does_not_have(
    config: Config, registered: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refused(config, Path("irds:no-such-set")).code == "E102"
    assert '"vaswani"' in refused(config, Path("irds:vasvani")).fix
    (tmp_path / "irds/docs").unlink()
    assert refused(config, Path(f"irds:{registered}")).code == "E407"
    monkeypatch.setitem(sys.modules, "ir_datasets", None)  # as where it is not installed
    error = refused(config, Path(f"irds:{registered}"))
    assert error.code == "E101" and "pip install" in error.fix
