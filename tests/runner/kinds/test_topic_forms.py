"""``runner task new --from``: topics and judgments as tracks, spreadsheets and benchmarks write them; none loses text."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from runner.model.config import Config
from runner.tasks.check_contents import read_contents
from runner.tasks.check_data import task_problems
from runner.tasks.load import load_task
from runner.tasks.scaffold import new_task_from
from tests.runner.kinds.test_collections import collection as write
from tests.runner.kinds.test_collections import config, make, refused, rows
from tests.worlds.definitions import project, told

__all__ = ["config"]

QUERIES = {"1": "harbour ferry, now", "2": "bread flour", "3": "trams depot"}
DOCUMENTS = "".join(f"<DOC><DOCNO>D-{n}</DOCNO><TEXT>text {n}</TEXT></DOC>\n" for n in (1, 2, 3))
QRELS = "1 0 D-1 2\n2 0 D-2 1\n3 0 D-3 1\n"
BEIR = {
    "corpus.jsonl": "".join(
        json.dumps({"_id": f"D-{n}", "title": "T", "text": f"text {n}"}) + "\n" for n in (1, 2, 3, 4)
    ),
    "queries.jsonl": "".join(
        json.dumps({"_id": n, "text": text, "metadata": {}}) + "\n" for n, text in QUERIES.items()
    ),
}
COLUMNS = "query-id\tcorpus-id\tscore\n"


def top(number: str, title: str, *, attributes: str = "", more: str = "") -> str:
    return f"<top{attributes}>\n<num> Number: {number}\n<title> {title}\n\n<desc> Description:\nMore.\n{more}</top>\n\n"


def tops(title_of_1: str, **options: Any) -> str:
    return "".join(top(n, title_of_1 if n == "1" else text, **options) for n, text in QUERIES.items())


def elements(form: str) -> str:
    return "".join(form.format(id=n, text=text) for n, text in QUERIES.items())


def collection(folder: Path, topics: str | bytes, name: str = "topics.txt", qrels: str = QRELS) -> Path:
    return write(folder, {"docs.trec": DOCUMENTS, name: topics, "qrels.txt": qrels})


def topics_of(
    config: Config, source: Path, *, said: list[str] | None = None, **options: Any
) -> list[dict[str, Any]]:
    """Return the topics of the blinded dataset that ``task new`` makes."""
    hidden, messages = make(config, source, **options)
    if said is not None:
        said += messages
    return rows(hidden / "test/inputs/queries.jsonl")


def queries(config: Config, source: Path, **options: Any) -> dict[str, str]:
    return {row["qid"]: row["query"] for row in topics_of(config, source, **options)}


FORMS = {
    "FIRE": (tops(QUERIES["1"], attributes=" lang='en'"), {}),
    "TREC, closed": (elements("<top><num>{id}</num><title>{text}</title><desc>More.</desc></top>"), {}),
    "TREC in XML": ("<?xml version='1.0'?>\n<topics>" + elements("<top><num>{id}</num><title>{text}</title></top>") + "</topics>", {}),
    "TREC microblog": (elements("<top>\n<num> Number: {id} </num>\n<query> {text} </query>\n<querytime> Tue 8 Feb </querytime>\n</top>\n"), {}),
    "CLEF": ('<topics>' + elements('<topic lang="en"><identifier>{id}</identifier><title>{text}</title></topic>') + "</topics>", {}),
    "CLEF, prefixed": (elements("<top>\n<num> {id} </num>\n<EN-title> {text} </EN-title>\n<EN-desc> More. </EN-desc>\n</top>\n"), {}),
    "CLEF, two languages": (
        elements("<top>\n<num> {id} </num>\n<DE-title> anders </DE-title>\n<EN-title> {text} </EN-title>\n</top>\n"), {"text_fields": ["EN-title"]}),
    "NTCIR, two languages": (
        elements("<top>\n<num> {id}\n<C-title> anders\n<E-title> {text}\n</top>\n"), {"text_fields": ["e_title"]}),
    "TREC, a field of its own": (elements("<top>\n<num> {id}\n<claim> {text}\n</top>\n"), {"text_fields": ["claim"]}),
    "TREC, a comment between topics": (elements("<top><num>{id}</num><title>{text}</title></top>\n<!-- checked by two -->\n"), {}),
    "TREC Novelty": (elements("<top>\n<num> {id}\n<title> {text}\n<toptype> event\n<narr> More.\n<docs>\nD-1 D-2\nD-3\n</top>\n"), {}),
    "TREC, description only": (elements("<top>\n<num>{id}</num>\nstray\n<desc> Description:\n{text} </desc>\n</top>\n"), {}),
    "XML, description only": ("<topics>" + elements('<topic number="{id}">stray<description>{text}</description></topic>') + "</topics>", {}),
    "id as attribute and element": (
        "<topics>" + elements('<topic number="{id}" title="t"><num>Number: {id}</num><title>{text}</title></topic>') + "</topics>", {}),
    "id with a label": ("<topics>" + elements("<topic><num> Number: {id} </num><title>{text}</title></topic>") + "</topics>", {}),
    "fields called like HTML": (
        "<topics>" + elements("<topic><number>{id}</number>\n<code>A-17</code><p>x</p><description>{text}</description></topic>") + "</topics>", {}),
    "a named field called like HTML": (
        "<topics>" + elements('<topic number="{id}"><code>A-17</code><q>{text}</q></topic>') + "</topics>", {"text_fields": ["q"]}),
    "text of the topic, marked up": ("<topics>" + elements('<topic number="{id}"><b></b>{text}<i> </i></topic>') + "</topics>", {}),
    "CLEF eHealth": ("<queries>" + elements("<query><id>{id}</id><title>{text}</title></query>") + "</queries>", {}),
    "CLEF eHealth, by language": ("<queries>" + elements("<query><id>{id}</id><en>{text}</en></query>") + "</queries>", {"text_fields": ["en"]}),
    "language of an element": (
        "<topics>" + elements('<topic id="{id}"><title xml:lang="de">anders</title><title xml:lang="en">{text}</title></topic>') + "</topics>",
        {"text_fields": ["en-title"]}),
    "NTCIR": ("<TOPICS>" + elements("<TOPIC><NUM>{id}</NUM><SLANG>EN</SLANG><TITLE>{text}</TITLE><DESC>More.</DESC></TOPIC>") + "</TOPICS>", {}),
    "NTCIR WWW": ("<queries>" + elements("<query><qid>{id}</qid><content>{text}</content><description>x</description></query>") + "</queries>", {}),
    "TREC-COVID": (
        '<topics task="COVIDSearch">'
        + elements('<topic number="{id}"><query>{text}</query><question>Q</question><narrative>N</narrative></topic>') + "</topics>", {}),
    "Web track": ("<webtrack>" + elements('<topic number="{id}" type="faceted"><query>{text}</query><subtopic>a b c</subtopic></topic>') + "</webtrack>", {}),
    "INEX": ("<inex>" + elements('<inex_topic topic_id="{id}"><title>{text}</title><castitle>//a</castitle></inex_topic>') + "</inex>", {}),
    "text of the topic": ("<topics>" + elements('<topic number="{id}">{text}</topic>') + "</topics>", {}),
    "no root": ("<?xml version='1.0' encoding='UTF-8'?>\n" + elements('<topic number="{id}"><title>{text}</title></topic>\n'), {}),
    "several fields": ("<topics>" + elements('<topic number="{id}"><disease>{text}</disease></topic>') + "</topics>", {"text_fields": ["disease"]}),
    "CAsT": (
        json.dumps([{"number": 1, "title": "T", "turn": [{"number": int(n), "raw_utterance": text} for n, text in QUERIES.items()]}], indent=1), {}),
    "iKAT": (
        json.dumps([{"number": "1", "title": "T", "turns": [{"turn_id": int(n), "utterance": text, "response": "D-1"} for n, text in QUERIES.items()]}]), {}),
    "conversation with a qid": (
        json.dumps([{"qid": "1", "turns": [{"turn_id": int(n), "utterance": text} for n, text in QUERIES.items()]}]), {}),
    "topics with turns": (
        elements('{{"qid": "{id}", "query": "{text}", "turns": []}}\n')
        .replace('"2", "query": "bread flour", "turns": []', '"2", "query": "bread flour", "turns": ["hi", "there"]')
        .replace('"3", "query": "trams depot", "turns": []', '"3", "query": "trams depot", "turns": [{"query": "x"}, {"query": "y"}]'), {}),
    "JSON array": (json.dumps([{"id": int(n), "title": text} for n, text in QUERIES.items()], indent=2), {}),
    "JSON, named field": (elements('{{"id": "{id}", "claim": "{text}"}}\n'), {"text_fields": ["claim"]}),
    "CSV": ("qid,query\n" + elements('{id},"{text}"\n'), {}),
    "CSV, byte order mark": (("qid,query\r\n" + elements('{id},"{text}"\r\n')).encode("utf-8-sig"), {}),
    "CSV, semicolons": ("qid;query;;\n" + elements("{id};{text};;\n") + ";;;\n", {}),
    "CSV, Excel's first line": ("sep=;\r\nTopic ID;Query\r\n" + elements("{id};{text}\r\n"), {}),
    "CSV, id last": ("query,qid\n" + elements('"{text}",{id}\n'), {}),
    "CSV, named column": ("nummer,anfrage\n" + elements('{id},"{text}"\n'), {"text_fields": ["Anfrage"]}),
    "TSV of a spreadsheet": ("qid\tquery\n" + elements('{id}\t"{text}"\n').replace('"bread flour"', "bread flour"), {}),
    "TSV, all in quotes": ('"qid"\t"query"\n' + elements('"{id}"\t"{text}"\n'), {}),
}  # fmt: skip


def read_form(config: Config, folder: Path, form: str, encoding: str) -> None:
    content, options = FORMS[form]
    text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
    topics = content if encoding == "utf-8" else text.replace("UTF-8", "UTF-16").encode(encoding)
    prefix = "1_" if form in ("CAsT", "iKAT", "conversation with a qid") else ""
    qrels = "".join(f"{prefix}{line}\n" for line in QRELS.splitlines())
    found = queries(config, collection(folder, topics, qrels=qrels), **options)
    assert found == {f"{prefix}{n}": text for n, text in QUERIES.items()}


@pytest.mark.parametrize("form", FORMS)
def test_known_forms_of_topics_are_read(config: Config, tmp_path: Path, form: str) -> None:
    read_form(config, tmp_path / "c", form, "utf-8")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("form", ["FIRE", "no root", "CLEF", "JSON array", "TSV of a spreadsheet"])
def test_topics_in_utf_16_are_read(config: Config, tmp_path: Path, form: str, encoding: str) -> None:
    read_form(config, tmp_path / "c", form, encoding)


MARKUP = {
    "inline": ("vitamin <b>C</b> and the ferry", "vitamin C and the ferry"),
    "attributes": (
        "vitamin <font color=\"red\">C</font> and <a href='x'>the</a> ferry",
        "vitamin C and the ferry",
    ),
    "no blank": ("H<sub>2</sub>O in <i>tea</i>", "H2O in tea"),
    "a break": ("lobsters<br></br>and tea<br/>too", "lobsters and tea too"),
    "paragraphs": ("<p>lobsters</p><p>tea</p>", "lobsters tea"),
    "nested": ("<p>all <em>about <b>lobsters</b></em> here</p>", "all about lobsters here"),
    "an unknown element": ("vitamin <chem>C</chem> and tea", "vitamin C and tea"),
    "entities": ("bread &amp; butter &lt;b&gt;", "bread & butter <b>"),
    "CDATA": ("<![CDATA[a < b & c]]> tea", "a < b & c tea"),
}
NOT_IN_XML = {
    "elements of HTML": ("lobsters<br>and <a href=x>tea<p>too</a>", "lobsters and tea too"),
    "less than": ("a < b and <5 years", "a < b and <5 years"),
    "not an element": ("sort a List<String> now", "sort a List<String> now"),
    "ampersand": ("bread & butter", "bread & butter"),
    "an address": ("who is <a.b@example.org> there", "who is <a.b@example.org> there"),
}


@pytest.mark.parametrize("field", ["title", "desc", "narr"])
@pytest.mark.parametrize("form", ["open", "closed", "xml"])
def test_markup_is_removed_from_texts(config: Config, tmp_path: Path, form: str, field: str) -> None:
    cases = [*(MARKUP if form == "xml" else MARKUP | NOT_IN_XML).values()]
    topics = ""
    for number, (text, _) in enumerate(cases):
        texts = {"title": "t", "desc": "d", "narr": "n"} | {field: text}
        end = "\n" if form == "open" else "</{}>"
        inner = "".join(f"<{name}> {value}{end.format(name)}" for name, value in texts.items())
        topic = "topic" if form == "xml" else "top"
        topics += f"<{topic}><num>{number}</num>{inner}</{topic}>\n"
    found = topics_of(config, collection(tmp_path / "c", topics, qrels="1 0 D-1 1\n"))
    key = {"title": "title", "desc": "description", "narr": "narrative"}[field]
    assert [row["original_query"][key].split() for row in found] == [
        expected.split() for _, expected in cases
    ]
    for row in found:
        assert row["query"] == row["original_query"]["title"]
        assert set(row["original_query"]) == {"query_id", "title", "description", "narrative"}


def test_what_is_left_out_of_topics_is_shown(config: Config, tmp_path: Path) -> None:
    """A word of an unknown element is a remark; more can be a part of the text, or an answer, and is an error."""
    said: list[str] = []
    source = collection(tmp_path / "c", tops(QUERIES["1"], more="<judge> A17\n<!-- seen twice -->"))
    assert queries(config, source, said=said) == QUERIES
    assert any(line.endswith(": comment, judge") for line in said)
    other = project(tmp_path / "other", private=tmp_path / "others")
    source = collection(tmp_path / "c2", tops(QUERIES["1"], more="<judged> D-1 D-2\n"))
    problems = refused(other, source).problems
    assert [p.where for p in problems] == ["topics.txt:1", "topics.txt:10", "topics.txt:19"]
    source = collection(tmp_path / "c3", tops(QUERIES["1"]).replace("</top>", "</top>\nmore of the ferry"))
    assert {p.code for p in refused(other, source).problems} == {"E402"}


@pytest.mark.parametrize(
    ("topic", "place"),
    [
        ("<top>\n<num>1</num>\nSome stray line\n<desc> Description: long description </desc>\n</top>", "topics.txt:1"),
        ("<topics>\n<topic number='1'>Some stray line<description>d</description></topic></topics>", "topics.txt:2"),
        ("<topics>\n<topic number='1'><b>Some</b> stray line<title>d</title></topic></topics>", "topics.txt:2"),
    ],
)  # fmt: skip
def test_text_outside_of_fields_is_an_error(config: Config, tmp_path: Path, topic: str, place: str) -> None:
    source = collection(tmp_path / "c", topic, qrels="1 0 D-1 1\n")
    problems = refused(config, source).problems
    assert [(p.where, p.code) for p in problems] == [(place, "E402")]
    (text,) = queries(config, source, text_fields=["text"]).values()
    assert text.split() == ["Some", "stray", "line"]


def test_the_corpus_stays_the_corpus_if_its_column_is_named(config: Config, tmp_path: Path) -> None:
    """The option names the text of topics, and documents may have a column of that name."""
    for number, (documents, topics) in enumerate([("docno", "qid"), ("docno", "nummer"), ("id", "id")]):
        other = project(tmp_path / f"{number}", private=tmp_path / f"private-{number}")
        files = {
            "corpus.csv": f"{documents},text\n" + "".join(f"D-{n},words {n}\n" for n in range(1, 5)),
            "topics.csv": f"{topics},text\n" + elements('{id},"{text}"\n'),
            "qrels.txt": QRELS,
        }
        assert queries(other, write(tmp_path / f"c{number}", files), text_fields=["text"]) == QUERIES


def test_fields_whose_text_is_unknown_are_named_once(config: Config, tmp_path: Path) -> None:
    topics = elements('<topic number="{id}"><disease>{text}</disease><gene>BRAF</gene></topic>')
    source = collection(tmp_path / "c", f"<topics>{topics}</topics>")
    (problem,) = refused(config, source).problems
    assert "--topic-text" in problem.fix and "disease, gene" in problem.fix
    assert queries(config, source, text_fields=["disease", "gene"])["2"] == f"{QUERIES['2']} BRAF"


def test_a_named_field_that_no_topic_has(config: Config, tmp_path: Path) -> None:
    (problem,) = refused(config, collection(tmp_path / "c", tops("x")), text_fields=["claim"]).problems
    assert "claim" in problem.what and "description" in problem.fix


def test_quotation_marks_of_queries_stay(config: Config, tmp_path: Path) -> None:
    """As in MS MARCO, whose TSV knows no quoting, and as in queries for a phrase."""
    texts = {"1": 'what is "this", really', "2": '"to be" or not', "3": '"harbour ferry"'}
    said: list[str] = []
    topics = "".join(f"{n}\t{text}\n" for n, text in texts.items())
    assert queries(config, collection(tmp_path / "c", topics, "queries.tsv"), said=said) == texts
    kept = [message for message in said if message.startswith("queries.tsv: ")]
    other = project(tmp_path / "other", private=tmp_path / "others")
    topics = 'qid\tquery\n1\t"harbour ""ferry"""\n2\t"bread,\nflour"\n3\ttrams\n'
    found = queries(other, collection(tmp_path / "c2", topics, "queries.tsv"), said=said)
    assert found == {"1": 'harbour "ferry"', "2": "bread,\nflour", "3": "trams"}
    removed = [message for message in said if message.startswith("queries.tsv: ")]
    assert len(kept) == 1 and len(removed) == 2 and kept[0] != removed[1]


