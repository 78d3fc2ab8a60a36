"""The documentation says what the program does: commands parse, links lead somewhere, nothing is left out."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import schemas
from runner.model.errors import CODES
from runner.model.verdict import TABLE
from runner.records.events import TYPES
from tools import docs as reference

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "submissions").rglob("README.md"),
        *(ROOT / "tasks").glob("*/README.md"),
    ]
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def ids(paths: list[Path]) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in paths]


@cache
def commands() -> dict[str, Any]:
    return reference.runner_commands()


@cache
def evaluator(*arguments: str) -> str:
    """What the evaluator prints: a process of its own, as for people."""
    ended = subprocess.run(
        [sys.executable, "-m", "evaluator", *arguments], cwd=ROOT, text=True, capture_output=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@cache
def evaluator_options(*command: str) -> frozenset[str]:
    return frozenset(re.findall(r"(?<![\w*-])--?[a-zA-Z][\w-]*", evaluator(*command, "-h")))


ARGUE = ("annotate", "score", "agreement", "correlation", "consistency", "canaries")


@cache
def source(folder: str) -> tuple[tuple[Path, ast.Module], ...]:
    return tuple((path, ast.parse(path.read_text("utf-8"))) for path in sorted((ROOT / folder).rglob("*.py")))


# --- nothing is left out -----------------------------------------------------------------------------------


def test_every_command_and_option_is_on_its_page() -> None:
    text = (REFERENCE / "cli.md").read_text("utf-8")
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.S | re.M))
    assert "runner task new" in commands()
    for name, command in commands().items():
        assert command.help and _joined(command.help) in _joined(sections[name]), name
        for option in command.params:
            for spelled in (*option.opts, *option.secondary_opts):
                word = spelled if spelled.startswith("-") else option.metavar or spelled
                shown = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])", re.IGNORECASE)
                assert shown.search(sections[name]), f"{name} {spelled}"
            assert option.help, f"{name} {option.name} has no help"
    for name in re.findall(r"^    ([\w-]+) ", evaluator("-h"), re.M):
        own = [text for key, text in sections.items() if f"{key} ".startswith(f"evaluator {name} ")]
        for option in evaluator_options(name) - {"-h", "--help"}:
            assert any(option in text for text in own), f"evaluator {name} {option}"


def _joined(text: str) -> str:
    """Return a text without white space, since help texts are wrapped."""
    return "".join(text.split())


def test_every_command_has_an_example_that_is_its_own() -> None:
    for name, command in commands().items():
        if not any(other.startswith(f"{name} ") for other in commands()):  # groups only hold commands
            examples = (command.epilog or "").removeprefix("Examples:").split("  |  ")
            assert any(f"{name} " in f"{example} " for example in examples), name
            for example in examples:
                check(example.strip())


def test_every_error_code_raised_is_registered_and_explained() -> None:
    page = (REFERENCE / "errors.md").read_text("utf-8")
    used: dict[str, Path] = {}
    for path, tree in source("runner"):
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and re.fullmatch(r"E\d{3}", node.value)
            ) and path.name != "errors.py":
                used.setdefault(node.value, path)
    assert set(used) <= set(CODES), {code: used[code] for code in set(used) - set(CODES)}
    for code in CODES:
        assert f'<a id="{code.lower()}"></a>{code} ' in page


def test_every_finding_code_is_on_its_page() -> None:
    page = (REFERENCE / "findings.md").read_text("utf-8")
    found = json.loads(evaluator("codes", "--json"))
    assert len(found) > 20
    for entry in found:
        assert f"{entry['code']} | {entry['severity']} | {entry['title']}" in page


@pytest.mark.parametrize(
    "name", sorted(p.name.removesuffix(".schema.json") for p in (ROOT / "schemas").glob("*.schema.json"))
)
def test_every_field_of_every_schema_is_in_the_reference(name: str) -> None:
    pages = [path.read_text("utf-8") for path in REFERENCE.glob("*.md")]
    fields = reference.fields_of(schemas.schema(name))
    assert fields
    missing = [path for path, _, _ in fields if not any(f"| `{path}` |" in page for page in pages)]
    assert not missing


def test_every_event_and_verdict_is_explained() -> None:
    archive = (REFERENCE / "archive.md").read_text("utf-8")
    for name in TYPES:
        assert re.search(rf"^\| `{name}` \| \S", archive, re.M), name
    verdicts = (REFERENCE / "verdicts.md").read_text("utf-8")
    from typing import get_args

    from runner.model.outcome import Name

    for name in (*TABLE, *get_args(Name)):
        assert f"| `{name}` |" in verdicts, name


def test_every_environment_variable_is_explained() -> None:
    page = (REFERENCE / "environment.md").read_text("utf-8")
    used: set[str] = set()
    for folder in ("runner", "evaluator"):
        for path, _ in source(folder):
            text = path.read_text("utf-8")
            used |= set(re.findall(r"(?:environ|env)(?:\.get\(|\[)[\"']([A-Z][A-Z_]+)[\"']", text))
            used |= set(re.findall(r"found\.(?:value|path|choice)\(\"\w+\", \"([A-Z_]+)\"", text))
            used |= set(re.findall(r"envvar=[\"']([A-Z_]+)[\"']", text))
            used |= set(re.findall(r"[\"']([A-Z_]+)[\"'] (?:not )?in os\.environ", text))
    used |= set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "docker-compose.yml").read_text("utf-8")))
    used |= set(re.findall(r"^([A-Z_]+) \?=", (ROOT / "Makefile").read_text("utf-8"), re.M))
    assert {"RUNNER_HOME", "RUNNER_DATABASE", "RUNNER_AS", "TEAM"} <= used
    private = {"PATH", "HOME", "COLUMNS"}
    assert not {name for name in used - private if f"`{name}`" not in page}
    from runner.tasks.tira import container_env

    assert all(f"`{name}`" in page for name in container_env("x", ["run"]))


def test_generated_pages_are_up_to_date() -> None:
    said: list[str] = []
    assert reference.main(["--check"], say=said.append) == 0, said


# --- what the pages say is true ----------------------------------------------------------------------------


def command_lines(text: str) -> Iterator[str]:
    """Every command line of ours in a page: in plain fenced blocks, indented blocks and inline code."""
    for language, block in FENCE.findall(text):
        if language in ("", "sh", "console"):
            yield from block.replace("\\\n", " ").splitlines()
    prose = FENCE.sub("", text)
    yield from re.findall(r"^    (\S.*)$", prose, re.M)
    yield from re.findall(r"`([^`\n]+)`", prose)


OURS = re.compile(
    r"(?:[A-Z_]+=\S* )*(runner|evaluator|make|docker compose|python3? -m sidecars\.\w+)(?: |$)(.*)"
)


def check(line: str) -> bool:
    """Check one line; False when it is no command line of ours. Placeholders stand for names."""
    match = OURS.match(line)
    if match is None:
        return False
    rest = re.split(r"\s+(?:[|>]|&&|#|2>)", f" {match[2]}")[0].replace("…", "X").replace("...", "X")
    if not rest.strip():
        return True
    words = shlex.split(rest)
    if "sidecars" in match[1]:
        _sidecar(match[1].rpartition(".")[2], words, line)
        return True
    {"runner": _runner, "evaluator": _evaluator, "make": _make, "docker compose": _compose}[match[1]](
        words, line
    )
    return True


def _runner(words: list[str], line: str) -> None:
    name, command = "runner", commands()["runner"]
    while words and hasattr(command, "commands"):
        if words[0] in ("-h", "--debug", "--version", "--quiet", "-q"):
            words = words[1:]
            continue
        if words[0] == "--actor":
            words = words[2:]
            if not words:  # speaks of that option
                return
            continue
        if words[0] in ("X", "COMMAND", "[OPTIONS]"):
            return
        name = f"{name} {words[0]}"
        assert name in commands(), f"{line}: there is no {name}"
        command, words = commands()[name], words[1:]
    known = {o: p for p in command.params for o in (*p.opts, *p.secondary_opts) if o.startswith("-")}
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    given, values = 0, iter(words)
    seen = set()
    for word in values:
        if word in ("[OPTIONS]", "X"):
            return  # a usage line, or one that was cut short on purpose
        if not word.startswith("-"):
            given += 1
        elif word not in ("-h", "--help"):
            option = word.partition("=")[0]
            assert option in known, f"{line}: {name} has no {option}"
            seen.add(known[option].name)
            if not known[option].is_flag and "=" not in word:
                assert next(values, None) is not None, f"{line}: {option} needs a value"
        else:
            return
    assert given <= len(arguments) or any(a.nargs == -1 for a in arguments), f"{line}: too many arguments"
    if words:  # the bare name of a command is prose
        needed = {p.name for p in command.params if p.required and p.param_type_name == "option"}
        # A name in prose may come with one option only, to speak of that option.
        if given or len(seen) > 1:
            assert needed <= seen, f"{line}: lacks {needed - seen}"


def _evaluator(words: list[str], line: str) -> None:
    if words[0].startswith("-") or words[0] in ("X", "COMMAND"):
        return
    assert words[0] in re.findall(r"^    ([\w-]+) ", evaluator("-h"), re.M), line
    own = 2 if words[0] == "argue" and words[1:2] and words[1] in ARGUE else 1
    for word in words[own:]:
        if word.startswith("-"):
            assert word in evaluator_options(*words[:own]), f"{line}: {word}"


@cache
def sidecar_options(name: str, command: str) -> frozenset[str]:
    """The options of a sidecar's command, as its help names them."""
    ended = subprocess.run(
        [sys.executable, "-m", f"sidecars.{name}", *([command] if command else []), "--help"],
        cwd=ROOT, text=True, capture_output=True, timeout=60,
    )  # fmt: skip
    assert ended.returncode == 0, f"there is no sidecars.{name} {command}: {ended.stderr}"
    return frozenset(re.findall(r"(?<![\w*-])--?[a-zA-Z][\w-]*", ended.stdout))


