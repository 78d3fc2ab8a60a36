"""Notebooks without a Jupyter server: their cells run one after the other in one namespace, as a kernel would run them.

``python -m tests.docs.notebook`` writes the results into the notebook of the tutorials.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tests.worlds.records import World, write_project

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "tutorials" / "analyse.ipynb"


def small_project(root: Path) -> None:
    """A project with the toy task and scored runs of three teams in ``.runner``."""
    write_project(root, baseline="baselines/bm25")
    world = World.make(root, home=".runner")
    for team, software, mean in (
        ("baselines", "bm25", 0.4),
        ("alpha", "dense", 0.6),
        ("beta", "sparse", 0.45),
    ):
        world.scored(team, software, mean=mean, topics=20, datasets=("dev", "test"))
    attempt = world.attempt(world.register("beta", "careless"), dataset="dev")
    codes = {"F012": ("error", 3), "F018": ("warning", 40)}
    world.evaluation(attempt, status="invalid", codes=codes)
    world.store.close()


def executed(notebook: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A copy of ``notebook`` with the results of its cells, run with ``folder`` as the current folder.

    A cell's result is what it printed, and the text of its last expression. An exception of a cell goes through.
    """
    made = json.loads(json.dumps(notebook))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    os.chdir(folder)
    try:
        cells = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
        for n, cell in enumerate(cells, start=1):
            cell["execution_count"] = n
            cell["outputs"] = _outputs("".join(cell["source"]), namespace, n)
    finally:
        os.chdir(before)
    return made


def _outputs(source: str, namespace: dict[str, Any], n: int) -> list[dict[str, Any]]:
    """What one cell gives, in the form of a notebook."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(tree, f"cell {n}", "exec"), namespace)
        value = eval(compile(ast.Expression(last.value), f"cell {n}", "eval"), namespace) if last else None
    found: list[dict[str, Any]] = []
    if said.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": said.getvalue().splitlines(True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(True)}
        found.append({"output_type": "execute_result", "execution_count": n, "data": data, "metadata": {}})
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        small_project(Path(folder))
        results = executed(json.loads(NOTEBOOK.read_text("utf-8")), Path(folder))
    NOTEBOOK.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
