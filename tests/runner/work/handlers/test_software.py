"""A software that was handed in: beside the clerk, from what was sent and the team's own parts alone."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

from runner.exchange.inbox import Request
from runner.exchange.published import Published, Publisher
from runner.submissions.parcel import note_parts, parcel
from runner.work.checks import Slot
from runner.work.publishing import Desk as Publishing
from tests.runner.submissions.test_parcel import LAYERS, bundle, digest
from tests.runner.work.test_requests import Desk, desk

__all__ = ["desk"]


def hand_in(desk: Desk, folder: Path, there: list[str], software: str = "one", **more: Any) -> Request:
    sent = parcel(bundle(folder, LAYERS, software), there)
    data = {"task": "mini", "software": software} | more
    return desk.send("software", data, payload=io.BytesIO(io.BufferedReader(sent).read()))


def no_engine() -> Any:
    raise AssertionError("an engine was asked")


def test_a_part_that_only_another_team_handed_in_has_to_be_sent(desk: Desk, tmp_path: Path) -> None:
    """The server has it, from beta: alpha is not told so, and a parcel that counts on it is refused as if nobody had."""
    desk.requests.engine = no_engine
    theirs = desk.project.config.registered / "beta.one.00000000"
    theirs.mkdir(parents=True)
    bundle(tmp_path / "beta", LAYERS).folder.rename(theirs / "bundle")
    note_parts(theirs)
    root = desk.project.config.published
    Publishing(desk.requests.store, desk.tasks, Publisher(root), lambda error: None).publish(["alpha"])
    view = Published(root).view("team:alpha")
    told = view.get("parts")
    assert told is not None and view.data(told) == {"sha256": []}
    found = desk.decided(hand_in(desk, tmp_path / "alpha", [digest(LAYERS[0])]))
    assert (found["accepted"], found["code"]) == (False, "E205") and digest(LAYERS[0]) in found["problems"][0]
    assert desk.used() == 0


def test_what_the_request_says_is_what_the_parcel_holds(desk: Desk, tmp_path: Path) -> None:
    desk.requests.engine = no_engine
    found = desk.decided(hand_in(desk, tmp_path / "a", [], task="other"))
    assert (found["accepted"], found["code"]) == (False, "E205")
    desk.inbox.root.mkdir(exist_ok=True)
    found = desk.decided(hand_in(desk, tmp_path / "b", [], more="x"))
    assert found["accepted"] is False and desk.events().count("submission-registered") == 0


def test_the_clerk_waits_for_no_software(desk: Desk, tmp_path: Path) -> None:
    """While one is being registered, other requests are decided; a token that is taken away then changes nothing for it."""
    goes_on, began = threading.Event(), threading.Event()

    def engine() -> Any:
        began.set()
        assert goes_on.wait(60)
        raise AssertionError("that is enough")

    desk.requests.slot, desk.requests.engine = Slot(), engine
    slow = hand_in(desk, tmp_path / "a", [])
    desk.requests.round(desk.tasks)
    assert began.wait(60) and desk.answer(slow) is None
    quick = desk.ask()
    desk.requests.round(desk.tasks)
    found = desk.answer(quick)
    assert found is not None and found["accepted"] is True and desk.answer(slow) is None
    goes_on.set()
    desk.requests.slot.close()
    assert not list(desk.project.home.glob(".request-*")), "nothing of it stays"
