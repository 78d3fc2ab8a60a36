"""One presentation of a run: the texts that a terminal and a page show of a view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runner.model.limits import amounts, in_units
from runner.model.names import ABOUT
from runner.views import coarse
from runner.views.redact import RunView
from runner.views.text import amount_of_time, memory, seconds
from schemas.findings import describe, group_warnings, severity_rank

LINES_PER_CODE = 3
SHOWN_VALUES = 8  # of what a team says in ir-metadata.yml
BLAME = {"participant": "the software's", "platform": "ours: it costs the team nothing"}
SCORE_HEADS = ("measure", "computed", "mean", "95 % interval", "topics answered")
FINDING_HEADS = ("code", "severity", "count", "what")


@dataclass(frozen=True)
class Presentation:
    """What is shown of a run. Rows have the columns of :data:`SCORE_HEADS` and :data:`FINDING_HEADS`.

    ``facts`` are texts by name, empty where nothing is known; ``pending`` says why measures have no value; ``judge`` says
    who judged, ``lines`` are single findings, ``hidden`` says what this audience may not see.
    """

    view: RunView
    facts: Mapping[str, str]
    scores: tuple[tuple[str, ...], ...]
    pending: Mapping[str, str]
    judge: str
    findings: tuple[tuple[str, ...], ...]
    lines: tuple[str, ...]
    logs: Mapping[str, tuple[str, ...]]
    hidden: str

    def without_value(self) -> Iterator[str]:
        """Why measures have no value: one line a reason, with their names."""
        for why in dict.fromkeys(self.pending.values()):
            names = ", ".join(name for name, reason in self.pending.items() if reason == why)
            yield f"no value ({why}): {names}"

    def some_lines(self) -> Iterator[str]:
        """Yield the first :data:`LINES_PER_CODE` errors of each code, one line for each code of warnings, and the rest's number."""
        seen: Counter[str] = Counter()
        for row in _grouped(self.view):
            seen[row["code"]] += 1
            if seen[row["code"]] <= LINES_PER_CODE:
                yield describe(row)
        left = sum(max(0, count - LINES_PER_CODE) for count in seen.values())
        if left:
            yield f"… and {left} more of the same kinds; --json shows them"


def present(view: RunView) -> Presentation:
    """The texts of a view."""
    return Presentation(
        view,
        _facts(view),
        tuple(_score(name, score) for name, score in view["scores"].items()),
        view["pending"],
        _judge(view["judge"]),
        tuple(
            (code, f["severity"], str(f["amount"]) if f["count"] is None else f"{f['count']:,}", f["title"])
            for code, f in _codes_in_order(view)
        ),
        tuple(map(describe, _grouped(view))),
        {stream: tuple(lines) for stream, lines in view["log"].items() if lines},
        ", ".join(view["hidden"]),
    )


def time_of(view: RunView) -> str:
    """How long a run took: in seconds, or the step where its audience gets no more."""
    steps = view["steps"]
    return seconds(view["resources"]["wall_seconds"]) if steps is None else steps["time"] or ""


def memory_of(view: RunView) -> str:
    """How much memory a run used at most, or the step where its audience gets no more."""
    steps, used = view["steps"], view["resources"]
    if steps is not None:
        return steps["memory"] or ""
    return memory(used["memory_peak"], used["memory_source"]) or "not measured"


@dataclass(frozen=True)
class Used:
    """How much of a resource a run used (``value``, None where its audience gets a step only), and its ``limit``; both in ``words``."""

    name: str
    value: float | None
    limit: float | None
    words: str


def resources(view: RunView) -> list[Used]:
    """Time, memory and size of the output of a run that was executed, over its limits."""
    limits, output, steps = view["limits"], view["output"] or {}, view["steps"] or {}
    measured = view["resources"]
    rows = (
        ("time", measured["wall_seconds"], limits.get("wall_clock"), time_of(view), amount_of_time),
        (
            "processor",
            measured["cpu_seconds"],
            limits.get("cpu_time"),
            seconds(measured["cpu_seconds"]),
            amount_of_time,
        ),
        ("memory", measured["memory_peak"], limits.get("memory"), memory_of(view), in_units),
        ("output", output.get("bytes"), limits.get("output"), _size(output, steps), in_units),
    )
    reached = _REACHED.get((view["verdict"] or {}).get("name", ""), "")
    if view["how"] != "executed" or (measured["wall_seconds"] is None and not view["steps"]):
        return []
    return [
        Used(name, value, limit, _of_limit(said, limit, unit, name == reached) if limit else said)
        for name, value, limit, said, unit in rows
        if said
    ]


# The verdicts that say of a resource that its limit was reached.
_REACHED = {
    "time-limit": "time",
    "cpu-limit": "processor",
    "memory-limit": "memory",
    "output-limit": "output",
}


def _of_limit(said: str, limit: float, unit: Callable[[Any], str], reached: bool) -> str:
    """An amount and its limit. A step that ends beyond the limit says less than that the limit was kept, or was not."""
    if coarse.ends().get(said, 0) > limit:
        return f"all of {unit(limit)}" if reached else f"within {unit(limit)}"
    return f"{said} of {unit(limit)}"


def _size(output: Mapping[str, Any], steps: Mapping[str, Any]) -> str:
    """How large an output is, or its step."""
    return in_units(output["bytes"]) if output.get("bytes") is not None else steps.get("size") or ""