def _sidecar(name: str, words: list[str], line: str) -> None:
    command = words[0] if not words[0].startswith("-") else ""
    known = sidecar_options(name, command if command.islower() else "")
    for word in words:
        if re.match("--?[a-z]", word):
            assert word in known, f"{line}: {word}"


def _make(words: list[str], line: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    variables = re.findall(r"^([A-Z_]+) \?=", (ROOT / "Makefile").read_text("utf-8"), re.M)
    for word in words:
        name, equals, _ = word.partition("=")
        assert name in (variables if equals else targets), f"{line}: {word}"


def _compose(words: list[str], line: str) -> None:
    if words[0] == "--profile":
        files = [yaml.safe_load(path.read_text("utf-8")) for path in ROOT.glob("tasks/*/compose.yaml")]
        known = {name for f in files for one in f["services"].values() for name in one.get("profiles", [])}
        assert words[1] in known, f"{line}: there is no such profile"
        words = words[2:]
    assert words[0] in ("up", "down", "kill", "build", "version"), line


def test_the_checker_refuses_what_is_wrong() -> None:
    assert not check("rm -rf x") and check("runner evaluate --all --jobs 4 2> log")
    for wrong in ("runner evalute --all", "runner evaluate --al", "make sumbit TEAM=x", "make submit TAEM=x",
                  "evaluator trek a b", "evaluator trec a b --mesure x", "runner show A B", "runner check a --dataset"):  # fmt: skip
        with pytest.raises(AssertionError):
            check(wrong)


@pytest.mark.parametrize("page", PAGES, ids=ids(PAGES))
def test_every_command_line_parses(page: Path) -> None:
    found = 0
    for line in command_lines(page.read_text("utf-8")):
        found += check(line.strip())
    if page.parent.name in ("tutorials", "how-to"):
        assert found, "a page without a command: is the pattern wrong?"


def anchors(path: Path) -> set[str]:
    text = path.read_text("utf-8")
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.M)
    slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return slugs | set(re.findall(r'<a id="([^"]+)"', text))