@pytest.mark.parametrize(
    ("lines", "texts"),
    [
        (['1\t"salt, pepper"', '2\t"open the doors', "3\tsome query", '4\tthe end"'],
         {"1": '"salt, pepper"', "2": '"open the doors', "3": "some query", "4": 'the end"'}),
        (['1\t"salt, pepper"', "2\tbread, flour"], {"1": '"salt, pepper"', "2": "bread, flour"}),
        (['1\t"salt, pepper"', *(f"{n}\tquery {n}" for n in range(2, 8001)), '8001\t"tool" definition'],
         {"1": '"salt, pepper"', "2": "query 2", "8001": '"tool" definition'}),
        (['1\t"salt ""and"" pepper"', "2\tbread, flour"], {"1": 'salt "and" pepper', "2": "bread, flour"}),
    ],
    ids=["rows in quotes", "a comma without quotes", "behind the head", "doubled"],
)  # fmt: skip
def test_no_row_is_lost_by_quotation_marks(
    config: Config, tmp_path: Path, lines: list[str], texts: dict[str, str]
) -> None:
    source = collection(tmp_path / "c", "\n".join(lines) + "\n", "queries.tsv", qrels="1 0 D-1 1\n")
    topics = queries(config, source)
    assert len(topics) == len(lines)
    assert {number: topics[number] for number in texts} == texts


