"""Who may see what: the one place that decides (design.md, principle 7).

:func:`permissions_for` is the rule; :func:`redact_run` applies it to everything that is known about a run and returns
a :class:`RunView`, which nothing else can make. What renders runs for people, files or pages takes views
only.

On a blinded dataset the software has read the hidden inputs, so whatever it chose itself (file names, the
run tag, log lines, error texts) could carry them out, and so could whatever is measured of it. A team gets none of
that back: only the outcome, and a few steps in place of figures (:mod:`runner.views.coarse`), until the organiser
releases the run. Mean scores go their own way: the dataset's ``scores`` and ``runner publish`` decide.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import schemas
from runner.model.errors import RunnerError, no_such
from runner.views import coarse

if TYPE_CHECKING:
    from runner.model.run import FindingCount, Run
    from runner.model.task import Dataset
    from runner.records.store.queries import RunDetail

LOG_LINES = 50
MAX_FINDINGS = 1000
_LOG_WINDOW = 64 * 1024
_TEAM = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


@dataclass(frozen=True)
class Audience:
    """Who looks: the ``organiser``, one ``team``, or the ``public``."""

    kind: Literal["organiser", "team", "public"]
    team: str | None = None

    def __str__(self) -> str:
        return f"team:{self.team}" if self.kind == "team" else self.kind

    @classmethod
    def parse(cls, text: str) -> Audience:
        """The audience named by ``organiser``, ``public`` or ``team:NAME``. Raises E101."""
        if text in ("organiser", "public"):
            return cls("organiser" if text == "organiser" else "public")
        kind, _, team = text.partition(":")
        if kind == "team" and _TEAM.fullmatch(team):
            return cls("team", team)
        why, fix = "What is shown depends on who looks.", "use organiser, team:NAME or public"
        raise no_such("audience", text, why=why, fix=fix, code="E101")


ORGANISER = Audience("organiser")
PUBLIC = Audience("public")


@dataclass(frozen=True)
class Permissions:
    """What one audience may see of one run.

    ``run``: that it exists, its outcome, verdict, blame, and steps. ``words``: text and names that the software or
    the evaluator wrote (logs, findings, file names, run tag), and exact figures, times and exit codes. ``scores``:
    aggregates. ``topics``: per-topic scores, and the run's files. ``inside``: facts about the platform (host, engine,
    evaluator's logs).
    """

    run: bool
    words: bool
    scores: bool
    topics: bool
    inside: bool


def permissions_for(
    audience: Audience, team: str, dataset: Dataset, published: bool, released: bool = False
) -> Permissions:
    """What ``audience`` may see of a run of ``team`` on ``dataset``.

    The organiser decided whether its scores are ``published``, and whether this attempt is ``released`` to its team.
    """
    if audience.kind == "organiser":
        return Permissions(True, True, True, True, True)
    own = audience.kind == "team" and audience.team == team
    if not own:
        return Permissions(False, False, scores_open(dataset, published), False, False)
    open_ = dataset.visibility == "public"
    return Permissions(True, open_ or released, scores_open(dataset, published), open_, False)


def sees_inside(audience: Audience, team: str, dataset: Dataset, published: bool) -> bool:
    """Whether ``audience`` may see what a run is made of: transcripts, sentences, what each of them was judged."""
    may = permissions_for(audience, team, dataset, published)
    return may.words and may.topics


def scores_open(dataset: Dataset, published: bool) -> bool:
    """Whether everybody may see mean scores on this dataset."""
    return dataset.visibility == "public" or dataset.scores == "public" or published


def without_free_text(run: Run, dataset: Dataset) -> Run:
    """A run as everybody's boards show it: without counts, and the free words of an evaluator that is not ours, about hidden data.

    Ours writes fixed words and counts; another could repeat what it saw of the truths, or what a software carried out.
    """
    if dataset.visibility == "public":
        return run
    note = coarse.unnumbered(str((run.judge or {}).get("note") or "")) if run.ours else ""
    judge = None if run.judge is None else {**run.judge, "note": note}
    return replace(
        run, judge=judge, notes=tuple(coarse.unnumbered(line) for line in run.notes) if run.ours else ()
    )


_FROM_REDACTION = object()


class RunView(Mapping[str, Any]):
    """What one audience may see of a run: plain data, ready for JSON. Only :func:`redact_run` makes one.

    ``hidden`` names the sections that were left out for this audience. Text in it was escaped: it holds no
    control characters.
    """

    def __init__(self, data: Mapping[str, Any], audience: Audience, *, made_by: object) -> None:
        if made_by is not _FROM_REDACTION:
            raise TypeError("a RunView is made by redact_run only")
        self._data = dict(data)
        self.audience = audience

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)


def redact_row(run: Run, audience: Audience, dataset: Dataset, published: bool = False) -> RunView | None:
    """One line of a list of runs for ``audience``; None when it may not know of this run."""
    may = permissions_for(audience, run.submission.team, dataset, published, run.released)
    return RunView(_row(run, may), audience, made_by=_FROM_REDACTION) if may.run else None


def redact_findings(
    run: Run, found: Iterable[FindingCount], audience: Audience, dataset: Dataset, published: bool = False
) -> dict[str, dict[str, Any]]:
    """What ``audience`` may know of the findings of a run: by code its severity, title, and ``count`` or ``amount``.

    Empty when it may not know of the run. On hidden data only the gravest code is told, with few or many.
    """
    may = permissions_for(audience, run.submission.team, dataset, published, run.released)
    return _codes(run, found, may.words, run.ours) if may.run else {}


def topics_escaped(scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Scores by measure and topic with escaped topics: their names come from the evaluator."""
    return {
        measure: {escape(topic, 200): value for topic, value in one.items()}
        for measure, one in scores.items()
    }


