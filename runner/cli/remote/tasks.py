"""The tasks of a server, as those on this machine are printed."""

from __future__ import annotations

from typing import Any

from runner.cli.remote.client import Client
from runner.cli.remote.looking import as_expected
from runner.cli.remote.servers import server


def tasks_at(to: str) -> list[dict[str, Any]]:
    """The tasks of a server in the fields of ``runner task list --json``."""
    with Client(server(to)) as client, as_expected():
        found = [client.get("overview", "tasks", str(one["id"])) for one in client.all("task-entry", "tasks")]
        return [
            {
                "task": str(one["id"]),
                "title": str(one["title"]),
                "kind": str(one["kind"]),
                "workflow": str(one["workflows"][0]),
                "workflows": [str(name) for name in one["workflows"]],
                "datasets": {str(each["id"]): str(each["visibility"]) for each in one["datasets"]},
            }
            for one in found
        ]


def task_at(to: str, task: str) -> tuple[dict[str, Any], list[str]]:
    """A task of a server: its data, with what the team has left where that is known yet, and the lines that are printed of it. Raises E102
    where there is none so."""
    with Client(server(to)) as client, as_expected():
        data = client.get("overview", "tasks", task)
        own = client.find("standing", "tasks", task, "standing")
        lines = data.pop("printed") if own is None else own["printed"]
        data.pop("printed", None)
        return {**data, "team": None if own is None else own["team"]}, [str(line) for line in lines]
