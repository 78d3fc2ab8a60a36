"""A software that was handed in: its parcel is unpacked, hashed, and registered as ``runner register`` does."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from runner.exchange.handing_in import Takes
from runner.model.errors import PlatformError, RunnerError
from runner.model.run import run_id
from runner.work.handlers.wish import Wish


def hand_in_software(wish: Wish) -> dict[str, Any]:
    """Register a software, received when it arrived. What was not sent is taken from the team's own earlier hand-ins, and from base images
    that the organiser named, alone."""
    from runner.records.store.queries import submission, submissions
    from runner.submissions.kept import home_of
    from runner.submissions.parcel import note_parts, parts_for, unpack
    from runner.submissions.register import register_all

    data, team = wish.data, wish.account.team
    if (task := wish.tasks.get(data["task"])) is not None:
        Takes.of(task).check("software")
    if wish.payload is None or team is None or wish.engine is None:
        raise RunnerError("E205", "nothing was sent", fix="runner submit --to NAME")
    config = replace(wish.config, handing_in=True)
    own = parts_for(config.home, [one.id for one in submissions(wish.store) if one.team == team])
    bundle = unpack(wish.payload, own, wish.scratch / "bundle")
    wish.payload.unlink()  # it takes room, and is not needed any more
    said = (bundle.data["task"], bundle.data["software"])
    if said != (data["task"], data["software"]):
        raise RunnerError(
            "E205", "the parcel holds something else than the request says", fix="submit it again"
        )
    engine = wish.engine()
    receipt = register_all(
        config, wish.store, engine, wish.tasks, [bundle.folder], actor=team, clock=wish.clock, team=team
    )[0]
    with suppress(OSError, PlatformError):  # it only spares whoever hands in next some sending
        note_parts(home_of(config, receipt.submission).parent)
    cells = submission(wish.store, receipt.submission).cells_of(wish.tasks[data["task"]])
    runs = [run_id(receipt.submission, cell.dataset, cell.scenario) for cell in cells]
    return {"submission": receipt.submission, "new": receipt.new, "runs": runs}