def topics_open(run: Run, audience: Audience, dataset: Dataset, published: bool = False) -> bool:
    """Whether ``audience`` may see the scores of a run topic by topic."""
    may = permissions_for(audience, run.submission.team, dataset, published, run.released)
    return may.run and may.topics


def redact_run(detail: RunDetail, audience: Audience, dataset: Dataset) -> RunView:
    """Everything that ``audience`` may see of a run. Raises E103 when that is nothing."""
    run = detail.run
    may = _sight(audience, detail, dataset)
    if not may.run:
        raise not_for(audience, f"run {run.id}")
    shown = run if may.words else without_free_text(run, dataset)
    view: dict[str, Any] = {
        **_row(run, may),
        "description": escape(run.submission.description, 2000),
        "image": run.submission.image,
        "scores": _scores(detail) if may.scores else {},
        "pending": _pending(detail, may) if may.scores else {},
        "judge": _escaped(shown.judge) if may.scores else None,
        "notes": _escaped(shown.notes) if may.scores else [],
        "topic_scores": topics_escaped(detail.topics) if may.topics else {},
        "limits": dict(detail.lock.get("limits") or {}),
        "exceptions": dict(detail.lock.get("exceptions") or {}),
        "command": _escaped(detail.lock.get("command")),
        **(_exact(detail) if may.words else _coarse(detail)),
        "hidden": [],
    }
    if may.inside:
        record = detail.record
        view["inside"] = {
            "exit": _escaped(record.get("exit")),
            "engine": record.get("engine"),
            "host": record.get("host"),
            "runner_version": record.get("runner_version"),
            "folder": None if detail.attempt is None else str(detail.attempt.path),
            "sidecar_logs": list(sidecar_logs(detail)),
            "evaluations": [
                {**{k: _escaped(v) for k, v in row.items()}, "default_image": bool(row["default_image"])}
                for row in detail.evaluation_rows
            ],
        }
    view["hidden"] = [
        name
        for name, shown in (
            ("logs", may.words),
            ("finding texts", may.words),
            ("file names", may.words),
            ("exact figures", may.words),
            ("scores", may.scores),
            ("per-topic scores", may.topics),
        )
        if not shown
    ]
    return RunView(view, audience, made_by=_FROM_REDACTION)


