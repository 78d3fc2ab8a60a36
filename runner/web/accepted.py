"""The requests that the server accepted, also those whose note a killed server did not write.

A request is accepted once it is in the inbox. The note in the server's own database comes after that, so a server that is killed in
between leaves a request without a note. Such a request is found again in the inbox or, once it is decided, by its answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from runner.exchange.inbox import ID, Inbox, Refused, Request, answered
from runner.web.sessions import Sessions

_ALL = 10_000_000  # requests of the inbox that are looked at


class Accepted:
    """The accepted requests of all teams; ``url`` is the address of the server, which receipts name."""

    def __init__(self, sessions: Sessions, published: Path, inbox: Inbox, url: str) -> None:
        self._sessions, self._published, self._inbox, self._url = sessions, published, inbox, url

    def note(self, request: Request, began: str, what: str) -> dict[str, Any]:
        """Sign that a request is in the inbox, and remember it.

        Args:
            request: As it was put there.
            began: When its first byte came.
            what: It is, in words.

        Returns:
            The front's part of the receipt.
        """
        statement = {
            "server": self._url,
            "request": request.id,
            **{name: getattr(request, name) for name in ("kind", "team", "sha256", "size")},
            "task": request.data.get("task"),
            "began": began,
            "arrived": request.arrival,
        }
        signed = self._sessions.signer.sign("arrival", statement)
        self._sessions.note(request, what, signed)
        return signed

    def find(self, team: str | None, id: str) -> dict[str, Any] | None:
        """Return the note of a request of a team, written now if it is missing; None if no such request was accepted."""
        if not self._sessions.noted(team, id):
            self._restore([name for name, waiting in self._inbox.waiting(_ALL) if waiting == id])
            self._restore_decided(id)
        noted = self._sessions.noted(team, id)
        return noted[0] if noted else None

    def restore(self) -> None:
        """Write the notes that are missing. For the start of the server."""
        noted_ids = self._sessions.noted_ids()
        self._restore([name for name, id in self._inbox.waiting(_ALL) if id not in noted_ids])
        # After the inbox: a request leaves it once its answer is written.
        for path in (self._published / "answers").glob("*.json"):
            if path.stem not in noted_ids and ID.fullmatch(path.stem):
                self._restore_decided(path.stem)

    def _restore(self, names: list[str]) -> None:
        for name in names:
            with suppress(Refused, OSError):  # the coordinator has taken it, or refuses it
                request = self._inbox.read(name)
                if request.team is not None:
                    self.note(request, request.arrival, summary(request.kind, request.data))

    def _restore_decided(self, id: str) -> None:
        """Note a request by its answer, which says less of it: there is no receipt of the arrival."""
        answer = answered(self._published, id)
        if answer is None or not answer.get("team") or self._sessions.noted(answer["team"], id):
            return
        about = {name: answer.get(name) for name in ("kind", "team", "arrival", "sha256")}
        request = Request(id=id, account="", token="", data={}, size=0, **about)  # type: ignore[arg-type]
        with suppress(ValueError, TypeError):
            request.arrived  # noqa: B018  (pages show it as a time)
            self._sessions.note(request, str(answer.get("kind", "")), None)


def summary(kind: str, data: Mapping[str, Any]) -> str:
    """Return what a request is, in words."""
    if kind == "software":
        return f"{data.get('software', '')} for {data.get('task')}: a software"
    if kind == "run-file":
        return f"{data.get('software', '')} for {data.get('task')}: {data.get('file')}"
    return kind
