"""Judging debates by people, from archived runs to labels in the truths: forms, keys, imports, agreement."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.annotation import exchange as labelfiles
from runner.annotation.assign import Item, assign
from runner.annotation.sheets import page, sheet_csv
from runner.model.errors import RunnerError
from schemas.debates import Debate, parse, transcript_digest
from schemas.debates import digest_of_lines as of_lines
from tests.runner.views.test_show_page import Read
from tests.worlds.commands import Answer, At
from tests.worlds.definitions import definition
from tests.worlds.records import World

NAMES = ("quantity", "quality", "relation", "manner")


def line(claim: str, *answers: str, team: str = "", arguments: Any = ()) -> dict[str, Any]:
    """A debate; ``team`` stands where software can name itself in the configuration."""
    turns = []
    for n, answer in enumerate(answers, 1):
        response = {"content": answer, "arguments": list(arguments)}
        system = {"utterance": answer, "response": response, "milliseconds": 1}
        turns.append({"utterance": f"{claim}, I say ({n}).", "systemResponse": system})
    topic = {"description": claim}
    return {"simulation": {"configuration": {"topic": topic, "system": {"class": team}}, "userTurns": turns}}


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World.make(tmp_path)
    folder = tmp_path / "tasks" / "toy"
    for dataset in ("dev", "test"):
        inputs, truths = folder / "datasets" / dataset / "inputs", folder / "datasets" / dataset / "truths"
        inputs.mkdir(parents=True)
        (truths / "labels").mkdir(parents=True)
        (inputs / "claims.jsonl").write_text(json.dumps({"id": dataset, "claim": "C"}) + "\n")
        (truths / "labels" / "labels.jsonl").touch()
    write_task(tmp_path)
    (tmp_path / "submissions").mkdir()
    return made


def write_task(root: Path, **changes: Any) -> None:
    data: dict[str, Any] = {
        "kind": "debate",
        "workflow": "upload",
        "output": "run.txt",
        "datasets": [{"id": "dev", "visibility": "public"}, {"id": "test", "visibility": "blinded"}],
        "measures": [{"id": "quality", "measure": "quality@human", "truths": "labels/labels.jsonl"}],
        "tables": [{"id": "main", "cells": [{"dataset": "test"}], "rank_by": "quality"}],
    }
    (root / "tasks" / "toy" / "task.yaml").write_text(json.dumps(definition(**data | changes)))


def run_of(world: World, team: str, lines: list[dict[str, Any]]) -> str:
    """A scored run with these debates; returns its id."""
    submission = world.register(team, "software")
    attempt = world.attempt(submission, output={"run.txt": "".join(json.dumps(one) + "\n" for one in lines)})
    world.evaluation(attempt, {"ndcg": {"1": 1.0}})
    return attempt.run_id


Cli = Callable[..., Answer]


@pytest.fixture
def cli(world: World) -> Cli:
    """Return a function that runs ``runner labels``."""
    return lambda *words: At(world.config.root, world).run("labels", *words)


@pytest.fixture
def load(cli: Cli) -> Callable[..., dict[str, Any]]:
    """Return a function that imports a file of labels, which must succeed; it returns the counts."""

    def load(path: Path, *more: str) -> dict[str, Any]:
        answer = cli("import", "toy", "--dataset", "test", str(path), *more, "--json")
        assert answer.failed is None and answer.exit_code == 0, answer.text
        counts: dict[str, Any] = json.loads(answer.out)
        return counts

    return load


@pytest.fixture
def refuse(cli: Cli) -> Callable[..., RunnerError]:
    """Return a function that imports a file of labels, which must fail; it returns the error."""
    return lambda path, *more: cli("import", "toy", "--dataset", "test", str(path), *more).error


Load, Refuse = Callable[..., dict[str, Any]], Callable[..., RunnerError]


def labels(world: World) -> list[dict[str, Any]]:
    path = world.config.root / "tasks/toy/datasets/test/truths/labels/labels.jsonl"
    return [json.loads(one) for one in path.read_text().splitlines()]


def imports(world: World) -> list[Mapping[str, Any]]:
    """Return what the log has of imports."""
    world.store.catch_up()
    return [event.data for event in world.store.log if event.type == "labels-imported"]


def exported(cli: Cli, out: Path, *more: str) -> dict[str, Any]:
    answer = cli("export", "toy", "--dataset", "test", "--out", str(out), "--json", *more)
    assert answer.failed is None, answer.text
    found: dict[str, Any] = json.loads(answer.out)
    return found


def three_runs(world: World) -> dict[str, list[dict[str, Any]]]:
    runs = {}
    for team in ("ants", "bees", "crabs"):
        answers = [(f"{team} {n}", f"{team} again {n}") for n in range(3)]
        lines = [line(f"claim {n}", *two, team=f"secret-{team}") for n, two in enumerate(answers)] + [{}]
        runs[run_of(world, team, lines)] = lines
    return runs


# --- out ----------------------------------------------------------------------------------------------------


def test_forms_name_nobody_and_show_everything(world: World, cli: Cli, tmp_path: Path) -> None:
    three_runs(world)
    many = [{"id": f"{n}.1", "text": f"argument {n}"} for n in range(12)] + [{"id": "x"}]
    run_of(world, "dogs", [line("claim", "answer", "", arguments=many)])
    told = exported(cli, tmp_path / "forms", "--annotators", "2", "--overlap", "0.5")
    assert (told["runs"], told["debates"], told["doubled"]) == (4, 10, 5)
    text = "".join(p.read_text() for p in (tmp_path / "forms").iterdir())
    # Nothing that says whose it is: no team, no software, no run, no digest, no configuration.
    for word in ("secret-", "software", ".test", "toy", transcript_digest([])):
        assert word not in text
    (shown,) = {one for one in re.findall("<ol>(.*?)</ol>", text, re.S) if "argument 11" in one}
    assert shown.count("<li>") == 13
    place = Path(told["key"])
    key = json.loads(place.read_text())
    assert place.is_relative_to(world.config.home) and place.stat().st_mode & 0o077 == 0
    assert len(key["items"]) == 10 and len(key["runs"]) == 4 and key["form"] == told["form"]


def test_the_same_seed_gives_the_same_forms(world: World, cli: Cli, tmp_path: Path) -> None:
    three_runs(world)
    first, second = exported(cli, tmp_path / "1"), exported(cli, tmp_path / "2")
    assert first["form"] == second["form"]
    assert (tmp_path / "1/a1.html").read_bytes() == (tmp_path / "2/a1.html").read_bytes()
    assert exported(cli, tmp_path / "3", "--seed", "2")["form"] != first["form"]
    assert cli("export", "toy", "--dataset", "test", "--out", str(tmp_path / "1")).error.code == "E101"


def test_the_same_debate_of_two_runs_is_judged_once(world: World, cli: Cli, tmp_path: Path) -> None:
    same = [line("claim", "answer"), line("claim", "answer"), line("other", "answer")]
    run_of(world, "ants", same)
    run_of(world, "bees", same[:1])
    assert exported(cli, tmp_path / "forms")["debates"] == 2


def test_a_count_of_one_is_singular(world: World, cli: Cli, tmp_path: Path) -> None:
    run_of(world, "ants", [line("claim", "answer")])
    said = cli(
        "export", "toy", "--dataset", "test", "--out", str(tmp_path / "forms"), "--annotators", "1"
    ).text
    assert re.findall(r"\b1 (debates?|runs?|annotators?)\b", said) == ["debate", "run", "annotator"]


def test_nothing_to_judge(world: World, cli: Cli, tmp_path: Path) -> None:
    call = ("export", "toy", "--dataset", "test", "--out", str(tmp_path / "x"))
    assert cli(*call).error.code == "E102"
    run_of(world, "ants", [{}, line("c", "")])
    assert cli(*call).error.code == "E102"
    write_task(world.config.root, kind="adhoc")
    assert cli(*call).error.code == "E101"


def item(run: int, number: int) -> Item:
    debate, _ = parse(line("c", f"{run} {number}"))
    assert debate is not None
    return Item(f"d-{run}-{number}", str(run), f"{run}-{number}", number, debate)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=6),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.2, 1.0]),
    st.none() | st.integers(1, 20),
    st.integers(0, 3),
)
def test_assignments(sizes: list[int], people: int, overlap: float, most: int | None, seed: int) -> None:
    by_run = [[item(r, n) for n in range(size)] for r, size in enumerate(sizes)]
    lists = assign(by_run, people, overlap=overlap, per_annotator=most, seed=seed)
    given_ = Counter(i.id for mine in lists.values() for i in mine)
    assert all(
        len({i.id for i in mine}) == len(mine) for mine in lists.values()
    )  # nobody gets a debate twice
    assert max(given_.values(), default=1) <= (2 if people > 1 else 1)
    if most is None:
        assert len(given_) == sum(sizes)
        if people > 1:
            assert sum(n == 2 for n in given_.values()) == round(overlap * sum(sizes))
    else:
        assert all(len(mine) <= most for mine in lists.values())


def test_every_annotator_sees_every_run_and_every_pair_overlaps() -> None:
    lists = assign([[item(r, n) for n in range(20)] for r in range(8)], 4, overlap=0.2, seed=5)
    assert [len(mine) for mine in lists.values()] == [48] * 4  # 160 debates, 32 of them twice
    for mine in lists.values():
        counts = Counter(i.run for i in mine)
        assert set(counts) == {str(r) for r in range(8)} and max(counts.values()) - min(counts.values()) <= 4
    owners: dict[str, set[str]] = {}
    for name, mine in lists.items():
        for one in mine:
            owners.setdefault(one.id, set()).add(name)
    pairs = Counter(frozenset(o) for o in owners.values() if len(o) == 2)
    assert len(pairs) == 6 and min(pairs.values()) >= 3


# --- the page -----------------------------------------------------------------------------------------------


EVIL = '</p><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m" onclick="x'


def hostile() -> Item:
    debate, _ = parse(line(EVIL, EVIL, "=1+1", arguments=[{"id": EVIL, "text": EVIL}]))
    assert debate is not None
    return Item("d-1", "r", "t", 1, debate)


def test_a_page_runs_no_script_but_its_own() -> None:
    text = page("form", "a1", [hostile()])
    read = Read(text)
    (script,) = re.findall("<script>(.*?)</script>", text, re.S)
    assert "img" not in read.tags and "\x1b" not in text
    assert not any(
        name.startswith("on") or (value or "").startswith("javascript:") for name, value in read.attributes
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(value for _, value in read.attributes if value and value.startswith("default-src 'none'"))
    assert f"script-src 'sha256-{digest}'" in policy and "http" not in text.replace("<meta http-equiv", "")
    assert text.count("<fieldset") == 8 and text.count("<input") == 24


def test_a_sheet_holds_no_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(sheet_csv("form", "a1", [hostile()]), newline="")))
    assert [row["answer"] for row in rows][1] == "'=1+1" and "\x1b" not in rows[0]["answer"]


def test_no_cell_is_longer_than_spreadsheets_take() -> None:
    """Ten thousand arguments, and characters that become longer when they are escaped: the sheet can be read again."""
    arguments = [{"id": "1.1", "text": "\x1b" * 40} for _ in range(10_000)]
    debate, _ = parse(line("claim", "=" + "a" * 200_000, "short", arguments=arguments))
    assert debate is not None
    text = sheet_csv("form", "a1", [Item("d-1", "r", "t", 1, debate)])
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    cells = [cell for row in rows for cell in row.values()]
    assert max(map(len, cells)) < 32_767 and not [cell for cell in cells if cell.startswith("=")]
    assert "200,001" in rows[0]["answer"][-100:] and rows[1]["answer"] == "short"


# --- back ---------------------------------------------------------------------------------------------------


def answered(out: Path, told: dict[str, Any], name: str, **values: int | None) -> Path:
    """What the page of ``name`` would save when everything is answered alike."""
    rows = [json.loads(one) for one in (out / f"{name}.jsonl").read_text().splitlines()]
    answers = [{"item": r["item"], "turn": r["turn"], **values} for r in rows]
    path = out / f"answers-{name}.json"
    saved = {"schema_version": 1, "form": told["form"], "annotator": name, "answers": answers}
    path.write_text(json.dumps(saved))
    return path


def test_answers_become_labels(world: World, cli: Cli, load: Load, tmp_path: Path) -> None:
    runs = three_runs(world)
    out = tmp_path / "forms"
    told = exported(cli, out, "--annotators", "2", "--overlap", "1")
    first = answered(out, told, "a1", quality=1, manner=1)
    result = load(first, str(answered(out, told, "a2", quality=0, manner=None)))
    assert result["new"] == 2 * 3 * 3 * 2 and result["replaced"] == 0
    assert result["agreement"]["quality"]["doubled"] == 18 and result["agreement"]["quality"]["alpha"] < 0
    found = labels(world)
    assert {row["run"] for row in found} == {of_lines(lines) for lines in runs.values()}
    one = next(r for r in found if r["annotator"] == "a2")
    assert one["quality"] == 0 and one["manner"] is None and "quantity" not in one
    digests = {of_lines([one]) for lines in runs.values() for one in lines if one}
    assert {row["transcript"] for row in found} == digests
    again = load(answered(out, told, "a1", quality=0))  # with another mind
    assert (again["new"], again["replaced"], again["labels"]) == (0, 18, 36)
    shown = cli("agreement", "toy", "--dataset", "test").out
    assert "a1, a2" in shown and "quality" in shown
    # What people did is in the log, with the file as it was then; the store can be made again from that.
    notes = imports(world)
    same = {"task": "toy", "dataset": "test", "file": "labels/labels.jsonl"}
    assert [n["count"] for n in notes] == [36, 18] and all(n.items() >= same.items() for n in notes)
    path = world.config.root / "tasks/toy/datasets/test/truths/labels/labels.jsonl"
    assert notes[1]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest() != notes[0]["sha256"]
    assert world.store.replay() == world.store.log.end()


def test_a_filled_sheet_is_as_good(world: World, cli: Cli, load: Load, tmp_path: Path) -> None:
    three_runs(world)
    exported(cli, tmp_path / "f", "--annotators", "1")
    for delimiter in (",", ";"):
        rows = list(csv.DictReader((tmp_path / "f/a1.csv").open(newline="")))
        rows[0] |= {"quality": "Yes", "manner": "?", "comment": "fine"}
        rows[1] |= {"quality": "0"}
        path = tmp_path / "filled.csv"
        with path.open("w", newline="", encoding="utf-8-sig") as file:
            writer = csv.DictWriter(file, rows[0], delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)
        load(path)
        found = labels(world)
        assert len(found) == 2 and sorted(row["quality"] for row in found) == [0, 1]
        assert next(row for row in found if row["quality"] == 1)["comment"] == "fine"


def test_all_mistakes_in_answers_are_reported_and_nothing_is_written(
    world: World, cli: Cli, refuse: Refuse, tmp_path: Path
) -> None:
    three_runs(world)
    told = exported(cli, tmp_path / "f")
    row = json.loads((tmp_path / "f/a1.jsonl").read_text().splitlines()[0])
    good = {"item": row["item"], "turn": 1, "quality": 1}
    bad = [good | {"item": "d-nothing"}, good | {"turn": 9}, good | {"quality": 7}]
    path = tmp_path / "x.json"

    def refused(answers: list[Any], annotator: str = "a1", form: str = told["form"]) -> list[str]:
        path.write_text(json.dumps({"form": form, "annotator": annotator, "answers": answers}))
        error = refuse(path)
        return [str(p) for p in error.problems] or [error.code]

    assert len(refused([*bad, good, 3])) == 1  # an entry that is not an object
    found = refused([*bad, good])
    assert len(found) == 3 and "d-nothing" in found[0] and " 9" in found[1] and "quality" in found[2]
    assert "annotator" in refused([good], annotator="\x1b[31m evil")[0]
    assert refused([good], form="0" * 12) == ["E102"] == refused([good], form="../../x")
    path.write_text("{")
    assert refuse(path).code == "E402"
    assert labels(world) == [] and imports(world) == []


def test_official_label_files_by_run_and_by_debates(
    world: World, load: Load, refuse: Refuse, tmp_path: Path
) -> None:
    lines = [line("c", "a", "b"), line("d", "e")]
    run = run_of(world, "ants", lines)
    path = tmp_path / "x-labels.jsonl"
    path.write_text(
        '[{"quantity": 1, "quality": true, "relation": "0", "manner": null}, null]\r\n\n[{"quality": 0.0}]'
    )
    assert refuse(path).code == "E101"
    load(path, "--run", run, "--annotator", "judge-1")
    by_run = labels(world)
    assert [{k: r[k] for k in NAMES if k in r} for r in by_run] == [
        {"quantity": 1, "quality": 1, "relation": 0, "manner": None},
        {"quality": 0},
    ]
    assert {r["run"] for r in by_run} == {of_lines(lines)} and {r["annotator"] for r in by_run} == {"judge-1"}
    # The annotation file's own form of the same debates: the transcripts are the same.
    other = [
        {"id": "x", "claim": one["simulation"]["configuration"]["topic"]["description"],
         "simulated_debate": [m for t in one["simulation"]["userTurns"] for m in (
             {"role": "user", "content": t["utterance"]}, {"role": "assistant", "content": t["systemResponse"]["utterance"], "arguments": []})]}
        for one in lines
    ]  # fmt: skip
    debates = tmp_path / "debates.jsonl"
    debates.write_text("".join(json.dumps(one) + "\n" for one in other))
    load(path, "--debates", str(debates), "--annotator", "judge-2")
    assert {r["transcript"] for r in labels(world)} == {r["transcript"] for r in by_run}
    assert len(labels(world)) == 4


def test_label_files_that_do_not_fit(world: World, refuse: Refuse, tmp_path: Path) -> None:
    run = run_of(world, "ants", [line("c", "a", "b"), line("d", "e")])
    path = tmp_path / "x-labels.jsonl"
    path.write_text('[{"quality": 2}, 5]\n{}\n[{}]\n')
    problems = refuse(path, "--run", run).problems
    assert [one.where.rpartition(":")[2] for one in problems[:3]] == ["1", "1", "2"] and len(problems) == 4
    values = ("quality", " 2 ", "", " 3 ")  # the criterion, the turn, the number of debates
    assert all(value in str(one) for value, one in zip(values, problems, strict=True)), problems
    assert labels(world) == []


def test_scores_of_judges_are_kept_by_transcript(
    world: World, load: Load, refuse: Refuse, tmp_path: Path
) -> None:
    lines = [line("c", "a", "b")]
    run = run_of(world, "ants", lines)
    turns = [
        {"Quantity": {"score": 0.7, "explanation": "x"}, "Manner": {"score": None}, "milliseconds": 3},
        {"Quality": {"score": 1}},
    ]
    path = tmp_path / "evaluations.jsonl"
    path.write_text(json.dumps({**lines[0], "userTurnsEvaluations": turns, "overallEvaluations": {}}) + "\n")
    assert refuse(path).code == "E101"
    assert refuse(path, "--judge", "../x").code == "E208"
    load(path, "--judge", "one")
    target = world.config.root / "tasks/toy/datasets/test/truths/judgments/one.jsonl"
    same = {"transcript": of_lines(lines), "judge": "one"}
    expected = [same | {"turn": 1, "quantity": 0.7}, same | {"turn": 2, "quality": 1}]
    assert [json.loads(one) for one in target.read_text().splitlines()] == expected
    (noted,) = imports(world)
    assert (noted["file"], noted["count"]) == ("judgments/one.jsonl", 2)
    path.write_text(json.dumps({"userTurnsEvaluations": turns}) + "\n")
    load(path, "--judge", "two", "--run", run[:6])  # the beginning of its id
    run_of(world, "antlers", lines)
    several, missing = (refuse(path, "--judge", "two", "--run", name) for name in ("ant", "bees"))
    assert several.code == missing.code == "E102" and run in several.why and "bees" in missing.what
    assert len(target.with_name("two.jsonl").read_text().splitlines()) == 2
    path.write_text(json.dumps({**lines[0], "userTurnsEvaluations": [{"Quality": {"score": 7}}, {}]}) + "\n")
    assert refuse(path, "--judge", "three").code == "E402"


def test_debates_to_be_judged_are_judged_by_people_too(
    world: World, cli: Cli, load: Load, refuse: Refuse, tmp_path: Path
) -> None:
    """A task of the kind meta: its inputs are the debates."""
    measures = [{"id": "quality", "measure": "f1@quality", "truths": "debates-labels.jsonl"}]
    write_task(world.config.root, kind="meta", options={"form": "judgments"}, measures=measures)
    lines = [line("c", "a"), line("d", "b")]
    inputs = world.config.root / "tasks/toy/datasets/test/inputs"
    (inputs / "debates.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    told = exported(cli, tmp_path / "f", "--annotators", "1")
    load(answered(tmp_path / "f", told, "a1", quality=1))
    truths = inputs.parent / "truths" / "debates-labels.jsonl"  # the one that the measures name
    found = [json.loads(one) for one in truths.read_text().splitlines()]
    assert {(r["run"], r["debate"]) for r in found} == {(of_lines(lines), 1), (of_lines(lines), 2)}
    truths.write_text('[{"quality": 1}]\n[{"quality": 1}]\n')
    error = refuse(tmp_path / "f/answers-a1.json")
    assert error.code == "E402" and truths.name in error.what and truths.read_text().count("quality") == 2


def test_half_a_surrogate_pair_in_a_comment_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    labelfiles.write_rows(path, [{"comment": "é \ud800"}])
    assert path.read_text("utf-8") == '{"comment": "é \\ud800"}\n'
    assert json.loads(path.read_bytes()) == {"comment": "é \ud800"}


def test_failed_debates_have_no_turns() -> None:
    assert parse({})[0] == Debate("", "", ())
