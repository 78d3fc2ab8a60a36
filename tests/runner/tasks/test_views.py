"""What a scenario sees: the rules, the files whose fields are taken out, and what is said of them."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.formats.topics import read_topics
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.task import Rule, Scenario, Task
from runner.tasks import compose, views
from runner.tasks import load as tasks
from runner.tasks.check_data import task_problems
from runner.tasks.data_files import files_digest, folder_files
from runner.tasks.files import inputs_digest, part, topics_of, view_addresses, view_files, view_sights
from runner.tasks.views import Shown, topic_texts
from tests.worlds.definitions import project, told, write_task

CORPUS = [
    {"id": 1, "text": "ä \u2028 x", "secret": {"gender": "f"}, "more": [1.5, None, True]},
    {"text": "second", "id": 20190000001, "secret": "hidden-value"},
    {"id": 3},
]
RULES: list[dict[str, Any]] = [
    {"files": "documents.jsonl", "fields": ["id", "text"]},
    {"files": ["topics/*.jsonl", "notes.txt"]},
]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return project(tmp_path / "root")


def corpus(rows: list[Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def with_view(config: Config, rules: list[dict[str, Any]] = RULES, **changes: Any) -> Task:
    """The toy task with a scenario that sees a part of the data, and one that sees everything."""
    folder = write_task(config, scenarios=[{"id": "part", "view": rules}, {"id": "all"}],
                        tables=[{"id": "main", "cells": [{"dataset": "test", "scenario": "part"}], "rank_by": "ap"}],
                        **changes)  # fmt: skip
    for dataset in ("dev", "test"):
        inputs = folder / "datasets" / dataset / "inputs"
        (inputs / "topics").mkdir()
        (inputs / "topics/a.jsonl").write_text('{"qid": 1}\n')
        (inputs / "notes.txt").write_text("not JSON\n")
        (inputs / "documents.jsonl").write_text(corpus(CORPUS))
    return tasks.load_task(config, "toy")


def names(files: list[tuple[PurePosixPath, Path]]) -> list[str]:
    return [str(name) for name, _ in files]


def test_only_what_a_rule_names_is_seen_and_only_its_fields(config: Config) -> None:
    task = with_view(config)
    dataset = task.datasets["test"]
    files = view_files(dataset, task.scenarios["part"])
    assert names(files) == ["documents.jsonl", "notes.txt", "topics/a.jsonl"]
    seen = dict(zip(names(files), (path for _, path in files), strict=True))
    lines = [json.loads(line) for line in seen["documents.jsonl"].read_text("utf-8").split("\n") if line]
    assert lines == [{k: v for k, v in row.items() if k in ("id", "text")} for row in CORPUS]
    assert [list(line) for line in lines] == [["id", "text"], ["text", "id"], ["id"]]
    assert seen["documents.jsonl"].is_relative_to(config.home / "views")
    assert seen["notes.txt"] == dataset.inputs / "notes.txt"
    assert names(view_files(dataset, task.scenarios["all"])) == names(view_files(dataset))
    assert "queries.jsonl" in names(view_files(dataset))
    assert task_problems(task, config) == []


def test_the_first_rule_that_fits_decides_and_a_rule_may_be_for_some_datasets() -> None:
    files = [(PurePosixPath(n), Path(n)) for n in ("a.jsonl", "b.jsonl", "sub/a.jsonl")]
    rules = [
        Rule(("a.jsonl",), ("x",), ("dev",)),
        Rule(("*.jsonl",), ("y",)),
        Rule(("**",), datasets=("test",)),
    ]

    def found(dataset: str) -> dict[str, Any]:
        return {str(s.name): s.fields for s in views.seen(dataset, files, rules)}

    assert found("dev") == {"a.jsonl": ("x",), "b.jsonl": ("y",)}
    assert found("test") == {"a.jsonl": ("y",), "b.jsonl": ("y",), "sub/a.jsonl": None}


def test_files_are_made_once_read_only_and_shared_between_datasets(config: Config) -> None:
    task = with_view(config)
    first = dict(view_files(task.datasets["dev"], task.scenarios["part"]))[PurePosixPath("documents.jsonl")]
    inode = first.stat().st_ino
    again = dict(view_files(task.datasets["test"], task.scenarios["part"]))[PurePosixPath("documents.jsonl")]
    assert (again, again.stat().st_ino) == (first, inode)
    assert first.stat().st_mode & 0o777 == 0o444 and first.parent.stat().st_mode & 0o777 == 0o555
    assert [p.name for p in (config.home / "views").iterdir() if not p.name.startswith(".")] == [
        first.parent.name
    ]


def test_the_digest_says_what_is_seen(config: Config) -> None:
    task = with_view(config)
    dataset, part = task.datasets["test"], task.scenarios["part"]
    before = inputs_digest(dataset, part)
    assert not (config.home / "views").exists(), "a digest writes nothing"
    assert before != inputs_digest(dataset)
    assert inputs_digest(dataset) == files_digest(folder_files(dataset.inputs))
    (dataset.inputs / "queries.jsonl").write_text("not seen, so it changes nothing")
    assert inputs_digest(dataset, part) == before
    wider = Scenario("part", view=(Rule(("documents.jsonl",), ("id", "text", "more")), *part.view[1:]))
    assert inputs_digest(dataset, wider) != before
    same = Scenario("part", view=(Rule(("documents.jsonl",), ("text", "id")), *part.view[1:]))
    assert inputs_digest(dataset, same) == before
    (dataset.inputs / "documents.jsonl").write_text(corpus(CORPUS[:1]))
    assert inputs_digest(dataset, part) != before


def test_compressed_files_stay_compressed_and_give_the_same_bytes(tmp_path: Path) -> None:
    packed = tmp_path / "d.jsonl.gz"
    packed.write_bytes(gzip.compress(corpus(CORPUS).encode()))
    shown = Shown(PurePosixPath("d.jsonl.gz"), packed, ("id",))
    one, two = (dict(views.materialise([shown], tmp_path / home))[shown.name] for home in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert gzip.decompress(one.read_bytes()).decode().splitlines() == [
        '{"id": 1}',
        '{"id": 20190000001}',
        '{"id": 3}',
    ]


@pytest.mark.parametrize(
    ("content", "line", "why"),
    [
        (b'{"id": 1}\n[1]\n', 2, "another value"),
        (b'{"id": 1}\n\n{"id": 1\n', 3, "delimiter"),
        (b'{"id": 1, "id": 2}\n', 1, "twice"),
        (b'{"id": 1, "secret": {"a": 1, "a": 2}}\n', 1, "twice"),
        (b'{"id": NaN}\n', 1, "NaN"),
        (b'{"id": "\xff"}\n', 1, "UTF-8"),
        (b'\xef\xbb\xbf{"id": 1}\n', 1, ""),
        (b'{"id": ' + b"[" * 100_000 + b"\n", 1, "nested"),
        (b'{"id": ' + b"9" * 5000 + b"}\n", 1, "number"),
    ],
)
def test_bad_lines_are_refused_with_place(tmp_path: Path, content: bytes, line: int, why: str) -> None:
    (tmp_path / "d.jsonl").write_bytes(content)
    with pytest.raises(RunnerError) as caught:
        views.materialise([Shown(PurePosixPath("d.jsonl"), tmp_path / "d.jsonl", ("id",))], tmp_path / "home")
    assert caught.value.code == "E402"
    assert f"d.jsonl:{line} " in caught.value.what and why in caught.value.why
    assert not [p for p in (tmp_path / "home").iterdir() if p.name != ".locks"], "nothing half-made stays"


@pytest.mark.parametrize(
    "spoil", [lambda b: b[:-5], lambda b: b[:20] + b"\0\0\0\0" + b[24:], lambda _: b"no gzip"]
)
def test_damaged_archives_are_refused(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    (tmp_path / "d.jsonl.gz").write_bytes(spoil(gzip.compress(corpus(CORPUS * 50).encode())))
    with pytest.raises(RunnerError) as caught:
        views.materialise(
            [Shown(PurePosixPath("d.jsonl.gz"), tmp_path / "d.jsonl.gz", ("id",))], tmp_path / "home"
        )
    assert caught.value.code == "E402" and "d.jsonl.gz:" in caught.value.what


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(
    rows=st.lists(
        st.dictionaries(st.sampled_from(["a", "b", "c", "ä", ""]), json_values, max_size=5), max_size=5
    ),
    fields=st.sets(st.sampled_from(["a", "b", "ä", ""]), min_size=1),
)
def test_exactly_the_named_keys_stay(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], fields: set[str]
) -> None:
    folder = tmp_path_factory.mktemp("view")
    (folder / "d.jsonl").write_bytes(corpus(rows).encode())
    [(_, path)] = views.materialise(
        [Shown(PurePosixPath("d.jsonl"), folder / "d.jsonl", tuple(sorted(fields)))], folder / "home"
    )
    found = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
    assert found == [{k: v for k, v in row.items() if k in fields} for row in rows]


def test_many_at_once_make_one(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text(corpus(CORPUS * 500))
    shown = Shown(PurePosixPath("d.jsonl"), tmp_path / "d.jsonl", ("id",))
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda _: views.materialise([shown], tmp_path / "home")[0][1], range(8))]
    assert len(found) == 8 and len(set(found)) == 1
    assert len(found[0].read_text().splitlines()) == 1500
    assert sorted(p.name for p in (tmp_path / "home").iterdir()) == sorted([".locks", found[0].parent.name])


def test_two_names_of_one_content(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(corpus(CORPUS))
    shown = [Shown(PurePosixPath(n), tmp_path / n, ("id",)) for n in ("a.jsonl", "b.jsonl")]
    files = views.materialise(shown, tmp_path / "home")
    assert [path.name for _, path in files] == ["a.jsonl", "b.jsonl"]
    assert files[0][1].read_bytes() == files[1][1].read_bytes()


def test_sweeping_leaves_what_is_needed(config: Config) -> None:
    task = with_view(config)
    dataset, part = task.datasets["test"], task.scenarios["part"]
    view_files(dataset, part)
    keep = view_addresses(dataset, part)
    (dataset.inputs / "documents.jsonl").write_text(corpus(CORPUS[:1]))
    view_files(dataset, part)
    home = config.home / "views"
    assert views.sweep(home, view_addresses(dataset, part), dry_run=True) == sorted(keep)
    assert views.sweep(home, view_addresses(dataset, part)) == sorted(keep)
    assert {p.name for p in home.iterdir() if p.name != ".locks"} == view_addresses(dataset, part)


def test_the_report_is_read_from_what_is_mounted(config: Config) -> None:
    task = with_view(config)
    sights = {(s.scenario, s.dataset): s for s in view_sights(task)}
    assert set(sights) == {(s, d) for s in ("part", "all") for d in ("dev", "test")}
    part = sights["part", "test"]
    assert part.files == {
        "documents.jsonl": (["id", "text"], ["secret", "more"]),
        "notes.txt": None,
        "topics/a.jsonl": (["qid"], []),
    }
    assert part.unseen == ("queries.jsonl",)
    assert sights["all", "dev"].unseen == ()
    assert json.loads(json.dumps(part.as_dict()))["files"]["documents.jsonl"]["hidden"] == ["secret", "more"]


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ({"id": "s", "files": ["*"], "view": [{"files": "*"}]}, "`view`"),
        ({"id": "s", "view": []}, '"view"'),
        ({"id": "s", "view": [{"fields": ["x"]}]}, '"files"'),
        ({"id": "s", "view": [{"files": "*", "fields": []}]}, '"fields"'),
        ({"id": "s", "view": [{"files": "/etc/*"}]}, "/etc/*"),
        ({"id": "s", "view": [{"files": "*", "datasets": ["tset"]}]}, '"test"'),
    ],
)
def test_wrong_views_are_refused(config: Config, scenario: dict[str, Any], expected: str) -> None:
    write_task(config, scenarios=[{"id": "default"}, scenario])
    with pytest.raises(RunnerError) as caught:
        tasks.load_task(config, "toy")
    assert caught.value.code == "E401" and expected in told(caught.value)


def test_what_fits_nowhere_or_cannot_be_cut_is_a_problem_of_the_task(config: Config) -> None:
    task = with_view(config, [{"files": "none.*"}, {"files": "notes.txt", "fields": ["x"]}])
    text = "\n".join(str(p) for p in task_problems(task, config))
    assert '"none.*"' in text and '"dev"' in text and "notes.txt:1 " in text


def test_a_file_that_only_some_datasets_have_may_be_named(config: Config) -> None:
    task = with_view(config, [{"files": "*.jsonl"}, {"files": "only-here.txt"}])
    (task.datasets["dev"].inputs / "only-here.txt").write_text("x")
    assert task_problems(task, config) == []


def test_truths_that_are_shared_on_purpose(config: Config) -> None:
    task = with_view(config, shared=["documents.jsonl"])
    for dataset in task.datasets.values():
        (dataset.truths / "documents.jsonl").write_text(corpus(CORPUS))
    assert task_problems(task, config) == []
    (task.datasets["dev"].inputs / "copied.txt").write_bytes(
        (task.datasets["test"].truths / "qrels.txt").read_bytes()
    )
    (problem,) = task_problems(task, config)
    assert problem.code == "E403" and '"test"' in problem.what and '"dev"' in problem.what


def test_compose_mounts_what_hides_no_field(config: Config) -> None:
    task = with_view(config)
    text = compose.render(task)
    assert '"all"' in text and "target: /tira-data/input" in text
    (config.tasks / "toy/task.yaml").write_text(
        (config.tasks / "toy/task.yaml").read_text().replace('{\n   "id": "all"\n  }', '{"id": "all", "view": [{"files": "documents.jsonl", "fields": ["id"]}]}')
    )  # fmt: skip
    hiding = compose.render(tasks.load_task(config, "toy"))
    assert "documents.jsonl" not in hiding.split("services:")[1].split("evaluator:")[0]
    assert '"all"' not in hiding


def test_a_place_that_cannot_be_written_is_the_platforms_fault(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text("{}\n")
    (tmp_path / "home").write_text("a file")
    with pytest.raises(RunnerError) as caught:
        views.materialise([Shown(PurePosixPath("d.jsonl"), tmp_path / "d.jsonl", ("id",))], tmp_path / "home")
    assert caught.value.code == "E306" and os.linesep not in caught.value.what


# --- a part of the topics -------------------------------------------------------------------------------------------

SIX = [json.dumps({"qid": str(n), "query": f"words of {n}", "more": n}) for n in range(6)]
ELEMENTS = "".join(f"<topic number='{n}'>\n<title>words {n}</title>\n</topic>\n" for n in range(6))
XML_HEAD = "<?xml version='1.0'?>\n<topics>\n"
TREC = "".join(f"<top>\n<num> Number: {n}\n<title> words {n}\n</top>\n\n" for n in range(6))


def part_of(config: Config, name: str, content: bytes, count: int, **scenario: Any) -> tuple[Task, list[Any]]:
    """The toy task with these topics, and the parts of that many of them of its dataset test, by scenario."""
    dataset = {"id": "test", "visibility": "public", "topics": name}
    scenarios = [{"id": "all"}, {"id": "part", **scenario}] if scenario else [{"id": "all"}]
    cells = [{"dataset": "test", "scenario": "all"}]
    tables = [{"id": "main", "cells": cells, "rank_by": "ap"}]
    folder = write_task(config, datasets=[dataset], scenarios=scenarios, tables=tables)
    (folder / "datasets/test/inputs" / name).write_bytes(content)
    task = tasks.load_task(config, "toy")
    found = [part(task.datasets["test"], one, count) for one in task.scenarios.values()]
    return task, [found, task.scenarios]


def shown(dataset: Any, scenario: Any, name: str) -> bytes:
    data = dict(view_files(dataset, scenario))[PurePosixPath(name)].read_bytes()
    return gzip.decompress(data) if name.endswith(".gz") else data


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("name", ["topics.jsonl", "topics.jsonl.gz"])
def test_a_part_has_the_same_topics_in_any_order_and_scenario(config: Config, name: str, order: int) -> None:
    text = "\n".join([*SIX[::order], ""]).replace("\n", "\n\n", 1).encode()
    content = gzip.compress(text) if name.endswith(".gz") else text
    task, ((whole, few), scenarios) = part_of(
        config, name, content, 2, view=[{"files": name, "fields": ["qid"]}]
    )
    lines = [line for line in shown(whole, scenarios["all"], name).decode().splitlines() if line]
    ids = [json.loads(line)["qid"] for line in lines]
    assert sorted(ids) == CHOSEN and topics_of(whole, scenarios["all"]) == ids
    assert set(lines) < set(SIX)
    cut = [json.loads(line) for line in shown(few, scenarios["part"], name).decode().splitlines() if line]
    assert cut == [{"qid": one} for one in ids]
    # Everything else of the dataset is as it was, and each part has a digest of its own.
    assert [n for n, _ in view_files(whole)] == [n for n, _ in view_files(task.datasets["test"])]
    seen = {
        inputs_digest(one, scenarios[of]) for of in ("all", "part") for one in (task.datasets["test"], whole)
    }
    assert len(seen) == 4
    assert part(task.datasets["test"], scenarios["all"], 6) is None, "there are no more"


CHOSEN = sorted(
    str(n) for n in sorted(range(6), key=lambda n: hashlib.sha256(SIX[n].encode()).hexdigest())[:2]
)


@pytest.mark.parametrize(
    ("name", "text", "head"),
    [
        ("topics.xml", f"{XML_HEAD}{ELEMENTS}</topics>\n", XML_HEAD),
        ("topics.txt", TREC, ""),
        ("topics.tsv", "".join(f"{n}\twords {n}\n" for n in range(6)), ""),
    ],
)
def test_parts_of_topics_in_other_forms(config: Config, name: str, text: str, head: str) -> None:
    _, ((few,), scenarios) = part_of(config, name, text.encode(), 2)
    data = shown(few, scenarios["all"], name).decode()
    assert data.startswith(head) and data != text
    path = dict(view_files(few, scenarios["all"]))[PurePosixPath(name)]
    ids = [topic.decode() for topic in read_topics(path, name)]
    assert topics_of(few, scenarios["all"]) == ids
    assert len(ids) == 2 and all(f"words {one}" in data for one in ids)
    assert data.count("words") == 2
    if name.endswith(".xml"):
        assert len(ElementTree.fromstring(data)) == 2


def test_first_cases_that_a_scenario_cannot_have_fail_the_check(config: Config) -> None:
    changes = {"datasets": [
        {"id": "dev", "visibility": "public", "topics": "queries.jsonl"},
        {"id": "test", "visibility": "blinded", "topics": "queries.jsonl", "scores": "public", "smoke": 1},
    ]}  # fmt: skip
    task = with_view(config, **changes)
    (problem,) = task_problems(task, config)
    assert problem.code == "E402" and "queries.jsonl" in problem.what


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"id": "q1", "query": "who  flies", "narrative": "…"}\n{"id": "q2", "title": "why"}\n', "who flies"),
        ("q1\twho flies\nq2\twhy\n", "who flies"),
        ("<topics><topic number='q1'><title>who flies</title><desc>long</desc></topic></topics>", "who flies"),
        ("<top>\n<num> Number: q1\n<title> who flies\n<desc> Description:\nlong\n</top>\n", "who flies"),
        ('{"id": "q1", "number": 3}\n', ""),
    ],
)  # fmt: skip
def test_what_a_topic_says_is_its_first_text(tmp_path: Path, text: str, wanted: str) -> None:
    (tmp_path / "topics").write_text(text)
    assert topic_texts(tmp_path / "topics")["q1"] == wanted
