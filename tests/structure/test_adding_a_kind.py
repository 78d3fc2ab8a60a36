"""A kind of task is added in the places that docs/CONTRIBUTING.md lists, and nowhere else: one is added to a copy."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import schemas
from evaluator import registry

ROOT = Path(__file__).parents[2]
PACKAGES = ("runner", "evaluator", "sidecars", "schemas")
COLOURS = ROOT / "tests" / "worlds" / "colours" / "proctor_colours"
PLACES = {  # of the list, with the part of the example that stands there
    "evaluator/kinds/KIND/": "evaluator",
    "runner/kinds/KIND/": "runner",
    "schemas/kinds/KIND.schema.json": "options.schema.json",
}
OTHERS = {"tasks/", "CHANGELOG.md", *(f"docs/reference/{page}.md" for page in ("task", "findings", "cli"))}


def listed() -> set[str]:
    """The places that the list of docs/CONTRIBUTING.md names."""
    text = (ROOT / "docs/CONTRIBUTING.md").read_text("utf-8")
    section = text.split("## Adding a kind of task\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    return {place for row in rows for place in re.findall(r"`([^`]+)`", row)}


def test_the_list_names_the_places_of_this_test() -> None:
    assert listed() == {*PLACES, *OTHERS}


@pytest.mark.parametrize("kind", registry.built_in())
def test_the_kinds_that_there_are_stand_in_these_places(kind: str) -> None:
    for place in PLACES:
        assert (ROOT / place.replace("KIND", kind)).exists()
    tasks = [p.read_text("utf-8") for p in ROOT.glob("tasks/*/task.yaml")]
    assert any(re.search(rf"^kind: {kind}$", text, re.M) for text in tasks)


def test_no_kind_is_named_elsewhere() -> None:
    """What a program does for one kind only stands in that kind's folder: nobody else compares names of kinds."""
    names, found = set(schemas.kinds()), []
    for path in (p for package in PACKAGES for p in sorted((ROOT / package).rglob("*.py"))):
        if "kinds" in path.relative_to(ROOT).parts[:-1]:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Compare):
                continue
            sides = [node.left, *node.comparators]
            about = any("kind" in (getattr(side, "attr", ""), getattr(side, "id", "")) for side in sides)
            said = {c.value for s in sides for c in ast.walk(s) if isinstance(c, ast.Constant)}
            if about and said & names:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert found == []


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages with a sixth kind in them."""
    tree = tmp_path_factory.mktemp("tree")
    for package in (*PACKAGES, "tools"):
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    for place, part in PLACES.items():
        source, target = COLOURS / part, tree / place.replace("KIND", "colours")
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, target)
    return tree


def run(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-P", *words]
    return subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, timeout=120)


def test_the_evaluator_knows_a_kind_that_was_added_so(copy: Path, tmp_path: Path) -> None:
    for name in ("run", "inputs", "truths", "output"):
        (tmp_path / name).mkdir()
    (tmp_path / "run/colours.txt").write_text("t1 red\nt2 blue\n")
    (tmp_path / "truths/colours.txt").write_text("t1 red\nt2 grey\nt3 blue\nt4 red\n")
    request = {
        "schema_version": 1,
        "kind": "colours",
        "visibility": "public",
        "run_file": "colours.txt",
        "paths": {name: str(tmp_path / name) for name in ("run", "inputs", "truths", "output")},
        "measures": [{"id": "hits", "measure": "hits", "truths": "colours.txt"}],
        "severities": {"F901": "warning"},
    }
    (tmp_path / "request.json").write_text(json.dumps(request))
    done = run(copy, "-m", "evaluator", "run", "--request", str(tmp_path / "request.json"))
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "output/result.json").read_text())
    assert result["measures"]["hits"]["value"] == 0.25
    [note] = result["notes"]
    assert "2" in note and "blue" in note
    (tmp_path / "run/colours.txt").write_text("t1 purple\n")
    request_file = ("--request", str(tmp_path / "request.json"))
    checked = run(copy, "-m", "evaluator", "check", str(tmp_path / "run/colours.txt"), *request_file)
    assert checked.returncode == 0 and "F901 warning" in checked.stdout
    data = run(copy, "-m", "evaluator", "data", *request_file)
    assert json.loads(data.stdout)["checked"] is False, "a kind need not read the organiser's data"
    assert "F901" in run(copy, "-m", "evaluator", "codes").stdout


def test_the_runner_knows_a_kind_that_was_added_so(copy: Path) -> None:
    code = (
        "import schemas; from runner.model.kinds import kind_spec, kinds_with; from tools.docs.files import task; "
        "assert 'colours' in schemas.kinds(); assert schemas.validate({'grey': 1}, 'kinds/colours'); "
        "assert 'colours' in kinds_with('presenter'); assert kind_spec('colours').importer is None; "
        "assert 'Whether grey is a colour.' in task(); "
        "from runner.views.audience import visible; from schemas.details import Detail; "
        "(note,) = visible([Detail('colours-missing', missing=2, colour='CANARY')], free_text=False); "
        "assert str(note) == '2 topics have no colour; the last one was …'"
    )
    done = run(copy, "-c", code)
    assert done.returncode == 0, done.stderr
