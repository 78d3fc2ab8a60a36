"""Files that options name (``x-file``): read with the task, checked with their lines, and shown to those who take part."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.pins import Pins, changes, of_task
from runner.tasks.check_contents import read_contents
from runner.tasks.load import load_task
from runner.views.overview.facts import overview
from runner.views.overview.screen import printed
from tests.worlds.definitions import project

PENGUINS = Path(__file__).parents[3] / "tasks/penguins"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    made = project(tmp_path / "project")
    shutil.copytree(PENGUINS, made.tasks / "penguins")
    return made


def changed(config: Config, change: Callable[[dict[str, Any]], None]) -> None:
    path = config.tasks / "penguins/task.yaml"
    data = yaml.safe_load(path.read_text())
    change(data)
    path.write_text(yaml.safe_dump(data))


def write(config: Config, name: str, text: str) -> None:
    (config.tasks / "penguins" / name).write_text(text)


def test_the_evaluator_is_given_what_is_in_the_file(config: Config) -> None:
    task = load_task(config, "penguins")
    output = task.options["outputs"][0]
    assert output["schema"]["properties"]["species"]["enum"] == ["Adelie", "Chinstrap", "Gentoo"]
    assert output["example"] == "answers.example.csv", "what is for people only does not pin scores"
    assert task.definition["options"]["outputs"][0]["schema"] == "answer.schema.json"


def test_a_changed_schema_makes_scores_stale_and_a_changed_example_does_not(config: Config) -> None:
    before = Pins.made(of_task(load_task(config, "penguins")))
    write(config, "answers.example.csv", "id,species,body_mass_g\np002,Gentoo,1\n")
    assert changes(load_task(config, "penguins"), before).says == ()
    schema = json.loads((PENGUINS / "answer.schema.json").read_text())
    write(config, "answer.schema.json", json.dumps({**schema, "required": ["id"]}))
    assert "options" in changes(load_task(config, "penguins"), before).says[0]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("answer.schema.json", '{\n  "type": "object",\n  broken\n}', "tasks/penguins/answer.schema.json:3"),
        ("answer.schema.json", '{"a": "' + "x" * 300_000 + '"}', "256 KiB"),
        ("answers.example.csv", "x" * 300_000, "256 KiB"),
        ("answer.schema.json", None, "answer.schema.json"),
    ],
)
def test_wrong_files_have_their_place(config: Config, name: str, content: str | None, said: str) -> None:
    (config.tasks / "penguins" / name).unlink()
    if content is not None:
        write(config, name, content)
    with pytest.raises(RunnerError) as caught:
        load_task(config, "penguins")
    assert said in "\n".join(map(str, caught.value.problems))


@pytest.mark.parametrize("path", ["../../secret.json", "/etc/passwd", "link.json"])
def test_files_outside_of_the_task_are_not_read(config: Config, path: str) -> None:
    (config.root / "secret.json").write_text('{"title": "secret"}')
    (config.tasks / "penguins/link.json").symlink_to(config.root / "secret.json")
    changed(config, lambda data: data["options"]["outputs"][0].update(schema=path))
    with pytest.raises(RunnerError) as caught:
        load_task(config, "penguins")
    assert caught.value.code == "E401" and path in str(caught.value.problems[0])


def test_a_schema_can_stand_in_the_task_itself(config: Config) -> None:
    changed(config, lambda data: data["options"]["outputs"][0].update(schema={"type": "object"}))
    assert load_task(config, "penguins").options["outputs"][0]["schema"] == {"type": "object"}


def problems(config: Config) -> list[str]:
    found = read_contents(load_task(config, "penguins"), config, lambda _: None)
    return [str(p) for one in found for p in one.problems]


def test_task_check_tells_everything_wrong_with_schemas_and_examples_once(config: Config) -> None:
    write(config, "answers.example.csv", "id,species,body_mass_g\np002,Emperor,1\nx,Adelie,two\n")
    expected = [(2, "species", "Emperor"), (3, "id", "x"), (3, "body_mass_g", "two")]
    for problem, (line, column, value) in zip(problems(config), expected, strict=True):
        assert problem.startswith("tasks/penguins/task.yaml: ") and f"answers.csv, line {line}: " in problem
        assert f'"{column}"' in problem and f'"{value}"' in problem
    wrong = {"id": {"pattern": "(?=p)"}, "a": {"$ref": "http://x/y"}}
    write(config, "answer.schema.json", json.dumps({"properties": wrong}))
    found = problems(config)
    assert len(found) == 2 and all(one.startswith("tasks/penguins/task.yaml") for one in found)
    assert "/properties/a/$ref" in found[0] and "/properties/id/pattern" in found[1]


@pytest.mark.parametrize(
    ("change", "secret"),
    [
        (lambda line: json.dumps({**json.loads(line), "species": "Emperor"}), "Emperor"),
        (lambda line: '{"species": "Gentoo", ' + line[1:], "Gentoo"),
    ],
    ids=["schema", "key twice"],
)
def test_problems_do_not_show_truths(config: Config, change: Callable[[str], str], secret: str) -> None:
    path = config.tasks / "penguins/datasets/test/truths/penguins.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([change(lines[0]), *lines[1:]]) + "\n")
    (found,) = problems(config)
    assert "truths/penguins.jsonl:1: " in found and secret not in found


def test_ids_of_truths_have_to_be_in_the_inputs(config: Config) -> None:
    path = config.tasks / "penguins/datasets/dev/inputs/penguins.jsonl"
    path.write_text("".join(line + "\n" for line in path.read_text().splitlines()[1:]))
    (found,) = problems(config)
    assert '"p002"' in found and "inputs/penguins.jsonl" in found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data.update(output="other.csv"), "options.outputs"),
        (lambda data: data["measures"][0].update(measure="F2(species)"), "F2"),
        (lambda data: data["measures"][2].update(direction="higher"), "direction: lower"),
        (lambda data: data["measures"][0].update(options={"output": "x"}), "answers.csv"),
        (lambda data: data["measures"][0].update(measure="F1(colour)"), "colour"),
    ],
)
def test_wrong_definitions(config: Config, change: Callable[[dict[str, Any]], None], said: str) -> None:
    changed(config, change)
    assert any(said in one for one in problems(config)), problems(config)


def test_task_show_lists_every_output_with_an_example(config: Config) -> None:
    schema = {"properties": {"note": {"type": "string"}}}
    second = {"path": "notes.jsonl", "schema": schema, "required": False}
    changed(config, lambda data: data["options"]["outputs"].append(second))
    text = " ".join(" ".join(printed(overview(load_task(config, "penguins")))).split())
    for part in ("$outputDir/answers.csv", "answers.csv.gz", "CSV", "id (text)", "species (Adelie or"):
        assert part in text
    assert "p002,Adelie,3700" in text
    assert "$outputDir/notes.jsonl" in text and "note (text, optional)" in text
    assert max(map(len, printed(overview(load_task(config, "penguins"))))) <= 80
