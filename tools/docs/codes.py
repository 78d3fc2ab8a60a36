"""The pages about codes and words of one list each: errors, findings, verdicts and outcomes."""

from __future__ import annotations

from runner.model.errors import CODES, FAILED, ORGANISER, PLATFORM, USAGE
from tools.docs.asking import ask
from tools.docs.tables import grid, page

_EXIT = {
    FAILED: "the thing asked about failed",
    USAGE: "usage",
    PLATFORM: "platform",
    ORGANISER: "organiser's files",
}


def errors() -> str:
    """The page about error codes."""
    rows = [(_anchor(code), c.exit, c.text) for code, c in sorted(CODES.items())]
    exits = ", ".join(f"{number} {meaning}" for number, meaning in sorted(_EXIT.items()))
    head = f"Every error is shown as what happened, why, and how to fix it, under one of these codes. Exit codes: 0 fine, {exits}, 130 interrupted.\n"
    return page("Errors", head, grid("code, exit, meaning", rows))


def _anchor(code: str) -> str:
    """A code that a link can lead to."""
    return f'<a id="{code.lower()}"></a>{code}'


def findings() -> str:
    """The page about what the evaluator can find wrong with a run file."""
    found = ask("from evaluator.codes import CODES; found = [c._asdict() for c in CODES.values()]")
    rows = [(_anchor(c["code"]), c["severity"], c["title"], c["fix"], c["otherwise"]) for c in found]
    return page("Findings", _FINDINGS, grid("code, severity, what, fix, where it is no error", rows))


_FINDINGS = """\
A finding is one thing that is wrong with a run file. It is shown as `file:line: code severity: what. Fix: ...`.
All findings of a file are listed at once; beyond a thousand they are only counted.

- `error`: the run is invalid, and is not ranked.
- `defect`: that topic (that debate, turn or query) scores 0; the rest counts. A finding that is about no topic, such
  as a damaged file, is an error under `defect`.
- `warning`: nothing changes, but somebody should know.
- `ignore`: nothing changes, and nothing is reported.

These are the severities that hold unless a task changes them (`severities` in [task.yaml](task.md)). Not everything
can count as it is: some lines cannot be read, and some have no place in a ranking. The last column says what happens
to them where the finding is no error; where it is empty, what was found counts like everything else. What is left out
may be missing then, and that is a finding of its own, such as F018 or F110. `evaluator codes` prints this list.
"""


_OUTCOMES = """\
## Outcomes

What the leaderboard and `runner runs` show. An outcome is derived from the verdicts of all attempts, their
evaluations, and what people did; it is stored nowhere.

| outcome | from | ranked | costs quota |
|---|---|---|---|
| `scored` | verdict `ok`, evaluation `valid` | yes | yes |
| `invalid` | verdict `ok`, evaluation `invalid` (a [finding](findings.md) of severity error) | no, listed below | yes |
| `failed` | a verdict that blames the participant | no, listed below | yes |
| `pending` | not executed or not evaluated yet; a failure of ours that is tried again | no | counts as open |
| `running` | being executed now | no | counts as open |
| `held` | our side or the evaluator failed for good, or the verdict is `disputed` or `killed-outside`: the organiser has to look | no | no |
| `cancelled` | a person stopped it | no | no |
| `withdrawn` | the submission was taken back | no | only if it had run, and was not withdrawn `--uncharged` |
"""


def verdicts() -> str:
    """The page about verdicts and outcomes."""
    from runner.model.verdict import TABLE

    head = """\
How one execution ended, and whose fault it was. The rows are tried in this order; the first that fits is the verdict.
The raw facts (exit code, memory kill, resources) stay in `run.json` beside it.

`killed-outside` is decided by facts that a software cannot make up: the engine's record of what it was asked to do (`docker
kill`, `stop`, `pause`), the kernel's log of memory kills (the machine was out of memory, not the container), and how the
container's first process ended, which is our init and cannot be killed from inside (limits on processor time, which would
end it, cannot be set there). The last two need an engine on this machine, the last one also Linux 6.15 or newer. A SIGKILL from the machine to the software's own process, past the
init, looks exactly like one that the software sent to itself: that stays `signal`.

A run at the wall-clock limit is a `time-limit`, unless the machine had no time for it: where less than 5 % of its processors' time was free
while it ran, it had less than 80 % of the processor time that it may use, and its threads were ready to run for the rest of the time and
had no processor, the verdict is `platform-error`, and it is run again. `idle` and `waited` in `run.json` say so; they are read where the
engine is on this machine, and decide about software that writes files. A limit on
processor time (`cpu_time`) does not depend on how busy a machine is, and `pinned` keeps other pinned runs away.
"""
    rows = [(f"`{name}`", row.blame, row.says, row.next) for name, row in TABLE.items()]
    return page("Verdicts and outcomes", head, grid("verdict, blame, what, what next", rows), _OUTCOMES)