def test_one_dataset_for_each_split(config: Config, tmp_path: Path) -> None:
    """As in BEIR: training and development judgments are public, those of the test are hidden, other topics left out."""
    splits = {"train": "1\tD-1\t2\n", "dev": "2\tD-2\t1\n", "test": "3\tD-3\t1\n3\tD-1\t0\n"}
    files = BEIR | {f"qrels/{name}.tsv": COLUMNS + text for name, text in splits.items()}
    files["queries.jsonl"] += '{"_id": "9", "text": "judged nowhere"}\n'
    said: list[str] = []
    source = write(tmp_path / "c", files)
    assert queries(config, source, said=said) == {"3": QUERIES["3"]}
    task = load_task(config, "mine")
    problems = [p for one in read_contents(task, config, lambda _: None) for p in one.problems]
    assert [*task_problems(task, config), *problems] == []
    assert config.private is not None
    hidden = config.private / "mine"
    assert [path.name for path in hidden.iterdir()] == ["test"]
    assert (hidden / "test/truths/qrels.txt").read_text() == "3 0 D-3 1\n3 0 D-1 0\n"
    datasets = config.tasks / "mine/datasets"
    assert {path.name for path in datasets.iterdir()} == {"train", "dev"}
    for name, topic in (("train", "1"), ("dev", "2")):
        assert [row["qid"] for row in rows(datasets / name / "inputs/queries.jsonl")] == [topic]
        assert (datasets / name / "truths/qrels.txt").read_text().split()[0] == topic
        with gzip.open(datasets / name / "inputs/documents.jsonl.gz") as documents:
            assert len(documents.readlines()) == 4
    assert [(one.id, one.visibility) for one in task.datasets.values() if one.visibility != "public"] == [
        ("test", "blinded")
    ]