def _sight(audience: Audience, detail: RunDetail, dataset: Dataset) -> Permissions:
    return permissions_for(audience, detail.run.submission.team, dataset, detail.published, detail.released)


def _exact(detail: RunDetail) -> dict[str, Any]:
    """What only those may see who may see the software's words."""
    record = detail.record
    return {
        "attempt": None if detail.attempt is None else detail.attempt.number,
        "attempt_list": [
            {k: row[k] for k in ("number", "verdict", "started", "finished", "wall_seconds")}
            for row in detail.attempt_rows
        ],
        "verdict": _verdict(record, words=True),
        "output": _output(record),
        "findings": {
            "counts": _counts(detail),
            "codes": _codes(detail.run, detail.findings, True, _ours(detail)),
            "lines": _finding_lines(detail),
        },
        "run_tag": escape(_evaluation_row(detail).get("run_tag") or "", 80),
        "log": _logs(detail),
        "lock_digest": detail.record.get("lock_digest"),
    }


def _coarse(detail: RunDetail) -> dict[str, Any]:
    """The same in few values. The lock's digest is left out: it depends on runs that a stage takes, and on hidden files."""
    run = detail.run
    return {
        "attempt": None,
        "attempt_list": [],
        "verdict": _verdict(detail.record, words=False),
        "output": None,
        "steps": {**coarse.steps_of(run), "size": coarse.size_of(run, detail.record)},
        "findings": {
            "counts": {},
            "codes": _codes(run, detail.findings, False, _ours(detail)),
            "lines": [],
        },
        "run_tag": None,
        "log": {},
        "lock_digest": None,
    }


def check_log(
    detail: RunDetail,
    audience: Audience,
    dataset: Dataset,
    *,
    evaluator: bool = False,
    sidecar: str | None = None,
) -> None:
    """Raise E103 when ``audience`` may not read this log of a run, whether there is one or not."""
    may = _sight(audience, detail, dataset)
    if not (may.inside if evaluator or sidecar is not None else may.words):
        what = "the evaluator's log" if evaluator else "the log of a run on a blinded dataset"
        raise not_for(audience, what if sidecar is None else "the logs of the containers beside a software")


def log_lines(
    detail: RunDetail,
    audience: Audience,
    dataset: Dataset,
    stream: str = "stdout",
    *,
    evaluator: bool = False,
    sidecar: str | None = None,
) -> Iterator[str]:
    """The whole log of a run, line by line and escaped: of the software, or for the organiser of the evaluator or of
    ``sidecar`` (a container of ours beside the software, see :func:`sidecar_logs`; then ``stream`` has no meaning).

    Raises E103 when this audience may not read it, E102 when there is none.
    """
    check_log(detail, audience, dataset, evaluator=evaluator, sidecar=sidecar)
    source = detail.newest if evaluator else detail.attempt
    path = None if source is None else source.path / "logs" / f"{stream}.log"
    fix = "runner show tells how far the run is"
    if sidecar is not None:
        there = sidecar_logs(detail)
        path = there.get(sidecar)
        fix = f"name one of {', '.join(there)}" if there else fix
    if path is None or not path.is_file():
        raise RunnerError("E102", f"{detail.run.id} has no such log", fix=fix)
    return _stream(path)


_LOG_NAME = re.compile(r"[a-z][a-z-]{0,39}\.(log|json)")
_OF_THE_SOFTWARE = ("stdout.log", "stderr.log")


def sidecar_logs(detail: RunDetail) -> dict[str, Path]:
    """The logs of the containers of ours beside the software by name (``search``, ``driver``, …), and ``driver.json``."""
    folder = None if detail.attempt is None else detail.attempt.path / "logs"
    if folder is None or not folder.is_dir():
        return {}
    return {
        path.name.removesuffix(".log"): path
        for path in sorted(folder.iterdir())
        if _LOG_NAME.fullmatch(path.name) and path.name not in _OF_THE_SOFTWARE and path.is_file()
    }