@pytest.mark.parametrize("page", PAGES, ids=ids(PAGES))
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        if re.match(r"https?://|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.is_relative_to(ROOT) and path.exists(), target
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), target


def test_every_page_is_in_the_index_and_the_index_in_the_readme() -> None:
    def linked(page: Path) -> set[Path]:
        return {(page.parent / t.partition("#")[0]).resolve() for t in LINK.findall(page.read_text("utf-8"))}

    index = ROOT / "docs" / "README.md"
    assert index in linked(ROOT / "README.md")
    assert not [p for p in (ROOT / "docs").rglob("*.md") if p not in linked(index) | {index}]


def test_the_readme_fits_two_screens() -> None:
    shown = LINK.sub("]", (ROOT / "README.md").read_text("utf-8"))
    assert len(shown.splitlines()) <= 90
    assert max(map(len, shown.splitlines())) <= 130


@pytest.mark.parametrize("page", ["explanation/threat-model.md", "reference/interactive.md"])
def test_every_proof_that_a_page_names_exists(page: str) -> None:
    text = (ROOT / "docs" / page).read_text("utf-8")
    named = set(re.findall(r"`(tests/[^`]+)`", text))
    assert len(named) > 15
    for entry in named:
        if "*" in entry:
            continue
        path, _, test = entry.partition("::")
        assert (ROOT / path).exists(), entry
        if test:
            assert f"def {test}(" in (ROOT / path).read_text("utf-8"), entry


