"""Walks through a page of the docs, command by command, and tells what is not as the page says."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = re.compile(
    r"(?:[A-Za-z]+=\S+ )*(?:cat|cd|cp|curl|docker|echo|evaluator|export|make|mkdir|mv|printf|runner|sed|tar) "
)
SERVER = "runner serve "  # goes on in a terminal of its own
ADDRESS = "127.0.0.1:8080"  # of the server in the pages; a walk has a port that is free
ID = re.compile(r"\b([\w-]+\.[\w-]+)\.([0-9a-f]{8})\b")
# What stands for something else in each walk, and is used in later commands: ids of requests, numbers of proposals.
OTHERS = (r"\b([0-9a-f]{32})\b", r"^ *(\d+) +\d{4}-\d\d-\d\d \d\d:\d\d ")
# What no two walks have in common; "…" and "..." stand for anything.
CHANGING = {
    r" ?(?:…|\.\.\.)": ".*",
    r"\b[0-9a-f]{8}\b": "[0-9a-f]{8}",
    r"\b\d{4}-\d\d-\d\d(?: \d\d:\d\d)?\b": r"\\d{4}-\\d\\d-\\d\\d(?: \\d\\d:\\d\\d)?",
    r"\b\d+\.\d s\b": r"\\d+\\.\\d s",
    r"\b\d+ MiB\b": r"\\d+ MiB",
}


@dataclass
class Step:
    """Commands of a page, the exit code that the text before them names, and what they print by the page, at once or later."""

    commands: str
    code: int = 0
    later: bool = False
    prints: list[str] = field(default_factory=list)


@dataclass
class Surroundings:
    """What goes on beside a walk: servers, which end with ``going``, at a port; ``hands`` do what is done in a browser
    before the commands that begin so, with all that was printed until then."""

    going: ExitStack
    hands: Mapping[str, Callable[[str], None]] = field(default_factory=dict)
    address: str = ADDRESS


def steps(page: str) -> list[Step]:
    """The fenced commands of a tutorial in order."""
    text = (ROOT / "docs" / "tutorials" / page).read_text("utf-8")
    found: list[Step] = []
    for prose, block in re.findall(r"(.*?)^```\n(.*?)^```$", text, re.S | re.M):
        if COMMANDS.match(block):
            said = re.search(r"exit\s+code(?: is)? (\d)", prose)
            found.append(Step(block, int(said[1]) if said else 0, prose.rstrip().endswith(" later:")))
        else:
            found[-1].prints += block.splitlines()
    return found


def pattern(line: str) -> re.Pattern[str]:
    """What a line of a page stands for."""
    told = " ".join(line.split())
    where = "|".join(f"({changing})" for changing in CHANGING)
    parts, end = "", 0
    for match in re.finditer(where, told):
        assert match.lastindex
        parts += re.escape(told[end : match.start()]) + list(CHANGING.values())[match.lastindex - 1].replace(
            "\\\\", "\\"
        )
        end = match.end()
    return re.compile(parts + re.escape(told[end:]))


def not_printed(told: list[str], printed: str) -> list[str]:
    """Those lines that were told and do not come, in this order and but for blanks and what changes, among the printed."""
    plain = re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", printed)
    left = [" ".join(line.split()) for line in plain.splitlines()]
    missing = []
    for line in told:
        at = next((n for n, one in enumerate(left) if pattern(line).fullmatch(one)), None)
        if at is None:
            missing.append(line)
        else:
            left = left[at + 1 :]
    return missing


def others(told: list[str], printed: str) -> dict[str, str]:
    """What stands for what the page says of ids and numbers, in the order in which they come."""
    found: dict[str, str] = {}
    for one in OTHERS:
        lists = (dict.fromkeys(re.findall(one, text, re.M)) for text in ("\n".join(told), printed))
        found |= dict(zip(*lists, strict=False))
    return found


def start(step: Step, kept: Path, environment: dict[str, str], going: ExitStack) -> None:
    """Start what goes on, as in a terminal of its own, and wait until it has printed what the page says."""
    log = kept.with_name("server.log")
    with log.open("w") as file:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", f". {kept}\nexec {step.commands}"],
            env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def end() -> None:
        process.terminate()
        code = process.wait(120)
        assert code == 0 and "Traceback" not in log.read_text(), log.read_text()

    going.callback(end)
    last = time.monotonic() + 120
    while missing := not_printed(step.prints, log.read_text()):
        assert process.poll() is None and time.monotonic() < last, [*missing, log.read_text()]
        time.sleep(0.3)


def run(commands: str, kept: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Exit code and output of commands, in a shell that is as the one before it ended."""
    keep = f"trap '{{ export -p; echo cd \"$PWD\"; }} > {kept}' EXIT"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f". {kept}\n{keep}\n{commands}"],
        env=environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=400, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def walk(page: str, folder: Path, environment: dict[str, str], beside: Surroundings | None = None) -> str:
    """Run every command of a page in one shell after the other, as printed but for the digits of ids.

    Returns:
        All that was printed. The test fails where a command ends otherwise, or prints less, than the page says.
    """
    beside = beside or Surroundings(ExitStack())
    ids: dict[str, str] = {}
    same = {ADDRESS: beside.address}
    everything, missing = "", []
    kept = folder.parent / "shell"
    kept.write_text(f"cd {folder}\n", "utf-8")

    def here(text: str) -> str:
        text = ID.sub(lambda match: f"{match[1]}.{ids.get(match[1], match[2])}", text)
        known = "|".join(map(re.escape, same))
        return re.sub(rf"(?<!\w)(?:{known})(?!\w)", lambda match: same[match[0]], text)

    for step in steps(page):
        commands = here(step.commands)
        for first, hand in beside.hands.items():
            if commands.startswith(first):
                hand(everything)
        if commands.startswith(SERVER):
            told = [here(line) for line in step.prints]
            start(Step(commands, prints=told), kept, environment, beside.going)
            continue
        last = time.monotonic() + 300
        while True:
            code, printed = run(commands, kept, environment)
            ids |= dict(ID.findall(printed))
            same |= others(step.prints, printed)
            lines = not_printed([here(line) for line in step.prints], printed)
            as_said = code == step.code and not lines
            if as_said or not step.later or time.monotonic() > last:
                break
            time.sleep(1)
        said = f"{commands}\nexit code {code}, not {step.code}\n{printed}"
        assert code == step.code, said
        everything += printed
        if lines:
            missing += ["the page says, but this was not printed:", *lines, "", said]
    assert not missing, "\n".join(missing)
    return everything