def may_take(audience: Audience, name: str) -> bool:
    """Whether an export for ``audience`` holds the file ``name`` of an attempt or (below ``evaluation/``) an evaluation.

    Logs of our containers and what was asked of models tell about the platform: they stay with the organiser.
    """
    if audience.kind == "organiser":
        return True
    folder, _, file = name.rpartition("/")
    if file in ("calls.jsonl", "replies.jsonl") and folder in ("", "evaluation"):
        return False
    if folder in ("logs", "evaluation/logs"):
        return folder == "logs" and file in _OF_THE_SOFTWARE
    return True


def details(detail: RunDetail, audience: Audience, dataset: Dataset) -> Iterator[dict[str, Any]]:
    """What the scores of a run are made of, topic by topic, where the evaluator says so; escaped, line by line.

    Raises E103 when this audience may not see single topics; empty when the evaluator left nothing.
    """
    if not sees_inside(audience, detail.run.submission.team, dataset, detail.published):
        raise not_for(audience, "what the scores on a blinded dataset are made of")
    path = None if detail.evaluation is None else detail.evaluation.path / "details.jsonl"
    return _details(path) if path is not None and path.is_file() else iter(())


def _details(path: Path) -> Iterator[dict[str, Any]]:
    from runner.records.archive import read_lines

    for line in read_lines(path):
        yield _escaped(line)


def may_export(detail: RunDetail, audience: Audience, dataset: Dataset) -> None:
    """Whether ``audience`` may have the run's files as they are. Raises E103.

    Also of a released run: an evaluation lies beside them, with scores by topic.
    """
    may = _sight(audience, detail, dataset)
    if not (may.run and may.words and may.topics):
        raise not_for(audience, "the files of a run on a blinded dataset")


def not_for(audience: Audience, what: str) -> RunnerError:
    """The error for something that this audience may not see."""
    return RunnerError(
        "E103",
        f"not open to {audience}: {escape(what, 200)}",
        why="Hidden data could be read back from it."
        if audience.kind == "team"
        else "Only leaderboards with published scores are public.",
        fix="ask the organiser",
    )


def escape(text: object, limit: int = 500) -> str:
    """``text`` without anything that moves a terminal's cursor, reverses text or breaks a line, and not longer
    than ``limit`` characters. Characters that do not print become ``\\x1b``-like sequences."""
    return schemas.show(text, limit)


_DEPTH = 40  # levels of JSON data that are looked at


def _escaped(value: Any, depth: int = _DEPTH) -> Any:
    """``value`` (JSON data) with every string in it escaped; what is nested deeper than 40 levels becomes "…"."""
    if isinstance(value, str):
        return escape(value, 2000)
    if depth == 0 and isinstance(value, Mapping | list | tuple):
        return "…"
    if isinstance(value, Mapping):
        return {escape(k, 200): _escaped(v, depth - 1) for k, v in value.items()}
    return [_escaped(v, depth - 1) for v in value] if isinstance(value, list | tuple) else value


def _row(run: Run, may: Permissions) -> dict[str, Any]:
    outcome = run.outcome
    s = run.submission
    return {
        "run": run.id,
        "submission": s.id,
        "task": s.task,
        "team": s.team,
        "software": s.software,
        "tag": escape(s.tag, 80),
        "method": s.method,
        "how": s.how,
        "dataset": run.dataset,
        "scenario": run.scenario,
        "registered": s.registered,
        "attempts": run.attempts if may.words else None,
        "started": run.started if may.words else coarse.day(run.first_started),
        "finished": run.finished if may.words else None,
        "outcome": {
            "name": outcome.name,
            "says": outcome.says,
            "reason": escape(outcome.reason) if may.words or may.inside else "",
            "blame": outcome.blame,
            "next": outcome.next,
            "ranked": outcome.ranked,
            "costs_quota": outcome.costs_quota,
            "verdict": outcome.verdict,
        },
        "stale": list(run.stale),
        "resources": {
            "wall_seconds": run.wall_seconds if may.words else None,
            "cpu_seconds": run.cpu_seconds if may.words else None,
            "memory_peak": run.memory_peak if may.words else None,
            "memory_source": run.memory_source if may.words else "none",
        },
        "steps": None if may.words else coarse.steps_of(run),
    }


