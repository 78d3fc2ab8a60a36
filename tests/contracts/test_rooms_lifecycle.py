"""Several containers in one session: who may join whom, how one is stopped, and what ends with what. Both engines."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from runner.engines.base import ContainerSpec, Mount
from runner.model.errors import PlatformError
from runner.model.limits import MIB
from tests.contracts.conftest import raises_in, wait_for_line


def test_stopping_politely(world: Any, attempt: str) -> None:
    with world.engine.session(attempt) as session:
        handle = session.start(world.spec("polite", role="sidecar"))
        wait_for_line(handle, "begun")
        assert not handle.ended()
        ended = handle.stop()
        assert handle.ended()
        assert (ended.killed, ended.code) == ("stop", 7)
        assert handle.wait(100) is ended is handle.stop()
        assert handle.logs("stdout", 99) == b"begun\nending\n"


def test_an_earlier_end_stays_what_it_was(world: Any, attempt: str) -> None:
    with world.engine.session(attempt) as session:
        handle = session.start(world.spec("fail", role="sidecar"))
        end = time.monotonic() + 60
        while not handle.ended():
            assert time.monotonic() < end
            time.sleep(0.02)
        ended = handle.stop()
        refused = session.start(world.spec("refused"))
        refused.wait(100)
        assert refused.ended() and refused.stop().start_error
    assert (ended.killed, ended.code) == (None, 3)


def test_whoever_waits_learns_that_it_was_stopped(world: Any, attempt: str) -> None:
    with world.engine.session(attempt) as session:
        handle = session.start(world.spec("polite", role="sidecar"))
        wait_for_line(handle, "begun")
        with ThreadPoolExecutor(1) as pool:
            waited = pool.submit(handle.wait, 100)
            ended = handle.stop()
            assert waited.result(60) == ended and ended.killed == "stop"


def test_a_program_that_ignores_the_signal_is_killed_after_the_grace(world: Any, attempt: str) -> None:
    with world.engine.session(attempt) as session:
        handle = session.start(world.spec("stubborn", role="sidecar"))
        wait_for_line(handle, "begun")
        begun = time.monotonic()
        ended = handle.stop(grace=0.5)
        assert 0.4 < time.monotonic() - begun < 40
    assert (ended.killed, ended.code) == ("stop", 137)


@pytest.mark.slow
def test_a_deadline_counts_from_the_containers_own_start(world: Any, attempt: str) -> None:
    with world.engine.session(attempt) as session:
        session.start(world.spec("polite", role="sidecar"))
        time.sleep(1.5)
        handle = session.start(world.spec("stubborn"))
        begun = time.monotonic()
        ended = handle.wait(1.5)
        assert ended.killed == "time" and time.monotonic() - begun > 0.5


def test_files_reach_a_running_container_of_either_user(world: Any, attempt: str) -> None:
    with world.engine.session(attempt) as session:
        for role, owner in (("software", "software"), ("sidecar", "sidecar")):
            given = session.output_volume(f"in-{role}", bytes=MIB, inodes=16, owner=owner)
            handle = session.start(world.spec("look", Mount(given, "/in"), role=role))
            assert not handle.ended()
            session.copy_in(given, {"note": f"for the {role}".encode()})
            ended = handle.wait(100)
            assert ended.code == 0, handle.logs("stderr", 1000)
            assert handle.logs("stdout", 99) == f"for the {role}\n".encode()


def test_killing_ends_all_and_each_knows_why(world: Any, attempt: str) -> None:
    with world.engine.session(attempt) as session:
        relay = session.start(world.spec("polite", role="sidecar"))
        software = session.start(world.spec("polite", join=relay))
        driver = session.start(world.spec("polite", role="sidecar"))
        for handle in (relay, software, driver):
            wait_for_line(handle, "begun")
        assert world.engine.kill(attempt) is True
        ends = [handle.wait(100) for handle in (relay, software, driver)]
        assert world.engine.kill(attempt) is False
    assert [e.killed for e in ends] == ["cancel"] * 3


def test_a_sidecar_outlives_the_software_that_joined_it(world: Any, attempt: str) -> None:
    with world.engine.session(attempt) as session:
        relay = session.start(world.spec("polite", role="sidecar"))
        wait_for_line(relay, "begun")
        software = session.start(world.spec("fail", join=relay))
        assert software.wait(100).code == 3
        assert not relay.ended()
        assert relay.stop().code == 7


def test_who_may_join_whom(world: Any, attempt: str) -> None:
    with world.engine.session(attempt + "0") as other, world.engine.session(attempt) as session:
        foreign = other.start(world.spec("polite", role="sidecar"))
        relay = session.start(world.spec("polite", role="sidecar"))
        second = session.start(world.spec("polite", role="sidecar"))
        software = session.start(world.spec("polite", join=relay))
        guest = session.start(world.spec("polite", role="sidecar", join=second))
        gateway = session.start(world.spec("polite", role="gateway"))
        reasons: list[set[str]] = []
        for refused in (
            [("sidecar", relay), ("software", relay), ("sidecar", guest)],  # joined, or has joined another
            [
                ("sidecar", software),
                ("software", foreign),
                ("software", gateway),
            ],  # no sidecar of the session
            [("evaluator", second)],
            [("gateway", second)],
        ):
            reasons.append(
                {refusal(session, world.spec("polite", role=role, join=to)) for role, to in refused}
            )
        for role in ("software", "evaluator", "sidecar"):
            reasons.append({refusal(session, world.spec("polite", role=role, network="bridge"))})
        assert [len(same) for same in reasons] == [1] * 7
        assert len(set.union(*reasons)) == 7, reasons


def refusal(session: Any, spec: ContainerSpec) -> str:
    """Return the reason for which a container may not share a network."""
    with raises_in("roles.py") as caught:
        session.start(spec)
    return str(caught.value)


def test_nobody_joins_what_has_ended(world: Any, attempt: str) -> None:
    """That is a failure of ours, found out when the software starts."""
    with world.engine.session(attempt) as session:
        relay = session.start(world.spec("fail", role="sidecar"))
        relay.wait(100)
        with pytest.raises(PlatformError):
            session.start(replace(world.spec("polite"), join=relay))