def _codes_in_order(view: RunView) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the codes of findings, the gravest first."""
    return sorted(view["findings"]["codes"].items(), key=lambda item: severity_rank(item[1]["severity"]))


def _grouped(view: RunView) -> list[dict[str, Any]]:
    """Return single findings, errors first, and one row for all warnings of a code."""
    codes = view["findings"]["codes"]
    counts = {code: one["count"] for code, one in codes.items() if one["count"] is not None}
    return group_warnings(view["findings"]["lines"], counts)


def _facts(view: RunView) -> dict[str, str]:
    outcome, verdict, used = view["outcome"], view["verdict"] or {}, view["resources"]
    steps = view["steps"] or {}
    uploaded = view["how"] == "uploaded" and verdict.get("name") == "ok"
    says = "The run file was taken as it was handed in." if uploaded else verdict.get("says", "")
    ended = f"{verdict['name']} – {says} {verdict['detail']}".strip() if verdict else ""
    attempt = f"  (attempt {view['attempt']} of {view['attempts']})" if view["attempt"] else ""
    return {
        "run": f"{view['run']}{attempt}",
        "called": ": ".join(view[name] for name in ("team_display_name", "display_name") if name in view),
        **{name: view[name] for name in ("task", "dataset", "team", "software")},
        "started": view["started"] or "",
        "review": _review(view["review"]),
        "outcome": f"{outcome['name']} – {outcome['says']}" if outcome["says"] else outcome["name"],
        "why": outcome["reason"] or verdict.get("detail", ""),
        "whose fault": BLAME.get(outcome["blame"], ""),
        "what next": outcome["next"],
        "verdict": ended,
        "warnings": "; ".join(verdict.get("warnings", ())),
        "time": time_of(view),
        "processor": seconds(used["cpu_seconds"]),
        "memory": memory_of(view) if used["wall_seconds"] is not None or steps else "",
        "size": steps.get("size") or "",
        "limits": amounts(
            {key: view["limits"].get(key, value) for key, value in view.get("asked", {}).items()}
        ),
        "run tag": view["run_tag"] or "",
        "exceptions": _exceptions(view["exceptions"]),
        "files": _files(view["output"]),
        "image": view["image"] or "",
        "source": _source(view.get("source")),
        "ir_metadata": _metadata(view.get("ir_metadata")),
        "lock": (view["lock_digest"] or "")[:16],
        "description": view["description"],
        **{name: view.get(name, "") for name in ABOUT},
    }


def _review(said: Mapping[str, str] | None) -> str:
    """What the organiser decided, with the reason; empty where nothing was, or this audience is not told."""
    if said is None:
        return ""
    return said["state"] + (f": {said['reason']}" if said["reason"] else "")


def comments(view: RunView) -> list[str]:
    """The comments on a run, a line each: when, who, and where only organisers read it, that."""
    alone = {"organiser": " (organisers only)", "team": ""} if view.audience.kind == "organiser" else {}
    return [
        f"{one['at'][:16].replace('T', ' ')} UTC {one['who']}{alone.get(one['to'], '')}: {one['text']}"
        for one in view["comments"]
    ]


def _source(source: Mapping[str, Any] | None) -> str:
    """Where the files of a submission come from, as whoever packed it says."""
    if not source:
        return ""
    changed = ", with changes that are not committed" if source.get("dirty") else ""
    return f"{source.get('remote') or 'a repository without a public address'} at {str(source.get('commit'))[:12]}{changed}"


def _metadata(said: Mapping[str, Any] | None) -> str:
    """The first values of what a team says of its experiment, and what is remarked on them."""
    if not said:
        return ""
    values = list(said["values"].items())
    parts = [f"{path}: {value}" for path, value in values[:SHOWN_VALUES]]
    parts += [f"{len(values) - SHOWN_VALUES} more (--json)"] if len(values) > SHOWN_VALUES else []
    return "; ".join([*parts, *said["remarks"]])


def _exceptions(granted: Mapping[str, Any]) -> str:
    parts = [f"writable {', '.join(granted['writable'])}"] if granted.get("writable") else []
    return "; ".join(parts + (["root in a user namespace"] if granted.get("root") else []))


def _files(found: Mapping[str, Any] | None) -> str:
    if not found:
        return ""
    listed = [f"{entry['name']} ({entry['size']:,} bytes)" for entry in found["files"]]
    refused = found["refused"] if isinstance(found["refused"], int) else len(found["refused"])
    return ", ".join(listed + ([f"{refused} not taken"] if refused else []))


def _score(name: str, score: Mapping[str, Any]) -> tuple[str, ...]:
    interval = score["interval"]
    places = score.get("precision", 4)
    bounds = f"[{interval[0]:.{places}f}, {interval[1]:.{places}f}]" if interval else ""
    topics = f"{'–' if score['covered'] is None else score['covered']} of {score['topics']}"
    return name, score.get("measure") or "", f"{score['value']:.{places}f}", bounds, topics


def _judge(judge: Mapping[str, Any] | None) -> str:
    """Who judged, and how reliable that is; empty where nobody did."""
    if not judge:
        return ""
    facts = [str(judge["name"])]
    facts += [f"model {judge['model']}"] if judge.get("model") else []
    facts += [f"prompts {judge['prompts'].removeprefix('sha256:')[:12]}"] if judge.get("prompts") else []
    known = judge.get("reliability") or {}
    facts += [f"{name} {value:.4g}" for name, value in known.items()] or ["no measured reliability"]
    return ", ".join(facts) + (f". {judge['note']}" if judge.get("note") else "")
