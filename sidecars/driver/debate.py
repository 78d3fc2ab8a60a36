"""Sub-task 1: a debate between the simulated user and the software, turn by turn, written as GenIRSim writes it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from sidecars.driver.answers import Answer, Share, encode, milliseconds, read_answer
from sidecars.driver.config import Claim, Config
from sidecars.driver.output import Part
from sidecars.driver.software import Software
from sidecars.driver.user import User, Utterance, shown
from sidecars.peer import Failure

NO_RESPONSE = encode({"content": "", "arguments": []})


@dataclass
class _Debate:
    """What was said so far, in the roles of each side, and what is written of it."""

    claim: Claim
    share: Share  # of the output, for the software's answers
    for_user: list[dict[str, Any]] = field(default_factory=list)
    for_software: list[dict[str, str]] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)


async def hold(claim: Claim, config: Config, software: Software, user: User, room: int) -> Part:
    """One debate on ``claim``, to its last turn whatever the software does.

    ``room`` bounds the bytes that the software's answers take in the output; an answer beyond it counts as too
    large. Raises :class:`~sidecars.driver.user.UserFailure`.
    """
    debate = _Debate(claim, Share(room))
    started = time.perf_counter()
    for number in range(1, config.turns + 1):
        await _turn(debate, number, config, software, user)
    whole = milliseconds(started)
    line = (
        f'{{"simulation":{{"configuration":{encode(configuration(claim, config))},'
        f'"userTurns":[{",".join(debate.turns)}],"milliseconds":{whole}}}}}'
    )
    return Part(claim.number, line, debate.records)


def configuration(claim: Claim, config: Config) -> dict[str, Any]:
    """The block that says how the debate was held, with GenIRSim's names; ``id`` is ours."""
    return {
        "topic": {"description": claim.claim, "id": claim.id},
        "user": {
            "class": "Touche25RADUser",
            "url": f"http://127.0.0.1{config.user_path}",
            "model": config.user_model,
        },
        "system": {"class": "BasicChatSystem", "url": config.address},
        "maxTurns": config.turns,
    }


async def _turn(debate: _Debate, number: int, config: Config, software: Software, user: User) -> None:
    started = time.perf_counter()
    spoken: Utterance | None = None
    answer: Answer | None = None
    failure = software.over()
    if failure is None:
        try:
            async with asyncio.timeout(max(software.left(), 0)):
                first = not debate.for_user
                spoken = await (user.open(debate.claim.claim) if first else user.answer(debate.for_user))
        except TimeoutError:
            failure = Failure("run-limit", "the time of the whole run was over")
    user_ms = milliseconds(started)
    middle = time.perf_counter()
    if spoken is not None:
        debate.for_user.append(spoken.message)
        debate.for_software.append({"role": "user", "content": spoken.utterance})
        try:
            reply = await software.ask("/", encode({"messages": debate.for_software}).encode())
            found = read_answer(reply)
            size = len(found.encoded.encode()) + len(encode(found.utterance).encode())
            debate.share.take(size, found, "answers")
            answer = found
        except Failure as caught:
            failure = caught
    system_ms = milliseconds(middle)
    utterance = answer.utterance if answer else ""
    # A turn without an answer stays in the dialogue as silence, so that the roles go on alternating.
    debate.for_software.append({"role": "assistant", "content": utterance})
    debate.for_user.append({"role": "user", "content": shown(utterance)})
    debate.turns.append(
        f'{{"utterance":{encode(spoken.utterance if spoken else "")},'
        f'"systemResponse":{{"utterance":{encode(utterance)},'
        f'"response":{answer.encoded if answer else NO_RESPONSE},"milliseconds":{user_ms + system_ms}}}}}'
    )
    debate.records.append(
        {
            "debate": debate.claim.number,
            "id": debate.claim.id,
            "turn": number,
            "target": spoken.target if spoken else None,
            **outcome(failure),
            "status": 200 if answer else failure.status if failure else None,
            "user_ms": round(user_ms, 3),
            "system_ms": round(system_ms, 3),
            "bytes": answer.size if answer else failure.size if failure else 0,
            "words": answer.words if answer else 0,
            "arguments": answer.arguments if answer else 0,
            "argument_ids": list(answer.argument_ids) if answer else [],
        }
    )


def outcome(failure: Failure | None) -> dict[str, Any]:
    """The two fields of a record that say whether there is an answer, and why not."""
    if failure is None:
        return {"outcome": "answered", "failure": None}
    return {"outcome": "failed", "failure": {"class": failure.kind, "detail": failure.detail}}
