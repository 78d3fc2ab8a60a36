"""Run the starter kit's notebook without Jupyter: `python run.py`, with a Python that has the evaluator installed.

`--store` keeps what it made: predictions and scores in stored/, and what the cells printed in the notebook.
"""

from __future__ import annotations

import argparse
import io
import json
import os
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

KIT = Path(__file__).resolve().parent
NOTEBOOK = KIT / "starter-kit.ipynb"


def execute(notebook: dict[str, Any]) -> list[str]:
    """Run the code cells in order, in this process and in the notebook's folder; returns what each printed."""
    os.chdir(KIT)
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            with redirect_stdout(io.StringIO()) as out:
                exec(compile("".join(cell["source"]), f"<cell {number}>", "exec"), names)  # noqa: S102
            printed.append(out.getvalue())
    return printed


def stored(notebook: dict[str, Any]) -> list[str]:
    """What each code cell printed when the notebook was stored."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["".join("".join(out["text"]) for out in cell["outputs"]) for cell in cells]


def main() -> None:
    """Print what the cells print; say whether it is what is stored, or store it."""
    parser = argparse.ArgumentParser(description="run starter-kit.ipynb without Jupyter")
    parser.add_argument("--store", action="store_true", help="keep the results in stored/ and the notebook")
    options = parser.parse_args()
    if options.store:
        os.environ["STARTER_KIT_OUTPUT"] = str(KIT / "stored")
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    printed = execute(notebook)
    print("\n".join(printed), end="")
    if options.store:
        code = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
        for number, (cell, text) in enumerate(zip(code, printed, strict=True), start=1):
            out = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
            cell["outputs"], cell["execution_count"] = ([out] if text else []), number
        NOTEBOOK.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    elif printed != stored(notebook):
        raise SystemExit("This is not what is stored in the notebook.")


if __name__ == "__main__":
    main()
