"""Handing in at a server what lies in a team's folder: checked here, sent, and if that is wanted waited for."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from runner.cli import context, output
from runner.cli.packing import each
from runner.cli.remote.asking import decided
from runner.cli.remote.client import Client
from runner.cli.remote.servers import server
from runner.cli.terminal import transfers
from runner.model.errors import FAILED, FINE, RunnerError

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.submissions.definition import SubmissionFile, Upload

_CHUNK = 1024 * 1024


def submit_to(
    to: str, team: str, software: str | None, *, check: bool, dry_run: bool, wait: bool, as_json: bool
) -> None:
    """Hand in the softwares of a team at a server, one after the other; what is wrong with one stops no other.

    Raises typer.Exit with the code of the worst problem, and E213 where the token is another team's.
    """
    where = context.config()
    with Client(server(to)) as client:
        if client.server.team != team:
            why = f"The token for {to} is of {client.server.team or 'no team'}."
            fix = f"runner login {client.server.url} with a token of {team}"
            raise RunnerError("E213", f"{to} takes nothing of {team} from you", why=why, fix=fix)
        found, worst = context.select_submissions(where, team, software)
        results: list[dict[str, Any]] = []

        def one(submission: SubmissionFile) -> int:
            if not submission.run:
                what = f"{to} takes run files; {team}/{submission.software} is a software"
                fix = "runner pack --to FOLDER, and give the bundle to the organiser"
                raise RunnerError("E207", what, fix=fix)
            if check and not _good(where, submission):
                output.say(f"{team}/{submission.software} was not handed in: correct it and submit again")
                return FAILED
            if dry_run:
                output.say(f"{team}/{submission.software} is fine; --dry-run: not handed in")
                return FINE
            results.extend(_handed_in(client, submission, wait))
            return FINE

        worst = each(found, one, worst)
    output.finish(worst, results if as_json else None)


def _good(where: Config, submission: SubmissionFile) -> bool:
    """Whether the run files of a submission have the form that its task wants, as far as that can be told here; it is said."""
    from runner.execution.trials.uploads import check_form

    task, good = context.load_task(where, submission.task), True
    for run in submission.run:
        found = check_form(task, task.datasets[run.dataset], run.scenario, run.path)
        name = output.printable(found.file)
        output.say(f"{submission.team}/{submission.software}: {name} for {run.dataset}: {found.how}")
        for line in found.text.splitlines():
            output.say(line)
        good = good and found.good
    return good


def _handed_in(client: Client, submission: SubmissionFile, wait: bool) -> Iterator[dict[str, Any]]:
    """Send each run file of a submission; what the server said of it, with the decision where that was waited for."""
    from runner.records.files import file_sha256

    if submission.display_name or submission.team_display_name:
        output.say("display names are not sent: the organiser gives them (runner name)")
    for run in submission.run:
        with transfers() as bars:
            said = _send(client, submission, run, bars)
        digest = file_sha256(run.path)
        if said["sha256"] != digest:
            what = f"{client.server.name} got something else than was sent"
            raise RunnerError("E312", what, why=f"It has {said['sha256']}, not {digest}.", fix="submit again")
        name = f"{submission.team}/{submission.software}"
        output.say(
            f"{name}: {output.printable(run.path.name)} came to {client.server.name} at {said['arrival']}"
        )
        output.say(f"request {said['request']}: {client.server.url}/requests/{said['request']}")
        answer = decided(client, str(said["request"])) if wait else None
        if answer is not None:
            output.say(f"{name} was taken as {answer['submission']}: {' '.join(answer.get('runs', ()))}")
        yield {**said, "software": name, "answer": answer}


def _send(client: Client, submission: SubmissionFile, run: Upload, bars: Callable[..., None]) -> Any:
    fields = {"software": submission.software, "dataset": run.dataset, "scenario": run.scenario}
    for name in ("tag", "description", "method", "paper", "affiliation"):
        fields[name] = getattr(submission, name)
    with run.path.open("rb") as file:
        body = Form(
            {k: v for k, v in fields.items() if v}, run.path.name, file, run.path.stat().st_size, bars
        )
        headers = {"Content-Type": f"multipart/form-data; boundary={body.boundary}"}
        return client.post("tasks", submission.task, "run-files", data=body, headers=headers)


class Form:
    """A form with fields and one file, read from the disk while it is sent: memory stays flat, whatever its size.

    Args:
        fields: Texts by their names.
        name: How the file is called there.
        file: What is sent, from where it stands.
        size: Its bytes.
        on_progress: Told the name, the bytes of the form that were read, and all of them.
    """

    def __init__(
        self,
        fields: dict[str, str],
        name: str,
        file: BinaryIO,
        size: int,
        on_progress: Callable[[str, int, int | None], None],
    ) -> None:
        self.boundary = secrets.token_hex(16)
        plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name)
        head = "".join(
            f'--{self.boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
            for key, value in fields.items()
        )
        head += (
            f'--{self.boundary}\r\nContent-Disposition: form-data; name="file"; filename="{plain}"\r\n\r\n'
        )
        self._head, self._tail = head.encode(), f"\r\n--{self.boundary}--\r\n".encode()
        self._file, self._name, self._told = file, name, on_progress
        self._length = len(self._head) + size + len(self._tail)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        done = 0
        for part in self._parts():
            yield part
            done += len(part)
            self._told(self._name, done, self._length)

    def _parts(self) -> Iterator[bytes]:
        yield self._head
        while part := self._file.read(_CHUNK):
            yield part
        yield self._tail
