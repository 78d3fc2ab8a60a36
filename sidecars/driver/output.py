"""What the driver leaves: every debate is on the disk when it is finished, and at the end they are put in order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidecars.driver.answers import encode


@dataclass(frozen=True)
class Part:
    """One finished debate: its line of the run file, and the records of its turns."""

    number: int
    line: str
    records: list[dict[str, Any]]


class Output:
    """The output folder. ``run_file`` is the name of the file with one line a debate."""

    def __init__(self, folder: Path, run_file: str) -> None:
        self.folder, self.run_file = folder, run_file
        self.parts = folder / "parts"
        self.parts.mkdir(parents=True, exist_ok=True)

    def keep(self, part: Part) -> None:
        """Write a finished debate. Raises OSError when the disk is full."""
        records = "".join(encode(record) + "\n" for record in part.records)
        (self.parts / f"{part.number}.records").write_text(records, encoding="utf-8", newline="\n")
        (self.parts / f"{part.number}.line").write_text(part.line + "\n", encoding="utf-8", newline="\n")

    def join(self, numbers: Iterable[int]) -> None:
        """Put the debates of ``numbers`` in their order; one that was not finished is the line ``{}``.

        Each part is removed as soon as it is copied, so the folder never has to hold everything twice.
        """
        with (
            (self.folder / self.run_file).open("wb") as lines,
            (self.folder / "turns.jsonl").open("wb") as records,
        ):
            for number in numbers:
                for ending, to in (("line", lines), ("records", records)):
                    part = self.parts / f"{number}.{ending}"
                    if part.exists():
                        to.write(part.read_bytes())
                        to.flush()
                        part.unlink()
                    elif ending == "line":
                        to.write(b"{}\n")
        self.parts.rmdir()

    def report(self, data: Mapping[str, Any]) -> None:
        """Write driver.json, which says how it went."""
        text = json.dumps(data, indent=2, ensure_ascii=True) + "\n"
        (self.folder / "driver.json").write_text(text, encoding="utf-8")
