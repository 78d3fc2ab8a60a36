"""``make mutants``: change one place of the product at a time, and count the changes that the tests notice.

Places are drawn with a fixed seed, equally often from every folder of the packages. For each, the test modules that import the changed
module run, without those that are slow or need a container engine.
"""

import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import typer
from pytest import ExitCode

ROOT = Path(__file__).parents[1]
SELECTION = "not engine and not slow and not soak and not model"
MAX_MODULES = 12  # test modules for one mutation
TIMEOUT = 300  # seconds for the tests of one mutation
PACKAGES = ("runner", "evaluator", "sidecars", "schemas")
FIRST = (ast.Lt, ast.Gt, ast.Eq, ast.In, ast.Is, ast.And, ast.Add)
SECOND = (ast.LtE, ast.GtE, ast.NotEq, ast.NotIn, ast.IsNot, ast.Or, ast.Sub)
SWAPPED: dict[type, type] = dict(zip(FIRST + SECOND, SECOND + FIRST, strict=True))
Mutation = tuple[int, ast.AST, str, object]  # the line; a node, one of its fields and another value of it


def mutations(tree: ast.AST) -> Iterator[Mutation]:
    """Yield all single changes of a module: swapped operators, other constants, returned None."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(ops=[first, *rest]):
                yield node.lineno, node, "ops", [SWAPPED[type(first)](), *rest]
            case ast.BoolOp(op=op) | ast.BinOp(op=op) if type(op) in SWAPPED:
                yield node.lineno, node, "op", SWAPPED[type(op)]()
            case ast.Constant(value=bool(value)):
                yield node.lineno, node, "value", not value
            case ast.Constant(value=int(value)):
                yield node.lineno, node, "value", value + 1
            case ast.Return(value=ast.expr()):
                yield node.lineno, node, "value", ast.Constant(None)


def draw(count: int, seed: int) -> list[tuple[Path, int]]:
    """Return ``count`` modules, each with the index of one of its mutations."""
    folders: dict[str, list[tuple[Path, int]]] = {}
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        module = path.relative_to(ROOT)
        mutation_count = len(list(mutations(ast.parse(path.read_text()))))
        folder = "/".join(module.parent.parts[:2])
        folders.setdefault(folder, []).extend((module, index) for index in range(mutation_count))
    generator, places = random.Random(seed), [found for _, found in sorted(folders.items()) if found]
    return [generator.choice(places[number % len(places)]) for number in range(count)]


def tests_of(module: Path, project: Path) -> list[str]:
    """Return the test modules that import a module, those of the closest folder first."""
    dotted = ".".join(module.with_suffix("").parts).removesuffix(".__init__")
    package, _, name = dotted.rpartition(".")
    imported = re.compile(rf"{re.escape(package)}(\.| import .*\b){name}\b")
    paths = sorted((project / "tests").rglob("test_*.py"))
    paths = [path for path in paths if imported.search(path.read_text())]
    paths = paths or sorted((project / "tests" / module.parent).glob("test_*.py"))
    paths.sort(key=lambda path: -len(os.path.commonpath([path.relative_to(project / "tests"), module])))
    return [str(path) for path in paths[:MAX_MODULES]]


def fails(project: Path, *arguments: str) -> bool:
    """Run tests in a copy of the project; return if one failed, or if they did not end in time."""
    command = [sys.executable, "-m", "pytest", "-qx", "-m", SELECTION, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(project)}
    try:
        ended = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    if ended.returncode in (ExitCode.OK, ExitCode.NO_TESTS_COLLECTED):
        return False
    if ended.returncode in (ExitCode.TESTS_FAILED, ExitCode.INTERRUPTED):
        return True
    raise RuntimeError(ended.stdout.decode() + ended.stderr.decode())


def noticed(module: Path, index: int, project: Path) -> bool:
    """Make a mutation, run its tests, and undo it. Print the result."""
    original = (project / module).read_text()
    tree = ast.parse(original)
    line, node, name, value = list(mutations(tree))[index]
    setattr(node, name, value)
    (project / module).write_text(ast.unparse(ast.fix_missing_locations(tree)))
    tests = tests_of(module, project)
    found = fails(project, *tests)
    (project / module).write_text(original)
    # A test that fails without the mutation, too, notices nothing.
    found = found and not fails(project, "--lf", *tests)
    print(f"{'noticed' if found else 'UNNOTICED'}  {module}:{line}", flush=True)
    return found


def main(count: int = 60, seed: int = 33) -> None:
    """Report how many of ``count`` mutations the tests notice."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    with tempfile.TemporaryDirectory() as folder:
        for name in filter(None, names):
            (copy := Path(folder, name)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy, follow_symlinks=False)
        found = sum(noticed(module, index, Path(folder)) for module, index in draw(count, seed))
    print(f"{found} of {count} mutations noticed (seed {seed})")


if __name__ == "__main__":
    typer.run(main)
