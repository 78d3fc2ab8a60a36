"""Handing in at a server what lies in a team's folder: checked here, sent, and if that is wanted waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from runner.cli import context, output
from runner.cli.packing import each
from runner.cli.remote.asking import decided
from runner.cli.remote.client import Client
from runner.cli.remote.servers import server
from runner.cli.remote.uploading import CHUNK, submit_upload, upload
from runner.cli.terminal import transfers
from runner.model.errors import FAILED, FINE, RunnerError
from schemas.files import make_private

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.submissions.definition import SubmissionFile, Upload


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
                return _software(where, client, submission, results, check=check, dry_run=dry_run, wait=wait)
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
    """Whether the run files of a submission have the form that its task wants, as far as that can be told here; it is said.

    They are the caller's own, and who hands in needs no engine: the checker runs as a process of theirs.
    """
    from runner.execution.trials.uploads import check_own_form

    task, good = context.load_task(where, submission.task), True
    for run in submission.run:
        found = check_own_form(task, task.datasets[run.dataset], run.scenario, run.path)
        name = output.printable(found.file)
        output.say(
            f"{submission.team}/{submission.software}: {name} for {run.dataset}: {found.how} (your own file, without a container)"
        )
        for line in found.text.splitlines():
            output.say(line)
        good = good and found.good
    return good


def _handed_in(client: Client, submission: SubmissionFile, wait: bool) -> Iterator[dict[str, Any]]:
    """Send each run file of a submission; what the server said of it, with the decision where that was waited for."""
    if submission.display_name or submission.team_display_name:
        output.say("display names are not sent: the organiser gives them (runner name)")
    for run in submission.run:
        with transfers() as bars:
            said = _send(client, submission, run, bars)
        yield _came(client, submission, run.path.name, said, wait)


def _came(client: Client, submission: SubmissionFile, what: str, said: Any, wait: bool) -> dict[str, Any]:
    """Say that something came, and with ``wait`` what became of it; the same for ``--json``."""
    name = f"{submission.team}/{submission.software}"
    output.say(f"{name}: {output.printable(what)} came to {client.server.name} at {said['arrival']}")
    output.say(f"request {said['request']}: {client.server.url}/requests/{said['request']}")
    answer = decided(client, str(said["request"])) if wait else None
    if answer is not None:
        output.say(f"{name} was taken as {answer['submission']}: {' '.join(answer.get('runs', ()))}")
    return {**said, "software": name, "answer": answer}


def _software(
    where: Config,
    client: Client,
    submission: SubmissionFile,
    results: list[dict[str, Any]],
    *,
    check: bool,
    dry_run: bool,
    wait: bool,
) -> int:
    """Pack a software, send what the server has not of it, and hand it in; returns the exit code."""
    import io
    import tempfile
    from pathlib import Path

    from runner.cli.packing import pack_one
    from runner.model.limits import in_units
    from runner.submissions.parcel import parcel

    name = f"{submission.team}/{submission.software}"
    no = f"{name} was not handed in: correct it and submit again"
    make_private(where.home)
    with tempfile.TemporaryDirectory(prefix="sending-", dir=where.home) as scratch:
        bundle = pack_one(where, submission, Path(scratch) / "bundle", check, no)
        if bundle is None:
            return FAILED
        if dry_run:
            output.say(f"{name} is fine; --dry-run: not handed in")
            return FINE
        sent = parcel(bundle, (client.find("parts", "parts") or {"sha256": []})["sha256"])
        output.say(f"{name}: {in_units(sent.size)} to send; {in_units(sent.left)} are there from before")
        with transfers() as bars, io.BufferedReader(sent, CHUNK) as file:
            id = upload(client, file, sent.size, sent.sha256, lambda done: bars(name, done, sent.size))
        form = {"upload": id, "software": submission.software}
        said = submit_upload(client, submission.task, "softwares", form)
    results.append(_came(client, submission, "the software", said, wait))
    return FINE


def _send(client: Client, submission: SubmissionFile, run: Upload, bars: Callable[..., None]) -> Any:
    """Send a run file and hand it in; the server's word on it. Raises E312 where it got something else."""
    from runner.records.files import file_sha256

    name, size, digest = run.path.name, run.path.stat().st_size, file_sha256(run.path)
    with run.path.open("rb") as file:
        sent = upload(client, file, size, digest, lambda done: bars(name, done, size))
    fields = {"software": submission.software, "dataset": run.dataset, "scenario": run.scenario}
    for key in ("tag", "description", "method", "paper", "affiliation"):
        fields[key] = getattr(submission, key)
    form = {key: value for key, value in {**fields, "upload": sent, "name": name}.items() if value}
    said = submit_upload(client, submission.task, "run-files", form)
    if said["sha256"] != digest:
        what = f"{client.server.name} got something else than was sent"
        raise RunnerError("E312", what, why=f"It has {said['sha256']}, not {digest}.", fix="submit again")
    return said
