"""Logs of a run, escaped: of the software for those who may see its words, of our containers for the organiser."""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from runner.model.errors import RunnerError
from runner.views.audience import OF_THE_SOFTWARE, Audience, check_log, escape, excerpts_for, permissions_of

if TYPE_CHECKING:
    from runner.model.task import Dataset
    from runner.records.contents import KeptFile
    from runner.records.store.run_detail import RunDetail

LOG_LINES = 50
MOST_LOG = 256 * 1024  # characters of a stream of a log on a page
MAX_LINE = _LOG_WINDOW = 64 * 1024
_WHOLE = 1 << 40  # characters of a text that is not cut
_LOG_NAME = re.compile(r"[a-z][a-z-]{0,39}\.(log|json)")


def log_lines(
    found: RunDetail,
    audience: Audience,
    dataset: Dataset,
    stream: str = "stdout",
    *,
    evaluator: bool = False,
    sidecar: str | None = None,
) -> Iterator[str]:
    """The whole log of a run, line by line and escaped: of the software, or for the organiser of the evaluator or of
    ``sidecar`` (a container of ours beside the software, see :func:`sidecar_logs`; then ``stream`` has no meaning).

    A team that was given excerpts of a log gets these. Raises E103 when this audience may not read it, E102 when there is none.
    """
    given = (
        excerpts_for(found, audience) if audience.kind == "team" and not evaluator and sidecar is None else ()
    )
    if given and not permissions_of(found, audience, dataset).free_text:
        own = (one for one in given if one.stream == stream)
        return (escape(line, MAX_LINE) for one in own for line in one.text.split("\n"))
    check_log(found, audience, dataset, evaluator=evaluator, sidecar=sidecar)
    source = found.newest if evaluator else found.attempt
    file = None if source is None else source.file(f"logs/{stream}.log")
    fix = "runner show tells how far the run is"
    if sidecar is not None:
        known = sidecar_logs(found)
        file = known.get(sidecar)
        fix = f"name one of {', '.join(known)}" if known else fix
    if file is None:
        raise RunnerError("E102", f"{found.run.id} has no such log", fix=fix)
    return _stream(file)


def sidecar_logs(found: RunDetail) -> dict[str, KeptFile]:
    """The logs of the containers of ours beside the software by name (``search``, ``driver``, …), and ``driver.json``."""
    files = {} if found.attempt is None else found.attempt.files("logs")
    return {
        name.removesuffix(".log"): file
        for name, file in files.items()
        if _LOG_NAME.fullmatch(name) and name not in OF_THE_SOFTWARE
    }


def log_of(found: RunDetail, audience: Audience, dataset: Dataset) -> dict[str, list[str]]:
    """The log of a run as ``runner logs`` prints it, ``stdout`` and ``stderr`` by line; only the beginning of a long one. Empty
    where there is none for this audience."""
    streams: dict[str, list[str]] = {}
    try:
        for stream in ("stdout", "stderr"):
            lines, left = [], MOST_LOG
            for line in log_lines(found, audience, dataset, stream):
                left -= len(line) + 1
                if left < 0:
                    lines.append(f"[cut: the server shows the first {MOST_LOG // 1024} KiB]")
                    break
                lines.append(line)
            streams[stream] = lines
    except RunnerError as error:
        if error.code not in ("E102", "E103"):
            raise
        return {}
    return streams


class Writing:
    """The end of what a software writes, escaped like a log: at most ``most`` characters of :attr:`text`, behind :attr:`first` others.

    It takes bytes as they come. Characters and ends of lines that come in two parts are one; a line may have any length.
    """

    def __init__(self, most: int) -> None:
        self._most, self.first, self.text = most, 0, ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""  # a carriage return that may belong to the end of a line

    def add(self, data: bytes) -> bool:
        """Take what came; whether the text is another one now."""
        came = (self._held + self._decoder.decode(data)).replace("\r\n", "\n")
        self._held = "\r" * came.endswith("\r")
        came = came.removesuffix("\r")
        came = "\n".join(escape(line, _WHOLE) for line in came.split("\n"))
        self.text += came
        over = max(0, len(self.text) - self._most)
        self.first, self.text = self.first + over, self.text[over:]
        return bool(came)


def last_lines(found: RunDetail) -> dict[str, list[str]]:
    """The last lines that the software wrote to ``stdout`` and ``stderr``; for those who may see its words."""
    if found.attempt is None:
        return {}
    return {name: _tail(found.attempt.file(f"logs/{name}.log"), LOG_LINES) for name in ("stdout", "stderr")}


def _tail(file: KeptFile | None, lines: int) -> list[str]:
    if file is None:
        return []
    data, size = b"", 0
    with file.open() as stream:
        while piece := stream.read(_LOG_WINDOW):
            size += len(piece)
            data = (data + piece)[-_LOG_WINDOW:]
    if size > _LOG_WINDOW:
        data = data.partition(b"\n")[2] or data
    kept = deque(data.decode("utf-8", "replace").splitlines(), maxlen=lines)
    return [escape(line) for line in kept]


def _stream(file: KeptFile) -> Iterator[str]:
    with file.open() as stream:
        while line := stream.readline(_LOG_WINDOW):
            yield escape(line.decode("utf-8", "replace").rstrip("\r\n"), _LOG_WINDOW)
