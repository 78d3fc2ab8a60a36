"""What can be asked for through the front: for each kind of request the scope that it needs and the function that does it.

A new kind is a row of :data:`HANDLERS` and a module that does it, a word of ``kind`` in schemas/inbox-request.schema.json
and :data:`runner.exchange.inbox.KINDS`, and a schema ``inbox-<kind>`` of its ``data``.
"""

from collections.abc import Mapping
from typing import Any

import schemas
from runner.exchange.handing_in import NOT_FILLED_IN, check_fields
from runner.model.errors import RunnerError
from runner.work.handlers.identity import sign_in
from runner.work.handlers.organise import change_team, propose, rerun, review_run, withdraw_any
from runner.work.handlers.own import accept_terms, choose_notices, choose_own, make_token, withdraw_own
from runner.work.handlers.register import register
from runner.work.handlers.run_file import hand_in_run_file
from runner.work.handlers.software import hand_in_software
from runner.work.handlers.wish import Handler

HANDLERS: Mapping[str, Handler] = {
    "run-file": Handler("hand-in", hand_in_run_file, takes_file=True),
    "software": Handler("hand-in", hand_in_software, slow=True, takes_file=True),
    "withdraw": Handler("hand-in", withdraw_own, takes_away=True),
    "choose": Handler("hand-in", choose_own),
    "notices": Handler("hand-in", choose_notices),
    "terms": Handler("hand-in", accept_terms),
    "token": Handler(None, make_token),
    "identity": Handler(None, sign_in, strangers=True),
    "register": Handler(None, register, strangers=True),
    "propose": Handler("manage", propose),
    "review": Handler("manage", review_run, takes_away=True),
    "rerun": Handler("manage", rerun),
    "team": Handler("manage", change_team, takes_away=True),
    "withdraw-any": Handler("manage", withdraw_any, takes_away=True, schema="inbox-withdraw"),
}


def check_data(kind: str, data: Mapping[str, Any]) -> None:
    """Raise E201 unless ``data`` of a request fit the schema of its kind; E208 for the name of a system.

    The handler of run files checks texts itself, with the rules of the task, so that every problem is in one answer.
    """
    if kind == "run-file" and all(isinstance(value, str) for value in data.values()):
        return
    if HANDLERS[kind].takes_file:
        check_fields("software" if kind == "software" else "run-file", data)
    elif problems := schemas.validate(dict(data), HANDLERS[kind].schema or f"inbox-{kind}"):
        raise RunnerError("E201", NOT_FILLED_IN, fix="correct what is listed", problems=problems)