@pytest.mark.parametrize(
    ("names", "blinded", "public"),
    [
        (("qrels/train.tsv", "qrels/test.tsv"), "test", {"train"}),
        (("qrels.training.txt", "qrels.txt"), "test", set()),
        (("qrels-train.txt", "test_qrels.txt"), "test", {"train"}),
        (("qrels-judged-by-dev-team.txt", "qrels-judged-by-nist.txt"), "test", set()),
        (("qrels-judged-by-dev-team.txt", "qrels-judged-by-test-team.txt"), "test", set()),
        (("dev-team/qrels.txt", "qrels.test.txt"), "test", set()),
        (("qrels.train.dev.txt", "qrels.test.txt"), "test", set()),
        (("test/qrels.train.txt", "qrels.test.txt"), "test", set()),
        (("train/qrels.txt", "validation/qrels.txt"), "dev", {"train"}),
        (("qrels.dev.small.tsv", "qrels.eval.tsv"), "test", {"dev"}),
        (("judged-a.txt", "judged-b.txt"), "test", set()),
        (("qrels/test.tsv",), "test", set()),
        (("qrels/train.tsv",), "test", set()),
    ],
)
def test_names_of_splits(
    config: Config, tmp_path: Path, names: tuple[str, ...], blinded: str, public: set[str]
) -> None:
    qrels = ["1 0 D-1 2\n", "2 0 D-2 1\n3 0 D-3 1\n"] if len(names) > 1 else [QRELS]
    source = write(tmp_path / "c", BEIR | dict(zip(names, qrels, strict=True)))
    new_task_from(config, "mine", str(source), say=lambda _: None)
    found = {one.id: one.visibility for one in load_task(config, "mine").datasets.values()}
    assert found == {blinded: "blinded"} | dict.fromkeys(public, "public")


