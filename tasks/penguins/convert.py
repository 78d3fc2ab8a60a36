"""Turn the Palmer penguins into this task's datasets.

    python tasks/penguins/convert.py penguins.csv [DEST]

``penguins.csv`` lies in the package palmerpenguins 0.1.6 on PyPI (``palmerpenguins/data/penguins.csv``); DEST defaults to
``datasets/`` beside this file. The two penguins without a body mass are left out. Who belongs to ``dev`` is decided by the SHA-256 of
``penguins:<id>``: a third. The output is a function of the source alone.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

SEEN = ("island", "bill_length_mm", "bill_depth_mm", "flipper_length_mm", "sex", "year")


def value(cell: str) -> Any:
    """A cell as JSON: NA is null, numbers are numbers."""
    if cell == "NA":
        return None
    try:
        return float(cell) if "." in cell else int(cell)
    except ValueError:
        return cell


def main(source: Path, target: Path) -> None:
    with source.open(encoding="utf-8", newline="") as file:
        rows = [{"id": f"p{n:03}", **row} for n, row in enumerate(csv.DictReader(file), 1)]
    rows = [row for row in rows if row["body_mass_g"] != "NA"]
    if len(rows) != 342:
        raise SystemExit(
            f"{source} is not the file that the README names: {len(rows)} penguins with a body mass"
        )
    order = sorted(rows, key=lambda row: hashlib.sha256(f"penguins:{row['id']}".encode()).hexdigest())
    dev = {row["id"] for row in order[:114]}
    for name in ("dev", "test"):
        mine = [row for row in rows if (row["id"] in dev) == (name == "dev")]
        for side, fields in (("inputs", ("id", *SEEN)), ("truths", ("id", "species", "body_mass_g"))):
            path = target / name / side / "penguins.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = (
                json.dumps({f: row["id"] if f == "id" else value(row[f]) for f in fields}) for row in mine
            )
            path.write_text("".join(line + "\n" for line in lines), "utf-8")


if __name__ == "__main__":
    here = Path(__file__).parent
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else here / "datasets")
