"""How much Python the project ships: lines of code by package, without blank lines, comments and docstrings.

``python -m benchmarks.code_size [--folders] [REVISION]`` counts the working tree, or a revision of git. A line counts
when part of a statement stands on it; a text of several lines that is no docstring counts with each of them.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "runner",
    "evaluator",
    "sidecars",
    "schemas",
    "submissions",
    "tasks",
    "tools",
)  # the wheel; baselines; example tasks
PAGES = (
    ".html",
    ".css",
    ".js",
    ".j2",
)  # templates, style and scripts are counted apart: all their lines that are not blank
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """The number of lines of a module that hold code."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and ast.get_docstring(node, clean=False) is not None:
                documented.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def sources(revision: str | None) -> Iterator[tuple[PurePosixPath, str]]:
    """The modules and pages that git tracks, with their text: of the working tree, or as they are in ``revision``."""
    listing = ["ls-tree", "-r", "--name-only", revision] if revision else ["ls-files"]
    for name in _git(*listing, "--", *PACKAGES).splitlines():
        if name.endswith((".py", *PAGES)) and (revision or (ROOT / name).is_file()):
            text = _git("show", f"{revision}:{name}") if revision else (ROOT / name).read_text("utf-8")
            yield PurePosixPath(name), text


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Print a table: modules, all lines and lines of code of each package, and of each of its folders if asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("revision", nargs="?", metavar="REVISION")
    parser.add_argument("--folders", action="store_true", help="one row for each folder below the packages")
    args = parser.parse_args()
    modules, lines, code = Counter[str](), Counter[str](), Counter[str]()
    pages = 0
    for path, text in sources(args.revision):
        if path.suffix in PAGES:
            pages += sum(1 for line in text.splitlines() if line.strip())
            continue
        rows = ["total", path.parts[0]]
        if args.folders and len(path.parts) > 2:
            rows.append("/".join(path.parts[:2]))
        for row in rows:
            modules[row] += 1
            lines[row] += text.count("\n")
            code[row] += code_lines(text)
    print(f"{'package':<28} {'modules':>8} {'lines':>8} {'code':>8}")
    for row in [*sorted(row for row in modules if row != "total"), "total"]:
        print(f"{row:<28} {modules[row]:>8,} {lines[row]:>8,} {code[row]:>8,}")
    print(f"{'templates, style, scripts':<28} {'':>8} {pages:>8,}")


if __name__ == "__main__":
    main()