def _verdict(record: Mapping[str, Any], *, words: bool) -> dict[str, Any] | None:
    """How the attempt ended. Details and warnings hold exit codes, counts and names, so they come with ``words`` only."""
    from runner.model.verdict import TABLE

    verdict = record.get("verdict")
    if not verdict:
        return None
    row = TABLE[verdict["name"]]
    return {
        "name": verdict["name"],
        "says": row.says,
        "detail": escape(verdict.get("detail") or "") if words else "",
        "blame": row.blame,
        "next": row.next,
        "warnings": [escape(w) for w in verdict.get("warnings") or []] if words else [],
    }


def _output(record: Mapping[str, Any]) -> dict[str, Any] | None:
    output = record.get("output")
    if not output:
        return None
    return {
        "file": _escaped(output.get("file")),
        "files": _escaped(output.get("files") or []),
        "refused": _escaped(output.get("refused") or []),
        "bytes": output.get("bytes"),
        "full": output.get("full"),
    }


def _evaluation_row(detail: RunDetail) -> Mapping[str, Any]:
    if detail.evaluation is None:
        return {}
    wanted = (detail.evaluation.attempt, detail.evaluation.k)
    return next((r for r in detail.evaluation_rows if (r["attempt"], r["number"]) == wanted), {})


def _counts(detail: RunDetail) -> dict[str, int]:
    row = _evaluation_row(detail)
    return {"error": row.get("errors", 0), "defect": row.get("defects", 0), "warning": row.get("warnings", 0)}


def _ours(detail: RunDetail) -> bool:
    """Whether the platform's own evaluator made the evaluation."""
    return bool(_evaluation_row(detail).get("default_image"))


def _pending(detail: RunDetail, may: Permissions) -> dict[str, str]:
    return {m: escape(why, 300) if may.words else "not judged yet" for m, why in detail.pending.items()}


def _codes(run: Run, found: Iterable[FindingCount], words: bool, ours: bool) -> dict[str, dict[str, Any]]:
    """The codes of findings: all with their counts, or without ``words`` the gravest one, in few values."""
    if words:
        return {escape(f.code, 80): _code(f) for f in found}
    judged = run.outcome.name in ("scored", "invalid")
    return {
        escape(code, 20): {**one, "title": escape(one["title"], 120)}
        for code, one in coarse.gravest(found if judged else (), ours).items()
    }


def _code(finding: FindingCount) -> dict[str, Any]:
    return {
        "severity": escape(finding.severity, 20),
        "count": finding.count,
        "amount": None,
        "title": escape(finding.title, 120),
    }


def _finding_lines(detail: RunDetail) -> list[dict[str, Any]]:
    if detail.evaluation is None:
        return []
    lines = []
    for n, finding in enumerate(detail.evaluation.findings()):
        if n >= MAX_FINDINGS:
            break
        lines.append(_escaped(finding))
    return lines


def _scores(detail: RunDetail) -> dict[str, Any]:
    return {
        name: {
            "value": m.value,
            "topics": m.topics,
            "covered": m.covered,
            "measure": m.measure or None,
            "interval": None if m.low is None else [m.low, m.high],
        }
        for name, m in detail.measures.items()
    }


def _logs(detail: RunDetail) -> dict[str, list[str]]:
    if detail.attempt is None:
        return {}
    return {name: _tail(detail.attempt.log(name), LOG_LINES) for name in ("stdout", "stderr")}


def _tail(path: Path, lines: int) -> list[str]:
    if not path.is_file():
        return []
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - _LOG_WINDOW))
        data = stream.read(_LOG_WINDOW)
    if size > _LOG_WINDOW:
        data = data.partition(b"\n")[2] or data
    kept = deque(data.decode("utf-8", "replace").splitlines(), maxlen=lines)
    return [escape(line) for line in kept]


def _stream(path: Path) -> Iterator[str]:
    with path.open("rb") as stream:
        while line := stream.readline(_LOG_WINDOW):
            yield escape(line.decode("utf-8", "replace").rstrip("\r\n"), _LOG_WINDOW)
