"""Runs as people read them. Everything here takes what an audience may see (``RunView``), nothing else."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from runner.cli import output
from runner.views.redact import RunView

if TYPE_CHECKING:
    from runner.model.run import Run

LINES_PER_CODE = 3


def memory(size: int | None, source: str) -> str:
    """A peak of memory in MiB; ``≈`` when it was only sampled."""
    if size is None:
        return "not measured"
    return f"{'≈' if source == 'sampled' else ''}{size / 2**20:.0f} MiB"


def seconds(value: float | None) -> str:
    """A duration, short."""
    return "" if value is None else f"{value:.1f} s"


def time_of(view: RunView) -> str:
    """How long a run took: in seconds, or the step where its audience gets no more."""
    steps, used = view["steps"], view["resources"]
    return seconds(used["wall_seconds"]) if steps is None else steps["time"] or ""


def memory_of(view: RunView) -> str:
    """How much memory a run used at most, or the step where its audience gets no more."""
    steps, used = view["steps"], view["resources"]
    return memory(used["memory_peak"], used["memory_source"]) if steps is None else steps["memory"] or ""


def count_of(finding: dict[str, Any]) -> str:
    """How often a code was found: a number, or few or many."""
    return f"{finding['count']:,}" if finding["count"] is not None else str(finding["amount"])


def became(run: Run) -> str:
    """What became of a run that was worked on, in one line for the organiser: a failed evaluation is never called scored."""
    outcome = run.outcome
    if outcome.old:
        return f"THE EVALUATION FAILED, its scores are from before ({outcome.name}): {output.printable(outcome.reason)}"
    return f"{outcome.name}: {output.printable(outcome.reason)}" if outcome.fault else outcome.name


def outcome_line(view: RunView) -> str:
    """What became of a run, in one line."""
    outcome = view["outcome"]
    return f"{outcome['name']} – {outcome['says']}" if outcome["says"] else str(outcome["name"])


def show(view: RunView) -> None:
    """Print everything of one run that its audience may see."""
    outcome, verdict, used = view["outcome"], view["verdict"], view["resources"]
    output.facts(
        {
            "run": view["run"]
            + (f"  (attempt {view['attempt']} of {view['attempts']})" if view["attempt"] else ""),
            "started": view["started"] if view["steps"] else "",
            "outcome": outcome_line(view),
            "why": outcome["reason"] or (verdict or {}).get("detail", ""),
            "whose fault": {
                "participant": "the software's",
                "platform": "ours: it costs the team nothing",
            }.get(outcome["blame"], ""),
            "what next": outcome["next"],
            "verdict": f"{verdict['name']} – {verdict['says']} {verdict['detail']}".strip()
            if verdict
            else "",
            "warnings": "; ".join(verdict["warnings"]) if verdict else "",
            "time": time_of(view),
            "processor": seconds(used["cpu_seconds"]),
            "memory": memory_of(view) if used["wall_seconds"] is not None or view["steps"] else "",
            "size": (view["steps"] or {}).get("size") or "",
            "run tag": view["run_tag"] or "",
            "exceptions": _exceptions(view["exceptions"]),
            "files": _files(view["output"]),
            "image": view["image"] or "",
            "lock": (view["lock_digest"] or "")[:16],
        }
    )
    for line in view["stale"]:
        output.data(f"stale: {line}")
    _findings(view["findings"])
    _scores(view["scores"])
    _pending(view["pending"])
    _judge(view["judge"], view["notes"])
    _logs(view["log"])
    if view["hidden"]:
        output.data(f"\nnot shown to {view.audience}: {', '.join(view['hidden'])}")


def _exceptions(granted: dict[str, Any]) -> str:
    parts = [f"writable {', '.join(granted['writable'])}"] if granted.get("writable") else []
    return "; ".join(parts + (["root in a user namespace"] if granted.get("root") else []))


def _files(found: dict[str, Any] | None) -> str:
    if not found:
        return ""
    listed = [f"{entry['name']} ({entry['size']:,} bytes)" for entry in found["files"]]
    refused = found["refused"] if isinstance(found["refused"], int) else len(found["refused"])
    return ", ".join(listed + ([f"{refused} not taken"] if refused else []))


def _findings(findings: dict[str, Any]) -> None:
    if findings["codes"]:
        output.data("\nfindings:")
        output.table(
            ("code", "severity", "count", "what"),
            [(code, f["severity"], count_of(f), f["title"]) for code, f in findings["codes"].items()],
            right=("count",),
        )
    shown: Counter[str] = Counter()
    for line in findings["lines"]:
        shown[line["code"]] += 1
        if shown[line["code"]] <= LINES_PER_CODE:
            output.data(f"  {finding(line)}")
    left = sum(max(0, count - LINES_PER_CODE) for count in shown.values())
    if left:
        output.data(f"  … and {left} more of the same kinds; --json shows them")


def finding(line: dict[str, Any]) -> str:
    """One finding in one line: place, code, severity, what, and how to mend it."""
    place = line.get("file", "") + (f":{line['line']}" if line.get("line") else "")
    message = line["message"].rstrip(".")
    fix = f" Fix: {line['fix']}" if line.get("fix") else ""
    return f"{place}: {line['code']} {line['severity']}: {message}.{fix}"


def _scores(scores: dict[str, Any]) -> None:
    if scores:
        output.data("\nscores:")
        rows = []
        for name, score in scores.items():
            interval = score["interval"]
            bounds = f"[{interval[0]:.4f}, {interval[1]:.4f}]" if interval else ""
            topics = f"{score['covered']} of {score['topics']}"
            rows.append((name, score.get("measure") or "", f"{score['value']:.4f}", bounds, topics))
        output.table(
            ("measure", "computed", "mean", "95 % interval", "topics answered"), rows, right=("mean",)
        )


def _pending(pending: dict[str, str]) -> None:
    by_reason: dict[str, list[str]] = {}
    for name, why in pending.items():
        by_reason.setdefault(why, []).append(name)
    for why, names in by_reason.items():
        output.data(f"  no value ({why}): {', '.join(names)}")


def _judge(judge: dict[str, Any] | None, notes: list[str]) -> None:
    """Who judged and how reliable that is, beside the scores."""
    if judge:
        facts = [judge["name"]]
        facts += [f"model {judge['model']}"] if judge.get("model") else []
        facts += [f"prompts {judge['prompts'].removeprefix('sha256:')[:12]}"] if judge.get("prompts") else []
        known = judge.get("reliability") or {}
        facts += [f"{name} {value:.4g}" for name, value in known.items()] or ["no measured reliability"]
        output.data(f"\njudged by: {', '.join(facts)}" + (f". {judge['note']}" if judge.get("note") else ""))
    for note in notes:
        output.data(f"note: {note}")


def _logs(logs: dict[str, list[str]]) -> None:
    for stream, lines in logs.items():
        if lines:
            output.data(f"\nlast lines of {stream}:")
            for line in lines:
                output.data(f"  | {line}")
