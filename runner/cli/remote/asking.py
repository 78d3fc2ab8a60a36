"""Asking a server for something about a submission, and waiting until it is decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.cli import output
from runner.cli.remote.client import Client, refused
from runner.cli.remote.servers import server
from runner.model.errors import RunnerError


def ask(to: str, submission: str, verb: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """Ask for ``verb`` (withdraw, choose) of a submission of the team; returns the decision once it is there.

    Raises as :class:`runner.cli.remote.client.Client`, and the error for which it was refused.
    """
    with Client(server(to)) as client:
        said = client.post("api-asked", "submissions", submission, verb, params=fields)
        return decided(client, str(said["request"]))


def decided(client: Client, request: str) -> dict[str, Any]:
    """Wait for the decision about a request, and return it. Raises the error for which it was refused."""
    later = f"runner status {output.printable(request)} --to {client.server.name}"
    output.say(
        f"request {output.printable(request)}; waiting for the decision (Ctrl-C: {later} shows it then)"
    )
    answer = client.decision(request)
    if answer is None:
        raise RunnerError("E312", "there is no decision", fix=f"{later} shows it then")
    if not answer["accepted"]:
        raise refused(answer, client.server.name)
    return answer