@pytest.mark.parametrize("page", PAGES, ids=ids(PAGES))
def test_no_page_knows_the_machine_it_was_written_on(page: Path) -> None:
    text = page.read_text("utf-8")
    assert str(ROOT) not in text or len(ROOT.parts) < 3
    assert not re.search(r"(?<![\w.])/(?:home|work|Users|mnt)/[\w/.-]+", text)
    assert not re.search(r"\b(?:docker\.io/|ghcr\.io|quay\.io|gcr\.io|index\.docker)", text)


def test_examples_in_messages_parse() -> None:
    """Commands that errors and the doctor tell people to run."""
    for _, tree in source("runner"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for line in re.findall(r"`((?:runner|evaluator|make) [^`\n]+)`", node.value):
                    check(line)
            if isinstance(node, ast.keyword) and node.arg in ("fix", "next"):
                text = ast.unparse(node.value).strip("f'\"")
                if started := re.match(r"runner ([a-z]+)", text):
                    assert f"runner {started[1]}" in commands(), text


# --- the programs in the pages work ------------------------------------------------------------------------


def test_the_shell_evaluator_keeps_the_contract(tmp_path: Path) -> None:
    text = (ROOT / "docs/how-to/own-evaluator.md").read_text("utf-8")
    program = next(block for language, block in FENCE.findall(text) if language == "sh")
    for folder in ("in/run", "out"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "evaluate.sh").write_text(re.sub(r"/(in|out)/", rf"{tmp_path}/\1/", program), "utf-8")
    (tmp_path / "in/run/run.txt").write_text("1 Q0 d 1 1 t\n" * 3, "utf-8")
    request = tmp_path / "in/request.json"
    request.write_text(json.dumps({"kind": "x", "run_file": "run.txt"}), "utf-8")
    subprocess.run(
        ["sh", tmp_path / "evaluate.sh"],
        env={"EVALUATOR_REQUEST": str(request), "PATH": "/usr/bin:/bin"},
        check=True,
    )
    result = json.loads((tmp_path / "out/result.json").read_text("utf-8"))
    assert not schemas.validate(schemas.Document("result.json", result, lines={}), "result")
    assert result["measures"]["lines"]["value"] == 3
    score = json.loads((tmp_path / "out/scores.jsonl").read_text("utf-8"))
    assert not schemas.validate(schemas.Document("scores.jsonl", score, lines={}), "score")


@pytest.mark.parametrize("package", ["runner", "evaluator", "sidecars"])
def test_the_architecture_names_every_folder_and_no_other(package: str) -> None:
    """Each folder is one noun with a first line that says what for; the kinds' own folders count as ``kinds``."""
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    _, _, table = page.partition(f"Inside `{package}`")
    named = re.findall(
        r"^\| `([a-z_/]+)/` \|", re.split(r"^(?:Inside|##) ", table, flags=re.MULTILINE)[0], re.MULTILINE
    )
    packages = [path.parent for path in (ROOT / package).rglob("__init__.py")]
    folders = {folder.relative_to(ROOT / package).as_posix(): folder for folder in packages}
    del folders["."]
    assert sorted(named) == sorted(
        name for name in folders if not name.startswith("kinds/") and not name.endswith("/formats")
    )
    for name, folder in folders.items():
        said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
        assert said, f"{name} does not say what it is for"
        assert len(list(folder.glob("*.py"))) <= 20, f"{name} has more modules than anybody can look through"
    assert len({name.partition("/")[0] for name in folders}) <= 16


def test_modules_are_imported_by_name_in_the_registries_of_kinds_and_commands_only() -> None:
    """An import that is a string is seen by no tool; where kinds, and commands by their first word, are found by names there is no other way."""
    found = set()
    for package in ("runner", "evaluator", "sidecars", "schemas"):
        for path in (ROOT / package).rglob("*.py"):
            names = {
                n.attr if isinstance(n, ast.Attribute) else n.id if isinstance(n, ast.Name) else ""
                for n in ast.walk(ast.parse(path.read_text()))
            }
            if names & {"import_module", "__import__", "run_module", "run_path"}:
                found.add(path.relative_to(ROOT).as_posix())
    assert found == {"evaluator/registry.py", "runner/cli/main.py", "runner/model/kinds.py"}