@pytest.mark.parametrize(
    "qrels", ["qid,docno,relevance\n1,D-1,2\n", '"query-id";"corpus-id";"score"\n"1";"D-1";"2"\n']
)
def test_judgments_of_a_spreadsheet(config: Config, tmp_path: Path, qrels: str) -> None:
    queries(config, collection(tmp_path / "c", tops("x"), qrels=qrels))
    assert config.private is not None
    assert (config.private / "mine/test/truths/qrels.txt").read_text() == "1 0 D-1 2\n"


def test_judgments_in_five_columns_are_named(config: Config, tmp_path: Path) -> None:
    prels = "".join(f"{n} D-{n} 1 1 0.25\n" for n in (1, 2, 3))
    error = refused(config, collection(tmp_path / "c", tops("x"), qrels=prels))
    assert any(p.where == "qrels.txt" and "prels" in p.what for p in error.problems)


def test_repeated_judgments_are_shown_with_their_lines(config: Config, tmp_path: Path) -> None:
    said: list[str] = []
    queries(config, collection(tmp_path / "c", tops("x"), qrels=QRELS + "1 0 D-1 2\n"), said=said)
    assert any("qrels.txt:4" in line and "qrels.txt:1" in line for line in said)


@pytest.mark.parametrize("name", ["topics.txt", "qrels.txt"])
@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"PK\x03\x04\x14\0\0\0\x08\0", "zip"),
        (b"\xfd7zXZ\0\0\x04", "xz"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "LFS"),
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", "HTML"),
        (b"nummer,anfrage\n1,ferry\n2,bread\n", "CSV"),
    ],
)
def test_files_of_other_sorts(config: Config, tmp_path: Path, name: str, content: bytes, word: str) -> None:
    source = collection(tmp_path / "c", tops("x"))
    (source / name).write_bytes(content)
    error = refused(config, source)
    (problem,) = [p for p in error.problems if p.where == name]
    assert word in problem.what and problem.fix, told(error)
