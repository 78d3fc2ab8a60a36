"""The page and the OpenAPI document about ``/api/v1``, made of the rules of its routes and of the schemas."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import schemas
from runner.exchange.inbox import Inbox
from runner.exchange.published import Published
from runner.exchange.security import SecurityLog
from runner.web.door import Door
from runner.web.openapi import document
from runner.web.routes import rules
from runner.web.rules import Rule
from runner.web.sessions import Sessions
from tools.docs.tables import grid, page, table

_SAYS = """\
What a server ([how to run one](../how-to/serve.md)) gives to programs: for whoever asks the objects that commands print with `--json`.
[openapi.json](openapi.json) is the same for machines (OpenAPI 3.1); a server gives it at `/api/v1/openapi.json`.

```
curl -H "Authorization: Bearer $TOKEN" https://task.example.org/api/v1/runs
```

- **Who asks** is said by a token in the header `Authorization`, and by nothing else: cookies are not looked at. Without one, what
  everybody may see is given. A token has scopes.
- **Lists** come in pages, `{"items": [...], "next": ADDRESS}`, in an order that stays. `limit` (100, at most 500) says how many; `next` is
  null on the last page.
- **Entity tags** are strong. With `If-None-Match` the answer is 304 while nothing has changed.
- **Problems** are `application/problem+json`, with a `code` of the [errors](errors.md), `what`, `why` and `fix`, and where several
  things are wrong all of them as `problems`. What is not there and what
  is not for whoever asks is one and the same 404.
- **Later versions** may add keys; those that are here stay what they are.
- A run file is handed in as a form, like from the browser: a `file` and the [fields beside it](server.md#data-of-a-request-for-a-run-file).
  202 says that it is kept; `at` is where it is said what became of it.
- **Uploads** that continue after a cut are parts with `Content-Range`, sent by `PUT /api/v1/uploads/SHA256`
  ([how](../how-to/serve.md#from-another-machine)); `GET /api/v1/uploads` lists those of the team.

From Python, [`runner.api.connect`](api.md) gives all this as data frames.
"""


def _rules() -> tuple[Rule, ...]:
    """The routes of a front that nobody serves."""
    with tempfile.TemporaryDirectory() as folder:
        nowhere = Path(folder)
        sessions = Sessions(nowhere)
        door = Door(Published(nowhere), sessions, "http://localhost", SecurityLog(nowhere))
        found = rules(door, Inbox(nowhere))
        sessions.close()
    return found


def openapi() -> str:
    """``openapi.json``."""
    return json.dumps(document(_rules()), indent=1, ensure_ascii=False) + "\n"


def http_api() -> str:
    """The page ``http-api.md``."""
    made = document(_rules())
    routes = [
        (f"`{method.upper()} {path}`", one["summary"], _gives(one), one["description"])
        for path, operations in made["paths"].items()
        for method, one in operations.items()
    ]
    parts = [_SAYS, "## Routes\n", grid("route, what, gives, who", routes)]
    for name in sorted({_name(one) for path in made["paths"].values() for one in path.values()} - {""}):
        root = schemas.schema(name)
        parts += [f"## {name}\n", root["description"] + "\n", table(root)]
    problem = schemas.schema("api-problem")
    parts += ["## api-problem\n", problem["description"] + "\n", table(problem)]
    return page("The API of a server", *parts)


def _good(operation: dict[str, Any]) -> dict[str, Any]:
    return next(one for status, one in operation["responses"].items() if status.startswith("2"))


def _schema(operation: dict[str, Any]) -> dict[str, Any]:
    """The schema of a good answer; empty where that has no content, or is a file."""
    found: dict[str, Any] = _good(operation).get("content", {}).get("application/json", {}).get("schema", {})
    return found


def _name(operation: dict[str, Any]) -> str:
    if not (found := _schema(operation)):
        return ""
    ref: str = found.get("$ref") or found["properties"]["items"]["items"]["$ref"]
    return ref.rpartition("/")[2]


def _gives(operation: dict[str, Any]) -> str:
    if not (name := _name(operation)) and (content := _good(operation).get("content")):
        return f"the file ({', '.join(content)})"
    if not name:
        return ""
    link = f"[{name}](#{name})"
    return link if "$ref" in _schema(operation) else f"pages of {link}"
